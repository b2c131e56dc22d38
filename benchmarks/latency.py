"""How long does a small request wait beside a big one?

A tiny produce (one record of 100 bytes, one in flight) alone, and beside a producer of 1 MB requests that keeps five
in flight and so never lets the broker rest. The same is measured on the floor, which shows how much of the waiting
the machine itself causes.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load import KILOBYTE_RECORD, TINY_RECORD, ProduceLoad
from benchmarks.report import Options, Table, median, options, percentile, verdict
from benchmarks.servers import Server, start_floor, start_oncelog, touch_memory
from benchmarks.wire import Connection, produce_response

GOAL = 10.0
QUIET, BIG = b"tiny", b"huge"
"""Topic names of one length: the floor gives one reply to both."""
REQUESTS_PER_TURN = 1_000


def latencies(load: ProduceLoad, requests: int) -> list[float]:
    taken = []
    for _ in range(requests):
        start = time.perf_counter()
        load.run(1)
        taken.append(time.perf_counter() - start)
    return taken


def saturate(port: int, producer: tuple[int, int], sent: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
    load = ProduceLoad(Connection(port), BIG, [KILOBYTE_RECORD] * 1_000, producer)
    while True:
        load.run(20, in_flight=5)
        sent.value += 20


@contextmanager
def saturated(port: int, producer: tuple[int, int]) -> "Iterator[multiprocessing.sharedctypes.Synchronized[int]]":
    sent = multiprocessing.Value("q", 0)
    process = multiprocessing.Process(target=saturate, args=(port, producer, sent), daemon=True)
    process.start()
    while sent.value < 20:
        time.sleep(0.01)
    yield sent
    process.terminate()
    process.join()


def measure(
    server: Server, load: ProduceLoad, big: Connection | None, rounds: int
) -> tuple[list[float], list[float], float]:
    """Quiet latencies, latencies beside the big producer, and that one's MB per second."""
    quiet: list[float] = []
    beside: list[float] = []
    rates = []
    latencies(load, REQUESTS_PER_TURN)  # warm
    for _ in range(rounds):
        quiet += latencies(load, REQUESTS_PER_TURN)
        producer = big.producer_id() if big else (1, 0)
        with saturated(server.port, producer) as sent:
            before, start = sent.value, time.perf_counter()
            beside += latencies(load, REQUESTS_PER_TURN)
            rates.append((sent.value - before) / (time.perf_counter() - start))
    return quiet, beside, median(rates)


def run(chosen: Options) -> None:
    table = Table(
        "A tiny produce beside a saturating 1 MB producer",
        f"Alone and beside it, {chosen.rounds} turns of {REQUESTS_PER_TURN} requests; the floor shows the machine.",
        [
            "server",
            "1 MB producer",
            "quiet p50 µs",
            "quiet p99 µs",
            "beside p50 µs",
            "beside p99 µs",
            "p99 ratio",
            "goal",
            "",
        ],
    )
    with tempfile.TemporaryDirectory() as name, start_oncelog(Path(name) / "data") as broker:
        directory = Path(name)
        connection = Connection(broker.port)
        for topic in (QUIET, BIG):
            connection.create_topic(topic)
        on_broker = ProduceLoad(connection, QUIET, [TINY_RECORD], connection.producer_id())
        touch_memory(2 << 30, directory)
        with start_floor(directory / "floor.log", produce_response(QUIET), records_at=on_broker.records_at) as floor:
            on_floor = ProduceLoad(Connection(floor.port), QUIET, [TINY_RECORD], (1, 0))
            for server, load, big in ((floor, on_floor, None), (broker, on_broker, Connection(broker.port))):
                quiet, beside, rate = measure(server, load, big, chosen.rounds)
                figures = [percentile(quiet, 50), percentile(quiet, 99), percentile(beside, 50), percentile(beside, 99)]
                ratio = figures[3] / figures[1]
                cells = [f"{figure * 1e6:.0f}" for figure in figures]
                goal = (f"<= {GOAL:.0f}", verdict(ratio, GOAL)) if server is broker else ("", "")
                table.add(server.name, f"{rate:.0f} MB/s", *cells, f"{ratio:.1f}", *goal)
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
