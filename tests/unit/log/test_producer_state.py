"""Idempotence and epochs as a partition enforces them (MISSION I2)."""

import pytest

from oncelog.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from oncelog.log.producer_state import LARGEST_SEQUENCE, Origin, ProducerState
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.records.batch import BatchHeader, read_header
from oncelog.runtime.disk import RealDisk
from tests.unit.log.logs import NOW, batch, end, open_log, produce, records, refusal


@pytest.mark.seed("I2")
def test_the_next_sequence_is_taken(disk: RealDisk) -> None:
    log = open_log(disk)

    assert produce(log, 0, b"a", b"b").base_offset == 0
    assert produce(log, 2, b"c").base_offset == 2
    assert produce(log, 3, b"d").base_offset == 3


@pytest.mark.seed("I2")
def test_a_repeat_of_one_of_the_last_five_batches_is_acknowledged_and_not_written(disk: RealDisk) -> None:
    log = open_log(disk)
    for number in range(8):
        produce(log, 2 * number, b"a", b"b")

    for number in range(3, 8):
        again = produce(log, 2 * number, b"a", b"b")
        assert (again.base_offset, again.last_offset, again.duplicate) == (2 * number, 2 * number + 1, True)
    assert log.log_end_offset == 16
    assert refusal(produce(log, 4, b"a", b"b")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.seed("I2")
def test_a_gap_is_out_of_order(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, 0)

    assert refusal(produce(log, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 1).base_offset == 1


@pytest.mark.seed("I2")
def test_part_of_a_batch_again_is_out_of_order(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, 0, b"a", b"b")

    assert refusal(produce(log, 0, b"a")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(produce(log, 1, b"b")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.seed("I2")
def test_sequences_wrap(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, LARGEST_SEQUENCE - 1, b"a")

    across = produce(log, LARGEST_SEQUENCE, b"b", b"c")

    assert across.base_offset == 1
    assert produce(log, LARGEST_SEQUENCE, b"b", b"c").duplicate
    assert produce(log, 1, b"d").base_offset == 3


def test_a_sequence_that_ends_exactly_at_the_largest_is_followed_by_zero(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, LARGEST_SEQUENCE - 1, b"a", b"b")

    assert produce(log, 0, b"c").base_offset == 2


def test_an_unknown_producer_begins_anywhere(disk: RealDisk) -> None:
    log = open_log(disk)

    assert produce(log, 500).base_offset == 0
    assert produce(log, 501).base_offset == 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, 0)
    produce(log, 1)

    assert refusal(produce(log, 2, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 0, epoch=1).base_offset == 2
    assert refusal(produce(log, 2, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(produce(log, 1, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_mix(disk: RealDisk) -> None:
    log = open_log(disk)

    for number in range(20):
        for producer_id in (1, 2, 3):
            assert not produce(log, number, producer_id=producer_id).duplicate
    assert log.log_end_offset == 60


@pytest.mark.parametrize("clean", [True, False])
def test_sequences_are_known_after_a_restart(disk: RealDisk, clean: bool) -> None:
    log = open_log(disk)
    for number in range(40):
        produce(log, number, b"x" * 50)
    if clean:
        log.close()
    log = open_log(disk, clean=clean)

    assert produce(log, 39, b"x" * 50).duplicate
    assert refusal(produce(log, 41)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 40).base_offset == 40


def test_after_a_crash_all_five_batches_are_known_again(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=1 << 20)
    for number in range(8):
        produce(log, number)
    log = open_log(disk, segment_bytes=1 << 20)

    assert [produce(log, number).duplicate for number in range(3, 8)] == [True] * 5


def test_an_idle_producer_is_forgotten(disk: RealDisk) -> None:
    log = open_log(disk, producer_id_expiration_ms=1000)
    produce(log, 0)
    produce(log, 0, producer_id=8, timestamp_ms=NOW + 500)

    assert log.expire_producers(NOW + 999) == 0
    assert log.expire_producers(NOW + 1000) == 1

    assert [producer.producer_id for producer in log.active_producers] == [8]
    assert produce(log, 77).base_offset == 2


def test_an_open_transaction_keeps_its_producer_known(disk: RealDisk) -> None:
    log = open_log(disk, producer_id_expiration_ms=1000)
    produce(log, 0, transactional=True)

    assert log.expire_producers(NOW + 10_000_000) == 0
    end(log, commit=True)
    assert log.expire_producers(NOW + 10_000_000) == 1


def test_coordinators_number_no_sequences_but_epochs_hold(disk: RealDisk) -> None:
    log = open_log(disk)

    def commit_offsets(epoch: int) -> object:
        data = bytes(batch(b"offset", producer_id=7, producer_epoch=epoch, transactional=True))
        return log.append_as_leader(data, 0, NOW, from_client=False)

    assert refusal(commit_offsets(3)) is None
    assert refusal(commit_offsets(3)) is None
    assert refusal(commit_offsets(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(records(log)) == 2


def test_checking_changes_nothing() -> None:
    state = ProducerState()
    state.apply_batch(header(sequence=0), 0)
    before = encode_snapshot(state)

    state.check_batch(header(sequence=1, transactional=True), Origin.CLIENT)
    state.check_batch(header(sequence=0), Origin.CLIENT)
    state.check_batch(header(sequence=9), Origin.CLIENT)
    state.check_batch(header(sequence=0, epoch=4), Origin.CLIENT)

    assert encode_snapshot(state) == before
    assert state.transactions.first_unstable_offset < 0


def header(sequence: int, epoch: int = 0, transactional: bool = False) -> BatchHeader:
    data = batch(b"x", producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    return read_header(data)


class TestSnapshot:
    def state(self) -> ProducerState:
        state = ProducerState()
        state.apply_batch(header(sequence=5), 100)
        state.apply_batch(header(sequence=6, transactional=True), 101)
        return state

    def test_it_keeps_what_the_next_batch_is_checked_against(self) -> None:
        state = ProducerState(decode_snapshot(encode_snapshot(self.state())))

        (producer,) = state
        assert producer.next_sequence == 7
        assert producer.transaction_first_offset == 101
        assert producer.batches[-1] == (6, 6, 101, 101, NOW)
        assert state.transactions.first_unstable_offset == 101

    def test_it_is_laid_out_as_kafka_lays_it_out(self) -> None:
        data = encode_snapshot(self.state())

        assert data[:2] == b"\x00\x01"
        assert data[6:10] == b"\x00\x00\x00\x01"
        assert data[10:] == (
            (7).to_bytes(8, "big")
            + (0).to_bytes(2, "big")
            + (6).to_bytes(4, "big")
            + (101).to_bytes(8, "big")
            + (0).to_bytes(4, "big")
            + NOW.to_bytes(8, "big")
            + (-1).to_bytes(4, "big", signed=True)
            + (101).to_bytes(8, "big")
        )

    def test_damage_is_noticed(self) -> None:
        data = encode_snapshot(self.state())

        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1
            with pytest.raises(CorruptSnapshot):
                decode_snapshot(bytes(damaged))
        for length in range(len(data)):
            with pytest.raises(CorruptSnapshot):
                decode_snapshot(data[:length])

    def test_a_producer_that_only_had_a_marker_has_no_batch(self, disk: RealDisk) -> None:
        log = open_log(disk)
        end(log, commit=True, epoch=4)
        log.close()
        log = open_log(disk, clean=True)

        (producer,) = log.active_producers
        assert (producer.producer_epoch, producer.last_sequence, len(producer.batches)) == (4, -1, 0)
        assert isinstance(produce(log, 1, epoch=4), Refused)
        assert produce(log, 0, epoch=4).base_offset == 1
