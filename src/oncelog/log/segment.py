"""A segment: a run of batches in one file, and the indexes to find something in it.

Of a log only the last segment is written. Its indexes live in memory and reach their files when it is rolled or closed; an older
segment's are read back when somebody looks something up, and may be let go again. Whatever an index file says that cannot
be true, or whatever it is missing, is rebuilt from the log file, which alone is the truth.
"""

from collections.abc import Iterator
from contextlib import suppress

from oncelog.log.file_names import (
    INDEXES,
    LOG,
    OFFSET_INDEX,
    SEGMENT_FILES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_file,
)
from oncelog.log.offset_index import CorruptIndex, OffsetIndex
from oncelog.log.storage import Disk, File, StorageFailed
from oncelog.log.time_index import NO_TIMESTAMP, TimeIndex
from oncelog.log.transaction_index import AbortedTransaction, TransactionIndex
from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, CorruptBatch, Corruption

FIRST_CHUNK = 8 << 10
LARGEST_CHUNK = 1 << 20
#: How many readers' places are remembered: a reader that goes on where it stopped needs no search.
PLACES_REMEMBERED = 64
UNKNOWN_TIMESTAMP = -2


class Segment:
    __slots__ = (
        "base_offset",
        "file",
        "_disk",
        "_directory",
        "_suffix",
        "_index_interval_bytes",
        "_offset_index",
        "_time_index",
        "_transaction_index",
        "_bytes_since_entry",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_places",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, *, suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self._disk = disk
        self._directory = directory
        self._suffix = suffix
        self._index_interval_bytes = index_interval_bytes
        self.file: File = disk.open(self.path(LOG))
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None
        self._bytes_since_entry = 0
        self._max_timestamp = UNKNOWN_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._places: dict[int, int] = {}

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, *, suffix: str = ""
    ) -> "Segment":
        """An empty segment; what lay under its names before is gone."""
        for kind in SEGMENT_FILES:
            disk.remove(f"{directory}/{segment_file(base_offset, kind, suffix)}")
        segment = cls(disk, directory, base_offset, index_interval_bytes, suffix=suffix)
        segment.start_indexes()
        return segment

    def path(self, kind: str) -> str:
        return f"{self._directory}/{segment_file(self.base_offset, kind, self._suffix)}"

    @property
    def size(self) -> int:
        return self.file.size

    # Writing

    def append(self, data: BytesLike, size: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch. StorageFailed leaves everything as it was."""
        file = self.file
        position = file.size
        file.append(data)
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        since = self._bytes_since_entry
        if since > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
            since = 0
        self._bytes_since_entry = since + size

    def index_batch(self, position: int, header: BatchHeader) -> None:
        """Count a batch that is in the file already: indexes are being rebuilt."""
        last_offset = header.base_offset + header.last_offset_delta
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.batch_length + LOG_OVERHEAD

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        self.transaction_index.append(transaction)

    def write_indexes(self) -> None:
        """What the indexes hold goes to their files. Repeating it does no harm."""
        self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        self._disk.write_in_place(self.path(OFFSET_INDEX), self.offset_index.encode())
        self._disk.write_in_place(self.path(TIME_INDEX), self.time_index.encode())
        if self._transaction_index is not None:
            self.write_transaction_index(self._transaction_index)

    def write_transaction_index(self, index: TransactionIndex) -> None:
        """There is a file only where there is something to say."""
        self._transaction_index = index
        if len(index):
            self._disk.write_in_place(self.path(TRANSACTION_INDEX), index.encode())
        else:
            self._disk.remove(self.path(TRANSACTION_INDEX))

    def truncate(self, offset: int) -> None:
        """Cut the file where the batch with `offset` begins. It is written again from here on: its indexes are in memory."""
        position = self.position_of(offset)
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        for kind in INDEXES:
            # A later start might believe them: they say what was once there.
            self._disk.remove(self.path(kind))
        self.file.truncate(position)
        self._places.clear()
        for index in indexes:
            index.truncate(offset)
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        _, indexed = self.offset_index.last_entry
        self._bytes_since_entry = position - indexed
        for _, header in self.headers(indexed):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset

    # Indexes

    def start_indexes(self) -> None:
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._transaction_index = TransactionIndex()
        self._bytes_since_entry = 0
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            try:
                self._offset_index = self._read_offset_index()
            except (CorruptIndex, CorruptBatch):
                self._replace_indexes()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            try:
                self._time_index = self._read_time_index()
            except CorruptIndex:
                self._replace_indexes()
        assert self._time_index is not None
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        """CorruptIndex if the file is damaged: who knows the producers' state rebuilds it."""
        index = self._transaction_index
        if index is None:
            path = self.path(TRANSACTION_INDEX)
            if self._disk.exists(path):
                index = TransactionIndex.decode(self.base_offset, self._disk.read_file(path))
                if not len(index):
                    raise CorruptIndex("there is a file, so there was something to say")
            else:
                index = TransactionIndex()
            self._transaction_index = index
        return index

    @property
    def max_timestamp(self) -> int:
        if self._max_timestamp == UNKNOWN_TIMESTAMP:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch with the largest timestamp."""
        if self._max_timestamp == UNKNOWN_TIMESTAMP:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        return self._offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """Of its records; of the file where the records have none."""
        return self.max_timestamp if self.max_timestamp >= 0 else self._disk.modified_ms(self.path(LOG))

    def release_indexes(self) -> None:
        """Of a segment that is no longer written: what is on disk need not be in memory."""
        self._offset_index = None
        self._time_index = None
        self._transaction_index = None

    @property
    def indexes_loaded(self) -> bool:
        return self._offset_index is not None

    def _read_offset_index(self) -> OffsetIndex:
        if not self.file.size:
            return OffsetIndex(self.base_offset)
        path = self.path(OFFSET_INDEX)
        if not self._disk.exists(path):
            raise CorruptIndex("the file is missing")
        index = OffsetIndex.decode(self.base_offset, self._disk.read_file(path), self.file.size)
        offset, position = index.last_entry
        for at, header in self.headers(position):
            if at == position and position and header.last_offset != offset:
                raise CorruptIndex(f"no batch at {position} ends with offset {offset}")
            if at - position > self._index_interval_bytes:
                raise CorruptIndex(f"the batch at {at} should have an entry")
        return index

    def _read_time_index(self) -> TimeIndex:
        if not self.file.size:
            return TimeIndex(self.base_offset)
        path = self.path(TIME_INDEX)
        index = TimeIndex.decode(self.base_offset, self._disk.read_file(path) if self._disk.exists(path) else b"")
        if not len(index):
            # Of a segment with timestamps even the shortest has one entry, and segments without any are rare.
            raise CorruptIndex("there is no entry")
        return index

    def _replace_indexes(self) -> None:
        self.rebuild_indexes()
        with suppress(StorageFailed):
            # A full disk is no reason not to read: the indexes are then rebuilt again next time.
            self.write_indexes()

    def rebuild_indexes(self) -> int:
        """From the batches' headers; their content has been checked, or is checked by a recovery. The offset at which it ends."""
        transaction_index = self._transaction_index
        self.start_indexes()
        self._transaction_index = transaction_index
        next_offset = self.base_offset
        for position, header in self.headers():
            self.index_batch(position, header)
            next_offset = header.next_offset
        return next_offset

    def resume(self) -> tuple[int, bool]:
        """Go on with a segment after a clean stop: the offset at which it ends, and whether its indexes are as on disk.

        CorruptBatch if it does not end with whole batches.
        """
        try:
            self._offset_index, self._time_index = self._read_offset_index(), self._read_time_index()
        except (CorruptIndex, CorruptBatch):
            return self.rebuild_indexes(), False
        _, position = self._offset_index.last_entry
        self._max_timestamp, self._offset_of_max_timestamp = self._time_index.last_entry
        self._bytes_since_entry = self.file.size - position
        next_offset = self.base_offset
        for _, header in self.headers(position):
            next_offset = header.next_offset
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
        return next_offset, True

    # Finding and reading

    def header_at(self, position: int) -> BatchHeader:
        data = self.file.read_at(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            raise CorruptBatch(Corruption.TRUNCATED, f"{len(data)} bytes at {position} are fewer than a header")
        return _checked(data, 0, self.file.size - position)

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from `position`, where one begins. CorruptBatch where none does."""
        if end is None:
            end = self.file.size
        chunk = FIRST_CHUNK
        start, data = position, b""
        while position < end:
            at = position - start
            if at + HEADER_SIZE > len(data):
                # Small batches: read more at a time. Large ones: only their headers are of interest.
                chunk = min(chunk * 2, LARGEST_CHUNK) if at <= len(data) else FIRST_CHUNK
                data = self.file.read_at(position, min(chunk, end - position))
                start, at = position, 0
                if len(data) < HEADER_SIZE:
                    raise CorruptBatch(Corruption.TRUNCATED, f"{len(data)} bytes at {position} are fewer than a header")
            header = _checked(data, at, end - position)
            yield position, header
            position += header.batch_length + LOG_OVERHEAD

    def headers_near(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """As `headers`, from a batch that is not after `offset`: near it as far as the index knows."""
        last_offset, position = self.offset_index.entry_before(offset)
        if position and not self._is_batch(position, last_offset):
            self.distrust_indexes()
            _, position = self.offset_index.entry_before(offset)
        return self.headers(position)

    def _is_batch(self, position: int, last_offset: int) -> bool:
        try:
            return self.header_at(position).last_offset == last_offset
        except CorruptBatch:
            return False

    def distrust_indexes(self) -> None:
        """An entry does not agree with the log: none of them is believed any more."""
        self._replace_indexes()

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

    # Renaming and removing

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


def _checked(data: bytes, at: int, available: int) -> BatchHeader:
    header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(data, at))
    if header.magic != MAGIC:
        raise CorruptBatch(Corruption.UNKNOWN_FORMAT, f"magic {header.magic}")
    size = header.batch_length + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise CorruptBatch(Corruption.IMPOSSIBLE_LENGTH, f"batch length {header.batch_length}")
    if size > available:
        raise CorruptBatch(Corruption.TRUNCATED, f"the batch has {size} bytes, {available} are here")
    return header
