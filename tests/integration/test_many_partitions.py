"""A hundred partitions: every one gets its own records, and fetch sessions (KIP-227) keep up with all of them."""

import asyncio
import time

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.integration.members import members, settle, share_evenly
from tests.integration.topics import MakeTopic

PARTITIONS = 100


@pytest.fixture
def wide_topic(make_topic: MakeTopic) -> str:
    return make_topic(PARTITIONS)


def expected(rounds: int) -> dict[int, list[bytes]]:
    return {partition: [b"%d/%d" % (partition, number) for number in range(rounds)] for partition in range(PARTITIONS)}


def produce_round(producer: confluent_kafka.Producer, topic: str, number: int, partitions: range) -> None:
    for partition in partitions:
        producer.produce(topic, b"%d/%d" % (partition, number), partition=partition)
    assert producer.flush(30) == 0


def test_confluent_reads_a_hundred_partitions(bootstrap: str, wide_topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(3):
        produce_round(producer, wide_topic, number, range(PARTITIONS))

    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    read: dict[int | None, list[object]] = {partition: [] for partition in range(PARTITIONS)}
    try:
        consumer.assign([confluent_kafka.TopicPartition(wide_topic, at, 0) for at in range(PARTITIONS)])
        deadline = time.monotonic() + 30
        while sum(map(len, read.values())) < 3 * PARTITIONS and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                read[message.partition()].append(message.value())
        assert read == expected(3)
    finally:
        consumer.close()


def test_a_fetch_session_follows_what_changes(bootstrap: str, wide_topic: str) -> None:
    """kafka-python keeps an incremental session: only what changed is asked and answered, and nothing is missed."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, fetch_max_wait_ms=100)
    partitions = [kafka.TopicPartition(wide_topic, at) for at in range(PARTITIONS)]
    read: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}

    def read_until(count: int) -> None:
        deadline = time.monotonic() + 20
        while sum(map(len, read.values())) < count:
            assert time.monotonic() < deadline, f"{sum(map(len, read.values()))} of {count}"
            for at, records in consumer.poll(100).items():
                read[at.partition] += [record.value for record in records]

    try:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        produce_round(producer, wide_topic, 0, range(PARTITIONS))
        read_until(100)
        # A few change, most do not.
        produce_round(producer, wide_topic, 1, range(10, 13))
        read_until(103)
        # Some leave the session and come back with a backlog.
        consumer.pause(*partitions[50:60])
        produce_round(producer, wide_topic, 1, range(13, PARTITIONS))
        read_until(103 + 87 - 10)
        assert all(len(read[at]) == 1 for at in range(50, 60))
        consumer.resume(*partitions[50:60])
        read_until(103 + 87)
        # The set itself changes.
        consumer.assign(partitions[:10])
        produce_round(producer, wide_topic, 1, range(10))
        read_until(200)
        assert read == expected(2)
    finally:
        consumer.close()


def test_aiokafka_writes_and_reads_a_hundred_partitions(bootstrap: str, wide_topic: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        sent = [
            await producer.send(wide_topic, b"%d/%d" % (partition, number), partition=partition)
            for number in range(2)
            for partition in range(PARTITIONS)
        ]
        await asyncio.gather(*sent)
        await producer.stop()

        consumer = AIOKafkaConsumer(wide_topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        read: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        await consumer.start()
        try:
            deadline = time.monotonic() + 30
            while sum(map(len, read.values())) < 2 * PARTITIONS and time.monotonic() < deadline:
                for at, records in (await consumer.getmany(timeout_ms=200)).items():
                    read[at.partition] += [record.value for record in records]
        finally:
            await consumer.stop()
        assert read == expected(2)

    asyncio.run(run())


def test_a_group_shares_a_hundred_partitions(bootstrap: str, wide_topic: str, group: str) -> None:
    with members() as join:
        team = [join(bootstrap, group, [wide_topic], partition_assignment_strategy="roundrobin") for _ in range(4)]
        settle(team, share_evenly(team, PARTITIONS))
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        produce_round(producer, wide_topic, 0, range(PARTITIONS))
        settle(team, lambda: sum(len(member.received) for member in team) == PARTITIONS)
        for member in team:
            assert {message.partition for message in member.received} == member.partitions


def test_several_topics_in_one_session(bootstrap: str, make_topic: MakeTopic) -> None:
    topics = [make_topic(10) for _ in range(5)]
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for topic in topics:
        produce_round(producer, topic, 0, range(10))
    consumer = kafka.KafkaConsumer(*topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    try:
        seen: set[object] = set()
        deadline = time.monotonic() + 20
        while len(seen) < 50 and time.monotonic() < deadline:
            for at, records in consumer.poll(200).items():
                assert [record.value for record in records] == [b"%d/0" % at.partition]
                seen.add(at)
        assert seen == {kafka.TopicPartition(topic, at) for topic in topics for at in range(10)}
    finally:
        consumer.close()
