"""What a producer may send: one whole, intact, plain batch of well-formed records. Everything a client can get wrong ends here as
a refusal with the code Apache Kafka gives, before a byte of it is stored; tests/unit/records/test_validation.py has the table.

Where Kafka stumbles over the bytes (UNKNOWN_SERVER_ERROR) or lets pass what readers would trip over (offset deltas that are not
0, 1, 2; record lengths inside compressed data that do not add up; bytes behind the batch), this is INVALID_RECORD.

The usual case, one uncompressed batch, is a dozen comparisons, one CRC and one walk in C: about 2 µs for a tiny batch.
"""

from dataclasses import dataclass
from typing import NamedTuple

from oncelog.model.bytes_like import BytesLike
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.records.batch import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    CRC_COVERS_FROM,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
)
from oncelog.records.compression import GIB, Compression, TooLargeDecompressed, Undecompressable, decompress
from oncelog.records.crc32c import crc32c
from oncelog.records.record import parse_records
from oncelog.records.walk import RecordFault, walk_records

_new = tuple.__new__

MIB = 1 << 20
LONGEST_TIME_MS = (1 << 63) - 1
DEFAULT_TIMESTAMP_AFTER_MAX_MS = 3_600_000
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
FIRST_PRODUCE_VERSION_WITH_ZSTD = 7


class RecordError(NamedTuple):
    """Which record of the batch, and what is wrong with it: what Produce v8+ tells the client (KIP-467)."""

    batch_index: int
    why: str


@dataclass(frozen=True, slots=True)
class RecordsRefused(Refused):
    record_errors: tuple[RecordError, ...] = ()


@dataclass(frozen=True, slots=True)
class ProduceRules:
    """What the topic's configuration asks of a batch."""

    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    compacted: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = LONGEST_TIME_MS
    timestamp_after_max_ms: int = DEFAULT_TIMESTAMP_AFTER_MAX_MS

    @property
    def decompressed_limit(self) -> int:
        """A hundred times what may be sent is far more than real data yields, and an end to data made to fill the memory."""
        return min(GIB, max(16 * MIB, 100 * self.max_message_bytes))


class Produced(NamedTuple):
    """A batch that may be stored."""

    header: BatchHeader
    max_timestamp: int
    """What the stored header must carry: the greatest of the records, or now where the topic keeps append times."""
    needs_stamp: bool
    """The header as sent carries another timestamp type or max timestamp: `batch.stamp` it with the topic's before storing."""


def validate_produced(data: BytesLike, rules: ProduceRules, now_ms: int) -> Produced | Refused:
    """May the records of one partition of a Produce request be stored?"""
    if len(data) < HEADER_SIZE:
        return _refuse_short(data)
    header: BatchHeader = _new(BatchHeader, HEADER.unpack_from(data))
    (
        base_offset,
        batch_length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        _,
        base_sequence,
        count,
    ) = header
    size = batch_length + LOG_OVERHEAD
    if magic != MAGIC or size != len(data):
        return _refuse_framing(data, header)
    if base_offset != 0:
        return Refused(ErrorCode.INVALID_RECORD, f"a producer's batch starts at offset 0, not {base_offset}")
    if size > rules.max_message_bytes:
        return Refused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes of the topic is {rules.max_message_bytes}",
        )
    view = data if type(data) is memoryview else memoryview(data)
    if crc32c(view[CRC_COVERS_FROM:]) != crc:
        return Refused(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match: send it again")
    if count <= 0 or count != last_offset_delta + 1:
        return Refused(
            ErrorCode.INVALID_RECORD, f"the batch says {count} records and offsets for {last_offset_delta + 1}"
        )
    if attributes & CONTROL_BIT:
        return Refused(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if producer_id >= 0 and base_sequence < 0:
        return Refused(ErrorCode.INVALID_RECORD, f"sequence {base_sequence} in a batch of producer id {producer_id}")
    if attributes & COMPRESSION_BITS:
        payload = _decompress(view[HEADER_SIZE:size], attributes & COMPRESSION_BITS, rules.decompressed_limit)
        if isinstance(payload, Refused):
            return payload
        walked = walk_records(payload, 0, len(payload), count)
    else:
        payload = None
        walked = walk_records(data, HEADER_SIZE, size, count)
    fault, index, first_null_key, least, greatest = walked
    if fault:
        return Refused(ErrorCode.INVALID_RECORD, f"record {index} of {count}: {RecordFault(fault).name}")
    if first_null_key >= 0 and rules.compacted:
        return _refuse_null_keys(view[HEADER_SIZE:] if payload is None else payload, header)
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return Produced(header, now_ms, True)
    greatest += base_timestamp
    if (
        greatest - now_ms > rules.timestamp_after_max_ms
        or now_ms - base_timestamp - least > rules.timestamp_before_max_ms
        or greatest > LONGEST_TIME_MS
    ):
        refused = _refuse_timestamps(view[HEADER_SIZE:] if payload is None else payload, header, rules, now_ms)
        if refused is not None:
            return refused
    # Every produce comes through here: what the constructor does, without the call.
    return _new(Produced, (header, greatest, greatest != max_timestamp or attributes & LOG_APPEND_TIME_BIT != 0))


def refuse_for_version(data: BytesLike, version: int) -> Refused | None:
    """What depends on the Produce version: zstd came with v7. To be asked before the log is, for older versions only."""
    if (
        version < FIRST_PRODUCE_VERSION_WITH_ZSTD
        and len(data) >= HEADER_SIZE
        and data[MAGIC_POSITION] == MAGIC
        and data[CRC_COVERS_FROM + 1] & COMPRESSION_BITS == Compression.ZSTD
    ):
        return Refused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce v{FIRST_PRODUCE_VERSION_WITH_ZSTD}, this is v{version}",
        )
    return None


def _refuse_short(data: BytesLike) -> Refused:
    if len(data) > MAGIC_POSITION and data[MAGIC_POSITION] < MAGIC:
        return _old_format(data[MAGIC_POSITION])
    return Refused(ErrorCode.INVALID_RECORD, f"{len(data)} bytes hold no record batch")


def _old_format(magic: int) -> Refused:
    return Refused(
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format v{magic} is not supported: produce format v2"
    )


def _refuse_framing(data: BytesLike, header: BatchHeader) -> Refused:
    """The bytes are not exactly one batch of the current format."""
    if header.magic in (0, 1):
        return _old_format(header.magic)
    if header.magic != MAGIC:
        return Refused(ErrorCode.CORRUPT_MESSAGE, f"there is no message format v{header.magic}")
    if header.size < HEADER_SIZE:
        return Refused(ErrorCode.CORRUPT_MESSAGE, f"batch length {header.batch_length} is less than a header")
    left = len(data) - header.size
    if left < 0:
        return Refused(ErrorCode.INVALID_RECORD, f"the batch has {header.size} bytes, {len(data)} were sent")
    return Refused(ErrorCode.INVALID_RECORD, f"{left} bytes behind the batch: one batch per partition and request")


def _decompress(payload: memoryview, number: int, limit: int) -> BytesLike | Refused:
    if number > Compression.ZSTD:
        return Refused(ErrorCode.INVALID_RECORD, f"unknown compression type {number}")
    try:
        return decompress(Compression(number), payload, limit)
    except TooLargeDecompressed as error:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except Undecompressable as error:
        return Refused(ErrorCode.INVALID_RECORD, f"compressed records cannot be read: {error}")


def _refuse_null_keys(payload: BytesLike, header: BatchHeader) -> RecordsRefused:
    errors = tuple(
        RecordError(index, "a compacted topic takes no record without a key")
        for index, record in enumerate(parse_records(payload, header))
        if record.key is None
    )
    return RecordsRefused(ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key", errors)


def _refuse_timestamps(
    payload: BytesLike, header: BatchHeader, rules: ProduceRules, now_ms: int
) -> RecordsRefused | None:
    earliest = max(now_ms - rules.timestamp_before_max_ms, -LONGEST_TIME_MS)
    latest = min(now_ms + rules.timestamp_after_max_ms, LONGEST_TIME_MS)
    errors = tuple(
        RecordError(index, f"timestamp {record.timestamp} is not between {earliest} and {latest}")
        for index, record in enumerate(parse_records(payload, header))
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    )
    if not errors:
        return None
    return RecordsRefused(ErrorCode.INVALID_TIMESTAMP, "timestamps outside of what the topic allows", errors)
