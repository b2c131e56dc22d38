"""The two ends of the demo: sending orders into it, and reading what came out."""

import json
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from oncelog.cli.demo_processes import DemoFailed
from oncelog.cli.demo_verdict import Output
from oncelog.cli.demo_worker import ORDERS, PAYMENTS, SHIPMENTS

OUTPUTS = (PAYMENTS, SHIPMENTS)
#: Different numbers, so that the two records of an order seldom lie in partitions of the same number.
PARTITIONS = {ORDERS: 6, PAYMENTS: 3, SHIPMENTS: 2}
ITEMS = ("espresso", "cappuccino", "croissant", "orange juice", "bagel")
#: What librdkafka prints of a broker that is away is part of the story here, and told elsewhere.
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


def create_topics(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    futures = admin.create_topics([NewTopic(topic, count) for topic, count in PARTITIONS.items()], request_timeout=20)
    for topic, future in futures.items():
        try:
            future.result(30)
        except KafkaException as problem:
            raise DemoFailed(f"topic {topic} cannot be made: {problem.args[0]}") from problem


class OrderSender:
    """Sends orders 0, 1, 2, …; an order counts as sent once the broker has acknowledged it."""

    def __init__(self, servers: str) -> None:
        self.acknowledged: set[int] = set()
        self.handed_over = 0
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})

    def send(self, count: int) -> None:
        """So many more, if any. Takes in what was acknowledged meanwhile."""
        for number in range(self.handed_over, self.handed_over + count):
            order = {
                "order": number,
                "item": ITEMS[number % len(ITEMS)],
                "quantity": number % 3 + 1,
                "cents_each": 150 + number % 5 * 50,
            }
            self._producer.produce(ORDERS, json.dumps(order), str(number), on_delivery=self._delivered)
        self.handed_over += max(0, count)
        self._producer.poll(0)

    def finish(self) -> None:
        """Returns once everything is acknowledged."""
        unanswered = self._producer.flush(10)
        if unanswered:
            raise DemoFailed(f"{unanswered:,} orders are not acknowledged by the broker")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        number = int(message.key() or b"")
        if error is not None:
            raise DemoFailed(f"order {number} could not be sent: {error}")
        self.acknowledged.add(number)


class Arrivals:
    """Which orders have come out so far: for the progress, not for the verdict."""

    def __init__(self, servers: str) -> None:
        self._consumer = _reader(servers, "read_committed")
        self._seen: dict[str, set[int]] = {topic: set() for topic in OUTPUTS}

    @property
    def count(self) -> int:
        """Orders that came out in every output topic."""
        return min(len(orders) for orders in self._seen.values())

    def read(self, seconds: float) -> None:
        for message in self._consumer.consume(1000, timeout=seconds):
            if message.error() is None:
                output = _output(message)
                self._seen[output.topic].add(output.order)

    def close(self) -> None:
        self._consumer.close()


def read_everything(
    servers: str, isolation: str, check: Callable[[], None], seconds: float = 10.0
) -> tuple[list[Output], list[str]]:
    """Every record of the output topics that a new reader gets to see, and the partitions whose end it did not get to.

    Under read_committed such an end lies behind a transaction that was left open. `check` is called while waiting, and may raise.
    """
    outputs: list[Output] = []
    ends = _end_offsets(servers)
    unread = {partition for partition, end in ends.items() if end > 0}
    consumer = _reader(servers, isolation)
    deadline = time.monotonic() + seconds
    while unread and time.monotonic() < deadline:
        check()
        for message in consumer.consume(1000, timeout=0.1):
            error = message.error()
            if error is None:
                outputs.append(_output(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                partition = _partition(message)
                if (message.offset() or 0) >= ends[partition]:
                    unread.discard(partition)
    consumer.close()
    return outputs, [f"{topic}-{partition}" for topic, partition in sorted(unread)]


def _end_offsets(servers: str) -> dict[tuple[str, int], int]:
    """The high watermarks: what an open transaction holds back lies below them too."""
    consumer = _reader(servers, "read_uncommitted")
    try:
        return {
            (partition.topic, partition.partition): consumer.get_watermark_offsets(partition, timeout=20)[1]
            for partition in _output_partitions()
        }
    finally:
        consumer.close()


def _reader(servers: str, isolation: str) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": "demo-check",  # confluent-kafka wants one; nothing is committed under it
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        **QUIET,
    }
    consumer = Consumer(settings)
    consumer.assign(_output_partitions())
    return consumer


def _output_partitions() -> list[TopicPartition]:
    return [
        TopicPartition(topic, partition, OFFSET_BEGINNING)
        for topic in OUTPUTS
        for partition in range(PARTITIONS[topic])
    ]


def _partition(message: Message) -> tuple[str, int]:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition


def _output(message: Message) -> Output:
    headers: dict[str, Any] = dict(message.headers() or ())
    order = json.loads(message.value() or b"")["order"]
    return Output(_partition(message)[0], order, headers["transaction"].decode(), int(headers["orders"]))
