"""Log compaction: of every key the last record stays (cleanup.policy=compact).

A round has two passes. The first reads the dirty part and notes the last offset of every key. The second goes through the log from
its beginning and writes new segments without the records that are superseded; each takes the place of its originals in one
step that a crash leaves done or undone (`.cleaned`, `.swap`). Offsets never change: where a record went, a reader finds the next.

What stays although superseded or old:
- A tombstone (a key without value) for delete.retention.ms after the first round that kept it, so that readers hear of the
  deletion. The batch carries that time as its delete horizon (KIP-534).
- A transaction's marker while the log has a batch of the transaction, then as long as a tombstone.
- The batch with the last sequence of a producer the log still knows, and the last batch of the round, though empty; the marker
  with the epoch of a producer of which nothing else is left.
What goes besides: data of aborted transactions, and records without a key.

`clean` is a generator, driven in small turns between other work (see cleaner_reader). If the log was changed meanwhile so that a
segment it reads is gone, the round is given up and the next one begins anew.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import NamedTuple

from oncelog.log.cleaner_batch import scan_in_turns, with_records, without_records
from oncelog.log.cleaner_offset_map import DEFAULT_MAX_KEYS, NOTHING_READ, OffsetMap
from oncelog.log.cleaner_plan import CleaningPlan, group_segments, plan_cleaning
from oncelog.log.cleaner_reader import BatchReader, Blocking, Step
from oncelog.log.cleaner_transactions import CleanedTransactions
from oncelog.log.partition_log import PartitionLog
from oncelog.log.segment import Segment
from oncelog.log.storage import StorageFailed
from oncelog.records.batch import BatchHeader, read_header
from oncelog.records.control import read_control_record
from oncelog.records.record import records_payload
from oncelog.records.scan import ScannedRecord

#: How many records are looked at in one turn: about half a millisecond's work. Bytes count, too, for reading and writing them.
RECORDS_PER_TURN = 256
BYTES_PER_RECORD = 2 << 10
BYTES_PER_TURN = RECORDS_PER_TURN * BYTES_PER_RECORD


class CleanedLog(NamedTuple):
    """What a round did: what `clean` returns at its end."""

    up_to: int
    bytes_before: int
    bytes_after: int


def needs_cleaning(log: PartitionLog, now_ms: int) -> bool:
    """Is enough of the log dirty, or something dirty for too long?"""
    plan = plan_cleaning(log, now_ms)
    return plan is not None and plan.worth_it(log.config)


def clean(
    log: PartitionLog, now_ms: int, *, max_keys: int = DEFAULT_MAX_KEYS
) -> Generator[Step, None, CleanedLog | None]:
    """One round over what can be cleaned, worth it or not. None if there was nothing to do, or the log changed meanwhile.

    StorageFailed or CorruptBatch if the disk refused or the log is damaged: the log is then as before, except for the segments
    that were replaced already.
    """
    plan = plan_cleaning(log, now_ms)
    if plan is None:
        return None
    round_ = CleaningRound(log, plan, now_ms, max_keys)
    steps = round_.run()
    try:
        for step in steps:
            yield step
            if round_.overtaken:
                return None
    finally:
        steps.close()
        round_.tidy_up()
    return round_.outcome


class CleaningRound:
    __slots__ = (
        "outcome",
        "_log",
        "_plan",
        "_now_ms",
        "_offsets",
        "_transactions",
        "_end_offset",
        "_pending",
        "_unfinished",
        "_since_turn",
    )

    def __init__(self, log: PartitionLog, plan: CleaningPlan, now_ms: int, max_keys: int) -> None:
        self.outcome: CleanedLog | None = None
        self._log = log
        self._plan = plan
        self._now_ms = now_ms
        self._offsets = OffsetMap(max_keys)
        self._transactions = CleanedTransactions()
        self._end_offset = NOTHING_READ
        self._pending = list(plan.segments)
        self._unfinished: Segment | None = None
        self._since_turn = 0

    @property
    def overtaken(self) -> bool:
        """The log was closed, or a segment that is still to be read was taken out of it or is written again."""
        segments = self._log.segments
        return self._log.closed or any(
            segment is segments.active or segment is not segments[segments.number_holding(segment.base_offset)]
            for segment in self._pending
        )

    def run(self) -> Generator[Step, None, None]:
        yield from self._read_keys()
        self._transactions = CleanedTransactions()
        self._end_offset = self._offsets.latest_offset + 1
        bytes_before = bytes_after = 0
        concerned = [segment for segment in self._plan.segments if segment.base_offset < self._end_offset]
        self._pending = concerned.copy()
        for group in group_segments(concerned, self._plan.end_offset, self._log.config.segment_bytes):
            bytes_before += sum(segment.size for segment in group)
            bytes_after += yield from self._clean_group(group)
            del self._pending[: len(group)]
        self._log.cleaned_offset = self._end_offset
        self.outcome = CleanedLog(self._end_offset, bytes_before, bytes_after)

    def tidy_up(self) -> None:
        """Remove what a round that did not end has half written."""
        segment, self._unfinished = self._unfinished, None
        if segment is not None:
            with suppress(StorageFailed):
                self._log.drop_cleaned_segment(segment)

    # The first pass

    def _read_keys(self) -> Generator[Step, None, None]:
        first_dirty_offset = self._plan.first_dirty_offset
        for number, segment in enumerate(self._plan.segments):
            segment_end = self._end_of(number)
            if segment_end <= first_dirty_offset:
                continue
            self._transactions.expect(
                self._log.aborted_transactions(max(segment.base_offset, first_dirty_offset), segment_end)
            )
            reader = BatchReader(segment, segment.position_of(first_dirty_offset))
            while (yield from reader.advance()):
                if not (yield from self._read_batch_keys(reader)):
                    return
            # Nothing may be left of its last offsets: they have been read nevertheless.
            self._offsets.latest_offset = max(self._offsets.latest_offset, segment_end - 1)

    def _read_batch_keys(self, reader: BatchReader) -> Generator[Step, None, bool]:
        """False if no more keys fit."""
        header = reader.header
        if self._worked_enough(header):
            yield None
        if header.is_control:
            kind = read_control_record(reader.batch).type if header.record_count else None
            self._transactions.meet_marker(header, kind)
        elif not self._transactions.meet_data(header) and header.record_count:
            payload = bytes(records_payload(reader.batch, 0, header))
            for portion in scan_in_turns(payload, header.record_count, RECORDS_PER_TURN):
                if not self._note_keys(header, portion):
                    return False
                if len(portion) == RECORDS_PER_TURN:
                    yield None
        self._offsets.latest_offset = max(self._offsets.latest_offset, header.last_offset)
        return True

    def _note_keys(self, header: BatchHeader, records: Sequence[ScannedRecord]) -> bool:
        """False if no more keys fit."""
        put, first_dirty_offset, base_offset = self._offsets.put, self._plan.first_dirty_offset, header.base_offset
        for _, _, _, offset_delta, _, key, _ in records:
            offset = base_offset + offset_delta
            if key is not None and offset >= first_dirty_offset and not put(key, offset):
                return False
        return True

    def _end_of(self, number: int) -> int:
        segments = self._plan.segments
        return segments[number + 1].base_offset if number + 1 < len(segments) else self._plan.end_offset

    # The second pass

    def _clean_group(self, group: Sequence[Segment]) -> Generator[Step, None, int]:
        """Write what stays of neighbouring segments into one, and put it in their place. Its size."""
        log = self._log
        last_offsets = {
            producer.producer_id: (
                producer.batches[-1].last_offset if producer.batches else None,
                producer.producer_epoch,
            )
            for producer in log.active_producers
        }
        cleaned = self._unfinished = log.begin_cleaned_segment(group[0].base_offset)
        for segment in group:
            segment_end = self._end_of(self._plan.segments.index(segment))
            self._transactions.expect(log.aborted_transactions(segment.base_offset, segment_end))
            reader = BatchReader(segment)
            while (yield from reader.advance()):
                yield from self._clean_batch(reader, cleaned, last_offsets)
        cleaned.write_indexes()
        synced = Blocking(cleaned.sync)
        yield synced
        synced.result()
        try:
            log.replace_segments(group, cleaned, self._now_ms)
        finally:
            if cleaned in log.segments:
                # It counts from now on, even if not all that belongs to replacing was done.
                self._unfinished = None
        cleaned.release_indexes()
        return cleaned.size

    def _clean_batch(
        self, reader: BatchReader, cleaned: Segment, last_offsets: dict[int, tuple[int | None, int]]
    ) -> Generator[Step, None, None]:
        header = reader.header
        if self._worked_enough(header):
            yield None
        marker_of_nothing = False
        if header.is_control:
            kind = read_control_record(reader.batch).type if header.record_count else None
            marker_of_nothing, aborted = self._transactions.meet_marker(header, kind)
            if aborted is not None:
                cleaned.add_aborted(aborted)
            # The marker that alone tells a producer's epoch stays itself: replaying an empty one would tell nothing.
            needed = _tells_of_producer(header, last_offsets)
            discarded = marker_of_nothing and self._horizon_passed(header) and not needed
        else:
            discarded = self._transactions.meet_data(header)
        retained: list[ScannedRecord] = []
        payload = b""
        if not discarded and header.record_count:
            payload = bytes(records_payload(reader.batch, 0, header))
            for portion in scan_in_turns(payload, header.record_count, RECORDS_PER_TURN):
                retained += portion if header.is_control else self._staying(header, portion)
                if len(portion) == RECORDS_PER_TURN:
                    yield None
        if retained:
            _write(cleaned, self._written_anew(reader, payload, retained, marker_of_nothing))
        elif header.next_offset == self._end_offset or _tells_of_producer(header, last_offsets):
            _write(cleaned, without_records(header))

    def _staying(self, header: BatchHeader, records: Sequence[ScannedRecord]) -> list[ScannedRecord]:
        latest_offset, is_superseded = self._offsets.latest_offset, self._offsets.is_superseded
        without_tombstones, base_offset = self._horizon_passed(header), header.base_offset
        staying = []
        for record in records:
            _, _, _, offset_delta, _, key, is_tombstone = record
            offset = base_offset + offset_delta
            if offset <= latest_offset:
                if key is None or is_superseded(key, offset) or (is_tombstone and without_tombstones):
                    continue
            staying.append(record)
        return staying

    def _horizon_passed(self, header: BatchHeader) -> bool:
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is not None and horizon_ms <= self._now_ms

    def _written_anew(
        self, reader: BatchReader, payload: bytes, retained: Sequence[ScannedRecord], marker_of_nothing: bool
    ) -> bytes | memoryview:
        header = reader.header
        horizon_ms = None
        if not header.has_delete_horizon and (marker_of_nothing or any(record[6] for record in retained)):
            horizon_ms = self._now_ms + self._log.config.delete_retention_ms
        if horizon_ms is None and len(retained) == header.record_count:
            return reader.batch
        return with_records(header, payload, retained, horizon_ms)

    def _worked_enough(self, header: BatchHeader) -> bool:
        """Is it the others' turn, this batch included?"""
        self._since_turn += header.size + BYTES_PER_RECORD * header.record_count
        if self._since_turn < BYTES_PER_TURN:
            return False
        self._since_turn = 0
        return True


def _write(cleaned: Segment, batch: bytes | memoryview) -> None:
    header = read_header(batch)
    cleaned.append(batch, header.size, header.last_offset, header.max_timestamp)


def _tells_of_producer(header: BatchHeader, last_offsets: dict[int, tuple[int | None, int]]) -> bool:
    """Is it the batch from which the log knows a producer's last sequence or, where it has none, its epoch?"""
    if header.producer_id not in last_offsets:
        return False
    last_data_offset, producer_epoch = last_offsets[header.producer_id]
    if last_data_offset is not None:
        return header.last_offset == last_data_offset
    return header.is_control and header.producer_epoch == producer_epoch
