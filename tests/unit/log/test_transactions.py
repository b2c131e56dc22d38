"""Transactions as a partition sees them: the last stable offset, markers, the transaction index (MISSION X1, X2)."""

import pytest

from oncelog.log.stable_offset import NOTHING_OPEN, OpenTransactions
from oncelog.model.error_code import ErrorCode
from oncelog.records.batch import batches
from oncelog.records.control import end_transaction_marker
from oncelog.runtime.disk import RealDisk
from tests.unit.log.logs import NOW, append, batch, end, fill, open_log, produce, refusal


def write(log, producer_id: int, sequence: int, epoch: int = 0, value: bytes = b"x" * 40) -> int:
    return produce(log, sequence, value, producer_id=producer_id, epoch=epoch, transactional=True).base_offset


def test_an_open_transaction_holds_the_last_stable_offset(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a")
    write(log, 7, 0)
    append(log, b"b")
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)

    end(log, producer_id=7, commit=True)

    assert (log.last_stable_offset, log.high_watermark) == (4, 4)


def test_the_oldest_open_transaction_counts(disk: RealDisk) -> None:
    log = open_log(disk)
    write(log, 1, 0)
    write(log, 2, 0)
    write(log, 3, 0)

    end(log, producer_id=2, commit=True)
    assert log.last_stable_offset == 0
    end(log, producer_id=1, commit=False)
    assert log.last_stable_offset == 2
    end(log, producer_id=3, commit=True)
    assert log.last_stable_offset == log.log_end_offset == 6


def test_a_completed_transaction_holds_it_until_its_marker_is_replicated(disk: RealDisk) -> None:
    log = open_log(disk)
    data = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(memoryview(data), 0, NOW)
    log.append_as_leader(end_transaction_marker(7, 0, True, 0, NOW), 0, NOW, from_client=False)
    append(log, b"b", acknowledge=False)

    assert log.last_stable_offset == 0
    log.advance_high_watermark(1)
    assert log.last_stable_offset == 0
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 3


def test_the_high_watermark_only_rises_and_not_beyond_the_log(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 3)

    assert not log.advance_high_watermark(2)
    assert not log.advance_high_watermark(99)
    assert log.high_watermark == 3


@pytest.mark.seed("X1")
def test_aborted_transactions_are_in_the_index_of_the_segment_with_their_marker(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=400)
    write(log, 7, 0)
    fill(log, 5)
    assert len(log.segments) > 1
    marker = end(log, producer_id=7, commit=False).base_offset
    fill(log, 5)

    with_entries = [segment.base_offset for segment in log.segments if len(segment.indexes.of_transactions)]
    assert with_entries == [log.segments[log.segments.number_holding(marker)].base_offset]
    (entry,) = log.aborted_transactions(0, 100)
    assert entry == (7, 0, marker, marker + 1)


@pytest.mark.seed("X1")
def test_committed_transactions_leave_no_index(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=300)
    write(log, 7, 0)
    end(log, producer_id=7, commit=True)
    fill(log, 10)
    log.close()

    assert not [name for name in disk.list_directory("orders-0") if name.endswith(".txnindex")]
    assert log.aborted_transactions(0, 100) == []


@pytest.mark.seed("X2")
def test_the_aborted_transactions_of_a_range_are_found_across_segments(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=500)
    expected = []
    for number in range(12):
        first = write(log, number, 0)
        fill(log, number % 4)
        marker = end(log, producer_id=number, commit=number % 3 == 0).base_offset
        if number % 3:
            expected.append((number, first, marker))
    assert len(log.segments) > 4

    for start in range(log.log_end_offset):
        for end_offset in range(start + 1, log.log_end_offset + 1):
            found = {(entry.producer_id, entry.first_offset) for entry in log.aborted_transactions(start, end_offset)}
            overlapping = {(who, first) for who, first, last in expected if last >= start and first < end_offset}
            assert found == overlapping


@pytest.mark.seed("X2")
def test_a_search_ends_where_nothing_more_can_come(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=300)
    write(log, 1, 0)
    end(log, producer_id=1, commit=False)
    write(log, 2, 0)
    end(log, producer_id=2, commit=False)
    fill(log, 20)

    assert [entry.producer_id for entry in log.aborted_transactions(0, 2)] == [1]


@pytest.mark.seed("X1")
@pytest.mark.parametrize("clean", [True, False])
def test_everything_about_transactions_is_known_after_a_restart(disk: RealDisk, clean: bool) -> None:
    log = open_log(disk, segment_bytes=400)
    for number in range(10):
        write(log, number, 0)
        fill(log, 3)
        if number != 4:
            end(log, producer_id=number, commit=number % 2 == 0)
    aborted = log.aborted_transactions(0, 1000)
    stable = log.last_stable_offset
    if clean:
        log.close()
    log = open_log(disk, segment_bytes=400, clean=clean)
    log.advance_high_watermark(log.log_end_offset)

    assert log.aborted_transactions(0, 1000) == aborted
    assert len(aborted) == 5
    assert log.last_stable_offset == stable
    end(log, producer_id=4, commit=True)
    assert log.last_stable_offset == log.log_end_offset


@pytest.mark.seed("X1")
@pytest.mark.parametrize("left", [0, 33, 34])
def test_a_damaged_transaction_index_is_rebuilt(disk: RealDisk, left: int) -> None:
    log = open_log(disk, segment_bytes=400)
    write(log, 7, 0)
    fill(log, 5)
    end(log, producer_id=7, commit=False)
    fill(log, 10)
    aborted = log.aborted_transactions(0, 1000)
    log.close()
    (name,) = [name for name in disk.list_directory("orders-0") if name.endswith(".txnindex")]
    disk.write_file(f"orders-0/{name}", disk.read_file(f"orders-0/{name}")[:left])
    log = open_log(disk, segment_bytes=400, clean=True)

    assert log.aborted_transactions(0, 1000) == aborted
    assert len(disk.read_file(f"orders-0/{name}")) == 34


def test_a_marker_without_data_is_written_and_changes_nothing_else(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a")

    assert end(log, producer_id=9, commit=False).base_offset == 1

    assert log.last_stable_offset == 2
    assert log.aborted_transactions(0, 100) == []
    assert [header.is_control for _, header in batches(log.read(0, 10_000, 2, True).records)] == [False, True]


def test_a_producer_writes_nothing_outside_of_its_open_transaction(disk: RealDisk) -> None:
    log = open_log(disk)
    write(log, 7, 0)

    assert refusal(produce(log, 1, producer_id=7)) is ErrorCode.INVALID_TXN_STATE
    assert write(log, 7, 1) == 1
    end(log, producer_id=7, commit=True)
    assert produce(log, 2, producer_id=7).base_offset == 3


def test_markers_of_old_epochs_and_old_coordinators_are_refused(disk: RealDisk) -> None:
    log = open_log(disk)
    write(log, 7, 0, epoch=2)

    assert refusal(end(log, producer_id=7, epoch=1, commit=True)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(end(log, producer_id=7, epoch=2, commit=True, coordinator_epoch=5)) is None
    write(log, 7, 1, epoch=2)
    refused = end(log, producer_id=7, epoch=2, commit=True, coordinator_epoch=4)
    assert refusal(refused) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.last_stable_offset == 2


def test_a_marker_raises_the_epoch_so_that_a_late_batch_is_fenced(disk: RealDisk) -> None:
    log = open_log(disk)
    write(log, 7, 0, epoch=2)
    end(log, producer_id=7, epoch=3, commit=False)

    late = produce(log, 1, b"x", producer_id=7, epoch=2, transactional=True)

    assert refusal(late) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(log, 7, 0, epoch=3) == 2


def test_under_version_2_a_marker_must_come_with_a_new_epoch_unless_it_is_repeated(disk: RealDisk) -> None:
    log = open_log(disk)

    def mark(epoch: int) -> object:
        marker = end_transaction_marker(7, epoch, True, 0, NOW)
        return log.append_as_leader(marker, 0, NOW, from_client=False, transaction_version=2)

    write(log, 7, 0, epoch=2)
    assert refusal(mark(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(mark(3)) is None
    assert refusal(mark(3)) is None
    assert refusal(mark(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    write(log, 7, 0, epoch=3)
    assert refusal(mark(3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_which_producers_have_a_transaction_open_can_be_asked(disk: RealDisk) -> None:
    log = open_log(disk)
    assert not log.has_open_transaction(7, 0)
    write(log, 7, 0)
    assert log.has_open_transaction(7, 0)
    assert not log.has_open_transaction(7, 1)
    end(log, producer_id=7, commit=True)
    assert not log.has_open_transaction(7, 0)


def test_the_last_stable_offset_is_not_before_the_start_of_the_log(disk: RealDisk) -> None:
    log = open_log(disk)
    write(log, 7, 0)
    fill(log, 5)
    log.delete_records_before(4)

    assert log.last_stable_offset == 4


def test_of_several_of_the_brokers_own_batches_each_is_checked_as_the_ones_before_leave_things(disk: RealDisk) -> None:
    log = open_log(disk)
    data = bytes(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    outside = bytes(batch(b"b", producer_id=7, producer_epoch=0, base_sequence=1))
    marker = end_transaction_marker(7, 0, False, 0, NOW)

    refused = log.append_as_leader(data + outside, 0, NOW, from_client=False)
    assert refusal(refused) is ErrorCode.INVALID_TXN_STATE
    assert log.log_end_offset == 0
    assert log.active_producers == []

    assert refusal(log.append_as_leader(data + marker + outside, 0, NOW, from_client=False)) is None
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 3
    assert log.aborted_transactions(0, 3) == [(7, 0, 1, 2)]


class TestOpenTransactions:
    def test_nothing_is_open_at_first(self) -> None:
        transactions = OpenTransactions()
        assert transactions.first_unstable_offset == transactions.first_open_offset == NOTHING_OPEN

    def test_the_last_stable_offset_after_a_marker_looks_at_what_is_still_open(self) -> None:
        transactions = OpenTransactions()
        transactions.begin(10, producer_id=1)
        transactions.begin(12, producer_id=2)

        assert transactions.complete(10, 20) == 12
        assert transactions.complete(12, 21) == 22

    def test_what_completes_first_does_not_free_what_began_earlier(self) -> None:
        transactions = OpenTransactions()
        transactions.begin(10, producer_id=1)
        transactions.begin(12, producer_id=2)
        transactions.complete(12, 20)

        transactions.advance(21)
        assert transactions.first_unstable_offset == 10
        transactions.complete(10, 22)
        transactions.advance(22)
        assert transactions.first_unstable_offset == 10
        transactions.advance(23)
        assert transactions.first_unstable_offset == NOTHING_OPEN
