"""Reading a segment for a job that must never hold up the node.

Such a job is a generator. It yields None when it has worked long enough for others to have a turn, and a `Blocking` when something
has to be waited for: whoever drives it may run that in a worker thread and go on afterwards. If nobody does, it is done on the
spot, so that a plain `for` loop drives the job to its end as well.
"""

from collections.abc import Callable, Generator
from typing import Generic, TypeAlias, TypeVar

from oncelog.log.segment import Segment
from oncelog.records.batch import LENGTH_POSITION, LOG_OVERHEAD, BatchHeader, read_header

T = TypeVar("T")
READ_SIZE = 256 << 10


class Blocking(Generic[T]):
    """Work that waits for the device. `run` may be called in any thread; the job then takes the `result` on its own."""

    __slots__ = ("_call", "_done", "_value", "_failure")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = False
        self._value: T | None = None
        self._failure: Exception | None = None

    def run(self) -> None:
        try:
            self._value = self._call()
        except Exception as failure:
            self._failure = failure
        self._done = True

    def result(self) -> T:
        if not self._done:
            self.run()
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]


Step: TypeAlias = Blocking[None] | Blocking[bytes] | None


class BatchReader:
    """The batches of a segment one after the other. The segment must not be written any more."""

    __slots__ = ("header", "batch", "_file", "_position", "_size", "_data", "_at")

    def __init__(self, segment: Segment, position: int = 0) -> None:
        self.header: BatchHeader
        self.batch: memoryview
        self._file = segment.file
        self._size = segment.size
        self._position = position
        self._data = memoryview(b"")
        self._at = 0

    def advance(self) -> Generator[Step, None, bool]:
        """Go to the next batch, which is then `batch` with its `header`. False at the end; CorruptBatch if there is none."""
        if self._position >= self._size:
            return False
        if not self._whole():
            yield from self._fill(READ_SIZE)
            if not self._whole():
                yield from self._fill(self._next_size())
        self.header = read_header(self._data, self._at)
        self.batch = self._data[self._at : self._at + self.header.size]
        self._at += self.header.size
        self._position += self.header.size
        return True

    def _next_size(self) -> int:
        """As the next batch says; a damaged one may say anything, but the file ends somewhere."""
        return int.from_bytes(self._data[self._at + LENGTH_POSITION : self._at + LOG_OVERHEAD], "big") + LOG_OVERHEAD

    def _whole(self) -> bool:
        left = len(self._data) - self._at
        return left >= LOG_OVERHEAD and left >= self._next_size()

    def _fill(self, length: int) -> Generator[Step, None, None]:
        """Read from the current position on, without waiting for the device on the node's thread."""
        position = self._position
        data = self._file.read_at_if_cached(position, length)
        if data is None:
            cold = Blocking(lambda: self._file.read_cold_at(position, length))
            yield cold
            data = cold.result()
        self._data = memoryview(data)
        self._at = 0
