"""The client side of the benchmarks: blocking sockets and frames made by hand, once, before the clock runs.

It shares no code with the broker it loads and must cost less than that broker, or the wrong side is measured: a
request is a few bytes changed in a frame that is already there, one send, and one receive whose error field is looked
at.
"""

import socket
import struct
import time

from oncelog.records.crc32c import crc32c

CLIENT_ID = b"benchmark"
PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID = (
    (0, 10),
    (1, 12),
    (3, 4),
    (18, 0),
    (19, 4),
    (22, 1),
)
"""Key and version of each API in use: those librdkafka asks for where the cost matters, old simple ones elsewhere."""
COORDINATOR_LOAD_IN_PROGRESS = 14

BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_AT, CRC_FROM, SEQUENCE_AT = 17, 21, 53
"""Places in a record batch. The CRC covers all that follows it."""


def uvarint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def varint(number: int) -> bytes:
    return uvarint((number << 1) ^ (number >> 63))


def compact(text: bytes) -> bytes:
    return uvarint(len(text) + 1) + text


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def record_batch(
    values: list[bytes], producer_id: int = -1, producer_epoch: int = -1, timestamp_ms: int = 1_700_000_000_000
) -> bytes:
    records = bytearray()
    for delta, value in enumerate(values):
        record = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(record)) + record
    last = len(values) - 1
    sequence = -1 if producer_id < 0 else 0
    batch = bytearray(
        BATCH_HEADER.pack(
            0, BATCH_HEADER.size - 12 + len(records), -1, 2, 0, 0, last, timestamp_ms, timestamp_ms,
            producer_id, producer_epoch, sequence, len(values),
        )
    )  # fmt: skip
    batch += records
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))
    return bytes(batch)


def frame(api: tuple[int, int], body: bytes, *, flexible: bool) -> bytearray:
    header = struct.pack(">hhi", *api, 0) + string(CLIENT_ID) + (b"\0" if flexible else b"")
    return bytearray(struct.pack(">i", len(header) + len(body)) + header + body)


def produce_frame(topic: bytes, partition: int, batch: bytes) -> bytearray:
    data = struct.pack(">i", partition) + uvarint(len(batch) + 1) + batch + b"\0"
    body = b"\0" + struct.pack(">hi", -1, 30_000) + b"\2" + compact(topic) + b"\2" + data + b"\0\0"
    return frame(PRODUCE, body, flexible=True)


def fetch_frame(topic: bytes, partition: int, max_bytes: int) -> bytearray:
    head = struct.pack(">iiiibii", -1, 500, 1, max_bytes, 0, 0, -1)
    data = struct.pack(">iiqiqi", partition, -1, 0, -1, -1, max_bytes) + b"\0"
    return frame(FETCH, head + b"\2" + compact(topic) + b"\2" + data + b"\0" + b"\1" + b"\1" + b"\0", flexible=True)


def produce_response(topic: bytes) -> bytes:
    """What a broker answers to `produce_frame`, for the floor to give."""
    result = struct.pack(">ihqqq", 0, 0, 0, -1, 0) + b"\1" + b"\0" + b"\0"
    body = b"\0" + b"\2" + compact(topic) + b"\2" + result + b"\0" + struct.pack(">i", 0) + b"\0"
    return struct.pack(">ii", 4 + len(body), 0) + body


def fetch_response_head(topic: bytes, records_bytes: int) -> bytes:
    """What stands before the records in an answer to `fetch_frame`. The floor omits the few bytes after."""
    result = (
        struct.pack(">ihqqq", 0, 0, 1 << 40, 1 << 40, 0) + b"\0" + struct.pack(">i", -1) + uvarint(records_bytes + 1)
    )
    body = b"\0" + struct.pack(">ihi", 0, 0, 0) + b"\2" + compact(topic) + b"\2" + result
    return struct.pack(">ii", 4 + len(body) + records_bytes, 0) + body


class Connection:
    def __init__(self, port: int, buffer_bytes: int = 4 << 20) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(buffer_bytes))
        self._filled = 0
        self._taken = 0

    def close(self) -> None:
        self._socket.close()

    def send(self, request: bytes | bytearray) -> None:
        self._socket.sendall(request)

    def response(self) -> memoryview:
        """The next response without its size; good until the next call."""
        if self._taken:
            self._buffer[: self._filled - self._taken] = self._buffer[self._taken : self._filled]
            self._filled -= self._taken
            self._taken = 0
        self._receive_until(4)
        end = 4 + int.from_bytes(self._buffer[:4])
        self._receive_until(end)
        self._taken = end
        return self._buffer[4:end]

    def _receive_until(self, end: int) -> None:
        while self._filled < end:
            received = self._socket.recv_into(self._buffer[self._filled :])
            if not received:
                raise ConnectionError("the server closed the connection")
            self._filled += received

    def call(self, request: bytes | bytearray) -> memoryview:
        self.send(request)
        return self.response()

    def create_topic(self, topic: bytes, partitions: int = 1) -> None:
        body = (
            struct.pack(">i", 1)
            + string(topic)
            + struct.pack(">ihii", partitions, 1, 0, 0)
            + struct.pack(">ib", 30_000, 0)
        )
        response = bytes(self.call(frame(CREATE_TOPICS, body, flexible=False)))
        (error,) = struct.unpack_from(">h", response, 4 + 4 + 4 + 2 + len(topic))
        if error:
            raise RuntimeError(f"the topic {topic.decode()} was refused with error code {error}")

    def producer_id(self) -> tuple[int, int]:
        while True:
            response = self.call(frame(INIT_PRODUCER_ID, struct.pack(">hi", -1, 60_000), flexible=False))
            error, producer_id, epoch = struct.unpack_from(">hqh", response, 8)
            if error == COORDINATOR_LOAD_IN_PROGRESS:  # Kafka, right after its start: it has no block of ids yet
                time.sleep(0.005)
                continue
            if error:
                raise RuntimeError(f"no producer id: error code {error}")
            return int(producer_id), int(epoch)
