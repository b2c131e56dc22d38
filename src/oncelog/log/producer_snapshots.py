"""The producer snapshots of a log: at the beginning of every segment, and where a clean stop took one at the end.

A snapshot saves reading the log from its start to know its producers again. Any of them may be missing or damaged: the one before
serves, with more of the log to replay.
"""

from bisect import bisect_right
from collections.abc import Container, Iterable

from oncelog.log.file_names import PRODUCER_SNAPSHOT, offset_of, segment_file
from oncelog.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from oncelog.log.producer_state import ProducerState
from oncelog.log.storage import Disk

NO_SNAPSHOT = -1


class ProducerSnapshots:
    __slots__ = ("_disk", "_directory", "_offsets")

    def __init__(self, disk: Disk, directory: str, names: Iterable[str]) -> None:
        self._disk = disk
        self._directory = directory
        self._offsets = sorted(
            offset for name in names if name.endswith(PRODUCER_SNAPSHOT) and (offset := offset_of(name)) is not None
        )

    @property
    def offsets(self) -> list[int]:
        return list(self._offsets)

    def take(self, offset: int, producers: ProducerState, bases: Container[int]) -> None:
        """Write down what is known of the producers at `offset`. Those that belong to no segment have served their turn."""
        if self._offsets and self._offsets[-1] >= offset:
            return
        self._disk.write_in_place(self._path(offset), encode_snapshot(producers))
        while self._offsets and self._offsets[-1] not in bases:
            self._disk.remove(self._path(self._offsets.pop()))
        self._offsets.append(offset)

    def load_last(self, end_offset: int) -> tuple[ProducerState, int]:
        """The last one that is not after `end_offset`, and its offset; NO_SNAPSHOT if there is none."""
        for offset in reversed(self._offsets[: bisect_right(self._offsets, end_offset)]):
            try:
                return ProducerState(decode_snapshot(self._disk.read_file(self._path(offset)))), offset
            except CorruptSnapshot:
                self._remove(offset)
        return ProducerState(), NO_SNAPSHOT

    def remove_strays(self, bases: list[int]) -> None:
        """Keep those of segments, and the one at the end of the log."""
        for offset in self.offsets:
            at_the_end = bases and offset == self._offsets[-1] and offset > bases[-1]
            if offset not in bases and not at_the_end:
                self._remove(offset)

    def remove_above(self, end_offset: int) -> None:
        """The log does not go that far any more."""
        for offset in self._offsets[bisect_right(self._offsets, end_offset) :]:
            self._remove(offset)

    def remove_below(self, start_offset: int) -> None:
        """The log begins later now."""
        while self._offsets and self._offsets[0] < start_offset:
            self._remove(self._offsets[0])

    def _remove(self, offset: int) -> None:
        self._disk.remove(self._path(offset))
        self._offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{segment_file(offset, PRODUCER_SNAPSHOT)}"
