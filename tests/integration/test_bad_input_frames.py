"""Frames that no client should send: a clear answer or a closed connection, and everybody else goes on."""

import random
import struct
from collections.abc import Iterator

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from oncelog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from oncelog.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.brokers import BrokerProcess
from tests.integration.raw_connection import (
    HealthyProducer,
    RawConnection,
    create_topic,
    produce,
    produce_request,
    resident_bytes,
)

MAX_FRAME_BYTES = 1_000_000
KNOWN_API_KEY, KNOWN_VERSION = 3, 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"socket.request.max.bytes": str(MAX_FRAME_BYTES)}
    with BrokerProcess(tmp_path_factory.mktemp("frames") / "data", settings) as process:
        yield process


@pytest.fixture(scope="module")
def healthy(broker: BrokerProcess) -> Iterator[HealthyProducer]:
    producer = HealthyProducer(broker.port)
    yield producer
    producer.stop()


@pytest.fixture(autouse=True)
def others_are_unharmed(broker: BrokerProcess, healthy: HealthyProducer) -> Iterator[None]:
    before = resident_bytes(broker.pid)
    yield
    assert broker.running, broker.output()[-4000:]
    healthy.must_be_well()
    assert resident_bytes(broker.pid) - before < 30_000_000


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as connection:
        yield connection


def header(api_key: int, version: int, *, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 3) + b"raw"


def test_a_frame_over_the_limit_closes_the_connection_before_it_is_sent(connection: RawConnection) -> None:
    connection.send(struct.pack(">i", MAX_FRAME_BYTES + 1) + header(KNOWN_API_KEY, KNOWN_VERSION))
    assert connection.is_closed()


def test_a_frame_of_the_largest_size_is_answered(connection: RawConnection) -> None:
    topic = create_topic(connection)
    around = len(encode_request(1, "raw", produce_request(topic, b""), 9)) - 4
    # The lengths of record, batch and value take a few bytes more when they are large.
    value = bytes(MAX_FRAME_BYTES - around - 8)
    assert MAX_FRAME_BYTES - 16 < len(encode_request(1, "raw", produce_request(topic, value), 9)) - 4 <= MAX_FRAME_BYTES
    assert produce(connection, topic, value).error_code == ErrorCode.NONE


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 7])
def test_a_size_that_holds_no_request_closes_the_connection(connection: RawConnection, size: int) -> None:
    connection.send(struct.pack(">i", size) + bytes(16))
    assert connection.is_closed()


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="http"),
        pytest.param(bytes.fromhex("16030100ab010000a70303") + bytes(200), id="tls"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="ssh"),
    ],
)
def test_another_protocol_is_turned_away(connection: RawConnection, greeting: bytes) -> None:
    connection.send(greeting)
    assert connection.is_closed()


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_do_not_disturb(connection: RawConnection, seed: int) -> None:
    chance = random.Random(seed)
    connection.send(chance.randbytes(chance.randrange(8, 5_000)))
    # No assertion on the answer: random sizes may announce a frame that is allowed and never comes.


@pytest.mark.parametrize("seed", range(20))
def test_random_frames_of_an_honest_size_are_refused_or_answered(connection: RawConnection, seed: int) -> None:
    chance = random.Random(seed)
    payload = struct.pack(">hhi", chance.randrange(75), chance.randrange(14), seed)
    connection.send_frame(payload + chance.randbytes(chance.randrange(200)))
    connection.socket.shutdown(1)
    while connection.socket.recv(65536):
        pass


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 12, 14, 20])
def test_a_client_that_goes_in_the_middle_of_a_frame_leaves_nothing_behind(broker: BrokerProcess, cut: int) -> None:
    frame = encode_request(1, "raw", MetadataRequest(topics=[]), KNOWN_VERSION)
    for _ in range(20):
        with RawConnection(broker.port) as connection:
            connection.send(frame[:cut])


@pytest.mark.parametrize("api_key", [-1, 4, 5, 6, 7, 77, 200, 32767])
def test_an_api_nobody_serves_closes_the_connection(connection: RawConnection, api_key: int) -> None:
    connection.send_frame(header(api_key, 0) + bytes(8))
    assert connection.is_closed()


@pytest.mark.parametrize(
    ("api_key", "version"), [(0, 99), (0, 2), (1, 3), (1, 99), (3, 99), (3, -1), (19, 0), (22, 99)]
)
def test_a_version_nobody_serves_closes_the_connection(connection: RawConnection, api_key: int, version: int) -> None:
    connection.send_frame(header(api_key, version) + bytes(16))
    assert connection.is_closed()


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_api_versions_of_the_future_is_answered_so_that_the_client_can_step_down(
    connection: RawConnection, version: int
) -> None:
    connection.send_frame(header(18, version, correlation_id=4711) + b"\0" + b"\xff\xfe what only the future knows")

    correlation_id, answer = decode_response(ApiVersionsResponse, 0, connection.response())

    assert correlation_id == 4711
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.min_version, api.max_version) for api in answer.api_keys if api.api_key == 18] == [(0, 4)]
    again = connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert again.error_code == ErrorCode.NONE
    assert {api.api_key for api in again.api_keys} >= {0, 1, 2, 3, 18}


ARRAY_LENGTHS = [2**31 - 1, -(2**31), -2, 1_000_000]


@pytest.mark.parametrize("length", ARRAY_LENGTHS)
def test_an_absurd_array_length_closes_the_connection(connection: RawConnection, length: int) -> None:
    connection.send_frame(header(KNOWN_API_KEY, KNOWN_VERSION) + struct.pack(">i", length) + bytes(8))
    assert connection.is_closed()


@pytest.mark.parametrize(
    "length", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x80" * 9, b"\xfe\xff\x7f"]
)
def test_an_absurd_compact_array_length_closes_the_connection(connection: RawConnection, length: bytes) -> None:
    connection.send_frame(header(KNOWN_API_KEY, 9) + b"\0" + length + bytes(8))
    assert connection.is_closed()


@pytest.mark.parametrize("length", [2**31 - 1, -2, 60_000])
def test_an_absurd_string_length_closes_the_connection(connection: RawConnection, length: int) -> None:
    one_topic = struct.pack(">i", 1) + struct.pack(">i", length)[-2:] + b"name"
    connection.send_frame(header(KNOWN_API_KEY, KNOWN_VERSION) + one_topic)
    assert connection.is_closed()


def test_nested_arrays_cannot_multiply_memory(connection: RawConnection) -> None:
    # A frame that is nearly all array elements, each the smallest there is: an empty topic with an empty partition list.
    topics = (MAX_FRAME_BYTES - 100) // 6
    body = struct.pack(">hhi", -1, -1, 1000) + struct.pack(">i", topics) + struct.pack(">hi", 0, 0) * topics
    connection.send_frame(header(0, 3) + body)
    # Each is an unknown topic: a long answer or none, but not the end.
    connection.socket.shutdown(1)
    while connection.socket.recv(1 << 20):
        pass


@pytest.mark.parametrize("version", [3, 7, 9, 12])
def test_every_truncation_of_a_produce_request_is_refused(broker: BrokerProcess, version: int) -> None:
    with RawConnection(broker.port) as connection:
        topic = create_topic(connection)
    frame = encode_request(1, "raw", produce_request(topic, b"cut"), version)
    for end in range(12, len(frame)):
        with RawConnection(broker.port) as connection:
            connection.send_frame(frame[4:end])
            assert connection.is_closed(), f"cut to {end} of {len(frame)} bytes"


def test_a_client_id_that_is_no_text_closes_the_connection(connection: RawConnection) -> None:
    connection.send_frame(struct.pack(">hhih", KNOWN_API_KEY, KNOWN_VERSION, 1, 3) + b"\xff\xff\xff" + bytes(5))
    assert connection.is_closed()


def test_what_follows_a_bad_frame_is_not_read(connection: RawConnection) -> None:
    good = encode_request(2, "raw", MetadataRequest(topics=[]), KNOWN_VERSION)
    connection.send(struct.pack(">i", 12) + header(200, 0)[:12] + good)
    assert connection.is_closed()


def test_what_came_before_a_bad_frame_is_answered(connection: RawConnection) -> None:
    good = encode_request(5, "raw", MetadataRequest(topics=[]), KNOWN_VERSION)
    connection.send(good + struct.pack(">i", -5))
    correlation_id, _ = decode_response(MetadataResponse, KNOWN_VERSION, connection.response())
    assert correlation_id == 5
    assert connection.is_closed()


def test_a_produce_without_any_data_is_answered(connection: RawConnection) -> None:
    answer = connection.call(ProduceRequest(acks=-1, timeout_ms=1000), 9, ProduceResponse)
    assert answer.responses == []
