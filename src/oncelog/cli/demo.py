"""`oncelog demo`: a broker, a real client that produces and consumes, and a count of what arrived.

The records of a partition carry rising numbers, so that a lost, a doubled and a displaced one all show. The broker is a
process of its own, as one that serves many clients would be. Everything is temporary: nothing runs and nothing stays on disk
afterwards.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TOPIC = "demo"
GIVE_UP_SECONDS = 50
MOST_UNDER_WAY = 20_000
#: A terminal has one line that moves; a file gets a line each time, so less often.
PROGRESS_EVERY_SECONDS = 0.5 if sys.stdout.isatty() else 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=500_000, help="how many to send (%(default)s)")
    parser.add_argument("--bytes", type=int, default=200, help="size of each value (%(default)s)")
    parser.add_argument("--partitions", type=int, default=3, help="partitions of the topic (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    try:
        import confluent_kafka
    except ImportError:
        print("oncelog: the demo needs a Kafka client: pip install 'oncelog[demo]'", file=sys.stderr)
        return 2
    arrivals = Arrivals(arguments.records, arguments.partitions)
    with _broker(arguments.partitions) as servers:
        print(f"sending {arguments.records:,} records with confluent-kafka {confluent_kafka.__version__}")
        seconds = _send_and_receive(confluent_kafka, servers, arguments, arrivals)
    return _result(arguments, arrivals, seconds)


@contextmanager
def _broker(partitions: int) -> Iterator[str]:
    """A broker for as long as it is needed; gives the address clients connect to."""
    with tempfile.TemporaryDirectory(prefix="oncelog-demo-") as data_dir:
        command = [sys.executable, "-m", "oncelog", "serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
        began = time.monotonic()
        with subprocess.Popen(
            [*command, "--set", f"num.partitions={partitions}"], stdout=subprocess.PIPE, text=True
        ) as broker:
            assert broker.stdout is not None
            servers = broker.stdout.readline().removeprefix("oncelog ready on ").strip()
            if not servers:
                raise SystemExit(broker.wait())
            print(f"broker on {servers}, ready {(time.monotonic() - began) * 1000:.0f} ms after it was called")
            try:
                yield servers
            finally:
                broker.terminate()


class Arrivals:
    """What the consumer saw. Record number `n` belongs to partition `n % partitions`."""

    def __init__(self, records: int, partitions: int) -> None:
        self.count = 0
        self.duplicated = 0
        self.out_of_order = 0
        self._seen = bytearray(records)
        self._last = [-1] * partitions

    def add(self, number: int) -> None:
        self.count += 1
        partition = number % len(self._last)
        if self._seen[number]:
            self.duplicated += 1
        elif number < self._last[partition]:
            self.out_of_order += 1
        self._seen[number] = 1
        self._last[partition] = max(self._last[partition], number)

    @property
    def complete(self) -> bool:
        return self.count - self.duplicated == len(self._seen)

    @property
    def lost(self) -> int:
        return len(self._seen) - sum(self._seen)


def _send_and_receive(client: Any, servers: str, arguments: argparse.Namespace, arrivals: Arrivals) -> float:
    """Seconds from the first record sent to the last one received."""
    acknowledged = [0]

    def on_delivery(error: object, _: object) -> None:
        if error is None:
            acknowledged[0] += 1

    producer = client.Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
    padding = b"." * max(0, arguments.bytes - 8)
    began = time.monotonic()
    deadline = began + GIVE_UP_SECONDS
    receiver = threading.Thread(target=_receive, args=(client, servers, arrivals, deadline))
    for number in _paced(arguments.records, acknowledged, arrivals):
        value = number.to_bytes(8, "big") + padding
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % arguments.partitions, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.05)
        if number == 0:
            # It makes the topic, so that the consumer finds it at once.
            producer.flush(10)
            receiver.start()
        producer.poll(0)
        # Not too far ahead, so that both sides are seen at work.
        while number - arrivals.count > MOST_UNDER_WAY and time.monotonic() < deadline:
            producer.poll(0.01)
    producer.flush(max(1, deadline - time.monotonic()))
    while receiver.is_alive():
        receiver.join(PROGRESS_EVERY_SECONDS)
        _show_progress(arguments.records, acknowledged[0], arrivals.count)
    seconds = time.monotonic() - began
    print()
    return seconds


def _paced(records: int, acknowledged: list[int], arrivals: Arrivals) -> Iterator[int]:
    """The numbers of the records, with the progress shown now and then."""
    shown = time.monotonic()
    for number in range(records):
        yield number
        if number % 1000 == 0 and time.monotonic() - shown > PROGRESS_EVERY_SECONDS:
            shown = time.monotonic()
            _show_progress(records, acknowledged[0], arrivals.count)


def _receive(client: Any, servers: str, arrivals: Arrivals, deadline: float) -> None:
    settings = {"bootstrap.servers": servers, "group.id": "demo", "auto.offset.reset": "earliest"}
    consumer = client.Consumer(settings)
    consumer.subscribe([TOPIC])
    while not arrivals.complete and time.monotonic() < deadline:
        for message in consumer.consume(2000, timeout=0.2):
            if message.error() is None:
                arrivals.add(int.from_bytes(message.value()[:8], "big"))
    consumer.close()


def _show_progress(records: int, acknowledged: int, arrived: int) -> None:
    line = f"acknowledged {acknowledged:>9,} of {records:,}   arrived {arrived:>9,}"
    print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)


def _result(arguments: argparse.Namespace, arrivals: Arrivals, seconds: float) -> int:
    size = arguments.records * max(8, arguments.bytes) / 1e6
    rows = [
        ("sent", f"{arguments.records:,}"),
        ("arrived", f"{arrivals.count:,}"),
        ("lost", f"{arrivals.lost:,}"),
        ("duplicated", f"{arrivals.duplicated:,}"),
        ("out of order", f"{arrivals.out_of_order:,}"),
        ("seconds", f"{seconds:.1f}"),
        ("records/s", f"{arguments.records / seconds:,.0f}"),
        ("MB/s in, and out", f"{size / seconds:.1f}"),
    ]
    width = max(len(value) for _, value in rows)
    for name, value in rows:
        print(f"  {name:<17} {value:>{width}}")
    return 0 if arrivals.complete and not (arrivals.duplicated or arrivals.out_of_order) else 1
