"""One broker as its handlers see it: the parts, by name. It holds them and decides nothing."""

import os
from functools import cached_property
from typing import TYPE_CHECKING

from oncelog.access.authorizer import AllowAll, Authorizer
from oncelog.broker.fetch_sessions import FetchSessions
from oncelog.broker.waiting_room import WaitingRoom
from oncelog.cluster.topic import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from oncelog.quotas.limits import Limits, Unlimited

if TYPE_CHECKING:
    from pathlib import Path

    from oncelog.broker.config import BrokerConfig
    from oncelog.broker.group_coordinator import GroupCoordinator
    from oncelog.broker.metadata import ClusterMetadata
    from oncelog.broker.partitions import Partitions
    from oncelog.broker.transaction_coordinator import TransactionCoordinator
    from oncelog.runtime.clock import Clock
    from oncelog.runtime.timers import Timers


class Node:
    cluster: "ClusterMetadata"
    partitions: "Partitions"

    def __init__(self, config: "BrokerConfig", data_dir: "Path", clock: "Clock", timers: "Timers") -> None:
        self.config = config
        self.data_dir = data_dir
        self.clock = clock
        self.timers = timers
        self.node_id: int = config.node_id
        self.cluster_id = ""
        #: Where clients are told to connect; known once the listener is bound.
        self.advertised: tuple[str, int] = ("", 0)
        #: Topics the broker alone writes; clients may read them.
        self.internal_topics = INTERNAL_TOPICS
        self.access: Authorizer = AllowAll()
        self.quotas: Limits = Unlimited()
        self.room = WaitingRoom(clock, timers)
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            evict_after_ms=120_000,
            new_id=lambda: int.from_bytes(self.random_bytes(4), "big") & 0x7FFFFFFF,
        )

    # The coordinators come with the first who needs them: a broker that only takes and hands out records starts without.

    @cached_property
    def groups(self) -> "GroupCoordinator":
        from oncelog.broker.group_coordinator import GroupCoordinator

        groups = GroupCoordinator(self)
        groups.load()
        return groups

    @cached_property
    def transactions(self) -> "TransactionCoordinator":
        from oncelog.broker.transaction_coordinator import TransactionCoordinator

        transactions = TransactionCoordinator(self)
        transactions.load()
        return transactions

    @property
    def has_groups(self) -> bool:
        return "groups" in self.__dict__

    @property
    def has_transactions(self) -> bool:
        return "transactions" in self.__dict__

    def load_coordinators(self) -> None:
        """Bring back every group and transaction an earlier run left. Groups first: markers decide over their offsets."""
        if CONSUMER_OFFSETS in self.cluster.topics:
            _ = self.groups
        if TRANSACTION_STATE in self.cluster.topics:
            _ = self.transactions

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)
