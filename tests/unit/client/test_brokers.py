"""The brokers of a cluster: found from one of them, each asked for what is its own."""

import socket

import pytest

from oncelog.client.brokers import Brokers
from oncelog.client.errors import Fatal, Retriable
from oncelog.client.transaction_admin import ListedTransaction, OpenTransaction, TransactionAdmin
from oncelog.model.address import Address
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from oncelog.protocol.messages.metadata import MetadataResponsePartition as Partition
from tests.unit.client.clusters import TOPIC, Known, ScriptedCluster, producer
from tests.unit.client.scripted_broker import ScriptedBroker


def nobodys_address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Address(*listener.getsockname())


def test_a_bootstrap_broker_that_is_down_is_passed_over():
    with (
        ScriptedBroker({ApiKey.METADATA: MetadataResponse()}) as broker,
        Brokers([nobodys_address(), broker.address], "test") as brokers,
    ):
        brokers.view()

    assert broker.requests(ApiKey.METADATA)


def test_when_all_are_down_each_is_named():
    first, second = nobodys_address(), nobodys_address()

    with Brokers([first, second], "test") as brokers, pytest.raises(Retriable) as caught:
        brokers.view()

    assert str(first) in str(caught.value)
    assert str(second) in str(caught.value)


def test_looking_never_creates_a_topic():
    with ScriptedBroker({ApiKey.METADATA: MetadataResponse()}) as broker, Brokers([broker.address], "test") as brokers:
        brokers.view(["orders"])
        brokers.view()

    one, everything = broker.requests(ApiKey.METADATA)
    assert [topic.name for topic in one.topics] == ["orders"]
    assert everything.topics is None
    assert not one.allow_auto_topic_creation


def test_the_view_has_leaders_and_what_was_refused():
    answer = MetadataResponse(
        topics=[
            MetadataResponseTopic(name="b", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            MetadataResponseTopic(
                name="a",
                partitions=[Partition(partition_index=1, leader_id=7), Partition(partition_index=0, leader_id=-1)],
            ),
        ]
    )
    with ScriptedBroker({ApiKey.METADATA: answer}) as broker, Brokers([broker.address], "test") as brokers:
        view = brokers.view()

    assert [*view.partitions] == [TopicPartition("a", 0), TopicPartition("a", 1)]
    assert view.by_leader(view.partitions) == {-1: [TopicPartition("a", 0)], 7: [TopicPartition("a", 1)]}
    assert view.refused == {"b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_broker_that_is_not_there_is_named_with_those_that_are():
    with ScriptedCluster([0, 1]).running() as brokers, pytest.raises(Fatal, match=r"no broker 9 .*: it has 0, 1"):
        brokers.node(9)


def test_a_coordinator_that_is_loading_is_asked_again():
    answers = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]

    def answer(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=[Coordinator(key="billing", node_id=3, error_code=answers.pop(0))])

    with ScriptedBroker({ApiKey.FIND_COORDINATOR: answer}) as broker, Brokers([broker.address], "test") as brokers:
        assert brokers.transaction_coordinators(["billing"]) == {3: ["billing"]}


def test_every_coordinator_is_asked_for_its_transactions():
    cluster = ScriptedCluster([0, 1, 2], {"b": Known(2, 20), "a": Known(0, 10), "c": Known(1, 30, state="Empty")})
    with cluster.running() as brokers:
        listed = TransactionAdmin(brokers).list_transactions()

    assert listed == [
        ListedTransaction("a", 0, 10, "Ongoing"),
        ListedTransaction("b", 2, 20, "Ongoing"),
        ListedTransaction("c", 1, 30, "Empty"),
    ]


def test_a_description_comes_from_the_id_s_own_coordinator():
    cluster = ScriptedCluster([0, 1], {"a": Known(0, 10, [0]), "b": Known(1, 20, [1], "PrepareCommit")})
    with cluster.running() as brokers:
        described = TransactionAdmin(brokers).describe_transactions(["a", "b", "nobody"])

    assert [*described] == ["a", "b"]
    assert described["a"].is_open
    assert described["b"].is_prepared
    assert described["b"].coordinator == 1
    assert described["b"].partitions == {TopicPartition(TOPIC, 1)}


def test_each_leader_is_asked_for_the_producers_of_its_partitions():
    cluster = ScriptedCluster([1, 0], open={0: [[producer(5, 9), producer(6, -1)]], 1: [[producer(7, 3)]]})
    with cluster.running() as brokers:
        view = brokers.view()
        searched = TransactionAdmin(brokers).open_transactions(view, view.partitions)

    assert searched.failed == {}
    assert searched.found == [
        OpenTransaction(TopicPartition(TOPIC, 0), 5, 0, -1, 9, 0),
        OpenTransaction(TopicPartition(TOPIC, 1), 7, 0, -1, 3, 0),
    ]


def test_a_partition_without_a_leader_does_not_hide_the_others():
    cluster = ScriptedCluster([-1, 0], open={1: [[producer(7, 3)]]})
    with cluster.running() as brokers:
        view = brokers.view()
        searched = TransactionAdmin(brokers).open_transactions(view, view.partitions)

    assert searched.failed == {TopicPartition(TOPIC, 0): ErrorCode.LEADER_NOT_AVAILABLE}
    assert [found.producer_id for found in searched.found] == [7]
