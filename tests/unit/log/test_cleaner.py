"""Log compaction on real files: what stays, what goes, and that nobody notices but by the size."""

from dataclasses import replace
from pathlib import Path

import pytest

from oncelog.log.cleaner import clean, needs_cleaning
from oncelog.log.log_config import CleanupPolicy
from oncelog.records.batch import TimestampType
from oncelog.records.compression import Compression
from tests.unit.log.compacted_log import CONFIG, RETENTION_MS, START_MS, CompactedLog


@pytest.fixture
def log(tmp_path: Path) -> CompactedLog:
    return CompactedLog(tmp_path)


def test_of_every_key_the_last_record_stays_at_its_offset(log: CompactedLog) -> None:
    log.put(("a", "1"), ("b", "1"), ("a", "2"))
    log.put(("c", "1"), ("b", "2"))
    log.roll()
    log.put(("c", "2"))

    cleaned = log.clean()

    assert cleaned is not None
    assert cleaned.up_to == 5
    assert cleaned.bytes_after < cleaned.bytes_before
    assert log.pairs() == [("a", "2"), ("c", "1"), ("b", "2"), ("c", "2")]
    assert log.offsets() == [2, 3, 4, 5]


def test_the_segment_being_written_is_never_touched(log: CompactedLog) -> None:
    log.put(("a", "1"), ("a", "2"))

    assert log.clean() is None
    assert log.pairs() == [("a", "1"), ("a", "2")]


def test_records_without_a_key_go(log: CompactedLog) -> None:
    log.log.update_config(replace(CONFIG, cleanup_policy=frozenset({CleanupPolicy.DELETE})))
    log.put((None, "x"), ("a", "1"))
    log.log.update_config(CONFIG)
    log.roll()

    log.clean()

    assert log.pairs() == [("a", "1")]


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_keeps_its_compression_its_offsets_and_its_producer(
    log: CompactedLog, compression: Compression
) -> None:
    log.put(("a", "1"), ("b", "1"), ("c", "1"), producer_id=7, compression=compression)
    log.put(("a", "2"), ("c", "2"))
    log.roll()

    log.clean()

    first = log.headers()[0]
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 2, 1)
    assert (first.producer_id, first.base_sequence, first.compression) == (7, 0, compression)
    assert log.records()[0][:4] == (1, START_MS, b"b", b"1")


def test_a_batch_nothing_goes_from_is_copied_as_it_is(log: CompactedLog) -> None:
    log.put(("a", "1"), ("b", "1"), compression=Compression.ZSTD)
    before = next(log.read())[1]
    log.roll()

    log.clean()

    assert next(log.read())[1] == before


def test_a_tombstone_stays_until_its_horizon_has_passed(log: CompactedLog) -> None:
    log.put(("a", "1"), ("b", "1"))
    log.put(("a", None), ("b", "2"))
    log.roll()
    log.clean()

    assert log.pairs() == [("a", None), ("b", "2")]
    assert log.headers()[0].delete_horizon_ms == START_MS + RETENTION_MS
    assert [record.timestamp for record in log.records()] == [START_MS, START_MS]

    log.now_ms += RETENTION_MS - 1
    log.put(("c", "1"))
    log.roll()
    log.clean()
    assert ("a", None) in log.pairs()
    assert log.headers()[0].delete_horizon_ms == START_MS + RETENTION_MS, "the first round's time counts"

    log.now_ms += 1
    log.put(("d", "1"))
    log.roll()
    log.clean()
    assert log.pairs() == [("b", "2"), ("c", "1"), ("d", "1")]


def test_append_times_survive_a_delete_horizon(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path, replace(CONFIG, message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    log.put(("a", None), ("b", "1"))
    log.roll()

    log.clean()

    assert log.headers()[0].has_delete_horizon
    assert {record.timestamp for record in log.records()} == {START_MS}


def test_small_segments_become_one(log: CompactedLog) -> None:
    for number in range(6):
        log.put((f"k{number % 2}", str(number)))
        log.roll()
    assert len(log.log.segments) == 7

    log.clean()

    assert list(log.log.segments.bases) == [0, 6]
    assert log.pairs() == [("k0", "4"), ("k1", "5")]
    log.log.apply_retention(log.now_ms)
    names = sorted(path.name for path in log.directory.iterdir())
    assert [name for name in names if name.endswith(".log")] == [f"{base:020d}.log" for base in (0, 6)]
    assert [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))] == []
    assert [name for name in names if name.endswith(".snapshot")] == [f"{6:020d}.snapshot"]


def test_a_group_never_grows_beyond_a_segment(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path, replace(CONFIG, segment_bytes=250))
    for number in range(10):
        log.put((f"k{number}", "x" * 20))
    log.roll()

    log.clean()

    assert len(log.pairs()) == 10
    assert all(segment.size <= 250 for segment in log.log.segments)


def test_a_long_key_is_told_from_another(log: CompactedLog) -> None:
    first, second = "k" * 100 + "1", "k" * 100 + "2"
    log.put((first, "1"), (second, "1"), (first, "2"))
    log.roll()

    log.clean()

    assert log.pairs() == [(second, "1"), (first, "2")]


def test_a_full_key_map_ends_the_round_and_the_next_goes_on(log: CompactedLog) -> None:
    for number in range(20):
        log.put((f"k{number % 10}", str(number)))
    log.roll()

    first = log.clean(max_keys=4)
    assert first is not None
    assert first.up_to == 4
    assert len(log.pairs()) == 20
    for _ in range(20):
        if log.clean(max_keys=4) is None:
            break

    assert log.pairs() == [(f"k{number % 10}", str(number)) for number in range(10, 20)]


# Transactions


def test_aborted_data_goes_and_its_marker_follows_later(log: CompactedLog) -> None:
    log.put(("a", "committed"), producer_id=1, transactional=True)
    log.put(("a", "aborted"), ("b", "aborted"), producer_id=2, transactional=True)
    log.end(1, committed=True)
    log.end(2, committed=False)
    log.put(("c", "1"), producer_id=2, transactional=True)
    log.end(2, committed=True)
    log.roll()

    log.clean()

    assert log.pairs() == [("a", "committed"), ("c", "1")]
    assert [header.base_offset for header in log.headers() if header.is_control] == [3, 4, 6]
    assert log.log.aborted_transactions(0, 100) == [(2, 1, 4, 5)], "its batch was still met in this round"

    log.now_ms += 1
    log.put(("d", "1"))
    log.roll()
    log.clean()
    # The batch is gone, but the marker stays for as long as a tombstone would.
    assert log.log.aborted_transactions(0, 100) == []
    marker = next(header for header in log.headers() if header.base_offset == 4)
    assert marker.delete_horizon_ms == log.now_ms + RETENTION_MS

    log.now_ms += RETENTION_MS
    log.put(("e", "1"))
    log.roll()
    log.clean()
    assert [header.base_offset for header in log.headers() if header.is_control] == [3, 6]
    assert log.pairs() == [("a", "committed"), ("c", "1"), ("d", "1"), ("e", "1")]


def test_a_commit_marker_stays_while_its_data_does(log: CompactedLog) -> None:
    log.put(("a", "1"), producer_id=1, transactional=True)
    log.end(1, committed=True)
    for _ in range(3):
        log.put(("b", "x"))
        log.roll()
        log.clean()
        log.now_ms += 2 * RETENTION_MS

    assert [header.is_control for header in log.headers()[:2]] == [False, True]

    log.put(("a", "2"), producer_id=1, transactional=True)
    log.end(1, committed=True)
    for _ in range(3):
        log.put(("b", "x"))
        log.roll()
        log.clean()
        log.now_ms += 2 * RETENTION_MS
    assert [header.base_offset for header in log.headers() if header.is_control] == [6]


def test_nothing_of_an_open_transaction_is_cleaned(log: CompactedLog) -> None:
    log.put(("a", "1"))
    log.put(("a", "2"))
    log.roll()
    log.put(("a", "open"), producer_id=1, transactional=True)
    log.roll()
    log.put(("a", "3"))
    log.roll()

    log.clean()

    assert log.offsets() == [1], "read_committed ends at the open transaction"
    assert [header.base_offset for header in log.headers()] == [1, 2, 3]

    log.end(1, committed=False)
    log.roll()
    log.clean()
    assert log.pairs() == [("a", "3")]


def test_an_aborted_transaction_over_several_segments_goes_as_a_whole(log: CompactedLog) -> None:
    log.put(("a", "before"))
    for number in range(3):
        log.put((f"k{number}", "aborted"), ("a", "aborted"), producer_id=5, transactional=True)
        log.roll()
    log.end(5, committed=False)
    log.put(("z", "1"), producer_id=5)
    log.roll()

    log.clean()

    assert log.pairs() == [("a", "before"), ("z", "1")]


def test_a_producer_s_last_sequence_survives_its_records(log: CompactedLog) -> None:
    log.put(("a", "1"), ("a", "2"), producer_id=9)
    log.put(("a", "3"))
    log.roll()
    log.clean()

    empty = log.headers()[0]
    assert (empty.producer_id, empty.record_count, empty.base_offset, empty.last_offset) == (9, 0, 0, 1)
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    log.crash()
    producer = next(producer for producer in log.log.active_producers if producer.producer_id == 9)
    assert producer.next_sequence == 2


def test_the_epoch_in_a_last_marker_survives(log: CompactedLog) -> None:
    log.end(9, committed=False)
    for _ in range(4):
        log.put(("b", "1"))
        log.roll()
        log.clean()
        log.now_ms += 2 * RETENTION_MS

    marker = next(header for header in log.headers() if header.is_control)
    assert (marker.producer_id, marker.record_count) == (9, 1)
    log.crash()
    assert [producer.producer_id for producer in log.log.active_producers] == [9]

    log.put(("a", "1"), producer_id=9)
    log.roll()
    log.clean()
    assert not any(header.is_control for header in log.headers())


# When


def test_worth_it_by_ratio(log: CompactedLog) -> None:
    assert not needs_cleaning(log.log, log.now_ms)
    log.put(("a", "1" * 300))
    log.roll()
    assert needs_cleaning(log.log, log.now_ms)
    log.clean()
    assert not needs_cleaning(log.log, log.now_ms)
    log.put(("b", "1"))
    log.roll()
    assert not needs_cleaning(log.log, log.now_ms), "less than half is dirty"
    log.put(("c", "1" * 300))
    log.roll()
    assert needs_cleaning(log.log, log.now_ms)


def test_a_log_that_only_deletes_is_not_compacted(log: CompactedLog) -> None:
    log.put(("a", "1"), ("a", "2"))
    log.roll()
    log.log.update_config(replace(CONFIG, cleanup_policy=frozenset({CleanupPolicy.DELETE})))

    assert not needs_cleaning(log.log, log.now_ms)
    assert log.clean() is None


def test_compact_and_delete_together(tmp_path: Path) -> None:
    log = CompactedLog(
        tmp_path,
        replace(CONFIG, cleanup_policy=frozenset({CleanupPolicy.COMPACT, CleanupPolicy.DELETE}), retention_ms=500),
    )
    log.put(("old", "1"), ("a", "1"))
    log.roll()
    log.now_ms += 400
    log.put(("a", "2"), ("a", "3"))
    log.roll()
    log.now_ms += 400
    log.put(("b", "1"))

    log.log.apply_retention(log.now_ms)
    log.clean()

    assert log.log.log_start_offset == 2
    assert [(record.key, record.value) for record in log.records(2)] == [(b"a", b"3"), (b"b", b"1")]


def test_what_is_too_young_waits(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path, replace(CONFIG, min_compaction_lag_ms=500))
    log.put(("a", "1"), ("a", "2"))
    log.roll()
    log.now_ms += 400
    log.put(("a", "3"), ("a", "4"))
    log.roll()

    assert log.clean() is None
    log.now_ms += 101
    log.clean()
    assert log.pairs() == [("a", "2"), ("a", "3"), ("a", "4")]


def test_what_is_dirty_for_too_long_is_cleaned_whatever_the_ratio(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path, replace(CONFIG, max_compaction_lag_ms=1000))
    log.put(("a", "1" * 500))
    log.roll()
    log.clean()
    log.put(("b", "1"))
    log.roll()

    log.now_ms += 1000
    assert not needs_cleaning(log.log, log.now_ms)
    log.now_ms += 1
    assert needs_cleaning(log.log, log.now_ms)


# In small turns, while the log lives on


def test_the_work_comes_in_small_pieces(log: CompactedLog) -> None:
    log.put(*((f"k{number}", "v") for number in range(5000)))
    log.roll()

    turns = list(clean(log.log, log.now_ms))

    assert turns.count(None) > 30


def test_appends_and_reads_go_on_in_between(log: CompactedLog) -> None:
    for number in range(50):
        log.put(*((f"k{number}", str(number)) for number in range(100)))
    log.roll()
    written = 0
    for _ in clean(log.log, log.now_ms):
        log.put((f"new{written}", "1"))
        written += 1
        assert log.records(4999)[0].offset == 4999

    assert len(log.pairs()) == 100 + written


def test_a_round_is_given_up_when_its_segments_are_taken_away(log: CompactedLog) -> None:
    config = replace(CONFIG, cleanup_policy=frozenset({CleanupPolicy.COMPACT, CleanupPolicy.DELETE}), retention_ms=10)
    log.log.update_config(config)
    log.put(*((f"k{number}", "v") for number in range(2000)))
    log.roll()
    job = clean(log.log, log.now_ms)
    next(job)

    log.log.apply_retention(log.now_ms + 1000)

    assert list(job) == []
    assert log.log.log_start_offset == log.log.log_end_offset == 2000
    assert not list(log.directory.glob("*.cleaned"))


@pytest.mark.parametrize("turns", [1, 5, 40])
def test_a_closed_log_is_left_alone(log: CompactedLog, turns: int) -> None:
    log.put(*((f"k{number % 50}", "v") for number in range(5000)))
    log.roll()
    job = clean(log.log, log.now_ms)
    for _ in range(turns):
        next(job, None)

    log.log.close()

    assert list(job) == []
    assert not list(log.directory.glob("*.cleaned"))
    log.open(clean_shutdown=True)
    assert len(log.pairs()) == 5000


def test_a_dropped_job_leaves_nothing_behind(log: CompactedLog) -> None:
    log.put(*((f"k{number % 50}", "v") for number in range(5000)))
    log.roll()
    job = clean(log.log, log.now_ms)
    for _ in range(30):
        next(job)
    assert list(log.directory.glob("*.cleaned"))

    job.close()

    assert not list(log.directory.glob("*.cleaned"))
    assert len(log.pairs()) == 5000


def test_how_far_it_got_is_known_after_a_restart_if_the_owner_says_so(log: CompactedLog) -> None:
    log.put(("a", "1"), ("a", "2"))
    log.roll()
    log.clean()
    assert log.log.cleaned_offset == 2

    log.restart()
    log.log.cleaned_offset = 2

    assert not needs_cleaning(log.log, log.now_ms)
    assert log.pairs() == [("a", "2")]
