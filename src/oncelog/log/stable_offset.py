"""The last stable offset of a partition: no transaction that began before it is still open.

Always: last_stable_offset <= high_watermark <= log_end_offset.
A completed transaction still holds the offset back until its marker is below the high watermark: before that the marker may
be lost with the leader, and a reader that had seen the data as committed would have been lied to.
"""

from collections import OrderedDict, deque

NOTHING_OPEN = -1


class OpenTransactions:
    """The transactions that hold back the last stable offset. They begin in offset order, which keeps the oldest in front."""

    __slots__ = ("_open", "_unstable", "_completed", "first_unstable_offset")

    def __init__(self) -> None:
        self._open: OrderedDict[int, int] = OrderedDict()
        self._unstable: OrderedDict[int, int] = OrderedDict()
        self._completed: deque[tuple[int, int]] = deque()
        #: Where the oldest transaction that is open or not known to be replicated begins; NOTHING_OPEN if there is none.
        self.first_unstable_offset = NOTHING_OPEN

    @property
    def first_open_offset(self) -> int:
        """Where the oldest transaction without a marker begins; NOTHING_OPEN if there is none."""
        return next(iter(self._open), NOTHING_OPEN)

    def begin(self, first_offset: int, producer_id: int) -> None:
        self._open[first_offset] = producer_id
        self._unstable[first_offset] = producer_id
        if self.first_unstable_offset < 0:
            self.first_unstable_offset = first_offset

    def complete(self, first_offset: int, marker_offset: int) -> int:
        """The marker of the transaction that began at `first_offset` was written. The last stable offset were it replicated."""
        del self._open[first_offset]
        self._completed.append((marker_offset, first_offset))
        return next(iter(self._open), marker_offset + 1)

    def advance(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is replicated."""
        completed = self._completed
        if not completed or completed[0][0] >= high_watermark:
            return
        while completed and completed[0][0] < high_watermark:
            _, first_offset = completed.popleft()
            del self._unstable[first_offset]
        self.first_unstable_offset = next(iter(self._unstable), NOTHING_OPEN)
