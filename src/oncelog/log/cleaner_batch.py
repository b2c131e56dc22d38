"""One batch through the cleaner: its records looked at, and written again with those that stay.

Records keep their offsets, and a batch its first and last one, its producer and its sequence, so that positions, deduplication and
readers' arithmetic hold. The bytes of a record that stays are copied, not encoded again; only a new base timestamp (a
delete horizon, KIP-534) touches them, as their own timestamps are relative to it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oncelog.records.batch import (
    COMPRESSION_BITS,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    Corruption,
)
from oncelog.records.builder import seal
from oncelog.records.compression import compress
from oncelog.records.varint import LONGEST_VARLONG, decode_varint, encode_varint


class ScannedRecord(NamedTuple):
    start: int
    """Where it begins in the payload, with its length."""
    end: int
    offset_delta: int
    timestamp_delta: int
    behind_timestamp: int
    """Where what follows its timestamp begins."""
    key: bytes | None
    is_tombstone: bool


def scan_records(payload: bytes, count: int) -> Iterator[ScannedRecord]:
    """The records of a decompressed payload, as far as the cleaner looks at them. CorruptBatch where there is none."""
    end = len(payload)
    position = 0
    for _ in range(count):
        start = position
        length, position = decode_varint(payload, position, end)
        if position < 0 or length < 1 or length > end - position:
            raise _unreadable()
        record_end = position + length
        timestamp_delta, behind_timestamp = decode_varint(payload, position + 1, record_end, LONGEST_VARLONG)
        if behind_timestamp < 0:
            raise _unreadable()
        offset_delta, at = decode_varint(payload, behind_timestamp, record_end)
        if at < 0:
            raise _unreadable()
        key_length, at = decode_varint(payload, at, record_end)
        if at < 0 or key_length > record_end - at:
            raise _unreadable()
        key = payload[at : at + key_length] if key_length >= 0 else None
        value_length, at = decode_varint(payload, at + max(key_length, 0), record_end)
        if at < 0:
            raise _unreadable()
        yield ScannedRecord(start, record_end, offset_delta, timestamp_delta, behind_timestamp, key, value_length < 0)
        position = record_end


def _unreadable() -> CorruptBatch:
    return CorruptBatch(Corruption.UNREADABLE_RECORDS, "a record does not end where it should")


def with_records(
    header: BatchHeader, payload: bytes, retained: Sequence[ScannedRecord], new_delete_horizon_ms: int | None
) -> bytes:
    """The batch with only the records `retained`, and with a delete horizon if it is given one."""
    max_timestamp = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = header.base_timestamp + max(record.timestamp_delta for record in retained)
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if new_delete_horizon_ms is None:
        parts = [payload[record.start : record.end] for record in retained]
    else:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = new_delete_horizon_ms
        later = header.base_timestamp - new_delete_horizon_ms
        parts = [part for record in retained for part in _shifted(payload, record, later)]
    return seal(
        header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            record_count=len(retained),
        ),
        compress(header.compression, b"".join(parts)),
    )


def _shifted(payload: bytes, record: ScannedRecord, later: int) -> tuple[bytes, bytes, bytes, bytes]:
    """The record's bytes with a timestamp delta larger by `later`."""
    delta = encode_varint(record.timestamp_delta + later)
    rest = payload[record.behind_timestamp : record.end]
    return encode_varint(1 + len(delta) + len(rest)), b"\x00", delta, rest


def without_records(header: BatchHeader) -> bytes:
    """The batch as a bare header: it keeps a producer's sequence and epoch, or the log's last offset, and no record."""
    return seal(
        header._replace(
            attributes=header.attributes & ~(COMPRESSION_BITS | DELETE_HORIZON_BIT),
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )
