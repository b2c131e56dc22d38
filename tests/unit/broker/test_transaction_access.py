"""Who may use a transactional id, a group, a cluster's markers: every transactional request asks before it does anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import oncelog
from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from oncelog.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from oncelog.records.control import ControlType
from oncelog.transactions.states import State
from tests.integration.transaction_wire import Wire
from tests.unit.broker.transaction_nodes import BILLING, ORDERS, PAYMENTS, TransactionNode

OFFSETS = TopicPartition("__consumer_offsets", 0)
NO_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TransactionNode]:
    made = TransactionNode(tmp_path)
    made.create("orders")
    made.create("payments")
    yield made
    made.store.close()


@pytest.fixture
def producer(node: TransactionNode) -> ProducerIdentity:
    """With an open transaction."""
    return node.open_transaction(ORDERS)


def state_of(node: TransactionNode) -> State:
    found = node.node.transactions.get(BILLING)
    assert found is not None
    return found.state


@pytest.mark.seed("T4")
@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_ending_needs_write_on_the_transactional_id(
    node: TransactionNode, producer: ProducerIdentity, committed: bool, version: int
) -> None:
    node.access.forbidden.add((Operation.WRITE, BILLING))
    assert node.end(producer, committed, version) is NO_ID
    assert state_of(node) is State.ONGOING
    assert node.markers(ORDERS) == []

    node.access.forbidden.clear()
    assert node.end(producer, committed, version) is ErrorCode.NONE


@pytest.mark.seed("T4")
def test_an_answer_to_an_end_passes_the_request_quota(tmp_path: Path) -> None:
    class Slow:
        asked: list[int] = []

        def throttle_ms(self, principal: str, client_id: str, api_key: int, request_bytes: int) -> int:
            self.asked.append(api_key)
            return 30 if api_key == ApiKey.END_TXN else 0

    limits = Slow()
    with oncelog.embedded(tmp_path) as broker, Wire(broker.port) as wire:
        broker._now().broker.node.quotas = limits
        made = wire.initialise(BILLING)
        answer = wire.end(BILLING, ProducerIdentity(made.producer_id, made.producer_epoch), committed=False)
        assert answer.error_code == 0
        assert answer.throttle_time_ms == 30
    assert limits.asked == [ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN]


def test_everything_a_producer_asks_needs_write_on_the_transactional_id(
    node: TransactionNode, producer: ProducerIdentity
) -> None:
    node.access.forbidden.add((Operation.WRITE, BILLING))
    initialised = node.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=BILLING, transaction_timeout_ms=60_000)
    assert initialised.error_code == NO_ID
    assert initialised.producer_id == -1
    assert node.add(producer, PAYMENTS) is NO_ID
    assert node.add_offsets(producer, "readers") is NO_ID
    assert node.commit_offset_later(producer, "readers", ORDERS, 1).value is NO_ID
    assert node.send(producer, ORDERS) is NO_ID
    assert state_of(node) is State.ONGOING
    assert node.partition(ORDERS).log.log_end_offset == 1


def test_offsets_in_a_transaction_need_read_on_the_group_and_on_the_topic(
    node: TransactionNode, producer: ProducerIdentity
) -> None:
    node.access.forbidden.add((Operation.READ, "readers"))
    assert node.add_offsets(producer, "readers") is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (
        node.commit_offset_later(producer, "readers", ORDERS, 1, version=5).value
        is ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    node.access.forbidden = {(Operation.READ, "orders")}
    assert node.add_offsets(producer, "readers") is ErrorCode.NONE
    assert node.commit_offset_later(producer, "readers", ORDERS, 1).value is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert node.commit_offset_later(producer, "readers", PAYMENTS, 1).value is ErrorCode.NONE


def test_partitions_of_a_topic_that_may_not_be_written_are_not_added(
    node: TransactionNode, producer: ProducerIdentity
) -> None:
    node.access.forbidden.add((Operation.WRITE, "payments"))
    assert node.add(producer, PAYMENTS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = node.node.transactions.get(BILLING)
    assert found is not None
    assert found.partitions == {ORDERS}


@pytest.mark.seed("T10")
def test_markers_and_questions_of_brokers_need_cluster_action(
    node: TransactionNode, producer: ProducerIdentity
) -> None:
    node.access.forbidden.add((Operation.CLUSTER_ACTION, CLUSTER.name))
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
    )
    answer = node.ask(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker])
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert node.markers(ORDERS) == []

    asked = AddPartitionsToTxnTransaction(
        transactional_id=BILLING,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[AddPartitionsToTxnTopic(name="payments", partitions=[0])],
    )
    answer = node.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 5, transactions=[asked])
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    node.access.forbidden.clear()
    answer = node.ask(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker])
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    assert node.markers(ORDERS) == [ControlType.COMMIT]


def test_tools_see_only_what_they_may(node: TransactionNode, producer: ProducerIdentity) -> None:
    node.access.forbidden.add((Operation.DESCRIBE, "orders"))
    (seen,) = node.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[BILLING]).transaction_states
    assert seen.transaction_state == "Ongoing"
    assert seen.topics == [], "whoever may not know of the topic is not told who writes to it"
    node.access.forbidden.add((Operation.DESCRIBE, BILLING))
    (seen,) = node.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[BILLING]).transaction_states
    assert seen.error_code == NO_ID
    assert node.ask(ApiKey.LIST_TRANSACTIONS, 2).transaction_states == []
