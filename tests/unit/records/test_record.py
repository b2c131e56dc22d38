"""Records: built, read, recompressed."""

import pytest

from oncelog.records.batch import CorruptBatch, TimestampType, crc_matches, read_header, stamp
from oncelog.records.builder import build_batch, recompress
from oncelog.records.compression import Compression
from oncelog.records.control import end_transaction_marker
from oncelog.records.record import Record, read_all_records, read_records
from tests.unit.records.produce_cases import batch_of, patched

RECORDS = [
    Record(100, 1_000, b"key", b"value", [("h", b"1"), ("h", b"2"), ("null", None), ("leer ü", b"")]),
    Record(101, 999, None, b"value"),
    Record(102, 1_234_567_890_123, b"", b""),
    Record(103, -1, b"tombstone", None),
]


@pytest.mark.parametrize("compression", Compression)
def test_records_come_back_as_they_were(compression: Compression) -> None:
    batch = build_batch(RECORDS, base_offset=100, compression=compression)

    assert read_records(batch) == RECORDS
    assert read_records(b"before" + batch, 6) == RECORDS
    assert read_header(batch).max_timestamp == 1_234_567_890_123


def test_pairs_take_the_next_offset_and_the_given_time() -> None:
    batch = build_batch([(b"a", b"1"), (None, None)], base_offset=7, timestamp_ms=55)

    assert read_records(batch) == [Record(7, 55, b"a", b"1"), Record(8, 55, None, None)]


def test_append_time_is_every_record_s_time() -> None:
    batch = bytearray(build_batch(RECORDS, base_offset=100))
    stamp(batch, 0, read_header(batch), TimestampType.LOG_APPEND_TIME, 42)

    assert {record.timestamp for record in read_records(batch)} == {42}


def test_all_records_leave_control_records_out() -> None:
    data = (
        build_batch([(b"a", b"1")], base_offset=0)
        + end_transaction_marker(1, 0, True, 0, 5, base_offset=1)
        + build_batch([(b"b", b"2")], base_offset=2)
    )

    assert [(record.offset, record.key) for record in read_all_records(data)] == [(0, b"a"), (2, b"b")]


@pytest.mark.parametrize("before", Compression)
@pytest.mark.parametrize("after", Compression)
def test_recompressing_changes_the_compression_and_nothing_else(before: Compression, after: Compression) -> None:
    batch = build_batch(
        RECORDS, base_offset=100, compression=before, producer_id=5, base_sequence=1, transactional=True
    )

    other = recompress(batch, after)

    header = read_header(other)
    assert crc_matches(other, 0, header)
    assert header.compression is after
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (5, 1, True)
    assert read_records(other) == RECORDS


@pytest.mark.parametrize(
    "payload", [b"", b"\x00", b"\x02\x00", b"\x10" + bytes(3), b"\xff" * 20, b"\x0e\0\0\0\x01\x01\x02\x01"]
)
def test_unreadable_records_are_a_corrupt_batch(payload: bytes) -> None:
    with pytest.raises(CorruptBatch):
        read_records(batch_of(payload, 1, 0))


def test_more_bytes_than_records_are_a_corrupt_batch() -> None:
    with pytest.raises(CorruptBatch):
        read_records(patched(build_batch(RECORDS[:2], base_offset=100), 57, ">i", 1))


def test_decompressing_stops_at_the_limit() -> None:
    batch = build_batch([(b"k", bytes(1 << 20))], compression=Compression.ZSTD)
    with pytest.raises(CorruptBatch, match="limit"):
        read_records(batch, limit=1000)
