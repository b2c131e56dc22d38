"""Batches that come with several in one piece: the broker's own, and what a leader sent a follower.

Each is looked at on its own, with the producers as the ones before leave them, and only if all are in order anything is written.
"""

from struct import Struct
from typing import NamedTuple

from oncelog.log.producer_state import Origin, ProducerState
from oncelog.log.recovery import replay
from oncelog.model.bytes_like import BytesLike
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.records.batch import (
    CONTROL_BIT,
    BatchHeader,
    CorruptBatch,
    TimestampType,
    batches,
    crc_matches,
    read_header,
    stamp,
)
from oncelog.records.control import read_control_record

OFFSET_LENGTH_EPOCH = Struct(">qii")
NO_APPEND_TIME = -1


class Placed(NamedTuple):
    """Batches with their final offsets, and where in `data` each of them begins."""

    data: bytearray
    batches: list[tuple[int, BatchHeader]]


def place_own(
    records: BytesLike,
    next_offset: int,
    leader_epoch: int,
    producers: ProducerState,
    *,
    max_message_bytes: int,
    append_time_ms: int,
    transaction_version: int,
) -> Placed | Refused:
    """Give the broker's own batches their offsets. `append_time_ms` is NO_APPEND_TIME where they keep their timestamps."""
    data = bytearray(records)
    try:
        found = list(batches(data))
        if not found:
            return Refused(ErrorCode.INVALID_RECORD, "no batch to append")
        # Later batches build on earlier ones: tried out on a copy, since nothing is written yet.
        tried = producers if len(found) == 1 else producers.copy()
        placed: list[tuple[int, BatchHeader]] = []
        for position, header in found:
            if header.size > max_message_bytes:
                return Refused(ErrorCode.MESSAGE_TOO_LARGE, f"{header.size} bytes are more than {max_message_bytes}")
            if append_time_ms != NO_APPEND_TIME:
                stamp(data, position, header, TimestampType.LOG_APPEND_TIME, append_time_ms)
            OFFSET_LENGTH_EPOCH.pack_into(data, position, next_offset, header.batch_length, leader_epoch)
            final = read_header(data, position)
            refused = _check(tried, final, data, position, transaction_version)
            if refused is not None:
                return refused
            if tried is not producers:
                replay(tried, final, data, position)
            placed.append((position, final))
            next_offset = final.next_offset
    except CorruptBatch as problem:
        return Refused(ErrorCode.CORRUPT_MESSAGE, str(problem))
    return Placed(data, placed)


def _check(
    producers: ProducerState, header: BatchHeader, data: bytearray, position: int, transaction_version: int
) -> Refused | None:
    if header.producer_id < 0:
        return None
    if header.attributes & CONTROL_BIT:
        return producers.check_marker(header, read_control_record(data, position), transaction_version)
    verdict = producers.check_batch(header, Origin.COORDINATOR)
    return verdict if isinstance(verdict, Refused) else None


def place_replicated(records: BytesLike, next_offset: int) -> Placed | Refused:
    """The leader has checked these and given them their offsets: here they must be intact, and follow what is there."""
    data = bytearray(records)
    try:
        found = list(batches(data))
    except CorruptBatch as problem:
        return Refused(ErrorCode.CORRUPT_MESSAGE, str(problem))
    for position, header in found:
        if header.base_offset < next_offset:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {header.base_offset} was replicated after {next_offset - 1}"
            )
        if not crc_matches(data, position, header):
            return Refused(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} arrived damaged")
        next_offset = header.next_offset
    return Placed(data, found)
