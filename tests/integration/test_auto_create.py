"""Topics that come to be by being used, where broker and client allow it."""

import asyncio
import time
from collections.abc import Callable

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AdminClient

from tests.brokers import StartBroker
from tests.integration.clients import BY_NAME, Message, kcat, with_kcat
from tests.integration.topics import unique


def produce_with_confluent(bootstrap: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"first")
    assert producer.flush(20) == 0


def produce_with_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    try:
        producer.send(topic, b"first").get(20)
    finally:
        producer.close()


def produce_with_aiokafka(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"first")
        finally:
            await producer.stop()

    asyncio.run(run())


def produce_with_kcat(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, ["-P", "-t", topic], b"first")


@pytest.mark.parametrize(
    "produce",
    [
        produce_with_confluent,
        produce_with_kafka_python,
        produce_with_aiokafka,
        pytest.param(produce_with_kcat, marks=with_kcat),
    ],
)
def test_producing_makes_the_topic(bootstrap: str, produce: Callable[[str, str], None]) -> None:
    topic = unique("made")
    produce(bootstrap, topic)
    assert [message.value for message in BY_NAME["confluent-kafka"].read(bootstrap, topic, 1)] == [b"first"]


def test_the_brokers_defaults_are_used(start_broker: StartBroker) -> None:
    broker = start_broker({"num.partitions": "3"})
    topic = unique("made")
    produce_with_confluent(broker.bootstrap_servers, topic)
    described = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(topic, timeout=20)
    assert len(described.topics[topic].partitions) == 3


def test_a_consumer_may_ask_for_it(bootstrap: str) -> None:
    topic = unique("made")
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", metadata_max_age_ms=300
    )
    try:
        deadline = time.monotonic() + 20
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(100)
        BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"first")])
        records: list[bytes] = []
        while not records and time.monotonic() < deadline:
            records = [record.value for batch in consumer.poll(200).values() for record in batch]
        assert records == [b"first"]
    finally:
        consumer.close()


def test_looking_at_a_topic_does_not_make_it(bootstrap: str, admin: AdminClient) -> None:
    """An admin client asks without leave to create; a consumer's own default is not to."""
    topic = unique("absent")
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        admin.describe_topics(confluent_kafka.TopicCollection([topic]))[topic].result(20)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in admin.list_topics(timeout=20).topics


def test_a_broker_can_forbid_it(start_broker: StartBroker) -> None:
    broker = start_broker({"auto.create.topics.enable": "false"})
    topic = unique("absent")
    errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "message.timeout.ms": 1500,
            "topic.metadata.propagation.max.ms": 300,
        }
    )
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert [error.code() for error in errors if error] in (
        [confluent_kafka.KafkaError._UNKNOWN_TOPIC],
        [confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART],
        [confluent_kafka.KafkaError._MSG_TIMED_OUT],
    )
    assert topic not in AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=20).topics


def test_a_bad_name_is_refused(bootstrap: str) -> None:
    errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 3000})
    producer.produce("not a topic name!", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert [error.code() for error in errors if error] == [confluent_kafka.KafkaError.TOPIC_EXCEPTION]
