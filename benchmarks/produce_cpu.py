"""What does a produce request cost the broker, over a server that only receives, writes and replies?

One connection, one idempotent producer, acks=all. Floor and broker take turns, and the medians of the turns are
compared: CPU of the whole server process per request, in three ways to load it:
- one request in flight, client and server on one core: no core falls asleep and no wake-up is counted, so the bare
  cost;
- one request in flight, each on the core it gets: the server sleeps between requests and pays for waking up;
- five in flight, as librdkafka keeps them: several requests arrive in one receive.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import KILOBYTE_RECORD, TINY_RECORD, ProduceLoad
from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_floor, start_oncelog, touch_memory
from benchmarks.wire import Connection, produce_response


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    values: list[bytes]
    requests_per_turn: int
    goal: float


CASES = (
    Case("tiny: one record of 100 bytes", [TINY_RECORD], 4_000, 2.5),
    Case("16 KB: 16 records of 1 KB", [KILOBYTE_RECORD] * 16, 3_000, 2.0),
    Case("1 MB: 1,000 records of 1 KB", [KILOBYTE_RECORD] * 1_000, 60, 1.3),
    Case("1 MB: one record", [KILOBYTE_RECORD * 1_000], 60, 1.3),
)


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    in_flight: int
    one_core: bool


WAYS = (Way("1, one core", 1, True), Way("1", 1, False), Way("5", 5, False))


def cpu_per_request(server: Server, load: ProduceLoad, requests: int, in_flight: int) -> float:
    before = server.cpu_seconds()
    load.run(requests, in_flight)
    return (server.cpu_seconds() - before) / requests


def measure(case: Case, way: Way, rounds: int, broker: Server, directory: Path) -> tuple[float, float]:
    topic = f"produce-{len(case.values)}-{len(case.values[0])}-{way.in_flight}-{way.one_core}".encode()
    connection = Connection(broker.port)
    connection.create_topic(topic)
    on_broker = ProduceLoad(connection, topic, case.values, connection.producer_id())
    written = directory / "floor.log"
    written_per_turn = case.requests_per_turn * len(on_broker.frame)
    with start_floor(written, produce_response(topic), records_at=on_broker.records_at) as floor:
        on_floor = ProduceLoad(Connection(floor.port), topic, case.values, (1, 0))
        cores = os.sched_getaffinity(0)
        used = {max(cores)} if way.one_core else cores
        floor.run_on(used)
        broker.run_on(used)
        os.sched_setaffinity(0, used)
        floor_seconds, broker_seconds = [], []
        for turn in range(rounds + 1):
            touch_memory(written_per_turn, directory)
            on_floor_turn = cpu_per_request(floor, on_floor, case.requests_per_turn, way.in_flight)
            touch_memory(written_per_turn, directory)
            on_broker_turn = cpu_per_request(broker, on_broker, case.requests_per_turn, way.in_flight)
            if turn:  # the first one warms both
                floor_seconds.append(on_floor_turn)
                broker_seconds.append(on_broker_turn)
        os.sched_setaffinity(0, cores)
        on_floor.connection.close()
    connection.close()
    written.unlink()
    return median(floor_seconds), median(broker_seconds)


def run(chosen: Options) -> None:
    table = Table(
        "CPU per produce request",
        f"Oncelog beside the floor (receive, write, fixed reply), {chosen.rounds} turns each, medians.",
        ["request", "in flight", "floor µs", "oncelog µs", "ratio", "goal", ""],
    )
    with tempfile.TemporaryDirectory() as directory, start_oncelog(Path(directory) / "data") as broker:
        for way in WAYS:
            for case in CASES:
                floor, ours = measure(case, way, chosen.rounds, broker, Path(directory))
                ratio = ours / floor
                cells = [f"{floor * 1e6:.1f}", f"{ours * 1e6:.1f}", f"{ratio:.2f}"]
                table.add(case.name, way.name, *cells, f"<= {case.goal}", verdict(ratio, case.goal))
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
