"""Idempotent producers whose connections break at bad moments: after the broker has the batch, before the answer is there."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator

import kafka
import pytest
from aiokafka import AIOKafkaProducer

from tests.brokers import StartBroker
from tests.integration.ledger import Ledger, ProducingThread
from tests.integration.proxy import CuttingProxy
from tests.integration.topics import create_topic

PARTITIONS = 3
SECONDS = 4.0

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


def send_with_confluent(proxy: CuttingProxy, topic: str, stop: threading.Event) -> Ledger:
    producing = ProducingThread(proxy.bootstrap_servers, topic, PARTITIONS)
    stop.wait()
    return producing.finish()


def send_with_kafka_python(proxy: CuttingProxy, topic: str, stop: threading.Event) -> Ledger:
    ledger = Ledger()
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
            sent.append((partition, number, producer.send(topic, b"%010d" % number, partition=partition)))
        time.sleep(0.005)
    producer.flush(60)
    for partition, number, future in sent:
        ledger.note(partition, number, future.get(60).offset)
    producer.close()
    return ledger


def send_with_aiokafka(proxy: CuttingProxy, topic: str, stop: threading.Event) -> Ledger:
    ledger = Ledger()

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
                sent.append((partition, number, await producer.send(topic, b"%010d" % number, partition=partition)))
            await asyncio.sleep(0.005)
        for partition, number, future in sent:
            ledger.note(partition, number, (await asyncio.wait_for(future, 60)).offset)
        await producer.stop()

    asyncio.run(run())
    return ledger


@pytest.mark.seed("I2")
@pytest.mark.parametrize("send", [send_with_confluent, send_with_kafka_python, send_with_aiokafka])
def test_every_message_is_there_once_and_in_order(
    proxy: CuttingProxy, send: Callable[[CuttingProxy, str, threading.Event], Ledger]
) -> None:
    topic = create_topic(proxy.bootstrap_servers, PARTITIONS)
    stop = threading.Event()
    results: list[Ledger] = []
    sender = threading.Thread(target=lambda: results.append(send(proxy, topic, stop)))
    sender.start()
    try:
        proxy.torment(SECONDS, seed=7)
    finally:
        stop.set()
        sender.join()

    (ledger,) = results
    assert proxy.cuts >= 10
    assert proxy.lost_bytes > 0
    assert ledger.check(proxy.bootstrap_servers, topic) > 200
