"""Opening what an earlier run left: after a clean stop, after a crash, and after a crash in the middle of something."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oncelog.log.partition_log import PartitionLog
from oncelog.model.error_code import ErrorCode
from oncelog.records.builder import build_batch
from oncelog.runtime.disk import RealDisk
from tests.disks import FaultyDisk, SyncTrackingDisk, lose_page_cache
from tests.unit.log.logs import NOW, append, batch, end, fill, offsets, open_log, produce, records, refusal, values

DIRECTORY = "orders-0"


def names(disk: RealDisk, ending: str = "") -> list[str]:
    return sorted(name for name in disk.list_directory(DIRECTORY) if name.endswith(ending))


def last_log(disk: RealDisk) -> str:
    return f"{DIRECTORY}/{names(disk, '.log')[-1]}"


def damage(tmp_path: Path, path: str, change: Callable[[bytearray], bytes]) -> None:
    file = tmp_path / "data" / path
    data = bytearray(file.read_bytes())
    file.write_bytes(bytes(change(data)))


def crash(disk: RealDisk) -> None:
    """What the process knew is gone, what it had written is there."""
    disk.close()


def test_after_a_clean_stop_everything_is_as_before(disk: RealDisk) -> None:
    log = open_log(disk)
    contents = fill(log, 40)
    log.close()
    written = {name: disk.read_file(f"{DIRECTORY}/{name}") for name in names(disk)}

    log = open_log(disk, clean=True)

    assert (log.log_start_offset, log.log_end_offset, log.flushed_offset, log.truncated_bytes) == (0, 40, 40, 0)
    assert values(log) == contents
    log.close()
    assert {name: disk.read_file(f"{DIRECTORY}/{name}") for name in names(disk)} == written


def test_after_a_clean_stop_only_the_last_segment_is_looked_at(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    fill(log, 100)
    log.close()
    faulty_disk.operations.clear()

    open_log(faulty_disk, clean=True)

    last = f"{log.segments.active.base_offset:020d}"
    read = [path for operation, path in faulty_disk.operations if operation == "read"]
    assert [path for path in read if last not in path] == [
        f"{DIRECTORY}/leader-epoch-checkpoint",
        f"{DIRECTORY}/{100:020d}.snapshot",
    ]
    assert not [path for operation, path in faulty_disk.operations if operation in ("append", "write_file", "truncate")]


def test_an_empty_log_is_opened_again(disk: RealDisk) -> None:
    for clean in (True, False, True):
        log = open_log(disk, clean=clean)
        assert log.log_end_offset == 0
        log.close()
    assert names(disk, ".log") == [f"{0:020d}.log"]
    assert append(open_log(disk, clean=True), b"a") == 0


def test_a_crash_loses_nothing_that_was_written_whole(disk: RealDisk) -> None:
    log = open_log(disk)
    contents = fill(log, 40)
    crash(disk)

    log = open_log(disk)

    assert values(log) == contents
    assert log.truncated_bytes == 0
    assert fill(log, 30)
    assert values(log)[:40] == contents


def test_cut_at_any_byte_of_the_last_batches_all_whole_ones_remain(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk, segment_bytes=1 << 20)
    for number in range(6):
        produce(log, 3 * number, b"a" * number, b"b" * 20, b"c")
    crash(disk)
    file = tmp_path / "data" / last_log(disk)
    data = file.read_bytes()
    size = len(data)
    ends = []
    while data:
        ends.append(size - len(data))
        data = data[12 + int.from_bytes(data[8:12], "big") :]
    ends.append(size)
    whole = file.read_bytes()

    for cut in range(ends[3], size + 1):
        file.write_bytes(whole[:cut])
        log = open_log(disk, segment_bytes=1 << 20)
        complete = max(number for number, end_position in enumerate(ends) if end_position <= cut)
        assert log.log_end_offset == 3 * complete
        assert log.size_bytes == ends[complete]
        assert log.truncated_bytes == cut - ends[complete]
        assert offsets(records(log)) == list(range(3 * complete))
        (producer,) = log.active_producers
        assert producer.next_sequence == 3 * complete
        crash(disk)


@pytest.mark.parametrize(
    "tail",
    [
        b"\x00",
        b"\x00" * 5000,
        b"\xff" * 5000,
        b"garbage",
        bytes(range(256)) * 20,
        b"\x00" * 8 + b"\x7f\xff\xff\xff" + bytes(90),
    ],
)
def test_a_tail_that_is_no_batch_is_cut_off(disk: RealDisk, tmp_path: Path, tail: bytes) -> None:
    log = open_log(disk)
    contents = fill(log, 10)
    crash(disk)
    damage(tmp_path, last_log(disk), lambda data: data + tail)

    log = open_log(disk)

    assert log.truncated_bytes == len(tail)
    assert values(log) == contents
    assert append(log, b"next") == 10
    assert values(log) == [*contents, b"next"]


def test_a_flipped_bit_ends_the_log_before_its_batch(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk, segment_bytes=1 << 20)
    contents = fill(log, 10)
    size = log.size_bytes // 10
    crash(disk)

    def flip(data: bytearray) -> bytes:
        data[6 * size + 70] ^= 4
        return bytes(data)

    damage(tmp_path, last_log(disk), flip)

    log = open_log(disk, segment_bytes=1 << 20)

    assert values(log) == contents[:6]
    assert log.truncated_bytes == 4 * size


def test_a_whole_batch_out_of_place_is_cut_off(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 3)
    crash(disk)
    remnant = build_batch([(None, b"old")], base_offset=1, timestamp_ms=NOW)
    damage(tmp_path, last_log(disk), lambda data: data + remnant)

    log = open_log(disk)

    assert values(log) == contents
    assert log.truncated_bytes == len(remnant)


def test_damage_in_an_earlier_segment_ends_the_log_there(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 40)
    bases = list(log.segments.bases)
    crash(disk)
    damage(tmp_path, f"{DIRECTORY}/{bases[2]:020d}.log", lambda data: data[:-3])

    log = open_log(disk)

    assert list(log.segments.bases) == bases[:3]
    assert log.log_end_offset == bases[3] - 1
    assert values(log) == contents[: bases[3] - 1]
    assert len(names(disk, ".log")) == 3
    assert not [name for name in names(disk, ".snapshot") if int(name[:20]) > log.log_end_offset]


def test_what_lies_before_the_recovery_point_is_not_read_again(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    fill(log, 60)
    bases = list(log.segments.bases)
    faulty_disk.close()
    faulty_disk.operations.clear()

    log = open_log(faulty_disk, recovery_point=bases[-2] + 1)

    read = {path for operation, path in faulty_disk.operations if operation == "read" and path.endswith(".log")}
    assert read == {f"{DIRECTORY}/{base:020d}.log" for base in bases[-2:]}
    assert log.flushed_offset == bases[-2] + 1
    assert log.log_end_offset == 60


@pytest.mark.parametrize("ending", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("how", ["missing", "empty", "torn", "zeros", "garbage"])
@pytest.mark.parametrize("clean", [True, False])
def test_every_other_file_may_be_missing_or_damaged(
    disk: RealDisk, tmp_path: Path, ending: str, how: str, clean: bool
) -> None:
    log = open_log(disk)
    for number in range(40):
        produce(log, number, b"x" * 40, timestamp_ms=NOW + number)
    log.close()
    for name in names(disk, ending):
        file = tmp_path / "data" / DIRECTORY / name
        size = file.stat().st_size
        match how:
            case "missing":
                file.unlink()
            case "empty":
                file.write_bytes(b"")
            case "torn":
                file.write_bytes(file.read_bytes()[: size - 5])
            case "zeros":
                file.write_bytes(bytes(size))
            case _:
                file.write_bytes(b"\xa5" * (size + 3))

    log = open_log(disk, clean=clean)

    assert offsets(records(log)) == list(range(40))
    for offset in range(0, 40, 3):
        assert offsets(records(log, offset)) == list(range(offset, 40))
        assert log.offset_for_timestamp(NOW + offset).offset == offset
    assert produce(log, 39, b"x" * 40).duplicate
    assert produce(log, 40).base_offset == 40
    log.close()
    assert open_log(disk, clean=True).log_end_offset == 41


def test_a_clean_stop_that_was_none_is_noticed(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 10)
    log.close()
    damage(tmp_path, last_log(disk), lambda data: data[:-3])

    log = open_log(disk, clean=True)

    assert values(log) == contents[:9]
    assert log.truncated_bytes > 0
    assert append(log, b"next") == 9


def test_empty_segment_files_are_taken_as_they_are(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 20)
    crash(disk)
    (tmp_path / "data" / DIRECTORY / f"{20:020d}.log").write_bytes(b"")

    log = open_log(disk)

    assert log.log_end_offset == 20
    assert log.segments.bases[-1] == 20
    assert values(log) == contents
    assert append(log, b"next") == 20


def test_unfinished_files_are_removed(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 20)
    log.close()
    directory = tmp_path / "data" / DIRECTORY
    for name in (
        f"{0:020d}.log.deleted",
        f"{0:020d}.index.deleted",
        f"{0:020d}.log.cleaned",
        f"{0:020d}.timeindex.cleaned",
        f"{8:020d}.index.tmp",
        f"{77:020d}.index",
        f"{77:020d}.txnindex",
        f"{3:020d}.snapshot",
    ):
        (directory / name).write_bytes(b"rubbish")

    log = open_log(disk, clean=True)

    assert values(log) == contents
    assert not [name for name in names(disk) if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert f"{77:020d}.index" not in names(disk)
    assert f"{77:020d}.txnindex" not in names(disk)
    assert f"{3:020d}.snapshot" not in names(disk)


def compacted(log: PartitionLog, *numbers: int) -> bytes:
    """Batches as compaction would leave them: some are gone, offsets stay."""
    return b"".join(
        build_batch([(None, b"kept %d" % number)], base_offset=number, timestamp_ms=NOW) for number in numbers
    )


def test_a_swap_that_began_is_finished(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    fill(log, 40)
    bases = list(log.segments.bases)
    log.close()
    directory = tmp_path / "data" / DIRECTORY
    (directory / f"{0:020d}.log.swap").write_bytes(compacted(log, 2, bases[1] + 1, bases[2] - 1))

    log = open_log(disk, clean=True)

    assert list(log.segments.bases) == [0, *bases[2:]]
    assert offsets(records(log)) == [2, bases[1] + 1, bases[2] - 1, *range(bases[2], 40)]
    assert not names(disk, ".swap")
    assert offsets(records(log, bases[1])) == [bases[1] + 1, bases[2] - 1, *range(bases[2], 40)]


def test_a_swap_that_was_not_complete_is_undone(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk)
    contents = fill(log, 40)
    log.close()
    directory = tmp_path / "data" / DIRECTORY
    (directory / f"{0:020d}.log.cleaned").write_bytes(compacted(log, 2))
    (directory / f"{0:020d}.index.swap").write_bytes(b"")

    log = open_log(disk, clean=True)

    assert values(log) == contents
    assert not names(disk, ".swap")
    assert not names(disk, ".cleaned")


def test_a_crash_at_any_step_of_a_replacement_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Every file operation of the replacement in turn is the last one that happens."""
    outcomes = set()
    for steps in range(40):
        root = tmp_path / str(steps)
        disk = FaultyDisk(root)
        log = open_log(disk)
        fill(log, 40)
        old = [log.segments[0], log.segments[1]]
        end_offset = log.segments[2].base_offset
        cleaned = log.begin_cleaned_segment(0)
        for number in range(0, end_offset, 2):
            kept = build_batch([(None, b"kept")], base_offset=number, timestamp_ms=NOW)
            cleaned.append(kept, len(kept), number, NOW)
        cleaned.write_indexes()
        disk.refuse("rename", after=steps)
        try:
            log.replace_segments(old, cleaned, NOW)
            finished = True
        except Exception:
            finished = False
        disk.close()
        again = RealDisk(root)
        log = open_log(again)
        found = offsets(records(log))
        outcomes.add(tuple(found))
        assert found in (list(range(40)), [*range(0, end_offset, 2), *range(end_offset, 40)])
        again.close()
        if finished:
            assert found[1] == 2
            break
    assert len(outcomes) == 2


def test_snapshots_save_reading_the_log(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    for number in range(60):
        produce(log, number, b"x" * 40)
    bases = list(log.segments.bases)
    faulty_disk.close()
    faulty_disk.operations.clear()

    log = open_log(faulty_disk, recovery_point=bases[-1])

    read = {path for operation, path in faulty_disk.operations if operation == "read" and path.endswith(".log")}
    assert read == {f"{DIRECTORY}/{bases[-1]:020d}.log"}
    assert produce(log, 59, b"x" * 40).duplicate


def test_old_snapshots_do_not_pile_up(disk: RealDisk) -> None:
    for _ in range(10):
        log = open_log(disk, clean=True)
        fill(log, 1)
        log.close()

    assert len(names(disk, ".snapshot")) <= len(names(disk, ".log")) + 1


def test_a_log_starts_where_the_checkpoint_says(disk: RealDisk) -> None:
    log = open_log(disk)
    contents = fill(log, 40)
    log.close()

    log = open_log(disk, clean=True, log_start_offset=13)

    assert log.log_start_offset == 13
    assert values(log)[1:] == contents[14:]
    assert refusal(log.read(12, 100, 40, True)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_log_cut_to_before_its_start_begins_anew(disk: RealDisk, tmp_path: Path) -> None:
    log = open_log(disk, segment_bytes=1 << 20)
    fill(log, 10)
    crash(disk)
    damage(tmp_path, last_log(disk), lambda data: data[:0])

    log = open_log(disk, log_start_offset=7)

    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    assert append(log, b"a") == 7


def test_epochs_are_found_again_in_the_log(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=5)
    crash(disk)
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")

    log = open_log(disk)

    assert log.latest_epoch == 5
    assert log.end_offset_for_epoch(1) == (1, 1)
    assert disk.read_file(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n1 0\n5 1\n"


def test_flushed_data_survives_the_loss_of_the_page_cache(tmp_path: Path) -> None:
    root = tmp_path / "data"
    disk = SyncTrackingDisk(root)
    log = open_log(disk)
    flushed = fill(log, 25)
    task = log.unflushed()
    assert task is not None
    task.run()
    task.done()
    recovery_point = log.flushed_offset
    fill(log, 12)
    disk.close()

    lost = lose_page_cache(root)

    assert any(path.endswith(".log") for path in lost)
    again = RealDisk(root)
    log = open_log(again, recovery_point=recovery_point)
    assert values(log) == flushed
    again.close()


def test_what_was_flushed_of_transactions_survives_the_loss_of_the_page_cache(tmp_path: Path) -> None:
    root = tmp_path / "data"
    disk = SyncTrackingDisk(root)
    log = open_log(disk)
    for number in range(8):
        produce(log, 0, b"x" * 60, producer_id=number, transactional=True)
        fill(log, 4)
        end(log, producer_id=number, commit=number % 2 == 0)
    produce(log, 0, b"x", producer_id=9, transactional=True)
    aborted = log.aborted_transactions(0, 1000)
    assert len(aborted) == 4
    assert len(log.segments) > 4
    task = log.unflushed()
    assert task is not None
    task.run()
    task.done()
    end_offset, recovery_point = log.log_end_offset, log.flushed_offset
    disk.close()

    lose_page_cache(root)

    again = RealDisk(root)
    log = open_log(again, recovery_point=recovery_point)
    log.advance_high_watermark(log.log_end_offset)
    assert log.log_end_offset == end_offset
    assert log.aborted_transactions(0, 1000) == aborted
    assert log.last_stable_offset == end_offset - 1
    again.close()


def test_transactions_that_a_crash_interrupts_stay_open(disk: RealDisk) -> None:
    log = open_log(disk)
    produce(log, 0, producer_id=1, transactional=True)
    produce(log, 0, producer_id=2, transactional=True)
    end(log, producer_id=1, commit=True)
    append(log, b"x", acknowledge=False)
    crash(disk)

    log = open_log(disk)
    log.advance_high_watermark(log.log_end_offset)

    assert log.last_stable_offset == 1
    assert log.has_open_transaction(2, 0)
    assert not log.has_open_transaction(1, 0)


def test_batches_larger_than_a_chunk_are_recovered(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=1 << 30, max_message_bytes=1 << 30)
    large = [bytes([number]) * (3 << 20) for number in range(3)]
    for value in large:
        append(log, value)
    append(log, b"small")
    crash(disk)

    log = open_log(disk, segment_bytes=1 << 30, max_message_bytes=1 << 30)

    assert values(log) == [*large, b"small"]
    assert len(batch(large[0])) > 3 << 20
