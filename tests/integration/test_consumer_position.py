"""Seek, pause and resume; several readers that do not disturb each other."""

import asyncio
import threading
import time
from typing import Any

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition

from tests.integration.clients import BY_NAME, CLIENTS, Message
from tests.integration.topics import MakeTopic


def fill(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    BY_NAME["confluent-kafka"].produce(
        bootstrap, topic, [Message(b"%d" % number) for number in range(count)], partition=partition
    )


def next_offset(consumer: confluent_kafka.Consumer) -> int | None:
    message = consumer.poll(20)
    assert message is not None
    assert message.error() is None, message.error()
    return message.offset()


def test_confluent_seeks_back_and_forth(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 500)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        assert next_offset(consumer) == 0
        for target in (499, 0, 250, 249, 1, 498):
            consumer.seek(confluent_kafka.TopicPartition(topic, 0, target))
            assert next_offset(consumer) == target
            (position,) = consumer.position([confluent_kafka.TopicPartition(topic, 0)])
            assert position.offset == target + 1
    finally:
        consumer.close()


def test_kafka_python_seeks_back_and_forth(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 500)
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=20_000)
    at = kafka.TopicPartition(topic, 0)
    try:
        consumer.assign([at])
        for target in (499, 0, 250, 249, 1, 498):
            consumer.seek(at, target)
            assert next(consumer).offset == target
        consumer.seek_to_beginning(at)
        assert next(consumer).offset == 0
        consumer.seek_to_end(at)
        assert consumer.position(at) == 500
    finally:
        consumer.close()


def test_aiokafka_seeks_back_and_forth(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 500)

    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        at = AioTopicPartition(topic, 0)
        await consumer.start()
        try:
            consumer.assign([at])
            for target in (499, 0, 250, 249, 1, 498):
                consumer.seek(at, target)
                assert (await asyncio.wait_for(consumer.getone(), 20)).offset == target
            await consumer.seek_to_end(at)
            assert await consumer.position(at) == 500
        finally:
            await consumer.stop()

    asyncio.run(run())


def test_a_paused_partition_is_silent_and_goes_on_where_it_was(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 50, partition=0)
    fill(bootstrap, topic, 50, partition=1)
    at = [confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(2)]
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    read: dict[int | None, list[int | None]] = {0: [], 1: []}

    def read_one(timeout_s: float) -> bool:
        message = consumer.poll(timeout_s)
        if message is None:
            return False
        assert message.error() is None, message.error()
        read[message.partition()].append(message.offset())
        return True

    try:
        consumer.assign(at)
        while not all(read.values()):
            assert read_one(20)
        consumer.pause([at[0]])
        paused_at = len(read[0])
        while len(read[1]) < 50:
            assert read_one(20)
        assert not read_one(0.5)
        assert len(read[0]) == paused_at

        consumer.resume([at[0]])
        while len(read[0]) < 50:
            assert read_one(20)
        assert read == {0: list(range(50)), 1: list(range(50))}
    finally:
        consumer.close()


def test_kafka_python_pauses_and_resumes(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    for partition in range(2):
        fill(bootstrap, topic, 20, partition)
    first, second = (kafka.TopicPartition(topic, partition) for partition in range(2))
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    read: dict[Any, list[int]] = {first: [], second: []}

    def read_until(done: Any) -> None:
        deadline = time.monotonic() + 20
        while not done():
            assert time.monotonic() < deadline
            for at, records in consumer.poll(100).items():
                read[at] += [record.offset for record in records]

    try:
        consumer.assign([first, second])
        consumer.seek(first, 0)
        consumer.seek(second, 0)
        consumer.pause(first)
        read_until(lambda: len(read[second]) == 20)
        assert read[first] == []
        consumer.resume(first)
        read_until(lambda: len(read[first]) == 20)
        assert read == {first: list(range(20)), second: list(range(20))}
    finally:
        consumer.close()


def test_readers_of_all_libraries_at_once_see_the_same(bootstrap: str, topic: str) -> None:
    """Each without a group, at its own pace, while the producer is still writing."""
    count = 2000
    found: dict[str, list[bytes | None]] = {}

    def read(name: str) -> None:
        found[name] = [message.value for message in BY_NAME[name].read(bootstrap, topic, count)]

    readers = [threading.Thread(target=read, args=(client.name,)) for client in CLIENTS]
    for reader in readers:
        reader.start()
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
        if number % 200 == 0:
            producer.flush(20)
    assert producer.flush(20) == 0
    for reader in readers:
        reader.join()

    expected = [b"%d" % number for number in range(count)]
    assert found == {client.name: expected for client in CLIENTS}
