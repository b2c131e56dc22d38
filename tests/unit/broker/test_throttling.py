"""Every answer passes through the quota: it says how long the client is held back, and the connection is muted for as long."""

from typing import Any

import pytest

from oncelog.broker.connection import Connection
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tests.unit.broker.admin_nodes import AdminNode
from tests.unit.broker.test_produce_shortcut import Server, Wire


class Limited:
    """Holds back one client."""

    unlimited = False

    def throttle_ms(self, principal: str, client_id: str, api_key: int, request_bytes: int) -> int:
        return 250 if client_id == "greedy" else 0


class HeldTimers:
    """Timers that run when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Any]] = []

    def call_at(self, monotonic_ms: int, run: Any) -> Any:
        self.waiting.append((monotonic_ms, run))

    def call_soon(self, run: Any) -> None:
        run()

    def in_thread(self, work: Any) -> Any:
        raise AssertionError("nothing here needs a thread")


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path)
    admin.node.quotas = Limited()
    admin.node.timers = HeldTimers()
    yield admin
    admin.close()


def connect(admin: AdminNode) -> tuple[Connection, Wire]:
    wire = Wire()
    connection = Connection(Server(admin.node))  # type: ignore[arg-type]
    connection.connection_made(wire)  # type: ignore[arg-type]
    return connection, wire


def end_txn(client_id: str, correlation_id: int) -> bytes:
    return encode_request(correlation_id, client_id, EndTxnRequest(transactional_id="billing", producer_id=7), 3)


def send(connection: Connection, frames: bytes) -> None:
    connection.get_buffer(-1)[: len(frames)] = frames
    connection.buffer_updated(len(frames))


@pytest.mark.seed("T4")
def test_an_answer_over_the_quota_says_so_and_mutes_its_connection(admin):
    connection, wire = connect(admin)
    send(connection, end_txn("greedy", 1) + end_txn("greedy", 2))

    (first,) = wire.sent
    correlation_id, answer = decode_response(EndTxnResponse, 3, first[4:])
    assert (correlation_id, answer.throttle_time_ms) == (1, 250)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    ((_, unmute),) = admin.node.timers.waiting
    unmute()
    assert [decode_response(EndTxnResponse, 3, frame[4:])[0] for frame in wire.sent] == [1, 2]


@pytest.mark.seed("T4")
def test_who_is_within_the_quota_is_not_held_back(admin):
    connection, wire = connect(admin)
    send(connection, end_txn("modest", 1) + end_txn("modest", 2))
    answers = b"".join(wire.sent)
    size = int.from_bytes(answers[:4], "big")
    _, answer = decode_response(EndTxnResponse, 3, answers[4 : 4 + size])
    assert answer.throttle_time_ms == 0
    assert len(answers) == 2 * (4 + size)
    assert admin.node.timers.waiting == []
