"""The worker of the demo does with each kind of error what librdkafka says, and a second one of its name takes over."""

import json
import subprocess
import threading
import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from oncelog.broker.embedded import EmbeddedBroker
from oncelog.cli import demo_worker
from oncelog.cli.demo_processes import WORKER_COMMAND
from oncelog.cli.demo_records import OUTPUTS, Arrivals, OrderSender, create_topics, read_everything
from oncelog.cli.demo_verdict import judge

PASSES = KafkaError(KafkaError._TIMED_OUT, "wait", retriable=True)
SPOILS = KafkaError(KafkaError.ILLEGAL_GENERATION, "rebalanced", txn_requires_abort=True)
FENCED = KafkaError(KafkaError._FENCED, "another instance", fatal=True)


class Message:
    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        self._at = (partition, offset)
        self._error = error

    def topic(self) -> str:
        return demo_worker.ORDERS

    def partition(self) -> int:
        return self._at[0]

    def offset(self) -> int:
        return self._at[1]

    def key(self) -> bytes:
        return b"%d" % self._at[1]

    def value(self) -> bytes:
        return json.dumps({"order": self._at[1], "item": "bagel", "quantity": 2, "cents_each": 100}).encode()

    def error(self) -> KafkaError | None:
        return self._error


class Consumer:
    """Gives these batches, then tells the worker to stop. Of partition 0 offset 5 is committed, of others none."""

    def __init__(self, *batches: list[Message], joins_late: bool = False) -> None:
        self.told_to_stop = threading.Event()
        self.sought: list[tuple[int, int]] = []
        self._batches = iter(batches)
        self._joined = not joins_late

    def subscribe(self, topics: list[str]) -> None:
        assert topics == [demo_worker.ORDERS]

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(demo_worker.ORDERS, 0)] if self._joined else []

    def consumer_group_metadata(self) -> str:
        return "membership"

    def consume(self, count: int, timeout: float) -> list[Message]:
        self._joined = True
        batch = next(self._batches, None)
        if batch is None:
            self.told_to_stop.set()
        return batch or []

    def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        committed = {0: 5}
        return [
            TopicPartition(at.topic, at.partition, committed.get(at.partition, OFFSET_INVALID)) for at in partitions
        ]

    def seek(self, partition: TopicPartition) -> None:
        self.sought.append((partition.partition, partition.offset))


class Producer:
    """Writes down what it is asked to do, and fails the calls named in `failures`, once for each error."""

    def __init__(self, **failures: list[KafkaError]) -> None:
        self.calls: list[Any] = []
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **_: Any) -> None:
            if name == "produce":
                self.calls.append((arguments[0], json.loads(arguments[1])))
            elif name == "send_offsets_to_transaction":
                self.calls.append((name, [(at.partition, at.offset) for at in arguments[0]], arguments[1]))
            else:
                self.calls.append(name)
            if self._failures.get(name):
                raise KafkaException(self._failures[name].pop(0))

        return call

    def names(self) -> list[str]:
        return [call if isinstance(call, str) else call[0] for call in self.calls]


def work(consumer: Consumer, producer: Producer) -> None:
    demo_worker._work(consumer, producer, "worker-1", consumer.told_to_stop)  # type: ignore[arg-type]


ONE_TRANSACTION = ["begin_transaction", "payments", "shipments", "send_offsets_to_transaction", "commit_transaction"]


def test_outputs_and_offsets_go_into_one_transaction():
    producer = Producer()

    work(Consumer([Message(0, 5), Message(0, 6), Message(3, 0)]), producer)

    assert producer.calls == [
        "init_transactions",
        "begin_transaction",
        ("payments", {"order": 5, "cents": 200}),
        ("shipments", {"order": 5, "item": "bagel", "quantity": 2}),
        ("payments", {"order": 6, "cents": 200}),
        ("shipments", {"order": 6, "item": "bagel", "quantity": 2}),
        ("payments", {"order": 0, "cents": 200}),
        ("shipments", {"order": 0, "item": "bagel", "quantity": 2}),
        ("send_offsets_to_transaction", [(0, 7), (3, 1)], "membership"),
        "commit_transaction",
    ]


def test_what_passes_is_called_again():
    producer = Producer(init_transactions=[PASSES], commit_transaction=[PASSES, PASSES])

    work(Consumer([Message(0, 5)]), producer)

    assert producer.names() == [
        "init_transactions",
        "init_transactions",
        *ONE_TRANSACTION,
        "commit_transaction",
        "commit_transaction",
    ]


@pytest.mark.parametrize("call", ["produce", "send_offsets_to_transaction", "commit_transaction"])
def test_what_spoils_the_transaction_is_aborted_and_read_again_from_the_last_commit(call: str):
    consumer, producer = Consumer([Message(0, 6), Message(4, 2)], [Message(0, 5)]), Producer(**{call: [SPOILS]})

    work(consumer, producer)

    assert consumer.sought == [(0, 5), (4, OFFSET_BEGINNING)]
    assert producer.names()[-len(ONE_TRANSACTION) - 1 :] == ["abort_transaction", *ONE_TRANSACTION]


@pytest.mark.parametrize("call", ["init_transactions", "begin_transaction", "commit_transaction"])
def test_anything_else_ends_the_worker_without_an_abort(call: str):
    producer = Producer(**{call: [FENCED]})

    with pytest.raises(KafkaException):
        work(Consumer([Message(0, 5)]), producer)

    assert producer.names()[-1] == call


def test_a_fatal_error_of_the_consumer_ends_the_worker():
    with pytest.raises(KafkaException):
        work(Consumer([Message(0, 5, KafkaError(KafkaError._FATAL, "another instance"))]), Producer())


def test_news_of_a_broker_that_is_away_is_no_order():
    producer = Producer()

    work(Consumer([Message(0, 5, KafkaError(KafkaError._ALL_BROKERS_DOWN, "away"))]), producer)

    assert producer.names() == ["init_transactions"]


def test_what_is_read_while_joining_the_group_is_read_again():
    consumer, producer = Consumer([Message(0, 5)], joins_late=True), Producer()

    work(consumer, producer)

    assert consumer.sought == [(0, 5)]
    assert producer.names() == ["init_transactions"]


def until_arrived(arrivals: Arrivals, count: int) -> None:
    deadline = time.monotonic() + 60
    while arrivals.count < count:
        assert time.monotonic() < deadline, f"{arrivals.count} of {count} arrived"
        arrivals.read(0.05)


def test_a_second_worker_of_its_name_takes_over_and_the_first_ends(oncelog_broker: EmbeddedBroker):
    servers = oncelog_broker.bootstrap_servers
    create_topics(servers)
    sender, arrivals = OrderSender(servers), Arrivals(servers)
    command = [*WORKER_COMMAND, servers, "worker-1"]
    workers = []
    try:
        workers.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        sender.send(20)
        until_arrived(arrivals, 20)
        workers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        _, errors = workers[0].communicate(timeout=60)
        sender.send(20)
        until_arrived(arrivals, 40)
        sender.finish()

        assert workers[0].returncode == 1
        assert "worker-1 ends, to be started again" in errors
        assert workers[1].poll() is None
        workers[1].terminate()
        assert workers[1].wait(20) == 0
    finally:
        arrivals.close()
        for worker in workers:
            worker.kill()
            worker.communicate()
    outputs, _ = read_everything(servers, "read_committed", check=lambda: None)
    assert judge(sender.acknowledged, outputs, OUTPUTS).problems == []
