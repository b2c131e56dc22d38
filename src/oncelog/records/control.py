"""Control records: the marker that ends a transaction in a partition. Readers step over them, the last stable offset follows them.

A control batch holds one record. Its key is version i16, type i16; an end marker's value is version i16, coordinator epoch i32.
"""

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from oncelog.model.bytes_like import BytesLike
from oncelog.model.producer_identity import NO_SEQUENCE
from oncelog.records.batch import NO_LEADER_EPOCH, CorruptBatch, Corruption
from oncelog.records.builder import build_batch
from oncelog.records.record import read_records

KEY = Struct(">hh")
END_MARKER = Struct(">hi")
VERSION = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class ControlRecord(NamedTuple):
    type: ControlType
    coordinator_epoch: int


def end_transaction_marker(
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """A whole control batch. Its epoch is the producer's, so that a marker of an older epoch can be told and refused."""
    type_ = ControlType.COMMIT if committed else ControlType.ABORT
    return build_batch(
        [(KEY.pack(VERSION, type_), END_MARKER.pack(VERSION, coordinator_epoch))],
        base_offset=base_offset,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def read_control_record(data: BytesLike, position: int = 0) -> ControlRecord:
    """Of the control batch at `position`. A type of a later version is UNKNOWN, which readers pass over."""
    records = read_records(data, position)
    if not records:
        raise CorruptBatch(Corruption.UNREADABLE_RECORDS, "a control batch without a record")
    key, value = records[0].key or b"", records[0].value or b""
    try:
        _, number = KEY.unpack_from(key)
        if number not in (ControlType.ABORT, ControlType.COMMIT):
            return ControlRecord(ControlType(number) if number in _KNOWN else ControlType.UNKNOWN, -1)
        _, coordinator_epoch = END_MARKER.unpack_from(value)
    except error as short:
        raise CorruptBatch(Corruption.UNREADABLE_RECORDS, "a control record that is too short") from short
    return ControlRecord(ControlType(number), coordinator_epoch)


_KNOWN = frozenset(ControlType)
