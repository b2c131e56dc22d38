"""What a reader does with bytes it did not expect: newer fields are skipped, everything else is refused, and cheaply."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncelog.protocol.codec import decode, encode
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.schema import schema_of
from tests.unit.protocol.message_strategies import ALL_MESSAGES, BUDGET, STORED_MESSAGES, messages, named
from tests.unit.protocol.reference_encoding import reference_encode

#: Where the layout changes: the first and last version, and the first flexible one.
EDGES = [
    (cls, version)
    for cls, version in ALL_MESSAGES + STORED_MESSAGES
    if version in (*schema_of(cls).versions, schema_of(cls).flexible_since)
]
FLEXIBLE = [(cls, version) for cls, version in EDGES if version >= schema_of(cls).flexible_since]


@pytest.mark.parametrize("message", STORED_MESSAGES, ids=named)
@BUDGET
@given(data=st.data())
def test_what_is_stored_is_written_as_the_protocol_says(message: tuple[type[Any], int], data: st.DataObject) -> None:
    cls, version = message
    stored = data.draw(messages(cls, version))

    encoded = encode(stored, version)

    assert encoded == reference_encode(stored, version)
    assert decode(cls, version, encoded) == stored


@pytest.mark.parametrize("message", FLEXIBLE, ids=named)
@BUDGET
@given(data=st.data(), size=st.sampled_from([0, 3, 200]))
def test_unknown_tagged_fields_are_skipped_in_every_struct(
    message: tuple[type[Any], int], data: st.DataObject, size: int
) -> None:
    cls, version = message
    known = data.draw(messages(cls, version))
    from_the_future = reference_encode(known, version, unknown_tags={31: bytes(size), 4096: b"later"})

    assert decode(cls, version, from_the_future) == known


@pytest.mark.parametrize("message", EDGES, ids=named)
@BUDGET
@given(data=st.data())
def test_a_message_cut_at_any_byte_is_refused(message: tuple[type[Any], int], data: st.DataObject) -> None:
    cls, version = message
    encoded = encode(data.draw(messages(cls, version)), version)

    for size in range(len(encoded)):
        with pytest.raises(Malformed):
            decode(cls, version, encoded[:size])


@pytest.mark.parametrize("message", EDGES, ids=named)
@BUDGET
@given(data=st.data())
def test_absurd_lengths_anywhere_allocate_nothing_to_speak_of(
    message: tuple[type[Any], int], data: st.DataObject
) -> None:
    cls, version = message
    encoded = encode(data.draw(messages(cls, version)), version)
    hostile = b"\xff\xff\xff\xff\x07" if version >= schema_of(cls).flexible_since else b"\x7f\xff\xff\xff"
    frames = [
        encoded[:i] + hostile + encoded[i + len(hostile) :] for i in range(0, len(encoded), 1 + len(encoded) // 40)
    ]
    decode(cls, version, encoded)

    tracemalloc.start()
    try:
        for frame in frames:
            with suppress(Malformed):
                decode(cls, version, frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20_000 + 200 * len(encoded)
