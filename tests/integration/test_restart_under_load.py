"""The broker goes away and comes back under a running producer and running consumers: nothing lost, nothing twice."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition

from tests.brokers import BrokerProcess, StartBroker, target_is_kafka
from tests.integration.ledger import ProducingThread
from tests.integration.members import members, settle
from tests.integration.topics import create_topic, unique

PARTITIONS = 2
RESTARTS = 2 if target_is_kafka() else 4

# kafka-python forgets sockets whose connection was refused: what it leaves is collected here, in a test that may see it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collect_leaked_sockets() -> Iterator[None]:
    yield
    gc.collect()


class Reading:
    """What a consumer that runs all the time has seen of each partition."""

    def __init__(self, read: Callable[["Reading", str, str], None], bootstrap: str, topic: str) -> None:
        self.numbers: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        self.end = threading.Event()
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(read, bootstrap, topic))
        self._thread.start()

    def _run(self, read: Callable[["Reading", str, str], None], bootstrap: str, topic: str) -> None:
        try:
            read(self, bootstrap, topic)
        except BaseException as problem:
            self.problem = problem

    def wait_for(self, sent: dict[int, int]) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and any(len(self.numbers[at]) < count for at, count in sent.items()):
            time.sleep(0.05)
        self.end.set()
        self._thread.join()
        if self.problem is not None:
            raise self.problem


def read_with_confluent(reading: Reading, bootstrap: str, topic: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, at, 0) for at in range(PARTITIONS)])
    while not reading.end.is_set():
        for message in consumer.consume(500, 0.1):
            # An error here tells of a lost connection; the consumer goes on by itself.
            value, partition = message.value(), message.partition()
            if not message.error() and value is not None and partition is not None:
                reading.numbers[partition].append(int(value[:10]))
    consumer.close()


def read_with_kafka_python(reading: Reading, bootstrap: str, topic: str) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=100,
        request_timeout_ms=5000,
        bootstrap_timeout_ms=60_000,
    )
    consumer.assign([kafka.TopicPartition(topic, at) for at in range(PARTITIONS)])
    consumer.seek_to_beginning()
    while not reading.end.is_set():
        for at, records in consumer.poll(100).items():
            reading.numbers[at.partition] += [int(record.value[:10]) for record in records]
    consumer.close()


def read_with_aiokafka(reading: Reading, bootstrap: str, topic: str) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, retry_backoff_ms=50, auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.assign([AioTopicPartition(topic, at) for at in range(PARTITIONS)])
        while not reading.end.is_set():
            for at, records in (await consumer.getmany(timeout_ms=100)).items():
                reading.numbers[at.partition] += [int(record.value[:10]) for record in records]
        await consumer.stop()

    asyncio.run(run())


def restart(broker: BrokerProcess, how: str) -> None:
    if how == "stop":
        assert broker.stop() == 0 or target_is_kafka()
    else:
        broker.kill()
    time.sleep(0.1)
    broker.start()


@pytest.mark.seed("I2")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_producer_and_consumers_of_all_libraries_go_on(start_broker: StartBroker, how: str) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers, PARTITIONS)
    producing = ProducingThread(broker.bootstrap_servers, topic, PARTITIONS)
    readings = {
        read.__name__: Reading(read, broker.bootstrap_servers, topic)
        for read in (read_with_confluent, read_with_kafka_python, read_with_aiokafka)
    }
    try:
        with producing:
            for _ in range(RESTARTS):
                producing.wait_for_more()
                time.sleep(0.5)
                restart(broker, how)
            producing.wait_for_more()
    finally:
        for reading in readings.values():
            reading.wait_for(producing.ledger.sent)

    ledger = producing.ledger
    ledger.check(broker.bootstrap_servers, topic)
    for name, reading in readings.items():
        for partition, count in ledger.sent.items():
            assert reading.numbers[partition] == list(range(count)), f"{name}, partition {partition}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_group_keeps_its_members_and_offsets(start_broker: StartBroker, how: str) -> None:
    """Members that were there before the restart are there after it, without a rebalance when it is quick enough."""
    broker = start_broker({"offsets.topic.num.partitions": "4"})
    topic, group = create_topic(broker.bootstrap_servers, PARTITIONS), unique("group")
    producing = ProducingThread(broker.bootstrap_servers, topic, PARTITIONS, pause_s=0.01)
    with producing, members() as join:
        config = {"session_timeout_ms": 30_000, "reconnect_backoff_max_ms": 100}
        team = [join(broker.bootstrap_servers, group, [topic], **config) for _ in range(2)]
        settle(team, lambda: all(member.received for member in team))
        for _ in range(RESTARTS // 2):
            shares = [member.partitions for member in team]
            events = [list(member.events) for member in team]
            read = [len(member.received) for member in team]
            restart(broker, how)
            settle(team, lambda: all(len(m.received) > count for m, count in zip(team, read, strict=True)))  # noqa: B023
            for member in team:
                member.consumer.commit(asynchronous=False)
            assert [member.partitions for member in team] == shares
            assert [member.events for member in team] == events
        for member in team:
            offsets = [message.offset for message in member.received]
            assert offsets == list(range(len(offsets)))
