"""How many transactions of one record does a broker carry, how long does each take, and what does it cost the broker?

Three clients: the raw wire as clients since KIP-890 speak it (v2: Produce v12, EndTxn v5), as those before do (v1:
AddPartitionsToTxn, Produce, EndTxn; sent again at once when the broker sends them away), and confluent-kafka. Each producer
has a transactional id and a partition of its own and runs one transaction after the other. The brokers take turns of a
second, and the medians of the turns are compared.

Without Apache Kafka beside it, the goals are held against the best of what Kafka 4.3 showed on a machine of two cores.
"""

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import TINY_RECORD
from benchmarks.peer import start_kafka
from benchmarks.report import Options, Table, median, options, percentile
from benchmarks.servers import Server, start_oncelog
from benchmarks.transactions_wire import (
    Clients,
    Producer,
    ProducerV1,
    ProducerV2,
    TransactionConnection,
    Turn,
    WireClients,
)

SECONDS_PER_TURN = 1.0
WARM_UP_TRANSACTIONS, WARM_UP_SECONDS = 20_000, 60.0
"""Of v1, and a tenth of v2, at most so long: a Java broker is at its best only when its hot code is compiled."""
TOPIC = b"transactions"
PARTITIONS = 10


class ConfluentClients:
    """librdkafka, a thread for each producer: a transaction keeps its thread waiting most of the time."""

    def __init__(self, port: int, name: str, count: int) -> None:
        from confluent_kafka import Producer

        self._producers = []
        for number in range(count):
            settings = {"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": f"{name}-{number}"}
            producer = Producer(settings | {"linger.ms": 0})
            producer.init_transactions(30)
            self._producers.append(producer)

    def run(self, seconds: float) -> Turn:
        latencies: list[float] = []
        started_at = time.perf_counter()

        def transact(number: int) -> None:
            producer = self._producers[number]
            begun_at = time.perf_counter()
            while begun_at - started_at < seconds:
                producer.begin_transaction()
                producer.produce(TOPIC.decode(), TINY_RECORD, partition=number)
                producer.commit_transaction(30)
                ended_at = time.perf_counter()
                latencies.append(ended_at - begun_at)
                begun_at = ended_at

        threads = [threading.Thread(target=transact, args=(number,)) for number in range(len(self._producers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return Turn(time.perf_counter() - started_at, latencies, retries=0)

    def close(self) -> None:
        self._producers.clear()


def wire_clients(kind: Callable[..., Producer], port: int, name: str, count: int) -> WireClients:
    return WireClients(
        [
            kind(TransactionConnection(port), f"{name}-{number}".encode(), TOPIC, number, TINY_RECORD)
            for number in range(count)
        ]
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of a broker's turns with one kind of client. None where it is not known."""

    rate: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu_us: float | None = None
    """Of the broker, per transaction."""
    retries: float | None = None
    """Per transaction; confluent-kafka does not tell."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    kind: Callable[..., Producer] | None
    """None for confluent-kafka."""
    producers: int
    kafka: Figures
    """The best that was seen of Apache Kafka 4.3, warm."""
    rate_goal: float
    p99_goal: float | None = None
    cpu_goal: float | None = None
    no_retries: bool = False

    def clients(self, server: Server) -> Clients:
        name = f"{self.name} {self.producers}"
        if self.kind is None:
            return ConfluentClients(server.port, name, self.producers)
        return wire_clients(self.kind, server.port, name, self.producers)


CASES = (
    Case("raw wire v2", ProducerV2, 1, Figures(145), rate_goal=10),
    Case("raw wire v2", ProducerV2, 10, Figures(960, p99_ms=22), rate_goal=5),
    Case(
        "raw wire v1",
        ProducerV1,
        10,
        Figures(3500, cpu_us=400, retries=5),
        rate_goal=2,
        cpu_goal=1 / 3,
        no_retries=True,
    ),
    Case("confluent-kafka", None, 1, Figures(430, p50_ms=2), rate_goal=2),
    Case("confluent-kafka", None, 10, Figures(2000, p99_ms=25), rate_goal=1.5, p99_goal=1 / 4, cpu_goal=1 / 3),
)


def figures(turns: list[tuple[Turn, float]], *, counts_retries: bool) -> Figures:
    return Figures(
        rate=median([turn.rate for turn, _ in turns]),
        p50_ms=median([percentile(turn.latencies, 50) for turn, _ in turns]) * 1e3,
        p99_ms=median([percentile(turn.latencies, 99) for turn, _ in turns]) * 1e3,
        cpu_us=median([cpu / len(turn.latencies) for turn, cpu in turns]) * 1e6,
        retries=median([turn.retries / len(turn.latencies) for turn, _ in turns]) if counts_retries else None,
    )


def measure(case: Case, servers: list[Server], rounds: int) -> list[Figures]:
    """Of each server, which take turns."""
    clients = [case.clients(server) for server in servers]
    turns: list[list[tuple[Turn, float]]] = [[] for _ in servers]
    for round_ in range(rounds + 1):
        for server, driven, taken in zip(servers, clients, turns, strict=True):
            before = server.cpu_seconds()
            turn = driven.run(SECONDS_PER_TURN)
            if round_:  # the first one warms both
                taken.append((turn, server.cpu_seconds() - before))
    for driven in clients:
        driven.close()
    return [figures(taken, counts_retries=case.kind is not None) for taken in turns]


def at_least(measured: float, goal: float) -> str:
    return "met" if measured >= goal else "MISSED"


def at_most(measured: float, goal: float) -> str:
    return "met" if measured <= goal else "MISSED"


def add_goals(table: Table, case: Case, ours: Figures, kafka: Figures) -> None:
    label = f"{case.name}, {case.producers}"

    def add(what: str, mine: float | None, other: float | None, unit: str, goal: float | None, *, least: bool) -> None:
        if goal is None or mine is None or other is None:
            return
        ratio = mine / other
        verdict = at_least(ratio, goal) if least else at_most(ratio, goal)
        cells = [f"{mine:,.1f} {unit}", f"{other:,.1f} {unit}", f"{ratio:.2f}"]
        table.add(label, what, *cells, f"{'>=' if least else '<='} {goal:.3g}", verdict)

    add("transactions", ours.rate, kafka.rate, "/s", case.rate_goal, least=True)
    add("p99", ours.p99_ms, kafka.p99_ms, "ms", case.p99_goal, least=False)
    add("broker CPU each", ours.cpu_us, kafka.cpu_us, "µs", case.cpu_goal, least=False)
    if case.no_retries and ours.retries is not None:
        table.add(
            label, "retries each", f"{ours.retries:.1f}", shown(kafka.retries, ".1f"), "", "0", at_most(ours.retries, 0)
        )


def shown(figure: float | None, how: str) -> str:
    return "" if figure is None else format(figure, how)


def add_figures(table: Table, case: Case, broker: str, seen: Figures) -> None:
    latencies = (shown(seen.p50_ms, ".2f"), shown(seen.p99_ms, ".2f"))
    costs = (shown(seen.cpu_us, ".0f"), shown(seen.retries, ".1f"))
    table.add(case.name, case.producers, broker, f"{seen.rate:,.0f}", *latencies, *costs)


def run(chosen: Options) -> None:
    beside = "Apache Kafka in the same run" if chosen.peer_jars else "what Apache Kafka 4.3 showed at best on two cores"
    seen = Table(
        "Transactions of one record",
        f"Each producer runs one after the other, turns of {SECONDS_PER_TURN:g} s, medians of {chosen.rounds}.",
        ["client", "producers", "broker", "transactions/s", "p50 ms", "p99 ms", "broker CPU µs each", "retries each"],
    )
    goals = Table(
        "Transactions of one record: the goals",
        f"Oncelog beside {beside}; the ratio is Oncelog's over Kafka's.",
        ["client, producers", "what", "oncelog", "kafka", "ratio", "goal", ""],
    )
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [stack.enter_context(start_oncelog(directory / "oncelog"))]
        if chosen.peer_jars:
            (directory / "kafka").mkdir()
            servers.append(stack.enter_context(start_kafka(chosen.peer_jars, directory / "kafka")))
        for server in servers:
            connection = TransactionConnection(server.port)
            connection.create_topic(TOPIC, PARTITIONS)
            connection.close()
        for server in servers[1:]:
            for kind, transactions in ((ProducerV1, WARM_UP_TRANSACTIONS), (ProducerV2, WARM_UP_TRANSACTIONS // 10)):
                warming = wire_clients(kind, server.port, f"warming {kind.__name__}", PARTITIONS)
                warming.drive(WARM_UP_SECONDS, transactions)
                warming.close()
        for case in CASES:
            ours, *peer = measure(case, servers, chosen.rounds)
            add_figures(seen, case, "oncelog", ours)
            for figures_of_kafka in peer:
                add_figures(seen, case, "kafka", figures_of_kafka)
            add_goals(goals, case, ours, peer[0] if peer else case.kafka)
    seen.print()
    goals.print()


if __name__ == "__main__":
    run(options(__doc__))
