"""`oncelog demo`: orders go through three workers, exactly once, while a worker and the broker are killed.

Orders come in on one topic. Each worker reads some, makes of each a payment and a shipment, and commits both together with how far
it has read (demo_worker.py). In the middle one worker is killed with SIGKILL, later the broker, and both are started again.
At the end a new reader reads everything that is committed, and it is compared with what was sent (demo_verdict.py).

Everything is temporary: no process and no file is left, whichever way the demo ends. Signals only set a flag that every wait looks
at, so that no moment is a bad one for Ctrl-C.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from oncelog.cli.demo_processes import WORKERS, DemoFailed, Processes
from oncelog.cli.demo_progress import Progress

if TYPE_CHECKING:
    from oncelog.cli.demo_story import Outcome

INTRODUCTION = """\
Oncelog demo: exactly once, whoever is killed.
  {orders:,} orders go to {workers} workers (confluent-kafka {version}). Each order becomes a payment and a shipment, written in one
  transaction together with how far the worker has read. One worker and the broker are killed (SIGKILL) on the way, and
  started again. Then everything is read back and compared with what was sent. Takes less than a minute.
"""
FEWEST_ORDERS = 100
FAILED = 1
CANNOT_START = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--orders", type=_count, default=20_000, help="how many to send (%(default)s)")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < FEWEST_ORDERS:
        raise argparse.ArgumentTypeError(f"{text} is too few to be in the middle of: {FEWEST_ORDERS} or more")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    try:
        import confluent_kafka
    except ImportError:
        print("oncelog: the demo needs a Kafka client: pip install 'oncelog[demo]'", file=sys.stderr)
        return CANNOT_START
    version = confluent_kafka.__version__
    print(INTRODUCTION.format(orders=arguments.orders, workers=len(WORKERS), version=version), flush=True)
    progress = Progress(sys.stdout)
    try:
        with _signals() as received:
            return _run(arguments.orders, progress, received)
    except Stopped as stopped:
        progress.end()
        print(f"stopped by {stopped}: nothing is left running, nothing is left on disk", file=sys.stderr)
        return 128 + stopped.number


def _run(orders: int, progress: Progress, received: list[int]) -> int:
    from oncelog.cli.demo_story import tell

    def check() -> None:
        if received:
            raise Stopped(received[0])

    with tempfile.TemporaryDirectory(prefix="oncelog-demo-") as directory, Processes(Path(directory)) as processes:
        try:
            outcome = tell(processes, orders, progress, check)
            problems = outcome.problems
        except DemoFailed as failure:
            outcome, problems = None, [str(failure)]
        progress.end()
        printed = processes.printed() if problems else ""
    if outcome is not None:
        print(_table(outcome))
    if problems:
        print(f"\noncelog: the demo FAILED: {', '.join(problems)}\n{printed}", file=sys.stderr)
        return FAILED
    print("\nNothing lost, nothing doubled, nothing torn.")
    return 0


def _table(outcome: "Outcome") -> str:
    verdict = outcome.verdict
    rows = [
        ("sent", f"{verdict.sent:,}", "orders, acknowledged by the broker"),
        ("arrived", f"{verdict.arrived:,}", "orders, each as a payment and a shipment"),
        ("lost", f"{verdict.lost:,}", ""),
        ("duplicated", f"{verdict.duplicated:,}", ""),
        ("torn transactions", f"{verdict.torn:,}", f"of {verdict.transactions:,} that committed"),
        (
            "transactions/s",
            f"{verdict.transactions / outcome.seconds:,.0f}",
            f"over {outcome.seconds:.1f} s, outages included",
        ),
        ("aborted records", f"{outcome.aborted_records:,}", "in the log, never seen by readers of committed data"),
        ("kills", f"{len(outcome.killed)}", ", ".join(outcome.killed)),
    ]
    if verdict.unexpected:
        rows.append(("never sent", f"{verdict.unexpected:,}", "records of orders that nobody sent"))
    return "\n".join(_aligned(rows))


def _aligned(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    width = max(len(value) for _, value, _ in rows)
    for name, value, meaning in rows:
        yield f"  {name:<18} {value:>{width}}  {meaning}".rstrip()


class Stopped(Exception):
    """Somebody pressed Ctrl-C, closed the terminal or sent SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that came in and ask the demo to end."""
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
