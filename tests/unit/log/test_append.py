"""Appending: offsets, what is written into a batch, sizes, timestamps, compression, rolling."""

from dataclasses import replace
from pathlib import Path

import pytest

from oncelog.log.log_config import HOUR_MS, CleanupPolicy
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.records.batch import TimestampType, crc_matches, read_header
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.record import read_all_records
from oncelog.records.validation import RecordsRefused
from oncelog.runtime.disk import RealDisk
from tests.disks import FaultyDisk
from tests.unit.log.logs import NOW, append, batch, fill, open_log, records, refusal, values


def test_batches_get_the_next_offsets(disk: RealDisk) -> None:
    log = open_log(disk)

    first = log.append_as_leader(memoryview(batch(b"a", b"b", b"c")), 0, NOW)
    second = log.append_as_leader(memoryview(batch(b"d")), 0, NOW)

    assert first == Appended(0, 2, -1, 0, False)
    assert second == Appended(3, 3, -1, 0, False)
    assert [(record.offset, record.value) for record in records(log)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_offset_and_leader_epoch_are_written_into_the_batch_and_nothing_else(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"before")
    sent = batch(b"a", b"b")
    data = bytearray(sent)

    log.append_as_leader(memoryview(data), 5, NOW)

    stored = bytes(log.read(1, 10_000, 3, True).records)
    assert stored == bytes(data)
    assert stored[:8] == (1).to_bytes(8, "big")
    assert stored[12:16] == (5).to_bytes(4, "big")
    assert stored[8:12] == sent[8:12]
    assert stored[16:] == sent[16:]


def test_read_only_bytes_are_taken_as_well(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a")
    data = bytes(batch(b"b"))

    assert log.append_as_leader(data, 0, NOW).base_offset == 1
    assert log.append_as_leader(memoryview(data), 0, NOW).base_offset == 2
    assert data == bytes(batch(b"b"))
    assert values(log) == [b"a", b"b", b"b"]


def test_an_append_is_one_write(faulty_disk: FaultyDisk) -> None:
    log = open_log(faulty_disk, segment_bytes=1 << 20)
    append(log, b"the first one also writes down the leader epoch")
    faulty_disk.operations.clear()

    fill(log, 50)

    assert [operation for operation, _ in faulty_disk.operations] == ["append"] * 50


def test_a_batch_above_max_message_bytes_is_refused(disk: RealDisk) -> None:
    log = open_log(disk, max_message_bytes=200)

    assert refusal(log.append_as_leader(batch(b"x" * 200), 0, NOW)) is ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0
    assert append(log, b"x" * 100) == 0


def test_a_batch_above_segment_bytes_is_refused(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=200)

    assert refusal(log.append_as_leader(batch(b"x" * 200), 0, NOW)) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert append(log, b"x" * 100) == 0


def test_a_damaged_batch_is_refused(disk: RealDisk) -> None:
    log = open_log(disk)
    data = batch(b"abc")
    data[-2] ^= 1

    assert refusal(log.append_as_leader(memoryview(data), 0, NOW)) is ErrorCode.CORRUPT_MESSAGE
    assert log.size_bytes == 0


def test_a_compacted_topic_says_which_records_lack_a_key(disk: RealDisk) -> None:
    log = open_log(disk, cleanup_policy=frozenset({CleanupPolicy.COMPACT}))
    data = build_batch([(b"k", b"v"), (None, b"v")], timestamp_ms=NOW)

    refused = log.append_as_leader(data, 0, NOW)

    assert isinstance(refused, RecordsRefused)
    assert refused.code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [1]


def test_the_broker_stamps_what_is_appended_where_the_topic_says_so(disk: RealDisk) -> None:
    log = open_log(disk, message_timestamp_type=TimestampType.LOG_APPEND_TIME)

    appended = log.append_as_leader(memoryview(batch(b"a", timestamp_ms=5)), 0, NOW)

    assert appended.log_append_time_ms == NOW
    stored = log.read(0, 10_000, 1, True).records
    header = read_header(stored)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == NOW
    assert crc_matches(stored, 0, header)
    assert [record.timestamp for record in records(log)] == [NOW]


@pytest.mark.parametrize("wanted", list(Compression))
@pytest.mark.parametrize("sent", list(Compression))
def test_the_topic_decides_how_batches_are_compressed(disk: RealDisk, sent: Compression, wanted: Compression) -> None:
    log = open_log(disk, compression_type=wanted)
    data = batch(b"a" * 50, b"b" * 50, compression=sent, producer_id=3, producer_epoch=1, base_sequence=0)

    assert log.append_as_leader(memoryview(data), 0, NOW).last_offset == 1

    stored = log.read(0, 10_000, 2, True).records
    header = read_header(stored)
    assert header.compression is wanted
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 0)
    assert crc_matches(stored, 0, header)
    assert values(log) == [b"a" * 50, b"b" * 50]


def test_a_full_segment_is_rolled(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=400)

    contents = fill(log, 20)

    assert len(log.segments) > 3
    assert all(segment.size <= 400 for segment in log.segments)
    assert values(log) == contents


def test_a_segment_is_rolled_when_its_first_batch_is_older_than_segment_ms(disk: RealDisk) -> None:
    log = open_log(disk, segment_ms=HOUR_MS)
    append(log, b"a", timestamp_ms=NOW - HOUR_MS)
    append(log, b"b", timestamp_ms=NOW)
    assert len(log.segments) == 1

    append(log, b"c", timestamp_ms=NOW + 1)

    assert list(log.segments.bases) == [0, 2]


def test_the_age_of_a_segment_is_known_again_after_a_restart(disk: RealDisk) -> None:
    log = open_log(disk, segment_ms=HOUR_MS)
    append(log, b"a", timestamp_ms=NOW - HOUR_MS)
    log.close()
    log = open_log(disk, segment_ms=HOUR_MS, clean=True)

    append(log, b"b", timestamp_ms=NOW + 1)

    assert list(log.segments.bases) == [0, 1]


def test_an_idle_segment_is_rolled_when_its_time_comes(disk: RealDisk) -> None:
    log = open_log(disk, segment_ms=HOUR_MS)
    assert not log.roll_if_due(NOW + 10 * HOUR_MS)
    append(log, b"a")

    assert not log.roll_if_due(NOW + HOUR_MS)
    assert log.roll_if_due(NOW + HOUR_MS + 1)
    assert not log.roll_if_due(NOW + 9 * HOUR_MS)
    assert list(log.segments.bases) == [0, 1]


def test_an_index_that_would_grow_too_large_rolls_the_segment(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=1 << 20, segment_index_bytes=48, index_interval_bytes=100)

    fill(log, 40)

    assert len(log.segments) > 5
    assert all(len(segment.indexes.by_offset) <= 48 // 8 for segment in log.segments)


def test_a_changed_config_holds_from_the_next_append(disk: RealDisk) -> None:
    log = open_log(disk)
    fill(log, 3)

    log.update_config(replace(log.config, segment_bytes=300, max_message_bytes=150))

    assert refusal(log.append_as_leader(batch(b"x" * 200), 0, NOW)) is ErrorCode.MESSAGE_TOO_LARGE
    fill(log, 3)
    assert list(log.segments.bases) == [0, 3, 5]


def test_the_brokers_own_batches_may_come_several_at_once(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"first")

    appended = log.append_as_leader(bytes(batch(b"a", b"b") + batch(b"c")), 0, NOW, from_client=False)

    assert (appended.base_offset, appended.last_offset) == (1, 3)
    assert values(log) == [b"first", b"a", b"b", b"c"]


def test_of_several_batches_all_or_none_are_taken(disk: RealDisk) -> None:
    log = open_log(disk, max_message_bytes=150)

    refused = log.append_as_leader(bytes(batch(b"a") + batch(b"x" * 200)), 0, NOW, from_client=False)

    assert refusal(refused) is ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0
    assert refusal(log.append_as_leader(b"", 0, NOW, from_client=False)) is ErrorCode.INVALID_RECORD
    assert refusal(log.append_as_leader(b"rubbish", 0, NOW, from_client=False)) is ErrorCode.CORRUPT_MESSAGE


def test_leader_epochs_may_start_over_when_the_cluster_forgot_them(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, b"a", leader_epoch=3)
    append(log, b"b", leader_epoch=7)

    append(log, b"c", leader_epoch=4)
    append(log, b"d", leader_epoch=4)

    assert log.latest_epoch == 4
    assert log.end_offset_for_epoch(3) == (3, 2)
    assert disk.read_file("orders-0/leader-epoch-checkpoint") == b"0\n2\n3 0\n4 2\n"


def test_a_follower_takes_over_offsets_and_epochs(disk: RealDisk, tmp_path: Path) -> None:
    leader = open_log(disk, segment_bytes=1 << 20)
    append(leader, b"a", b"b", leader_epoch=1)
    append(leader, b"c", leader_epoch=4)
    other = RealDisk(tmp_path / "follower")
    follower = open_log(other)

    assert follower.append_as_follower(leader.read(0, 10_000, 3, True).records) is None

    assert values(follower) == [b"a", b"b", b"c"]
    assert follower.log_end_offset == 3
    assert follower.end_offset_for_epoch(1) == (1, 2)
    assert follower.latest_epoch == 4
    assert (
        refusal(follower.append_as_follower(leader.read(0, 10_000, 3, True).records)) is ErrorCode.OFFSET_OUT_OF_RANGE
    )
    assert read_all_records(follower.read(0, 10_000, 3, True).records) == records(leader)
    other.close()


def test_a_follower_refuses_what_arrives_damaged(disk: RealDisk) -> None:
    follower = open_log(disk)
    data = batch(b"a")
    data[-1] ^= 1

    assert refusal(follower.append_as_follower(data)) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(follower.append_as_follower(data[:-1])) is ErrorCode.CORRUPT_MESSAGE
    assert follower.append_as_follower(b"") is None
    assert follower.log_end_offset == 0


def test_offsets_too_far_apart_for_one_segment_go_to_two(disk: RealDisk) -> None:
    follower = open_log(disk)
    far = 3 << 31

    assert follower.append_as_follower(batch(b"a", base_offset=far)) is None
    assert follower.append_as_follower(batch(b"b", base_offset=2 * far)) is None

    assert list(follower.segments.bases) == [far, 2 * far]
    assert [record.offset for record in records(follower, far)] == [far, 2 * far]
