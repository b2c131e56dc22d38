"""A disk that refuses: the client hears KAFKA_STORAGE_ERROR, what was acknowledged stays readable, and then it goes on."""

import pytest

from oncelog.log.storage import StorageFailed
from oncelog.model.error_code import ErrorCode
from tests.disks import FaultyDisk
from tests.unit.log.logs import NOW, append, batch, fill, open_log, produce, refusal, values


def test_a_failed_write_leaves_everything_as_it_was(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    contents = fill(log, 5)
    produce(log, 0, b"known")
    before = (log.log_end_offset, log.high_watermark, log.size_bytes, log.last_stable_offset)
    faulty_disk.refuse("append")

    refused = produce(log, 1, b"lost", transactional=True)

    assert refusal(refused) is ErrorCode.KAFKA_STORAGE_ERROR
    assert "No space left" in refused.why
    assert (log.log_end_offset, log.high_watermark, log.size_bytes, log.last_stable_offset) == before
    assert values(log) == [*contents, b"known"]
    faulty_disk.recover()
    assert produce(log, 1, b"again").base_offset == 6
    assert values(log) == [*contents, b"known", b"again"]


@pytest.mark.parametrize("operation", ["write_file", "open", "append", "remove"])
@pytest.mark.parametrize("after", range(5))
def test_a_roll_that_fails_is_tried_again(faulty_disk: FaultyDisk, operation: str, after: int) -> None:
    log = open_log(faulty_disk)
    expected = []
    failed = 0
    faulty_disk.refuse(operation, after=after)
    for number in range(80):
        if number == 60:
            faulty_disk.recover()
        value = b"%06d" % number + b"." * 40
        answer = log.append_as_leader(memoryview(batch(value)), 0, NOW)
        if refusal(answer) is None:
            expected.append(value)
        else:
            assert refusal(answer) is ErrorCode.KAFKA_STORAGE_ERROR
            failed += 1
    assert failed > 0
    assert len(expected) >= 20
    assert values(log) == expected
    assert len(log.segments) > 2
    log.close()
    assert values(open_log(faulty_disk, clean=True)) == expected
    faulty_disk.close()
    assert values(open_log(faulty_disk)) == expected


def test_the_leader_epoch_is_written_down_before_its_first_batch(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    append(log, b"a", leader_epoch=1)
    faulty_disk.refuse("write_file")

    assert refusal(log.append_as_leader(batch(b"b"), 2, NOW)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.latest_epoch == 1
    assert append(log, b"b", leader_epoch=1) == 1
    faulty_disk.recover()
    append(log, b"c", leader_epoch=2)
    assert faulty_disk.read_file("orders-0/leader-epoch-checkpoint") == b"0\n2\n1 0\n2 2\n"


def test_a_failed_read_is_a_refusal(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    fill(log, 20)
    faulty_disk.refuse("read")

    assert refusal(log.read(3, 1000, 20, True)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(log.read(0, 1000, 20, True)) is ErrorCode.KAFKA_STORAGE_ERROR
    faulty_disk.recover()
    assert refusal(log.read(3, 1000, 20, True)) is None


def test_a_damaged_batch_on_disk_is_a_refusal(faulty_disk: FaultyDisk) -> None:
    large = {"segment_bytes": 1 << 20, "index_interval_bytes": 4096}
    log = open_log(faulty_disk, **large)
    fill(log, 100)
    size = log.size_bytes // 100
    log.close()
    path = "orders-0/00000000000000000000.log"
    data = bytearray(faulty_disk.read_file(path))
    data[10 * size + 16] = 9
    faulty_disk.write_file(path, bytes(data))
    log = open_log(faulty_disk, **large, clean=True)

    assert refusal(log.read(11, 1000, 100, True)) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(log.read(5, 100, 100, True)) is None


def test_a_stop_that_cannot_write_is_no_clean_stop(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk)
    contents = fill(log, 20)
    faulty_disk.refuse("write_file")

    with pytest.raises(StorageFailed):
        log.close()

    faulty_disk.recover()
    faulty_disk.close()
    assert values(open_log(faulty_disk)) == contents


def test_retention_that_fails_loses_nothing_it_should_keep(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk, retention_bytes=1500)
    contents = fill(log, 60)
    faulty_disk.refuse("rename", after=5)

    with pytest.raises(StorageFailed):
        log.apply_retention(NOW)

    faulty_disk.recover()
    log.apply_retention(NOW)
    assert values(log) == contents[log.log_start_offset :]
    assert log.size_bytes < 2600
    faulty_disk.close()
    log = open_log(faulty_disk)
    assert values(log) == contents[log.log_start_offset :]


class TestFlush:
    def test_there_is_nothing_to_flush_in_a_new_log(self, faulty_disk: FaultyDisk) -> None:
        assert open_log(faulty_disk).unflushed() is None

    def test_done_moves_the_flushed_offset_to_what_had_been_appended_when_it_was_asked(
        self, faulty_disk: FaultyDisk
    ) -> None:
        log = open_log(faulty_disk)
        fill(log, 20)
        task = log.unflushed()
        fill(log, 5)

        task.run()
        assert log.flushed_offset == 0
        task.done()
        assert log.flushed_offset == 20
        again = log.unflushed()
        again.run()
        again.done()
        assert log.flushed_offset == 25
        assert log.unflushed() is None

    def test_every_segment_with_unflushed_data_is_synced_and_the_directory_when_files_are_new(
        self, faulty_disk: FaultyDisk
    ) -> None:
        log = open_log(faulty_disk)
        fill(log, 20)
        faulty_disk.operations.clear()
        task = log.unflushed()
        task.run()
        task.done()
        synced = [path for operation, path in faulty_disk.operations if operation == "sync"]
        assert {path for path in synced if path.endswith(".log")} == {segment.path(".log") for segment in log.segments}
        assert {segment.path(".index") for segment in list(log.segments)[:-1]} <= set(synced)
        assert synced[-1] == "orders-0"

        append(log, b"one more")
        faulty_disk.operations.clear()
        log.unflushed().run()
        assert faulty_disk.operations == [("sync", log.segments.active.path(".log"))]

    def test_a_failed_sync_moves_nothing(self, faulty_disk: FaultyDisk) -> None:
        log = open_log(faulty_disk)
        fill(log, 3)
        faulty_disk.refuse("sync")

        with pytest.raises(StorageFailed):
            log.unflushed().run()
        assert log.flushed_offset == 0

    def test_what_is_removed_meanwhile_needs_no_sync(self, faulty_disk: FaultyDisk) -> None:
        log = open_log(faulty_disk, retention_ms=1, file_delete_delay_ms=0)
        fill(log, 20)
        task = log.unflushed()
        log.apply_retention(NOW + 1000)
        log.apply_retention(NOW + 1000)

        task.run()
        task.done()

        assert log.flushed_offset == 20

    def test_what_is_cut_meanwhile_is_not_counted(self, faulty_disk: FaultyDisk) -> None:
        log = open_log(faulty_disk)
        fill(log, 20)
        task = log.unflushed()
        log.truncate_to(4)

        task.run()
        task.done()

        assert log.flushed_offset == 4
