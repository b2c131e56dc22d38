"""JoinGroup (11): enter a group and wait for its next generation."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, nullable, request, response, since, struct


@struct
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@request(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest:
    group_id: str = ""
    session_timeout_ms: i32 = 0
    # KIP-62: how long members have to rejoin; before v1 it was the session timeout.
    rebalance_timeout_ms: Annotated[i32, since(1)] = -1
    # Empty at first. From v4 on the broker answers MEMBER_ID_REQUIRED with an id to join again with (KIP-394).
    member_id: str = ""
    # KIP-345: static membership.
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    # KIP-800: for the broker's log.
    reason: Annotated[str | None, since(8)] = None


@struct
class JoinGroupResponseMember:
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    metadata: bytes = b""


@response(to=JoinGroupRequest)
class JoinGroupResponse:
    throttle_time_ms: Annotated[i32, since(2)] = 0
    error_code: i16 = 0
    generation_id: i32 = -1
    # KIP-559: a client can see that the group speaks another protocol than it does.
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, nullable(since=7)] = ""
    leader: str = ""
    # KIP-814: the leader came back as a static member, and the assignment stands.
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    # For the leader only: everybody's metadata, to assign by.
    members: list[JoinGroupResponseMember] = []
