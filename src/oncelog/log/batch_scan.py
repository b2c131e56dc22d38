"""Hopping over the batches of a log file by their headers, reading as little of what lies between as pays off."""

from collections.abc import Iterator

from oncelog.log.storage import File
from oncelog.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, CorruptBatch, Corruption

FIRST_CHUNK = 8 << 10
LARGEST_CHUNK = 1 << 20


def header_at(file: File, position: int) -> BatchHeader:
    """The header of the batch that begins at `position`. CorruptBatch if none does, or if the file ends before it."""
    data = file.read_at(position, HEADER_SIZE)
    if len(data) < HEADER_SIZE:
        raise CorruptBatch(Corruption.TRUNCATED, f"{len(data)} bytes at {position} are fewer than a header")
    return _checked(data, 0, file.size - position)


def headers(file: File, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch from `position`, where one begins. CorruptBatch where none does."""
    end = file.size
    chunk = FIRST_CHUNK
    start, data = position, b""
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(data):
            # Small batches: read more at a time. Large ones: only their headers are of interest.
            chunk = min(chunk * 2, LARGEST_CHUNK) if at <= len(data) else FIRST_CHUNK
            data = file.read_at(position, min(chunk, end - position))
            start, at = position, 0
            if len(data) < HEADER_SIZE:
                raise CorruptBatch(Corruption.TRUNCATED, f"{len(data)} bytes at {position} are fewer than a header")
        header = _checked(data, at, end - position)
        yield position, header
        position += header.batch_length + LOG_OVERHEAD


def _checked(data: bytes, at: int, available: int) -> BatchHeader:
    header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(data, at))
    if header.magic != MAGIC:
        raise CorruptBatch(Corruption.UNKNOWN_FORMAT, f"magic {header.magic}")
    size = header.batch_length + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise CorruptBatch(Corruption.IMPOSSIBLE_LENGTH, f"batch length {header.batch_length}")
    if size > available:
        raise CorruptBatch(Corruption.TRUNCATED, f"the batch has {size} bytes, {available} are here")
    return header
