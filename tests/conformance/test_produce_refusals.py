"""The column `kafka` of tests/unit/records/produce_cases.py, asked of a real Apache Kafka over the wire.

ONCELOG_PEER_JARS=<directory with Kafka's jars> pytest tests/conformance
"""

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncelog.model.error_code import ErrorCode
from tests.conformance.peer import Peer
from tests.unit.records.produce_cases import CASES, Case


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with Peer(Path(tmp_path_factory.mktemp("kafka"))) as peer:
        yield peer


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def call(peer: Peer, api_key: int, version: int, body: bytes) -> bytes:
    frame = struct.pack(">hhi", api_key, version, 1) + text("conformance") + body
    with socket.create_connection(("127.0.0.1", peer.port), timeout=20) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        reply = connection.makefile("rb")
        (size,) = struct.unpack(">i", reply.read(4))
        return reply.read(size)[4:]


def make_topic(peer: Peer, name: str, configs: dict[str, str]) -> None:
    body = struct.pack(">i", 1) + text(name) + struct.pack(">ihi", 1, 1, 0) + struct.pack(">i", len(configs))
    body += b"".join(text(key) + text(value) for key, value in configs.items())
    call(peer, 19, 2, body + struct.pack(">ib", 10_000, 0))


def produce(peer: Peer, topic: str, records: bytes, version: int) -> tuple[ErrorCode, tuple[int, ...]]:
    body = struct.pack(">hhi", -1, 1, 5000) + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0)
    reply = call(peer, 0, version, body + struct.pack(">i", len(records)) + records)
    at = 4 + 2 + len(topic) + 4
    (code,) = struct.unpack_from(">h", reply, at + 4)
    indexes = []
    if version >= 8:
        at += 4 + 2 + 8 + 8 + 8
        (count,) = struct.unpack_from(">i", reply, at)
        at += 4
        for _ in range(count):
            index, length = struct.unpack_from(">ih", reply, at)
            indexes.append(index)
            at += 6 + max(length, 0)
    return ErrorCode(code), tuple(indexes)


@pytest.fixture(scope="module")
def topics(peer: Peer) -> dict[tuple[tuple[str, str], ...], str]:
    wanted = {tuple(sorted(case.topic.items())) for case in CASES}
    made = {configs: f"topic-{number}" for number, configs in enumerate(sorted(wanted))}
    for configs, name in made.items():
        make_topic(peer, name, dict(configs))
    deadline = time.monotonic() + 20
    for name in made.values():
        while produce(peer, name, b"", 8)[0] in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    return made


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kafka_answers_as_the_table_says(
    peer: Peer, topics: dict[tuple[tuple[str, str], ...], str], case: Case
) -> None:
    topic = topics[tuple(sorted(case.topic.items()))]

    code, record_errors = produce(peer, topic, case.data(int(time.time() * 1000)), case.version)

    assert code == case.kafka
    if case.kafka == case.ours:
        assert record_errors == case.record_errors
