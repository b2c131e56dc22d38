"""Batches the broker writes for itself, made the short way: one record, no producer; and the marker that ends a transaction.

They are what `builder` and `control` make, byte for byte (a test holds them together), in a tenth of the time: a transaction of one
record makes four of them, and they decide how many transactions a second there are.
"""

from functools import lru_cache
from struct import Struct

from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from oncelog.records.batch import (
    CONTROL_BIT,
    CRC_COVERS_FROM,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    TRANSACTIONAL_BIT,
)
from oncelog.records.control import ControlType
from oncelog.records.crc32c import crc32c

#: Everything of a header that the CRC does not cover, and everything it does.
_OUTSIDE_CRC = Struct(">qiibI")
_INSIDE_CRC = Struct(">hiqqqhii")
#: The one record of a marker: lengths, version and type in the key, version and coordinator epoch in the value.
_MARKER_RECORD = Struct(">BBBBBhhBhiB")
_MARKER_LENGTH = _MARKER_RECORD.size - 1


def single_record_batch(key: bytes, value: bytes | None, timestamp_ms: int) -> bytearray:
    """A whole batch of one record without headers."""
    before_key, before_value = _lengths(len(key), -1 if value is None else len(value))
    header = _INSIDE_CRC.pack(0, 0, timestamp_ms, timestamp_ms, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, 1)
    return _sealed(b"".join((header, before_key, key, before_value, value or b"", b"\0")))


@lru_cache(maxsize=4096)
def _lengths(key: int, value: int) -> tuple[bytes, bytes]:
    """All of a record that stands before its key, and before its value. Kept: an id's records have few different lengths."""
    before_key, before_value = b"\0\0\0" + _length(key), _length(value)
    content = len(before_key) + key + len(before_value) + max(value, 0) + 1
    return _length(content) + before_key, before_value


def end_marker_batch(
    producer_id: int, producer_epoch: int, committed: bool, coordinator_epoch: int, timestamp_ms: int
) -> bytearray:
    """A whole control batch with a commit or abort marker."""
    type_ = ControlType.COMMIT if committed else ControlType.ABORT
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    inside = _INSIDE_CRC.pack(
        attributes, 0, timestamp_ms, timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, 1
    ) + _MARKER_RECORD.pack(_MARKER_LENGTH * 2, 0, 0, 0, 8, 0, type_, 12, 0, coordinator_epoch, 0)
    return _sealed(inside)


def _sealed(inside: bytes) -> bytearray:
    batch = bytearray(
        _OUTSIDE_CRC.pack(0, CRC_COVERS_FROM - LOG_OVERHEAD + len(inside), NO_LEADER_EPOCH, MAGIC, crc32c(inside))
    )
    batch += inside
    return batch


def _length(length: int) -> bytes:
    """As a record writes lengths: a zigzag varint. -1 is the length of nothing."""
    coded = length << 1 if length >= 0 else 1
    encoded = bytearray()
    while coded > 0x7F:
        encoded.append(coded & 0x7F | 0x80)
        coded >>= 7
    encoded.append(coded)
    return bytes(encoded)
