"""Single records: reading them out of a batch. Only those who need a record's content pay for this; the produce and fetch path
does not."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    Corruption,
    TimestampType,
    batches,
    read_header,
)
from oncelog.records.compression import GIB, Compression, Undecompressable, decompress
from oncelog.records.varint import LONGEST_VARLONG, decode_varint

RecordHeader: TypeAlias = tuple[str, bytes | None]


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[RecordHeader] = ()


def read_records(data: BytesLike, position: int = 0, *, limit: int = GIB) -> list[Record]:
    """The records of the batch at `position`; CorruptBatch if they cannot be read or decompress to more than `limit` bytes."""
    header = read_header(data, position)
    payload = records_payload(data, position, header, limit)
    return parse_records(payload, header)


def read_all_records(data: BytesLike, *, limit: int = GIB) -> list[Record]:
    """The records of every batch in `data`, except control records."""
    found: list[Record] = []
    for position, header in batches(data):
        if not header.is_control:
            found += parse_records(records_payload(data, position, header, limit), header)
    return found


def records_payload(data: BytesLike, position: int, header: BatchHeader, limit: int = GIB) -> memoryview:
    """The bytes of the records of the batch at `position`, decompressed."""
    payload = memoryview(data)[position + HEADER_SIZE : position + header.size]
    if header.compression is Compression.NONE or not header.record_count:
        return payload
    try:
        return memoryview(decompress(header.compression, payload, limit))
    except Undecompressable as error:
        raise CorruptBatch(Corruption.UNREADABLE_RECORDS, str(error)) from error


def parse_records(payload: BytesLike, header: BatchHeader) -> list[Record]:
    """The records in a batch's decompressed payload."""
    # One copy up front: slices of bytes are the keys and values themselves, and indexing bytes is quicker than a memoryview.
    data = bytes(payload)
    end = len(data)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    found: list[Record] = []
    position = 0
    for index in range(header.record_count):
        length, position = decode_varint(data, position, end)
        if position < 0 or length < 1 or length > end - position:
            raise _unreadable(index, "it does not end inside the batch")
        record_end = position + length
        timestamp_delta, at = decode_varint(data, position + 1, record_end, LONGEST_VARLONG)
        if at < 0:
            raise _unreadable(index, "its timestamp is cut off")
        offset_delta, at = decode_varint(data, at, record_end)
        if at < 0:
            raise _unreadable(index, "its offset is cut off")
        key, at = _read_bytes(data, at, record_end, index)
        value, at = _read_bytes(data, at, record_end, index)
        headers, at = _read_headers(data, at, record_end, index)
        if at != record_end:
            raise _unreadable(index, "its fields do not fill its length")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        found.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
        position = record_end
    if position != end and header.record_count:
        raise CorruptBatch(Corruption.UNREADABLE_RECORDS, f"{end - position} bytes behind the last record")
    return found


def _read_bytes(data: bytes, at: int, end: int, index: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(data, at, end)
    if at < 0 or length < -1 or length > end - at:
        raise _unreadable(index, "a length points beyond it")
    if length < 0:
        return None, at
    return data[at : at + length], at + length


def _read_headers(data: bytes, at: int, end: int, index: int) -> tuple[Sequence[RecordHeader], int]:
    count, at = decode_varint(data, at, end)
    if count == 0 and at >= 0:
        return (), at
    if at < 0 or count < 0 or count > (end - at) // 2:
        raise _unreadable(index, "its header count cannot be")
    headers: list[RecordHeader] = []
    for _ in range(count):
        key, at = _read_bytes(data, at, end, index)
        if key is None:
            raise _unreadable(index, "a header without a key")
        value, at = _read_bytes(data, at, end, index)
        # Header keys are UTF-8 by the protocol, but nobody checks them at produce: a bad one must not hide the record.
        headers.append((key.decode("utf-8", "replace"), value))
    return headers, at


def _unreadable(index: int, why: str) -> CorruptBatch:
    return CorruptBatch(Corruption.UNREADABLE_RECORDS, f"record {index}: {why}")


__all__ = [
    "NO_TIMESTAMP",
    "Record",
    "RecordHeader",
    "parse_records",
    "read_all_records",
    "read_records",
    "records_payload",
]
