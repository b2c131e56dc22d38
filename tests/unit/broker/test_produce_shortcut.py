"""The short way of a repeated produce gives the same answers and the same log as the usual one."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.access.authorizer import Operation
from oncelog.broker.connection import Connection
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from tests.unit.broker.admin_nodes import AdminNode


class Wire:
    """Stands where the socket does, and keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def write(self, data: bytes) -> None:
        self.sent.append(bytes(data))

    def writelines(self, parts: list[bytes]) -> None:
        self.sent.append(b"".join(parts))

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Server:
    """As much of a server as a connection asks for."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.scratch = memoryview(bytearray(1 << 20))
        self.max_frame_bytes = 100 << 20

    def next_connection_id(self) -> int:
        return 1

    def admit(self, connection: Connection) -> None: ...


class Client:
    def __init__(self, path: Path, *, shortcuts: bool) -> None:
        path.mkdir()
        self.admin = AdminNode(path)
        self.admin.create("orders", 3)
        self.admin.create("o", 1)
        self.wire = Wire()
        self.connection = Connection(Server(self.admin.node))  # type: ignore[arg-type]
        self.connection.connection_made(self.wire)  # type: ignore[arg-type]
        self.shortcuts = shortcuts

    def send(self, frame: bytes) -> bytes | None:
        if not self.shortcuts:
            self.connection._produces = None
        before = len(self.wire.sent)
        buffer = self.connection.get_buffer(-1)
        buffer[: len(frame)] = frame
        self.connection.buffer_updated(len(frame))
        return self.wire.sent[-1] if len(self.wire.sent) > before else None

    def log(self, topic: str, index: int) -> bytes:
        partition = self.admin.node.partitions.get(topic, index)
        read = partition.log.read(0, 1 << 20, partition.log.log_end_offset, True)
        return bytes(read.records)


def batch(value: bytes = b"x", **fields: Any) -> bytes:
    return build_batch([(None, value)], timestamp_ms=int(time.time() * 1000), **fields)


def produce(
    records: bytes | None,
    version: int,
    *,
    topic: str = "orders",
    index: int = 0,
    acks: int = -1,
    correlation_id: int = 1,
    node: Any = None,
) -> bytes:
    data = [PartitionProduceData(index=index, records=records)]
    topic_id = node.cluster.topics[topic].topic_id if node is not None and version >= 13 else bytes(16)
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
    return encode_request(
        correlation_id, "client", ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics), version
    )


def answer(frame: bytes | None, version: int) -> tuple[int, ProduceResponse]:
    assert frame is not None
    return decode_response(ProduceResponse, version, frame[4:])


@pytest.mark.parametrize("version", range(3, 14))
def test_in_every_version_the_answer_is_the_same(tmp_path, version):
    short, usual = Client(tmp_path / "short", shortcuts=True), Client(tmp_path / "usual", shortcuts=False)
    for number in range(5):
        records = batch(b"v" * number * 40)
        replies = [
            client.send(produce(records, version, correlation_id=100 + number, node=client.admin.node))
            for client in (short, usual)
        ]
        correlation_id, response = answer(replies[0], version)
        assert correlation_id == 100 + number
        assert response.responses[0].partition_responses[0].base_offset == number
        if version < 13:  # from then on the answer has the topic's id, which is drawn
            assert replies[0] == replies[1]
    assert short.log("orders", 0) == usual.log("orders", 0)


def test_the_short_way_is_taken(tmp_path, monkeypatch):
    client = Client(tmp_path / "data", shortcuts=True)
    client.send(produce(batch(), 9))
    monkeypatch.setattr("oncelog.broker.connection.route", lambda *_: pytest.fail("decoded again"))
    _, response = answer(client.send(produce(batch(), 9)), 9)
    assert response.responses[0].partition_responses[0].base_offset == 1


def test_a_deleted_topic_is_told_so(tmp_path):
    client = Client(tmp_path / "data", shortcuts=True)
    client.send(produce(batch(), 9))
    client.admin.node.partitions.remove("orders")
    _, response = answer(client.send(produce(batch(), 9)), 9)
    assert response.responses[0].partition_responses[0].error_code == 3


def test_access_is_asked_for_every_produce(tmp_path):
    client = Client(tmp_path / "data", shortcuts=True)
    client.send(produce(batch(), 9))
    client.admin.access.forbidden.add((Operation.WRITE, "orders"))
    _, response = answer(client.send(produce(batch(), 9)), 9)
    assert response.responses[0].partition_responses[0].error_code == 29


def test_a_repeat_is_answered_with_its_old_offset(tmp_path):
    client = Client(tmp_path / "data", shortcuts=True)
    first = batch(producer_id=5, producer_epoch=0, base_sequence=0)
    second = batch(producer_id=5, producer_epoch=0, base_sequence=1)
    offsets = []
    for records in (first, second, second, first):
        _, response = answer(client.send(produce(records, 9)), 9)
        offsets.append(response.responses[0].partition_responses[0].base_offset)
    assert offsets == [0, 1, 1, 0]


frames = st.tuples(
    st.sampled_from([7, 8, 9, 12]),
    st.sampled_from([("orders", 0), ("orders", 1), ("orders", 2), ("o", 0), ("missing", 0)]),
    st.sampled_from([-1, 1, 7]),
    st.one_of(
        st.binary(max_size=300).map(batch),
        st.just(None),
        st.binary(max_size=80),
        st.just(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)),
        st.just(batch(b"z" * 500, compression=Compression.GZIP)),
        st.binary(min_size=1, max_size=3).map(lambda more: batch(b"tail") + more),
    ),
)


@given(st.lists(frames, max_size=25))
@settings(max_examples=40)
def test_any_history_has_the_same_answers_and_leaves_the_same_log(tmp_path_factory, history):
    path = tmp_path_factory.mktemp("shortcut")
    short, usual = Client(path / "short", shortcuts=True), Client(path / "usual", shortcuts=False)
    for number, (version, (topic, index), acks, records) in enumerate(history):
        frame = produce(records, version, topic=topic, index=index, acks=acks, correlation_id=number)
        assert short.send(frame) == usual.send(frame)
    for topic, index in (("orders", 0), ("orders", 1), ("orders", 2), ("o", 0)):
        assert short.log(topic, index) == usual.log(topic, index)
