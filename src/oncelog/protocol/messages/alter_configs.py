"""AlterConfigs (33): replace all configs of a resource; IncrementalAlterConfigs is the one to use."""

from oncelog.protocol.schema import i8, i16, i32, request, response, struct


@struct
class AlterableConfig:
    name: str = ""
    value: str | None = ""


@struct
class AlterConfigsResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


@request(key=33, versions=(0, 2), flexible_since=2)
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""


@response(to=AlterConfigsRequest)
class AlterConfigsResponse:
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
