"""ApiVersions (18): what this broker understands. The first thing most clients ask.

A client newer than the broker asks in a version the broker does not know: it is answered in version 0, with
UNSUPPORTED_VERSION and the ranges, so that it can ask again (KIP-511).
"""

from typing import TYPE_CHECKING

from oncelog.broker.dispatch import ADVERTISED
from oncelog.broker.transaction_versions import TRANSACTION_VERSION
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

SOFTWARE_NAME_SINCE = 3


def handle_api_versions(
    node: "Node", caller: "Caller", request: ApiVersionsRequest, version: int
) -> ApiVersionsResponse:
    if version >= SOFTWARE_NAME_SINCE:
        if not _is_plain_name(request.client_software_name) or not _is_plain_name(request.client_software_version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
        caller.client_software = f"{request.client_software_name} {request.client_software_version}"
    return ApiVersionsResponse(
        api_keys=_ranges(),
        # A client follows transactions v2 only where the cluster says that all of it does (KIP-890).
        supported_features=[
            SupportedFeatureKey(name="transaction.version", min_version=0, max_version=TRANSACTION_VERSION)
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name="transaction.version", max_version_level=TRANSACTION_VERSION, min_version_level=TRANSACTION_VERSION
            )
        ],
    )


def unsupported_version_reply() -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ranges())


def _ranges() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in sorted(ADVERTISED.items())
    ]


def _is_plain_name(text: str) -> bool:
    """Letters, digits, dots and dashes, and a letter or digit at both ends: it goes into logs and metrics as it is."""
    return (
        bool(text)
        and text[0].isalnum()
        and text[-1].isalnum()
        and text.isascii()
        and text.replace("-", "").replace(".", "").isalnum()
    )
