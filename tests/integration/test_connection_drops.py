"""Idempotent producers whose connections break at bad moments: after the broker has the batch, before the answer is there."""

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaProducer

from tests.brokers import StartBroker
from tests.integration.ledger import Ledger, ProducingThread
from tests.integration.proxy import CuttingProxy
from tests.integration.topics import create_topic

PARTITIONS = 3
CUTS = 25

# kafka-python forgets sockets whose connection was refused: what it leaves is collected here, in a test that may see it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collect_leaked_sockets() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def proxy(start_broker: StartBroker) -> Iterator[CuttingProxy]:
    """In front of a broker that tells its clients the proxy's address."""
    with CuttingProxy() as proxy:
        broker = start_broker({"advertised.listeners": f"PLAINTEXT://{proxy.bootstrap_servers}"})
        proxy.target = broker.port
        yield proxy


def send_with_confluent(proxy: CuttingProxy, topic: str, ledger: Ledger, stop: threading.Event) -> None:
    with ProducingThread(proxy.bootstrap_servers, topic, PARTITIONS, ledger=ledger):
        stop.wait()


def send_with_kafka_python(proxy: CuttingProxy, topic: str, ledger: Ledger, stop: threading.Event) -> None:
    def note(partition: int, number: int) -> Callable[[Any], None]:
        return lambda metadata: ledger.note(partition, number, metadata.offset)

    producer = kafka.KafkaProducer(
        bootstrap_servers=proxy.bootstrap_servers,
        enable_idempotence=True,
        linger_ms=1,
        reconnect_backoff_ms=5,
        reconnect_backoff_max_ms=50,
        retry_backoff_ms=10,
        delivery_timeout_ms=120_000,
        request_timeout_ms=5000,
        max_block_ms=60_000,
    )
    sent = []
    while not stop.is_set():
        for partition in range(PARTITIONS):
            number = ledger.next_number(partition)
            future = producer.send(topic, b"%010d" % number, partition=partition)
            sent.append(future.add_callback(note(partition, number)))
        time.sleep(0.005)
    producer.flush(60)
    for future in sent:
        future.get(60)
    producer.close()


def send_with_aiokafka(proxy: CuttingProxy, topic: str, ledger: Ledger, stop: threading.Event) -> None:
    async def note(partition: int, number: int, future: Any) -> None:
        ledger.note(partition, number, (await asyncio.wait_for(future, 60)).offset)

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=proxy.bootstrap_servers,
            enable_idempotence=True,
            linger_ms=1,
            retry_backoff_ms=20,
            request_timeout_ms=60_000,
        )
        await producer.start()
        sent = []
        while not stop.is_set():
            for partition in range(PARTITIONS):
                number = ledger.next_number(partition)
                future = await producer.send(topic, b"%010d" % number, partition=partition)
                sent.append(asyncio.ensure_future(note(partition, number, future)))
            await asyncio.sleep(0.005)
        await asyncio.gather(*sent)
        await producer.stop()

    asyncio.run(run())


def torment(proxy: CuttingProxy, ledger: Ledger) -> None:
    """Cut the connections in the middle of the work, mostly after some answers to it were lost."""
    chance = random.Random(7)
    for _ in range(CUTS):
        before = ledger.acknowledged_count
        deadline = time.monotonic() + 20
        while ledger.acknowledged_count == before:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.05))
        if chance.random() < 0.7:
            proxy.lose_some_answers()
            time.sleep(chance.uniform(0.0, 0.02))
        proxy.cut()
    assert proxy.cuts >= CUTS
    assert proxy.lost_bytes > 0


@pytest.mark.seed("I2")
@pytest.mark.parametrize("send", [send_with_confluent, send_with_kafka_python, send_with_aiokafka])
def test_every_message_is_there_once_and_in_order(
    proxy: CuttingProxy, send: Callable[[CuttingProxy, str, Ledger, threading.Event], None]
) -> None:
    topic = create_topic(proxy.bootstrap_servers, PARTITIONS)
    ledger, stop = Ledger(), threading.Event()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            send(proxy, topic, ledger, stop)
        except BaseException as problem:
            problems.append(problem)

    sender = threading.Thread(target=run)
    sender.start()
    try:
        torment(proxy, ledger)
    finally:
        stop.set()
        sender.join()
    assert not problems, problems
    assert ledger.check(proxy.bootstrap_servers, topic) > 10 * CUTS
