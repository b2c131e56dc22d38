"""A topic and its partitions, as the cluster has decided them to be.

Neither ever changes: a change puts a new one in the old one's place. So whoever holds one holds a consistent view, and
comparing two by identity tells whether anything happened in between.
"""

from dataclasses import dataclass
from typing import NamedTuple

from oncelog.model.topic_id import TopicId

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
#: Topics the broker itself writes; clients see them marked as internal.
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})

NO_LEADER = -1


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionState, ...]
    #: Only what was set for this topic; what it inherits is the broker's config.
    configs: dict[str, str]

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)

    def with_configs(self, configs: dict[str, str]) -> "Topic":
        return Topic(self.name, self.topic_id, self.partitions, configs)

    def with_partitions(self, partitions: tuple[PartitionState, ...]) -> "Topic":
        return Topic(self.name, self.topic_id, partitions, self.configs)
