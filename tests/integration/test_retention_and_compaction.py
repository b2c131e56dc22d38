"""What the broker removes by itself, as clients see it: old segments by size and time, old values of a key."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.brokers import BrokerProcess
from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import create_topic

CONFLUENT = BY_NAME["confluent-kafka"]
EAGER = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.segment.delete.delay.ms": "100",
}


@pytest.fixture(scope="module")
def tidy_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that looks for something to remove ten times a second."""
    with BrokerProcess(tmp_path_factory.mktemp("tidy") / "data", EAGER) as process:
        yield process


def wait_until(done: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def offsets(admin: AdminClient, topic: str) -> tuple[int, int]:
    at = confluent_kafka.TopicPartition(topic, 0)
    first = admin.list_offsets({at: OffsetSpec.earliest()})[at].result(20).offset
    last = admin.list_offsets({at: OffsetSpec.latest()})[at].result(20).offset
    return first, last


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((broker.data_directory / f"{topic}-0").glob("*.log"))


def test_retention_by_size(tidy_broker: BrokerProcess) -> None:
    at = tidy_broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": at})
    topic = create_topic(at, configs={"segment.bytes": str(1 << 20), "retention.bytes": str(2 << 20)})
    CONFLUENT.produce(at, topic, [Message(b"%06d" % number + b"." * 10_000) for number in range(600)])
    wait_until(lambda: offsets(admin, topic)[0] > 200, "the oldest segments stay")

    first, last = offsets(admin, topic)
    assert last == 600
    wait_until(lambda: sum(log.stat().st_size for log in segments(tidy_broker, topic)) < 4 << 20, "files stay")
    received = CONFLUENT.read(at, topic, last - first, offset=first)
    assert [int((message.value or b"")[:6]) for message in received] == list(range(first, last))


def test_retention_by_time(tidy_broker: BrokerProcess) -> None:
    at = tidy_broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": at})
    topic = create_topic(at, configs={"retention.ms": "1000"})
    CONFLUENT.produce(at, topic, [Message(b"old")] * 20)
    wait_until(lambda: offsets(admin, topic) == (20, 20), "old records stay")
    CONFLUENT.produce(at, topic, [Message(b"new")])
    assert [message.offset for message in CONFLUENT.read(at, topic, 1, offset=20)] == [20]


def read_all(broker: BrokerProcess, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of every record that is left."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes | None, bytes | None]] = []
    try:
        while True:
            message = consumer.poll(20)
            assert message is not None
            error = message.error()
            if error:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                return found
            offset = message.offset()
            assert offset is not None
            key, value = message.key(), message.value()
            assert not isinstance(key, str)
            assert not isinstance(value, str)
            found.append((offset, key, value))
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_compaction_keeps_the_last_value_of_every_key(tidy_broker: BrokerProcess, codec: str) -> None:
    at = tidy_broker.bootstrap_servers
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "200",
        "delete.retention.ms": "100",
    }
    topic = create_topic(at, configs=configs)
    keys = [b"key %d" % number for number in range(10)]
    producer = confluent_kafka.Producer({"bootstrap.servers": at, "compression.type": codec})

    def send(*records: tuple[bytes, bytes | None]) -> None:
        for key, value in records:
            producer.produce(topic, value, key)
        assert producer.flush(20) == 0

    for generation in range(20):
        send(*((key, b"%d" % generation) for key in keys))
    # One key is deleted: its tombstone goes too, in the end.
    send((keys[0], None))
    last_written = {key: (190 + number, key, b"19") for number, key in enumerate(keys)}
    del last_written[keys[0]]

    def is_compacted() -> bool:
        # Something must be written for the active segment to be finished.
        send((b"other", b"x"))
        left = [record for record in read_all(tidy_broker, topic) if record[1] != b"other"]
        return left == list(last_written.values())

    wait_until(is_compacted, "old values or the tombstone stay", timeout_s=45)
    assert read_all(tidy_broker, topic)[-1][0] == offsets(AdminClient({"bootstrap.servers": at}), topic)[1] - 1
