"""What readers get of transactions: the last stable offset, the aborted list, markers they step over, fetches that wait."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from oncelog.log.transaction_index import AbortedTransaction, TransactionIndex
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from oncelog.protocol.messages.fetch import FetchResponse
from oncelog.records.control import ControlType
from tests.brokers import BrokerProcess, StartBroker, oncelog_only, target_is_kafka
from tests.integration.clients import LIBRARIES
from tests.integration.raw_connection import RawConnection
from tests.integration.topics import create_topic, unique
from tests.integration.transaction_clients import READERS, Reader
from tests.integration.transaction_reading import (
    FETCH_VERSION,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    end_offset,
    fetch,
    fetch_request,
    read_answer,
    read_partition,
    stored_bytes,
    wait_until_stable,
)
from tests.integration.transaction_wire import V1, V2, Wire, WireProducer, batch_of, warm_up

SMALL_SEGMENTS = {"segment.bytes": "1048576"}


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        warm_up(connection)
        yield connection


@pytest.fixture
def orders(bootstrap: str) -> TopicPartition:
    return TopicPartition(create_topic(bootstrap), 0)


def seed_002_interleaving(wire: Wire, orders: TopicPartition) -> list[int]:
    """The seed's example. Batches 0 to 5: A, B, the abort of A, A's next transaction, the abort of B, B's next; then both commit.

    The producer ids of A and B.
    """
    a = WireProducer(wire, unique("A"), V1).initialise()
    b = WireProducer(wire, unique("B"), V1).initialise()
    a.send(orders, values=[b"batch 0"])
    b.send(orders, values=[b"batch 1"])
    a.abort()
    a.settle().send(orders, values=[b"batch 3"])
    b.abort()
    b.settle().send(orders, values=[b"batch 5"])
    for producer in (a, b):
        producer.commit()
        producer.settle()
    return [a.identity.producer_id, b.identity.producer_id]


@pytest.mark.seed("X4", "X2")
def test_of_the_seeds_interleaved_transactions_only_batches_3_and_5_are_delivered(
    wire: Wire, orders: TopicPartition
) -> None:
    a, b = seed_002_interleaving(wire, orders)
    fetched = fetch(wire, orders)
    kinds = [(batch.header.producer_id, batch.marker) for batch in fetched.batches]
    assert kinds == [
        (a, None),
        (b, None),
        (a, ControlType.ABORT),
        (a, None),
        (b, ControlType.ABORT),
        (b, None),
        (a, ControlType.COMMIT),
        (b, ControlType.COMMIT),
    ]
    assert sorted(fetched.aborted or []) == sorted([(a, 0), (b, 1)])
    assert fetched.delivered() == [b"batch 3", b"batch 5"]


@pytest.mark.seed("X4")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_real_consumers_get_batches_3_and_5(wire: Wire, bootstrap: str, orders: TopicPartition, reader: Reader) -> None:
    seed_002_interleaving(wire, orders)
    assert reader.read(bootstrap, orders, committed_only=True) == [b"batch 3", b"batch 5"]
    everything = [b"batch 0", b"batch 1", b"batch 3", b"batch 5"]
    assert reader.read(bootstrap, orders, committed_only=False) == everything


@pytest.mark.seed("X2")
def test_a_committed_read_ends_at_the_oldest_open_transaction(wire: Wire, orders: TopicPartition) -> None:
    first = WireProducer(wire, unique("id"), V1).initialise()
    second = WireProducer(wire, unique("id"), V2).initialise()
    first.send(orders, values=[b"0"])
    second.send(orders, values=[b"1"])
    second.commit()
    second.settle()

    blocked = fetch(wire, orders)
    assert (blocked.last_stable_offset, blocked.high_watermark) == (0, 3)
    assert blocked.batches == []
    assert fetch(wire, orders, isolation=READ_UNCOMMITTED).delivered() == [b"0", b"1"]
    assert end_offset(wire, orders, READ_COMMITTED) == 0
    assert end_offset(wire, orders, READ_UNCOMMITTED) == 3

    first.abort()
    first.settle()
    assert read_partition(wire, orders) == [b"1"]
    assert end_offset(wire, orders, READ_COMMITTED) == end_offset(wire, orders, READ_UNCOMMITTED) == 4


@pytest.mark.seed("X2")
def test_what_is_not_asked_for_is_not_listed_as_aborted(wire: Wire, orders: TopicPartition) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    for number in range(6):
        producer.send(orders, values=[b"%d" % number])
        producer.end(committed=number % 2 == 1)
        producer.settle()
    who = producer.identity.producer_id
    # Two offsets per transaction: aborted are those at 0, 4 and 8.
    assert fetch(wire, orders).aborted == [(who, 0), (who, 4), (who, 8)]
    assert fetch(wire, orders, 2).aborted == [(who, 4), (who, 8)]
    assert fetch(wire, orders, 9).aborted == [(who, 8)], "its marker is still to come"
    assert fetch(wire, orders, 10).aborted == []
    assert fetch(wire, orders, 12).aborted == []
    # One batch of the second transaction, which was committed. Kafka names more than it has to.
    assert target_is_kafka() or fetch(wire, orders, 2, max_bytes=1).aborted == []
    assert fetch(wire, orders, isolation=READ_UNCOMMITTED).aborted is None


@pytest.mark.seed("X2", "X1")
def test_a_transaction_aborted_many_segments_later_is_listed(bootstrap: str, wire: Wire) -> None:
    orders = TopicPartition(create_topic(bootstrap, configs=SMALL_SEGMENTS), 0)
    long = WireProducer(wire, unique("long"), V1).initialise()
    short = WireProducer(wire, unique("short"), V1).initialise()
    long.send(orders, values=[b"aborted"])
    filling = b"." * 300_000
    for number in range(10):
        short.send(orders, values=[b"%d" % number + filling])
        short.end(committed=number % 2 == 0)
        short.settle()
    long.send(orders, values=[b"aborted too"])
    long.abort()
    long.settle()

    kept = [b"%d" % number + filling for number in range(0, 10, 2)]
    assert read_partition(wire, orders, max_bytes=1) == kept, (
        "batch by batch, each fetch with the list for its own range"
    )
    assert read_partition(wire, orders) == kept
    first = fetch(wire, orders, max_bytes=1)
    assert first.aborted == [(long.identity.producer_id, 0)], "its marker lies segments further on"


@oncelog_only
@pytest.mark.seed("X1")
def test_transaction_index_files_are_those_of_the_aborted_and_are_rebuilt(start_broker: StartBroker) -> None:
    broker = start_broker({"log.retention.check.interval.ms": "100", "log.segment.delete.delay.ms": "0"})
    orders = TopicPartition(create_topic(broker.bootstrap_servers, configs=SMALL_SEGMENTS), 0)
    directory = broker.data_directory / str(orders)
    filling = b"." * 300_000
    with Wire(broker.port) as wire:
        producer = WireProducer(wire, "id", V1).initialise()
        for number in range(12):
            producer.send(orders, values=[b"%d" % number + filling])
            producer.end(committed=number % 3 != 0)
        aborted = [AbortedTransaction(producer.identity.producer_id, at, at + 1, at + 2) for at in (0, 6, 12, 18)]
    broker.kill()
    # Whatever a crash did to the files: what was not known to be on disk is read again, and they are made from it.
    names = sorted(file.name for file in directory.glob("*.txnindex"))
    (directory / names[0]).unlink()
    (directory / names[1]).write_bytes(b"nonsense")
    broker.start()
    with Wire(broker.port) as wire:
        assert len(read_partition(wire, orders)) == 8
    broker.stop()
    assert entries(directory) == aborted

    broker.start()
    with Wire(broker.port) as wire:
        # With its segment goes its index.
        delete_before(wire, orders, 13)
        deadline = time.monotonic() + 10
        while (directory / names[0]).exists() or (directory / names[1]).exists():
            assert time.monotonic() < deadline, "the index of a segment that is gone stays"
            time.sleep(0.05)
        assert read_partition(wire, orders, offset=13) == [b"%d" % number + filling for number in (7, 8, 10, 11)]


def entries(directory: Path) -> list[AbortedTransaction]:
    return [
        entry
        for file in sorted(directory.glob("*.txnindex"))
        for entry in TransactionIndex.decode(int(file.stem), file.read_bytes()).entries
    ]


def delete_before(connection: RawConnection, partition: TopicPartition, offset: int) -> None:
    wanted = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
    asked = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=partition.topic, partitions=[wanted])], timeout_ms=5000
    )
    answer = connection.call(asked, 2, DeleteRecordsResponse)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.mark.seed("P8")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_waiting_committed_read_is_woken_when_the_last_stable_offset_moves(
    broker: BrokerProcess, wire: Wire, orders: TopicPartition, committed: bool
) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(orders, values=[b"x" * 100])
    with RawConnection(broker.port) as waiting:
        # The data is there already, all but the permission to show it.
        asked = fetch_request(orders, max_wait_ms=15_000, min_bytes=100)
        waiting.send(encode_request(1, "raw", asked, FETCH_VERSION))
        waiting.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting.socket.recv(1)
        waiting.socket.settimeout(20)
        began = time.monotonic()
        producer.end(committed=committed)
        _, answer = decode_response(FetchResponse, FETCH_VERSION, waiting.response())
        took_s = time.monotonic() - began
    fetched = read_answer(answer)
    assert fetched.last_stable_offset == 2
    assert fetched.delivered() == ([b"x" * 100] if committed else [])
    assert took_s < (10 if target_is_kafka() else 2), "it was not woken, its time was up"


@pytest.mark.seed("P8")
def test_a_waiting_committed_read_is_not_woken_by_what_it_may_not_see(
    broker: BrokerProcess, wire: Wire, orders: TopicPartition
) -> None:
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(orders, values=[b"first"])
    with RawConnection(broker.port) as waiting:
        asked = fetch_request(orders, max_wait_ms=1500, min_bytes=1)
        waiting.send(encode_request(1, "raw", asked, FETCH_VERSION))
        began = time.monotonic()
        producer.send(orders, values=[b"second"])
        _, answer = decode_response(FetchResponse, FETCH_VERSION, waiting.response())
    assert time.monotonic() - began > 1.2
    assert read_answer(answer).batches == []
    producer.abort()


@pytest.mark.seed("X2")
@pytest.mark.parametrize("end", [BrokerProcess.kill, BrokerProcess.stop], ids=["kill", "stop"])
def test_an_open_transaction_still_holds_readers_back_after_a_restart(
    start_broker: StartBroker, end: Callable[[BrokerProcess], object]
) -> None:
    broker = start_broker()
    orders = TopicPartition(create_topic(broker.bootstrap_servers), 0)
    with Wire(broker.port) as wire:
        warm_up(wire)
        done = WireProducer(wire, "done", V1).initialise()
        done.send(orders, values=[b"aborted"])
        done.abort()
        done.settle().send(orders, values=[b"committed"])
        done.commit()
        done.settle()
        opened = WireProducer(wire, "open", V2).initialise()
        opened.send(orders, values=[b"open"])
        done.send(orders, values=[b"behind it"])
        done.commit()
        done.settle()
    end(broker)
    broker.start()
    with Wire(broker.port) as wire:
        if target_is_kafka():
            warm_up(wire)
        fetched = fetch(wire, orders)
        assert fetched.code is ErrorCode.NONE
        assert (fetched.last_stable_offset, fetched.high_watermark) == (4, 7)
        assert fetched.delivered() == [b"committed"]
        # The producer is still there, and never noticed.
        opened.wire = wire
        opened.send(orders, values=[b"open still"])
        opened.commit()
        opened.settle()
        wait_until_stable(wire, orders)
        assert read_partition(wire, orders) == [b"committed", b"open", b"behind it", b"open still"]


def test_other_consumers_read_around_markers_without_isolation(
    wire: Wire, bootstrap: str, orders: TopicPartition
) -> None:
    """Control batches are never delivered: the default readers of every library skip them and go on."""
    producer = WireProducer(wire, unique("id"), V1).initialise()
    for number in range(3):
        producer.send(orders, values=[b"%d" % number])
        producer.commit()
        producer.settle()
    for library in LIBRARIES:
        assert [message.value for message in library.read(bootstrap, orders.topic, 3)] == [b"0", b"1", b"2"]


@oncelog_only
@pytest.mark.seed("X1")
def test_compaction_takes_aborted_data_away_and_readers_do_not_notice(start_broker: StartBroker) -> None:
    # A segment is compacted once it is no longer written: here, when it is 50 ms old and somebody has looked.
    broker = start_broker({"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "50"})
    compacted = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01"}
    orders = TopicPartition(create_topic(broker.bootstrap_servers, configs=compacted), 0)
    directory = broker.data_directory / str(orders)
    with Wire(broker.port) as wire:
        producer = WireProducer(wire, "id", V1).initialise()
        for number in range(30):
            producer.add(orders)
            value = b"%s %d" % (b"aborted" if number % 2 else b"committed", number)
            batch = batch_of([value], producer.identity, number, key=b"key %d" % (number % 4))
            (result,) = wire.produce("id", {orders: batch}, 11)
            assert result.error_code == 0
            producer.end(committed=number % 2 == 0)
            time.sleep(0.005)
        deadline = time.monotonic() + 20
        while b"aborted" in stored_bytes(directory):
            assert time.monotonic() < deadline, "what was aborted is still there"
            time.sleep(0.05)
        assert read_partition(wire, orders) == [b"committed 26", b"committed 28"]
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        assert read_partition(wire, orders) == [b"committed 26", b"committed 28"]


def test_a_topic_deleted_in_the_middle_of_a_transaction_does_not_hold_up_the_rest(
    wire: Wire, bootstrap: str, admin: AdminClient
) -> None:
    kept, deleted = (TopicPartition(create_topic(bootstrap), 0) for _ in range(2))
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send(kept, values=[b"kept"])
    producer.send(deleted, values=[b"deleted"])
    admin.delete_topics([deleted.topic])[deleted.topic].result(20)
    producer.commit()
    assert producer.settle().wire.settled(producer.transactional_id) == "CompleteCommit"
    assert read_partition(wire, kept) == [b"kept"]
    producer.send(kept, values=[b"next"])
    producer.commit()
