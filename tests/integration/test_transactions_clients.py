"""Transactions as people use them, with confluent-kafka, kafka-python and aiokafka: what one commits or aborts, all of them read.

Every test here also runs against Apache Kafka: see docs/testing.md.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from oncelog.model.topic_partition import TopicPartition
from tests.brokers import BrokerProcess
from tests.integration.topics import create_topic, unique
from tests.integration.transaction_clients import (
    READERS,
    TRANSACTIONAL,
    TransactionalLibrary,
    TransactionalProducer,
)
from tests.integration.transaction_reading import committed_offset, read_partition, wait_until_stable
from tests.integration.transaction_wire import Wire, warm_up

by_each_library = pytest.mark.parametrize("library", TRANSACTIONAL, ids=lambda library: library.name)

Make = Callable[..., TransactionalProducer]

QUICK_TIMEOUTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that looks for late transactions all the time."""
    with BrokerProcess(tmp_path_factory.mktemp("quick") / "data", QUICK_TIMEOUTS) as process:
        with Wire(process.port) as wire:
            warm_up(wire)
        yield process


@pytest.fixture
def wire(quick: BrokerProcess) -> Iterator[Wire]:
    with Wire(quick.port) as connection:
        yield connection


@pytest.fixture
def orders(quick: BrokerProcess) -> TopicPartition:
    return TopicPartition(create_topic(quick.bootstrap_servers, 3), 0)


@pytest.fixture
def make(quick: BrokerProcess, library: TransactionalLibrary) -> Iterator[Make]:
    """Producers of the library under test, gone with the test."""
    made: list[TransactionalProducer] = []

    def start(transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        made.append(library.producer(quick.bootstrap_servers, transactional_id, timeout_ms))
        return made[-1]

    yield start
    for producer in made:
        producer.close()


def partitions_of(orders: TopicPartition) -> list[TopicPartition]:
    return [TopicPartition(orders.topic, index) for index in range(3)]


@pytest.mark.seed("I9", "I5")
@by_each_library
def test_committed_is_read_and_aborted_is_not(
    quick: BrokerProcess, wire: Wire, orders: TopicPartition, make: Make
) -> None:
    name = unique("id")
    producer = make(name)
    partitions = partitions_of(orders)
    producer.begin()
    assert wire.describe(name).transaction_state == "Empty", "beginning is local"
    for number, outcome in enumerate(["commit", "abort", "commit", "abort", "abort", "commit"]):
        if number:
            producer.begin()
        for partition in partitions:
            for part in range(3):
                producer.send(partition, b"%d.%d %s" % (number, part, outcome.encode()))
        producer.flush()
        assert wire.describe(name).transaction_state == "Ongoing"
        producer.commit() if outcome == "commit" else producer.abort()
    wire.settled(name)
    wait_until_stable(wire, *partitions)

    committed = [b"%d.%d commit" % (number, part) for number in (0, 2, 5) for part in range(3)]
    for partition in partitions:
        for reader in READERS:
            assert reader.read(quick.bootstrap_servers, partition, committed_only=True) == committed, reader.name
    everything = READERS[0].read(quick.bootstrap_servers, orders, committed_only=False)
    assert len(everything) == 18
    assert [value for value in everything if value.endswith(b"commit")] == committed


@pytest.mark.seed("I5")
@pytest.mark.seed("I5")
@by_each_library
def test_an_open_transaction_is_seen_only_by_readers_who_do_not_care(
    quick: BrokerProcess, wire: Wire, orders: TopicPartition, make: Make
) -> None:
    producer = make(unique("id"))
    producer.begin()
    producer.send(orders, b"open")
    producer.flush()
    for reader in READERS:
        assert reader.read(quick.bootstrap_servers, orders, committed_only=True) == []
        assert reader.read(quick.bootstrap_servers, orders, committed_only=False) == [b"open"]
    producer.commit()
    wait_until_stable(wire, orders)
    for reader in READERS:
        assert reader.read(quick.bootstrap_servers, orders, committed_only=True) == [b"open"]


@pytest.mark.seed("I11")
@by_each_library
def test_offsets_count_when_their_transaction_commits(wire: Wire, orders: TopicPartition, make: Make) -> None:
    name, group = unique("id"), unique("group")
    producer = make(name)

    producer.begin()
    producer.send(orders, b"output")
    producer.send_offsets(group, {orders: 5})
    assert committed_offset(wire, group, orders, require_stable=False) == -1
    producer.commit()
    wire.settled(name)
    assert committed_offset(wire, group, orders) == 5

    producer.begin()
    producer.send_offsets(group, {orders: 9})
    producer.abort()
    wire.settled(name)
    assert committed_offset(wire, group, orders) == 5

    producer.begin()
    producer.send_offsets(group, {orders: 7})
    producer.commit()
    wire.settled(name)
    assert committed_offset(wire, group, orders) == 7, "a transaction of nothing but offsets"


@pytest.mark.seed("I3", "I13")
@by_each_library
@pytest.mark.parametrize("does", ["commit", "abort", "send", "send_offsets"])
def test_an_old_instance_is_fenced_on_its_next_call(
    wire: Wire, orders: TopicPartition, make: Make, library: TransactionalLibrary, does: str
) -> None:
    name = unique("id")
    old = make(name)
    old.begin()
    old.send(orders, b"from the zombie")
    old.flush()
    new = make(name)
    assert wire.describe(name).transaction_state != "Ongoing", "a new instance finds nothing open"

    def next_call() -> None:
        if does == "send":
            old.send(TopicPartition(orders.topic, 1), b"from the zombie again")
            old.flush()
        elif does == "send_offsets":
            old.send_offsets("readers", {orders: 1})
        elif does == "abort":
            old.abort()
        # Some tell it at once, the others when the transaction is to be ended.
        old.commit()

    with pytest.raises(Exception) as raised:  # noqa: PT011
        next_call()
    assert library.is_fenced(raised.value), repr(raised.value)

    new.begin()
    new.send(orders, b"from the successor")
    new.commit()
    wire.settled(name)
    wait_until_stable(wire, *partitions_of(orders))
    assert read_partition(wire, orders) == [b"from the successor"]
    assert read_partition(wire, TopicPartition(orders.topic, 1), isolation=0) == []


@pytest.mark.seed("I10")
@by_each_library
def test_a_transaction_over_its_timeout_is_aborted_and_its_producer_shut_out(
    wire: Wire, orders: TopicPartition, make: Make, library: TransactionalLibrary
) -> None:
    name = unique("id")
    late = make(name, timeout_ms=1000)
    late.begin()
    late.send(orders, b"too late")
    late.flush()
    before = wire.describe(name)
    assert before.transaction_state == "Ongoing"
    assert before.transaction_timeout_ms == 1000

    deadline = time.monotonic() + 20
    while (after := wire.describe(name)).transaction_state != "CompleteAbort":
        assert time.monotonic() < deadline, after
        time.sleep(0.02)
    assert after.producer_epoch == before.producer_epoch + 1
    wait_until_stable(wire, orders)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        late.commit()
    assert library.is_fenced(raised.value) or "timed out" in str(raised.value), repr(raised.value)
    assert read_partition(wire, orders) == []

    again = make(name)
    again.begin()
    again.send(orders, b"in time")
    again.commit()
    wire.settled(name)
    assert read_partition(wire, orders) == [b"in time"]


@pytest.mark.seed("I13")
@by_each_library
def test_a_new_instance_finds_what_a_dead_one_left_open_aborted(wire: Wire, orders: TopicPartition, make: Make) -> None:
    name, group = unique("id"), unique("group")
    for number in range(3):
        dying = make(name)
        dying.begin()
        dying.send(orders, b"left open by %d" % number)
        dying.send_offsets(group, {orders: number})
        dying.flush()
        # Nobody ends it; the next one comes.
    last = make(name)
    last.begin()
    last.send(orders, b"committed")
    last.commit()
    wire.settled(name)
    wait_until_stable(wire, orders)
    assert read_partition(wire, orders) == [b"committed"]
    assert committed_offset(wire, group, orders) == -1


@by_each_library
def test_many_small_transactions_in_a_row(wire: Wire, orders: TopicPartition, make: Make) -> None:
    name = unique("id")
    producer = make(name)
    for number in range(50):
        producer.begin()
        producer.send(TopicPartition(orders.topic, number % 3), b"%d" % number)
        producer.abort() if number % 5 == 4 else producer.commit()
    wire.settled(name)
    for index, partition in enumerate(partitions_of(orders)):
        expected = [b"%d" % number for number in range(50) if number % 3 == index and number % 5 != 4]
        assert read_partition(wire, partition) == expected
