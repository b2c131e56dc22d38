"""Transaction index of a segment: the aborted transactions whose markers lie in it (MISSION X1).

File: per entry, version (i16, 0), producer id, first offset, offset of the abort marker, last stable offset then (i64 each).
Kafka's `.txnindex`; there is no file for a segment without aborted transactions. Entries are in the order of their markers.

An entry's last stable offset ends a search: every transaction that began below it had its marker by then, so for a range that ends
below it no later entry is of interest.
"""

from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from oncelog.log.offset_index import CorruptIndex

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size
VERSION = 0
NOTHING_ABORTED = 2**63 - 1


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("first_offset", "_entries", "_last_offsets")

    def __init__(self) -> None:
        #: Where the earliest of them begins; NOTHING_ABORTED if there is none.
        self.first_offset = NOTHING_ABORTED
        self._entries: list[AbortedTransaction] = []
        self._last_offsets: list[int] = []

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> "TransactionIndex":
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries of {ENTRY_SIZE}")
        index = cls()
        before = base_offset - 1
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != VERSION or entry.last_offset <= before:
                raise CorruptIndex("an entry has another version or lies before the one it follows")
            index.append(entry)
            before = entry.last_offset
        return index

    def encode(self) -> bytes:
        return b"".join(_ENTRY.pack(VERSION, *entry) for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> list[AbortedTransaction]:
        return list(self._entries)

    def append(self, entry: AbortedTransaction) -> None:
        self._entries.append(entry)
        self._last_offsets.append(entry.last_offset)
        self.first_offset = min(self.first_offset, entry.first_offset)

    def collect(self, from_offset: int, up_to: int, found: list[AbortedTransaction]) -> bool:
        """Add what overlaps [from_offset, up_to) to `found`. True if no later segment can have more."""
        for number in range(bisect_left(self._last_offsets, from_offset), len(self._entries)):
            entry = self._entries[number]
            if entry.first_offset < up_to:
                found.append(entry)
            if entry.last_stable_offset >= up_to:
                return True
        return False

    def truncate(self, offset: int) -> None:
        kept = bisect_left(self._last_offsets, offset)
        del self._entries[kept:], self._last_offsets[kept:]
        self.first_offset = min((entry.first_offset for entry in self._entries), default=NOTHING_ABORTED)
