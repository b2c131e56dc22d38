"""WriteTxnMarkers at a leader, sent by hand as another broker's coordinator would: one control batch each, stale ones refused."""

from collections.abc import Iterator, Sequence

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from oncelog.records.control import ControlType
from tests.brokers import BrokerProcess, StartBroker, target_is_kafka
from tests.integration.raw_connection import create_topic
from tests.integration.topics import unique
from tests.integration.transaction_reading import READ_UNCOMMITTED, committed_offset, fetch, read_partition
from tests.integration.transaction_wire import V1, V2, Wire, WireProducer, warm_up

FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        warm_up(connection)
        yield connection


@pytest.fixture
def orders(wire: Wire) -> TopicPartition:
    return TopicPartition(create_topic(wire, 2), 0)


def marker(
    producer: ProducerIdentity,
    partitions: Sequence[TopicPartition],
    *,
    committed: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=committed,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index]) for topic, index in partitions],
    )


def write(wire: Wire, *markers: WritableTxnMarker, version: int = 1) -> list[tuple[int, str, int, ErrorCode]]:
    answer = wire.call(WriteTxnMarkersRequest(markers=list(markers)), version, WriteTxnMarkersResponse)
    return [
        (result.producer_id, topic.name, partition.partition_index, ErrorCode(partition.error_code))
        for result in answer.markers
        for topic in result.topics
        for partition in topic.partitions
    ]


def codes(wire: Wire, *markers: WritableTxnMarker, version: int = 1) -> list[ErrorCode]:
    return [code for *_, code in write(wire, *markers, version=version)]


def markers_in(wire: Wire, partition: TopicPartition) -> list[tuple[ControlType | None, int, int]]:
    """(kind, producer id, producer epoch) of every control batch."""
    return [
        (batch.marker, batch.header.producer_id, batch.header.producer_epoch)
        for batch in fetch(wire, partition, isolation=READ_UNCOMMITTED).batches
        if batch.marker is not None
    ]


@pytest.mark.seed("T10")
@pytest.mark.parametrize("version", [1, 2])
def test_one_request_ends_transactions_of_several_producers_with_one_control_batch_each(
    wire: Wire, orders: TopicPartition, version: int
) -> None:
    other = TopicPartition(orders.topic, 1)
    first = WireProducer(wire, unique("id"), V1).initialise()
    second = WireProducer(wire, unique("id"), V1).initialise()
    first.send(orders, other, values=[b"first"])
    second.send(orders, values=[b"second"])
    nowhere = TopicPartition(orders.topic, 77)

    answers = write(
        wire,
        marker(first.identity, [orders, other, nowhere]),
        marker(second.identity, [orders], committed=False),
        version=version,
    )

    (one, _), (two, _) = first.identity, second.identity
    assert sorted(answers) == sorted(
        [
            (one, orders.topic, 0, ErrorCode.NONE),
            (one, orders.topic, 1, ErrorCode.NONE),
            (one, orders.topic, 77, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (two, orders.topic, 0, ErrorCode.NONE),
        ]
    )
    assert sorted(markers_in(wire, orders)) == sorted([(ControlType.COMMIT, one, 0), (ControlType.ABORT, two, 0)])
    assert markers_in(wire, other) == [(ControlType.COMMIT, one, 0)]
    assert read_partition(wire, orders) == [b"first"]
    fetched = fetch(wire, orders)
    assert fetched.last_stable_offset == fetched.high_watermark == 4


@pytest.mark.seed("T10")
@pytest.mark.parametrize("version", [1, 2])
def test_a_coordinator_that_was_replaced_writes_no_markers(wire: Wire, orders: TopicPartition, version: int) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(orders, values=[b"x"])
    who = producer.identity
    assert codes(wire, marker(who, [orders], coordinator_epoch=5), version=version) == [ErrorCode.NONE]
    assert codes(wire, marker(who, [orders], coordinator_epoch=4), version=version) == [FENCED]
    assert codes(wire, marker(who, [orders], coordinator_epoch=6), version=version) == [ErrorCode.NONE]
    assert codes(wire, marker(who, [orders], coordinator_epoch=5), version=version) == [FENCED]
    assert len(markers_in(wire, orders)) == 2


@pytest.mark.seed("T10")
def test_a_coordinator_that_was_replaced_writes_no_markers_after_a_restart_either(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Wire(broker.port) as wire:
        warm_up(wire)
        orders = TopicPartition(create_topic(wire), 0)
        producer = WireProducer(wire, "id", V1).initialise()
        producer.send(orders, values=[b"x"])
        assert codes(wire, marker(producer.identity, [orders], coordinator_epoch=5)) == [ErrorCode.NONE]
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        if target_is_kafka():
            warm_up(wire)
        assert codes(wire, marker(producer.identity, [orders], coordinator_epoch=4)) == [FENCED]


@pytest.mark.seed("T10", "I3")
@pytest.mark.parametrize("version", [1, 2])
def test_markers_of_an_older_producer_epoch_are_refused(wire: Wire, orders: TopicPartition, version: int) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    zombie = producer.identity
    producer.initialise()
    producer.send(orders, values=[b"x"])
    assert codes(wire, marker(zombie, [orders]), version=version) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert markers_in(wire, orders) == []
    producer.commit()
    producer.settle()
    assert read_partition(wire, orders) == [b"x"]


@pytest.mark.seed("T10", "I14")
def test_a_v2_marker_carries_an_epoch_above_its_data_and_may_be_written_twice(
    wire: Wire, orders: TopicPartition
) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    producer.send(orders, values=[b"x"])
    same = marker(producer.identity, [orders], transaction_version=2)
    assert codes(wire, same, version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    bumped = producer.identity._replace(producer_epoch=producer.identity.producer_epoch + 1)
    above = marker(bumped, [orders], transaction_version=2)
    assert codes(wire, above, version=2) == [ErrorCode.NONE]
    # A coordinator that did not hear of the first writes it again.
    assert codes(wire, above, version=2) == [ErrorCode.NONE]
    assert read_partition(wire, orders) == [b"x"]


@pytest.mark.seed("T10", "I11")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_marker_in_the_offsets_topic_publishes_or_drops_the_pending_offsets(
    wire: Wire, orders: TopicPartition, committed: bool
) -> None:
    group = unique("group")
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send_offsets(group, {orders: 5})
    assert committed_offset(wire, group, orders) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert committed_offset(wire, group, orders, require_stable=False) == -1
    (offsets,) = wire.describe(producer.transactional_id).topics
    assert offsets.topic == "__consumer_offsets"
    there = [TopicPartition(offsets.topic, offsets.partitions[0])]
    assert codes(wire, marker(producer.identity, there, committed=committed)) == [ErrorCode.NONE]
    assert committed_offset(wire, group, orders) == (5 if committed else -1)
