"""DeleteGroups (42): delete empty groups."""

from oncelog.protocol.schema import i16, i32, request, response, struct


@request(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest:
    groups_names: list[str] = []


@struct
class DeletableGroupResult:
    group_id: str = ""
    error_code: i16 = 0


@response(to=DeleteGroupsRequest)
class DeleteGroupsResponse:
    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
