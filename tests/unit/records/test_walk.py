"""The walk over a batch's records: what it reports, the same from the kernel and from Python."""

from collections.abc import Callable

import pytest

from oncelog.records.builder import encode_records
from oncelog.records.record import Record
from oncelog.records.varint import LONGEST_VARLONG, decode_varint, encode_varint
from oncelog.records.walk import RecordFault, Walked, walk_records, walk_records_in_python

Walk = Callable[[bytes, int, int, int], Walked]


@pytest.fixture(params=["kernel", "python"])
def walk(request: pytest.FixtureRequest) -> Walk:
    if request.param == "python":
        return walk_records_in_python
    if walk_records is walk_records_in_python:
        pytest.skip("the C kernel is not built here")
    return walk_records


def record(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


def test_a_walk_reports_count_first_null_key_and_the_span_of_time(walk: Walk) -> None:
    data = encode_records(
        [Record(0, 50, b"a", b"1"), Record(1, 40, None, b"2"), Record(2, 90, None, None, [("h", None)])], 0, 60
    )

    assert walk(data, 0, len(data), 3) == (RecordFault.NONE, 3, 1, -20, 30)
    assert walk(b"xx" + data + b"yyy", 2, 2 + len(data), 3) == (RecordFault.NONE, 3, 1, -20, 30)


def test_no_records_are_no_records(walk: Walk) -> None:
    assert walk(b"", 0, 0, 0) == (RecordFault.NONE, 0, -1, 0, 0)
    assert walk(b"x", 0, 1, 0) == (RecordFault.SURPLUS, 0, -1, 0, 0)
    assert walk(b"x", 0, 1, -5)[0] == RecordFault.SURPLUS


GOOD = record(b"\0\0\0\x01\x01\0")


@pytest.mark.parametrize(
    ("data", "count", "fault", "index"),
    [
        (GOOD, 2, RecordFault.CUT_OFF, 1),
        (GOOD[:-1], 1, RecordFault.CUT_OFF, 0),
        (b"\x01", 1, RecordFault.CUT_OFF, 0),
        (b"\xff\xff\xff\xff\x1f", 1, RecordFault.CUT_OFF, 0),
        (b"\x80\x80\x80\x80\x80\x01", 1, RecordFault.CUT_OFF, 0),
        (b"\x00", 1, RecordFault.BAD_VARINT, 0),
        (record(b"\0"), 1, RecordFault.BAD_VARINT, 0),
        (record(b"\0" + b"\x80" * 10), 1, RecordFault.BAD_VARINT, 0),
        (record(b"\0" + b"\xff" * 9 + b"\x02\0\x01\x01\0"), 1, RecordFault.BAD_VARINT, 0),
        (record(b"\0\0\x80"), 1, RecordFault.BAD_VARINT, 0),
        (record(b"\0\0\x02\x01\x01\0"), 1, RecordFault.OFFSET_MISMATCH, 0),
        (GOOD + GOOD, 2, RecordFault.OFFSET_MISMATCH, 1),
        (record(b"\0\0\0\x7ea"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x03\x01\0"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x01\x7e\0"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x01\x01\x01"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x01\x01\xfe\xff\xff\xff\x0f"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x01\x01\x02\x01\x01"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (record(b"\0\0\0\x01\x01\0\0"), 1, RecordFault.LENGTH_MISMATCH, 0),
        (GOOD + b"\0", 1, RecordFault.SURPLUS, 1),
    ],
)
def test_every_fault_is_reported_with_its_record(
    walk: Walk, data: bytes, count: int, fault: RecordFault, index: int
) -> None:
    assert walk(data, 0, len(data), count)[:2] == (fault, index)


def test_the_ends_of_a_64_bit_delta_are_reported_exactly(walk: Walk) -> None:
    for delta in (2**63 - 1, -(2**63)):
        data = record(b"\0" + encode_varint(delta) + b"\0\x01\x01\0")
        assert walk(data, 0, len(data), 1) == (RecordFault.NONE, 1, 0, delta, delta)


def test_the_kernel_never_looks_outside_of_what_it_was_given() -> None:
    if walk_records is walk_records_in_python:
        pytest.skip("the C kernel is not built here")
    for position, end in ((-1, 3), (0, 4), (3, 2), (0, 2**40)):
        with pytest.raises(ValueError, match="inside"):
            walk_records(b"abc", position, end, 1)
    for wrong in ((b"abc", 0, 3), ("abc", 0, 3, 1), (b"abc", None, 3, 1)):
        with pytest.raises(TypeError):
            walk_records(*wrong)


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, -65, 8191, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_a_variable_length_integer_comes_back(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(encoded, 0, len(encoded), LONGEST_VARLONG) == (value, len(encoded))
    if -(2**31) <= value < 2**31:
        assert decode_varint(b"x" + encoded + b"x", 1, len(encoded) + 1) == (value, len(encoded) + 1)
    else:
        assert decode_varint(encoded, 0, len(encoded))[1] == -1
    for cut in range(len(encoded)):
        assert decode_varint(encoded, 0, cut, LONGEST_VARLONG)[1] == -1
