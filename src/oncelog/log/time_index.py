"""Time index of a segment: the largest timestamp so far, and the last offset of the batch that has it.

File: per entry, timestamp in milliseconds (i64) and offset relative to the segment's base (i32), timestamps rising strictly.
Kafka's `.timeindex`. An entry (t, o) says: no record up to o is younger than t. A rolled or closed segment ends with its largest
timestamp, so that retention need not read the segment. Kept in memory while the segment is written, as the offset index.
"""

from array import array
from bisect import bisect_left, bisect_right
from operator import le, lt
from struct import Struct

from oncelog.log.offset_index import CorruptIndex

_ENTRY = Struct(">qi")
ENTRY_SIZE = _ENTRY.size
NO_TIMESTAMP = -1


class TimeIndex:
    __slots__ = ("_base_offset", "_timestamps", "_offsets")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("q")

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> "TimeIndex":
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries of {ENTRY_SIZE}")
        index = cls(base_offset)
        for timestamp, offset in _ENTRY.iter_unpack(data):
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        timestamps, offsets = index._timestamps, index._offsets
        if any(map(le, timestamps[1:], timestamps)) or any(map(lt, offsets[1:], offsets)):
            raise CorruptIndex("entries do not rise")
        if timestamps and (timestamps[0] < 0 or offsets[0] < 0):
            raise CorruptIndex("an entry lies before the segment")
        return index

    def encode(self) -> bytes:
        return b"".join(map(_ENTRY.pack, self._timestamps, self._offsets))

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last_entry(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (-1, base offset) if there is none."""
        if not self._timestamps:
            return NO_TIMESTAMP, self._base_offset
        return self._timestamps[-1], self._base_offset + self._offsets[-1]

    def append(self, timestamp: int, offset: int) -> None:
        """Only a larger timestamp adds anything."""
        if timestamp >= 0 and (not self._timestamps or timestamp > self._timestamps[-1]):
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self._base_offset)

    def offset_before(self, timestamp: int) -> int:
        """An offset from which scanning forward meets the first record not older than `timestamp`: the nearest that is known."""
        following = bisect_right(self._timestamps, timestamp)
        return self._base_offset + (self._offsets[following - 1] if following else 0)

    def truncate(self, offset: int) -> None:
        """Forget entries about `offset` and anything after it."""
        kept = bisect_left(self._offsets, offset - self._base_offset)
        del self._timestamps[kept:], self._offsets[kept:]
