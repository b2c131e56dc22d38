"""Heartbeat (12): stay in a group, and learn of a rebalance."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, request, response, since


@request(key=12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest:
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    # KIP-345: static membership.
    group_instance_id: Annotated[str | None, since(3)] = None


@response(to=HeartbeatRequest)
class HeartbeatResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
