"""Records as far as one must look at them to decide whether they stay in the log: key, times, and where their bytes lie.

Compaction looks at every record of a log twice, so this has its twin in the C kernel, as the walk has. Both are quick because they
make tuples of the little that is needed and copy no value.
"""

from collections.abc import Callable
from typing import TypeAlias

from oncelog.model.bytes_like import BytesLike
from oncelog.records.varint import LONGEST_VARLONG, decode_varint

# start (of its length), end, start of what follows its timestamp, offset delta, timestamp delta, key, whether it has no value
ScannedRecord: TypeAlias = tuple[int, int, int, int, int, bytes | None, bool]


def scan_records_in_python(payload: BytesLike, position: int, count: int) -> list[ScannedRecord] | None:
    """Up to `count` records from `position` of a decompressed payload on. None if what is there is no record."""
    end = len(payload)
    found: list[ScannedRecord] = []
    for _ in range(count):
        start = position
        length, position = decode_varint(payload, position, end)
        if position < 0 or length < 1 or length > end - position:
            return None
        record_end = position + length
        timestamp_delta, behind_timestamp = decode_varint(payload, position + 1, record_end, LONGEST_VARLONG)
        if behind_timestamp < 0:
            return None
        offset_delta, at = decode_varint(payload, behind_timestamp, record_end)
        if at < 0:
            return None
        key_length, at = decode_varint(payload, at, record_end)
        if at < 0 or not -1 <= key_length <= record_end - at:
            return None
        key = bytes(payload[at : at + key_length]) if key_length >= 0 else None
        at += max(key_length, 0)
        value_length, at = decode_varint(payload, at, record_end)
        if at < 0 or not -1 <= value_length <= record_end - at:
            return None
        found.append((start, record_end, behind_timestamp, offset_delta, timestamp_delta, key, value_length < 0))
        position = record_end
    return found


scan_records: Callable[[BytesLike, int, int], list[ScannedRecord] | None]
try:
    from oncelog.records._kernel import scan_records
except ImportError:
    scan_records = scan_records_in_python
