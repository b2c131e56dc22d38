"""A compacted log on a real disk that tests fill, clean and read back the way consumers do."""

from collections.abc import Iterator
from pathlib import Path

from oncelog.log.cleaner import CleanedLog, clean
from oncelog.log.cleaner_offset_map import DEFAULT_MAX_KEYS
from oncelog.log.log_config import CleanupPolicy, LogConfig
from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.log.reading import Read
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import BatchHeader, batches, crc_matches
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.control import ControlType, end_transaction_marker, read_control_record
from oncelog.records.record import Record, read_records
from oncelog.runtime.disk import RealDisk

ORDERS = TopicPartition("orders", 0)
START_MS = 1_700_000_000_000
RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=frozenset({CleanupPolicy.COMPACT}),
    segment_bytes=100_000,
    index_interval_bytes=100,
    delete_retention_ms=RETENTION_MS,
    file_delete_delay_ms=0,
    min_cleanable_dirty_ratio=0.5,
)


class CompactedLog:
    def __init__(self, root: Path, config: LogConfig = CONFIG) -> None:
        self.root = root
        self.config = config
        self.now_ms = START_MS
        self.sequences: dict[int, int] = {}
        self.log: PartitionLog
        self.open(clean_shutdown=True)

    def open(self, *, clean_shutdown: bool) -> None:
        self.disk = RealDisk(self.root)
        self.log = PartitionLog.open(
            self.disk, str(ORDERS), ORDERS, self.config, self.now_ms, clean_shutdown=clean_shutdown
        )
        self.log.advance_high_watermark(self.log.log_end_offset)

    def crash(self) -> None:
        """The process is gone; what it wrote is there."""
        self.disk.close()
        self.open(clean_shutdown=False)

    def restart(self) -> None:
        self.log.close()
        self.disk.close()
        self.open(clean_shutdown=True)

    @property
    def directory(self) -> Path:
        return self.root / str(ORDERS)

    # Writing

    def put(
        self,
        *pairs: tuple[str | None, str | None],
        producer_id: int = -1,
        transactional: bool = False,
        compression: Compression = Compression.NONE,
    ) -> int:
        """One batch; the offset of its first record."""
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        batch = build_batch(
            [(_bytes(key), _bytes(value)) for key, value in pairs],
            timestamp_ms=self.now_ms,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            compression=compression,
        )
        self.sequences[producer_id] = sequence + len(pairs)
        return self._append(batch, from_client=True)

    def end(self, producer_id: int, *, committed: bool) -> int:
        return self._append(end_transaction_marker(producer_id, 0, committed, 0, self.now_ms), from_client=False)

    def _append(self, batch: bytes, *, from_client: bool) -> int:
        appended = self.log.append_as_leader(batch, 0, self.now_ms, from_client=from_client)
        assert isinstance(appended, Appended), appended
        self.log.advance_high_watermark(self.log.log_end_offset)
        return appended.base_offset

    def roll(self) -> None:
        """Whatever was written so far is no longer in the segment being written."""
        assert self.log.roll_if_due(self.now_ms + 2 * self.config.segment_ms)

    def clean(self, max_keys: int = DEFAULT_MAX_KEYS) -> CleanedLog | None:
        job = clean(self.log, self.now_ms, max_keys=max_keys)
        while True:
            try:
                next(job)
            except StopIteration as end:
                return end.value

    # Reading

    def read(self, from_offset: int = 0, max_bytes: int = 1 << 20) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch from an offset on, in as many reads as it takes."""
        offset = from_offset
        while offset < self.log.log_end_offset:
            read = self.log.read(offset, max_bytes, self.log.log_end_offset, True)
            assert isinstance(read, Read), read
            if not read.records:
                return
            for position, header in batches(read.records):
                assert crc_matches(read.records, position, header)
                if header.last_offset >= from_offset:
                    yield header, bytes(read.records[position : position + header.size])
            assert read.next_offset > offset
            offset = read.next_offset

    def records(self, from_offset: int = 0, max_bytes: int = 1 << 20) -> list[Record]:
        """What a read_committed consumer is given: control records and aborted data left out."""
        stable = self.log.last_stable_offset
        waiting = sorted(self.log.aborted_transactions(from_offset, stable), key=lambda entry: entry.first_offset)
        aborted: set[int] = set()
        found: list[Record] = []
        for header, batch in self.read(from_offset, max_bytes):
            if header.last_offset >= stable:
                break
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            if header.is_control:
                if header.record_count and read_control_record(batch).type is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += (record for record in read_records(batch) if record.offset >= from_offset)
        return found

    def pairs(self) -> list[tuple[str | None, str | None]]:
        return [(_text(record.key), _text(record.value)) for record in self.records()]

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def headers(self) -> list[BatchHeader]:
        return [header for header, _ in self.read()]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
