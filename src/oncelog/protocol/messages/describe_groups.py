"""DescribeGroups (15): state and members of classic groups."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, request, response, since, struct


@request(key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest:
    groups: list[str] = []
    # KIP-430: costs the broker a question per operation, so it must be asked for.
    include_authorized_operations: Annotated[bool, since(3)] = False


@struct
class DescribedGroupMember:
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(4)] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@struct
class DescribedGroup:
    error_code: i16 = 0
    # KIP-1043: an unknown group is GROUP_ID_NOT_FOUND now; before, it was described as Dead.
    error_message: Annotated[str | None, since(6)] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    # The chosen assignor, while the group is Stable.
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[i32, since(3)] = -(2**31)


@response(to=DescribeGroupsRequest)
class DescribeGroupsResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    groups: list[DescribedGroup] = []
