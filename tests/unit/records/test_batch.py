"""The header of a record batch, walking over batches, and what the broker writes into a producer's batch."""

import pytest

from oncelog.records.batch import (
    HEADER_SIZE,
    CorruptBatch,
    Corruption,
    TimestampType,
    assign_offset,
    batches,
    compute_crc,
    crc_matches,
    read_header,
    stamp,
)
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.record import Record, read_records

BATCH = build_batch(
    [Record(40, 1000, b"a", b"1"), Record(41, 1500, b"b", b"2"), Record(42, 900, b"c", b"3")],
    base_offset=40,
    producer_id=7,
    producer_epoch=3,
    base_sequence=11,
    transactional=True,
    partition_leader_epoch=5,
)


def test_a_header_says_what_was_built() -> None:
    header = read_header(BATCH)

    assert HEADER_SIZE == 61
    assert header.size == len(BATCH)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 42, 43)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1500)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert (header.partition_leader_epoch, header.magic, header.record_count) == (5, 2, 3)
    assert (header.is_transactional, header.is_control, header.has_delete_horizon) == (True, False, False)
    assert (header.compression, header.timestamp_type) == (Compression.NONE, TimestampType.CREATE_TIME)
    assert header.delete_horizon_ms is None
    assert crc_matches(BATCH, 0, header)


def test_a_changed_byte_shows_in_the_crc() -> None:
    for position in range(21, len(BATCH)):
        changed = bytearray(BATCH)
        changed[position] ^= 0x10
        assert compute_crc(changed, 0, len(changed)) != read_header(BATCH).crc


def test_batches_lie_one_behind_the_other() -> None:
    second = build_batch([(b"k", b"v")], base_offset=43)

    found = list(batches(b"??" + BATCH + second, 2))

    assert [(position, header.base_offset) for position, header in found] == [(2, 40), (2 + len(BATCH), 43)]
    assert list(batches(b"")) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BATCH[:60], Corruption.TRUNCATED),
        (BATCH[:5], Corruption.TRUNCATED),
        (BATCH[:-1], Corruption.TRUNCATED),
        (BATCH[:8] + (48).to_bytes(4, "big") + BATCH[12:], Corruption.IMPOSSIBLE_LENGTH),
        (BATCH[:8] + b"\xff\xff\xff\xff" + BATCH[12:], Corruption.IMPOSSIBLE_LENGTH),
        (BATCH[:16] + b"\x01" + BATCH[17:], Corruption.OLD_FORMAT),
        (BATCH[:16] + b"\x00" + BATCH[17:30], Corruption.OLD_FORMAT),
        (BATCH[:16] + b"\x03" + BATCH[17:], Corruption.UNKNOWN_FORMAT),
    ],
)
def test_what_is_not_a_batch_is_told_with_its_reason(data: bytes, reason: Corruption) -> None:
    with pytest.raises(CorruptBatch) as caught:
        read_header(data)
    assert caught.value.reason is reason


def test_a_cut_last_batch_ends_the_walk_with_its_reason() -> None:
    walk = batches(BATCH + BATCH[:-1])
    assert next(walk)[0] == 0
    with pytest.raises(CorruptBatch):
        next(walk)


def test_assigning_an_offset_leaves_the_crc_valid() -> None:
    batch = bytearray(BATCH)

    assign_offset(batch, 0, 1_000_000, 9)

    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (1_000_000, 9)
    assert crc_matches(batch, 0, header)
    assert [record.offset for record in read_records(batch)] == [1_000_000, 1_000_001, 1_000_002]


def test_stamping_works_behind_other_batches() -> None:
    data = bytearray(BATCH + BATCH)

    stamp(data, len(BATCH), read_header(data, len(BATCH)), TimestampType.LOG_APPEND_TIME, 77)

    assert data[: len(BATCH)] == BATCH
    header = read_header(data, len(BATCH))
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 77)
    assert header.is_transactional
    assert crc_matches(data, len(BATCH), header)


def test_a_compression_type_without_a_meaning_is_a_corrupt_batch() -> None:
    header = read_header(BATCH)._replace(attributes=6)
    with pytest.raises(CorruptBatch):
        _ = header.compression
