"""Which leader epoch began at which offset: what a replica compares to find where its log and the leader's part.

Always: epochs and start offsets both rise strictly from entry to entry.
"""

from bisect import bisect_left, bisect_right

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    __slots__ = ("latest", "_epochs", "_starts")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.latest = NO_EPOCH
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """From `start_offset` on, batches are of `epoch`. False if that was known."""
        if self._epochs and epoch == self.latest and start_offset >= self._starts[-1]:
            return False
        # What contradicts the new entry is from a leader whose writes were not kept.
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def end_offset_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and where it ends; (-1, -1) if the question makes no sense."""
        if epoch == NO_EPOCH or not self._epochs:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return NO_EPOCH, NO_OFFSET
        if following == 0:
            return epoch, self._starts[0]
        return self._epochs[following - 1], self._starts[following]

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was written; -1 if that is not known."""
        following = bisect_right(self._starts, offset)
        return self._epochs[following - 1] if following else NO_EPOCH

    def truncate_from(self, end_offset: int) -> bool:
        """The log now ends at `end_offset`: epochs that began there or later are forgotten. True if there were any."""
        kept = bisect_left(self._starts, end_offset)
        if kept == len(self._starts):
            return False
        del self._epochs[kept:], self._starts[kept:]
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH
        return True

    def truncate_before(self, start_offset: int) -> bool:
        """The log now starts at `start_offset`: the epoch it lies in begins there, older ones are forgotten."""
        gone = bisect_right(self._starts, start_offset) - 1
        if gone < 0 or (gone == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:gone], self._starts[:gone]
        self._starts[0] = start_offset
        return True
