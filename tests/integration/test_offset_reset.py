"""Where a consumer starts that has no offset, or one that is gone: earliest, latest, or an error, as it asked."""

import asyncio
import time
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from confluent_kafka.admin import AdminClient

from tests.integration.clients import BY_NAME, Message


@pytest.fixture
def old_and_new(bootstrap: str, topic: str, admin: AdminClient) -> str:
    """Offsets 0-9 written, 0-3 deleted."""
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"%d" % number) for number in range(10)])
    at = confluent_kafka.TopicPartition(topic, 0, 4)
    admin.delete_records([at])[at].result(20)
    return topic


def confluent_consumer(bootstrap: str, group: str, reset: str, **config: Any) -> confluent_kafka.Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": reset, **config}
    return confluent_kafka.Consumer({**settings, "enable.auto.commit": False})


def send_when_positioned(consumer: confluent_kafka.Consumer, bootstrap: str, topic: str) -> list[bytes | None]:
    """A reader of the latest sees what is sent after it has found its place: so wait for the place, then send."""
    values: list[bytes | None] = []
    deadline = time.monotonic() + 20
    sent = False
    while not values and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            value: Any = message.value()
            values.append(value)
        # A consumer that reset to the latest has asked the broker and has it cached.
        cached = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), cached=True)
        if not sent and cached[1] == 10:
            BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"new")])
            sent = True
    return values


def test_confluent_starts_at_the_earliest(bootstrap: str, old_and_new: str, group: str) -> None:
    consumer = confluent_consumer(bootstrap, group, "earliest")
    try:
        consumer.subscribe([old_and_new])
        message = consumer.poll(20)
        assert message is not None
        assert message.offset() == 4
    finally:
        consumer.close()


def test_confluent_starts_at_the_latest(bootstrap: str, old_and_new: str, group: str) -> None:
    consumer = confluent_consumer(bootstrap, group, "latest", **{"fetch.wait.max.ms": 100})
    try:
        consumer.subscribe([old_and_new])
        assert send_when_positioned(consumer, bootstrap, old_and_new) == [b"new"]
    finally:
        consumer.close()


def test_confluent_without_a_policy_says_that_there_is_no_offset(bootstrap: str, old_and_new: str, group: str) -> None:
    consumer = confluent_consumer(bootstrap, group, "error")
    try:
        consumer.subscribe([old_and_new])
        message = consumer.poll(20)
        assert message is not None
        error: Any = message.error()
        assert error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


@pytest.mark.parametrize(("wrong", "reset", "expected"), [(1, "earliest", 4), (99, "earliest", 4), (99, "error", None)])
def test_confluent_at_an_offset_that_is_not_there(
    bootstrap: str, old_and_new: str, group: str, wrong: int, reset: str, expected: int | None
) -> None:
    consumer = confluent_consumer(bootstrap, group, reset)
    try:
        consumer.assign([confluent_kafka.TopicPartition(old_and_new, 0, wrong)])
        message = consumer.poll(20)
        assert message is not None
        if expected is None:
            error: Any = message.error()
            assert error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
        else:
            assert message.offset() == expected
    finally:
        consumer.close()


@pytest.mark.parametrize(("wrong", "reset", "expected"), [(1, "earliest", 4), (99, "earliest", 4), (99, "none", None)])
def test_kafka_python_at_an_offset_that_is_not_there(
    bootstrap: str, old_and_new: str, wrong: int, reset: str, expected: int | None
) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset=reset, enable_auto_commit=False)
    at = kafka.TopicPartition(old_and_new, 0)
    try:
        consumer.assign([at])
        consumer.seek(at, wrong)
        if expected is None:
            with pytest.raises(kafka.errors.OffsetOutOfRangeError):
                poll_until_something(consumer)
        else:
            assert poll_until_something(consumer)[at][0].offset == expected
    finally:
        consumer.close()


def poll_until_something(consumer: Any) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = consumer.poll(500)
        if found:
            return found
    raise TimeoutError


def test_kafka_python_starts_a_new_group_at_the_earliest(bootstrap: str, old_and_new: str, group: str) -> None:
    consumer = kafka.KafkaConsumer(
        old_and_new, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        (records,) = poll_until_something(consumer).values()
        assert [record.offset for record in records] == list(range(4, 10))
    finally:
        consumer.close()


def test_kafka_python_without_a_policy_says_that_there_is_no_offset(
    bootstrap: str, old_and_new: str, group: str
) -> None:
    consumer = kafka.KafkaConsumer(
        old_and_new, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="none", enable_auto_commit=False
    )
    try:
        with pytest.raises(kafka.errors.NoOffsetForPartitionError):
            poll_until_something(consumer)
    finally:
        consumer.close()


@pytest.mark.parametrize(("wrong", "reset", "expected"), [(1, "earliest", 4), (99, "earliest", 4), (99, "none", None)])
def test_aiokafka_at_an_offset_that_is_not_there(
    bootstrap: str, old_and_new: str, wrong: int, reset: str, expected: int | None
) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset=reset, enable_auto_commit=False)
        at = AioTopicPartition(old_and_new, 0)
        await consumer.start()
        try:
            consumer.assign([at])
            consumer.seek(at, wrong)
            if expected is None:
                with pytest.raises(OffsetOutOfRangeError):
                    await asyncio.wait_for(consumer.getone(), 20)
            else:
                assert (await asyncio.wait_for(consumer.getone(), 20)).offset == expected
        finally:
            await consumer.stop()

    asyncio.run(run())


def test_aiokafka_without_a_policy_says_that_there_is_no_offset(bootstrap: str, old_and_new: str, group: str) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(
            old_and_new, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="none", enable_auto_commit=False
        )
        await consumer.start()
        try:
            with pytest.raises(NoOffsetForPartitionError):
                await asyncio.wait_for(consumer.getone(), 20)
        finally:
            await consumer.stop()

    asyncio.run(run())
