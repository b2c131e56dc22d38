"""Requests that come late or again: what a network may do with the frames of a transaction that is over.

Under v2 (KIP-890) every end raises the epoch, so nothing of an earlier transaction can touch a later one. Under v1 nothing in a
late request says which transaction it belongs to: what docs/transactions.md calls its limits is shown here as it is.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from oncelog.protocol.messages.end_txn import EndTxnResponse
from oncelog.protocol.messages.produce import ProduceResponse
from tests.brokers import BrokerProcess, StartBroker, oncelog_only
from tests.integration.raw_connection import create_topic
from tests.integration.topics import unique
from tests.integration.transaction_reading import committed_offset, read_partition, wait_until_stable
from tests.integration.transaction_wire import (
    V1,
    V2,
    Generation,
    Wire,
    WireProducer,
    batch_of,
    end_request,
    produce_request,
    warm_up,
)

by_generation = pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        warm_up(connection)
        yield connection


@pytest.fixture
def orders(wire: Wire) -> TopicPartition:
    return TopicPartition(create_topic(wire, 2), 0)


@pytest.mark.seed("I14")
def test_a_v2_client_never_names_its_partitions_and_goes_on_with_the_identity_it_is_given(
    wire: Wire, orders: TopicPartition
) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    producer_id, epoch = producer.identity
    other = TopicPartition(orders.topic, 1)
    producer.send(orders, values=[b"1"])
    producer.send(other, values=[b"2"])
    producer.send_offsets("readers", {orders: 7})
    found = wire.describe(producer.transactional_id)
    assert found.transaction_state == "Ongoing"
    assert {topic.topic: sorted(topic.partitions) for topic in found.topics if topic.topic == orders.topic} == {
        orders.topic: [0, 1]
    }
    assert len(found.topics) == 2, "and the group's partition of __consumer_offsets"
    producer.commit()
    assert producer.identity == ProducerIdentity(producer_id, epoch + 1)
    producer.settle().send(orders, values=[b"3"])
    producer.abort()
    assert producer.identity == ProducerIdentity(producer_id, epoch + 2)
    producer.settle()
    assert read_partition(wire, orders) == [b"1"]
    assert read_partition(wire, other) == [b"2"]
    wait_until_stable(wire, orders, other)


@pytest.mark.seed("I14")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("replayed", [True, False], ids=["late commit", "late abort"])
def test_a_late_v2_end_does_not_touch_a_later_transaction(
    wire: Wire, orders: TopicPartition, committed: bool, replayed: bool
) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    earlier = producer.identity
    producer.send(orders, values=[b"first"])
    producer.end(committed=committed)
    producer.settle()
    producer.send(orders, values=[b"second"])
    before = wire.describe(producer.transactional_id)

    assert wire.end_code(producer.transactional_id, earlier, committed=replayed) in FENCED

    assert wire.describe(producer.transactional_id) == before
    producer.commit()
    producer.settle()
    assert read_partition(wire, orders) == ([b"first"] if committed else []) + [b"second"]


@pytest.mark.seed("I14")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("sequence", [0, 1, 2])
@pytest.mark.parametrize("version", [3, 9, 11, 12])
def test_a_late_produce_does_not_get_into_a_later_v2_transaction(
    wire: Wire, orders: TopicPartition, committed: bool, sequence: int, version: int
) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    late = {orders: batch_of([b"late"], producer.identity, sequence)}
    producer.send(orders, values=[b"first"])
    producer.end(committed=committed)
    producer.settle()
    # Once while nothing is open, once inside the next transaction, once after it.
    codes = [wire.produce(producer.transactional_id, late, version)[0].error_code]
    producer.send(orders, values=[b"second"])
    codes += [wire.produce(producer.transactional_id, late, version)[0].error_code]
    producer.commit()
    producer.settle()
    codes += [wire.produce(producer.transactional_id, late, version)[0].error_code]
    assert {ErrorCode(code) for code in codes} == {ErrorCode.INVALID_PRODUCER_EPOCH}
    wait_until_stable(wire, orders)
    assert read_partition(wire, orders) == ([b"first"] if committed else []) + [b"second"]


@pytest.mark.seed("I14")
def test_late_offsets_do_not_get_into_a_later_v2_transaction(wire: Wire, orders: TopicPartition) -> None:
    group = unique("group")
    producer = WireProducer(wire, unique("id"), V2).initialise()
    earlier = producer.identity
    producer.send_offsets(group, {orders: 5})
    producer.commit()
    producer.settle().send(orders, values=[b"x"])
    for version in (3, 4, 5):
        codes = wire.commit_offsets(producer.transactional_id, earlier, group, {orders: 99}, version)
        assert set(codes) <= FENCED, codes
    producer.commit()
    producer.settle()
    assert committed_offset(wire, group, orders) == 5


@pytest.mark.seed("I2", "I14")
def test_the_second_batch_of_a_v2_transaction_is_not_taken_for_the_first(wire: Wire, orders: TopicPartition) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    other = TopicPartition(orders.topic, 1)
    wait_until_stable(wire, orders, other)
    early = batch_of([b"second"], producer.identity, 1)
    first = batch_of([b"first"], producer.identity, 0)
    results = wire.produce(producer.transactional_id, {orders: early, other: first})
    codes = {result.index: ErrorCode(result.error_code) for result in results}
    assert codes == {0: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1: ErrorCode.NONE}
    for batch in (first, early):
        (result,) = wire.produce(producer.transactional_id, {orders: batch})
        assert result.error_code == ErrorCode.NONE
    producer.commit()
    producer.settle()
    assert read_partition(wire, orders) == [b"first", b"second"]
    assert read_partition(wire, other) == [b"first"]


@pytest.mark.seed("I14")
def test_an_aborted_empty_v2_transaction_shuts_its_own_late_produce_out(wire: Wire, orders: TopicPartition) -> None:
    producer = WireProducer(wire, unique("id"), V2).initialise()
    late = {orders: batch_of([b"late"], producer.identity, 0)}
    producer.abort()
    producer.settle()
    (result,) = wire.produce(producer.transactional_id, late)
    assert result.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert read_partition(wire, orders, isolation=0) == []


@pytest.mark.seed("I14")
def test_every_frame_of_an_earlier_v2_transaction_again_in_any_order(wire: Wire, orders: TopicPartition) -> None:
    """A recorded transaction, played back shuffled at every moment of the two after it."""
    chance = random.Random(4)
    other = TopicPartition(orders.topic, 1)
    group = unique("group")

    def play_back(name: str, earlier: ProducerIdentity) -> None:
        again = {at: batch_of([b"again"], earlier, 0) for at in (orders, other)}
        frames: list[Callable[[], object]] = [
            lambda: wire.produce(name, {orders: again[orders]}),
            lambda: wire.produce(name, {other: again[other]}),
            lambda: wire.commit_offsets(name, earlier, group, {orders: 99}),
            lambda: wire.end(name, earlier, committed=True),
            lambda: wire.end(name, earlier, committed=False),
            lambda: wire.add_partitions(name, earlier, [orders, other]),
        ]
        chance.shuffle(frames)
        for send in frames:
            send()

    for _ in range(10):
        producer = WireProducer(wire, unique("id"), V2).initialise()
        play = partial(play_back, producer.transactional_id, producer.identity)
        producer.send(orders, values=[b"a"])
        producer.send_offsets(group, {orders: 1})
        producer.commit()
        producer.settle()
        play()
        producer.send(orders, other, values=[b"b"])
        play()
        producer.abort()
        producer.settle()
        play()
        producer.send(other, values=[b"c"])
        producer.send_offsets(group, {orders: 2})
        play()
        producer.commit()
        producer.settle()
        play()
        assert committed_offset(wire, group, orders) == 2
    wait_until_stable(wire, orders, other)
    assert read_partition(wire, orders) == [b"a"] * 10
    assert read_partition(wire, other) == [b"c"] * 10


def test_the_limit_of_v1_a_late_end_ends_whatever_is_open(wire: Wire, orders: TopicPartition) -> None:
    """As in Kafka: why v2 exists, and what docs/transactions.md says of v1."""
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(orders, values=[b"first"])
    producer.commit()
    producer.settle().send(orders, values=[b"second"])
    assert wire.end_code(producer.transactional_id, producer.identity, committed=False, version=4) is ErrorCode.NONE
    wire.settled(producer.transactional_id)
    assert read_partition(wire, orders) == [b"first"]


@pytest.mark.seed("I14")
def test_a_late_v1_produce_is_refused_where_the_coordinator_does_not_expect_it(
    wire: Wire, orders: TopicPartition
) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    other = TopicPartition(orders.topic, 1)
    producer.send(orders, values=[b"first"])
    producer.abort()
    late = {orders: batch_of([b"late"], producer.identity, 1)}
    producer.settle().send(other, values=[b"second"])
    (result,) = wire.produce(producer.transactional_id, late, 11)
    assert result.error_code == ErrorCode.TRANSACTION_ABORTABLE, "this transaction knows nothing of that partition"
    producer.commit()
    producer.settle()
    wait_until_stable(wire, orders, other)
    assert read_partition(wire, orders) == []


@oncelog_only
@by_generation
def test_pipelined_transactions_are_never_sent_away(wire: Wire, orders: TopicPartition, generation: Generation) -> None:
    """Twenty transactions on the wire at once: each next one arrives before the last one's markers can be out."""
    producer = WireProducer(wire, unique("id"), generation).initialise()
    name = producer.transactional_id
    expected: list[tuple[type[object], int]] = []
    frames: list[bytes] = []

    def ask(message: object, answer: type[object], version: int) -> None:
        frames.append(encode_request(len(frames), "raw", message, version))
        expected.append((answer, version))

    for number in range(20):
        # A v2 client cannot really do this, since it waits for its next epoch. The epoch is known to go up by one.
        identity = producer.identity
        if generation is V2:
            identity = identity._replace(producer_epoch=identity.producer_epoch + number)
        else:
            topics = [AddPartitionsToTxnTopic(name=orders.topic, partitions=[0])]
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=identity.producer_id,
                v3_and_below_producer_epoch=identity.producer_epoch,
                v3_and_below_topics=topics,
            )
            ask(add, AddPartitionsToTxnResponse, 3)
        sequence = 0 if generation is V2 else number
        batch = batch_of([b"%d" % number], identity, sequence)
        ask(produce_request(name, {orders: batch}), ProduceResponse, generation.produce)
        ask(end_request(name, identity, committed=True), EndTxnResponse, generation.end)
    wire.send(b"".join(frames))
    for number, (answer, version) in enumerate(expected):
        correlation_id, decoded = decode_response(answer, version, wire.response())
        assert correlation_id == number
        if isinstance(decoded, ProduceResponse):
            code = decoded.responses[0].partition_responses[0].error_code
        elif isinstance(decoded, AddPartitionsToTxnResponse):
            code = decoded.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        else:
            assert isinstance(decoded, EndTxnResponse)
            code = decoded.error_code
        assert ErrorCode(code) is ErrorCode.NONE, (number, answer.__name__)
    assert read_partition(wire, orders) == [b"%d" % number for number in range(20)]


@oncelog_only
@by_generation
@pytest.mark.parametrize("policy", ["page-cache", "group-commit"])
def test_a_sequential_client_is_never_sent_away(start_broker: StartBroker, generation: Generation, policy: str) -> None:
    broker = start_broker({"flush.policy": policy})
    with Wire(broker.port) as own:
        at = TopicPartition(create_topic(own, 2), 0)
        other = TopicPartition(at.topic, 1)
        producer = WireProducer(own, "sequential", generation).initialise()
        # `WireProducer` fails on any refusal, CONCURRENT_TRANSACTIONS included.
        for number in range(100):
            producer.send(at, other, values=[b"%d" % number])
            producer.send_offsets("readers", {at: number})
            producer.end(committed=number % 3 != 0)
        producer.initialise()
        producer.settle()
        expected = [b"%d" % number for number in range(100) if number % 3]
        assert read_partition(own, at) == read_partition(own, other) == expected
