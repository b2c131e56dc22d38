"""IncrementalAlterConfigs (44): set, delete, append to or subtract from single configs."""

from oncelog.protocol.schema import i8, i16, i32, request, response, struct


@struct
class AlterableConfig:
    name: str = ""
    # 0 set, 1 delete, 2 append, 3 subtract (the last two for lists).
    config_operation: i8 = 0
    value: str | None = ""


@struct
class AlterConfigsResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


@request(key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""


@response(to=IncrementalAlterConfigsRequest)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
