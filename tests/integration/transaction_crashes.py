"""A producer that works until its broker dies, what it was told until then, and what must be true after the broker is back.

One transactional id through all of a test's rounds. Each of its transactions writes one value to every output and commits an
offset; some are committed, some aborted, some left open for a successor. The broker dies at a named place. The next one must show
exactly what the told outcomes, and the rules for the untold one, allow.
"""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from tests.brokers import ROOT, BrokerDied, BrokerProcess
from tests.integration.topics import create_topic
from tests.integration.transaction_reading import committed_offset, fetch, read_partition
from tests.integration.transaction_wire import Generation, Wire, WireProducer

Wanted = Literal["commit", "abort", "leave open"]

ROUNDS = int(os.environ.get("ONCELOG_TRANSACTION_CRASH_ROUNDS", "10"))

NAME, GROUP = "billing", "readers"
INPUT = TopicPartition("input", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
#: A broker that is killed answers nothing, or less than a whole answer.
DEATH = (EOFError, ConnectionError, socket.timeout)

ONE_PARTITION_EACH = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


class FailPoint(NamedTuple):
    """Where a broker dies: a named place in its code, or an operation on its files."""

    variable: Literal["ONCELOG_FAIL_POINT", "ONCELOG_DISK_FAIL_POINT"]
    place: str

    def at(self, count: int) -> dict[str, str]:
        """The environment of a broker that dies the `count`th time it gets there."""
        separator = "/" if self.variable == "ONCELOG_FAIL_POINT" else " "
        return {self.variable: f"{self.place}{separator}{count}"}


def place(name: str, detail: str = "*") -> FailPoint:
    return FailPoint("ONCELOG_FAIL_POINT", f"{name}/{detail}")


def on_disk(operations: str, pattern: str) -> FailPoint:
    return FailPoint("ONCELOG_DISK_FAIL_POINT", f"{operations} {pattern}")


class FailingBroker(BrokerProcess):
    """A broker that can be started so that it dies at a certain place."""

    def __init__(self, directory: Path, settings: dict[str, str], *, script: str | None = None) -> None:
        command = None if script is None else [sys.executable, str(ROOT / "tests" / script)]
        super().__init__(directory, {**ONE_PARTITION_EACH, **settings}, command=command)
        self._armed: dict[str, str] = {}

    def start_armed(self, armed: dict[str, str]) -> None:
        """It may be dead already when this returns, if its place is on the way of a start."""
        self._armed = armed
        try:
            self.start()
        except BrokerDied:
            self.wait_for_death()
        finally:
            self._armed = {}

    def wait_for_death(self) -> None:
        code = self._wait(20.0)
        assert code == -signal.SIGKILL, f"it ended with {code}:\n{self.output()[-4000:]}"

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **self._armed}


class Doing(IntEnum):
    """The step of a transaction whose answer is awaited."""

    WRITE = 0
    WRITE_MORE = 1
    COMMIT_OFFSETS = 2
    END = 3
    NOTHING = 4
    REPLACE = 5


@dataclass
class Attempt:
    """One transaction: what is wanted of it, and how far it got."""

    number: int
    wanted: Wanted
    doing: Doing = Doing.WRITE

    @property
    def value(self) -> bytes:
        return b"%d" % self.number


@dataclass
class Billing:
    """The producer over all rounds, and what must be visible."""

    outputs: Sequence[TopicPartition]
    committed: list[Attempt] = field(default_factory=list)
    number: int = 0

    @classmethod
    def on(cls, broker: BrokerProcess, configs: dict[str, str] | None = None) -> "Billing":
        topics = [
            create_topic(broker.bootstrap_servers, 2, configs),
            create_topic(broker.bootstrap_servers, 1, configs),
        ]
        create_input(broker)
        return cls([TopicPartition(topics[0], 0), TopicPartition(topics[0], 1), TopicPartition(topics[1], 0)])

    def work_until_death(self, broker: FailingBroker, generation: Generation, limit: int = 400) -> "Dead":
        """Transactions one after the other until the broker is gone; the one that was under way then."""
        wanted = plans()
        producer: WireProducer | None = None
        attempt = Attempt(-1, "leave open", Doing.REPLACE)
        try:
            with Wire(broker.port) as wire:
                producer = WireProducer(wire, NAME, generation).initialise()
                for _ in range(limit):
                    attempt = Attempt(self.number, next(wanted))
                    self.number += 1
                    self.carry_out(producer, attempt)
                    if attempt.wanted == "leave open":
                        attempt.doing = Doing.REPLACE
                        producer.initialise()
        except DEATH:
            broker.wait_for_death()
            return Dead(producer, attempt)
        raise AssertionError(f"{limit} transactions, and nobody died")

    def carry_out(self, producer: WireProducer, attempt: Attempt) -> None:
        """From the step on that is to be done next: what was answered is not asked again."""
        while attempt.doing < Doing.NOTHING:
            match attempt.doing:
                case Doing.WRITE:
                    producer.send(*self.outputs[:2], values=[attempt.value])
                case Doing.WRITE_MORE:
                    producer.send(self.outputs[2], values=[attempt.value])
                case Doing.COMMIT_OFFSETS:
                    producer.send_offsets(GROUP, {INPUT: attempt.number + 1})
                case _ if attempt.wanted != "leave open":
                    producer.end(committed=attempt.wanted == "commit")
            attempt.doing = Doing(attempt.doing + 1)
        if attempt.wanted == "commit":
            self.committed.append(attempt)

    # After the restart

    def check(self, wire: Wire, when: str) -> None:
        """Readers see what was committed, in every output and in the offsets, and are held back by nothing."""
        expected = [attempt.value for attempt in self.committed]
        for output in self.outputs:
            fetched = fetch(wire, output)
            assert fetched.last_stable_offset == fetched.high_watermark, f"{when}: readers of {output} are held back"
            assert read_partition(wire, output) == expected, f"{when}: {output}"
        fetched = fetch(wire, OFFSETS)
        assert fetched.last_stable_offset == fetched.high_watermark, f"{when}: offsets are held back"
        offset = committed_offset(wire, GROUP, INPUT)
        assert offset == (self.committed[-1].number + 1 if self.committed else -1), f"{when}: the group's offset"

    def is_committed(self, wire: Wire, attempt: Attempt) -> bool:
        """Whether readers see the attempt, and that all of them see the same."""
        seen = {output: attempt.value in read_partition(wire, output) for output in self.outputs}
        offset = committed_offset(wire, GROUP, INPUT)
        assert set(seen.values()) == {offset == attempt.number + 1}, f"torn: {seen}, offset {offset}"
        return all(seen.values())

    def commit_one_more(self, producer: WireProducer) -> None:
        attempt = Attempt(self.number, "commit")
        self.number += 1
        self.carry_out(producer, attempt)


class Dead(NamedTuple):
    """What the broker's death left: the producer, if it got that far, and the transaction it was about."""

    producer: WireProducer | None
    attempt: Attempt


def plans() -> Iterator[Wanted]:
    while True:
        yield "commit"
        yield "abort"
        yield "commit"
        yield "leave open"


def create_input(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(INPUT.topic, 1, 1)])[INPUT.topic].result(20)


def assert_fenced(wire: Wire, old: ProducerIdentity, output: TopicPartition) -> None:
    """Whatever an instance that was replaced asks for, it is told that it is fenced."""
    for version in (4, 5):
        for committed in (True, False):
            assert wire.end_code(NAME, old, committed=committed, version=version) in FENCED
    assert set(wire.add_partitions(NAME, old, [output])) <= FENCED
    assert wire.add_offsets(NAME, old, GROUP) in FENCED
    assert set(wire.commit_offsets(NAME, old, GROUP, {INPUT: 0}, 5)) <= FENCED
