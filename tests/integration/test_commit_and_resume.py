"""Committed offsets: where a group resumes, across its members' restarts and the broker's."""

import asyncio
import time

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition

from tests.brokers import StartBroker
from tests.integration.clients import BY_NAME, Message
from tests.integration.members import members, settle, share_evenly
from tests.integration.topics import create_topic, unique


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"%d" % number) for number in range(20)])
    return topic


def read_with_confluent(bootstrap: str, topic: str, group: str, count: int) -> list[int | None]:
    """Read and commit `count` messages as a member of the group."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        offsets: list[int | None] = []
        while len(offsets) < count:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None, message.error()
            offsets.append(message.offset())
            consumer.commit(message=message, asynchronous=False)
        return offsets
    finally:
        consumer.close()


def read_with_kafka_python(bootstrap: str, topic: str, group: str, count: int) -> list[int | None]:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        offsets: list[int | None] = []
        deadline = time.monotonic() + 20
        while len(offsets) < count and time.monotonic() < deadline:
            for records in consumer.poll(500, max_records=count - len(offsets)).values():
                offsets += [record.offset for record in records]
        consumer.commit()
        return offsets
    finally:
        consumer.close()


def read_with_aiokafka(bootstrap: str, topic: str, group: str, count: int) -> list[int | None]:
    async def run() -> list[int | None]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        try:
            offsets: list[int | None] = [(await asyncio.wait_for(consumer.getone(), 20)).offset for _ in range(count)]
            await consumer.commit()
            return offsets
        finally:
            await consumer.stop()

    return asyncio.run(run())


READERS = [read_with_confluent, read_with_kafka_python, read_with_aiokafka]


def test_each_library_resumes_where_another_committed(bootstrap: str, filled: str, group: str) -> None:
    position = 0
    for reader in [*READERS, *READERS]:
        assert reader(bootstrap, filled, group, 3) == list(range(position, position + 3)), reader.__name__
        position += 3


def test_automatic_commits_are_kept_at_close(bootstrap: str, filled: str, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([filled])
    got = consumer.consume(7, 20)
    consumer.close()

    assert read_with_aiokafka(bootstrap, filled, group, 1) == [len(got)]


def test_a_commit_carries_its_metadata(bootstrap: str, filled: str, group: str) -> None:
    at = confluent_kafka.TopicPartition(filled, 0, 5, "seen by the test")
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[at], asynchronous=False)
        (stored,) = consumer.committed([confluent_kafka.TopicPartition(filled, 0)], timeout=20)
        assert (stored.offset, stored.metadata) == (5, "seen by the test")
    finally:
        consumer.close()


def test_a_partition_without_a_commit_has_none(bootstrap: str, filled: str, group: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (stored,) = consumer.committed([confluent_kafka.TopicPartition(filled, 0)], timeout=20)
        assert stored.offset == confluent_kafka.OFFSET_INVALID
        assert stored.error is None
    finally:
        consumer.close()


def test_an_outsider_cannot_commit_for_a_group_that_has_members(bootstrap: str, filled: str, group: str) -> None:
    with members() as join:
        member = join(bootstrap, group, [filled])
        settle([member], share_evenly([member], 1))
        outsider = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        try:
            with pytest.raises(confluent_kafka.KafkaException) as refused:
                outsider.commit(offsets=[confluent_kafka.TopicPartition(filled, 0, 5)], asynchronous=False)
            assert refused.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID
        finally:
            outsider.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_group_resumes_after_the_broker_restarts(start_broker: StartBroker, how: str) -> None:
    broker = start_broker({"offsets.topic.num.partitions": "4"})
    topic, group = create_topic(broker.bootstrap_servers), unique("group")
    client = BY_NAME["confluent-kafka"]
    client.produce(broker.bootstrap_servers, topic, [Message(b"%d" % number) for number in range(20)])
    assert read_with_confluent(broker.bootstrap_servers, topic, group, 3) == [0, 1, 2]

    # Clients are served correctly by the first request after a restart: ready means loaded.
    for reader, position in zip(READERS, (3, 6, 9), strict=True):
        if how == "stop":
            broker.stop()
        else:
            broker.kill()
        broker.start()
        assert reader(broker.bootstrap_servers, topic, group, 3) == list(range(position, position + 3))


def test_many_groups_and_partitions_are_all_reloaded(start_broker: StartBroker) -> None:
    broker = start_broker({"offsets.topic.num.partitions": "4"})
    topic = create_topic(broker.bootstrap_servers, 20)
    groups = [unique("group") for _ in range(30)]

    def offsets_of(number: int) -> list[int]:
        return [number * 100 + partition for partition in range(20)]

    for number, group in enumerate(groups):
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
        wanted = [confluent_kafka.TopicPartition(topic, at, offset) for at, offset in enumerate(offsets_of(number))]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()
    broker.kill()
    broker.start()

    for number, group in enumerate(groups):
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
        asked = [confluent_kafka.TopicPartition(topic, at) for at in range(20)]
        assert [at.offset for at in consumer.committed(asked, timeout=20)] == offsets_of(number)
        consumer.close()


def test_kafka_python_and_aiokafka_read_back_a_commit(bootstrap: str, filled: str, group: str) -> None:
    python = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    at = kafka.TopicPartition(filled, 0)
    try:
        python.assign([at])
        python.commit({at: kafka.OffsetAndMetadata(7, "from kafka-python", -1)})
        assert python.committed(at) == 7
    finally:
        python.close()

    async def committed() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            found: int = await consumer.committed(AioTopicPartition(filled, 0))
            return found
        finally:
            await consumer.stop()

    assert asyncio.run(committed()) == 7
