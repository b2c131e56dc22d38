"""What one client compresses, every client reads: the broker hands out batches without touching what is inside."""

import struct

import pytest

from tests.brokers import BrokerProcess
from tests.integration.clients import BY_NAME, CLIENTS, Client, Message, by_each_client

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# Repetitive enough that every codec shrinks it, long enough that one batch holds several compressed blocks.
MESSAGES = [Message(value=b"order %05d " % number * 40, key=b"key %d" % (number % 7)) for number in range(300)]
SENT = [(message.key, message.value) for message in MESSAGES]


def codec_on_disk(broker: BrokerProcess, topic: str) -> str:
    """A client that mistrusts the broker's versions sends uncompressed without a word, so look at the first batch."""
    log = broker.data_directory / f"{topic}-0" / f"{0:020}.log"
    attributes: int = struct.unpack_from(">h", log.read_bytes(), 21)[0]
    return CODECS[attributes & 7]


@pytest.mark.parametrize("codec", CODECS)
@by_each_client
def test_every_client_reads_what_another_compressed(
    broker: BrokerProcess, bootstrap: str, topic: str, codec: str, producing: Client
) -> None:
    producing.produce(bootstrap, topic, MESSAGES, compression=codec)
    assert codec_on_disk(broker, topic) == codec

    for client in CLIENTS:
        received = client.read(bootstrap, topic, len(MESSAGES))
        assert [(message.key, message.value) for message in received] == SENT, client.name
        assert [message.offset for message in received] == list(range(len(MESSAGES))), client.name


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_reader_can_start_inside_a_compressed_batch(bootstrap: str, topic: str, codec: str) -> None:
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, MESSAGES, compression=codec)

    for client in CLIENTS:
        received = client.read(bootstrap, topic, 10, offset=137)
        assert [message.offset for message in received] == list(range(137, 147)), client.name
