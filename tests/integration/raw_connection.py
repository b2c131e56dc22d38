"""A client that may do anything: bytes by hand over a blocking socket, beside a client that does everything right.

Tests of bad input abuse a broker over a `RawConnection` while a `HealthyProducer` keeps working: a broker that
survives but lets others wait has failed.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from oncelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from oncelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from oncelog.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from oncelog.records.builder import build_batch
from tests.integration.topics import unique

T = TypeVar("T")

#: Long, because test machines are busy: no test waits for it unless something is wrong.
PATIENCE_S = 20.0


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class RawConnection:
    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self.send(struct.pack(">i", len(payload)) + payload)

    def receive(self, size: int) -> bytes:
        """Exactly `size` bytes. EOFError when the broker closed before."""
        data = bytearray()
        while len(data) < size:
            received = self.socket.recv(size - len(data))
            if not received:
                raise EOFError(f"the broker closed after {len(data)} of {size} bytes")
            data += received
        return bytes(data)

    def response(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive(4))
        return self.receive(size)

    def call(self, message: object, version: int, answer: type[T], correlation_id: int = 1) -> T:
        self.send(encode_request(correlation_id, "raw", message, version))
        answered, decoded = decode_response(answer, version, self.response())
        assert answered == correlation_id
        return decoded

    def is_closed(self) -> bool:
        """The broker closes, without a byte more, before patience ends. TimeoutError when it neither closes nor speaks."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@contextmanager
def crowd(port: int, size: int) -> Iterator[list[RawConnection]]:
    with ExitStack() as all_closed:
        yield [all_closed.enter_context(RawConnection(port)) for _ in range(size)]


def create_topic(connection: RawConnection, partitions: int = 1) -> str:
    name = unique("topic")
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 5, CreateTopicsResponse)
    assert [result.error_code for result in response.topics] == [0]
    # Apache Kafka answers before its partitions are there.
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        (topic_made,) = connection.call(asked, 4, MetadataResponse).topics
        if topic_made.error_code == 0 and len(topic_made.partitions) == partitions:
            break
    return name


def produce_request(topic: str, value: bytes, partition: int = 0) -> ProduceRequest:
    batch = build_batch([(None, value)], timestamp_ms=1_700_000_000_000)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])


def produce(connection: RawConnection, topic: str, value: bytes) -> PartitionProduceResponse:
    response = connection.call(produce_request(topic, value), 9, ProduceResponse)
    return response.responses[0].partition_responses[0]


def fetch_request(topic: str, *, max_wait_ms: int = 0, min_bytes: int = 0, max_bytes: int = 2**31 - 1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics)


class HealthyProducer:
    """Produces one small record after the other, and remembers the first thing that went wrong."""

    def __init__(self, port: int) -> None:
        self._connection = RawConnection(port)
        self._topic = create_topic(self._connection)
        self._stopped = threading.Event()
        self._problem: BaseException | None = None
        self.acknowledged = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                result = produce(self._connection, self._topic, b"still here")
                assert result.error_code == 0
                assert result.base_offset == self.acknowledged
                self.acknowledged += 1
                self._stopped.wait(0.002)
        except BaseException as problem:
            self._problem = problem

    def must_be_well(self) -> None:
        """It gets an acknowledgement from now on, and nothing went wrong before."""
        before = self.acknowledged
        waiting = threading.Event()
        for _ in range(int(PATIENCE_S / 0.005)):
            if self.acknowledged > before or self._problem is not None:
                break
            waiting.wait(0.005)
        assert self._problem is None, f"a healthy producer beside the bad client failed: {self._problem!r}"
        assert self.acknowledged > before, "a healthy producer beside the bad client gets no answer any more"

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._connection.close()
