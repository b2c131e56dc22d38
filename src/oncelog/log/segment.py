"""A segment: a run of batches in one file, named after its first offset, with the indexes to find something in it.

Of a log only the last segment is written. Compaction writes others beside it, under names with a suffix, and renames them.
"""

from collections.abc import Iterator
from contextlib import suppress

from oncelog.log.batch_scan import header_at, headers
from oncelog.log.file_names import LOG, SEGMENT_FILES, segment_file
from oncelog.log.segment_indexes import SegmentIndexes
from oncelog.log.storage import Disk, File, StorageFailed
from oncelog.log.transaction_index import AbortedTransaction
from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import BatchHeader, CorruptBatch

#: How many readers' places are remembered: a reader that goes on where it stopped needs no search.
PLACES_REMEMBERED = 64


class Segment:
    __slots__ = ("base_offset", "file", "indexes", "_disk", "_directory", "_suffix", "_places")

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, *, suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self._disk = disk
        self._directory = directory
        self._suffix = suffix
        self.file: File = disk.open(self.path(LOG))
        self.indexes = SegmentIndexes(disk, self.file, self.path, base_offset, index_interval_bytes)
        self._places: dict[int, int] = {}

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, *, suffix: str = ""
    ) -> "Segment":
        """An empty segment; what lay under its names before is gone."""
        for kind in SEGMENT_FILES:
            disk.remove(f"{directory}/{segment_file(base_offset, kind, suffix)}")
        segment = cls(disk, directory, base_offset, index_interval_bytes, suffix=suffix)
        segment.indexes.start()
        return segment

    def path(self, kind: str) -> str:
        return f"{self._directory}/{segment_file(self.base_offset, kind, self._suffix)}"

    @property
    def size(self) -> int:
        return self.file.size

    def largest_timestamp(self) -> int:
        """Of its records; of the file where the records have none."""
        timestamp = self.indexes.max_timestamp
        return timestamp if timestamp >= 0 else self._disk.modified_ms(self.path(LOG))

    # Writing

    def append(self, data: BytesLike, size: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch. StorageFailed leaves everything as it was."""
        file = self.file
        position = file.size
        file.append(data)
        self.indexes.count(position, size, last_offset, max_timestamp)

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        self.indexes.of_transactions.append(transaction)

    def write_indexes(self) -> None:
        self.indexes.write()

    def release_indexes(self) -> None:
        self.indexes.release()

    def truncate(self, offset: int) -> None:
        """Cut the file where the batch with `offset` begins. It is written again from here on: its indexes are in memory."""
        position = self.position_of(offset)
        self.indexes.take_over()
        self.file.truncate(position)
        self._places.clear()
        self.indexes.truncate(offset)

    # Finding

    def header_at(self, position: int) -> BatchHeader:
        return header_at(self.file, position)

    def headers_near(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch, from one that is not after `offset`: near it as far as the index knows."""
        last_offset, position = self.indexes.by_offset.entry_before(offset)
        if position and not self._is_batch(position, last_offset):
            self.indexes.replace()
            _, position = self.indexes.by_offset.entry_before(offset)
        return headers(self.file, position)

    def _is_batch(self, position: int, last_offset: int) -> bool:
        try:
            return header_at(self.file, position).last_offset == last_offset
        except CorruptBatch:
            return False

    def position_of(self, offset: int) -> int:
        """Where the batch begins that has `offset` or, where that was compacted away, the next one: the end if none has."""
        if offset <= self.base_offset:
            return 0
        place = self._places.get(offset)
        if place is None:
            place = self.file.size
            for at, header in self.headers_near(offset):
                if header.base_offset + header.last_offset_delta >= offset:
                    place = at
                    break
            self.remember_place(offset, place)
        return place

    def remember_place(self, offset: int, position: int) -> None:
        places = self._places
        if len(places) >= PLACES_REMEMBERED and offset not in places:
            del places[next(iter(places))]
        places[offset] = position

    # Its files

    def files(self) -> list[str]:
        return [path for path in map(self.path, SEGMENT_FILES) if self._disk.exists(path)]

    def change_suffix(self, suffix: str) -> None:
        """All files or, with StorageFailed, none. The log file goes last: as long as it has the old name, the others are only
        missing indexes."""
        renamed: list[tuple[str, str]] = []
        for path in reversed(self.files()):
            to = path[: len(path) - len(self._suffix)] + suffix
            try:
                self._disk.rename(path, to)
            except StorageFailed:
                for before, after in renamed:
                    with suppress(StorageFailed):
                        self._disk.rename(after, before)
                raise
            renamed.append((path, to))
        self._suffix = suffix

    def sync(self) -> None:
        """Return once all its files are on stable storage. From any thread."""
        self.file.sync()
        for path in self.files():
            if not path.endswith(LOG + self._suffix):
                self._disk.sync_file(path)

    def remove(self) -> None:
        """Remove its files, the log first: an index without a log is of no use to anybody."""
        paths = self.files()
        self.close()
        for path in paths:
            self._disk.remove(path)

    def close(self) -> None:
        self.file.close()
