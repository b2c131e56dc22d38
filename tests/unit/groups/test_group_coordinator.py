"""The coordinator at work on real logs: order, failures, time, and coming back after a restart."""

from pathlib import Path

import pytest

from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.records.builder import build_batch
from oncelog.records.control import end_transaction_marker
from tests.unit.groups.stage import Stage

G = "readers"
PRODUCER = ProducerIdentity(7, 0)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.groups.load()
    return stage


def state(stage: Stage) -> GroupState:
    return next(group.state for group in stage.groups.groups() if group.group_id == G)


def append(stage: Stage, batch: bytes) -> None:
    appended = stage.partition(G).append_internal(batch).value
    assert not isinstance(appended, Refused), appended


# Order


def test_the_internal_topic_comes_into_being_with_the_first_record(stage: Stage) -> None:
    assert stage.join(G).value.error is ErrorCode.MEMBER_ID_REQUIRED
    assert not stage.topics
    assert stage.commit("other", 5).value.error is ErrorCode.NONE
    assert stage.topics


def test_nobody_hears_of_a_commit_before_it_is_acknowledged(stage: Stage) -> None:
    stage.commit(G, 1)
    stage.hold_back(G)
    second = stage.commit(G, 2)
    view = stage.groups.view(G)
    third = stage.commit(G, 3)
    assert not second.done
    assert not view.done

    stage.acknowledge(G)

    assert second.value.error is ErrorCode.NONE
    assert third.value.error is ErrorCode.NONE
    assert view.done
    assert stage.committed(G) == 3


def test_what_was_asked_first_is_decided_first(stage: Stage) -> None:
    stage.commit(G, 1)
    stage.hold_back(G)
    answers = [stage.commit(G, offset) for offset in range(10)]
    for _ in answers:
        held = stage.partition(G).held
        assert held is not None
        assert len(held) == 1, "one decision in flight"
        later, appended = held.pop()
        later.complete(appended)
    assert all(answer.done for answer in answers)
    assert stage.committed(G) == 9


def test_groups_do_not_wait_for_each_other(stage: Stage) -> None:
    other = next(name for name in "abcdefgh" if stage.groups.partition_of(name) == stage.groups.partition_of(G))
    stage.commit(G, 1)
    stage.hold_back(G)
    stage.commit(G, 2)
    stage.commit(other, 2)
    held = stage.partition(G).held
    assert held is not None
    assert len(held) == 2


def test_a_member_whose_heartbeat_waited_its_turn_is_not_given_up(stage: Stage) -> None:
    stage.stable_member(G)
    stage.commit("other", 1)
    stage.hold_back(G)
    stage.commit(G, 1, member_id="m-1", generation=1)
    heartbeat = stage.heartbeat(G, "m-1")
    stage.time.pass_time(10_000)
    stage.acknowledge(G)
    assert heartbeat.value.error is ErrorCode.NONE
    assert state(stage) is GroupState.STABLE


# Failures


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_record_the_log_does_not_take_is_told_in_words_a_client_understands(
    stage: Stage, code: ErrorCode, told: ErrorCode
) -> None:
    stage.commit(G, 1)
    stage.partition(G).refuses = Refused(code, "for the test")
    assert stage.commit(G, 2).value.error is told
    assert stage.committed(G) == 1
    stage.partition(G).refuses = None
    assert stage.commit(G, 3).value.error is ErrorCode.NONE


def test_an_assignment_that_cannot_be_stored_sends_the_member_back(stage: Stage) -> None:
    stage.commit("other", 1)
    stage.join(G)
    stage.join(G, "m-1")
    stage.partition(G).refuses = Refused(ErrorCode.NOT_ENOUGH_REPLICAS, "for the test")
    assert stage.sync(G, "m-1").value.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.partition(G).refuses = None
    assert stage.join(G, "m-1").value.generation == 2


# Time


def test_a_silent_member_is_given_up_when_its_session_ends(stage: Stage) -> None:
    stage.stable_member(G)
    stage.time.pass_time(9_999)
    assert state(stage) is GroupState.STABLE
    stage.time.pass_time(1)
    assert state(stage) is GroupState.EMPTY


def test_heartbeats_do_not_pile_up_timers(stage: Stage) -> None:
    stage.stable_member(G)
    before = len(stage.time.timers)
    for _ in range(1000):
        stage.time.ms += 1
        assert stage.heartbeat(G, "m-1").value.error is ErrorCode.NONE
    assert len(stage.time.timers) == before


def test_offsets_run_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"})
    stage.groups.load()
    for number in range(500):
        stage.commit(f"group-{number}", 5)
    stage.time.pass_time(59_000)
    assert stage.committed("group-499") == 5
    stage.time.pass_time(2_000)
    assert list(stage.groups.groups()) == []
    assert list(stage.restarted().groups.groups()) == []


# Restarts


def test_groups_and_offsets_come_back(stage: Stage) -> None:
    stage.stable_member(G)
    for number in range(20):
        stage.commit(f"group-{number}", number)
    again = stage.restarted()
    assert again.heartbeat(G, "m-1").value.error is ErrorCode.NONE
    assert [again.committed(f"group-{number}") for number in range(20)] == list(range(20))


def test_members_that_do_not_come_back_after_a_restart_are_given_up(stage: Stage) -> None:
    stage.stable_member(G)
    again = stage.restarted()
    again.time.pass_time(10_000)
    assert state(again) is GroupState.EMPTY


def test_what_was_taken_back_does_not_come_back(stage: Stage) -> None:
    stage.commit(G, 5)
    stage.commit(G, 6, topic="payments")
    stage.groups.forget_topic("orders")
    again = stage.restarted()
    assert again.committed(G) is None
    assert again.committed(G, "payments") == 6


@pytest.mark.seed("I11")
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_an_ended_transaction_count_or_not_after_a_restart_as_before(stage: Stage, committed: bool) -> None:
    stage.commit(G, 1)
    stage.commit(G, 2, producer=PRODUCER)
    append(stage, end_transaction_marker(*PRODUCER, committed, coordinator_epoch=0, timestamp_ms=stage.time.ms))
    stage.groups.end_transaction(stage.groups.partition_of(G), PRODUCER.producer_id, committed=committed)
    expected = 2 if committed else 1
    assert stage.committed(G) == expected
    assert stage.restarted().committed(G) == expected


@pytest.mark.seed("I11")
def test_offsets_of_a_transaction_that_is_still_open_wait_for_its_end_after_a_restart_too(stage: Stage) -> None:
    stage.commit(G, 1)
    stage.commit(G, 2, producer=PRODUCER)
    again = stage.restarted()
    assert again.committed(G) == 1
    again.groups.end_transaction(again.groups.partition_of(G), PRODUCER.producer_id, committed=True)
    assert again.committed(G) == 2


def test_records_of_other_kinds_and_broken_ones_are_passed_over(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.commit(G, 1)
    append(stage, build_batch([(b"\x00\x05of a newer kind", b"x"), (b"\x00\x01broken", b"x"), (None, b"x")]))
    stage.commit(G, 2)
    again = stage.restarted()
    assert again.committed(G) == 2
    assert "records=3" in caplog.text


def test_a_log_longer_than_one_read_is_loaded_whole(stage: Stage) -> None:
    for number in range(300):
        answer = stage.commit(G, number, topic="t" * 200 + str(number % 7))
        assert answer.value.error is ErrorCode.NONE
    stage.commit(G, 42)
    assert stage.restarted().committed(G) == 42


# Stopping


def test_when_the_broker_stops_whoever_waits_is_sent_to_find_the_coordinator(stage: Stage) -> None:
    stage.stable_member(G)
    stage.join(G, fresh="m-2")
    waiting = stage.join(G, "m-2")
    assert not waiting.done
    stage.groups.close()
    assert waiting.value.error is ErrorCode.NOT_COORDINATOR
    assert not stage.time.armed


def test_an_append_that_ends_after_the_stop_answers_nobody_twice(stage: Stage) -> None:
    stage.commit(G, 1)
    stage.hold_back(G)
    answer = stage.commit(G, 2)
    stage.groups.close()
    stage.acknowledge(G)
    assert not answer.done
