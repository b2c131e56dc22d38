"""The APIs this project speaks: their keys, versions and message classes.

A message's module is imported when its class is first asked for: a broker that serves produce and fetch never loads the rest.
Which versions a broker offers is its own decision (`broker.dispatch`); these are the ones the message classes know.
"""

from enum import IntEnum
from importlib import import_module
from typing import Any


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


class Api:
    """One row of the table. `versions` are both ends, included; `flexible_since` is the first with tagged fields, if any."""

    __slots__ = ("key", "versions", "flexible_since", "_classes")

    def __init__(self, key: ApiKey, lowest: int, highest: int, flexible_since: int | None) -> None:
        self.key = key
        self.versions = (lowest, highest)
        self.flexible_since = flexible_since
        self._classes: tuple[type[Any], type[Any]] | None = None

    @property
    def name(self) -> str:
        """As Kafka writes it: OffsetForLeaderEpoch."""
        return self.key.name.title().replace("_", "")

    @property
    def request(self) -> type[Any]:
        return self._load()[0]

    @property
    def response(self) -> type[Any]:
        return self._load()[1]

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def _load(self) -> tuple[type[Any], type[Any]]:
        if self._classes is None:
            module = import_module("oncelog.protocol.messages." + self.key.name.lower())
            self._classes = (getattr(module, self.name + "Request"), getattr(module, self.name + "Response"))
        return self._classes


APIS: dict[ApiKey, Api] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, 3, 13, flexible_since=9),
        Api(ApiKey.FETCH, 4, 18, flexible_since=12),
        Api(ApiKey.LIST_OFFSETS, 1, 11, flexible_since=6),
        Api(ApiKey.METADATA, 0, 13, flexible_since=9),
        Api(ApiKey.OFFSET_COMMIT, 2, 10, flexible_since=8),
        Api(ApiKey.OFFSET_FETCH, 1, 10, flexible_since=6),
        Api(ApiKey.FIND_COORDINATOR, 0, 6, flexible_since=3),
        Api(ApiKey.JOIN_GROUP, 0, 9, flexible_since=6),
        Api(ApiKey.HEARTBEAT, 0, 4, flexible_since=4),
        Api(ApiKey.LEAVE_GROUP, 0, 5, flexible_since=4),
        Api(ApiKey.SYNC_GROUP, 0, 5, flexible_since=4),
        Api(ApiKey.DESCRIBE_GROUPS, 0, 6, flexible_since=5),
        Api(ApiKey.LIST_GROUPS, 0, 5, flexible_since=3),
        Api(ApiKey.SASL_HANDSHAKE, 0, 1, flexible_since=None),
        Api(ApiKey.API_VERSIONS, 0, 4, flexible_since=3),
        Api(ApiKey.CREATE_TOPICS, 2, 7, flexible_since=5),
        Api(ApiKey.DELETE_TOPICS, 1, 6, flexible_since=4),
        Api(ApiKey.DELETE_RECORDS, 0, 2, flexible_since=2),
        Api(ApiKey.INIT_PRODUCER_ID, 0, 6, flexible_since=2),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, flexible_since=4),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, flexible_since=3),
        Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, flexible_since=3),
        Api(ApiKey.END_TXN, 0, 5, flexible_since=3),
        Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, flexible_since=1),
        Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, flexible_since=3),
        Api(ApiKey.DESCRIBE_ACLS, 1, 3, flexible_since=2),
        Api(ApiKey.CREATE_ACLS, 1, 3, flexible_since=2),
        Api(ApiKey.DELETE_ACLS, 1, 3, flexible_since=2),
        Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, flexible_since=4),
        Api(ApiKey.ALTER_CONFIGS, 0, 2, flexible_since=2),
        Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, flexible_since=2),
        Api(ApiKey.SASL_AUTHENTICATE, 0, 2, flexible_since=2),
        Api(ApiKey.CREATE_PARTITIONS, 0, 3, flexible_since=2),
        Api(ApiKey.DELETE_GROUPS, 0, 2, flexible_since=2),
        Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, flexible_since=1),
        Api(ApiKey.OFFSET_DELETE, 0, 0, flexible_since=None),
        Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, flexible_since=1),
        Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, flexible_since=1),
        Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, flexible_since=0),
        Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, flexible_since=0),
        Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, flexible_since=0),
        Api(ApiKey.LIST_TRANSACTIONS, 0, 2, flexible_since=0),
        Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, flexible_since=0),
        Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, flexible_since=0),
    )
}
