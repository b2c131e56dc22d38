"""Any history, cleaned at any time: a read_committed reader ends with the same table, and finds its way from any offset."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.records.compression import Compression
from tests.unit.log.compacted_log import RETENTION_MS, CompactedLog

# Thousands of files are synced here: not the disk is the subject.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
TRANSACTIONAL = (1, 2, 3)
IDEMPOTENT = (11, 12)


@dataclass
class Written:
    key: str | None
    value: str | None
    timestamp: int
    producer_id: int = -1


@dataclass
class History:
    """The log, and beside it everything that was ever written, which nobody cleans."""

    log: CompactedLog
    written: dict[int, Written] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    counter: int = 0

    def put(self, keys: list[tuple[str, bool]], compression: Compression, producer_id: int) -> None:
        transactional = producer_id in TRANSACTIONAL
        pairs: list[tuple[str | None, str | None]] = []
        for key, tombstone in keys:
            self.counter += 1
            pairs.append((key, None if tombstone else str(self.counter)))
        base = self.log.put(*pairs, producer_id=producer_id, transactional=transactional, compression=compression)
        for number, (key, value) in enumerate(pairs):
            self.written[base + number] = Written(key, value, self.log.now_ms, producer_id)
            if transactional:
                self.open.setdefault(producer_id, []).append(base + number)

    def end(self, producer_id: int, committed: bool) -> None:
        if producer_id in self.open:
            offsets = self.open.pop(producer_id)
            if not committed:
                self.aborted.update(offsets)
        self.log.end(producer_id, committed=committed)

    def roll(self) -> None:
        self.log.log.roll_if_due(self.log.now_ms + 2 * self.log.config.segment_ms)

    def clean(self, max_keys: int) -> None:
        self.log.clean(max_keys)
        self.check()

    def later(self, by_ms: int) -> None:
        self.log.now_ms += by_ms

    def crash(self) -> None:
        before = self.producers()
        self.log.crash()
        assert self.producers() == before
        self.check()

    def restart(self) -> None:
        before = self.producers()
        cleaned_offset = self.log.log.cleaned_offset
        self.log.restart()
        self.log.log.cleaned_offset = cleaned_offset
        assert self.producers() == before

    def producers(self) -> dict[int, tuple[int, int, int]]:
        """What deduplication and the last stable offset rest on."""
        return {
            producer.producer_id: (producer.producer_epoch, producer.next_sequence, producer.transaction_first_offset)
            for producer in self.log.log.active_producers
        }

    def check(self) -> None:
        stable = self.log.log.last_stable_offset
        assert stable == min((offsets[0] for offsets in self.open.values()), default=self.log.log.log_end_offset)
        visible = {
            offset: record for offset, record in self.written.items() if offset < stable and offset not in self.aborted
        }
        found = self.log.records()
        for record in found:
            original = visible[record.offset]
            assert (record.key, record.value) == (_bytes(original.key), _bytes(original.value))
            assert record.timestamp == original.timestamp
        assert latest((record.key, record.value) for record in found) == latest(
            (_bytes(visible[offset].key), _bytes(visible[offset].value)) for offset in sorted(visible)
        )
        self.check_positions()

    def check_positions(self) -> None:
        everything = self.log.headers()
        offsets = [header.base_offset for header in everything]
        assert offsets == sorted(set(offsets))
        assert [header for header, _ in self.log.read(0, max_bytes=150)] == everything
        for from_offset in range(self.log.log.log_end_offset + 1):
            expected = next((header for header in everything if header.last_offset >= from_offset), None)
            assert next((header for header, _ in self.log.read(from_offset, max_bytes=150)), None) == expected
        assert len(self.log.log.segments) == len(list(self.log.directory.glob("*.log")))


def latest(pairs) -> dict[bytes | None, bytes]:
    """The table a reader builds: a tombstone takes its key away."""
    table: dict[bytes | None, bytes] = {}
    for key, value in pairs:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return table


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


keys = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "k" * 60]), st.booleans()), min_size=1, max_size=4)
Operation = Callable[[History], None]
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(
        lambda keys, compression, producer_id: lambda history: history.put(keys, compression, producer_id),
        keys,
        st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
        st.sampled_from((-1, *TRANSACTIONAL, *IDEMPOTENT)),
    ),
    st.builds(
        lambda producer_id, committed: lambda history: history.end(producer_id, committed),
        st.sampled_from(TRANSACTIONAL),
        st.booleans(),
    ),
    st.just(lambda history: history.roll()),
    st.builds(lambda max_keys: lambda history: history.clean(max_keys), st.sampled_from([2, 3, 1000, 1000])),
    st.builds(
        lambda by_ms: lambda history: history.later(by_ms), st.sampled_from([1, RETENTION_MS // 2, RETENTION_MS])
    ),
    st.sampled_from([lambda history: history.crash(), lambda history: history.restart()]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(operations, min_size=10, max_size=40))
def test_cleaning_changes_nothing_a_reader_may_rely_on(operations: list[Operation]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        history = History(CompactedLog(Path(directory)))
        for operation in operations:
            operation(history)
        history.roll()
        for _ in range(3):
            history.clean(1000)
            history.later(RETENTION_MS)
            history.put([("end", False)], Compression.NONE, -1)
            history.roll()
        history.crash()
        if not history.open:
            # Nothing superseded is left below what the last round went through.
            cleaned = [record for record in history.log.records() if record.offset < history.log.log.log_end_offset - 2]
            assert len({record.key for record in cleaned}) == len(cleaned)
        history.log.disk.close()
