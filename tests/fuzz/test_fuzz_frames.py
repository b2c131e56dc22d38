"""Random and mangled frames: a reader gives a message or raises Malformed, whatever it is fed, and memory follows the frame."""

import struct
import tracemalloc
from contextlib import suppress
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oncelog.protocol.apis import APIS, Api
from oncelog.protocol.codec import decode
from oncelog.protocol.frames import decode_request_header, decode_response, encode_request, encode_response
from oncelog.protocol.malformed import Malformed
from tests.unit.protocol.message_strategies import random_message

_BUDGET = settings(max_examples=25, phases=[Phase.generate], deadline=None, database=None)
_FRAGMENTS = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80",
    b"\x00",
    b"\x80",
    b"\xff",
]


def read_request(frame: bytes) -> None:
    """What a server does with a frame, as far as the codec goes."""
    header, offset = decode_request_header(frame)
    for api in APIS.values():
        if api.key == header.api_key and api.versions[0] <= header.api_version <= api.versions[1]:
            decode(api.request, header.api_version, memoryview(frame), offset)


def mangled(random: Random, frame: bytes) -> bytes:
    """The frame with a few bytes overwritten, cut out, doubled, or replaced by what lengths are made of."""
    out = bytearray(frame)
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(out) + 1)
        stop = min(len(out), start + random.randint(0, 6))
        match random.randrange(4):
            case 0:
                out[start:stop] = random.randbytes(stop - start)
            case 1:
                del out[start:stop]
            case 2:
                out[start:start] = out[start:stop]
            case _:
                out[start:stop] = random.choice(_FRAGMENTS)
    return bytes(out)


@settings(_BUDGET, max_examples=300)
@given(frame=st.binary(max_size=200))
def test_random_bytes_are_a_request_or_malformed(frame: bytes) -> None:
    with suppress(Malformed):
        read_request(frame)


@settings(_BUDGET, max_examples=500)
@given(api=st.sampled_from(list(APIS.values())), newer=st.integers(0, 3), body=st.binary(max_size=100))
def test_a_good_header_before_random_bytes_is_read_or_malformed(api: Api, newer: int, body: bytes) -> None:
    header = struct.pack(">hhih", api.key, max(0, api.versions[1] - newer), 1, -1)
    with suppress(Malformed):
        read_request(header + body)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@_BUDGET
@given(seed=st.integers(0, 2**64 - 1))
def test_mangled_frames_are_read_or_malformed(api: Api, seed: int) -> None:
    random = Random(seed)
    version = random.randint(*api.versions)
    request = encode_request(1, "fuzz", random_message(random, api.request, version), version)[4:]
    response = b"".join(encode_response(1, random_message(random, api.response, version), version))[4:]

    for _ in range(10):
        with suppress(Malformed):
            read_request(mangled(random, request))
        with suppress(Malformed):
            decode_response(api.response, version, mangled(random, response))


@_BUDGET
@given(seed=st.integers(0, 2**64 - 1))
def test_memory_follows_the_size_of_the_frame(seed: int) -> None:
    random = Random(seed)
    api = random.choice(list(APIS.values()))
    version = random.randint(*api.versions)
    frame = encode_request(1, "fuzz", random_message(random, api.request, version), version)[4:]
    read_request(frame)
    frames = [mangled(random, frame) for _ in range(20)]

    tracemalloc.start()
    try:
        for frame in frames:
            with suppress(Malformed):
                read_request(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # A codec compiled for another version on the way takes some hundred kilobytes; a frame of a few hundred bytes that
    # claimed a gigabyte would take far more.
    assert peak < 3_000_000
