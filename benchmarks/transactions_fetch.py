"""What does read_committed cost over read_uncommitted where many transactions were aborted?

A partition whose segments hold 1,000 aborted transactions each, among as many committed ones; in segments of 17 MB they stand
close, in those of 66 MB less so (by default a segment has 1 GB). One consumer reads it from
the beginning to the end, 1 MB at a time, from the page cache, under one isolation level and the other in turns. Both get
the same bytes; under read_committed the broker also finds and names the aborted transactions of each piece. Compared are
the CPU of the broker process per MB, and the clock.
"""

import struct
import tempfile
import time
from pathlib import Path

from benchmarks.load import KILOBYTE_RECORD
from benchmarks.report import Options, Table, median, options, verdict
from benchmarks.servers import Server, start_oncelog
from benchmarks.transactions_wire import ProducerV2, TransactionConnection, WireClients
from benchmarks.wire import Connection, fetch_frame

GOAL = 1.10
TOPIC = b"aborted"
ABORTED_PER_SEGMENT = 1_000
SEGMENTS = 2
RECORDS = (KILOBYTE_RECORD * 32, KILOBYTE_RECORD * 8)
"""What the one record of a transaction is."""
MAX_BYTES = 1 << 20
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Reader:
    """Fetches the partition from the beginning to the end, the same pieces each time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._frame = fetch_frame(TOPIC, 0, MAX_BYTES)
        marker = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, MAX_BYTES)
        self._offset_at = self._frame.index(marker) + 8
        self._isolation_at = self._frame.index(struct.pack(">iiii", -1, 500, 1, MAX_BYTES)) + 16
        self.aborted = 0
        self.offsets = self._find_pieces()

    def _fetch(self, offset: int, isolation: int) -> memoryview:
        self._frame[self._offset_at : self._offset_at + 8] = offset.to_bytes(8)
        self._frame[self._isolation_at] = isolation
        return self._connection.call(self._frame)

    def _find_pieces(self) -> list[int]:
        offsets = [0]
        while True:
            answer = self._fetch(offsets[-1], READ_COMMITTED)
            # Header, throttle time, error, session, one topic with its name, one partition with its index, its error.
            at = 4 + 1 + 4 + 2 + 4 + 1 + 1 + len(TOPIC) + 1 + 4
            error, high_watermark, _, _ = struct.unpack_from(">hqqq", answer, at)
            if error:
                raise RuntimeError(f"the fetch was refused with error code {error}")
            aborted, at = read_uvarint(answer, at + 26)
            self.aborted += aborted - 1
            size, at = read_uvarint(answer, at + (aborted - 1) * 17 + 4)
            end, next_offset = at + size - 1, offsets[-1]
            while at < end:
                base_offset, length = struct.unpack_from(">qi", answer, at)
                next_offset = base_offset + struct.unpack_from(">i", answer, at + 23)[0] + 1
                at += 12 + length
            if next_offset >= high_watermark:
                return offsets
            offsets.append(next_offset)

    def read_through(self, isolation: int) -> int:
        """Bytes received."""
        return sum(len(self._fetch(offset, isolation)) for offset in self.offsets)


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def segment_bytes(record: bytes) -> int:
    """Room for aborted and committed transactions, a batch and a marker each."""
    return 2 * ABORTED_PER_SEGMENT * (len(record) + 2 * 78)


def fill(port: int, record: bytes) -> None:
    clients = WireClients(
        [
            ProducerV2(TransactionConnection(port), name, TOPIC, 0, record, committed=committed)
            for name, committed in ((b"keeps", True), (b"aborts", False))
        ]
    )
    clients.drive(600, 2 * ABORTED_PER_SEGMENT * SEGMENTS)
    clients.close()


def read(broker: Server, reader: Reader, isolation: int) -> tuple[float, float]:
    """CPU seconds of the broker and seconds, per MB."""
    before, begun_at = broker.cpu_seconds(), time.perf_counter()
    megabytes = reader.read_through(isolation) / 1e6
    return (broker.cpu_seconds() - before) / megabytes, (time.perf_counter() - begun_at) / megabytes


def measure(record: bytes, rounds: int) -> tuple[Reader, list[tuple[float, float]]]:
    """What was read, and per MB CPU and clock of either level: read_uncommitted, read_committed."""
    settings = {"log.segment.bytes": str(segment_bytes(record))}
    levels = (READ_UNCOMMITTED, READ_COMMITTED)
    turns: dict[int, list[tuple[float, float]]] = {level: [] for level in levels}
    with tempfile.TemporaryDirectory() as directory, start_oncelog(Path(directory) / "data", settings) as broker:
        TransactionConnection(broker.port).create_topic(TOPIC)
        fill(broker.port, record)
        reader = Reader(Connection(broker.port))
        for round_ in range(rounds + 1):
            for level in levels:
                taken = read(broker, reader, level)
                if round_:  # the first one warms both
                    turns[level].append(taken)
    cpu_and_clock = [
        (median([cpu for cpu, _ in turns[level]]), median([clock for _, clock in turns[level]])) for level in levels
    ]
    return reader, cpu_and_clock


def run(chosen: Options) -> None:
    table = Table(
        "read_committed beside read_uncommitted",
        f"{SEGMENTS} segments with {ABORTED_PER_SEGMENT:,} aborted transactions each, fetched 1 MB at a time, {chosen.rounds} "
        f"turns each, medians.",
        [
            "segments of",
            "aborted in an answer",
            "per MB",
            "read_uncommitted µs",
            "read_committed µs",
            "ratio",
            "goal",
            "",
        ],
    )
    for record in RECORDS:
        reader, (plain, committed) = measure(record, chosen.rounds)
        found = (f"{segment_bytes(record) / 1e6:.0f} MB", f"{reader.aborted / len(reader.offsets):.0f}")
        for what, uncommitted_s, committed_s in zip(("broker CPU", "clock"), plain, committed, strict=True):
            ratio = committed_s / uncommitted_s
            cells = (f"{uncommitted_s * 1e6:.0f}", f"{committed_s * 1e6:.0f}", f"{ratio:.2f}")
            table.add(*found, what, *cells, f"<= {GOAL}", verdict(ratio, GOAL))
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
