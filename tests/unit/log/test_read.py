"""Reading: from any offset, whole batches, within bytes and offset bounds; and by time."""

import pytest

from oncelog.log.reading import Read, ReadPlan
from oncelog.model.error_code import ErrorCode
from oncelog.records.batch import batches
from oncelog.runtime.disk import RealDisk
from tests.unit.log.logs import NOW, append, fill, offsets, open_log, reads, records, refusal, values


def offsets_of(read: object) -> list[int]:
    assert isinstance(read, Read)
    return [header.base_offset for _, header in batches(read.records)]


def test_every_offset_can_be_read_from(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 60)
    assert len(log.segments) > 4

    for offset in range(60):
        assert offsets(records(log, offset)) == list(range(offset, 60))


def test_an_offset_inside_a_batch_gives_the_whole_batch(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a", b"b", b"c")
    append(log, b"d", b"e")

    assert offsets_of(log.read(2, 10_000, 5, True)) == [0, 3]
    assert offsets_of(log.read(4, 10_000, 5, True)) == [3]


def test_the_end_of_the_log_is_empty_and_beyond_it_is_out_of_range(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 3)

    assert log.read(3, 100, 3, True) == Read(b"", 3)
    assert refusal(log.read(4, 100, 5, True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert refusal(log.read(-1, 100, 5, True)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_is_read_that_reaches_the_bound(disk: RealDisk) -> None:
    log = open_log(disk)
    for _ in range(5):
        append(log, b"a", b"b")

    for bound in range(11):
        assert offsets_of(log.read(0, 10_000, bound, True)) == [
            offset for offset in range(0, 10, 2) if offset + 1 < bound
        ]
    assert log.read(6, 10_000, 4, True) == Read(b"", 6)


def test_max_bytes_cuts_between_batches(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=1 << 20)
    fill(log, 200)
    size = log.size_bytes // 200

    for count in (1, 2, 7, 50):
        for surplus in (0, 1, size - 1):
            read = log.read(20, size * count + surplus, 200, True)
            assert offsets_of(read) == list(range(20, 20 + count))
            assert read.next_offset == 20 + count


def test_the_first_batch_comes_whole_only_where_that_is_asked_for(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"x" * 300)
    append(log, b"y")

    assert offsets_of(log.read(0, 10, 2, True)) == [0]
    assert offsets_of(log.read(0, 0, 2, True)) == [0]
    assert log.read(0, 10, 2, False) == Read(b"", 0)
    assert log.read(0, 0, 2, False) == Read(b"", 0)


def test_a_reader_that_goes_on_where_it_stopped_sees_everything_once(disk: RealDisk) -> None:
    log = open_log(disk)
    contents = fill(log, 100)

    for max_bytes in (1, 130, 333, 1000, 100_000):
        assert [record.value for record in records(log, 0, max_bytes)] == contents


def test_a_read_stays_within_a_segment(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 30)

    assert [read.next_offset for read in reads(log)] == [*log.segments.bases[1:], 30]


def test_a_reader_at_the_tail_follows_the_writer(disk: RealDisk) -> None:
    log = open_log(disk)
    position = 0
    for number in range(50):
        append(log, b"%d" % number)
        read = log.read(position, 10_000, log.high_watermark, True)
        assert offsets_of(read) == [number]
        position = read.next_offset


def test_a_read_can_be_planned_and_carried_out_elsewhere(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 30)

    plan = log.locate(3, 300, 30, True)

    assert isinstance(plan, ReadPlan)
    read = plan.finish(plan.file.read_cold_at(plan.position, plan.length))
    assert read == log.read(3, 300, 30, True)
    assert plan.length <= 300
    assert log.locate(30, 300, 30, True) == Read(b"", 30)


def test_reading_needs_no_index_file(disk: RealDisk) -> None:
    log = open_log(disk)
    contents = fill(log, 60)
    log.close()
    for name in disk.list_directory("orders-0"):
        if name.endswith(("index", "snapshot")):
            disk.remove(f"orders-0/{name}")
    log = open_log(disk, clean=True)

    assert offsets(records(log, 17)) == list(range(17, 60))
    assert values(log) == contents
    fill(log, 20)
    assert offsets(records(log, 17)) == list(range(17, 80))


def test_an_index_that_leads_astray_is_rebuilt(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=10_000)
    fill(log, 200)
    log.close()
    path = "orders-0/00000000000000000000.index"
    index = bytearray(disk.read_file(path))
    # Still rising, and the last entry is right: only following it shows that it is wrong.
    for entry in range(0, len(index) - 8, 8):
        index[entry + 7] ^= 1
    disk.write_file(path, bytes(index))
    log = open_log(disk, segment_bytes=10_000, clean=True)

    for offset in range(0, 200, 7):
        assert offsets(records(log, offset)) == list(range(offset, 200))
    assert disk.read_file(path) != bytes(index)


def test_indexes_of_old_segments_are_not_all_kept_in_memory(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 100)
    for offset in range(100):
        log.read(offset, 150, 100, True)

    loaded = [segment for segment in log.segments if segment is not log.segments.active and segment.indexes.loaded]

    assert len(loaded) <= 4
    assert len(log.segments) > 8


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_are_found_by_time(disk: RealDisk, clean: bool) -> None:
    log = open_log(disk)
    for number in range(60):
        append(log, b"x" * 30, b"y" * 30, timestamp_ms=NOW + 10 * number)
    log.close()
    log = open_log(disk, clean=clean)

    for number in range(60):
        found = log.offset_for_timestamp(NOW + 10 * number)
        assert found is not None
        assert (found.offset, found.timestamp, found.leader_epoch) == (2 * number, NOW + 10 * number, 0)
        if number:
            assert log.offset_for_timestamp(NOW + 10 * number - 3) == found
    assert log.offset_for_timestamp(NOW + 591) is None
    assert log.offset_for_timestamp(0).offset == 0


def test_time_need_not_rise_with_the_offset(disk: RealDisk) -> None:
    log = open_log(disk)
    times = [5, 3, 9, 1, 9, 4, 12, 2, 7, 12, 6] * 5
    for time in times:
        append(log, b"x" * 50, timestamp_ms=NOW + time)

    for wanted in range(14):
        expected = next((offset for offset, time in enumerate(times) if time >= wanted), None)
        found = log.offset_for_timestamp(NOW + wanted)
        assert (found and found.offset) == expected
    assert log.max_timestamp_offset() == (NOW + 12, 6, 0)


def test_records_before_the_start_of_the_log_are_not_found_by_time(disk: RealDisk) -> None:
    log = open_log(disk)
    for number in range(30):
        append(log, b"x" * 50, timestamp_ms=NOW + number)
    log.delete_records_before(17)

    assert log.offset_for_timestamp(NOW).offset == 17


def test_a_log_without_timestamps_has_no_largest(disk: RealDisk) -> None:
    log = open_log(disk)
    assert log.max_timestamp_offset() is None
    append(log, b"a", timestamp_ms=-1)
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None
