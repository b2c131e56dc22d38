"""Which request goes where: the table of what this broker advertises, and the way from a frame to its handler.

A handler's module, its message classes and their codec are brought in by the first request that needs them: a broker that
only serves produce and fetch never imports the rest, which is most of why it starts at once.
"""

from collections.abc import Callable
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any

from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decoder_of, encoder_of

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

#: Every API served here with the versions that are right in every field.
#: Produce lists 0 as its lowest because librdkafka turns compression off otherwise; 0-2 are refused, as Kafka 4 does.
ADVERTISED: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
}

#: The lowest version really served, where it differs from the lowest advertised.
LOWEST_SERVED: dict[int, int] = {ApiKey.PRODUCE: 3}

Handler = Callable[["Node", "Caller", Any, int], Any]


class Route:
    """One (API, version), ready to run."""

    __slots__ = ("api_key", "version", "decode", "handle", "encode", "response_class", "response_header")

    def __init__(self, api_key: ApiKey, version: int) -> None:
        api = APIS[api_key]
        name = api_key.name.lower()
        handler: Handler = getattr(import_module(f"oncelog.broker.handlers.{name}"), f"handle_{name}")
        self.api_key = api_key
        self.version = version
        self.decode = decoder_of(api.request, version)
        self.handle = handler
        self.response_class = api.response
        self.encode = encoder_of(api.response, version)
        # ApiVersions answers with the old header in every version: the client does not know yet what we speak (KIP-511).
        flexible = api.is_flexible(version) and api_key != ApiKey.API_VERSIONS
        #: Size (filled in later) and correlation id, and the empty tagged fields of a flexible header.
        self.response_header = Struct(">iix") if flexible else Struct(">ii")


_routes: dict[int, Route] = {}


def route(api_key: int, version: int) -> Route | None:
    """The way to the handler, or None for an API or version that is not served."""
    found = _routes.get(api_key << 16 | version)
    if found is not None:
        return found
    try:
        key = ApiKey(api_key)
        lowest, highest = ADVERTISED[key]
    except (ValueError, KeyError):
        return None
    if not LOWEST_SERVED.get(key, lowest) <= version <= highest:
        return None
    made = Route(key, version)
    _routes[api_key << 16 | version] = made
    return made
