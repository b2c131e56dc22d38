"""One batch through the cleaner: its records looked at, and written again with those that stay.

Records keep their offsets, and a batch its first and last one, its producer and its sequence, so that positions, deduplication and
readers' arithmetic hold. The bytes of a record that stays are copied, not encoded again; only a new base timestamp (a
delete horizon, KIP-534) touches them, as their own timestamps are relative to it.
"""

from collections.abc import Iterator, Sequence

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
from oncelog.records.scan import ScannedRecord, scan_records
from oncelog.records.varint import encode_varint


def scan_in_turns(payload: bytes, count: int, at_a_time: int) -> Iterator[list[ScannedRecord]]:
    """The records of a decompressed payload in portions. CorruptBatch where there is none."""
    position = 0
    while count > 0:
        records = scan_records(payload, position, min(count, at_a_time))
        if records is None:
            raise CorruptBatch(Corruption.UNREADABLE_RECORDS, "a record does not end where it should")
        yield records
        count -= len(records)
        position = records[-1][1]


def with_records(
    header: BatchHeader, payload: bytes, retained: Sequence[ScannedRecord], new_delete_horizon_ms: int | None
) -> bytes:
    """The batch with only the records `retained`, and with a delete horizon if it is given one."""
    max_timestamp = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = header.base_timestamp + max(record[4] for record in retained)
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if new_delete_horizon_ms is None:
        parts = [payload[start:end] for start, end, *_ in retained]
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
    _, end, behind_timestamp, _, timestamp_delta, _, _ = record
    delta = encode_varint(timestamp_delta + later)
    rest = payload[behind_timestamp:end]
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
