"""A worker that handles every order exactly once, whoever is killed meanwhile: it reads, transforms and writes in transactions.

    python -m oncelog.cli.demo_worker BOOTSTRAP_SERVERS NAME

Written to be learned from; docs/demo.md goes through it. Three rules make it exactly-once:

1. What it writes and how far it has read are committed in one transaction. Killed before the commit, it is as if it had read
   nothing; killed after it, its successor goes on behind what is written.
2. It has a name, and keeps it when it is started again. Under its `transactional.id` a successor shuts out what is left of its
   predecessor and aborts what that left open. Under its `group.instance.id` it gets its partitions back without a rebalance.
3. An error is of one of three kinds, and librdkafka says of which. It passes (`retriable`): call again. It spoils this transaction
   (`txn_requires_abort`): abort, go back to where the last commit left off, read again. Anything else, such as being
   fenced: end, and be started again by whoever watches over the process.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

ORDERS = "orders"
PAYMENTS = "payments"
SHIPMENTS = "shipments"
MOST_ORDERS_PER_TRANSACTION = 10

#: A message that was read. confluent-kafka's own type says of each of its parts that it may be None.
Order = Any


def main() -> int:
    servers, name = sys.argv[1:]
    told_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.set())
    both = {
        "bootstrap.servers": servers,
        "client.id": name,
        # A broker that comes back is found again within half a second.
        "reconnect.backoff.max.ms": 500,
        # By default librdkafka forgets brokers that are down, and goes on sending offsets to one it forgot (its issue 5511).
        "metadata.recovery.strategy": "none",
    }
    consumer = Consumer(
        {
            **both,
            "group.id": "order-workers",
            "group.instance.id": name,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            # The transaction commits the offsets, nobody else.
            "enable.auto.commit": False,
        }
    )
    producer = Producer({**both, "transactional.id": name})
    try:
        _work(consumer, producer, name, told_to_stop)
    except KafkaException as problem:
        print(f"{name} ends, to be started again: {problem.args[0]}", file=sys.stderr)
        return 1
    finally:
        consumer.close()
    return 0


def _work(consumer: Consumer, producer: Producer, name: str, told_to_stop: threading.Event) -> None:
    _until_done(producer.init_transactions)
    consumer.subscribe([ORDERS])
    number = 0
    while not told_to_stop.is_set():
        # Asked for before reading: should partitions change hands meanwhile, the broker refuses offsets of the old membership.
        membership = consumer.consumer_group_metadata() if consumer.assignment() else None
        orders = _read(consumer)
        if not orders:
            continue
        if membership is None:
            _rewind(consumer, orders)
            continue
        number += 1
        try:
            producer.begin_transaction()
            _handle(producer, orders, label=f"{name}/{os.getpid()}/{number}")
            _until_done(producer.send_offsets_to_transaction, _behind(orders), membership)
            _until_done(producer.commit_transaction)
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            print(f"{name} aborts transaction {number} and reads again: {problem.args[0]}", file=sys.stderr)
            _until_done(producer.abort_transaction)
            _rewind(consumer, orders)


def _read(consumer: Consumer) -> list[Order]:
    messages = consumer.consume(MOST_ORDERS_PER_TRANSACTION, timeout=0.1)
    for message in messages:
        error = message.error()
        # Fenced, for one. The client says it by this code; `fatal()` of a consumer's error is False all the same.
        if error is not None and error.code() == KafkaError._FATAL:
            raise KafkaException(error)
    # Other errors are news of a broker that is away for a while: the consumer goes on by itself.
    return [message for message in messages if message.error() is None]


def _handle(producer: Producer, orders: list[Order], label: str) -> None:
    """Each order becomes a payment and a shipment."""
    # For those who check afterwards: which transaction this is, and how many orders it must have in each topic.
    headers: dict[str, str | bytes | None] = {"transaction": label, "orders": str(len(orders))}
    for message in orders:
        order = json.loads(message.value())
        payment = {"order": order["order"], "cents": order["quantity"] * order["cents_each"]}
        shipment = {"order": order["order"], "item": order["item"], "quantity": order["quantity"]}
        producer.produce(PAYMENTS, json.dumps(payment), message.key(), headers=headers)
        producer.produce(SHIPMENTS, json.dumps(shipment), message.key(), headers=headers)


def _behind(orders: list[Order]) -> list[TopicPartition]:
    """How far these orders reach in each partition: the offset to go on with."""
    reached = {(message.topic(), message.partition()): message.offset() for message in orders}
    return [TopicPartition(topic, partition, offset + 1) for (topic, partition), offset in reached.items()]


def _rewind(consumer: Consumer, orders: list[Order]) -> None:
    """Where these orders were read, go back to where the last commit left off."""
    for partition in consumer.committed(_behind(orders)):
        if partition.offset < 0:
            partition.offset = OFFSET_BEGINNING
        consumer.seek(partition)


def _until_done(call: Callable[..., Any], *arguments: Any) -> None:
    while True:
        try:
            call(*arguments)
            return
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise


if __name__ == "__main__":
    sys.exit(main())
