"""What does one more idle connection cost, and one more partition?

2,000 connections that have said hello (ApiVersions, Metadata) and then keep still; 2,000 partitions, empty and then
with a record in each. Broker memory before and after, its CPU while nobody asks for anything, and how long a start
over all those partitions takes.
"""

import resource
import tempfile
import time
from pathlib import Path

from benchmarks.load import TINY_RECORD
from benchmarks.report import Options, Table, options
from benchmarks.servers import Server, start_oncelog
from benchmarks.wire import API_VERSIONS, METADATA, Connection, frame, produce_frame, record_batch

CONNECTIONS = 2_000
TOPICS, PARTITIONS_PER_TOPIC = 20, 100
PARTITIONS = TOPICS * PARTITIONS_PER_TOPIC
IDLE_S = 5.0


def idle_cpu(server: Server) -> float:
    """The share of a core that the broker uses while it is left alone."""
    time.sleep(1)
    before = server.cpu_seconds()
    time.sleep(IDLE_S)
    return (server.cpu_seconds() - before) / IDLE_S


def add(table: Table, what: str, server: Server, before: int, count: int) -> None:
    resident = server.resident_bytes()
    cpu = idle_cpu(server)
    each = f"{(resident - before) / count / 1e3:.1f} KB" if count else ""
    cpu_each = f"{cpu / count * 1e6:.2f} µs/s" if count else ""
    table.add(what, f"{resident / 1e6:.0f} MB", each, f"{cpu:.2%}", cpu_each)


def run(chosen: Options) -> None:
    table = Table(
        "Scale at rest",
        "Oncelog beside itself with nothing to hold.",
        ["state", "resident", "memory each", "CPU at rest", "CPU each"],
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * CONNECTIONS), hard))
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        with start_oncelog(data) as broker:
            at_start = broker.resident_bytes()
            add(table, "just started", broker, at_start, 0)
            connections = [Connection(broker.port, buffer_bytes=1 << 12) for _ in range(CONNECTIONS)]
            for connection in connections:
                connection.call(frame(API_VERSIONS, b"", flexible=False))
                connection.call(frame(METADATA, b"\0\0\0\0\0", flexible=False))
            add(table, f"{CONNECTIONS:,} idle connections", broker, at_start, CONNECTIONS)
            for connection in connections:
                connection.close()
            time.sleep(1)
            without = broker.resident_bytes()
            client, begun = Connection(broker.port), time.perf_counter()
            for topic in range(TOPICS):
                client.create_topic(f"scale-{topic}".encode(), PARTITIONS_PER_TOPIC)
            made = time.perf_counter() - begun
            add(table, f"{PARTITIONS:,} empty partitions", broker, without, PARTITIONS)
            batch = record_batch([TINY_RECORD])
            for topic in range(TOPICS):
                for partition in range(PARTITIONS_PER_TOPIC):
                    client.call(produce_frame(f"scale-{topic}".encode(), partition, batch))
            add(table, f"{PARTITIONS:,} partitions with a record", broker, without, PARTITIONS)
            begun = time.perf_counter()
        stopped = time.perf_counter() - begun
        begun = time.perf_counter()
        with start_oncelog(data) as broker:
            ready = time.perf_counter() - begun
            add(table, f"started again with {PARTITIONS:,} partitions", broker, at_start, PARTITIONS)
    table.print()
    print(
        f"{PARTITIONS:,} partitions were made in {made:.2f} s, closed in {stopped:.2f} s and loaded in {ready:.2f} s."
    )


if __name__ == "__main__":
    run(options(__doc__))
