"""Messages of 5 MB where the topic allows them, a clear refusal where it does not."""

import random

import confluent_kafka
import kafka
import pytest

from tests.integration.clients import BY_NAME, CLIENTS, LARGE, Client, Message, by_each_client
from tests.integration.topics import MakeTopic

FIVE_MB = 5 * 1024 * 1024
# Without kcat's separators, and different everywhere so that a piece in the wrong place shows.
VALUE = random.Random(5).randbytes(FIVE_MB // 2).hex().encode()


@by_each_client
def test_every_client_sends_and_reads_five_megabytes(bootstrap: str, make_topic: MakeTopic, producing: Client) -> None:
    topic = make_topic(configs={"max.message.bytes": str(LARGE)})
    producing.produce(bootstrap, topic, [Message(b"before"), Message(VALUE, key=b"large"), Message(b"after")])

    for client in CLIENTS:
        received = client.read(bootstrap, topic, 3)
        assert [message.value for message in received] == [b"before", VALUE, b"after"], client.name


def test_several_large_messages_in_a_row(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": str(LARGE)})
    values = [VALUE[number:] + b"%d" % number for number in range(6)]
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(value) for value in values])

    received = BY_NAME["confluent-kafka"].read(bootstrap, topic, len(values))
    assert [message.value for message in received] == values


def test_a_message_above_the_topics_limit_is_refused_and_the_next_goes_through(bootstrap: str, topic: str) -> None:
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(VALUE)])
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        BY_NAME["kafka-python"].produce(bootstrap, topic, [Message(VALUE)])

    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"small")])
    assert [message.value for message in BY_NAME["aiokafka"].read(bootstrap, topic, 1)] == [b"small"]


def test_a_reader_with_small_limits_still_gets_the_large_message(bootstrap: str, make_topic: MakeTopic) -> None:
    """KIP-74: the first batch of a fetch comes whole, however little was asked for, or the reader would be stuck."""
    topic = make_topic(configs={"max.message.bytes": str(LARGE)})
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(VALUE), Message(b"next")])

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "max.partition.fetch.bytes": 1000,
            "fetch.max.bytes": 1_000_000,
            "receive.message.max.bytes": LARGE,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        values: list[object] = []
        while len(values) < 2:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None, message.error()
            values.append(message.value())
        assert values == [VALUE, b"next"]
    finally:
        consumer.close()
