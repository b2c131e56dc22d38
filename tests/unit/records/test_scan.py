"""The scan over a batch's records that compaction uses: the same from the kernel and from Python."""

from collections.abc import Callable

import pytest

from oncelog.records.builder import encode_records
from oncelog.records.record import Record
from oncelog.records.scan import ScannedRecord, scan_records, scan_records_in_python
from oncelog.records.varint import encode_varint

Scan = Callable[[bytes, int, int], list[ScannedRecord] | None]


@pytest.fixture(params=["kernel", "python"])
def scan(request: pytest.FixtureRequest) -> Scan:
    if request.param == "python":
        return scan_records_in_python
    if scan_records is scan_records_in_python:
        pytest.skip("the C kernel is not built here")
    return scan_records


def test_a_scan_finds_keys_times_tombstones_and_places(scan: Scan) -> None:
    records = [
        Record(0, 1000, b"a", b"1", [("h", b"x")]),
        Record(3, 900, None, b""),
        Record(7, 2**50, b"", None),
        Record(8, 1000, b"k" * 200, None),
    ]
    payload = encode_records(records, 0, 1000)

    found = scan(payload, 0, 4)

    assert found is not None
    assert [(offset, delta, key, tombstone) for _, _, _, offset, delta, key, tombstone in found] == [
        (0, 0, b"a", False),
        (3, -100, None, False),
        (7, 2**50 - 1000, b"", True),
        (8, 0, b"k" * 200, True),
    ]
    starts = [record[0] for record in found]
    assert starts == [0, *(record[1] for record in found[:-1])]
    assert found[-1][1] == len(payload)
    for start, end, behind_timestamp, offset, *_ in found:
        assert start < behind_timestamp < end
        assert payload[behind_timestamp:].startswith(encode_varint(offset))
    assert scan(payload, starts[2], 2) == found[2:]
    assert scan(payload, 0, 2) == found[:2]
    assert scan(payload, 0, 0) == []


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"\x02\x00",
        b"\x10" + bytes(3),
        b"\xff" * 20,
        b"\x0a\x00\x00\x00\x7e\x01",
        b"\x0c\x00\x00\x00\x01\x7e\x00",
        b"\x08\x00\x00\x00\x03",
    ],
)
def test_what_is_no_record_is_none(scan: Scan, payload: bytes) -> None:
    assert scan(payload, 0, 1) is None


def test_the_kernel_never_looks_outside_of_what_it_was_given() -> None:
    if scan_records is scan_records_in_python:
        pytest.skip("the C kernel is not built here")
    for position in (-1, 4, 2**40):
        with pytest.raises(ValueError, match="inside"):
            scan_records(b"abc", position, 1)
    for wrong in ((b"abc", 0), ("abc", 0, 1), (b"abc", None, 1)):
        with pytest.raises(TypeError):
            scan_records(*wrong)
