"""Recovery of a log with damage anywhere: it ends, raises nothing, keeps what lies before the damage, and goes on from there.

The seed of a failing round is in its message. The time is bounded: as many rounds as fit.
"""

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oncelog.log import checkpoints
from oncelog.log.log_config import LogConfig
from oncelog.log.offset_index import CorruptIndex, OffsetIndex
from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from oncelog.log.time_index import TimeIndex
from oncelog.log.transaction_index import TransactionIndex
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import CorruptBatch, batches, crc_matches
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.control import end_transaction_marker
from oncelog.records.record import read_all_records
from oncelog.runtime.disk import RealDisk

NOW = 1_700_000_000_000
BUDGET_S = 2.5
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=150)


def open_log(root: Path, *, clean: bool, recovery_point: int = 0) -> tuple[RealDisk, PartitionLog]:
    disk = RealDisk(root, max_descriptors=4)
    log = PartitionLog.open(
        disk, "t-0", TopicPartition("t", 0), CONFIG, NOW, clean_shutdown=clean, recovery_point=recovery_point
    )
    log.advance_high_watermark(log.log_end_offset)
    return disk, log


def write_original(root: Path, chance: random.Random) -> list[bytes]:
    """A log with everything in it, stopped cleanly. Its values in order."""
    disk, log = open_log(root, clean=True)
    sequences = dict.fromkeys(range(4), 0)
    contents = []
    for number in range(120):
        producer_id = chance.randint(-1, 3)
        values = [b"%d-%d" % (number, part) + b"v" * chance.randint(0, 60) for part in range(chance.randint(1, 3))]
        known = producer_id >= 0
        data = build_batch(
            [(None, value) for value in values],
            timestamp_ms=NOW + number,
            compression=chance.choice([Compression.NONE, Compression.LZ4]),
            producer_id=producer_id,
            producer_epoch=0 if known else -1,
            base_sequence=sequences[producer_id] if known else -1,
            transactional=producer_id >= 2,
        )
        assert isinstance(log.append_as_leader(data, number // 30, NOW + number), Appended)
        contents += values
        if known:
            sequences[producer_id] += len(values)
        if number % 10 == 9:
            marker = end_transaction_marker(chance.randint(2, 3), 0, chance.random() < 0.5, 0, NOW + number)
            log.append_as_leader(marker, number // 30, NOW, from_client=False)
    log.close()
    disk.close()
    return contents


def damage(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    match chance.randint(0, 6):
        case 0 if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randint(0, 7)
        case 1 if data:
            start = chance.randrange(len(data))
            data[start : start + chance.randint(1, 200)] = chance.randbytes(chance.randint(0, 200))
        case 2:
            data = data[: chance.randint(0, len(data))]
        case 3:
            data += chance.randbytes(chance.randint(1, 300))
        case 4:
            data += bytes(chance.randint(1, 5000))
        case 5 if data:
            start = chance.randrange(len(data))
            data[start:] = bytes(len(data) - start)
        case _:
            file.unlink()
            return
    file.write_bytes(bytes(data))


def values_of(log: PartitionLog) -> list[bytes | None]:
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, 400, log.log_end_offset, True)
        data = bytes(read.records)  # type: ignore[union-attr]
        if not data:
            break
        for position, header in batches(data):
            assert crc_matches(data, position, header)
        found += [record.value for record in read_all_records(data)]
        assert read.next_offset > offset  # type: ignore[union-attr]
        offset = read.next_offset  # type: ignore[union-attr]
    return found


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    root = tmp_path_factory.mktemp("original")
    return root, write_original(root, random.Random(1))


def rounds(tmp_path: Path, original: tuple[Path, list[bytes]], work: Callable[[Path, random.Random], None]) -> None:
    deadline = time.monotonic() + BUDGET_S
    seed = 0
    while time.monotonic() < deadline:
        root = tmp_path / "round"
        shutil.copytree(original[0], root)
        try:
            work(root, random.Random(seed))
        except BaseException as problem:
            raise AssertionError(f"seed {seed}: {problem!r}") from problem
        shutil.rmtree(root)
        seed += 1
    assert seed > 3


def test_after_a_crash_what_lies_before_the_damage_is_kept(tmp_path: Path, original: tuple[Path, list[bytes]]) -> None:
    contents = original[1]

    def work(root: Path, chance: random.Random) -> None:
        files = sorted((root / "t-0").iterdir())
        logs = [file for file in files if file.suffix == ".log"]
        damaged = chance.sample(files, chance.randint(1, 4))
        if chance.random() < 0.7:
            damaged.append(chance.choice(logs))
        before = {file: file.read_bytes() for file in logs}
        for file in set(damaged):
            damage(file, chance)
        intact = 0
        for file in logs:
            if not file.exists() or file.read_bytes() != before[file]:
                break
            intact += len(read_all_records(before[file]))
        disk, log = open_log(root, clean=False)
        found = values_of(log)
        if logs[0].exists():
            # A whole segment may be missing: what was after it is then all the log has, so only its order is certain.
            assert len(found) >= intact
            assert found[:intact] == contents[:intact]
        assert is_subsequence(found, contents)
        end_offset = log.log_end_offset
        data = build_batch([(None, b"next")], timestamp_ms=NOW)
        assert log.append_as_leader(data, 9, NOW).base_offset == end_offset  # type: ignore[union-attr]
        log.advance_high_watermark(end_offset + 1)
        log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        log.offset_for_timestamp(NOW + 50)
        log.max_timestamp_offset()
        log.close()
        disk.close()
        disk, log = open_log(root, clean=True)
        assert values_of(log) == [*found, b"next"]
        disk.close()

    rounds(tmp_path, original, work)


def is_subsequence(found: list[bytes | None], contents: list[bytes]) -> bool:
    remaining = iter(contents)
    return all(value in remaining for value in found)


def test_after_a_clean_stop_damaged_indexes_and_snapshots_change_nothing(
    tmp_path: Path, original: tuple[Path, list[bytes]]
) -> None:
    contents = original[1]
    disk, log = open_log(original[0], clean=True)
    expected = (
        log.log_end_offset,
        log.last_stable_offset,
        log.aborted_transactions(0, log.log_end_offset),
        {producer.producer_id: producer.next_sequence for producer in log.active_producers},
    )
    log.close()
    disk.close()

    def work(root: Path, chance: random.Random) -> None:
        others = [file for file in sorted((root / "t-0").iterdir()) if file.suffix != ".log"]
        rebuilt = [file for file in others if not file.name.endswith("txnindex")]
        for file in chance.sample(rebuilt, chance.randint(1, len(rebuilt))):
            damage(file, chance)
        disk, log = open_log(root, clean=True)
        assert (
            log.log_end_offset,
            log.last_stable_offset,
            log.aborted_transactions(0, log.log_end_offset),
            {producer.producer_id: producer.next_sequence for producer in log.active_producers},
        ) == expected
        assert values_of(log) == contents
        for _ in range(20):
            offset = chance.randrange(log.log_end_offset)
            read = log.read(offset, 300, log.log_end_offset, True)
            first = next(batches(read.records))[1]  # type: ignore[union-attr]
            assert first.base_offset <= offset <= first.last_offset
        disk.close()

    rounds(tmp_path, original, work)


def test_after_a_clean_stop_a_damaged_log_is_not_a_crash(tmp_path: Path, original: tuple[Path, list[bytes]]) -> None:
    def work(root: Path, chance: random.Random) -> None:
        for file in chance.sample(sorted((root / "t-0").iterdir()), chance.randint(1, 5)):
            damage(file, chance)
        disk, log = open_log(root, clean=True)
        for _ in range(20):
            log.read(chance.randint(-1, log.log_end_offset + 1), chance.randint(0, 3000), log.log_end_offset, True)
        disk.close()

    rounds(tmp_path, original, work)


READERS: list[tuple[Callable[[bytes], object], type[Exception]]] = [
    (lambda data: OffsetIndex.decode(5, data, 10_000), CorruptIndex),
    (lambda data: TimeIndex.decode(5, data), CorruptIndex),
    (lambda data: TransactionIndex.decode(5, data), CorruptIndex),
    (decode_snapshot, CorruptSnapshot),
    (checkpoints.read_leader_epochs, checkpoints.CorruptCheckpoint),
    (checkpoints.read_offsets, checkpoints.CorruptCheckpoint),
    (checkpoints.read_partition_metadata, checkpoints.CorruptCheckpoint),
    (checkpoints.read_meta_properties, checkpoints.CorruptCheckpoint),
    (checkpoints.read_clean_shutdown, CorruptBatch),
]


@pytest.mark.parametrize(("reader", "refusal"), READERS)
def test_readers_of_small_files_take_any_bytes(reader: Callable[[bytes], object], refusal: type[Exception]) -> None:
    chance = random.Random(7)
    alphabet = b"0123456789 \n:=.xversionodepch\xff\x00{}"
    for _ in range(1500):
        length = chance.randint(0, 80)
        if chance.random() < 0.5:
            data = chance.randbytes(length)
        else:
            data = bytes(chance.choice(alphabet) for _ in range(length))
        try:
            reader(data)
        except refusal:
            continue
