"""DescribeAcls (29): list access rules."""

from oncelog.protocol.schema import i8, i16, i32, request, response, struct


@request(key=29, versions=(1, 3), flexible_since=2)
class DescribeAclsRequest:
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    # KIP-290: 1 any, 2 every rule that matches the name, 3 literal, 4 prefixed.
    pattern_type_filter: i8 = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


@struct
class AclDescription:
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@struct
class DescribeAclsResource:
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = 3
    acls: list[AclDescription] = []


@response(to=DescribeAclsRequest)
class DescribeAclsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
