"""Which version of a request to send: the newest that both sides know. Pure."""

from collections.abc import Mapping

from oncelog.client.errors import Fatal
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.messages.api_versions import ApiVersionsResponse

Ranges = Mapping[int, tuple[int, int]]


def ranges_of(response: ApiVersionsResponse) -> Ranges:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def choose_version(key: ApiKey, offered: Ranges, *, at_least: int = 0) -> int:
    """The newest common version; Fatal where there is none, or none that has what the caller needs (`at_least`)."""
    api = APIS[key]
    if key not in offered:
        raise Fatal(f"the broker does not support {api.name}", ErrorCode.UNSUPPORTED_VERSION)
    lowest, highest = offered[key]
    version = min(highest, api.versions[1])
    if version < max(lowest, api.versions[0], at_least):
        needed = f"version {max(at_least, api.versions[0])} or later of {api.name}"
        why = f"the broker does not support {needed}: it has versions {lowest} to {highest}"
        raise Fatal(why, ErrorCode.UNSUPPORTED_VERSION)
    return version
