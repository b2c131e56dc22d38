"""The three indexes of a segment: what they answer, and the bytes of their files."""

from struct import pack

import pytest

from oncelog.log.offset_index import CorruptIndex, OffsetIndex
from oncelog.log.time_index import TimeIndex
from oncelog.log.transaction_index import AbortedTransaction, TransactionIndex


class TestOffsetIndex:
    def index(self) -> OffsetIndex:
        index = OffsetIndex(1000)
        for offset, position in ((1004, 50), (1009, 120), (1020, 300)):
            index.append(offset, position)
        return index

    def test_its_file_is_kafkas(self) -> None:
        data = self.index().encode()

        assert data == pack(">iiiiii", 4, 50, 9, 120, 20, 300)
        assert OffsetIndex.decode(1000, data, 400).encode() == data

    @pytest.mark.parametrize(
        ("offset", "position"),
        [(1000, 0), (1003, 0), (1004, 50), (1008, 50), (1009, 120), (1019, 120), (1020, 300), (9999, 300)],
    )
    def test_a_scan_for_an_offset_begins_at_the_nearest_entry_before(self, offset: int, position: int) -> None:
        assert self.index().entry_before(offset)[1] == position

    @pytest.mark.parametrize(("position", "boundary"), [(0, 0), (49, 0), (50, 50), (119, 50), (120, 120), (999, 300)])
    def test_a_batch_is_known_to_begin_at_an_entry(self, position: int, boundary: int) -> None:
        assert self.index().entry_at_or_before(position)[1] == boundary

    def test_truncation_forgets_batches_with_that_offset_or_later_ones(self) -> None:
        index = self.index()
        index.truncate(1009)
        assert index.last_entry == (1004, 50)
        index.truncate(1000)
        assert (len(index), index.last_entry) == (0, (1000, 0))

    @pytest.mark.parametrize(
        "data",
        [
            b"\x00" * 7,
            pack(">iiii", 4, 50, 4, 60),
            pack(">iiii", 4, 50, 5, 50),
            pack(">iiii", 9, 50, 5, 60),
            pack(">iiii", 4, 50, 0, 0),
            pack(">ii", -1, 50),
            pack(">ii", 0, 0),
            pack(">ii", 4, 400),
        ],
    )
    def test_a_file_that_cannot_be_its_segments_is_refused(self, data: bytes) -> None:
        with pytest.raises(CorruptIndex):
            OffsetIndex.decode(1000, data, 400)


class TestTimeIndex:
    def index(self) -> TimeIndex:
        index = TimeIndex(1000)
        for timestamp, offset in ((500, 1004), (700, 1009), (900, 1020)):
            index.append(timestamp, offset)
        return index

    def test_its_file_is_kafkas(self) -> None:
        data = self.index().encode()

        assert data == pack(">qiqiqi", 500, 4, 700, 9, 900, 20)
        assert TimeIndex.decode(1000, data).encode() == data

    def test_only_larger_timestamps_are_added(self) -> None:
        index = self.index()
        index.append(900, 1030)
        index.append(800, 1031)
        index.append(-1, 1032)
        assert len(index) == 3
        assert index.last_entry == (900, 1020)

    @pytest.mark.parametrize(
        ("timestamp", "offset"), [(0, 1000), (499, 1000), (500, 1004), (699, 1004), (700, 1009), (901, 1020)]
    )
    def test_a_scan_for_a_time_begins_at_the_nearest_entry_before(self, timestamp: int, offset: int) -> None:
        assert self.index().offset_before(timestamp) == offset

    def test_truncation_forgets_what_is_about_later_offsets(self) -> None:
        index = self.index()
        index.truncate(1009)
        assert index.last_entry == (500, 1004)
        index.append(600, 1008)
        assert index.last_entry == (600, 1008)
        index.truncate(0)
        assert index.last_entry == (-1, 1000)

    @pytest.mark.parametrize(
        "data",
        [
            b"\x00" * 13,
            pack(">qiqi", 500, 4, 500, 5),
            pack(">qiqi", 500, 4, 600, 3),
            pack(">qi", -5, 4),
            pack(">qi", 5, -4),
        ],
    )
    def test_a_file_that_cannot_be_its_segments_is_refused(self, data: bytes) -> None:
        with pytest.raises(CorruptIndex):
            TimeIndex.decode(1000, data)


@pytest.mark.seed("X1")
class TestTransactionIndex:
    def index(self) -> TransactionIndex:
        index = TransactionIndex()
        index.append(AbortedTransaction(1, 1000, 1005, 1006))
        index.append(AbortedTransaction(2, 1003, 1010, 1008))
        index.append(AbortedTransaction(3, 1008, 1012, 1013))
        return index

    def test_its_file_is_kafkas(self) -> None:
        data = self.index().encode()

        assert data[:34] == pack(">hqqqq", 0, 1, 1000, 1005, 1006)
        assert len(data) == 3 * 34
        assert TransactionIndex.decode(1000, data).entries == self.index().entries

    def test_what_overlaps_a_range_is_found(self) -> None:
        def found(from_offset: int, up_to: int) -> tuple[list[int], bool]:
            entries: list[AbortedTransaction] = []
            complete = self.index().collect(from_offset, up_to, entries)
            return [entry.producer_id for entry in entries], complete

        assert found(1000, 1003) == ([1], True)
        assert found(1000, 1007) == ([1, 2], True)
        assert found(1006, 1009) == ([2, 3], True)
        assert found(1011, 1013) == ([3], True)
        assert found(1011, 1014) == ([3], False)
        assert found(1013, 1014) == ([], False)

    def test_truncation_forgets_transactions_whose_marker_is_gone(self) -> None:
        index = self.index()
        index.truncate(1010)
        assert [entry.producer_id for entry in index.entries] == [1]
        entries: list[AbortedTransaction] = []
        index.collect(0, 2000, entries)
        assert len(entries) == 1

    def test_a_file_that_cannot_be_its_segments_is_refused(self) -> None:
        data = self.index().encode()
        for damaged in (data[:-1], b"\x00\x01" + data[2:], data[34:] + data[:34], data[:34] * 2):
            with pytest.raises(CorruptIndex):
                TransactionIndex.decode(1000, damaged)
        with pytest.raises(CorruptIndex):
            TransactionIndex.decode(1006, data)
