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
    rebalance_timeout_ms: Annotated[i32, since(1)] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
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
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, nullable(since=7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
