"""Producers and readers for a history with crashes, and the judge who holds it against what everybody was told.

A producer writes transactions one after the other under one transactional id. It notes of each what it wrote where, and how it
ended: committed or aborted if it was told so, or if it cannot have ended otherwise; unknown if it asked to commit and never heard.
"""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

import confluent_kafka

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from tests.integration.transaction_crashes import DEATH
from tests.integration.transaction_reading import committed_offset, fetch, read_partition
from tests.integration.transaction_wire import Denied, Generation, Wire, WireProducer

T = TypeVar("T")

INPUT = TopicPartition("input", 0)
#: Shorter than what a producer that stalls lets pass.
TIMEOUT_MS = 1500
STALL_S = 2.5
SHUT_OUT = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    # A v2 client that comes back after its transaction timed out is told that it is over.
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass
class Written:
    """One transaction as its producer knows it."""

    producer: str
    number: int
    partitions: tuple[TopicPartition, ...]
    #: What it commits for the producer's group; None if nothing.
    offset: int | None
    outcome: Outcome = Outcome.UNKNOWN

    @property
    def value(self) -> bytes:
        return f"{self.producer} {self.number}".encode()


@dataclass
class History:
    seed: int
    outputs: list[TopicPartition]
    written: list[Written] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self, producer: str, number: int, chance: random.Random) -> Written:
        count = chance.randint(1, len(self.outputs))
        partitions = tuple(chance.sample(self.outputs, count))
        made = Written(producer, number, partitions, number + 1 if chance.random() < 0.5 else None)
        self.written.append(made)
        return made


class Participant(threading.Thread):
    """A client in a thread of its own; what goes wrong in it is a problem of the history."""

    def __init__(self, history: History, port: int, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.port = port
        self.chance = random.Random(f"{history.seed} {name}")
        self._wire: Wire | None = None

    def run(self) -> None:
        try:
            while not self.history.over.is_set():
                self.step()
            self.finish()
        except BaseException as problem:
            self.history.problems.append(f"{self.name}: {problem!r}")
        finally:
            if self._wire is not None:
                self._wire.close()

    def step(self) -> None:
        raise NotImplementedError

    def finish(self) -> None: ...

    def wire(self) -> Wire:
        """A connection; as many tries as it takes until the broker is back."""
        deadline = time.monotonic() + 60
        while self._wire is None:
            try:
                self._wire = Wire(self.port)
            except OSError:
                assert time.monotonic() < deadline, "the broker does not come back"
                time.sleep(0.02)
        return self._wire

    def hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def until_answered(self, ask: Callable[[Wire], T]) -> T:
        while True:
            try:
                return ask(self.wire())
            except DEATH:
                self.hang_up()


class WireMember(Participant):
    """A producer that may do anything: repeat, give up, be replaced with its transaction open, stall, come back as a zombie."""

    def __init__(self, history: History, port: int, name: str, generation: Generation) -> None:
        super().__init__(history, port, name)
        self.generation = generation
        self.number = 0
        self.producer: WireProducer | None = None

    def step(self) -> None:
        if self.producer is None:
            self.producer = self._replace(None)
        written = self.history.begin(self.name, self.number, self.chance)
        self.number += 1
        try:
            self._carry_out(self.producer, written)
        except Denied as denied:
            if denied.code not in SHUT_OUT or written.outcome is Outcome.COMMITTED:
                raise
            # Refused at its first asking: the timeout was quicker.
            written.outcome = Outcome.ABORTED
            self.producer = self._replace(self.producer)
        time.sleep(self.chance.uniform(0, 0.02))

    def finish(self) -> None:
        """Whoever comes last leaves nothing open."""
        self._replace(self.producer)

    def _replace(self, old: WireProducer | None) -> WireProducer:
        """A new instance; the one before it, should it wake up, gets nothing through."""
        fresh = self.until_answered(lambda wire: self._initialised(wire))
        if old is not None and self.chance.random() < 0.3:
            self._wake_up(old)
        return fresh

    def _initialised(self, wire: Wire) -> WireProducer:
        return WireProducer(wire, self.name, self.generation).initialise(TIMEOUT_MS)

    def _wake_up(self, zombie: WireProducer) -> None:
        def haunt(wire: Wire) -> ErrorCode:
            zombie.wire = wire
            try:
                zombie.send(self.history.outputs[0], values=[b"zombie"])
                zombie.commit()
            except Denied as denied:
                return denied.code
            return ErrorCode.NONE

        code = self.until_answered(haunt)
        assert code is not ErrorCode.NONE, f"{self.name}: a zombie committed"

    def _carry_out(self, producer: WireProducer, written: Written) -> None:
        for partition in written.partitions:
            if not self._ask(producer, written, lambda at=partition: producer.send(at, values=[written.value])):  # type: ignore[misc]
                return
        if written.offset is not None:
            offsets = {INPUT: written.offset}
            if not self._ask(producer, written, lambda: producer.send_offsets(self.name, offsets)):
                return
        match self.chance.choices(["commit", "abort", "replace", "stall"], [60, 20, 15, 5])[0]:
            case "replace":
                written.outcome = Outcome.ABORTED
                self.producer = self._replace(producer)
            case "abort":
                written.outcome = Outcome.ABORTED
                self._end(producer, written, committed=False)
            case choice:
                if choice == "stall":
                    time.sleep(STALL_S)
                self._end(producer, written, committed=True)

    def _ask(self, producer: WireProducer, written: Written, ask: Callable[[], object]) -> bool:
        """Before the end is asked for. If the broker dies: ask again, or let a new instance begin anew."""
        while True:
            try:
                producer.wire = self.wire()
                ask()
                return True
            except DEATH:
                self.hang_up()
                if self.chance.random() < 0.5:
                    written.outcome = Outcome.ABORTED
                    self.producer = self._replace(producer)
                    return False

    def _end(self, producer: WireProducer, written: Written, *, committed: bool) -> None:
        lost_an_answer = False
        while True:
            try:
                producer.wire = self.wire()
                producer.end(committed=committed)
                written.outcome = Outcome.COMMITTED if committed else Outcome.ABORTED
                return
            except Denied as denied:
                if not lost_an_answer or denied.code not in SHUT_OUT:
                    raise
                # The first asking may have been heard, and the timeout may have been quicker: nobody knows.
                self.producer = self._replace(producer)
                return
            except DEATH:
                self.hang_up()
                lost_an_answer = True
                if self.chance.random() < 0.5:
                    self.producer = self._replace(producer)
                    return


class LibrdkafkaMember(Participant):
    """A producer of confluent-kafka, which repeats by itself what it got no answer to."""

    def __init__(self, history: History, port: int, name: str) -> None:
        super().__init__(history, port, name)
        self.number = 0
        self._group = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": name, "log_level": 0})
        self._client: confluent_kafka.Producer | None = None

    def client(self) -> confluent_kafka.Producer:
        while self._client is None:
            client = confluent_kafka.Producer(
                {
                    "bootstrap.servers": f"127.0.0.1:{self.port}",
                    "transactional.id": self.name,
                    "transaction.timeout.ms": 60_000,
                    "linger.ms": 0,
                    "reconnect.backoff.ms": 5,
                    "reconnect.backoff.max.ms": 50,
                    "retry.backoff.ms": 10,
                    # When its only broker is gone, librdkafka 2.16 may start over and then never find a coordinator again.
                    "metadata.recovery.strategy": "none",
                    "log_level": 0,
                }
            )
            try:
                client.init_transactions(30)
                self._client = client
            except confluent_kafka.KafkaException as problem:
                if not problem.args[0].retriable():
                    raise
        return self._client

    def step(self) -> None:
        client = self.client()
        written = self.history.begin(self.name, self.number, self.chance)
        self.number += 1
        asked_to_commit = False
        try:
            client.begin_transaction()
            for partition in written.partitions:
                client.produce(partition.topic, written.value, partition=partition.partition)
            if written.offset is not None:
                position = confluent_kafka.TopicPartition(*INPUT, written.offset)
                client.send_offsets_to_transaction([position], self._group.consumer_group_metadata(), 30)
            match self.chance.choices(["commit", "abort", "die"], [70, 20, 10])[0]:
                case "commit":
                    asked_to_commit = True
                    client.commit_transaction(30)
                    written.outcome = Outcome.COMMITTED
                case "abort":
                    client.abort_transaction(30)
                    written.outcome = Outcome.ABORTED
                case _:
                    written.outcome = Outcome.ABORTED
                    self._client = None
        except confluent_kafka.KafkaException as problem:
            if problem.args[0].txn_requires_abort() and not asked_to_commit:
                client.abort_transaction(30)
                written.outcome = Outcome.ABORTED
            else:
                written.outcome = Outcome.UNKNOWN if asked_to_commit else Outcome.ABORTED
                self._client = None
        time.sleep(self.chance.uniform(0, 0.05))

    def finish(self) -> None:
        self._client = None
        self.client()
        self._group.close()


class CommittedReader(Participant):
    """Reads every output under read_committed all the while; what it got once must stay true."""

    def __init__(self, history: History, port: int, name: str) -> None:
        super().__init__(history, port, name)
        self.values: dict[TopicPartition, list[bytes]] = {output: [] for output in history.outputs}
        self.positions = dict.fromkeys(history.outputs, 0)

    def step(self) -> None:
        for output in self.history.outputs:
            self.until_answered(lambda wire, output=output: self._read(wire, output))  # type: ignore[misc]
        time.sleep(self.chance.uniform(0, 0.05))

    def _read(self, wire: Wire, output: TopicPartition) -> None:
        max_bytes = self.chance.choice([1, 500, 1 << 20])
        fetched = fetch(wire, output, self.positions[output], max_wait_ms=20, min_bytes=1, max_bytes=max_bytes)
        assert fetched.code is ErrorCode.NONE, fetched.code
        assert fetched.last_stable_offset <= fetched.high_watermark
        if fetched.batches:
            assert fetched.next_offset <= fetched.last_stable_offset, "it shows what may still change"
            self.values[output] += fetched.delivered()
            self.positions[output] = fetched.next_offset


def judge(history: History, wire: Wire, readers: list[CommittedReader]) -> None:
    """Everything that was told is true, in every partition and every group's offset; what was not told is all or nothing."""
    final = {output: read_partition(wire, output) for output in history.outputs}
    for output, values in final.items():
        fetched = fetch(wire, output)
        assert fetched.last_stable_offset == fetched.high_watermark, f"readers of {output} are held back"
        assert len(set(values)) == len(values), f"{output} has something twice"
        numbers: dict[bytes, int] = defaultdict(lambda: -1)
        for value in values:
            producer, number = value.split()
            assert int(number) > numbers[producer], f"{output} has {value!r} after {numbers[producer]}"
            numbers[producer] = int(number)
        for reader in readers:
            seen = reader.values[output]
            assert seen == values[: len(seen)], f"{reader.name} was shown something of {output} that is not so any more"

    where = {output: set(values) for output, values in final.items()}
    expected = {output: set[bytes]() for output in history.outputs}
    offsets: dict[str, int] = {}
    for written in history.written:
        there = {output for output in history.outputs if written.value in where[output]}
        assert there in (set(), set(written.partitions)), f"torn: {written}, found in {there}"
        if written.outcome is Outcome.COMMITTED:
            assert there, f"lost: {written}"
        elif written.outcome is Outcome.ABORTED:
            assert not there, f"it was aborted: {written}"
        for output in there:
            expected[output].add(written.value)
        if there and written.offset is not None:
            offsets[written.producer] = written.offset
    assert where == expected, "there is something that nobody wrote"
    for group in {written.producer for written in history.written}:
        found = committed_offset(wire, group, INPUT)
        assert found == offsets.get(group, -1), (
            f"{group}'s offset is {found}, of its transactions {offsets.get(group, -1)}"
        )
