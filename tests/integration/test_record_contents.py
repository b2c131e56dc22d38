"""A record comes out as it went in: headers, nulls, empty values and any byte."""

import pytest

from tests.integration.clients import (
    BY_NAME,
    CLIENTS,
    KCAT,
    LIBRARIES,
    Client,
    Message,
    Received,
    by_each_client,
    by_each_library,
    with_kcat,
)
from tests.integration.topics import MakeTopic

ALL_BYTES = bytes(range(256))
EVERYBODY_CAN_SEND = [
    Message(value=b"plain"),
    Message(value=b"with a key", key=b"key"),
    Message(value=None, key=b"tombstone"),
    Message(value=b"", key=b"empty value"),
    Message(value=b"headers", key=b"h", headers=(("source", b"test"), ("retry", b"3"))),
    Message(value=b"same name twice", headers=(("tag", b"one"), ("tag", b"two"), ("other", b"x"), ("tag", b"three"))),
    Message(value=b"odd headers", headers=(("empty", b""), ("größe", "schön".encode()))),
]
# The Python libraries refuse to send a record of neither key nor value, and kafka-python a header without a value.
ONLY_LIBRDKAFKA_CAN_SEND = [
    Message(value=None, key=None),
    Message(value=b"null header", headers=(("null", None), ("empty", b""))),
]
ONLY_LIBRARIES_CAN_SEND = [
    Message(value=ALL_BYTES, key=ALL_BYTES[::-1]),
    Message(value=b"empty key", key=b""),
    Message(value=b"", key=b""),
    Message(value=b"bytes in headers", headers=(("raw", ALL_BYTES),)),
    Message(value=b"many headers", headers=tuple((f"header {number}", b"%d" % number) for number in range(200))),
]


def contents(messages: list[Message] | list[Received]) -> list[tuple[object, ...]]:
    return [(message.key, message.value, message.headers) for message in messages]


@by_each_client
def test_every_client_reads_the_same_record(bootstrap: str, topic: str, producing: Client) -> None:
    producing.produce(bootstrap, topic, EVERYBODY_CAN_SEND)

    for client in CLIENTS:
        received = client.read(bootstrap, topic, len(EVERYBODY_CAN_SEND))
        assert contents(received) == contents(EVERYBODY_CAN_SEND), client.name


@pytest.mark.parametrize(
    "producing", [BY_NAME["confluent-kafka"], pytest.param(KCAT, marks=with_kcat)], ids=["confluent-kafka", "kcat"]
)
def test_nulls_that_only_some_clients_send(bootstrap: str, topic: str, producing: Client) -> None:
    producing.produce(bootstrap, topic, ONLY_LIBRDKAFKA_CAN_SEND)

    for client in CLIENTS:
        assert contents(client.read(bootstrap, topic, 2)) == contents(ONLY_LIBRDKAFKA_CAN_SEND), client.name


@by_each_library
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_any_byte_comes_through(bootstrap: str, topic: str, producing: Client, codec: str) -> None:
    producing.produce(bootstrap, topic, ONLY_LIBRARIES_CAN_SEND, compression=codec)

    for client in LIBRARIES:
        received = client.read(bootstrap, topic, len(ONLY_LIBRARIES_CAN_SEND))
        assert contents(received) == contents(ONLY_LIBRARIES_CAN_SEND), client.name


def test_a_compacted_topic_refuses_a_null_key(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"cleanup.policy": "compact"})
    client = BY_NAME["confluent-kafka"]

    with pytest.raises(AssertionError, match="INVALID_RECORD"):
        client.produce(bootstrap, topic, [Message(value=b"no key")])

    client.produce(bootstrap, topic, [Message(value=b"keyed", key=b"k")])
    assert contents(client.read(bootstrap, topic, 1)) == [(b"k", b"keyed", ())]
