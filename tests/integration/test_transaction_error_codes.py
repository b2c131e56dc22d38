"""What each transactional request is answered when it is refused, version by version: clients decide by these numbers.

PRODUCER_FENCED came with InitProducerId v4 and AddPartitionsToTxn, AddOffsetsToTxn and EndTxn v2; older versions say the same
with INVALID_PRODUCER_EPOCH. TRANSACTION_ABORTABLE came with Produce v11 and TxnOffsetCommit v4; before it was INVALID_TXN_STATE.
"""

from collections.abc import Iterator

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.brokers import BrokerProcess, oncelog_only
from tests.integration.raw_connection import create_topic
from tests.integration.topics import unique
from tests.integration.transaction_reading import read_partition
from tests.integration.transaction_wire import V1, V2, Generation, Wire, WireProducer, batch_of, until_taken, warm_up

PRODUCE_VERSIONS = (3, 7, 9, 11, 12)
MAX_TIMEOUT_MS = 900_000


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        warm_up(connection)
        yield connection


@pytest.fixture(scope="module")
def orders(wire: Wire) -> TopicPartition:
    return TopicPartition(create_topic(wire, 2), 0)


@pytest.fixture
def producer(wire: Wire) -> Iterator[WireProducer]:
    """Of the first generation, without a transaction; nothing of it stays open."""
    made = WireProducer(wire, unique("id"), V1).initialise()
    yield made
    WireProducer(wire, made.transactional_id).initialise()


def replaced(producer: WireProducer) -> ProducerIdentity:
    """Its identity before another instance took over."""
    old = producer.identity
    producer.initialise()
    return old


def fenced(version: int, since: int) -> ErrorCode:
    return ErrorCode.PRODUCER_FENCED if version >= since else ErrorCode.INVALID_PRODUCER_EPOCH


def stranger(producer: WireProducer) -> ProducerIdentity:
    return ProducerIdentity(producer.identity.producer_id + 100_000, 0)


@pytest.mark.seed("I10")
@pytest.mark.parametrize("version", range(6))
def test_initialise_refusals(wire: Wire, version: int) -> None:
    def code(transactional_id: str | None, timeout_ms: int) -> ErrorCode:
        return ErrorCode(wire.initialise(transactional_id, version, timeout_ms=timeout_ms).error_code)

    assert code("", 1000) is ErrorCode.INVALID_REQUEST
    for timeout_ms in (0, -1, MAX_TIMEOUT_MS + 1):
        assert code(unique("id"), timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code(None, 0) is ErrorCode.NONE, "without a transactional id there is no timeout to speak of"


@pytest.mark.seed("I3")
@pytest.mark.parametrize("version", [3, 4, 5])
def test_initialise_with_an_identity(wire: Wire, producer: WireProducer, version: int) -> None:
    producer_id, epoch = producer.identity

    def ask(expected_id: int, expected_epoch: int) -> tuple[ErrorCode, int]:
        answer = wire.initialise(
            producer.transactional_id, version, expected=ProducerIdentity(expected_id, expected_epoch)
        )
        return ErrorCode(answer.error_code), answer.producer_epoch

    assert ask(producer_id, -1) == (ErrorCode.INVALID_REQUEST, -1)
    assert ask(-1, epoch) == (ErrorCode.INVALID_REQUEST, -1)
    assert ask(producer_id + 100_000, epoch) == (fenced(version, 4), -1)
    assert ask(producer_id, epoch + 1) == (fenced(version, 4), -1)
    assert ask(producer_id, epoch) == (ErrorCode.NONE, epoch + 1)
    assert ask(producer_id, epoch) == (ErrorCode.NONE, epoch + 1), "a repeat: the answer got lost, not the epoch"
    producer.initialise()
    assert ask(producer_id, epoch) == (fenced(version, 4), -1), "another instance has it now"


@pytest.mark.seed("I8", "I13")
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
def test_a_producer_may_get_rid_of_its_open_transaction_by_initialising_again(
    wire: Wire, orders: TopicPartition, generation: Generation, version: int
) -> None:
    """librdkafka does so when messages of a transaction were lost (KIP-360)."""
    own = WireProducer(wire, unique("id"), generation).initialise()
    (offset,) = own.send(orders, values=[b"lost"])
    answer = until_taken(
        lambda: wire.initialise(own.transactional_id, version, expected=own.identity),
        lambda answer: answer.error_code,
        "initialise again",
    )
    assert answer.producer_id == own.identity.producer_id
    assert answer.producer_epoch == own.identity.producer_epoch + 1
    assert wire.describe(own.transactional_id).transaction_state in ("CompleteAbort", "Empty")
    assert read_partition(wire, orders, offset=offset) == []


@oncelog_only
@pytest.mark.seed("I3")
def test_a_zombie_that_initialises_again_does_not_abort_its_successors_transaction(
    wire: Wire, producer: WireProducer, orders: TopicPartition
) -> None:
    """Kafka aborts the successor's open transaction here, before it refuses the zombie."""
    zombie = replaced(producer)
    producer.send(orders, values=[b"the successor's"])
    answer = wire.initialise(producer.transactional_id, expected=zombie)
    assert answer.error_code == ErrorCode.PRODUCER_FENCED
    producer.commit()


@pytest.mark.seed("I3")
@pytest.mark.parametrize("version", range(4))
def test_add_partitions_refusals(wire: Wire, producer: WireProducer, orders: TopicPartition, version: int) -> None:
    nowhere = TopicPartition(orders.topic, 77)
    other = TopicPartition(orders.topic, 1)
    zombie = replaced(producer)
    add, name = wire.add_partitions, producer.transactional_id
    assert add(name, zombie, [orders, other], version) == [fenced(version, 2)] * 2
    assert add(name, stranger(producer), [orders], version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert add(unique("id"), zombie, [orders], version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert add("", zombie, [orders], version) == [ErrorCode.INVALID_REQUEST]
    codes = add(name, producer.identity, [orders, nowhere], version)
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert wire.describe(name).transaction_state == "Empty", "all or nothing"


@pytest.mark.seed("I3")
@pytest.mark.parametrize("version", range(5))
def test_add_offsets_refusals(wire: Wire, producer: WireProducer, version: int) -> None:
    zombie = replaced(producer)
    add, name = wire.add_offsets, producer.transactional_id
    assert add(name, zombie, "readers", version) is fenced(version, 2)
    assert add(name, stranger(producer), "readers", version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert add(unique("id"), zombie, "readers", version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert add("", zombie, "readers", version) is ErrorCode.INVALID_REQUEST


@pytest.mark.seed("T5", "I3")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", range(6))
def test_end_refusals(wire: Wire, producer: WireProducer, version: int, committed: bool) -> None:
    zombie = replaced(producer)
    name = producer.transactional_id

    def end(transactional_id: str, identity: ProducerIdentity) -> ErrorCode:
        return wire.end_code(transactional_id, identity, committed=committed, version=version)

    assert end(name, zombie) is fenced(version, 2)
    assert end(name, zombie._replace(producer_epoch=9)) is fenced(version, 2)
    assert end(name, stranger(producer)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end(unique("id"), zombie) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end("", zombie) is ErrorCode.INVALID_REQUEST
    # Only under v2 does an abort make sense where nothing is open: its client cannot know whether its produce arrived.
    empty_abort = version >= 5 and not committed
    assert end(name, producer.identity) is (ErrorCode.NONE if empty_abort else ErrorCode.INVALID_TXN_STATE)


@pytest.mark.seed("T5")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", range(6))
def test_an_end_may_be_repeated_and_not_reversed(
    wire: Wire, orders: TopicPartition, version: int, committed: bool
) -> None:
    producer = WireProducer(wire, unique("id"), V2 if version >= 5 else V1).initialise()
    producer.send(orders, values=[b"x"])
    name, identity = producer.transactional_id, producer.identity
    first = wire.end(name, identity, committed=committed, version=version)
    assert first.error_code == 0
    assert wire.settled(name) == ("CompleteCommit" if committed else "CompleteAbort")
    repeated = wire.end(name, identity, committed=committed, version=version)
    assert repeated.error_code == 0
    assert repeated.producer_epoch == first.producer_epoch == (identity.producer_epoch + 1 if version >= 5 else -1)
    assert wire.end_code(name, identity, committed=not committed, version=version) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.seed("I3", "I11")
@pytest.mark.parametrize("version", range(6))
def test_commit_offsets_refusals(wire: Wire, producer: WireProducer, orders: TopicPartition, version: int) -> None:
    zombie = replaced(producer)
    name = producer.transactional_id
    not_added = {4: ErrorCode.TRANSACTION_ABORTABLE, 5: ErrorCode.NONE}.get(version, ErrorCode.INVALID_TXN_STATE)

    def commit(transactional_id: str, identity: ProducerIdentity, group: str = "readers", at: int = 0) -> ErrorCode:
        position = TopicPartition(orders.topic, at)
        (code,) = wire.commit_offsets(transactional_id, identity, group, {position: 1}, version)
        return code

    assert commit(name, zombie) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit(name, stranger(producer)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert commit(unique("id"), zombie) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert commit("", zombie) is ErrorCode.INVALID_REQUEST
    assert commit(name, producer.identity, group="") is ErrorCode.INVALID_GROUP_ID
    assert commit(name, producer.identity, at=77) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(name, producer.identity) is not_added


@pytest.mark.seed("I11")
@pytest.mark.parametrize("version", [3, 4, 5])
def test_offsets_of_a_member_nobody_knows_are_refused(
    wire: Wire, producer: WireProducer, orders: TopicPartition, version: int
) -> None:
    assert wire.add_offsets(producer.transactional_id, producer.identity, "readers") is ErrorCode.NONE
    name, identity = producer.transactional_id, producer.identity
    # The group must be there to know its members.
    assert wire.commit_offsets(name, identity, "readers", {orders: 1}, version) == [ErrorCode.NONE]
    refused = wire.commit_offsets(name, identity, "readers", {orders: 1}, version, member_id="nobody", generation=3)
    assert refused == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.seed("I3", "I14")
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_refusals(wire: Wire, producer: WireProducer, orders: TopicPartition, version: int) -> None:
    zombie = replaced(producer)
    name = producer.transactional_id

    def send(transactional_id: str | None, identity: ProducerIdentity, sequence: int = 0) -> ErrorCode:
        batches = {orders: batch_of([b"x"], identity, sequence)}
        (result,) = wire.produce(transactional_id, batches, version)
        return ErrorCode(result.error_code)

    assert send(None, producer.identity) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert send("", producer.identity) is ErrorCode.INVALID_REQUEST
    assert send(name, zombie) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(name, zombie._replace(producer_epoch=9)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(name, stranger(producer)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert send(unique("id"), producer.identity) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def not_in_transaction(version: int) -> ErrorCode:
    if version >= 12:
        return ErrorCode.NONE  # it is added on the way
    return ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE


@pytest.mark.seed("I14")
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_write_to_a_partition_that_is_not_in_the_transaction_would_hang_there(
    wire: Wire, producer: WireProducer, orders: TopicPartition, version: int
) -> None:
    other = TopicPartition(orders.topic, 1)
    name = producer.transactional_id

    def send(partition: TopicPartition, sequence: int) -> ErrorCode:
        batches = {partition: batch_of([b"x"], producer.identity, sequence)}
        (result,) = wire.produce(name, batches, version)
        return ErrorCode(result.error_code)

    producer.send(orders, values=[b"in the transaction"])
    assert send(other, 0) is not_in_transaction(version)
    if version >= 12:
        return
    producer.commit()
    producer.settle()
    assert send(orders, 1) is not_in_transaction(version), "the transaction is over"


@pytest.mark.seed("I2")
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_sequences_count_inside_a_transaction_too(
    wire: Wire, producer: WireProducer, orders: TopicPartition, version: int
) -> None:
    (offset,) = producer.send(orders, values=[b"1", b"2"])

    def send(sequence: int, count: int = 1, *, transactional: bool = True) -> tuple[ErrorCode, int]:
        batch = batch_of([b"x"] * count, producer.identity, sequence, transactional=transactional)
        (result,) = wire.produce(producer.transactional_id, {orders: batch}, version)
        return ErrorCode(result.error_code), result.base_offset

    assert send(0, 2) == (ErrorCode.NONE, offset), "the same again is acknowledged and not written"
    assert send(5) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(2, transactional=False) == (ErrorCode.INVALID_TXN_STATE, -1)
    assert send(2) == (ErrorCode.NONE, offset + 2)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_one_transactional_request_is_of_one_producer(
    wire: Wire, producer: WireProducer, orders: TopicPartition, version: int
) -> None:
    other = WireProducer(wire, unique("id"), V1).initialise()
    second = TopicPartition(orders.topic, 1)
    for one in (producer, other):
        one.add(orders, second)
    batches = {orders: batch_of([b"x"], producer.identity, 0), second: batch_of([b"x"], other.identity, 0)}
    codes = [result.error_code for result in wire.produce(producer.transactional_id, batches, version)]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    other.abort()


@pytest.mark.seed("I14")
@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_about_several_transactions_at_once(
    wire: Wire, producer: WireProducer, orders: TopicPartition, version: int
) -> None:
    other = TopicPartition(orders.topic, 1)
    name, identity = producer.transactional_id, producer.identity
    producer.add(orders)

    def asked(transactional_id: str, who: ProducerIdentity, *, verify_only: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=orders.topic, partitions=[0, 1])],
        )

    def ask(*transactions: AddPartitionsToTxnTransaction) -> dict[str, dict[int, ErrorCode]]:
        answer = wire.call(
            AddPartitionsToTxnRequest(transactions=list(transactions)), version, AddPartitionsToTxnResponse
        )
        assert answer.error_code == 0
        return {
            result.transactional_id: {
                partition.partition_index: ErrorCode(partition.partition_error_code)
                for topic in result.topic_results
                for partition in topic.results_by_partition
            }
            for result in answer.results_by_transaction
        }

    nobody = unique("id")
    found = ask(asked(name, identity, verify_only=True), asked(nobody, identity, verify_only=True))
    assert found == {
        name: {0: ErrorCode.NONE, 1: ErrorCode.TRANSACTION_ABORTABLE},
        nobody: dict.fromkeys((0, 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    }
    zombie = identity._replace(producer_epoch=identity.producer_epoch + 1)
    assert ask(asked(name, zombie, verify_only=True))[name] == dict.fromkeys((0, 1), ErrorCode.PRODUCER_FENCED)
    assert ask(asked(name, identity, verify_only=False))[name] == dict.fromkeys((0, 1), ErrorCode.NONE)
    assert sorted(wire.describe(name).topics[0].partitions) == [orders.partition, other.partition]
