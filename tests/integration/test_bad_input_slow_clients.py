"""Clients that are slow, silent, hasty, half gone or deaf: bounded memory, answers in order, and everybody else goes on."""

import resource
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from oncelog.protocol.messages.fetch import FetchResponse
from oncelog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from oncelog.protocol.messages.produce import ProduceResponse
from tests.brokers import BrokerProcess
from tests.integration.raw_connection import (
    HealthyProducer,
    RawConnection,
    create_topic,
    crowd,
    fetch_request,
    produce,
    produce_request,
    resident_bytes,
)

MEGABYTE = 1_000_000
IDLE_CONNECTIONS = 2_000


@pytest.fixture(scope="module", autouse=True)
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One for each test: they look at its memory."""
    with BrokerProcess(tmp_path_factory.mktemp("slow") / "data") as process:
        yield process


@pytest.fixture(autouse=True)
def healthy(broker: BrokerProcess) -> Iterator[HealthyProducer]:
    producer = HealthyProducer(broker.port)
    yield producer
    assert broker.running, broker.output()[-4000:]
    producer.must_be_well()
    producer.stop()


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as connection:
        yield connection


def growth(broker: BrokerProcess, before: int) -> float:
    """In MB."""
    return (resident_bytes(broker.pid) - before) / MEGABYTE


def test_a_frame_that_arrives_byte_by_byte_is_answered(connection: RawConnection) -> None:
    topic = create_topic(connection)
    for byte in encode_request(9, "raw", produce_request(topic, b"slowly"), 9):
        connection.send(bytes([byte]))
        time.sleep(0.0005)
    correlation_id, answer = decode_response(ProduceResponse, 9, connection.response())
    assert correlation_id == 9
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_many_slow_senders_at_once_are_all_answered(broker: BrokerProcess) -> None:
    frame = encode_request(3, "raw", MetadataRequest(topics=[]), 4)
    with crowd(broker.port, 200) as connections:
        for at in range(len(frame)):
            for connection in connections:
                connection.send(frame[at : at + 1])
        for connection in connections:
            assert decode_response(MetadataResponse, 4, connection.response())[0] == 3


def test_a_large_frame_in_small_pieces_is_taken_whole(connection: RawConnection) -> None:
    topic = create_topic(connection)
    frame = encode_request(1, "raw", produce_request(topic, bytes(900_000)), 9)
    for at in range(0, len(frame), 1_400):
        connection.send(frame[at : at + 1_400])
    _, answer = decode_response(ProduceResponse, 9, connection.response())
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_frames_announced_and_never_sent_cost_what_was_sent(broker: BrokerProcess, healthy: HealthyProducer) -> None:
    before = resident_bytes(broker.pid)
    announced = struct.pack(">i", 100_000_000) + struct.pack(">hhih", 0, 9, 1, 3) + b"raw"
    with crowd(broker.port, 200) as connections:
        for connection in connections:
            connection.send(announced)
        healthy.must_be_well()
        assert growth(broker, before) < 20

        sent_each = 100_000
        for connection in connections:
            connection.send(bytes(sent_each))
        time.sleep(0.5)
        healthy.must_be_well()
        # A growing buffer is at most twice what is in it, and while it moves both are there.
        assert growth(broker, before) < 20 + 3 * len(connections) * sent_each / MEGABYTE


def test_pipelined_requests_are_answered_in_order(connection: RawConnection) -> None:
    topic = create_topic(connection)
    requests = 500
    kinds: list[tuple[object, int, type[object]]] = [
        (produce_request(topic, b"one of many"), 9, ProduceResponse),
        (MetadataRequest(topics=[]), 4, MetadataResponse),
        (ApiVersionsRequest(), 0, ApiVersionsResponse),
        (fetch_request(topic, max_bytes=1000), 11, FetchResponse),
    ]
    frames = [encode_request(number, "raw", *kinds[number % len(kinds)][:2]) for number in range(requests)]
    connection.send(b"".join(frames))
    offsets = []
    for number in range(requests):
        _, version, answer_class = kinds[number % len(kinds)]
        correlation_id, answer = decode_response(answer_class, version, connection.response())
        assert correlation_id == number
        if isinstance(answer, ProduceResponse):
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets == list(range(len(offsets)))


def test_a_quick_answer_waits_for_the_slow_one_before_it(connection: RawConnection) -> None:
    topic = create_topic(connection)
    waits = fetch_request(topic, max_wait_ms=300, min_bytes=1)
    begun = time.monotonic()
    connection.send(encode_request(1, "raw", waits, 11) + encode_request(2, "raw", ApiVersionsRequest(), 0))
    first = decode_response(FetchResponse, 11, connection.response())[0]
    assert time.monotonic() - begun > 0.25
    second = decode_response(ApiVersionsResponse, 0, connection.response())[0]
    assert [first, second] == [1, 2]


def test_a_client_that_stops_sending_still_gets_its_answers(connection: RawConnection) -> None:
    topic = create_topic(connection)
    connection.send(encode_request(1, "raw", produce_request(topic, b"last words"), 9))
    connection.send(encode_request(2, "raw", fetch_request(topic, max_wait_ms=200, min_bytes=MEGABYTE), 11))
    connection.socket.shutdown(socket.SHUT_WR)

    correlation_id, produced = decode_response(ProduceResponse, 9, connection.response())
    assert (correlation_id, produced.responses[0].partition_responses[0].error_code) == (1, ErrorCode.NONE)
    correlation_id, fetched = decode_response(FetchResponse, 11, connection.response())
    assert (correlation_id, fetched.responses[0].partitions[0].error_code) == (2, ErrorCode.NONE)
    assert connection.is_closed()


def ask_until_nobody_listens(connection: RawConnection, request: bytes, at_most: int) -> int:
    for asked in range(at_most):
        try:
            connection.send(request)
        except TimeoutError:
            return asked
    pytest.fail(f"the broker took in {at_most} requests of a client that reads none of the answers")


def test_a_client_that_never_reads_is_not_read_from(broker: BrokerProcess, healthy: HealthyProducer) -> None:
    with RawConnection(broker.port, receive_buffer=65_536) as deaf:
        topic = create_topic(deaf)
        assert produce(deaf, topic, bytes(900_000)).error_code == ErrorCode.NONE
        before = resident_bytes(broker.pid)
        # Each answer is 900 KB; each request is made large so that its sender notices when nobody takes it in.
        request = encode_request(1, "x" * 10_000, fetch_request(topic), 11)
        deaf.socket.settimeout(1.0)
        asked = ask_until_nobody_listens(deaf, request, 5_000)
        healthy.must_be_well()
        # 5,000 answers would be 4.5 GB.
        assert growth(broker, before) < 50

        # When it reads after all, what it asked is answered: nothing was dropped.
        deaf.socket.settimeout(20.0)
        for _ in range(min(asked, 20)):
            correlation_id, answer = decode_response(FetchResponse, 11, deaf.response())
            assert correlation_id == 1
            assert len(answer.responses[0].partitions[0].records or b"") > 900_000


def test_waiting_fetches_of_one_client_do_not_pile_up_answers(broker: BrokerProcess, healthy: HealthyProducer) -> None:
    with RawConnection(broker.port, receive_buffer=65_536) as deaf:
        topic = create_topic(deaf)
        for _ in range(10):
            assert produce(deaf, topic, bytes(900_000)).error_code == ErrorCode.NONE
        before = resident_bytes(broker.pid)
        # They all come due at once, with 9 MB each, and nobody reads them.
        request = encode_request(1, "raw", fetch_request(topic, max_wait_ms=500, min_bytes=2**31 - 1), 11)
        deaf.send(request * 200)
        worst = 0.0
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            worst = max(worst, growth(broker, before))
            time.sleep(0.01)
        assert worst < 100
        healthy.must_be_well()


def test_thousands_of_idle_connections_cost_little(broker: BrokerProcess, healthy: HealthyProducer) -> None:
    before = resident_bytes(broker.pid)
    with crowd(broker.port, IDLE_CONNECTIONS) as connections:
        for connection in connections[::2]:
            assert connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == ErrorCode.NONE
        healthy.must_be_well()
        assert growth(broker, before) < 40
        # The oldest still works, and so does a new one.
        assert connections[0].call(MetadataRequest(topics=[]), 4, MetadataResponse).brokers
        with RawConnection(broker.port) as late:
            assert late.call(MetadataRequest(topics=[]), 4, MetadataResponse).brokers


def test_clients_that_come_and_go_leave_nothing_behind(broker: BrokerProcess) -> None:
    frame = encode_request(1, "raw", MetadataRequest(topics=[]), 4)

    def come_and_go(times: int) -> None:
        for _ in range(times):
            with RawConnection(broker.port) as connection:
                connection.send(frame)

    come_and_go(500)
    before = resident_bytes(broker.pid)
    come_and_go(2_000)
    assert growth(broker, before) < 10
