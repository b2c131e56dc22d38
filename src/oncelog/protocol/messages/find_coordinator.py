"""FindCoordinator (10): which broker looks after a group or a transactional id."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, request, response, since, struct, until


@request(key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest:
    key: Annotated[str, until(3)] = ""
    # 0: a group; 1: a transactional id; 2 (v6): a share group.
    key_type: Annotated[i8, since(1)] = 0
    # KIP-699: several at once.
    coordinator_keys: Annotated[list[str], since(4)] = []


@struct
class Coordinator:
    key: str = ""
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


@response(to=FindCoordinatorRequest)
class FindCoordinatorResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: Annotated[i16, until(3)] = 0
    error_message: Annotated[str | None, since(1), until(3)] = ""
    node_id: Annotated[i32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[i32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
