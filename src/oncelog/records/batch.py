"""The header of a record batch (format v2), and walking over batches that lie one behind the other.

     0 base offset i64      8 batch length i32    12 leader epoch i32   16 magic i8            17 CRC u32
    21 attributes i16      23 last offset delta i32                     27 base timestamp i64  35 max timestamp i64
    43 producer id i64     51 producer epoch i16  53 base sequence i32  57 record count i32

The CRC covers everything from the attributes on. Base offset and leader epoch lie before it: the broker writes them into a
producer's batch without touching the rest. The batch length counts from the leader epoch, hence the 12 in `size`.
"""

from collections.abc import Iterator
from enum import Enum, IntEnum
from struct import Struct
from typing import NamedTuple

from oncelog.model.bytes_like import BytesLike
from oncelog.records.compression import Compression
from oncelog.records.crc32c import crc32c

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
MAGIC = 2
MAGIC_POSITION = 16
LENGTH_POSITION = 8
CRC_POSITION = 17
CRC_COVERS_FROM = 21
MAX_TIMESTAMP_POSITION = 35
LOG_OVERHEAD = 12
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

COMPRESSION_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Corruption(Enum):
    TRUNCATED = "truncated"
    IMPOSSIBLE_LENGTH = "impossible length"
    OLD_FORMAT = "old format"
    UNKNOWN_FORMAT = "unknown format"
    UNREADABLE_RECORDS = "unreadable records"


class CorruptBatch(Exception):
    """These bytes are not a record batch."""

    def __init__(self, reason: Corruption, why: str) -> None:
        super().__init__(f"{reason.value}: {why}")
        self.reason = reason
        self.why = why


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """Raises CorruptBatch for the three numbers nobody has given a meaning."""
        number = self.attributes & COMPRESSION_BITS
        if number > Compression.ZSTD:
            raise CorruptBatch(Corruption.UNREADABLE_RECORDS, f"unknown compression type {number}")
        return Compression(number)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """KIP-534: the base timestamp is then the time from which tombstones and markers in this batch may go."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None


def is_transactional(data: BytesLike) -> bool:
    """Whether the batch at the start of `data` says so: a look at one byte, for bytes that may be no batch at all."""
    return len(data) >= HEADER_SIZE and data[CRC_COVERS_FROM + 1] & TRANSACTIONAL_BIT != 0


def read_header(data: BytesLike, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`, which is all there; CorruptBatch if not. The CRC is not looked at."""
    available = len(data) - position
    if available < HEADER_SIZE:
        if available > MAGIC_POSITION and data[position + MAGIC_POSITION] < MAGIC:
            raise CorruptBatch(Corruption.OLD_FORMAT, f"magic {data[position + MAGIC_POSITION]}")
        raise CorruptBatch(Corruption.TRUNCATED, f"{available} bytes are fewer than a header's {HEADER_SIZE}")
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(data, position))
    if header.magic != MAGIC:
        reason = Corruption.OLD_FORMAT if header.magic in (0, 1) else Corruption.UNKNOWN_FORMAT
        raise CorruptBatch(reason, f"magic {header.magic}")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(Corruption.IMPOSSIBLE_LENGTH, f"batch length {header.batch_length} is less than its header")
    if header.batch_length + LOG_OVERHEAD > available:
        raise CorruptBatch(
            Corruption.TRUNCATED, f"the batch has {header.batch_length + LOG_OVERHEAD} bytes, {available} are here"
        )
    return header


def batches(data: BytesLike, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch from `position` to the end; CorruptBatch where the bytes stop making sense, also for a cut last batch."""
    end = len(data)
    while position < end:
        header = read_header(data, position)
        yield position, header
        position += header.batch_length + LOG_OVERHEAD


def compute_crc(data: BytesLike, position: int, size: int) -> int:
    """The CRC-32C that the batch of `size` bytes at `position` should carry."""
    return crc32c(memoryview(data)[position + CRC_COVERS_FROM : position + size])


def crc_matches(data: BytesLike, position: int, header: BatchHeader) -> bool:
    return crc32c(memoryview(data)[position + CRC_COVERS_FROM : position + header.size]) == header.crc


def assign_offset(data: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch into the batch: neither is covered by the CRC."""
    _BASE_OFFSET.pack_into(data, position, base_offset)
    _LEADER_EPOCH.pack_into(data, position + LOG_OVERHEAD, leader_epoch)


def stamp(
    data: bytearray | memoryview, position: int, header: BatchHeader, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Write timestamp type and max timestamp into the batch, and the CRC that follows from them."""
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    _ATTRIBUTES.pack_into(data, position + CRC_COVERS_FROM, attributes)
    _MAX_TIMESTAMP.pack_into(data, position + MAX_TIMESTAMP_POSITION, max_timestamp)
    _CRC.pack_into(data, position + CRC_POSITION, compute_crc(data, position, header.size))
