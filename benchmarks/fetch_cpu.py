"""What does a fetch of 1 MB cost the broker, over a server that only reads the file and sends?

One consumer reads a partition of 1 MB batches (1,000 records of 1 KB), one batch a request, the partition over and
over from the page cache. Floor and broker take turns, and the medians of the turns are compared: CPU of the whole
server process per request.
"""

import tempfile
from pathlib import Path

from benchmarks.load import KILOBYTE_RECORD, FetchLoad, ProduceLoad
from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_floor, start_oncelog
from benchmarks.wire import Connection, fetch_response_head, record_batch

GOAL = 1.5
TOPIC = b"fetched"
RECORDS_PER_BATCH = 1_000
BATCHES = 64
REQUESTS_PER_TURN = 150
MAX_BYTES = 1 << 20
"""Room for one of the batches and not for two."""


def cpu_per_request(server: Server, load: FetchLoad) -> float:
    before = server.cpu_seconds()
    load.run(REQUESTS_PER_TURN)
    return (server.cpu_seconds() - before) / REQUESTS_PER_TURN


def fetch_load(port: int) -> FetchLoad:
    return FetchLoad(Connection(port), TOPIC, MAX_BYTES, RECORDS_PER_BATCH, BATCHES)


def measure(rounds: int, broker: Server, directory: Path) -> tuple[float, float]:
    values = [KILOBYTE_RECORD] * RECORDS_PER_BATCH
    producing = Connection(broker.port)
    producing.create_topic(TOPIC)
    ProduceLoad(producing, TOPIC, values, producing.producer_id()).run(BATCHES)
    batch = record_batch(values)
    read_by_floor = directory / "floor.log"
    read_by_floor.write_bytes(batch * BATCHES)
    with start_floor(read_by_floor, fetch_response_head(TOPIC, len(batch)), read_bytes=len(batch)) as floor:
        on_floor, on_broker = fetch_load(floor.port), fetch_load(broker.port)
        floor_seconds, broker_seconds = [], []
        for round_ in range(rounds + 1):
            on_floor_turn, on_broker_turn = cpu_per_request(floor, on_floor), cpu_per_request(broker, on_broker)
            if round_:  # the first turn warms both
                floor_seconds.append(on_floor_turn)
                broker_seconds.append(on_broker_turn)
    return median(floor_seconds), median(broker_seconds)


def run(chosen: Options) -> None:
    table = Table(
        "CPU per fetch of 1 MB",
        f"Oncelog beside the floor (pread, send), {chosen.rounds} turns each, medians.",
        ["request", "floor µs", "oncelog µs", "ratio", "goal", ""],
    )
    with tempfile.TemporaryDirectory() as directory, start_oncelog(Path(directory) / "data") as broker:
        floor, ours = measure(chosen.rounds, broker, Path(directory))
    ratio = ours / floor
    cells = [f"{floor * 1e6:.1f}", f"{ours * 1e6:.1f}", f"{ratio:.2f}"]
    table.add("1 MB: one batch of 1,000 records", *cells, f"<= {GOAL}", verdict(ratio, GOAL))
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
