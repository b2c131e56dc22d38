"""SyncGroup (14): hand in (as leader) and receive a generation's assignment."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, request, response, since, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@request(key=14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest:
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    # KIP-345: static membership.
    group_instance_id: Annotated[str | None, since(3)] = None
    # KIP-559: the broker checks that the member speaks of the protocol that was chosen.
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    # From the leader; everybody else sends none.
    assignments: list[SyncGroupRequestAssignment] = []


@response(to=SyncGroupRequest)
class SyncGroupResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignment: bytes = b""
