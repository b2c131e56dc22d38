"""The log of one partition: batches in offset order, appended at the end, read from anywhere, removed from the front.

Always: log_start_offset <= high_watermark <= log_end_offset, last_stable_offset <= high_watermark; segments cover the range without
a gap, and only the last one is written.

An append checks everything first, then makes one write, then changes what is in memory: a write that fails leaves the log as it
was. How far the high watermark may go is not decided here but by the owner, who knows the replicas and the flush policy.
"""

from collections.abc import Sequence
from typing import NamedTuple

from oncelog.log.checkpoints import write_leader_epochs
from oncelog.log.file_names import INDEXES, LEADER_EPOCH_CHECKPOINT, PRODUCER_SNAPSHOT
from oncelog.log.flushing import FlushTask
from oncelog.log.leader_epochs import LeaderEpochs
from oncelog.log.log_config import LogConfig
from oncelog.log.offset_index import LARGEST_RELATIVE_OFFSET, CorruptIndex
from oncelog.log.placing import NO_APPEND_TIME, OFFSET_LENGTH_EPOCH, Placed, place_own, place_replicated
from oncelog.log.producer_state import BatchMetadata, Origin, Producer
from oncelog.log.reading import Read, ReadPlan, plan_read
from oncelog.log.recovery import LoadedLog, load_log, rebuild_producers, rebuild_transaction_index, replay
from oncelog.log.retention import outlived
from oncelog.log.rolling import capacity, latest_timestamp
from oncelog.log.segment import Segment
from oncelog.log.segments import Segments
from oncelog.log.storage import Disk, StorageFailed
from oncelog.log.time_lookup import TimestampOffset, find_max_timestamp, find_timestamp
from oncelog.log.transaction_index import AbortedTransaction, TransactionIndex
from oncelog.model.bytes_like import BytesLike
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import (
    COMPRESSION_BITS,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    CorruptBatch,
    TimestampType,
    read_header,
    stamp,
)
from oncelog.records.builder import recompress
from oncelog.records.control import ControlRecord, ControlType
from oncelog.records.own_batches import end_marker_batch, single_record_batch
from oncelog.records.validation import ProduceRules, validate_produced

NOT_KNOWN = -1


_new = tuple.__new__


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    #: When the broker stamped it; -1 where the producer's own timestamps are kept.
    log_append_time_ms: int
    log_start_offset: int
    #: It was there already: the producer sent it twice.
    duplicate: bool


class PartitionLog:
    __slots__ = (
        "topic_partition",
        "config",
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "flushed_offset",
        "cleaned_offset",
        "truncated_bytes",
        "closed",
        "segments",
        "_disk",
        "_directory",
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
        "_unsynced_names",
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
        #: Compaction has been through everything below; its owner keeps it in a checkpoint.
        self.cleaned_offset = loaded.log_start_offset
        self.closed = False
        #: What opening cut off because it was not whole or not intact.
        self.truncated_bytes = loaded.truncated_bytes
        self.segments = Segments(disk, directory, config.index_interval_bytes, loaded.segments)
        self._disk = disk
        self._directory = directory
        self._producers = loaded.producers
        self._epochs = loaded.epochs
        self._snapshots = loaded.snapshots
        self._written_end_offset = NOT_KNOWN
        self._unsynced_names = 1
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
        if loaded.resumed:
            log.flushed_offset = log.log_end_offset
            log._unsynced_names = 0
            if loaded.files_complete:
                log._written_end_offset = log.log_end_offset
        else:
            log.flushed_offset = min(max(recovery_point, log.log_start_offset), log.log_end_offset)
        log._producers.expire(now_ms, config.producer_id_expiration_ms)
        log.advance_high_watermark(high_watermark)
        log.cleaned_offset = min(cleaned_offset, log.log_end_offset)
        return log

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.segments.index_interval_bytes = config.index_interval_bytes
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
        if unstable < 0 or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    def advance_high_watermark(self, offset: int) -> bool:
        """Everything below `offset` is acknowledged. True if that moved anything."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
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
                return Refused(
                    ErrorCode.MESSAGE_TOO_LARGE, f"compressed as the topic wants it, the batch has {header.size} bytes"
                )
        batch = records if isinstance(records, memoryview) and not records.readonly else bytearray(records)
        if needs_stamp:
            stamp(batch, 0, header, self.config.message_timestamp_type, max_timestamp)
            header = read_header(batch)
        by_producer = header.producer_id >= 0
        if by_producer:
            verdict = self._producers.check_batch(header, Origin.CLIENT)
            if verdict is not None:
                return verdict if isinstance(verdict, Refused) else self._appended_before(verdict)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        refused = self._write_at_end(batch, header.batch_length, last_offset, max_timestamp, leader_epoch)
        if refused is not None:
            return refused
        if by_producer:
            self._producers.apply_batch(header, base_offset)
        append_time = max_timestamp if self._append_time else NO_APPEND_TIME
        return _new(Appended, (base_offset, last_offset, append_time, self.log_start_offset, False))

    def _write_at_end(
        self, batch: bytearray | memoryview, batch_length: int, last_offset: int, max_timestamp: int, leader_epoch: int
    ) -> Refused | None:
        """Give one batch the next offsets and write it."""
        size = batch_length + LOG_OVERHEAD
        base_offset = self.log_end_offset
        if leader_epoch != self._epochs.latest:
            self._take_epoch(leader_epoch, base_offset)
        if size > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
            refused = self._make_room(size, max_timestamp, base_offset, last_offset)
            if refused is not None:
                return refused
        OFFSET_LENGTH_EPOCH.pack_into(batch, 0, base_offset, batch_length, leader_epoch)
        try:
            self._active.append(batch, size, last_offset, max_timestamp)
        except StorageFailed:
            # As it came: whoever sent it may try the same bytes again, and a batch that has no place yet starts at 0.
            OFFSET_LENGTH_EPOCH.pack_into(batch, 0, 0, batch_length, NO_LEADER_EPOCH)
            raise
        self._room -= size
        self.log_end_offset = last_offset + 1
        return None

    def append_record(self, key: bytes, value: bytes | None, leader_epoch: int, now_ms: int) -> Appended | Refused:
        """Write one record of the broker's own, which no producer numbers. For internal topics: they keep create times."""
        batch = single_record_batch(key, value, now_ms)
        if len(batch) > self.config.max_message_bytes:
            return Refused(ErrorCode.MESSAGE_TOO_LARGE, f"{len(batch)} bytes are more than max.message.bytes")
        return self._append_alone(batch, leader_epoch, now_ms)

    def append_end_marker(
        self,
        producer: ProducerIdentity,
        marker: ControlRecord,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int,
    ) -> Appended | Refused:
        """End a transaction here (MISSION T10): what `append_as_leader` does with such a batch, the short way."""
        producer_id, producer_epoch = producer
        committed = marker.type is ControlType.COMMIT
        batch = end_marker_batch(producer_id, producer_epoch, committed, marker.coordinator_epoch, now_ms)
        header = read_header(batch)
        refused = self._producers.check_marker(header, marker, transaction_version)
        if refused is not None:
            return refused
        appended = self._append_alone(batch, leader_epoch, now_ms)
        if isinstance(appended, Appended):
            completed = self._producers.apply_marker(header, marker, appended.base_offset)
            if completed is not None and completed.aborted:
                self._active.add_aborted(
                    AbortedTransaction(
                        completed.producer_id,
                        completed.first_offset,
                        completed.last_offset,
                        completed.last_stable_offset,
                    )
                )
        return appended

    def _append_alone(self, batch: bytearray, leader_epoch: int, now_ms: int) -> Appended | Refused:
        offset = self.log_end_offset
        append_time = NO_APPEND_TIME
        if self._append_time:
            stamp(batch, 0, read_header(batch), TimestampType.LOG_APPEND_TIME, now_ms)
            append_time = now_ms
        try:
            refused = self._write_at_end(batch, len(batch) - LOG_OVERHEAD, offset, now_ms, leader_epoch)
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
        if refused is not None:
            return refused
        return Appended(offset, offset, append_time, self.log_start_offset, False)

    def _appended_before(self, batch: BatchMetadata) -> Appended:
        append_time = batch.timestamp if self._append_time else NO_APPEND_TIME
        return Appended(batch.first_offset, batch.last_offset, append_time, self.log_start_offset, True)

    def _append_own(
        self, records: BytesLike, leader_epoch: int, now_ms: int, transaction_version: int
    ) -> Appended | Refused:
        base_offset = self.log_end_offset
        append_time = now_ms if self._append_time else NO_APPEND_TIME
        placed = place_own(
            records,
            base_offset,
            leader_epoch,
            self._producers,
            max_message_bytes=self.config.max_message_bytes,
            append_time_ms=append_time,
            transaction_version=transaction_version,
        )
        if isinstance(placed, Refused):
            return placed
        self._take_epoch(leader_epoch, base_offset)
        refused = self._write(placed)
        if refused is not None:
            return refused
        return Appended(base_offset, self.log_end_offset - 1, append_time, self.log_start_offset, False)

    def append_as_follower(self, records: BytesLike) -> Refused | None:
        """Take over what the leader sent, offsets and all."""
        placed = place_replicated(records, self.log_end_offset)
        if isinstance(placed, Refused) or not placed.batches:
            return placed if isinstance(placed, Refused) else None
        try:
            for _, header in placed.batches:
                if header.partition_leader_epoch > self._epochs.latest:
                    self._take_epoch(header.partition_leader_epoch, header.base_offset)
            return self._write(placed)
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))

    def _write(self, placed: Placed) -> Refused | None:
        """Write batches that carry their offsets, and remember what they say."""
        size = len(placed.data)
        max_timestamp = max(header.max_timestamp for _, header in placed.batches)
        first_offset, last_offset = placed.batches[0][1].base_offset, placed.batches[-1][1].last_offset
        if size > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
            refused = self._make_room(size, max_timestamp, first_offset, last_offset)
            if refused is not None:
                return refused
        active = self._active
        start = active.size
        active.file.append(placed.data)
        self._room -= size
        self.log_end_offset = last_offset + 1
        for position, header in placed.batches:
            active.indexes.count(start + position, header.size, header.last_offset, header.max_timestamp)
            aborted = replay(self._producers, header, placed.data, position)
            if aborted is not None:
                active.add_aborted(aborted)
        return None

    def _take_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Batches are of another leader epoch from here on: written down before the first of them is. Who may lead is the owner's
        business: an epoch below the last one is taken like any other, and what it contradicts is forgotten."""
        epochs = LeaderEpochs(self._epochs.entries)
        if leader_epoch >= 0 and epochs.assign(leader_epoch, start_offset):
            self._keep_epochs(epochs)

    def _keep_epochs(self, epochs: LeaderEpochs) -> None:
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        self._disk.write_file(path, write_leader_epochs(epochs.entries))
        self._epochs = epochs

    # Rolling

    def _measure_active(self) -> None:
        """How much the segment being written may still take. Until which timestamp is seen when it is next written."""
        self._active = active = self.segments.active
        self._room = capacity(self.config) - active.size
        self._roll_at = NOT_KNOWN
        self._last_fitting_offset = active.base_offset + LARGEST_RELATIVE_OFFSET

    def _latest_timestamp(self, first_timestamp: int) -> int:
        # Not by chance, so that a run can be repeated.
        spread_by = sum(self.topic_partition.topic.encode()) + self.topic_partition.partition + self._active.base_offset
        return latest_timestamp(self.config, first_timestamp, spread_by)

    def _make_room(self, size: int, max_timestamp: int, first_offset: int, last_offset: int) -> Refused | None:
        """The segment being written is full or too old, or that is not known yet: see, and roll if so."""
        if size > self.config.segment_bytes:
            return Refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are more than a segment takes (segment.bytes is {self.config.segment_bytes})",
            )
        if self._active.size:
            if self._roll_at == NOT_KNOWN:
                self._roll_at = self._latest_timestamp(self._active.header_at(0).max_timestamp)
            if size > self._room or max_timestamp > self._roll_at or last_offset > self._last_fitting_offset:
                self._roll(first_offset)
        elif last_offset > self._last_fitting_offset:
            # A follower of a log that was compacted, or that starts late: offsets may be far from where this one begins.
            self.segments.remove_from(len(self.segments) - 1)
            self.segments.add(first_offset)
            self._measure_active()
        if not self._active.size:
            self._roll_at = self._latest_timestamp(max_timestamp)
        return None

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment. All that belongs to the old one is written before the new one exists."""
        self._written_end_offset = NOT_KNOWN
        self._active.write_indexes()
        self._snapshots.take(base_offset, self._producers, self.segments.bases)
        self.segments.add(base_offset)
        self._unsynced_names += 1
        self._measure_active()

    def roll_if_due(self, now_ms: int) -> bool:
        """Roll a segment that has been written to for longer than segment.ms, also if nobody writes to it any more."""
        if not self._active.size:
            return False
        first_timestamp = self._active.header_at(0).max_timestamp
        if first_timestamp < 0:
            first_timestamp = self._active.largest_timestamp()
        if now_ms <= self._latest_timestamp(first_timestamp):
            return False
        self._roll(self.log_end_offset)
        return True

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
        end_offset = self.log_end_offset
        if from_offset < self.log_start_offset or from_offset > end_offset:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {from_offset} is not between {self.log_start_offset} and {end_offset}",
            )
        try:
            return plan_read(
                self.segments, end_offset, from_offset, max_bytes, min(up_to, end_offset), at_least_one_batch
            )
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
        except CorruptBatch as problem:
            return Refused(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition} is damaged on disk: {problem}")

    def aborted_transactions(self, from_offset: int, up_to: int) -> list[AbortedTransaction]:
        """The aborted transactions that have something in [from_offset, up_to), in the order of their markers (MISSION X2)."""
        found: list[AbortedTransaction] = []
        for number in range(self.segments.number_holding(from_offset), len(self.segments)):
            if self._first_aborted_offset(number) >= up_to:
                continue
            if self._transaction_index(number).collect(from_offset, up_to, found):
                break
        return found

    def _first_aborted_offset(self, number: int) -> int:
        try:
            return self.segments[number].indexes.first_aborted_offset
        except CorruptIndex:
            self._transaction_index(number)
            return self.segments[number].indexes.first_aborted_offset

    def _transaction_index(self, number: int) -> TransactionIndex:
        segment = self.segments[number]
        self.segments.use(segment)
        try:
            return segment.indexes.of_transactions
        except CorruptIndex:
            return rebuild_transaction_index(list(self.segments), number, self._snapshots)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that is not older. It may lie above the high watermark: the caller knows what its reader may see."""
        return find_timestamp(self.segments, timestamp_ms, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        return find_max_timestamp(self.segments)

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

    def knows_producer(self, producer_id: int) -> bool:
        return self._producers.get(producer_id) is not None

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
        try:
            self._start_at(max(offset, self.log_start_offset))
        except StorageFailed as problem:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
        return self.log_start_offset

    def _start_at(self, offset: int) -> None:
        epochs = LeaderEpochs(self._epochs.entries)
        if epochs.truncate_before(offset):
            self._keep_epochs(epochs)
        self.log_start_offset = offset

    def apply_retention(self, now_ms: int) -> int:
        """Remove the segments the topic does not keep any longer. How many. StorageFailed: not all of it was done."""
        segments = self.segments
        segments.remove_doomed(now_ms)
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
                self._roll(self.log_end_offset)
            self._start_at(max(self.log_start_offset, segments[count].base_offset))
            segments.remove_first(count, now_ms + self.config.file_delete_delay_ms)
            self._snapshots.remove_below(segments[0].base_offset)
        return count

    def begin_cleaned_segment(self, base_offset: int) -> Segment:
        """A segment for compaction to write beside the log; it counts for nothing until it replaces others."""
        return self.segments.begin_cleaned(base_offset)

    def drop_cleaned_segment(self, segment: Segment) -> None:
        """Compaction gave up on it, unless it has taken its place already."""
        if segment not in self.segments:
            segment.remove()

    def replace_segments(self, old: Sequence[Segment], cleaned: Segment, now_ms: int) -> None:
        """Put what compaction wrote, its indexes included, in the place of neighbours that are no longer written."""
        self.segments.replace(old, cleaned, now_ms + self.config.file_delete_delay_ms)
        self._snapshots.remove_strays(list(self.segments.bases))
        self._unsynced_names += 1

    def truncate_to(self, offset: int) -> None:
        """Cut everything from `offset` on: a new leader does not have it."""
        if offset >= self.log_end_offset:
            return
        self._written_end_offset = NOT_KNOWN
        segments = self.segments
        if offset < segments[0].base_offset:
            segments.restart_at(offset)
        else:
            number = segments.number_holding(offset)
            segments.remove_from(number + 1)
            self._transaction_index(number)
            segments.active.truncate(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        epochs = LeaderEpochs(self._epochs.entries)
        if epochs.truncate_from(offset):
            self._keep_epochs(epochs)
        self._snapshots.remove_above(offset)
        self._producers = rebuild_producers(list(segments), self._snapshots, offset)
        self._producers.transactions.advance(self.high_watermark)
        self._measure_active()

    # Stable storage

    def unflushed(self) -> FlushTask | None:
        """What must be synced for everything appended so far to be durable; None if it is."""
        if self.flushed_offset >= self.log_end_offset:
            return None
        segments = self.segments
        unsynced = [segments[number] for number in range(segments.number_holding(self.flushed_offset), len(segments))]
        # Of a segment that is no longer written, what a reader relies on; of each, what is known of producers where it begins.
        paths = [segment.path(kind) for segment in unsynced[:-1] for kind in INDEXES]
        if self._unsynced_names:
            paths += [segment.path(PRODUCER_SNAPSHOT) for segment in unsynced]
        end_offset, names = self.log_end_offset, self._unsynced_names

        def note() -> None:
            self.flushed_offset = max(self.flushed_offset, min(end_offset, self.log_end_offset))
            self._unsynced_names -= names

        return FlushTask(
            self._disk, [segment.file for segment in unsynced], paths, self._directory if names else None, note
        )

    def close(self) -> None:
        """Write what only memory has, so that the next start needs to read little. StorageFailed: it was no clean stop."""
        self.closed = True
        if self.log_end_offset != self._written_end_offset:
            self._written_end_offset = self.log_end_offset
            active = self._active
            if len(active.indexes.by_offset) or len(active.indexes.of_transactions):
                active.write_indexes()
                self._snapshots.take(self.log_end_offset, self._producers, self.segments.bases)
            # Else so little was written since the last roll that reading it again costs less than these files.
        self.segments.close()
