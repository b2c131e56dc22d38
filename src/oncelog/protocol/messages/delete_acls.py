"""DeleteAcls (31): remove access rules."""

from oncelog.protocol.schema import i8, i16, i32, request, response, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: i8 = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


@request(key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = []


@struct
class DeleteAclsMatchingAcl:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = 3
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@struct
class DeleteAclsFilterResult:
    error_code: i16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@response(to=DeleteAclsRequest)
class DeleteAclsResponse:
    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
