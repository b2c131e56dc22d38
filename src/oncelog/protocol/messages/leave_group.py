"""LeaveGroup (13): leave a group without waiting for the session to time out."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, request, response, since, struct, until


@struct
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    # KIP-800: for the broker's log.
    reason: Annotated[str | None, since(5)] = None


@request(key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest:
    group_id: str = ""
    member_id: Annotated[str, until(2)] = ""
    # KIP-345: an administrator may remove several static members at once.
    members: Annotated[list[MemberIdentity], since(3)] = []


@struct
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: i16 = 0


@response(to=LeaveGroupRequest)
class LeaveGroupResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
