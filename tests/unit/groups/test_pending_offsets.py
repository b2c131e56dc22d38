"""Offsets of open transactions, and how they mix with plain commits when the log is read again."""

import pytest

from oncelog.groups.group_records import CommittedOffset, OffsetCommitted, OffsetRemoved
from oncelog.groups.pending_offsets import PendingOffset, PendingOffsets
from oncelog.groups.shard import Shard
from oncelog.model.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def test_two_transactions_on_one_partition_are_kept_apart() -> None:
    pending = PendingOffsets()
    pending.add(1, "g", ORDERS_0, PendingOffset(CommittedOffset(10), 0))
    pending.add(2, "g", ORDERS_0, PendingOffset(CommittedOffset(20), 1))
    assert pending.complete(1) == {("g", ORDERS_0): PendingOffset(CommittedOffset(10), 0)}
    assert pending.has("g", ORDERS_0)
    pending.complete(2)
    assert not pending.has("g", ORDERS_0)
    assert not pending.has_any("g")
    assert not pending


def test_one_transaction_may_commit_for_several_groups() -> None:
    pending = PendingOffsets()
    pending.add(1, "g", ORDERS_0, PendingOffset(CommittedOffset(10), 0))
    pending.add(1, "h", ORDERS_0, PendingOffset(CommittedOffset(20), 1))
    assert pending.has_any("g") and pending.has_any("h")
    assert set(pending.complete(1)) == {("g", ORDERS_0), ("h", ORDERS_0)}


def test_a_removed_offset_is_pending_for_nobody() -> None:
    pending = PendingOffsets()
    for producer_id in (1, 2):
        pending.add(producer_id, "g", ORDERS_0, PendingOffset(CommittedOffset(producer_id), producer_id))
    pending.add(1, "g", ORDERS_1, PendingOffset(CommittedOffset(5), 5))
    pending.remove("g", ORDERS_0)
    assert list(pending.partitions_of("g")) == [ORDERS_1]
    assert pending.complete(2) == {}
    assert set(pending.complete(1)) == {("g", ORDERS_1)}


def test_when_the_last_offset_is_removed_nothing_is_pending() -> None:
    pending = PendingOffsets()
    pending.add(1, "g", ORDERS_0, PendingOffset(CommittedOffset(1), 1))
    pending.remove("g", ORDERS_0)
    assert not pending


def test_a_marker_of_a_transaction_without_offsets_here_is_nothing() -> None:
    assert PendingOffsets().complete(99) == {}


def commit(offset: int) -> OffsetCommitted:
    return OffsetCommitted("g", ORDERS_0, CommittedOffset(offset))


@pytest.mark.seed("I11")
def test_of_a_plain_and_a_transactional_commit_the_later_in_the_log_counts() -> None:
    shard = Shard()
    shard.apply(commit(10), 0, producer_id=7)
    shard.apply(commit(20), 1)
    shard.apply_marker(7, committed=True)
    assert shard.offset("g", ORDERS_0) == CommittedOffset(20)

    shard.apply(commit(30), 2, producer_id=7)
    shard.apply_marker(7, committed=True)
    assert shard.offset("g", ORDERS_0) == CommittedOffset(30)


@pytest.mark.seed("I11")
def test_a_transactional_commit_alone_makes_the_group_known_but_no_offset() -> None:
    shard = Shard()
    shard.apply(commit(10), 0, producer_id=7)
    assert "g" in shard.groups
    assert shard.offset("g", ORDERS_0) is None
    assert not shard.offsets("g")


def test_an_offset_removed_leaves_no_trace() -> None:
    shard = Shard()
    shard.apply(commit(10), 0)
    shard.apply(OffsetRemoved("g", ORDERS_0), 1)
    shard.apply(OffsetRemoved("g", ORDERS_1), 2)
    assert shard.offset("g", ORDERS_0) is None
    assert not shard.offsets("g")
