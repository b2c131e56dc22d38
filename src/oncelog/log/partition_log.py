"""The log of one partition: batches in offset order, appended at the end, read from anywhere, removed from the front.

Always: log_start_offset <= high_watermark <= log_end_offset, last_stable_offset <= high_watermark; segments cover the range without
a gap, and only the last one is written.

An append checks everything first, then makes one write, then changes what is in memory: a write that fails leaves the log as it
was. How far the high watermark may go is not decided here but by the owner, who knows the replicas and the flush policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from oncelog.log.checkpoints import write_leader_epochs
from oncelog.log.file_names import (
    CLEANED,
    LEADER_EPOCH_CHECKPOINT,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    segment_file,
)
from oncelog.log.flushing import FlushTask
from oncelog.log.leader_epochs import LeaderEpochs
from oncelog.log.log_config import LONG_MAX, LogConfig
from oncelog.log.offset_index import LARGEST_RELATIVE_OFFSET, CorruptIndex
from oncelog.log.producer_snapshot import encode_snapshot
from oncelog.log.producer_state import BatchMetadata, Origin, Producer, ProducerState
from oncelog.log.reading import NO_TRIM, Read, ReadPlan
from oncelog.log.recovery import (
    LoadedLog,
    load_log,
    rebuild_producers,
    rebuild_transaction_index,
    remove_segments,
    remove_snapshots,
    replay,
)
from oncelog.log.retention import outlived
from oncelog.log.segment import Segment
from oncelog.log.segments import Segments
from oncelog.log.storage import Disk, StorageFailed
from oncelog.log.time_lookup import TimestampOffset, find_max_timestamp, find_timestamp
from oncelog.log.transaction_index import AbortedTransaction
from oncelog.model.bytes_like import BytesLike
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    CorruptBatch,
    TimestampType,
    batches,
    crc_matches,
    read_header,
    stamp,
)
from oncelog.records.builder import recompress
from oncelog.records.control import read_control_record
from oncelog.records.validation import ProduceRules, validate_produced

_OFFSET_LENGTH_EPOCH = Struct(">qii")
NO_APPEND_TIME = -1
NOT_KNOWN = -1
TIME_INDEX_ENTRY = 12


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    #: When the broker stamped it; -1 where the producer's own timestamps are kept.
    log_append_time_ms: int
    log_start_offset: int
    #: It was there already: the producer sent it twice.
    duplicate: bool


@dataclass(slots=True)
class Incoming:
    """A batch that may be written: the bytes, and what its header says once they are."""

    data: bytearray | memoryview
    header: BatchHeader


class PartitionLog:
    __slots__ = (
        "topic_partition",
        "config",
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "flushed_offset",
        "cleaned_offset",
        "closed",
        "truncated_bytes",
        "_disk",
        "_directory",
        "_segments",
        "_active",
        "_producers",
        "_epochs",
        "_snapshots",
        "_rules",
        "_append_time",
        "_room",
        "_roll_at",
        "_last_fitting_offset",
        "_written_end_offset",
        "_new_files",
    )

    def __init__(
        self, disk: Disk, directory: str, topic_partition: TopicPartition, config: LogConfig, loaded: LoadedLog
    ) -> None:
        self.topic_partition = topic_partition
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.log_start_offset
        #: Everything below is on stable storage: the recovery point.
        self.flushed_offset = loaded.log_start_offset
        #: Compaction has been through everything below.
        self.cleaned_offset = 0
        self.closed = False
        #: What opening cut off because it was not whole or not intact.
        self.truncated_bytes = loaded.truncated_bytes
        self._disk = disk
        self._directory = directory
        self._segments = Segments(disk, directory, config.index_interval_bytes, loaded.segments)
        self._producers: ProducerState = loaded.producers
        self._epochs: LeaderEpochs = loaded.epochs
        self._snapshots = loaded.snapshots
        self._written_end_offset = NOT_KNOWN
        self._new_files = True
        self.update_config(config)

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        now_ms: int,
        *,
        clean_shutdown: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        cleaned_offset: int = 0,
    ) -> "PartitionLog":
        """Open what an earlier run left in `directory`, or begin a new log there. StorageFailed if the disk refuses.

        The offsets are those of the data directory's checkpoints; 0 where there is none. Without a clean shutdown everything from
        the recovery point on is read and checked.
        """
        if not disk.exists(directory):
            disk.make_directory(directory)
        loaded = load_log(
            disk,
            directory,
            config.index_interval_bytes,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        log = cls(disk, directory, topic_partition, config, loaded)
        if clean_shutdown:
            log.flushed_offset = log._written_end_offset = log.log_end_offset
            log._new_files = False
        else:
            log.flushed_offset = min(max(recovery_point, log.log_start_offset), log.log_end_offset)
        log.cleaned_offset = cleaned_offset if cleaned_offset <= log.log_end_offset else 0
        log._producers.expire(now_ms, config.producer_id_expiration_ms)
        log.advance_high_watermark(min(high_watermark, log.log_end_offset))
        return log

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._rules = ProduceRules(
            max_message_bytes=config.max_message_bytes,
            compacted=config.compacts,
            timestamp_type=config.message_timestamp_type,
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        )
        self._append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        self._measure_active()

    @property
    def last_stable_offset(self) -> int:
        unstable = self._producers.transactions.first_unstable_offset
        return unstable if 0 <= unstable < self.high_watermark else self.high_watermark

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> Segments:
        return self._segments

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    def advance_high_watermark(self, offset: int) -> bool:
        """Everything below `offset` is acknowledged. True if that moved anything."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self._producers.transactions.advance(offset)
        return True

    # Appending

    def append_as_leader(
        self,
        records: BytesLike,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        transaction_version: int = 0,
    ) -> Appended | Refused:
        """Take a batch into the log: give it its offsets and write it. Bytes that can be written to are changed in place.

        A client sends one data batch, which is validated in full. The broker's own batches may be several and control batches;
        `transaction_version` says under which rules a marker is written. A refusal may be a `RecordsRefused`: it says what is
        wrong with which record.
        """
        try:
            if from_client:
                return self._append_produced(records, leader_epoch, now_ms)
            return self._append_own(records, leader_epoch, now_ms, transaction_version)
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))

    def _append_produced(self, records: BytesLike, leader_epoch: int, now_ms: int) -> Appended | Refused:
        produced = validate_produced(records, self._rules, now_ms)
        if isinstance(produced, Refused):
            return produced
        header, max_timestamp, needs_stamp = produced
        compression = self.config.compression_type
        if compression is not None and compression != header.attributes & COMPRESSION_BITS:
            records = bytearray(recompress(records, compression))
            header = read_header(records)
            if header.size > self.config.max_message_bytes:
                return Refused(ErrorCode.MESSAGE_TOO_LARGE, f"recompressed, the batch has {header.size} bytes")
        batch = records if isinstance(records, memoryview) and not records.readonly else bytearray(records)
        if needs_stamp:
            stamp(batch, 0, header, self.config.message_timestamp_type, max_timestamp)
            header = read_header(batch)
        by_producer = header.producer_id >= 0
        if by_producer:
            verdict = self._producers.check_batch(header, Origin.CLIENT)
            if verdict is not None:
                return verdict if isinstance(verdict, Refused) else self._appended_before(verdict)
        size = header.batch_length + LOG_OVERHEAD
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if leader_epoch != self._epochs.latest:
            self._take_epoch(leader_epoch)
        if size > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
            refused = self._make_room(size, max_timestamp, last_offset)
            if refused is not None:
                return refused
        _OFFSET_LENGTH_EPOCH.pack_into(batch, 0, base_offset, header.batch_length, leader_epoch)
        self._active.append(batch, size, last_offset, max_timestamp)
        self._room -= size
        self.log_end_offset = last_offset + 1
        if by_producer:
            self._producers.apply_batch(header, base_offset)
        append_time = max_timestamp if self._append_time else NO_APPEND_TIME
        return Appended(base_offset, last_offset, append_time, self.log_start_offset, False)

    def _appended_before(self, batch: BatchMetadata) -> Appended:
        append_time = batch.timestamp if self._append_time else NO_APPEND_TIME
        return Appended(batch.first_offset, batch.last_offset, append_time, self.log_start_offset, True)

    def _append_own(
        self, records: BytesLike, leader_epoch: int, now_ms: int, transaction_version: int
    ) -> Appended | Refused:
        data = bytearray(records)
        try:
            found = list(batches(data))
        except CorruptBatch as problem:
            return Refused(ErrorCode.CORRUPT_MESSAGE, str(problem))
        if not found:
            return Refused(ErrorCode.INVALID_RECORD, "no batch to append")
        producers = self._producers if len(found) == 1 else self._producers.copy()
        next_offset = self.log_end_offset
        written: list[tuple[int, BatchHeader]] = []
        for position, header in found:
            if header.size > self.config.max_message_bytes:
                return Refused(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {header.size} bytes")
            if self._append_time:
                stamp(data, position, header, TimestampType.LOG_APPEND_TIME, now_ms)
            _OFFSET_LENGTH_EPOCH.pack_into(data, position, next_offset, header.batch_length, leader_epoch)
            header = read_header(data, position)
            refused = self._check_own(producers, header, data, position, transaction_version)
            if refused is not None:
                return refused
            if producers is not self._producers:
                replay(producers, header, data, position)
            written.append((position, header))
            next_offset = header.next_offset
        if leader_epoch != self._epochs.latest:
            self._take_epoch(leader_epoch)
        refused = self._write(data, written)
        if refused is not None:
            return refused
        append_time = now_ms if self._append_time else NO_APPEND_TIME
        return Appended(written[0][1].base_offset, next_offset - 1, append_time, self.log_start_offset, False)

    def _check_own(
        self, producers: ProducerState, header: BatchHeader, data: bytearray, position: int, transaction_version: int
    ) -> Refused | None:
        if header.producer_id < 0:
            return None
        if header.attributes & CONTROL_BIT:
            return producers.check_marker(header, read_control_record(data, position), transaction_version)
        verdict = producers.check_batch(header, Origin.COORDINATOR)
        return verdict if isinstance(verdict, Refused) else None

    def append_as_follower(self, records: BytesLike) -> Refused | None:
        """Take over what the leader sent, offsets and all. It has been checked there; here only that it is intact and follows."""
        data = bytearray(records)
        try:
            found = list(batches(data))
            next_offset = self.log_end_offset
            for position, header in found:
                if header.base_offset < next_offset:
                    return Refused(
                        ErrorCode.UNKNOWN_SERVER_ERROR, f"offset {header.base_offset} after {next_offset - 1}"
                    )
                if not crc_matches(data, position, header):
                    return Refused(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is damaged")
                next_offset = header.next_offset
            for _, header in found:
                if header.partition_leader_epoch > self._epochs.latest:
                    self._take_epoch(header.partition_leader_epoch, header.base_offset)
            return self._write(data, found) if found else None
        except CorruptBatch as problem:
            return Refused(ErrorCode.CORRUPT_MESSAGE, str(problem))
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))

    def _write(self, data: bytearray, written: list[tuple[int, BatchHeader]]) -> Refused | None:
        """Write batches that carry their offsets already, and remember what they say."""
        max_timestamp = max(header.max_timestamp for _, header in written)
        last_offset = written[-1][1].last_offset
        if len(data) > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
            refused = self._make_room(len(data), max_timestamp, last_offset, written[0][1].base_offset)
            if refused is not None:
                return refused
        start = self._active.size
        self._active.file.append(data)
        self._room -= len(data)
        for position, header in written:
            self._active.index_batch(start + position, header)
            self.log_end_offset = header.next_offset
            aborted = replay(self._producers, header, data, position)
            if aborted is not None:
                self._active.transaction_index.append(aborted)
        return None

    def _take_epoch(self, leader_epoch: int, start_offset: int | None = None) -> None:
        """Batches are of a new leader epoch from here on. Written down before the first of them is."""
        start_offset = self.log_end_offset if start_offset is None else start_offset
        if leader_epoch >= 0 and self._epochs.assign(leader_epoch, start_offset):
            self._write_epochs()

    def _write_epochs(self) -> None:
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        self._disk.write_file(path, write_leader_epochs(self._epochs.entries))

    # Rolling

    def _measure_active(self) -> None:
        """How much the segment being written may still take, and until which timestamp."""
        config = self.config
        self._active = active = self._segments.active
        # Each index entry stands for more than an interval of log: with this much log the index file stays below its limit, too.
        most_by_index = config.segment_index_bytes // TIME_INDEX_ENTRY * max(config.index_interval_bytes, HEADER_SIZE)
        self._room = min(config.segment_bytes, most_by_index) - active.size
        self._roll_at = NOT_KNOWN
        self._last_fitting_offset = active.base_offset + LARGEST_RELATIVE_OFFSET

    def _roll_timestamp(self, first_timestamp: int) -> int:
        """The largest timestamp a segment takes whose first batch has `first_timestamp`."""
        if first_timestamp < 0:
            return LONG_MAX
        jitter = self.config.segment_jitter_ms
        # Not by chance, so that a run can be repeated; only spread so that partitions do not all roll at once.
        spread = hash((self.topic_partition, self._active.base_offset)) % jitter if jitter > 0 else 0
        return first_timestamp + self.config.segment_ms - spread

    def _make_room(
        self, size: int, max_timestamp: int, last_offset: int, first_offset: int | None = None
    ) -> Refused | None:
        """The segment being written is full or too old, or that is not known yet: see, and roll if so."""
        if size > self.config.segment_bytes:
            return Refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are more than a segment takes (segment.bytes is {self.config.segment_bytes})",
            )
        if self._active.size:
            if self._roll_at == NOT_KNOWN:
                self._roll_at = self._roll_timestamp(self._active.header_at(0).max_timestamp)
            if size > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
                self._roll()
        if not self._active.size:
            if first_offset is not None and last_offset > self._last_fitting_offset:
                self._segments.restart_at(first_offset)
            self._measure_active()
            self._roll_at = self._roll_timestamp(max_timestamp)
        return None

    def _roll(self) -> None:
        """Begin a new segment at the end of the log. All that belongs to the old one is written before the new one exists."""
        self._written_end_offset = NOT_KNOWN
        self._active.write_indexes()
        self._take_snapshot()
        self._segments.add(self.log_end_offset)
        self._new_files = True
        self._measure_active()

    def roll_if_due(self, now_ms: int) -> bool:
        """Roll a segment that has been written to for longer than segment.ms, also if nobody writes to it any more."""
        if not self._active.size:
            return False
        first_timestamp = self._active.header_at(0).max_timestamp
        if first_timestamp < 0:
            first_timestamp = self._active.largest_timestamp()
        if now_ms <= self._roll_timestamp(first_timestamp):
            return False
        self._roll()
        return True

    def _take_snapshot(self) -> None:
        offset = self.log_end_offset
        if self._snapshots and self._snapshots[-1] >= offset:
            return
        path = f"{self._directory}/{segment_file(offset, PRODUCER_SNAPSHOT)}"
        self._disk.write_file(path, encode_snapshot(self._producers))
        # The one a clean stop took at what was then the end has served its turn.
        while self._snapshots and self._snapshots[-1] not in self._segments.bases:
            self._disk.remove(f"{self._directory}/{segment_file(self._snapshots.pop(), PRODUCER_SNAPSHOT)}")
        self._snapshots.append(offset)

    # Reading

    def read(self, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool) -> Read | Refused:
        """Whole batches from the one with `from_offset` on, at most `max_bytes` of them, none that reaches `up_to`.

        The first batch comes whole even if it is larger, where `at_least_one_batch` asks for that.
        """
        plan = self.locate(from_offset, max_bytes, up_to, at_least_one_batch)
        if not isinstance(plan, ReadPlan):
            return plan
        try:
            return plan.finish(plan.file.read_at(plan.position, plan.length))
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))

    def locate(
        self, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool
    ) -> ReadPlan | Read | Refused:
        """Where the bytes of a read are, for who fetches them himself; or the answer if there is nothing to fetch."""
        if from_offset < self.log_start_offset or from_offset > self.log_end_offset:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {from_offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        try:
            return self._locate(from_offset, max_bytes, min(up_to, self.log_end_offset), at_least_one_batch)
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
        except CorruptBatch as problem:
            return Refused(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition} is damaged on disk: {problem}")

    def _locate(self, from_offset: int, max_bytes: int, up_to: int, at_least_one_batch: bool) -> ReadPlan | Read:
        segments = self._segments
        number = len(segments) - 1
        if from_offset < self._active.base_offset:
            number = segments.number_holding(from_offset)
        while from_offset < up_to:
            segment = segments[number]
            number += 1
            end_offset = segments[number].base_offset if number < len(segments) else self.log_end_offset
            if segment is not self._active:
                segments.use(segment)
            start = segment.position_of(from_offset)
            if up_to >= end_offset:
                end, next_offset = segment.file.size, end_offset
            else:
                end, next_offset = segment.position_of(up_to), up_to
            if start >= end:
                # Compaction left nothing of this range here.
                if end_offset >= up_to:
                    break
                continue
            if end - start <= max_bytes:
                return ReadPlan(segment, start, end - start, NO_TRIM, next_offset)
            boundary = segment.offset_index.boundary_before(start + max_bytes - HEADER_SIZE)
            if boundary > start:
                return ReadPlan(segment, start, max_bytes, boundary - start, from_offset)
            first = segment.header_at(start)
            if first.size <= max_bytes:
                return ReadPlan(segment, start, max_bytes, 0, from_offset)
            if not at_least_one_batch:
                break
            return ReadPlan(segment, start, first.size, NO_TRIM, first.next_offset)
        return Read(b"", from_offset)

    def aborted_transactions(self, from_offset: int, up_to: int) -> list[AbortedTransaction]:
        """The aborted transactions that have something in [from_offset, up_to), in the order of their markers (MISSION X2)."""
        found: list[AbortedTransaction] = []
        segments = self._segments
        for number in range(segments.number_holding(from_offset), len(segments)):
            segment = segments[number]
            segments.use(segment)
            try:
                index = segment.transaction_index
            except CorruptIndex:
                rebuild_transaction_index(
                    self._disk, self._directory, list(segments), self._snapshots, self.log_start_offset, number
                )
                index = segment.transaction_index
            if index.collect(from_offset, up_to, found):
                break
        return found

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that is not older. It may lie above the high watermark: the caller knows what its reader may see."""
        return find_timestamp(self._segments, timestamp_ms, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        return find_max_timestamp(self._segments)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` that wrote here, and the offset at which it ended; (-1, -1) if that is not known."""
        return self._epochs.end_offset_of(epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which `offset` was written; -1 if that is not known."""
        return self._epochs.epoch_of(offset)

    # Producers

    @property
    def active_producers(self) -> list[Producer]:
        return list(self._producers)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.producer_epoch == producer_epoch
            and producer.transaction_first_offset >= 0
        )

    def expire_producers(self, now_ms: int) -> int:
        return self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # Removing

    def delete_records_before(self, offset: int) -> int | Refused:
        """The log starts at `offset` from now on (-1: at the high watermark). Where it starts now."""
        if not self.config.deletes:
            return Refused(
                ErrorCode.POLICY_VIOLATION, f"{self.topic_partition} is compacted only: its records are not deleted"
            )
        if offset == -1:
            offset = self.high_watermark
        if offset < 0 or offset > self.high_watermark:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and the high watermark {self.high_watermark}",
            )
        self._start_at(max(offset, self.log_start_offset))
        return self.log_start_offset

    def _start_at(self, offset: int) -> None:
        self.log_start_offset = offset
        if self._epochs.truncate_before(offset):
            self._write_epochs()

    def apply_retention(self, now_ms: int) -> int:
        """Remove the segments the topic does not keep any longer. How many."""
        segments = self._segments
        count = outlived(
            list(segments),
            self.config,
            now_ms,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
        )
        if count:
            if count == len(segments):
                self._roll()
            self._start_at(max(self.log_start_offset, segments[count].base_offset))
            segments.remove_first(count, now_ms + self.config.file_delete_delay_ms)
            while self._snapshots and self._snapshots[0] < segments[0].base_offset:
                self._disk.remove(f"{self._directory}/{segment_file(self._snapshots.pop(0), PRODUCER_SNAPSHOT)}")
        segments.remove_doomed(now_ms)
        return count

    def truncate_to(self, offset: int) -> None:
        """Cut everything from `offset` on: a new leader does not have it."""
        if offset >= self.log_end_offset:
            return
        self._written_end_offset = NOT_KNOWN
        segments = self._segments
        if offset < segments[0].base_offset:
            segments.restart_at(offset)
        else:
            number = segments.number_holding(offset)
            segments.remove_from(number + 1)
            segment = segments.active
            segment.truncate(segment.position_of(offset), offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        if self._epochs.truncate_from(offset):
            self._write_epochs()
        remove_snapshots(self._disk, self._directory, self._snapshots, above=offset)
        self._producers = rebuild_producers(
            self._disk, self._directory, list(segments), self._snapshots, self.log_start_offset, offset
        )
        self._producers.transactions.advance(self.high_watermark)
        self._measure_active()

    # Compacting: what the cleaner writes beside the log and puts into it

    def begin_cleaned_segment(self, base_offset: int) -> Segment:
        return Segment.create(
            self._disk, self._directory, base_offset, self.config.index_interval_bytes, suffix=CLEANED
        )

    def drop_cleaned_segment(self, cleaned: Segment) -> None:
        remove_segments(self._disk, [cleaned])

    def replace_segments(self, old: Sequence[Segment], cleaned: Segment, now_ms: int) -> None:
        """Put a compacted segment, whose files are on stable storage, in the place of the neighbours it was made of."""
        self._segments.replace(old, cleaned, now_ms + self.config.file_delete_delay_ms)
        for segment in old[1:]:
            if segment.base_offset in self._snapshots:
                # It would be taken for one at the beginning of a segment, and there is none any more.
                self._snapshots.remove(segment.base_offset)
                self._disk.remove(f"{self._directory}/{segment_file(segment.base_offset, PRODUCER_SNAPSHOT)}")

    # Stable storage

    def unflushed(self) -> FlushTask | None:
        """What must be synced for everything appended so far to be durable; None if it is."""
        if self.flushed_offset >= self.log_end_offset:
            return None
        segments = self._segments
        unsynced = [segments[number] for number in range(segments.number_holding(self.flushed_offset), len(segments))]
        indexes = [segment.path(kind) for segment in unsynced[:-1] for kind in (OFFSET_INDEX, TIME_INDEX)]
        directory = self._directory if self._new_files else None
        self._new_files = False
        return FlushTask(
            self._disk,
            [segment.file for segment in unsynced],
            indexes,
            directory,
            self.log_end_offset,
            self._note_flushed,
        )

    def _note_flushed(self, offset: int) -> None:
        self.flushed_offset = max(self.flushed_offset, min(offset, self.log_end_offset))

    def close(self) -> None:
        """Write what only memory has, so that the next start needs to read little. StorageFailed: it was no clean stop."""
        if self.log_end_offset != self._written_end_offset:
            self._active.write_indexes()
            self._take_snapshot()
            self._written_end_offset = self.log_end_offset
        self._segments.close()
        self.closed = True
