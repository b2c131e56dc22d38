"""A read in two steps: where the bytes are, and what of them is handed out.

Finding takes no waiting on the device as long as the indexes are in memory; fetching the bytes may. So a plan can be carried out
at once (`PartitionLog.read`), or its bytes fetched by a worker thread (`plan.file.read_cold_at(plan.position, plan.length)`) and
given to `finish` back on the node's own thread.
"""

from struct import Struct
from typing import NamedTuple

from oncelog.log.segment import Segment
from oncelog.log.segments import Segments
from oncelog.log.storage import File
from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import HEADER_SIZE, LOG_OVERHEAD

_HOP = Struct(">qi11xi")
NO_TRIM = -1


class Read(NamedTuple):
    records: BytesLike
    """Whole batches, one behind the other."""
    next_offset: int
    """Where the next read goes on."""


class ReadPlan:
    """The bytes of whole batches lie at `position` of `file`, `length` of them or, where a limit cuts, a little less."""

    __slots__ = ("file", "position", "length", "_segment", "_trim_from", "_next_offset")

    def __init__(self, segment: Segment, position: int, length: int, trim_from: int, next_offset: int) -> None:
        self.file: File = segment.file
        self.position = position
        self.length = length
        self._segment = segment
        self._trim_from = trim_from
        self._next_offset = next_offset

    def finish(self, data: bytes) -> Read:
        at = self._trim_from
        if at < 0:
            self._segment.remember_place(self._next_offset, self.position + self.length)
            return Read(data, self._next_offset)
        next_offset = self._next_offset
        end = len(data)
        while at + _HOP.size <= end:
            base_offset, length, last_offset_delta = _HOP.unpack_from(data, at)
            if at + length + LOG_OVERHEAD > end:
                next_offset = base_offset
                break
            at += length + LOG_OVERHEAD
            next_offset = base_offset + last_offset_delta + 1
        self._segment.remember_place(next_offset, self.position + at)
        return Read(memoryview(data)[:at], next_offset)


def plan_read(
    segments: Segments, log_end_offset: int, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool
) -> ReadPlan | Read:
    """As `PartitionLog.read` describes it, for offsets that are in the log. A read stays within one segment."""
    number = segments.number_holding(from_offset)
    while from_offset < up_to:
        segment = segments[number]
        number += 1
        end_offset = segments[number].base_offset if number < len(segments) else log_end_offset
        segments.use(segment)
        start = segment.position_of(from_offset)
        if up_to >= end_offset:
            end, next_offset = segment.file.size, end_offset
        else:
            end, next_offset = segment.position_of(up_to), up_to
        if start >= end:
            if end_offset >= up_to:
                break
            continue  # compaction left nothing of this range here
        if end - start <= max_bytes:
            return ReadPlan(segment, start, end - start, NO_TRIM, next_offset)
        boundary = segment.offset_index.boundary_before(start + max_bytes - HEADER_SIZE)
        if boundary > start:
            return ReadPlan(segment, start, max_bytes, boundary - start, from_offset)
        first = segment.header_at(start)
        if first.size <= max_bytes:
            return ReadPlan(segment, start, max_bytes, 0, from_offset)
        if not at_least_one_batch:
            break
        return ReadPlan(segment, start, first.size, NO_TRIM, first.next_offset)
    return Read(b"", from_offset)
