"""Everything one partition of `__consumer_offsets` says: its groups, their offsets, and offsets of open transactions.

`apply` is the only way in for what must survive a restart, in operation and when the log is read again. Records are applied in
the order of the log.
"""

from collections.abc import Mapping
from typing import NamedTuple

from oncelog.groups.group import Group
from oncelog.groups.group_records import (
    CommittedOffset,
    GroupRecord,
    GroupRemoved,
    GroupStored,
    OffsetCommitted,
    OffsetRemoved,
    restored,
)
from oncelog.groups.pending_offsets import PendingOffset, PendingOffsets
from oncelog.model.producer_identity import NO_PRODUCER_ID
from oncelog.model.topic_partition import TopicPartition

_NO_OFFSETS: Mapping[TopicPartition, "StandingOffset"] = {}


class StandingOffset(NamedTuple):
    committed: CommittedOffset
    record_offset: int


class Shard:
    __slots__ = ("groups", "pending", "_offsets")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.pending = PendingOffsets()
        self._offsets: dict[str, dict[TopicPartition, StandingOffset]] = {}

    def offset(self, group_id: str, topic_partition: TopicPartition) -> CommittedOffset | None:
        standing = self._offsets.get(group_id, _NO_OFFSETS).get(topic_partition)
        return None if standing is None else standing.committed

    def offsets(self, group_id: str) -> Mapping[TopicPartition, StandingOffset]:
        return self._offsets.get(group_id, _NO_OFFSETS)

    def apply(self, record: GroupRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        match record:
            case OffsetCommitted(group_id, topic_partition, committed):
                if group_id not in self.groups:
                    # A consumer that assigns its own partitions: a group in name only.
                    self.groups[group_id] = Group(group_id, state_since_ms=committed.commit_timestamp_ms)
                if producer_id == NO_PRODUCER_ID:
                    standing = StandingOffset(committed, record_offset)
                    self._offsets.setdefault(group_id, {})[topic_partition] = standing
                else:
                    self.pending.add(producer_id, group_id, topic_partition, PendingOffset(committed, record_offset))
            case OffsetRemoved(group_id, topic_partition):
                offsets = self._offsets.get(group_id)
                if offsets is not None and offsets.pop(topic_partition, None) is not None and not offsets:
                    del self._offsets[group_id]
                self.pending.remove(group_id, topic_partition)
            case GroupStored(group_id):
                self.groups[group_id] = restored(self.groups.get(group_id), record)
            case GroupRemoved(group_id):
                self.groups.pop(group_id, None)

    def apply_marker(self, producer_id: int, *, committed: bool) -> None:
        """A transaction ended in this partition: its offsets count, or never were."""
        for (group_id, topic_partition), pending in self.pending.complete(producer_id).items():
            if not committed:
                continue
            offsets = self._offsets.setdefault(group_id, {})
            standing = offsets.get(topic_partition)
            if standing is None or standing.record_offset < pending.record_offset:
                offsets[topic_partition] = StandingOffset(*pending)
