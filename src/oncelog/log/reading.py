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
from oncelog.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC

_HOP = Struct(">qi4xb6xi")
NOT_KNOWN = -1


class Read(NamedTuple):
    records: BytesLike
    """Whole batches, one behind the other."""
    next_offset: int
    """Where the next read goes on."""


class ReadPlan:
    """The bytes of whole batches lie at `position` of `file`, `length` of them or, where a limit cuts, a little less."""

    __slots__ = ("file", "position", "length", "_segment", "_next_offset", "_boundary")

    def __init__(
        self,
        segment: Segment,
        position: int,
        length: int,
        next_offset: int,
        boundary: tuple[int, int] | None = None,
    ) -> None:
        self.file: File = segment.file
        self.position = position
        self.length = length
        self._segment = segment
        #: Where the batches end that are all of these bytes; else where they begin.
        self._next_offset = next_offset
        #: The last batch in these bytes that is known from the index, as (last offset, place in the bytes), if they must be cut.
        self._boundary = boundary

    def finish(self, data: bytes) -> Read:
        if self._boundary is None:
            self._segment.remember_place(self._next_offset, self.position + self.length)
            return Read(data, self._next_offset)
        last_offset, at = self._boundary
        if at and not _is_batch(data, at, last_offset):
            self._segment.indexes.replace()
            at = 0
        end, next_offset = _end_of_batches(data, at)
        if end == at:
            next_offset = _HOP.unpack_from(data, at)[0]
        self._segment.remember_place(next_offset, self.position + end)
        return Read(memoryview(data)[:end], next_offset)


def _is_batch(data: bytes, at: int, last_offset: int) -> bool:
    base_offset, _, magic, last_offset_delta = _HOP.unpack_from(data, at)
    return bool(base_offset + last_offset_delta == last_offset and magic == MAGIC)


def _end_of_batches(data: bytes, at: int) -> tuple[int, int]:
    """Hop from batch to batch as far as they are whole: where the last one ends, and the offset that follows it."""
    end = len(data)
    next_offset = NOT_KNOWN
    while at + HEADER_SIZE <= end:
        base_offset, length, magic, last_offset_delta = _HOP.unpack_from(data, at)
        following = at + length + LOG_OVERHEAD
        if following > end or following < at + HEADER_SIZE or magic != MAGIC:
            break
        at = following
        next_offset = base_offset + last_offset_delta + 1
    return at, next_offset


def plan_read(
    segments: Segments, log_end_offset: int, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool
) -> ReadPlan | Read:
    """As `PartitionLog.read` describes it, for offsets that are in the log. A read stays within one segment."""
    plan: ReadPlan | None = None
    active = segments.active
    if from_offset >= up_to:
        pass
    elif from_offset >= active.base_offset:
        plan = _plan_within(active, log_end_offset, from_offset, max_bytes, up_to, at_least_one_batch)
    else:
        number = segments.number_holding(from_offset)
        while number < len(segments) and segments[number].base_offset < up_to:
            segment = segments[number]
            number += 1
            end_offset = segments[number].base_offset if number < len(segments) else log_end_offset
            segments.use(segment)
            plan = _plan_within(segment, end_offset, from_offset, max_bytes, up_to, at_least_one_batch)
            # Where compaction left nothing of the range in a segment, the next one has what comes first.
            if plan is not None or segment.position_of(from_offset) < segment.file.size:
                break
    return Read(b"", from_offset) if plan is None else plan


def _plan_within(
    segment: Segment, end_offset: int, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool
) -> ReadPlan | None:
    """Within the segment that ends at `end_offset`; None if nothing of it may be read."""
    start = segment.position_of(from_offset)
    if up_to >= end_offset:
        end, next_offset = segment.file.size, end_offset
    else:
        end, next_offset = segment.position_of(up_to), up_to
    if start >= end:
        return None
    if end - start <= max_bytes:
        return ReadPlan(segment, start, end - start, next_offset)
    last_offset, boundary = segment.indexes.by_offset.entry_at_or_before(start + max_bytes - HEADER_SIZE)
    if boundary > start:
        return ReadPlan(segment, start, max_bytes, from_offset, (last_offset, boundary - start))
    first = segment.header_at(start)
    if first.size <= max_bytes:
        return ReadPlan(segment, start, max_bytes, from_offset, (first.last_offset, 0))
    if not at_least_one_batch:
        return None
    return ReadPlan(segment, start, first.size, first.next_offset)
