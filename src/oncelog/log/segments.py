"""The segments of a log in offset order. There is always one, the last is the one being written, and there is no gap between them.

Files leave in two steps, as in Kafka: renamed to `.deleted`, which takes a segment out of the log at once, and removed a while
later (`file.delete.delay.ms`), when nobody can be reading them any more. What a crash leaves of that goes at the next start.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from oncelog.log.file_names import CLEANED, DELETED, SEGMENT_FILES, SWAP, segment_file
from oncelog.log.segment import Segment
from oncelog.log.storage import Disk

#: Indexes of segments that are only read are let go again when this many others have been used since.
INDEXES_KEPT = 4


class Segments:
    __slots__ = (
        "active",
        "index_interval_bytes",
        "_disk",
        "_directory",
        "_list",
        "_bases",
        "_lately_used",
        "_doomed",
        "_replacing",
    )

    def __init__(self, disk: Disk, directory: str, index_interval_bytes: int, segments: list[Segment]) -> None:
        self._disk = disk
        self._directory = directory
        self.index_interval_bytes = index_interval_bytes
        self._list = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._lately_used: list[Segment] = []
        self._doomed: list[tuple[int, list[str]]] = []
        self._replacing: list[tuple[list[Segment], Segment, int]] = []

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, number: int) -> Segment:
        return self._list[number]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._list)

    @property
    def bases(self) -> Sequence[int]:
        return self._bases

    def number_holding(self, offset: int) -> int:
        """The number of the segment in whose range `offset` lies."""
        if offset >= self.active.base_offset:
            return len(self._list) - 1
        return max(0, bisect_right(self._bases, offset) - 1)

    def use(self, segment: Segment) -> None:
        """Somebody looks something up in a segment that is no longer written: its indexes stay in memory for a while."""
        if segment is self.active or segment in self._lately_used:
            return
        self._lately_used.append(segment)
        if len(self._lately_used) > INDEXES_KEPT:
            self._lately_used.pop(0).release_indexes()

    def add(self, base_offset: int) -> Segment:
        """A new segment to write to; the one written so far keeps its indexes in memory until others were used."""
        segment = Segment.create(self._disk, self._directory, base_offset, self.index_interval_bytes)
        before, self.active = self.active, segment
        self._list.append(segment)
        self._bases.append(base_offset)
        if before in self._list:
            self.use(before)
        return segment

    def remove_first(self, count: int, remove_at_ms: int) -> None:
        """Take the oldest out of the log; their files go at `remove_at_ms`."""
        self._finish_replacements()
        for _ in range(count):
            self._doom(self._list[0], remove_at_ms)
            self._list.pop(0)
            self._bases.pop(0)

    def remove_from(self, number: int) -> None:
        """Drop segments from the end: the log is cut, and what was there is not to come back. The last one left is written next."""
        self._finish_replacements()
        while len(self._list) > number:
            segment = self._list.pop()
            self._bases.pop()
            segment.remove()
        if self._list:
            self.active = self._list[-1]
        # What is written next has its indexes in memory only: they must not be let go.
        self._lately_used = [used for used in self._lately_used if used in self._list and used is not self.active]

    def restart_at(self, base_offset: int) -> None:
        """Throw everything away and begin again at `base_offset`."""
        self.remove_from(0)
        self.add(base_offset)

    def begin_cleaned(self, base_offset: int) -> Segment:
        """A segment for compaction to write beside the log; it counts for nothing until it replaces others."""
        self._finish_replacements()
        for kind in SEGMENT_FILES:
            self._disk.remove(f"{self._directory}/{segment_file(base_offset, kind, SWAP)}")
        return Segment.create(self._disk, self._directory, base_offset, self.index_interval_bytes, suffix=CLEANED)

    def replace(self, old: Sequence[Segment], cleaned: Segment, remove_at_ms: int) -> None:
        """Put a compacted segment in the place of neighbours that are no longer written.

        From the moment its files are called .swap it counts, whatever fails then: what is left to do is tried again with the next
        change, and after a crash the next start does it.
        """
        self._finish_replacements()
        first = self._list.index(old[0])
        cleaned.change_suffix(SWAP)
        self._list[first : first + len(old)] = [cleaned]
        self._bases[first : first + len(old)] = [cleaned.base_offset]
        self._replacing.append((list(old), cleaned, remove_at_ms))
        self._finish_replacements()

    def _finish_replacements(self) -> None:
        while self._replacing:
            old, cleaned, remove_at_ms = self._replacing[0]
            while old:
                self._doom(old[0], remove_at_ms)
                old.pop(0)
            cleaned.change_suffix("")
            self._replacing.pop(0)

    def _doom(self, segment: Segment, remove_at_ms: int) -> None:
        segment.change_suffix(DELETED)
        self._doomed.append((remove_at_ms, segment.files()))
        if segment in self._lately_used:
            self._lately_used.remove(segment)

    def remove_doomed(self, now_ms: int) -> None:
        """Remove the files of segments that were taken out long enough ago."""
        self._finish_replacements()
        while self._doomed and self._doomed[0][0] <= now_ms:
            for path in self._doomed.pop(0)[1]:
                self._disk.remove(path)

    def close(self) -> None:
        self._finish_replacements()
        for _, paths in self._doomed:
            for path in paths:
                self._disk.remove(path)
        self._doomed.clear()
        for segment in self._list:
            segment.close()
