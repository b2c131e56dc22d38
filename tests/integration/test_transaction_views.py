"""Looking at transactions from outside: kafka-python's admin calls and, where they are there, Kafka's own Java tools."""

import os
import shutil
import time
from collections.abc import Iterator
from typing import Any

import kafka
import kafka.errors
import pytest
from kafka.admin import KafkaAdminClient
from kafka.admin._transactions import AbortTransactionSpec

from oncelog.model.topic_partition import TopicPartition
from tests.brokers import BrokerProcess
from tests.integration.raw_connection import create_topic
from tests.integration.test_java_client import java
from tests.integration.topics import unique
from tests.integration.transaction_reading import fetch, read_partition, wait_until_stable
from tests.integration.transaction_wire import V1, V2, Wire, WireProducer, warm_up

with_java = pytest.mark.skipif(
    not os.environ.get("ONCELOG_PEER_JARS") or shutil.which("java") is None,
    reason="ONCELOG_PEER_JARS does not name a directory with Apache Kafka's jars, or java is not installed",
)


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        warm_up(connection)
        yield connection


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def orders(wire: Wire) -> TopicPartition:
    return TopicPartition(create_topic(wire, 2), 0)


def test_listing_by_state_producer_age_and_name(wire: Wire, orders: TopicPartition, admin: Any) -> None:
    prefix = unique("list")
    opened = WireProducer(wire, f"{prefix}-open", V1).initialise()
    opened.send(orders, values=[b"x"])
    done = WireProducer(wire, f"{prefix}-done", V1).initialise()
    done.send(orders, values=[b"x"])
    done.commit()
    WireProducer(wire, f"{prefix}-new", V1).initialise()
    done.settle()

    def listed(**filters: Any) -> dict[str, str]:
        return {
            found.transactional_id.removeprefix(f"{prefix}-"): found.state.value
            for of_broker in admin.list_transactions(**filters).values()
            for found in of_broker
            if found.transactional_id.startswith(prefix)
        }

    assert listed() == {"open": "Ongoing", "done": "CompleteCommit", "new": "Empty"}
    assert listed(state_filters=["Ongoing"]) == {"open": "Ongoing"}
    assert listed(state_filters=["CompleteCommit", "Empty"]) == {"done": "CompleteCommit", "new": "Empty"}
    assert listed(producer_id_filters=[opened.identity.producer_id]) == {"open": "Ongoing"}
    assert listed(transactional_id_pattern=f"{prefix}-.*e.*") == {
        "open": "Ongoing",
        "done": "CompleteCommit",
        "new": "Empty",
    }
    assert listed(transactional_id_pattern="nothing") == {}
    time.sleep(0.05)
    assert "open" in listed(duration_filter_ms=10)
    assert "open" not in listed(duration_filter_ms=600_000)
    opened.abort()


@pytest.mark.seed("I9")
def test_describing_a_transaction_through_its_life(wire: Wire, orders: TopicPartition, admin: Any) -> None:
    name = unique("id")
    producer = WireProducer(wire, name, V1).initialise(timeout_ms=12_345)

    def described() -> Any:
        return admin.describe_transactions([name])[name]

    found = described()
    assert found.state.value == "Empty"
    assert (found.producer_id, found.producer_epoch) == producer.identity
    assert found.transaction_timeout_ms == 12_345
    assert found.topic_partitions == set()

    before_ms = int(time.time() * 1000)
    producer.send(orders, TopicPartition(orders.topic, 1), values=[b"x"])
    found = described()
    assert found.state.value == "Ongoing"
    assert found.topic_partitions == {kafka.TopicPartition(orders.topic, 0), kafka.TopicPartition(orders.topic, 1)}
    assert before_ms - 1000 <= found.transaction_start_time_ms <= int(time.time() * 1000) + 1000

    producer.abort()
    producer.settle()
    found = described()
    assert found.state.value == "CompleteAbort"
    assert found.topic_partitions == set()
    with pytest.raises(kafka.errors.TransactionalIdNotFoundError):
        admin.describe_transactions([unique("nobody")])


def test_describing_the_producers_of_a_partition(wire: Wire, orders: TopicPartition, admin: Any) -> None:
    at = kafka.TopicPartition(*orders)

    def described() -> dict[int, Any]:
        return {producer.producer_id: producer for producer in admin.describe_producers([at])[at].active_producers}

    assert described() == {}
    first = WireProducer(wire, unique("id"), V1).initialise()
    first.send(orders, values=[b"1", b"2"])
    first.commit()
    first.settle()
    second = WireProducer(wire, unique("id"), V2).initialise()
    second.send(orders, values=[b"3"])
    found = described()
    done = found[first.identity.producer_id]
    assert (done.producer_epoch, done.last_sequence, done.current_transaction_start_offset) == (0, 1, -1)
    assert done.coordinator_epoch >= 0
    opened = found[second.identity.producer_id]
    assert (opened.producer_epoch, opened.last_sequence, opened.current_transaction_start_offset) == (0, 0, 3)
    assert opened.coordinator_epoch == -1, "no marker of it yet"
    second.commit()
    second.settle()
    over = described()[second.identity.producer_id]
    assert (over.producer_epoch, over.last_sequence, over.current_transaction_start_offset) == (1, -1, -1)


def test_an_operator_aborts_what_holds_readers_back(wire: Wire, orders: TopicPartition, admin: Any) -> None:
    """With WriteTxnMarkers, as the tools do: readers go on; the coordinator finds out when its producer ends the transaction."""
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(orders, values=[b"hanging"])
    assert fetch(wire, orders).last_stable_offset == 0
    at = kafka.TopicPartition(*orders)
    (hanging,) = admin.describe_producers([at])[at].active_producers
    assert hanging.current_transaction_start_offset == 0
    admin.abort_transaction(AbortTransactionSpec(at, hanging.producer_id, hanging.producer_epoch, 0))
    wait_until_stable(wire, orders)
    assert read_partition(wire, orders) == []
    producer.abort()
    producer.settle().send(orders, values=[b"next"])
    producer.commit()
    producer.settle()
    wait_until_stable(wire, orders)
    assert read_partition(wire, orders) == [b"next"]


@with_java
@pytest.mark.timeout(180)
def test_kafkas_transactions_tool(wire: Wire, bootstrap: str, orders: TopicPartition) -> None:
    producer = WireProducer(wire, unique("java"), V1).initialise()
    producer.send(orders, values=[b"x"])
    at = ("--bootstrap-server", bootstrap)
    listed = java("TransactionsCommand", *at, "list")
    (line,) = [line for line in listed.splitlines() if producer.transactional_id in line]
    assert "Ongoing" in line
    assert str(producer.identity.producer_id) in line.split()
    described = java("TransactionsCommand", *at, "describe", "--transactional-id", producer.transactional_id)
    assert f"{orders.topic}-0" in described
    assert "Ongoing" in described
    found = java("TransactionsCommand", *at, "describe-producers", "--topic", orders.topic, "--partition", "0")
    assert str(producer.identity.producer_id) in found
    java(
        "TransactionsCommand",
        *(*at, "abort", "--topic", orders.topic, "--partition", "0", "--start-offset", "0"),
    )
    wait_until_stable(wire, orders)
    assert read_partition(wire, orders) == []
