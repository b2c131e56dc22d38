"""Offset index of a segment: about every `index.interval.bytes`, the last offset of a batch and where in the file it begins.

File: per entry, offset relative to the segment's base (i32) and position (i32), both rising strictly. Kafka's `.index`.
The entries of the segment being written live here and are written when it is rolled or closed: one append stays one write. After a
crash they are rebuilt from the log.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import le

ENTRY_SIZE = 8
LARGEST_RELATIVE_OFFSET = 2**31 - 1
#: A file that was torn or overwritten shows it in a sample; a million comparisons would hold everybody up.
ENTRIES_CHECKED = 1000


class CorruptIndex(Exception):
    """An index file that cannot belong to its segment: it is thrown away and rebuilt."""


class OffsetIndex:
    __slots__ = ("_base_offset", "_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    @classmethod
    def decode(cls, base_offset: int, data: bytes, log_size: int) -> "OffsetIndex":
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries of {ENTRY_SIZE}")
        numbers = array("i", data)
        if sys.byteorder == "little":
            numbers.byteswap()
        index = cls(base_offset)
        index._offsets = numbers[0::2]
        index._positions = numbers[1::2]
        if not (_rises(index._offsets) and _rises(index._positions)):
            raise CorruptIndex("entries do not rise")
        if len(index) and not (index._offsets[0] >= 0 and index._positions[0] > 0 and index._positions[-1] < log_size):
            raise CorruptIndex("entries point out of the segment")
        return index

    def encode(self) -> bytes:
        numbers = array("i", bytes(2 * self._offsets.itemsize * len(self._offsets)))
        numbers[0::2] = self._offsets
        numbers[1::2] = self._positions
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last_entry(self) -> tuple[int, int]:
        """Offset and position of the last entry, or of the segment's beginning."""
        return self._entry(len(self._offsets) - 1)

    def append(self, offset: int, position: int) -> None:
        self._offsets.append(offset - self._base_offset)
        self._positions.append(position)

    def entry_before(self, offset: int) -> tuple[int, int]:
        """The nearest known batch from which scanning forward meets `offset`: its last offset and its position.

        Position 0 stands for the beginning of the segment, of which no offset is known.
        """
        following = bisect_right(self._offsets, offset - self._base_offset)
        return self._entry(following - 1)

    def entry_at_or_before(self, position: int) -> tuple[int, int]:
        """The last batch known to begin not after `position`, in the same way."""
        return self._entry(bisect_right(self._positions, position) - 1)

    def _entry(self, number: int) -> tuple[int, int]:
        return (
            (self._base_offset + self._offsets[number], self._positions[number])
            if number >= 0
            else (self._base_offset, 0)
        )

    def truncate(self, offset: int) -> None:
        """Forget batches that contain `offset` or anything after it."""
        kept = bisect_left(self._offsets, offset - self._base_offset)
        del self._offsets[kept:], self._positions[kept:]


def _rises(numbers: "array[int]") -> bool:
    sample = numbers[:: max(1, len(numbers) // ENTRIES_CHECKED)]
    return not any(map(le, sample[1:], sample)) and (len(numbers) < 2 or numbers[-1] > numbers[-2])
