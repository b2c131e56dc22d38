"""A disk that is full or fails: the client hears KAFKA_STORAGE_ERROR, what was acknowledged stays readable.

The full disk is real: the kernel refuses writes beyond a file-size limit put on the running broker process, in the middle of
a write where that is where the limit falls. A disk whose flush fails is a broker in this process with a faulty disk.
"""

import asyncio
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from oncelog.broker.config import load_config
from oncelog.broker.event_loop import new_event_loop
from oncelog.broker.server import Broker
from tests.brokers import QUICK_GROUPS, BrokerProcess, StartBroker, oncelog_only
from tests.disks import FaultyDisk
from tests.integration.clients import BY_NAME, Message
from tests.integration.ledger import ProducingThread
from tests.integration.topics import create_topic

pytestmark = oncelog_only
CONFLUENT = BY_NAME["confluent-kafka"]
UNLIMITED = resource.RLIM_INFINITY


def fill_disk(broker: BrokerProcess, file_size: int) -> None:
    """No file of the broker may grow beyond so many bytes."""
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (file_size, UNLIMITED))


def free_disk(broker: BrokerProcess) -> None:
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))


def log_size(broker: BrokerProcess, topic: str) -> int:
    return (broker.data_directory / f"{topic}-0" / f"{0:020}.log").stat().st_size


def try_once(bootstrap: str, topic: str, value: bytes, timeout_ms: int = 20_000) -> int | None:
    """Send without a second try; the error's code, None if it was acknowledged."""
    outcomes: list[int | None] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "message.timeout.ms": timeout_ms}
    )
    producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error.code() if error else None))
    assert producer.flush(20) == 0
    return outcomes[0]


def values(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    return [message.value for message in CONFLUENT.read(bootstrap, topic, count)]


def test_a_full_disk_is_told_and_nothing_acknowledged_is_harmed(start_broker: StartBroker) -> None:
    broker = start_broker()
    at = broker.bootstrap_servers
    topic = create_topic(at)
    CONFLUENT.produce(at, topic, [Message(b"before %d" % number) for number in range(10)])
    kept = [b"before %d" % number for number in range(10)]
    size = log_size(broker, topic)

    # The limit falls into the middle of what is sent, so that a part of it is written before the kernel refuses.
    fill_disk(broker, size + 500)
    for _ in range(3):
        assert try_once(at, topic, b"x" * 2000) == confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR
        assert log_size(broker, topic) == size
        assert values(at, topic, 10) == kept
    # What still fits is taken, and takes the next offset.
    assert try_once(at, topic, b"small") is None
    kept.append(b"small")

    free_disk(broker)
    assert try_once(at, topic, b"x" * 2000) is None
    kept.append(b"x" * 2000)
    assert values(at, topic, 12) == kept
    assert [message.offset for message in CONFLUENT.read(at, topic, 12)] == list(range(12))

    broker.kill()
    broker.start()
    assert values(at, topic, 12) == kept


def test_an_idempotent_producer_gets_through_once_there_is_room_again(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers)
    with ProducingThread(broker.bootstrap_servers, topic, 1) as producing:
        for _ in range(3):
            producing.wait_for_more(50)
            fill_disk(broker, log_size(broker, topic) + 300)
            threading.Event().wait(0.3)
            free_disk(broker)
        producing.wait_for_more(50)
    producing.ledger.check(broker.bootstrap_servers, topic)


def test_a_full_disk_on_one_partition_leaves_the_others_alone(start_broker: StartBroker) -> None:
    broker = start_broker()
    at = broker.bootstrap_servers
    long, short = create_topic(at), create_topic(at)
    CONFLUENT.produce(at, long, [Message(b"x" * 100_000)])
    fill_disk(broker, log_size(broker, long) + 10)
    assert try_once(at, long, b"more") == confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR
    assert try_once(at, short, b"fine") is None
    free_disk(broker)
    assert try_once(at, long, b"more") is None


class FaultyBroker:
    """A broker on a thread of this process, on a disk that the test can break."""

    def __init__(self, directory: Path, policy: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.disk = FaultyDisk(directory)
        config = load_config({**QUICK_GROUPS, "flush.policy": policy}, None)
        self._broker = Broker(config, directory, "127.0.0.1", 0, disk=self.disk)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(20)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._broker.port}"

    def _run(self) -> None:
        # On the loop that the broker really runs on: asyncio's own leaves a client open that comes while it stops.
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told_to_stop = asyncio.Event()
        await self._broker.start()
        self._ready.set()
        await self._told_to_stop.wait()
        await self._broker.stop()

    def stop(self) -> None:
        self.disk.recover()
        self._loop.call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join()


@pytest.fixture
def flushing_broker(tmp_path: Path) -> Iterator[FaultyBroker]:
    broker = FaultyBroker(tmp_path / "data", "group-commit")
    yield broker
    broker.stop()


def test_a_failed_flush_is_not_acknowledged(flushing_broker: FaultyBroker, tmp_path: Path) -> None:
    at = flushing_broker.bootstrap_servers
    topic, other = create_topic(at), create_topic(at)
    CONFLUENT.produce(at, topic, [Message(b"safe")])

    flushing_broker.disk.refuse("sync", only=lambda path: path.startswith(topic))
    assert try_once(at, topic, b"perhaps") == confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR
    # What was acknowledged before stays readable; what may not be on the disk is not shown to anybody.
    assert values(at, topic, 1) == [b"safe"]
    assert try_once(at, other, b"another partition") is None


def test_a_read_that_fails_is_told_and_can_be_repeated(flushing_broker: FaultyBroker) -> None:
    at = flushing_broker.bootstrap_servers
    topic = create_topic(at)
    CONFLUENT.produce(at, topic, [Message(b"safe")])
    flushing_broker.disk.refuse("read", only=lambda path: path.startswith(topic) and path.endswith(".log"))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": at, "group.id": "unused", "fetch.wait.max.ms": 50})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(1.0)
        assert message is None or message.error() is not None
        flushing_broker.disk.recover()
        while message is None or message.error():
            message = consumer.poll(20)
            assert message is not None
        assert message.value() == b"safe"
    finally:
        consumer.close()


def test_a_partition_that_could_not_be_opened_is_there_after_the_next_start(tmp_path: Path) -> None:
    broker = FaultyBroker(tmp_path / "data", "page-cache")
    try:
        at = broker.bootstrap_servers
        good = create_topic(at)
        broker.disk.refuse("make_directory")
        broken = create_topic(at)
        assert try_once(at, broken, b"nowhere to go", timeout_ms=1500) is not None
        assert try_once(at, good, b"as ever") is None
    finally:
        broker.stop()
    broker = FaultyBroker(tmp_path / "data", "page-cache")
    try:
        at = broker.bootstrap_servers
        assert try_once(at, broken, b"works now") is None
        assert values(at, broken, 1) == [b"works now"]
        assert values(at, good, 1) == [b"as ever"]
    finally:
        broker.stop()
