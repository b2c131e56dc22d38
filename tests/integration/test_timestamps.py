"""Timestamps: the client's own or the broker's, and finding offsets by them."""

import asyncio
import time

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.integration.clients import (
    BY_NAME,
    CLIENTS,
    Client,
    Message,
    by_each_client,
    by_each_library,
    from_confluent,
    kcat,
    with_kcat,
)
from tests.integration.topics import MakeTopic

CREATE_TIME, LOG_APPEND_TIME = 0, 1


def now_ms() -> int:
    return int(time.time() * 1000)


@by_each_library
def test_create_time_is_the_senders(bootstrap: str, topic: str, producing: Client) -> None:
    start = now_ms() - 1_000_000
    # Not in order: a record's own time is kept, whatever its neighbours in the batch say.
    sent = [start + step for step in (0, 500, 250, 100_000, 99_000, 7)]
    producing.produce(bootstrap, topic, [Message(b"x", timestamp_ms=at) for at in sent])

    for client in CLIENTS:
        received = client.read(bootstrap, topic, len(sent))
        assert [message.timestamp_ms for message in received] == sent, client.name
        assert {message.timestamp_type for message in received} <= {CREATE_TIME, None}, client.name


@by_each_client
def test_log_append_time_is_the_brokers(bootstrap: str, make_topic: MakeTopic, producing: Client) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    before = now_ms()
    # Compressed: the broker must not have to open the batch to stamp it.
    producing.produce(bootstrap, topic, [Message(b"x", timestamp_ms=1_000_000)] * 5, compression="gzip")
    after = now_ms()

    for client in CLIENTS:
        received = client.read(bootstrap, topic, 5)
        assert all(before <= message.timestamp_ms <= after for message in received), client.name
        assert {message.timestamp_type for message in received} <= {LOG_APPEND_TIME, None}, client.name


def test_the_producer_hears_the_log_append_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    delivered: list[confluent_kafka.Message] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x", timestamp=1_000_000, on_delivery=lambda error, message: delivered.append(message))
    producer.flush(20)

    (stored,) = BY_NAME["confluent-kafka"].read(bootstrap, topic, 1)
    assert from_confluent(delivered[0]).timestamp_ms == stored.timestamp_ms
    assert from_confluent(delivered[0]).timestamp_type == LOG_APPEND_TIME


def test_a_timestamp_too_far_ahead_is_refused(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.after.max.ms": "1000"})
    client = BY_NAME["confluent-kafka"]

    with pytest.raises(AssertionError, match="INVALID_TIMESTAMP"):
        client.produce(bootstrap, topic, [Message(b"tomorrow", timestamp_ms=now_ms() + 86_400_000)])

    client.produce(bootstrap, topic, [Message(b"now")])
    assert [message.value for message in client.read(bootstrap, topic, 1)] == [b"now"]


# Offsets 0-4; the highest time stands in the middle, and a later batch goes back in time.
BASE = 1_700_000_000_000
TIMES = [BASE, BASE + 100, BASE + 500, BASE + 300, BASE + 400]
# time asked for -> first offset whose record is at or after it
FIRST_AT = {BASE - 5: 0, BASE: 0, BASE + 1: 1, BASE + 100: 1, BASE + 101: 2, BASE + 500: 2, BASE + 501: None}


@pytest.fixture
def timed_topic(bootstrap: str, make_topic: MakeTopic) -> str:
    topic = make_topic(configs={"retention.ms": "-1"})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for at in TIMES:
        producer.produce(topic, b"x", timestamp=at)
        assert producer.flush(20) == 0
    return topic


def test_confluent_finds_offsets_by_time(bootstrap: str, timed_topic: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        for at, offset in FIRST_AT.items():
            (found,) = consumer.offsets_for_times([confluent_kafka.TopicPartition(timed_topic, 0, at)], timeout=20)
            # librdkafka says END where no record is late enough.
            assert found.offset == (confluent_kafka.OFFSET_END if offset is None else offset), at - BASE
        assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition(timed_topic, 0), timeout=20) == (0, 5)
    finally:
        consumer.close()


def test_kafka_python_finds_offsets_by_time(bootstrap: str, timed_topic: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    at = kafka.TopicPartition(timed_topic, 0)
    try:
        for time_ms, offset in FIRST_AT.items():
            found = consumer.offsets_for_times({at: time_ms})[at]
            assert (found and (found.offset, found.timestamp)) == (
                None if offset is None else (offset, TIMES[offset])
            ), time_ms - BASE
        assert (consumer.beginning_offsets([at]), consumer.end_offsets([at])) == ({at: 0}, {at: 5})
    finally:
        consumer.close()


def test_aiokafka_finds_offsets_by_time(bootstrap: str, timed_topic: str) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        at = AioTopicPartition(timed_topic, 0)
        await consumer.start()
        try:
            for time_ms, offset in FIRST_AT.items():
                found = (await consumer.offsets_for_times({at: time_ms}))[at]
                assert (found and found.offset) == offset, time_ms - BASE
            assert await consumer.beginning_offsets([at]) == {at: 0}
            assert await consumer.end_offsets([at]) == {at: 5}
        finally:
            await consumer.stop()

    asyncio.run(run())


def test_the_offset_of_the_highest_timestamp(bootstrap: str, timed_topic: str, admin: AdminClient) -> None:
    at = confluent_kafka.TopicPartition(timed_topic, 0)
    found = admin.list_offsets({at: OffsetSpec.max_timestamp()})[at].result(20)
    assert (found.offset, found.timestamp) == (2, BASE + 500)

    python = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        asked = {kafka.TopicPartition(timed_topic, 0): kafka.admin.OffsetSpec.MAX_TIMESTAMP}
        (info,) = python.list_partition_offsets(asked).values()
        assert (info.offset, info.timestamp) == (2, BASE + 500)
    finally:
        python.close()


def test_earliest_and_latest_by_admin_call(bootstrap: str, timed_topic: str, admin: AdminClient) -> None:
    at = confluent_kafka.TopicPartition(timed_topic, 0)
    assert admin.list_offsets({at: OffsetSpec.earliest()})[at].result(20).offset == 0
    assert admin.list_offsets({at: OffsetSpec.latest()})[at].result(20).offset == 5
    assert admin.list_offsets({at: OffsetSpec.for_timestamp(BASE + 101)})[at].result(20).offset == 2


def test_an_empty_partition_has_no_highest_timestamp(topic: str, admin: AdminClient) -> None:
    at = confluent_kafka.TopicPartition(topic, 0)
    found = admin.list_offsets({at: OffsetSpec.max_timestamp()})[at].result(20)
    assert (found.offset, found.timestamp) == (-1, -1)


@with_kcat
def test_kcat_asks_for_offsets_by_time(bootstrap: str, timed_topic: str) -> None:
    out = kcat(bootstrap, ["-Q", "-t", f"{timed_topic}:0:{BASE + 101}"])
    assert out.strip().endswith(b"offset 2")
