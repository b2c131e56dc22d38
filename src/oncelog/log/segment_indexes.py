"""The three indexes of a segment: in memory while it is written, read back from their files when somebody looks into an older one.

The log file alone is the truth. An index file that is missing, torn, or says what the log does not confirm is thrown away and the
index rebuilt from the batches' headers. Only the transaction index takes more, the state of the producers: who has that does it.
"""

from collections.abc import Callable
from contextlib import suppress

from oncelog.log.batch_scan import headers
from oncelog.log.file_names import INDEXES, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX
from oncelog.log.offset_index import CorruptIndex, OffsetIndex
from oncelog.log.storage import Disk, File, StorageFailed
from oncelog.log.time_index import NO_TIMESTAMP, TimeIndex
from oncelog.log.transaction_index import NOTHING_ABORTED, TransactionIndex
from oncelog.records.batch import CorruptBatch

UNKNOWN_TIMESTAMP = -2
NOT_KNOWN = -1


class SegmentIndexes:
    __slots__ = (
        "_disk",
        "_file",
        "_path",
        "_base_offset",
        "_interval_bytes",
        "_offset_index",
        "_time_index",
        "_transaction_index",
        "_bytes_since_entry",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_first_aborted_offset",
    )

    def __init__(
        self, disk: Disk, file: File, path: Callable[[str], str], base_offset: int, interval_bytes: int
    ) -> None:
        self._disk = disk
        self._file = file
        self._path = path
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None
        self._bytes_since_entry = 0
        self._max_timestamp = UNKNOWN_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        #: Kept of a transaction index that is not in memory: most searches need no more of it.
        self._first_aborted_offset = NOT_KNOWN

    # What they say

    @property
    def by_offset(self) -> OffsetIndex:
        if self._offset_index is None:
            try:
                self._offset_index = self._read_offset_index()
            except (CorruptIndex, CorruptBatch):
                self.replace()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def by_time(self) -> TimeIndex:
        if self._time_index is None:
            try:
                self._time_index = self._read_time_index()
            except CorruptIndex:
                self.replace()
        assert self._time_index is not None
        return self._time_index

    @property
    def of_transactions(self) -> TransactionIndex:
        """CorruptIndex if the file is damaged."""
        if self._transaction_index is None:
            self._transaction_index = self._read_transaction_index()
        return self._transaction_index

    @property
    def max_timestamp(self) -> int:
        if self._max_timestamp == UNKNOWN_TIMESTAMP:
            self._look_up_max_timestamp()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch with the largest timestamp."""
        if self._max_timestamp == UNKNOWN_TIMESTAMP:
            self._look_up_max_timestamp()
        return self._offset_of_max_timestamp

    def _look_up_max_timestamp(self) -> None:
        """Only the last entry: every segment is asked for it, and few need their index in memory."""
        try:
            index = self._read_time_index() if self._time_index is None else self._time_index
        except CorruptIndex:
            index = self.by_time
        self._max_timestamp, self._offset_of_max_timestamp = index.last_entry

    @property
    def first_aborted_offset(self) -> int:
        """Where the earliest of the aborted transactions begins; NOTHING_ABORTED if there is none. CorruptIndex as above."""
        if self._transaction_index is not None:
            return self._transaction_index.first_offset
        if self._first_aborted_offset == NOT_KNOWN:
            self._first_aborted_offset = self._read_transaction_index().first_offset
        return self._first_aborted_offset

    @property
    def loaded(self) -> bool:
        return self._offset_index is not None

    def release(self) -> None:
        """The segment is no longer written: what is on disk need not be in memory."""
        if self._transaction_index is not None:
            self._first_aborted_offset = self._transaction_index.first_offset
        self._offset_index = None
        self._time_index = None
        self._transaction_index = None

    # Keeping them

    def start(self) -> None:
        """Of a segment that is empty, or is read through from its beginning."""
        self._offset_index = OffsetIndex(self._base_offset)
        self._time_index = TimeIndex(self._base_offset)
        self._transaction_index = TransactionIndex()
        self._bytes_since_entry = 0
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, self._base_offset

    def count(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """A batch is in the file behind the last one counted."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        since = self._bytes_since_entry
        if since > self._interval_bytes:
            self.by_offset.append(last_offset, position)
            self.by_time.append(self._max_timestamp, self._offset_of_max_timestamp)
            since = 0
        self._bytes_since_entry = since + size

    def truncate(self, offset: int) -> None:
        """The file was cut before the batch with `offset`."""
        self.by_offset.truncate(offset)
        self.by_time.truncate(offset)
        self.of_transactions.truncate(offset)
        self._count_tail()

    def _count_tail(self) -> int:
        """What lies behind the last entry and is in none. The offset that follows."""
        _, position = self.by_offset.last_entry
        self._max_timestamp, self._offset_of_max_timestamp = self.by_time.last_entry
        self._bytes_since_entry = self._file.size - position
        next_offset = self._base_offset
        for _, header in headers(self._file, position):
            next_offset = header.next_offset
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
        return next_offset

    # Their files

    def write(self) -> None:
        """Repeating it does no harm."""
        self.by_time.append(self._max_timestamp, self._offset_of_max_timestamp)
        self._disk.write_in_place(self._path(OFFSET_INDEX), self.by_offset.encode())
        self._disk.write_in_place(self._path(TIME_INDEX), self.by_time.encode())
        if self._transaction_index is not None:
            self.write_transactions(self._transaction_index)

    def write_transactions(self, index: TransactionIndex) -> None:
        """There is a file only where there is something to say."""
        self._transaction_index = index
        if len(index):
            self._disk.write_in_place(self._path(TRANSACTION_INDEX), index.encode())
        else:
            self._disk.remove(self._path(TRANSACTION_INDEX))

    def take_over(self) -> None:
        """The segment is written again: from now on only memory has them. A later start might believe what their files said."""
        self._offset_index, self._time_index = self.by_offset, self.by_time
        self._transaction_index = self.of_transactions
        for kind in INDEXES:
            self._disk.remove(self._path(kind))

    def resume(self) -> tuple[int, bool]:
        """Go on after a clean stop: the offset at which the segment ends, and whether its index files were as they should be.

        CorruptBatch if the segment does not end with whole batches.
        """
        try:
            self._offset_index, self._time_index = self._read_offset_index(), self._read_time_index()
        except (CorruptIndex, CorruptBatch):
            return self.rebuild(), False
        return self._count_tail(), True

    def rebuild(self) -> int:
        """Offset and time index, from the batches' headers. The offset at which the segment ends."""
        transaction_index = self._transaction_index
        self.start()
        self._transaction_index = transaction_index
        next_offset = self._base_offset
        for position, header in headers(self._file):
            self.count(position, header.size, header.last_offset, header.max_timestamp)
            next_offset = header.next_offset
        return next_offset

    def replace(self) -> None:
        """Rebuild what cannot be believed. A full disk is no reason not to read: then it is rebuilt again next time."""
        self.rebuild()
        with suppress(StorageFailed):
            self.write()

    def _read_offset_index(self) -> OffsetIndex:
        if not self._file.size:
            return OffsetIndex(self._base_offset)
        path = self._path(OFFSET_INDEX)
        if not self._disk.exists(path):
            raise CorruptIndex("the file is missing")
        index = OffsetIndex.decode(self._base_offset, self._disk.read_file(path), self._file.size)
        offset, position = index.last_entry
        for at, header in headers(self._file, position):
            if at == position and position and header.last_offset != offset:
                raise CorruptIndex(f"no batch at {position} ends with offset {offset}")
            if at - position > self._interval_bytes:
                raise CorruptIndex(f"the batch at {at} should have an entry")
        return index

    def _read_time_index(self) -> TimeIndex:
        if not self._file.size:
            return TimeIndex(self._base_offset)
        path = self._path(TIME_INDEX)
        index = TimeIndex.decode(self._base_offset, self._disk.read_file(path) if self._disk.exists(path) else b"")
        if not len(index):
            # Of a segment with timestamps even the shortest has one entry, and segments without any are rare.
            raise CorruptIndex("there is no entry")
        return index

    def _read_transaction_index(self) -> TransactionIndex:
        path = self._path(TRANSACTION_INDEX)
        if not self._disk.exists(path):
            return TransactionIndex()
        index = TransactionIndex.decode(self._base_offset, self._disk.read_file(path))
        if index.first_offset == NOTHING_ABORTED:
            raise CorruptIndex("there is a file, so there was something to say")
        return index
