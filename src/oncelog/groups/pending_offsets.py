"""Offsets committed inside transactions that have not ended (MISSION I11): nobody reads them before the commit marker.

Always: a producer is listed under a partition exactly while it has a pending offset for it.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from oncelog.groups.group_records import CommittedOffset
from oncelog.model.topic_partition import TopicPartition

#: One partition as one group sees it.
Position: TypeAlias = tuple[str, TopicPartition]


class PendingOffset(NamedTuple):
    committed: CommittedOffset
    #: Where the record stands in the log: of a transactional and a plain commit, the later one counts.
    record_offset: int


class PendingOffsets:
    __slots__ = ("_by_producer", "_producers", "_positions_of_group")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Position, PendingOffset]] = {}
        self._producers: dict[Position, set[int]] = {}
        self._positions_of_group: dict[str, set[TopicPartition]] = {}

    def add(self, producer_id: int, group_id: str, topic_partition: TopicPartition, pending: PendingOffset) -> None:
        position = (group_id, topic_partition)
        self._by_producer.setdefault(producer_id, {})[position] = pending
        self._producers.setdefault(position, set()).add(producer_id)
        self._positions_of_group.setdefault(group_id, set()).add(topic_partition)

    def complete(self, producer_id: int) -> dict[Position, PendingOffset]:
        """The transaction has ended: what it had pending, which is pending no more."""
        pending = self._by_producer.pop(producer_id, {})
        for position in pending:
            self._unlist(position, producer_id)
        return pending

    def remove(self, group_id: str, topic_partition: TopicPartition) -> None:
        """The offset was deleted: a transaction that ends later must not bring it back."""
        position = (group_id, topic_partition)
        for producer_id in list(self._producers.get(position, ())):
            pending = self._by_producer[producer_id]
            del pending[position]
            if not pending:
                del self._by_producer[producer_id]
            self._unlist(position, producer_id)

    def has(self, group_id: str, topic_partition: TopicPartition) -> bool:
        return (group_id, topic_partition) in self._producers

    def has_any(self, group_id: str) -> bool:
        return group_id in self._positions_of_group

    def partitions_of(self, group_id: str) -> Iterator[TopicPartition]:
        return iter(self._positions_of_group.get(group_id, ()))

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def _unlist(self, position: Position, producer_id: int) -> None:
        producers = self._producers[position]
        producers.discard(producer_id)
        if producers:
            return
        del self._producers[position]
        group_id, topic_partition = position
        partitions = self._positions_of_group[group_id]
        partitions.discard(topic_partition)
        if not partitions:
            del self._positions_of_group[group_id]
