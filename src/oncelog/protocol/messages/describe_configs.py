"""DescribeConfigs (32): read configs of topics and brokers."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, request, response, since, struct


@struct
class DescribeConfigsResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []


@request(key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = []
    # KIP-226: also where a value would come from if it were not set here.
    include_synonyms: bool = False
    # KIP-569: a text for people.
    include_documentation: Annotated[bool, since(3)] = False


@struct
class DescribeConfigsSynonym:
    name: str = ""
    value: str | None = ""
    source: i8 = 0


@struct
class DescribeConfigsResourceResult:
    name: str = ""
    # Null if it is sensitive.
    value: str | None = ""
    read_only: bool = False
    # KIP-226: where this value comes from.
    config_source: i8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[i8, since(3)] = 0
    documentation: Annotated[str | None, since(3)] = ""


@struct
class DescribeConfigsResult:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


@response(to=DescribeConfigsRequest)
class DescribeConfigsResponse:
    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
