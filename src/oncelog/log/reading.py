"""A read in two steps: where the bytes are, and what of them is handed out.

Finding takes no waiting on the device as long as the indexes are in memory; fetching the bytes may. So a plan can be carried out
at once (`PartitionLog.read`), or its bytes fetched by a worker thread (`plan.file.read_cold_at(plan.position, plan.length)`) and
given to `finish` back on the node's own thread.
"""

from struct import Struct
from typing import NamedTuple

from oncelog.log.segment import Segment
from oncelog.log.storage import File
from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import LOG_OVERHEAD

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
