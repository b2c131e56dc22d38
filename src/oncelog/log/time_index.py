"""Time index of a segment: the largest timestamp so far, and the last offset of the batch that has it.

File: per entry, timestamp in milliseconds (i64) and offset relative to the segment's base (i32), timestamps rising strictly.
Kafka's `.timeindex`. An entry (t, o) says: no record up to o is younger than t. A rolled or closed segment ends with its largest
timestamp, so that retention need not read the segment. Kept in memory while the segment is written, as the offset index; as the
bytes they are, since they are looked into seldom.
"""

from struct import Struct

from oncelog.log.offset_index import ENTRIES_CHECKED, CorruptIndex

_ENTRY = Struct(">qi")
ENTRY_SIZE = _ENTRY.size
NO_TIMESTAMP = -1


class TimeIndex:
    __slots__ = ("_base_offset", "_entries", "_last_timestamp")

    def __init__(self, base_offset: int, entries: bytes = b"") -> None:
        self._base_offset = base_offset
        self._entries = bytearray(entries)
        self._last_timestamp = self._entry(len(self) - 1)[0] if entries else NO_TIMESTAMP

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> "TimeIndex":
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries of {ENTRY_SIZE}")
        index = cls(base_offset, data)
        before = (NO_TIMESTAMP, 0)
        for number in [*range(0, len(index) - 1, max(1, len(index) // ENTRIES_CHECKED)), len(index) - 1]:
            if number < 0:
                break
            entry = index._entry(number)
            if entry[0] <= before[0] or entry[1] < before[1]:
                raise CorruptIndex("entries do not rise")
            before = entry
        return index

    def encode(self) -> bytes:
        return bytes(self._entries)

    def __len__(self) -> int:
        return len(self._entries) // ENTRY_SIZE

    def _entry(self, number: int) -> tuple[int, int]:
        timestamp, offset = _ENTRY.unpack_from(self._entries, number * ENTRY_SIZE)
        return timestamp, offset

    @property
    def last_entry(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (-1, base offset) if there is none."""
        if not self._entries:
            return NO_TIMESTAMP, self._base_offset
        timestamp, offset = self._entry(len(self) - 1)
        return timestamp, self._base_offset + offset

    def append(self, timestamp: int, offset: int) -> None:
        """Only a larger timestamp adds anything."""
        if timestamp > self._last_timestamp:
            self._entries += _ENTRY.pack(timestamp, offset - self._base_offset)
            self._last_timestamp = timestamp

    def offset_before(self, timestamp: int) -> int:
        """An offset from which scanning forward meets the first record not older than `timestamp`: the nearest that is known."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        return self._base_offset + (self._entry(low - 1)[1] if low else 0)

    def truncate(self, offset: int) -> None:
        """Forget entries about `offset` and anything after it."""
        while self._entries and self._base_offset + self._entry(len(self) - 1)[1] >= offset:
            del self._entries[-ENTRY_SIZE:]
        self._last_timestamp = self.last_entry[0]
