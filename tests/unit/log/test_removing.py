"""Removing: retention by time and size, DeleteRecords, truncation, and the way files leave."""

import pytest

from oncelog.log.log_config import HOUR_MS, CleanupPolicy
from oncelog.model.error_code import ErrorCode
from oncelog.runtime.disk import RealDisk
from tests.unit.log.logs import NOW, append, batch, end, fill, offsets, open_log, produce, records, refusal, values

DIRECTORY = "orders-0"
COMPACT = frozenset({CleanupPolicy.COMPACT})


def files(disk: RealDisk, ending: str) -> list[str]:
    return sorted(name for name in disk.list_directory(DIRECTORY) if name.endswith(ending))


class TestByTime:
    def test_segments_go_when_their_youngest_record_is_too_old(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=HOUR_MS)
        for number in range(30):
            append(log, b"x" * 60, timestamp_ms=NOW + number)
        bases = list(log.segments.bases)

        assert log.apply_retention(NOW + HOUR_MS + bases[1] - 1) == 0
        assert log.apply_retention(NOW + HOUR_MS + bases[1]) == 1

        assert log.log_start_offset == bases[1]
        assert offsets(records(log)) == list(range(bases[1], 30))
        assert refusal(log.read(0, 100, 30, True)) is ErrorCode.OFFSET_OUT_OF_RANGE

    def test_the_last_segment_goes_too_and_offsets_go_on(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=HOUR_MS)
        fill(log, 30)
        count = len(log.segments)

        assert log.apply_retention(NOW + 2 * HOUR_MS) == count
        assert log.apply_retention(NOW + 2 * HOUR_MS) == 0

        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (30, 30, 0)
        assert append(log, b"next") == 30

    def test_nothing_above_the_high_watermark_goes(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=HOUR_MS)
        for _ in range(30):
            append(log, b"x" * 60, acknowledge=False)
        bases = list(log.segments.bases)
        log.advance_high_watermark(bases[2] + 1)

        assert log.apply_retention(NOW + 2 * HOUR_MS) == 2
        assert log.log_start_offset == bases[2]

    def test_records_without_timestamps_are_as_old_as_their_file(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=HOUR_MS)
        append(log, b"x", timestamp_ms=-1)
        written = disk.modified_ms(f"{DIRECTORY}/{0:020d}.log")

        assert log.apply_retention(written + HOUR_MS) == 0
        assert log.apply_retention(written + HOUR_MS + 1) == 1

    def test_without_limit_everything_stays(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=-1, retention_bytes=-1)
        fill(log, 30)
        assert log.apply_retention(NOW + 10**12) == 0

    def test_a_topic_that_is_only_compacted_keeps_its_records(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=HOUR_MS, cleanup_policy=COMPACT)
        for number in range(30):
            log.append_as_leader(batch(b"x" * 60, timestamp_ms=NOW + number), 0, NOW, from_client=False)
        log.advance_high_watermark(30)
        assert log.apply_retention(NOW + 10**12) == 0


class TestBySize:
    def test_the_oldest_go_as_long_as_enough_is_left(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=2500)
        fill(log, 60)

        log.apply_retention(NOW)

        assert log.size_bytes >= 2500
        assert log.size_bytes - log.segments[0].size < 2500
        assert log.log_start_offset == log.segments[0].base_offset > 0

    def test_a_log_that_may_keep_nothing_is_emptied(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=0)
        fill(log, 20)

        log.apply_retention(NOW)

        assert (log.size_bytes, log.log_start_offset) == (0, 20)


class TestFiles:
    def test_they_are_renamed_first_and_removed_later(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=1000, file_delete_delay_ms=60_000)
        fill(log, 40)
        produce(log, 0)

        gone = log.apply_retention(NOW)

        assert len(files(disk, ".log.deleted")) == gone > 1
        assert len(files(disk, ".log")) == len(log.segments)
        log.apply_retention(NOW + 59_999)
        assert files(disk, ".log.deleted")
        log.apply_retention(NOW + 60_000)
        assert not files(disk, ".deleted")
        assert all(int(name[:20]) >= log.log_start_offset for name in files(disk, ".snapshot"))

    def test_a_stop_removes_them_at_once(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=1000)
        fill(log, 40)
        log.apply_retention(NOW)
        log.close()
        assert not files(disk, ".deleted")
        assert open_log(disk, clean=True).log_start_offset == log.log_start_offset

    def test_who_is_reading_a_segment_meanwhile_gets_it(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=1000)
        contents = fill(log, 40)
        plan = log.locate(0, 10_000, 40, True)
        log.apply_retention(NOW)

        read = plan.finish(plan.file.read_cold_at(plan.position, plan.length))

        assert read.next_offset > 0
        assert contents[0] in bytes(read.records)


class TestDeleteRecords:
    def test_the_log_starts_later(self, disk: RealDisk) -> None:
        log = open_log(disk)
        fill(log, 40)

        assert log.delete_records_before(13) == 13
        assert log.delete_records_before(5) == 13
        assert offsets(records(log))[0] == 13
        assert log.delete_records_before(-1) == 40
        assert records(log) == []

    def test_not_beyond_the_high_watermark(self, disk: RealDisk) -> None:
        log = open_log(disk)
        for _ in range(5):
            append(log, b"x", acknowledge=False)
        log.advance_high_watermark(3)

        assert refusal(log.delete_records_before(4)) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert refusal(log.delete_records_before(-2)) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.delete_records_before(3) == 3

    def test_not_of_a_compacted_topic(self, disk: RealDisk) -> None:
        log = open_log(disk, cleanup_policy=COMPACT)
        assert refusal(log.delete_records_before(0)) is ErrorCode.POLICY_VIOLATION

    def test_segments_that_lie_before_it_go_with_the_next_retention(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_ms=-1)
        fill(log, 40)
        bases = list(log.segments.bases)
        log.delete_records_before(bases[2] + 1)

        assert log.apply_retention(NOW) == 2
        assert log.segments[0].base_offset == bases[2]
        assert log.log_start_offset == bases[2] + 1


class TestTruncate:
    @pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 16, 23, 39])
    def test_everything_from_there_on_is_gone(self, disk: RealDisk, offset: int) -> None:
        log = open_log(disk)
        contents = fill(log, 40)

        log.truncate_to(offset)

        assert (log.log_end_offset, log.high_watermark) == (offset, offset)
        assert values(log) == contents[:offset]
        assert append(log, b"new") == offset
        assert values(log) == [*contents[:offset], b"new"]
        log.close()
        assert values(open_log(disk, clean=True)) == [*contents[:offset], b"new"]
        disk.close()
        assert values(open_log(disk)) == [*contents[:offset], b"new"]

    def test_places_remembered_from_before_lead_nobody_astray(self, disk: RealDisk) -> None:
        log = open_log(disk, segment_bytes=1 << 20)
        fill(log, 30)
        for offset in range(30):
            log.read(offset, 150, 30, True)

        log.truncate_to(10)
        fill(log, 40, size=90)

        for offset in range(50):
            assert offsets(records(log, offset)) == list(range(offset, 50))

    def test_a_log_that_is_not_longer_stays(self, disk: RealDisk) -> None:
        log = open_log(disk)
        contents = fill(log, 3)
        log.truncate_to(3)
        log.truncate_to(99)
        assert values(log) == contents

    def test_to_before_the_start_it_begins_anew(self, disk: RealDisk) -> None:
        log = open_log(disk, retention_bytes=1000)
        fill(log, 40)
        log.apply_retention(NOW)

        log.truncate_to(5)

        assert (log.log_start_offset, log.log_end_offset) == (5, 5)
        assert append(log, b"x") == 5

    def test_producers_and_transactions_go_back_too(self, disk: RealDisk) -> None:
        log = open_log(disk)
        for number in range(20):
            produce(log, number, b"x" * 40)
        produce(log, 0, producer_id=9, transactional=True)
        end(log, producer_id=9, commit=False)
        produce(log, 1, producer_id=9, transactional=True)

        log.truncate_to(21)
        assert log.last_stable_offset == 20
        assert log.aborted_transactions(0, 100) == []
        log.truncate_to(15)

        assert log.last_stable_offset == 15
        assert [producer.producer_id for producer in log.active_producers] == [7]
        assert refusal(produce(log, 20)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(log, 15).base_offset == 15

    def test_a_segment_that_is_written_again_keeps_its_indexes_in_memory(self, disk: RealDisk) -> None:
        log = open_log(disk)
        produce(log, 0, producer_id=9, transactional=True)
        fill(log, 6)
        end(log, producer_id=9, commit=False)
        fill(log, 40)
        log.truncate_to(5)
        fill(log, 40)
        for offset in range(log.log_end_offset):
            log.read(offset, 150, log.log_end_offset, True)

        assert log.aborted_transactions(0, 100) == []
        assert offsets(records(log)) == list(range(45))
        log.truncate_to(3)
        log.close()
        log = open_log(disk, clean=True)
        assert log.aborted_transactions(0, 100) == []
        assert offsets(records(log)) == list(range(3))
        assert log.last_stable_offset == 0

    def test_leader_epochs_are_forgotten(self, disk: RealDisk) -> None:
        log = open_log(disk)
        append(log, b"a", leader_epoch=1)
        append(log, b"b", leader_epoch=2)

        log.truncate_to(1)

        assert log.latest_epoch == 1
        assert disk.read_file(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n1 0\n"

    def test_the_largest_timestamp_is_what_is_left(self, disk: RealDisk) -> None:
        log = open_log(disk, segment_bytes=1 << 20)
        for number in range(30):
            append(log, b"x" * 60, timestamp_ms=NOW + number)

        log.truncate_to(17)

        assert log.max_timestamp_offset() == (NOW + 16, 16, 0)
        append(log, b"old", timestamp_ms=NOW)
        assert log.max_timestamp_offset() == (NOW + 16, 16, 0)
