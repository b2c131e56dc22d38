"""What a broker forgets of transactions: idle transactional ids by a tombstone, idle producers, and old records by compaction."""

import time

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.java_hash import java_string_hash
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from oncelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from oncelog.records.batch import batches
from oncelog.records.record import Record, read_records
from oncelog.transactions.states import State
from oncelog.transactions.transaction_records import decode_key, decode_value
from tests.brokers import BrokerProcess, StartBroker, oncelog_only, target_is_kafka
from tests.integration.topics import create_topic
from tests.integration.transaction_reading import (
    READ_UNCOMMITTED,
    fetch,
    read_partition,
    stored_bytes,
    wait_until_stable,
)
from tests.integration.transaction_wire import V1, V2, Generation, Wire, WireProducer, batch_of, warm_up

PARTITIONS = 3
IDS_EXPIRE = {
    "transactional.id.expiration.ms": "700",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "transaction.state.log.num.partitions": str(PARTITIONS),
}
PRODUCERS_EXPIRE = {"producer.id.expiration.ms": "700", "producer.id.expiration.check.interval.ms": "100"}


def listed(wire: Wire) -> set[str]:
    answer = wire.call(ListTransactionsRequest(), 2, ListTransactionsResponse)
    assert answer.error_code == 0
    return {transaction.transactional_id for transaction in answer.transaction_states}


def wait_until_forgotten(wire: Wire, transactional_id: str) -> None:
    deadline = time.monotonic() + 20
    while transactional_id in listed(wire):
        assert time.monotonic() < deadline, f"{transactional_id} is still there"
        time.sleep(0.05)


def state_records(broker: BrokerProcess, transactional_id: str) -> list[Record]:
    """What `__transaction_state` holds of the id, from its file."""
    index = (java_string_hash(transactional_id) & 0x7FFFFFFF) % PARTITIONS
    found = []
    for file in sorted((broker.data_directory / f"__transaction_state-{index}").glob("*.log")):
        data = file.read_bytes()
        for position, header in batches(data):
            if not header.is_control:
                found += [
                    record
                    for record in read_records(data, position)
                    if decode_key(record.key or b"") == transactional_id
                ]
    return found


def states_of(broker: BrokerProcess, transactional_id: str) -> list[State | None]:
    return [
        None if record.value is None else decode_value(transactional_id, record.value).state
        for record in state_records(broker, transactional_id)
    ]


@pytest.mark.seed("I7", "I12")
def test_an_idle_id_is_forgotten_by_a_tombstone_in_its_partition(start_broker: StartBroker) -> None:
    broker = start_broker(IDS_EXPIRE)
    orders = TopicPartition(create_topic(broker.bootstrap_servers), 0)
    with Wire(broker.port) as wire:
        warm_up(wire)
        used = WireProducer(wire, "used", V1).initialise()
        used.send(orders, values=[b"x"])
        used.commit()
        used.settle()
        never_used = WireProducer(wire, "never used", V1).initialise()
        still_open = WireProducer(wire, "still open", V1).initialise()
        still_open.send(orders, values=[b"open"])
        for idle in (used, never_used):
            wait_until_forgotten(wire, idle.transactional_id)
        assert "still open" in listed(wire), "an open transaction does not expire, it times out"
        assert wire.describe("used").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        codes = wire.add_partitions("used", used.identity, [orders])
        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]

        again = WireProducer(wire, "used", V1).initialise()
        assert again.identity.producer_id != used.identity.producer_id, "it starts anew, with another producer id"
        assert again.identity.producer_epoch == 0
        still_open.commit()
    expected = [State.EMPTY, State.ONGOING, State.PREPARE_COMMIT, State.COMPLETE_COMMIT, None, State.EMPTY]
    assert states_of(broker, "used") == expected


@oncelog_only
@pytest.mark.seed("I12")
def test_a_forgotten_id_stays_forgotten_after_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker(IDS_EXPIRE)
    with Wire(broker.port) as wire:
        WireProducer(wire, "forgotten", V2).initialise()
        wait_until_forgotten(wire, "forgotten")
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        assert wire.describe("forgotten").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def producers_of(wire: Wire, partition: TopicPartition) -> list[ProducerState]:
    asked = TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
    answer = wire.call(DescribeProducersRequest(topics=[asked]), 0, DescribeProducersResponse)
    (found,) = answer.topics[0].partitions
    assert found.error_code == 0
    return found.active_producers


@pytest.mark.seed("I12")
def test_an_idle_producer_is_forgotten_by_its_partition_unless_its_transaction_is_open(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(PRODUCERS_EXPIRE)
    orders = TopicPartition(create_topic(broker.bootstrap_servers), 0)
    with Wire(broker.port) as wire:
        warm_up(wire)
        idle = WireProducer(wire, "idle", V1).initialise()
        idle.send(orders, values=[b"1", b"2"])
        idle.commit()
        idle.settle()
        opened = WireProducer(wire, "open", V1).initialise()
        opened.send(orders, values=[b"3"])
        assert {found.producer_id for found in producers_of(wire, orders)} >= {opened.identity.producer_id}
        deadline = time.monotonic() + 20
        while len(found := producers_of(wire, orders)) > 1:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        assert [producer.producer_id for producer in found] == [opened.identity.producer_id]

        # The coordinator knows it still, and the partition takes it as it comes.
        idle.send(orders, values=[b"4"])
        idle.commit()
        opened.commit()
        idle.settle(), opened.settle()
        wait_until_stable(wire, orders)
        assert read_partition(wire, orders) == [b"1", b"2", b"3", b"4"]


@pytest.mark.seed("I12", "I14")
@pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
def test_a_forgotten_producer_may_begin_with_any_sequence_unless_transactions_number_anew(
    start_broker: StartBroker, generation: Generation
) -> None:
    broker = start_broker(PRODUCERS_EXPIRE)
    orders = TopicPartition(create_topic(broker.bootstrap_servers), 0)
    with Wire(broker.port) as wire:
        warm_up(wire)
        producer = WireProducer(wire, "idle", generation).initialise()
        producer.send(orders, values=[b"1"])
        producer.commit()
        producer.settle()
        deadline = time.monotonic() + 20
        while producers_of(wire, orders):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        producer.add(orders)

        def send(sequence: int, value: bytes) -> ErrorCode:
            batches = {orders: batch_of([value], producer.identity, sequence)}
            (result,) = wire.produce("idle", batches, generation.produce)
            return ErrorCode(result.error_code)

        if generation is V2:
            # Under v2 every transaction begins with 0: a later one first means that one is missing.
            assert send(5, b"too early") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert send(0, b"2") is ErrorCode.NONE
        else:
            assert send(5, b"2") is ErrorCode.NONE
        producer.commit()
        producer.settle()
        assert read_partition(wire, orders) == [b"1", b"2"]


COMPACTED_OFTEN = {
    "transaction.state.log.num.partitions": "1",
    # Only segments that are no longer written are compacted, and none is smaller than a megabyte unless it is old.
    "log.roll.ms": "50",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
}


@oncelog_only
@pytest.mark.seed("I12")
def test_the_state_topic_is_compacted_and_nothing_is_lost_by_it(start_broker: StartBroker) -> None:
    broker = start_broker(COMPACTED_OFTEN)
    orders = TopicPartition(create_topic(broker.bootstrap_servers), 0)
    directory = broker.data_directory / "__transaction_state-0"
    with Wire(broker.port) as wire:
        producers = [WireProducer(wire, f"id-{number}", V2).initialise() for number in range(5)]
        for _ in range(100):
            for producer in producers:
                producer.send(orders, values=[b"x"])
                producer.commit()
        still_open = WireProducer(wire, "open", V1).initialise()
        still_open.send(orders, values=[b"open"])
        written = 5 * (1 + 3 * 100) + 2
        deadline = time.monotonic() + 20
        while sum(header.record_count for _, header in batches(stored_bytes(directory))) > written // 4:
            assert time.monotonic() < deadline, "nobody compacts it"
            time.sleep(0.05)
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        for producer in producers:
            found = wire.describe(producer.transactional_id)
            assert found.transaction_state == "CompleteCommit"
            assert (found.producer_id, found.producer_epoch) == producer.identity
            producer.wire = wire
            producer.send(orders, values=[b"after"])
            producer.commit()
        assert wire.describe("open").transaction_state == "Ongoing"
        still_open.wire = wire
        still_open.commit()
        wait_until_stable(wire, orders)
        assert len(read_partition(wire, orders)) == 506


@pytest.mark.seed("I7")
def test_the_coordinator_of_an_id_keeps_it_in_the_partition_of_its_hash(start_broker: StartBroker) -> None:
    broker = start_broker({"transaction.state.log.num.partitions": str(PARTITIONS)})
    with Wire(broker.port) as wire:
        warm_up(wire)
        # Java hashes UTF-16: a name outside of ASCII and one outside of the plane that has one unit per character.
        for name in ("billing", "заказы", "orders-\N{GRINNING FACE}", "x" * 200):
            WireProducer(wire, name, V1).initialise()
            index = (java_string_hash(name) & 0x7FFFFFFF) % PARTITIONS
            there = fetch(wire, TopicPartition("__transaction_state", index), isolation=READ_UNCOMMITTED)
            assert there.code is ErrorCode.NONE
    for name in ("billing", "заказы", "orders-\N{GRINNING FACE}", "x" * 200):
        assert states_of(broker, name) == [State.EMPTY], name
    assert target_is_kafka() or sorted(
        directory.name for directory in broker.data_directory.glob("__transaction_state-*")
    ) == [f"__transaction_state-{index}" for index in range(PARTITIONS)]
