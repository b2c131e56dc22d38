"""Control records: the marker that ends a transaction."""

import pytest

from oncelog.records.batch import CorruptBatch, crc_matches, read_header
from oncelog.records.builder import build_batch
from oncelog.records.control import ControlType, end_transaction_marker, read_control_record


@pytest.mark.parametrize(("committed", "kind"), [(True, ControlType.COMMIT), (False, ControlType.ABORT)])
def test_a_marker_says_how_the_transaction_ended(committed: bool, kind: ControlType) -> None:
    batch = end_transaction_marker(
        4_000, 3, committed, coordinator_epoch=17, timestamp_ms=99, base_offset=55, partition_leader_epoch=2
    )

    header = read_header(batch)
    assert (header.is_control, header.is_transactional, header.record_count) == (True, True, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4_000, 3, -1)
    assert (header.base_offset, header.partition_leader_epoch, header.max_timestamp) == (55, 2, 99)
    assert crc_matches(batch, 0, header)
    assert read_control_record(b"x" + batch, 1) == (kind, 17)


def test_a_control_type_of_a_later_version_is_passed_over() -> None:
    batch = build_batch([(b"\x00\x00\x00\x63", b"?")], control=True)
    assert read_control_record(batch).type is ControlType.UNKNOWN


@pytest.mark.parametrize("pair", [(b"\x00", b""), (None, None), (b"\x00\x00\x00\x01", b"\x00")])
def test_a_control_record_that_is_too_short_is_corrupt(pair: tuple[bytes | None, bytes | None]) -> None:
    with pytest.raises(CorruptBatch):
        read_control_record(build_batch([pair], control=True))
