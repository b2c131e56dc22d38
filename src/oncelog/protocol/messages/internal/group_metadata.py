"""A classic group, as `__consumer_offsets` keeps it."""

from typing import Annotated

from oncelog.protocol.schema import i32, i64, since, stored, struct


@stored(versions=(2, 2))
class GroupMetadataKey:
    """Kept apart from offsets in the same topic by its version."""

    group: str = ""


@struct
class MemberMetadata:
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[i32, since(1)] = -1
    session_timeout: i32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


@stored(versions=(0, 4), flexible_since=4)
class GroupMetadataValue:
    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[i64, since(2)] = -1
    members: list[MemberMetadata] = []
