"""What does a transaction of one record cost the broker, over a produce of one such record without a transaction?

A transaction is two requests (v2) or three (v1), four appends besides the record, and three steps of a state machine. The
same generator drives both kinds in turns; CPU of the broker process per round, medians of the turns. One producer shares a
core with the broker, so that no wake-up is counted; ten producers are spread as they come.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.load import TINY_RECORD
from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_oncelog
from benchmarks.transactions_wire import (
    IdempotentProducer,
    Producer,
    ProducerV1,
    ProducerV2,
    TransactionConnection,
    WireClients,
)

GOAL = 6.0
SECONDS_PER_TURN = 0.5
TOPIC = b"cost"
PARTITIONS = 10


def cpu_per_round(broker: Server, clients: WireClients) -> float:
    before = broker.cpu_seconds()
    turn = clients.run(SECONDS_PER_TURN)
    return (broker.cpu_seconds() - before) / len(turn.latencies)


def measure(broker: Server, kind: Callable[..., Producer], producers: int, rounds: int) -> tuple[float, float]:
    """CPU seconds of a plain produce and of a transaction."""
    plain = WireClients(
        [
            IdempotentProducer(TransactionConnection(broker.port), TOPIC, number, TINY_RECORD)
            for number in range(producers)
        ]
    )
    names = [f"{kind.__name__}-{producers}-{number}".encode() for number in range(producers)]
    transactional = WireClients(
        [
            kind(TransactionConnection(broker.port), name, TOPIC, number, TINY_RECORD)
            for number, name in enumerate(names)
        ]
    )
    cores = os.sched_getaffinity(0)
    used = {max(cores)} if producers == 1 else cores
    broker.run_on(used)
    os.sched_setaffinity(0, used)
    plain_seconds, transaction_seconds = [], []
    for round_ in range(rounds + 1):
        plain_turn, transaction_turn = cpu_per_round(broker, plain), cpu_per_round(broker, transactional)
        if round_:  # the first one warms both
            plain_seconds.append(plain_turn)
            transaction_seconds.append(transaction_turn)
    os.sched_setaffinity(0, cores)
    plain.close()
    transactional.close()
    return median(plain_seconds), median(transaction_seconds)


def run(chosen: Options) -> None:
    table = Table(
        "CPU per transaction of one record",
        f"Beside an idempotent produce of the same record, {chosen.rounds} turns each, medians.",
        ["transaction", "producers", "produce µs", "transaction µs", "ratio", "goal", ""],
    )
    with tempfile.TemporaryDirectory() as directory, start_oncelog(Path(directory) / "data") as broker:
        connection = TransactionConnection(broker.port)
        connection.create_topic(TOPIC, PARTITIONS)
        for kind, name in (
            (ProducerV2, "v2: Produce, EndTxn"),
            (ProducerV1, "v1: AddPartitionsToTxn, Produce, EndTxn"),
        ):
            for producers in (1, 10):
                plain, transaction = measure(broker, kind, producers, chosen.rounds)
                label = "1, one core" if producers == 1 else str(producers)
                cells = [f"{plain * 1e6:.1f}", f"{transaction * 1e6:.1f}", f"{transaction / plain:.2f}"]
                table.add(name, label, *cells, f"<= {GOAL:g}", verdict(transaction / plain, GOAL))
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
