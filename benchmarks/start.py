"""How soon does a broker serve, and what does it hold while nobody asks?

From exec of the command to the first acknowledged produce (acks=all, a topic made for it), in an empty data directory
and again in the same one, with the CPU time in it (the rest is waiting for disk and machine); resident memory a
second later. `embedded()` is timed inside a process that has imported the package.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.load import TINY_RECORD, ProduceLoad, Refused
from benchmarks.peer import start_kafka
from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_oncelog
from benchmarks.wire import Connection

FIRST_PRODUCE_GOAL_S, RESIDENT_GOAL_MB, EMBEDDED_GOAL_S = 0.25, 60.0, 0.2

EMBEDDED = """
import time
import oncelog
begun = time.perf_counter()
with oncelog.embedded() as broker:
    print(time.perf_counter() - begun)
"""


def first_produce(start: Callable[[], Server], topic: bytes) -> tuple[float, float, float]:
    """Seconds from exec to the first acknowledged produce, CPU seconds of the process in them, and resident MB at rest."""
    with start() as server:
        connection = Connection(server.port)
        connection.create_topic(topic)
        produce_until_acknowledged(ProduceLoad(connection, topic, [TINY_RECORD], (-1, -1)))
        taken, cpu = time.perf_counter() - server.started_at, server.cpu_seconds()
        connection.close()
        time.sleep(1)
        return taken, cpu, server.resident_bytes() / 1e6


def produce_until_acknowledged(load: ProduceLoad) -> None:
    """Apache Kafka tells of a topic before it takes records for it, so a client must ask again."""
    while True:
        try:
            return load.run(1)
        except Refused:
            time.sleep(0.005)


def embedded() -> float:
    command = [sys.executable, "-c", EMBEDDED]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def add_starts(table: Table, name: str, start: Callable[[Path], Server], rounds: int, *, judged: bool) -> None:
    for again in (False, True):
        seconds, cpu_seconds, megabytes = [], [], []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as directory:
                if again:
                    first_produce(lambda where=Path(directory): start(where), b"first")  # type: ignore[misc]
                taken, cpu, resident = first_produce(lambda where=Path(directory): start(where), b"second")  # type: ignore[misc]
                seconds.append(taken)
                cpu_seconds.append(cpu)
                megabytes.append(resident)
        label = f"{name}, {'started again' if again else 'empty directory'}: "
        cells = ("", "", "", "")
        if judged:
            time_verdict = verdict(median(seconds), FIRST_PRODUCE_GOAL_S)
            cells = (
                f"<= {FIRST_PRODUCE_GOAL_S} s",
                time_verdict,
                f"< {RESIDENT_GOAL_MB:.0f} MB",
                verdict(median(megabytes), RESIDENT_GOAL_MB),
            )
        table.add(label + "exec to first acknowledged produce", f"{median(seconds):.3f} s", *cells[:2])
        table.add(label + "CPU of the process until then", f"{median(cpu_seconds):.3f} s", "", "")
        table.add(label + "resident, idle", f"{median(megabytes):.0f} MB", *cells[2:])


def run(chosen: Options) -> None:
    table = Table(
        "Start and memory",
        "Oncelog" + (" beside Apache Kafka" if chosen.peer_jars else " against its goals") + ", medians.",
        ["what", "measured", "goal", ""],
    )
    add_starts(table, "oncelog", start_oncelog, chosen.rounds, judged=True)
    ready = median([embedded() for _ in range(chosen.rounds)])
    table.add(
        "oncelog.embedded() ready, once imported",
        f"{ready:.3f} s",
        f"<= {EMBEDDED_GOAL_S} s",
        verdict(ready, EMBEDDED_GOAL_S),
    )
    if chosen.peer_jars:
        jars = chosen.peer_jars
        add_starts(table, "kafka", lambda directory: start_kafka(jars, directory), 2, judged=False)
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
