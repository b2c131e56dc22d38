"""How soon does a broker serve again that has many transactional ids to remember?

The ids come as clients bring them: InitProducerId for each, many at a time. Then the broker is stopped, cleanly or by SIGKILL, and
started again: seconds and CPU from exec until it says that it is ready, which is when every id is back in memory. Twice
as many ids may take twice as long and no longer.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_oncelog
from benchmarks.transactions_wire import TransactionConnection, init_producer_id_frame

COUNTS = (0, 10_000, 50_000, 100_000)
IN_FLIGHT = 50
READY_GOAL_S, LINEAR_GOAL = 5.0, 1.2
"""The second: seconds per id of the largest count over seconds per id of the one before, without what an empty start takes."""
MOST_ROUNDS = 3
"""Starts of each kind: they take seconds."""


def bring(port: int, numbers: range) -> None:
    connection = TransactionConnection(port)
    connection.initialise(b"first")
    sent = iter(numbers)
    waiting = sum(_send_next(connection, sent) for _ in range(IN_FLIGHT))
    while waiting:
        answer = connection.response()
        if error := int.from_bytes(answer[9:11]):
            raise RuntimeError(f"InitProducerId was refused with error code {error}")
        waiting += _send_next(connection, sent) - 1
    connection.close()


def _send_next(connection: TransactionConnection, numbers: Iterator[int]) -> int:
    number = next(numbers, None)
    if number is None:
        return 0
    connection.send(init_producer_id_frame(f"transactional-id-{number}".encode()))
    return 1


def stop(server: Server, *, cleanly: bool) -> None:
    if cleanly:
        server.stop()
    else:
        server.process.kill()
        server.process.wait()


def restart(data_dir: Path, *, cleanly: bool, rounds: int) -> tuple[float, float]:
    """Seconds to ready and the CPU seconds of them, medians. Before and after, the broker is stopped."""
    seconds, cpu = [], []
    for _ in range(rounds):
        server = start_oncelog(data_dir)
        seconds.append(time.perf_counter() - server.started_at)
        cpu.append(server.cpu_seconds())
        stop(server, cleanly=cleanly)
    return median(seconds), median(cpu)


def run(chosen: Options) -> None:
    rounds = min(chosen.rounds, MOST_ROUNDS)
    table = Table(
        "Start with many transactional ids",
        f"From exec to ready, medians of {rounds} starts.",
        ["transactional ids", "after", "seconds", "CPU seconds", "µs CPU per id", "goal", ""],
    )
    per_id: dict[tuple[int, bool], float] = {}
    empty_cpu: dict[bool, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory) / "data"
        brought = 0
        for count in COUNTS:
            server = start_oncelog(data_dir)
            bring(server.port, range(brought, count))
            brought = count
            for cleanly in (True, False):
                stop(server, cleanly=cleanly)
                seconds, cpu = restart(data_dir, cleanly=cleanly, rounds=rounds)
                server = start_oncelog(data_dir)
                each = ""
                if count:
                    per_id[count, cleanly] = (cpu - empty_cpu[cleanly]) / count
                    each = f"{per_id[count, cleanly] * 1e6:.1f}"
                else:
                    empty_cpu[cleanly] = cpu
                judged = (f"<= {READY_GOAL_S:g} s", verdict(seconds, READY_GOAL_S)) if count == COUNTS[-1] else ("", "")
                after = "a clean stop" if cleanly else "SIGKILL"
                table.add(f"{count:,}", after, f"{seconds:.2f}", f"{cpu:.2f}", each, *judged)
            server.stop()
    for cleanly in (True, False):
        ratio = per_id[COUNTS[-1], cleanly] / per_id[COUNTS[-2], cleanly]
        after = "a clean stop" if cleanly else "SIGKILL"
        label = f"{COUNTS[-1]:,} over {COUNTS[-2]:,}"
        table.add(label, after, "", "", f"{ratio:.2f}", f"<= {LINEAR_GOAL} (linear)", verdict(ratio, LINEAR_GOAL))
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
