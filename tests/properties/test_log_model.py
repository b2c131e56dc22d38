"""Any history of a log against a model of it that is a list: append, roll, truncate, delete, read, stop, crash, in any order.

Beside the records the model knows what deduplication and the last stable offset rest on, so that every restart must bring back
exactly the producers, transactions and aborted ranges that were there.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oncelog.log.log_config import LogConfig
from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.log.reading import Read
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import batches
from oncelog.records.builder import build_batch
from oncelog.records.control import end_transaction_marker
from oncelog.records.record import read_records
from oncelog.runtime.disk import RealDisk

NOW = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=120, retention_bytes=2000, retention_ms=-1)


@dataclass
class ModelBatch:
    base_offset: int
    values: list[bytes]
    producer_id: int = -1
    sequence: int = -1
    transactional: bool = False
    marker: bool | None = None  # committed or aborted

    @property
    def next_offset(self) -> int:
        return self.base_offset + max(1, len(self.values))


@dataclass
class Model:
    """What the log should hold: every batch, from the first that is physically there."""

    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def visible(self) -> list[tuple[int, bytes]]:
        return [
            (batch.base_offset + number, value)
            for batch in self.batches
            for number, value in enumerate(batch.values)
            if batch.base_offset + number >= self.start
        ]

    def next_sequence(self, producer_id: int) -> int:
        return sum(len(batch.values) for batch in self.batches if batch.producer_id == producer_id)

    def open_since(self, producer_id: int) -> int | None:
        first: int | None = None
        for batch in self.batches:
            if batch.producer_id == producer_id:
                if batch.marker is not None:
                    first = None
                elif batch.transactional and first is None:
                    first = batch.base_offset
        return first

    def aborted(self) -> list[tuple[int, int, int]]:
        found, open_since = [], {}
        for batch in self.batches:
            if batch.marker is None and batch.transactional:
                open_since.setdefault(batch.producer_id, batch.base_offset)
            elif batch.marker is not None:
                first = open_since.pop(batch.producer_id, None)
                if first is not None and not batch.marker:
                    found.append((batch.producer_id, first, batch.base_offset))
        return found


class Run:
    """A log and its model, side by side."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = Model()
        self.disk = RealDisk(root, max_descriptors=3)
        self.log = self.open(clean=True)

    def open(self, *, clean: bool) -> PartitionLog:
        log = PartitionLog.open(
            self.disk,
            "orders-0",
            TopicPartition("orders", 0),
            CONFIG,
            NOW,
            clean_shutdown=clean,
            log_start_offset=self.model.start,
        )
        log.advance_high_watermark(log.log_end_offset)
        return log

    def append(self, sizes: list[int], producer_id: int, transactional: bool) -> None:
        model = self.model
        values = [b"%d." % (model.end + number) + b"v" * size for number, size in enumerate(sizes)]
        sequence = model.next_sequence(producer_id) if producer_id >= 0 else -1
        if producer_id >= 0 and model.open_since(producer_id) is not None:
            transactional = True
        self.take(ModelBatch(model.end, values, producer_id, sequence, transactional and producer_id >= 0))

    def take(self, batch: ModelBatch) -> None:
        answer = self.log.append_as_leader(memoryview(self.encode(batch)), 0, NOW)
        assert answer == Appended(batch.base_offset, batch.next_offset - 1, -1, self.model.start, False)
        self.model.batches.append(batch)
        self.model.end = batch.next_offset
        self.log.advance_high_watermark(self.model.end)

    def encode(self, batch: ModelBatch) -> bytearray:
        known = batch.producer_id >= 0
        return bytearray(
            build_batch(
                [(None, value) for value in batch.values],
                timestamp_ms=NOW,
                producer_id=batch.producer_id,
                producer_epoch=0 if known else -1,
                base_sequence=batch.sequence,
                transactional=batch.transactional,
            )
        )

    def append_again(self, back: int) -> None:
        """One of a producer's latest batches once more."""
        sent = [batch for batch in self.model.batches if batch.producer_id >= 0 and batch.marker is None]
        if len(sent) > back:
            batch = sent[-1 - back]
            newer = [
                other for other in sent if other.producer_id == batch.producer_id and other.sequence > batch.sequence
            ]
            answer = self.log.append_as_leader(memoryview(self.encode(batch)), 0, NOW)
            if isinstance(answer, Appended):
                assert answer.duplicate
                assert (answer.base_offset, answer.last_offset) == (batch.base_offset, batch.next_offset - 1)
            else:
                # After a restart fewer than five are remembered, but always the last.
                assert newer
                assert answer.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        marker = end_transaction_marker(producer_id, 0, committed, 0, NOW)
        answer = self.log.append_as_leader(marker, 0, NOW, from_client=False)
        assert isinstance(answer, Appended)
        self.model.batches.append(ModelBatch(self.model.end, [], producer_id, marker=committed))
        self.model.end += 1
        self.log.advance_high_watermark(self.model.end)

    def roll(self) -> None:
        self.log.roll_if_due(NOW + 10 * CONFIG.segment_ms)

    def truncate(self, back: int) -> None:
        """To where some batch begins, as replicas do."""
        if back < len(self.model.batches):
            offset = self.model.batches[-1 - back].base_offset
            if offset >= self.model.start:
                self.log.truncate_to(offset)
                del self.model.batches[len(self.model.batches) - 1 - back :]
                self.model.end = offset

    def delete(self, share: float) -> None:
        offset = self.model.start + int((self.model.end - self.model.start) * share)
        assert self.log.delete_records_before(offset) == offset
        self.model.start = offset

    def retain(self) -> None:
        """Retention by size: the oldest segments go as long as enough is left."""
        first = self.log.segments[0]
        if self.log.apply_retention(NOW):
            assert self.log.segments[0] is not first
            assert self.log.log_start_offset >= self.log.segments[0].base_offset
        assert len(self.log.segments) == 1 or self.log.size_bytes - self.log.segments[0].size < CONFIG.retention_bytes
        assert self.log.log_start_offset >= self.model.start
        self.model.start = self.log.log_start_offset

    def stop(self) -> None:
        self.log.close()
        self.log = self.open(clean=True)

    def crash(self, torn: bytes) -> None:
        self.disk.close()
        logs = sorted(self.root.glob("orders-0/*.log"))
        with logs[-1].open("ab") as file:
            file.write(torn)
        self.disk = RealDisk(self.root, max_descriptors=3)
        self.log = self.open(clean=False)
        assert self.log.truncated_bytes == len(torn)

    def check(self) -> None:
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
        open_since = [first for first in map(model.open_since, range(4)) if first is not None]
        assert log.last_stable_offset == max(min(open_since, default=model.end), model.start)
        for producer in log.active_producers:
            assert producer.next_sequence == model.next_sequence(producer.producer_id)
            assert producer.transaction_first_offset == (
                -1 if (first := model.open_since(producer.producer_id)) is None else first
            )
        aborted = [
            (entry.producer_id, entry.first_offset, entry.last_offset)
            for entry in log.aborted_transactions(model.start, model.end)
        ]
        assert aborted == [entry for entry in model.aborted() if entry[2] >= model.start]

    def check_reads(self, from_share: float, max_bytes: int, bound_share: float) -> None:
        model = self.model
        span = model.end - model.start
        from_offset = model.start + int(span * from_share)
        up_to = model.start + int(span * bound_share)
        expected = [batch for batch in model.batches if batch.next_offset > from_offset and batch.next_offset <= up_to]
        offset = from_offset
        seen: list[tuple[int, list[bytes]]] = []
        while offset < up_to:
            read = self.log.read(offset, max_bytes, up_to, True)
            assert isinstance(read, Read)
            if not read.records:
                break
            data = bytes(read.records)
            found = list(batches(data))
            assert len(data) <= max_bytes or len(found) == 1
            for position, header in found:
                content = [] if header.is_control else [record.value or b"" for record in read_records(data, position)]
                seen.append((header.base_offset, content))
                assert header.next_offset <= up_to
            assert read.next_offset == found[-1][1].next_offset or read.next_offset <= up_to
            offset = found[-1][1].next_offset
        assert seen == [(batch.base_offset, batch.values) for batch in expected]


producers = st.integers(-1, 3)
operations = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 120), min_size=1, max_size=4), producers, st.booleans()),
    st.tuples(st.just("append"), st.lists(st.integers(0, 120), min_size=1, max_size=4), producers, st.booleans()),
    st.tuples(st.just("append_again"), st.integers(0, 8)),
    st.tuples(st.just("end_transaction"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("truncate"), st.integers(0, 6)),
    st.tuples(st.just("delete"), st.floats(0, 1)),
    st.tuples(st.just("retain")),
    st.tuples(st.just("stop")),
    st.tuples(st.just("crash"), st.binary(max_size=80).filter(lambda tail: not tail or tail[-1:] != b"\x02")),
    st.tuples(st.just("check_reads"), st.floats(0, 1), st.integers(0, 1500), st.floats(0, 1)),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(operations, min_size=20, max_size=60))
def test_a_log_is_a_list_of_batches(history: list[tuple[object, ...]]) -> None:
    root = Path(tempfile.mkdtemp())
    run = Run(root)
    try:
        for name, *arguments in history:
            getattr(run, str(name))(*arguments)
            run.check()
        run.check_reads(0.0, 1 << 20, 1.0)
        run.check_reads(0.0, 200, 1.0)
        run.crash(b"")
        run.check()
        run.check_reads(0.0, 200, 1.0)
    finally:
        run.disk.close()
        shutil.rmtree(root)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=60),
    st.integers(2**31 - 40, 2**31 - 1),
)
def test_deduplication_holds_across_the_end_of_the_sequence_numbers(sends: list[tuple[int, int]], first: int) -> None:
    """Every batch is sent twice or more, none is stored twice, and the wrap makes no difference."""
    root = Path(tempfile.mkdtemp())
    run = Run(root)
    sequence = first
    stored = 0
    try:
        for repeats, count in sends:
            data = build_batch(
                [(None, b"x")] * count, timestamp_ms=NOW, producer_id=5, producer_epoch=0, base_sequence=sequence
            )
            for attempt in range(repeats + 1):
                answer = run.log.append_as_leader(data, 0, NOW)
                assert not isinstance(answer, Refused)
                assert (answer.base_offset, answer.duplicate) == (stored, attempt > 0)
            stored += count
            sequence = (sequence + count) % 2**31
        assert run.log.log_end_offset == stored
    finally:
        run.disk.close()
        shutil.rmtree(root)
