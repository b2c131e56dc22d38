"""Frames: sizes and headers."""

import struct
from typing import Any

import pytest

from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decode, encode
from oncelog.protocol.frames import decode_request_header, decode_response, encode_request, encode_response
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from oncelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from oncelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from oncelog.protocol.messages.internal.transaction_log import TransactionLogKey


def test_a_request_with_the_old_and_with_the_flexible_header() -> None:
    beat = HeartbeatRequest(group_id="billing", generation_id=3, member_id="m")
    old = bytes.fromhex("000c 0003 00000007 0004") + b"test" + encode(beat, 3)
    flexible = bytes.fromhex("000c 0004 00000007 0004") + b"test" + b"\x00" + encode(beat, 4)

    assert encode_request(7, "test", beat, 3) == struct.pack(">i", len(old)) + old
    assert encode_request(7, "test", beat, 4) == struct.pack(">i", len(flexible)) + flexible


@pytest.mark.parametrize("client_id", ["test", "", None, "ü"])
@pytest.mark.parametrize("version", [3, 4])
def test_a_header_is_read_as_it_was_written(client_id: str | None, version: int) -> None:
    beat = HeartbeatRequest(group_id="billing", generation_id=3, member_id="m")
    frame = encode_request(-5, client_id, beat, version)[4:]

    for data in (frame, memoryview(bytearray(frame))):
        header, offset = decode_request_header(data)
        assert (header.api_key, header.api_version) == (12, version)
        assert (header.correlation_id, header.client_id) == (-5, client_id)
        assert decode(HeartbeatRequest, version, data, offset) == beat


def test_tagged_fields_in_a_header_are_skipped() -> None:
    frame = bytes.fromhex("000c 0004 00000007 ffff 02 00 01 ff 8001 02 abcd") + b"body"

    header, offset = decode_request_header(frame)

    assert header.client_id is None
    assert frame[offset:] == b"body"


def test_a_header_of_a_version_nobody_knows_is_still_read() -> None:
    header, offset = decode_request_header(bytes.fromhex("0012 0063 00000007 0001 61 00"))

    assert (header.api_version, header.correlation_id, header.client_id, offset) == (99, 7, "a", 12)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "ends within its header"),
        ("000c 0004 000000", "ends within its header"),
        ("000c 0004 00000007 0001 61", "ends within its header"),
        ("000c 0004 00000007 0001 61 01", "ends within its header"),
        ("000c 0004 00000007 0001 61 01 05 05 00", "a tagged field that ends behind the frame"),
        ("000c 0004 00000007 0002 61", "RequestHeader.client_id: a length of 2"),
        ("000c 0004 00000007 fffe", "RequestHeader.client_id: a length of -2"),
        ("000c 0003 00000007 0001 ff", "RequestHeader.client_id is not UTF-8"),
        ("03e7 0000 00000007 ffff", "a request of unknown API key 999"),
        ("ffff 0000 00000007 ffff", "a request of unknown API key -1"),
    ],
)
def test_a_bad_header_is_refused_with_the_reason(data: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        decode_request_header(bytes.fromhex(data))


@pytest.mark.parametrize(("version", "header"), [(3, "00000007"), (4, "00000007 00")])
def test_a_response_and_its_header(version: int, header: str) -> None:
    answer = HeartbeatResponse(error_code=27)
    body = bytes.fromhex(header) + encode(answer, version)

    frame = b"".join(encode_response(7, answer, version))

    assert frame == struct.pack(">i", len(body)) + body
    assert decode_response(HeartbeatResponse, version, frame[4:]) == (7, answer)


def test_a_response_to_api_versions_never_has_the_flexible_header() -> None:
    answer = ApiVersionsResponse(throttle_time_ms=1)

    for version in range(5):
        frame = b"".join(encode_response(7, answer, version))
        assert frame[8:] == encode(answer, version)
        assert decode_response(ApiVersionsResponse, version, frame[4:])[0] == 7
    # Its request has.
    assert encode_request(7, None, ApiVersionsRequest(), 3)[14:15] == b"\x00"


def test_the_size_covers_records_that_are_passed_through() -> None:
    records = bytes(50_000)
    fetched = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])

    parts = encode_response(7, fetched, 16)

    assert any(part is records for part in parts)
    frame = b"".join(parts)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    assert decode_response(FetchResponse, 16, frame[4:]) == (7, fetched)


@pytest.mark.parametrize(("version", "data"), [(4, "000000"), (4, "00000007"), (4, "00000007 01"), (3, "0000")])
def test_a_response_cut_within_its_header_is_refused(version: int, data: str) -> None:
    with pytest.raises(Malformed, match="ends within its header"):
        decode_response(HeartbeatResponse, version, bytes.fromhex(data))


def test_what_is_only_stored_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="TransactionLogKey is no request and no response"):
        encode_request(7, None, TransactionLogKey(), 0)


@pytest.mark.parametrize("key", ApiKey)
def test_every_api_goes_there_and_back_in_its_newest_version(key: ApiKey) -> None:
    api = APIS[key]
    version = api.versions[1]
    request: Any = api.request()
    response: Any = api.response()

    header, offset = decode_request_header(encode_request(1, "c", request, version)[4:])

    assert (header.api_key, header.api_version) == (key, version)
    assert decode(api.request, version, encode_request(1, "c", request, version)[4:], offset) == request
    frame = b"".join(encode_response(2, response, version))
    assert decode_response(api.response, version, frame[4:]) == (2, response)
