"""What the generator sends: streams of produce or fetch requests over one connection, copies of one patched frame."""

import struct

from benchmarks.wire import CRC_AT, CRC_FROM, SEQUENCE_AT, Connection, fetch_frame, produce_frame, record_batch
from oncelog.records.crc32c import crc32c

KILOBYTE_RECORD = bytes(range(256)) * 4
TINY_RECORD = KILOBYTE_RECORD[:100]


class Refused(Exception):
    """The server answered with an error."""


class ProduceLoad:
    """Produce requests of one idempotent producer to one partition, one after the other."""

    def __init__(self, connection: Connection, topic: bytes, values: list[bytes], producer: tuple[int, int]) -> None:
        self.connection = connection
        batch = record_batch(values, *producer)
        self.frame = produce_frame(topic, 0, batch)
        self.records_at = self.frame.index(batch[:CRC_FROM])
        self._sequence_step = len(values)
        self._sequence = 0
        self._crc_covers = memoryview(self.frame)[self.records_at + CRC_FROM : self.records_at + len(batch)]
        # Response header, its tags, one topic with its name, one partition with its index: then the error code.
        self._error = slice(4 + 1 + 1 + 1 + len(topic) + 1 + 4, 4 + 1 + 1 + 1 + len(topic) + 1 + 4 + 2)

    def send_next(self) -> None:
        at = self.records_at
        self.frame[at + SEQUENCE_AT : at + SEQUENCE_AT + 4] = self._sequence.to_bytes(4)
        self.frame[at + CRC_AT : at + CRC_AT + 4] = crc32c(self._crc_covers).to_bytes(4)
        self._sequence += self._sequence_step
        self.connection.send(self.frame)

    def check(self, response: memoryview) -> None:
        if error := int.from_bytes(response[self._error]):
            raise Refused(f"the produce request was refused with error code {error}")

    def run(self, count: int, in_flight: int = 1) -> None:
        for _ in range(in_flight):
            self.send_next()
        for _ in range(count - in_flight):
            self.check(self.connection.response())
            self.send_next()
        for _ in range(in_flight):
            self.check(self.connection.response())


class FetchLoad:
    """Fetch requests over one partition, a batch each, from the start again when it is through."""

    def __init__(
        self, connection: Connection, topic: bytes, max_bytes: int, records_per_batch: int, batches: int
    ) -> None:
        self.connection = connection
        self.frame = fetch_frame(topic, 0, max_bytes)
        marker = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, max_bytes)
        self._offset_at = self.frame.index(marker) + 8
        self._records_per_batch = records_per_batch
        self._batches = batches
        self._next = 0
        self.least_bytes = max_bytes // 2

    def run(self, count: int) -> None:
        for _ in range(count):
            at = self._offset_at
            self.frame[at : at + 8] = (self._next * self._records_per_batch).to_bytes(8)
            self._next = (self._next + 1) % self._batches
            response = self.connection.call(self.frame)
            if len(response) < self.least_bytes:
                raise RuntimeError(f"a fetch was answered with {len(response)} bytes only")
