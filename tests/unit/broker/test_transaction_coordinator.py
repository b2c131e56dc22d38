"""The transaction coordinator at work: what is stored before what is said, who waits for whom, what is tried again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.apis import ApiKey
from oncelog.records.control import ControlType
from oncelog.transactions.states import State
from oncelog.transactions.transaction import MAX_EPOCH, Transaction
from oncelog.transactions.transaction_records import encode_key, encode_value
from tests.unit.broker.transaction_nodes import BILLING, ORDERS, PAYMENTS, TransactionNode

STATE = TopicPartition("__transaction_state", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
BROKEN = Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TransactionNode]:
    made = TransactionNode(tmp_path)
    made.create("orders")
    made.create("payments")
    yield made
    made.store.close()


def state_of(node: TransactionNode) -> State:
    found = node.node.transactions.get(BILLING)
    assert found is not None
    return found.state


@pytest.mark.seed("I8")
def test_an_identity_is_stored_before_it_is_answered(node: TransactionNode) -> None:
    node.initialise("another, so that the topic is there")
    node.flushes.holding = True
    answer = node.ask_later(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=BILLING, transaction_timeout_ms=60_000)
    node.settle()
    assert not answer.done
    node.flush()
    assert answer.value.error_code == 0


@pytest.mark.seed("T6")
@pytest.mark.parametrize("committed", [True, False])
def test_prepare_is_stored_before_the_answer_and_before_any_marker(node: TransactionNode, committed: bool) -> None:
    producer = node.open_transaction(ORDERS, PAYMENTS)
    node.flushes.holding = True

    answer = node.end_later(producer, committed)
    node.settle()
    assert not answer.done
    assert node.markers(ORDERS) == node.markers(PAYMENTS) == []

    node.flush()
    assert answer.value is ErrorCode.NONE, "the outcome cannot change any more"
    marker = ControlType.COMMIT if committed else ControlType.ABORT
    assert node.markers(ORDERS) == node.markers(PAYMENTS) == [marker]
    assert state_of(node) is (State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)
    assert node.partition(ORDERS).log.last_stable_offset == 0, "a marker that may be lost ends nothing yet"

    node.flush()
    node.flush()
    assert state_of(node) is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
    assert node.partition(ORDERS).log.last_stable_offset == 2


@pytest.mark.seed("T6", "I13")
@pytest.mark.parametrize("committed", [True, False])
def test_a_start_goes_on_with_what_was_prepared(node: TransactionNode, committed: bool) -> None:
    producer = node.open_transaction(ORDERS, PAYMENTS)
    for topic_partition in (ORDERS, PAYMENTS):
        node.partition(topic_partition).closed = BROKEN
    assert node.end(producer, committed) is ErrorCode.NONE
    assert state_of(node) is (State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)

    again = node.killed()
    marker = ControlType.COMMIT if committed else ControlType.ABORT
    assert again.markers(ORDERS) == again.markers(PAYMENTS) == [marker]
    assert state_of(again) is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
    assert again.partition(ORDERS).log.last_stable_offset == 2
    assert again.end(producer, committed) is ErrorCode.NONE, "a repeat: the client never heard the answer"
    again.store.close()


@pytest.mark.seed("T8")
def test_a_marker_that_was_not_taken_goes_out_again(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS, PAYMENTS)
    node.partition(PAYMENTS).closed = BROKEN
    assert node.end(producer) is ErrorCode.NONE
    node.time.pass_time(1000)
    assert state_of(node) is State.PREPARE_COMMIT
    assert node.node.transactions.partitions_without_marker(BILLING) == {PAYMENTS}
    assert node.markers(ORDERS) == [ControlType.COMMIT], "what was taken is not written again"

    node.partition(PAYMENTS).closed = None
    node.time.pass_time(1000)
    assert node.markers(PAYMENTS) == [ControlType.COMMIT]
    assert state_of(node) is State.COMPLETE_COMMIT


@pytest.mark.seed("T9")
def test_complete_is_stored_sooner_or_later(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.flushes.holding = True
    answer = node.end_later(producer)
    node.flush()
    assert answer.value is ErrorCode.NONE
    node.partition(STATE).closed = BROKEN
    node.flush()
    node.flushes.holding = False
    node.time.pass_time(1000)
    assert state_of(node) is State.PREPARE_COMMIT

    next_transaction = node.add_later(producer, ORDERS)
    node.partition(STATE).closed = None
    node.time.pass_time(1000)
    assert next_transaction.value is ErrorCode.NONE
    assert state_of(node) is State.ONGOING


def test_the_next_transaction_waits_for_the_markers_of_the_last(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.flushes.holding = True
    ended = node.end_later(producer)
    added = node.add_later(producer, PAYMENTS)
    for _ in range(2):
        node.flush()
        assert not added.done
    assert ended.value is ErrorCode.NONE
    node.flushes.holding = False
    node.flush()
    assert added.value is ErrorCode.NONE


def test_who_waits_too_long_is_told_to_try_again(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.partition(ORDERS).closed = BROKEN
    assert node.end(producer) is ErrorCode.NONE
    added = node.add_later(producer, PAYMENTS)
    node.time.pass_time(14_000)
    assert not added.done
    node.time.pass_time(2_000)
    assert added.value is ErrorCode.CONCURRENT_TRANSACTIONS

    node.partition(ORDERS).closed = None
    node.time.pass_time(1_000)
    assert node.add(producer, PAYMENTS) is ErrorCode.NONE


def test_a_request_whose_turn_has_come_is_not_given_up_for_having_waited_before(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.partition(ORDERS).closed = BROKEN
    assert node.end(producer) is ErrorCode.NONE
    added = node.add_later(producer, PAYMENTS)
    node.time.pass_time(14_000)
    node.partition(ORDERS).closed = None
    node.flushes.holding = True
    node.time.pass_time(200)
    for _ in range(2):
        node.flush()
    # The markers are out, and the record of the request that waited is on its way to the disk, which takes its time.
    assert not added.done
    node.time.pass_time(2_000)
    assert not added.done
    node.flush()
    assert added.value is ErrorCode.NONE


def test_a_thousand_requests_for_one_id_wait_and_are_answered(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.flushes.holding = True
    ended = node.end_later(producer)
    stranger = ProducerIdentity(producer.producer_id, 77)
    asked = [node.end_later(stranger) for _ in range(2000)]
    node.flushes.holding = False
    node.flush()
    assert ended.value is ErrorCode.NONE
    assert {answer.value for answer in asked} == {ErrorCode.PRODUCER_FENCED}


@pytest.mark.seed("I13")
def test_a_failed_abort_of_a_predecessors_transaction_leaves_the_id_usable(node: TransactionNode) -> None:
    node.open_transaction(ORDERS)
    node.flushes.holding = True
    successor = node.ask_later(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=BILLING, transaction_timeout_ms=60_000)
    node.time.pass_time(16_000)
    assert successor.value.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    # Nobody waits any more when it turns out that the abort's record was not stored.
    node.time.pass_time(20_000)
    node.flushes.holding = False
    node.flush()
    assert node.initialise().producer_epoch > 0


@pytest.mark.seed("I10")
def test_a_transaction_over_its_timeout_is_aborted_unless_its_end_is_under_way(node: TransactionNode) -> None:
    producer = node.open_transaction(ORDERS)
    node.time.pass_time(59_000)
    assert node.node.transactions.abort_timed_out() == 0
    node.flushes.holding = True
    ended = node.end_later(producer)
    node.time.pass_time(2_000)
    assert node.node.transactions.abort_timed_out() == 0, "its client is just committing it"
    node.flushes.holding = False
    node.flush()
    assert ended.value is ErrorCode.NONE
    assert node.markers(ORDERS) == [ControlType.COMMIT]

    assert node.add(producer, ORDERS) is ErrorCode.NONE
    node.time.pass_time(61_000)
    assert node.node.transactions.abort_timed_out() == 1
    assert node.markers(ORDERS) == [ControlType.COMMIT, ControlType.ABORT]
    assert node.end(producer) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("I9", "I10")
def test_partitions_are_stored_before_they_are_answered_and_are_there_after_a_kill(node: TransactionNode) -> None:
    producer = node.initialise()
    node.flushes.holding = True
    added = node.add_later(producer, ORDERS, PAYMENTS)
    node.settle()
    assert not added.done
    node.flush()
    assert added.value is ErrorCode.NONE
    again = node.killed()
    found = again.node.transactions.get(BILLING)
    assert found is not None
    assert found.state is State.ONGOING
    assert found.partitions == {ORDERS, PAYMENTS}
    again.time.pass_time(61_000)
    assert again.node.transactions.abort_timed_out() == 1, "the clock runs from when the first partition came"
    again.store.close()


@pytest.mark.seed("I14")
def test_a_v2_produce_is_written_only_after_its_partition_is_stored(node: TransactionNode) -> None:
    producer = node.initialise()
    node.flushes.holding = True
    sent = node.send_later(producer, ORDERS, version=12)
    node.settle()
    assert node.partition(ORDERS).log.log_end_offset == 0
    node.flush()
    assert node.partition(ORDERS).log.log_end_offset == 1
    assert not sent.done
    node.flush()
    assert sent.value is ErrorCode.NONE


@pytest.mark.seed("I11")
@pytest.mark.parametrize("version", [4, 5])
def test_offsets_that_waited_for_their_group_do_not_come_after_their_transaction_has_ended(
    node: TransactionNode, version: int
) -> None:
    producer = node.initialise()
    assert node.add_offsets(producer, "readers") is ErrorCode.NONE
    node.flushes.holding = True
    plain = node.commit_plain_offset_later("readers", ORDERS, 3)
    within = node.commit_offset_later(producer, "readers", ORDERS, 5, version)
    ended = node.end_later(producer, committed=False, version=version)
    # The group is still writing its earlier commit when the transaction is over.
    node.flush(STATE)
    assert ended.value is ErrorCode.NONE
    node.flushes.holding = False
    node.flush()

    assert plain.value is ErrorCode.NONE
    assert within.value not in (ErrorCode.NONE, None)
    offsets = node.partition(OFFSETS).log
    assert offsets.last_stable_offset == offsets.high_watermark, "a transaction hangs that nobody will ever end"
    assert node.committed_offset("readers", ORDERS) == 3


def near_the_end(node: TransactionNode, epoch: int) -> tuple[TransactionNode, ProducerIdentity]:
    """The same node after a start that finds the id at this epoch."""
    before = node.initialise()
    at_end = Transaction(BILLING, before.producer_id, epoch, 60_000, last_update_ms=node.time.ms)
    node.partition(STATE).append_record(encode_key(BILLING), encode_value(at_end), lambda _: None)
    return node.killed(), at_end.identity


@pytest.mark.seed("I3")
def test_each_instance_takes_an_epoch_and_the_last_leaves_the_next_another_producer_id(node: TransactionNode) -> None:
    node, identity = near_the_end(node, MAX_EPOCH - 2)
    last = node.initialise()
    assert last == identity._replace(producer_epoch=MAX_EPOCH - 1)
    assert node.add(last, ORDERS) is ErrorCode.NONE
    assert node.send(last, ORDERS) is ErrorCode.NONE
    fresh = node.initialise()
    assert fresh.producer_epoch == 0
    assert fresh.producer_id != last.producer_id
    assert node.markers(ORDERS) == [ControlType.ABORT], "what the last one left open"
    assert node.end(last) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert node.add(fresh, ORDERS) is ErrorCode.NONE
    assert node.send(fresh, ORDERS) is ErrorCode.NONE
    assert node.end(fresh) is ErrorCode.NONE
    log = node.partition(ORDERS).log
    assert log.last_stable_offset == log.high_watermark == 4
    node.store.close()


@pytest.mark.seed("I3", "I14")
@pytest.mark.parametrize("killed", [False, True])
def test_v2_transactions_go_on_under_another_producer_id_when_the_epochs_run_out(
    node: TransactionNode, killed: bool
) -> None:
    node, identity = near_the_end(node, MAX_EPOCH - 3)
    seen = [identity]
    for _ in range(5):
        assert node.send_later(identity, ORDERS, version=12).value is ErrorCode.NONE
        answer = node.end_answer(identity)
        assert answer.error_code == 0
        if killed:
            node = node.killed()
        again = node.end_answer(identity)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (
            ErrorCode.NONE,
            answer.producer_id,
            answer.producer_epoch,
        ), "a repeat: the answer got lost, not the transaction"
        identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        seen.append(identity)
    assert [epoch for _, epoch in seen] == [MAX_EPOCH - 3, MAX_EPOCH - 2, MAX_EPOCH - 1, 0, 1, 2]
    assert len({producer_id for producer_id, _ in seen}) == 2
    assert node.markers(ORDERS) == [ControlType.COMMIT] * 5
    log = node.partition(ORDERS).log
    assert log.last_stable_offset == log.high_watermark == 10
    for old in seen[:-2]:
        assert node.send_later(old, ORDERS, version=12).value in (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        )
    node.store.close()
