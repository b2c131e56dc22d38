"""The marker sender: queues per broker, unknown leaders, and what each answer means (MISSION T7, T8)."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.markers import GONE, Answer, MarkerSender, meaning_of
from oncelog.transactions.states import State
from tests.unit.transactions.transactions import ORDERS, PAYMENTS, transaction

HERE, THERE = 1, 2


class Leaders(dict):
    """Who leads what; a test changes it as a cluster would."""

    def __call__(self, partition):
        return self.get(partition, GONE)


@pytest.fixture
def leaders():
    return Leaders({ORDERS: HERE, PAYMENTS: THERE})


@pytest.fixture
def sender(leaders):
    return MarkerSender(leaders)


def all_answer(code):
    return lambda marker, partition: code


@pytest.mark.seed("T7")
def test_partitions_are_grouped_by_leader_and_the_last_answer_finishes(sender):
    prepared = transaction(State.PREPARE_COMMIT)
    assert not sender.send(prepared, coordinator_epoch=3)
    assert sorted(sender.destinations) == [HERE, THERE]

    here = sender.take(HERE)
    assert [(m.partitions, m.committed, m.coordinator_epoch, m.producer_epoch) for m in here] == [
        ((ORDERS,), True, 3, 5)
    ]
    assert sender.answered(here, all_answer(ErrorCode.NONE)).finished == []
    assert sender.partitions_left("billing") == {PAYMENTS}

    outcome = sender.answered(sender.take(THERE), all_answer(ErrorCode.NONE))
    assert outcome.finished == [prepared]
    assert not sender.is_sending("billing")


@pytest.mark.seed("T7")
def test_several_transactions_ride_in_one_request(sender):
    for name in ("a", "b", "c"):
        sender.send(transaction(State.PREPARE_ABORT, transactional_id=name, partitions=frozenset({ORDERS})), 1)
    markers = sender.take(HERE)
    assert [marker.transactional_id for marker in markers] == ["a", "b", "c"]
    assert not any(marker.committed for marker in markers)
    outcome = sender.answered(markers, all_answer(ErrorCode.NONE))
    assert [finished.transactional_id for finished in outcome.finished] == ["a", "b", "c"]


@pytest.mark.seed("T7")
def test_partitions_without_a_known_leader_wait_until_there_is_one(sender, leaders):
    leaders[PAYMENTS] = None
    sender.send(transaction(State.PREPARE_COMMIT), 1)
    assert sender.destinations == [HERE]
    assert sender.waits_for_leaders
    sender.answered(sender.take(HERE), all_answer(ErrorCode.NONE))

    assert sender.look_for_leaders() == []
    assert sender.waits_for_leaders, "still nobody leads it"
    leaders[PAYMENTS] = THERE
    assert sender.look_for_leaders() == []
    assert sender.answered(sender.take(THERE), all_answer(ErrorCode.NONE)).finished


@pytest.mark.seed("T7")
def test_a_deleted_partition_needs_no_marker(sender, leaders):
    del leaders[PAYMENTS]
    leaders[ORDERS] = None
    prepared = transaction(State.PREPARE_COMMIT)
    assert not sender.send(prepared, 1)
    del leaders[ORDERS]
    assert sender.look_for_leaders() == [prepared]
    assert sender.send(transaction(State.PREPARE_ABORT, partitions=frozenset()), 1), (
        "nothing to mark is finished at once"
    )


@pytest.mark.seed("T8")
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_retriable_answers_go_out_again_to_whoever_leads_by_then(sender, leaders, code):
    sender.send(transaction(State.PREPARE_COMMIT, partitions=frozenset({ORDERS})), 1)
    markers = sender.take(HERE)
    leaders[ORDERS] = THERE
    outcome = sender.answered(markers, all_answer(code))
    assert not outcome.finished
    assert sender.destinations == [THERE]
    assert sender.answered(sender.take(THERE), all_answer(ErrorCode.NONE)).finished


@pytest.mark.seed("T8")
@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_newer_epoch_cancels_the_whole_transaction(sender, code):
    sender.send(transaction(State.PREPARE_COMMIT), 1)
    outcome = sender.answered(sender.take(HERE), all_answer(code))
    assert outcome.cancelled == ["billing"]
    assert sender.destinations == [], "what was queued for other brokers is withdrawn"
    assert not sender.is_sending("billing")


@pytest.mark.seed("T8")
@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION])
def test_a_log_that_cannot_hold_transactions_counts_as_done(sender, code):
    prepared = transaction(State.PREPARE_COMMIT, partitions=frozenset({ORDERS}))
    sender.send(prepared, 1)
    assert sender.answered(sender.take(HERE), all_answer(code)).finished == [prepared]


@pytest.mark.seed("T8")
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        12_345,
    ],
)
def test_answers_that_only_a_bug_explains_are_told_and_not_retried(sender, code):
    assert meaning_of(code) is Answer.BUG
    sender.send(transaction(State.PREPARE_COMMIT, partitions=frozenset({ORDERS})), 1)
    outcome = sender.answered(sender.take(HERE), all_answer(code))
    assert outcome.bugs == [("billing", ORDERS, code)]
    assert not outcome.finished
    assert sender.destinations == []


@pytest.mark.seed("T8")
def test_a_lost_connection_sends_what_is_still_missing_again(sender, leaders):
    leaders[PAYMENTS] = HERE
    sender.send(transaction(State.PREPARE_COMMIT), 1)
    markers = sender.take(HERE)
    sender.disconnected(markers)
    (again,) = sender.take(HERE)
    assert set(again.partitions) == {ORDERS, PAYMENTS}


@pytest.mark.seed("T8")
def test_answers_and_disconnects_of_an_older_coordinator_epoch_are_not_heard(sender):
    prepared = transaction(State.PREPARE_COMMIT, partitions=frozenset({ORDERS}))
    sender.send(prepared, coordinator_epoch=1)
    old = sender.take(HERE)
    sender.cancel("billing")
    sender.send(prepared, coordinator_epoch=2)
    assert not sender.answered(old, all_answer(ErrorCode.NONE)).finished
    sender.disconnected(old)
    (marker,) = sender.take(HERE)
    assert marker.coordinator_epoch == 2


@pytest.mark.seed("T8")
def test_a_partial_answer_retries_only_what_failed(sender, leaders):
    leaders[PAYMENTS] = HERE
    sender.send(transaction(State.PREPARE_COMMIT), 1)

    def codes(marker, partition: TopicPartition):
        return ErrorCode.NONE if partition == ORDERS else ErrorCode.REQUEST_TIMED_OUT

    assert not sender.answered(sender.take(HERE), codes).finished
    (again,) = sender.take(HERE)
    assert again.partitions == (PAYMENTS,)
