"""ApiVersions (18): what this broker speaks; the first thing a client asks."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct, tagged


@request(key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest:
    # KIP-511: who is calling, for the broker's log.
    client_software_name: Annotated[str, since(3)] = ""
    client_software_version: Annotated[str, since(3)] = ""


@struct
class ApiVersion:
    api_key: i16 = 0
    min_version: i16 = 0
    max_version: i16 = 0


@struct
class SupportedFeatureKey:
    name: str = ""
    min_version: i16 = 0
    max_version: i16 = 0


@struct
class FinalizedFeatureKey:
    name: str = ""
    max_version_level: i16 = 0
    min_version_level: i16 = 0


@response(to=ApiVersionsRequest)
class ApiVersionsResponse:
    """Answers to a version the broker does not know come as v0, with UNSUPPORTED_VERSION and the range of this API."""

    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, since(1)] = 0
    # KIP-584. Until v4 a minimum of 0 broke clients, so such features are left out below it.
    supported_features: Annotated[list[SupportedFeatureKey], tagged(0, since=3)] = []
    finalized_features_epoch: Annotated[i64, tagged(1, since=3)] = -1
    # transaction.version 2 in here is what makes producers use transactions v2 (KIP-890).
    finalized_features: Annotated[list[FinalizedFeatureKey], tagged(2, since=3)] = []
    # KIP-866; of no use here.
    zk_migration_ready: Annotated[bool, tagged(3, since=3)] = False
