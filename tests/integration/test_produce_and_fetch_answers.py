"""What a produce and a waiting fetch are answered, and when: seen on the wire, where no client's retries hide it."""

import threading
import time
from collections.abc import Iterator

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from oncelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from oncelog.records.builder import build_batch
from tests.brokers import BrokerProcess
from tests.integration.raw_connection import RawConnection, create_topic, produce
from tests.integration.topics import soon, unique

PRODUCE, FETCH = 9, 11
LATEST = -1
#: Far longer than any answer takes that does not wait, far shorter than the waits that are asked for.
AT_ONCE_S = 5.0
LONG_MS = 15_000


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as connection:
        yield connection


def batch(value: bytes = b"value") -> bytes:
    return build_batch([(None, value)], timestamp_ms=1_700_000_000_000)


def produce_request(acks: int, partitions: dict[str, dict[int, bytes]]) -> ProduceRequest:
    topics = [
        TopicProduceData(
            name=name,
            partition_data=[PartitionProduceData(index=index, records=data) for index, data in records.items()],
        )
        for name, records in partitions.items()
    ]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)


def new_topic(connection: RawConnection, partitions: int = 1) -> str:
    topic = create_topic(connection, partitions)
    # Kafka's metadata knows a partition before its leader does; Oncelog has one chance.
    soon(
        lambda: [latest(connection, topic, partition).error_code for partition in range(partitions)],
        lambda codes: codes == [0] * partitions,
    )
    return topic


def latest(connection: RawConnection, topic: str, partition: int) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return connection.call(request, 1, ListOffsetsResponse).topics[0].partitions[0]


def end_offset(connection: RawConnection, topic: str, partition: int = 0) -> int:
    return latest(connection, topic, partition).offset


def fetch_request(topic: str, *, offset: int, min_bytes: int, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=1 << 20, topics=topics)


def fetched_bytes(response: FetchResponse) -> int:
    return len(response.responses[0].partitions[0].records or b"")


@pytest.mark.seed("P1")
@pytest.mark.parametrize("acks", [1, -1])
def test_one_partitions_failure_leaves_the_others_results_intact(connection: RawConnection, acks: int):
    topic, unknown = new_topic(connection, partitions=3), unique("nowhere")
    damaged = bytearray(batch())
    damaged[-1] ^= 1
    request = produce_request(
        acks, {topic: {0: batch(), 1: bytes(damaged), 2: batch(), 7: batch()}, unknown: {0: batch()}}
    )

    response = connection.call(request, PRODUCE, ProduceResponse)

    results = {
        (topic_result.name, result.index): (ErrorCode(result.error_code), result.base_offset)
        for topic_result in response.responses
        for result in topic_result.partition_responses
    }
    assert results == {
        (topic, 0): (ErrorCode.NONE, 0),
        (topic, 1): (ErrorCode.CORRUPT_MESSAGE, -1),
        (topic, 2): (ErrorCode.NONE, 0),
        (topic, 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (unknown, 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }
    assert [end_offset(connection, topic, partition) for partition in range(3)] == [1, 0, 1]


@pytest.mark.seed("P1")
def test_a_result_carries_offset_append_time_and_start_of_the_log(connection: RawConnection):
    topic = new_topic(connection)
    produce(connection, topic, b"first")

    result = produce(connection, topic, b"second")

    # The append time is the producer's own business under CreateTime: -1.
    assert (result.error_code, result.base_offset, result.log_append_time_ms, result.log_start_offset) == (0, 1, -1, 0)


@pytest.mark.seed("P2")
@pytest.mark.parametrize("acks", [1, -1])
def test_an_answer_comes_once_every_in_sync_replica_has_the_data(connection: RawConnection, acks: int):
    topic = new_topic(connection)

    response = connection.call(produce_request(acks, {topic: {0: batch()}}), PRODUCE, ProduceResponse)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert end_offset(connection, topic) == 1


@pytest.mark.seed("P2")
def test_other_acks_than_kafkas_are_refused(connection: RawConnection):
    topic = new_topic(connection)

    response = connection.call(produce_request(2, {topic: {0: batch()}}), PRODUCE, ProduceResponse)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert end_offset(connection, topic) == 0


@pytest.mark.seed("P5")
def test_acks_0_has_no_answer_and_the_next_request_has_its_own(connection: RawConnection):
    topic = new_topic(connection)
    connection.send(encode_request(41, "raw", produce_request(0, {topic: {0: batch()}}), PRODUCE))
    connection.send(encode_request(42, "raw", produce_request(-1, {topic: {0: batch()}}), PRODUCE))

    correlation_id, response = decode_response(ProduceResponse, PRODUCE, connection.response())

    assert correlation_id == 42
    assert response.responses[0].partition_responses[0].base_offset == 1


@pytest.mark.seed("P5")
def test_acks_0_that_fails_closes_the_connection(connection: RawConnection):
    connection.send(encode_request(1, "raw", produce_request(0, {unique("nowhere"): {0: batch()}}), PRODUCE))

    assert connection.is_closed()


@pytest.mark.seed("P8")
def test_a_fetch_with_enough_data_is_answered_at_once(connection: RawConnection):
    topic = new_topic(connection)
    produce(connection, topic, b"there")
    began = time.monotonic()

    request = fetch_request(topic, offset=0, min_bytes=1, max_wait_ms=LONG_MS)
    response = connection.call(request, FETCH, FetchResponse)

    assert fetched_bytes(response) > 0
    assert time.monotonic() - began < AT_ONCE_S


@pytest.mark.seed("P8")
def test_a_fetch_without_data_waits_its_time_and_is_then_answered_empty(connection: RawConnection):
    topic = new_topic(connection)
    began = time.monotonic()

    response = connection.call(fetch_request(topic, offset=0, min_bytes=1, max_wait_ms=300), FETCH, FetchResponse)

    assert fetched_bytes(response) == 0
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert 0.28 <= time.monotonic() - began < AT_ONCE_S


@pytest.mark.seed("P8")
def test_a_waiting_fetch_is_woken_by_new_data(broker: BrokerProcess, connection: RawConnection):
    topic = new_topic(connection)
    connection.send(encode_request(1, "raw", fetch_request(topic, offset=0, min_bytes=1, max_wait_ms=LONG_MS), FETCH))
    began = time.monotonic()
    with RawConnection(broker.port) as other:
        produce(other, topic, b"news")

        _, response = decode_response(FetchResponse, FETCH, connection.response())

    assert fetched_bytes(response) > 0
    assert time.monotonic() - began < AT_ONCE_S


@pytest.mark.seed("P8")
def test_a_fetch_waits_until_min_bytes_are_there(broker: BrokerProcess, connection: RawConnection):
    topic = new_topic(connection)
    enough = 2 * len(batch())
    connection.send(
        encode_request(1, "raw", fetch_request(topic, offset=0, min_bytes=enough, max_wait_ms=LONG_MS), FETCH)
    )
    answered = threading.Event()
    answers: list[FetchResponse] = []

    def wait() -> None:
        answers.append(decode_response(FetchResponse, FETCH, connection.response())[1])
        answered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    with RawConnection(broker.port) as other:
        produce(other, topic, b"value")
        assert not answered.wait(0.3), "one batch of two was there"
        produce(other, topic, b"value")
        assert answered.wait(AT_ONCE_S)
    thread.join()

    assert fetched_bytes(answers[0]) == enough


@pytest.mark.seed("P8")
def test_a_fetch_of_a_partition_that_fails_does_not_wait(connection: RawConnection):
    topic = new_topic(connection)
    began = time.monotonic()

    response = connection.call(fetch_request(topic, offset=99, min_bytes=1, max_wait_ms=LONG_MS), FETCH, FetchResponse)

    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert time.monotonic() - began < AT_ONCE_S
