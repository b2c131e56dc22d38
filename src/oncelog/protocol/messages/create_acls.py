"""CreateAcls (30): add access rules."""

from oncelog.protocol.schema import i8, i16, i32, request, response, struct


@struct
class AclCreation:
    resource_type: i8 = 0
    resource_name: str = ""
    resource_pattern_type: i8 = 3
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@request(key=30, versions=(1, 3), flexible_since=2)
class CreateAclsRequest:
    creations: list[AclCreation] = []


@struct
class AclCreationResult:
    error_code: i16 = 0
    error_message: str | None = ""


@response(to=CreateAclsRequest)
class CreateAclsResponse:
    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
