"""What a producer may get wrong, as bytes, and the answers: Apache Kafka's, asked once over the wire (4.3), and ours.

The unit test holds our validation to the column `ours`; tests/conformance/test_produce_refusals.py asks a real Kafka for the
column `kafka`. Where the two differ, `why` says what speaks for ours.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import cramjam

from oncelog.model.error_code import ErrorCode
from oncelog.records.batch import HEADER_SIZE, BatchHeader, compute_crc
from oncelog.records.builder import build_batch, encode_records
from oncelog.records.compression import Compression, compress
from oncelog.records.record import Record
from oncelog.records.varint import encode_varint

NONE = ErrorCode.NONE
INVALID_RECORD = ErrorCode.INVALID_RECORD
CORRUPT_MESSAGE = ErrorCode.CORRUPT_MESSAGE
UNKNOWN_SERVER_ERROR = ErrorCode.UNKNOWN_SERVER_ERROR
INVALID_TIMESTAMP = ErrorCode.INVALID_TIMESTAMP

HOUR_MS = 3_600_000
COMPACTED = {"cleanup.policy": "compact"}
SMALL = {"max.message.bytes": "200"}
STRICT_TIMES = {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}
ANY_FUTURE = {"message.timestamp.after.max.ms": str(2**63 - 1)}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}

BIT_CONTROL = 0x20
COMPRESSIONS = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)


@dataclass(frozen=True)
class Case:
    name: str
    data: Callable[[int], bytes]
    """Of the wall clock in ms."""
    kafka: ErrorCode
    ours: ErrorCode
    why: str = ""
    topic: dict[str, str] = field(default_factory=dict)
    version: int = 8
    record_errors: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name


def records(count: int, timestamp: int) -> list[Record]:
    return [Record(index, timestamp, b"key", b"value") for index in range(count)]


def sealed(data: bytes) -> bytes:
    """With the CRC that fits what the batch says now."""
    batch = bytearray(data)
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    return bytes(batch)


def patched(data: bytes, position: int, layout: str, value: int, *, seal: bool = True) -> bytes:
    batch = bytearray(data)
    struct.pack_into(layout, batch, position, value)
    return sealed(batch) if seal else bytes(batch)


def batch_of(payload: bytes, count: int, now: int, attributes: int = 0) -> bytes:
    """A batch with a right header and CRC around any payload."""
    header = BatchHeader(
        0, HEADER_SIZE + len(payload) - 12, -1, 2, 0, attributes, count - 1, now, now, -1, -1, -1, count
    )
    return sealed(struct.pack(">qiibIhiqqqhii", *header) + payload)


def good(now: int, count: int = 3) -> bytes:
    return build_batch(records(count, now))


def old_message(magic: int, now: int, value: bytes) -> bytes:
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", now) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(body)) + body


def one_record(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


def lz4_linked(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=True)
    compressor.compress(data)
    return bytes(compressor.finish())


def with_offsets(offsets: list[int], compression: Compression) -> Callable[[int], bytes]:
    def data(now: int) -> bytes:
        payload = encode_records([Record(offset, now, b"key", b"value") for offset in offsets], 0, now)
        return batch_of(compress(compression, payload), len(offsets), now, compression)

    return data


def first_length_changed(by: int, compression: Compression) -> Callable[[int], bytes]:
    def data(now: int) -> bytes:
        payload = bytearray(encode_records(records(3, now), 0, now))
        payload[0] += 2 * by
        return batch_of(compress(compression, bytes(payload)), 3, now, compression)

    return data


def compressed(compression: Compression, change: Callable[[bytes], bytes], count: int = 3) -> Callable[[int], bytes]:
    def data(now: int) -> bytes:
        payload = encode_records(records(count, now), 0, now)
        return batch_of(change(compress(compression, payload)), 3, now, compression)

    return data


STUMBLES = "Kafka's reader throws something unforeseen; the records are what is wrong"
TRIPS = "readers would see offsets that are not there"
STRICT = "what is stored is exactly what was understood"

FRAMING = [
    Case("good", good, NONE, NONE),
    Case("old magic 0", lambda now: old_message(0, now, b"v"), INVALID_RECORD, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
         "the code is made for this and says what to change"),
    Case("old magic 1", lambda now: old_message(1, now, b"v" * 100), INVALID_RECORD,
         ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "as above", version=3),
    Case("magic 3", lambda now: patched(good(now), 16, ">b", 3, seal=False), CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("magic -1", lambda now: patched(good(now), 16, ">b", -1, seal=False), CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("wrong CRC", lambda now: good(now)[:-1] + b"\x01", CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("no bytes", lambda now: b"", INVALID_RECORD, INVALID_RECORD),
    Case("two batches", lambda now: good(now) + good(now), INVALID_RECORD, INVALID_RECORD),
    Case("garbage behind the batch", lambda now: good(now) + b"abc", NONE, INVALID_RECORD, STRICT),
    Case("half a batch behind", lambda now: good(now) + good(now)[:70], NONE, INVALID_RECORD, STRICT),
    Case("cut in the records", lambda now: good(now)[:-5], INVALID_RECORD, INVALID_RECORD),
    Case("cut in the header", lambda now: good(now)[:40], INVALID_RECORD, INVALID_RECORD),
    Case("length 0", lambda now: patched(good(now), 8, ">i", 0, seal=False), CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("length -1", lambda now: patched(good(now), 8, ">i", -1, seal=False), CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("length 48", lambda now: patched(good(now), 8, ">i", 48, seal=False), CORRUPT_MESSAGE, CORRUPT_MESSAGE),
    Case("header alone", lambda now: sealed(patched(good(now)[:61], 8, ">i", 49)), INVALID_RECORD, INVALID_RECORD),
    Case("base offset 5", lambda now: patched(good(now), 0, ">q", 5), INVALID_RECORD, INVALID_RECORD),
    Case("base offset -1", lambda now: patched(good(now), 0, ">q", -1), INVALID_RECORD, INVALID_RECORD),
    Case("leader epoch given", lambda now: patched(good(now), 12, ">i", 9), NONE, NONE),
    Case("too large", lambda now: build_batch([(b"k", b"x" * 300)], timestamp_ms=now), ErrorCode.MESSAGE_TOO_LARGE,
         ErrorCode.MESSAGE_TOO_LARGE, topic=SMALL),
    Case("as large as allowed", lambda now: build_batch([(b"k", b"x" * 128)], timestamp_ms=now), NONE, NONE, topic=SMALL),
]  # fmt: skip

COUNTS = [
    Case("control batch", lambda now: build_batch(records(1, now), control=True), INVALID_RECORD, INVALID_RECORD),
    *(
        Case(f"count {count}, offsets for 3", lambda now, count=count: patched(good(now), 57, ">i", count),
             INVALID_RECORD, INVALID_RECORD)
        for count in (4, 2, 0, -1)
    ),
    *(
        Case(f"last offset delta {delta} for 3", lambda now, delta=delta: patched(good(now), 23, ">i", delta),
             INVALID_RECORD, INVALID_RECORD)
        for delta in (5, 1, -1)
    ),
    *(
        Case(f"{count} announced, 3 there",
             lambda now, count=count: patched(patched(good(now), 57, ">i", count), 23, ">i", count - 1),
             INVALID_RECORD, INVALID_RECORD)
        for count in (4, 2, 2**31 - 1)
    ),
    Case("producer id without sequence", lambda now: build_batch(records(1, now), producer_id=77, producer_epoch=0),
         INVALID_RECORD, INVALID_RECORD),
    Case("sequence without producer id", lambda now: build_batch(records(1, now), base_sequence=3), NONE, NONE),
    Case("unused attribute bits", lambda now: patched(good(now), 21, ">h", 0x4080), NONE, NONE),
]  # fmt: skip

TIMES = [
    Case("two hours ahead", lambda now: build_batch(records(2, now + 2 * HOUR_MS)), INVALID_TIMESTAMP, INVALID_TIMESTAMP,
         record_errors=(0, 1)),
    Case("very old", lambda now: build_batch(records(2, 1000)), NONE, NONE),
    Case("no timestamp", lambda now: build_batch(records(2, -1)), NONE, NONE),
    Case("negative timestamp", lambda now: build_batch(records(2, -5)), NONE, NONE),
    Case("too old by the topic", lambda now: build_batch(records(2, now - HOUR_MS)), INVALID_TIMESTAMP, INVALID_TIMESTAMP,
         topic=STRICT_TIMES, record_errors=(0, 1)),
    Case("no timestamp, strict topic", lambda now: build_batch(records(2, -1)), NONE, NONE, topic=STRICT_TIMES),
    Case("one ahead, one too old",
         lambda now: build_batch([Record(i, now + ahead, b"k", b"v") for i, ahead in enumerate((0, HOUR_MS, -HOUR_MS))]),
         INVALID_TIMESTAMP, INVALID_TIMESTAMP, topic=STRICT_TIMES, record_errors=(1, 2)),
    Case("too old, compressed", lambda now: build_batch(records(2, now - HOUR_MS), compression=Compression.GZIP),
         INVALID_TIMESTAMP, INVALID_TIMESTAMP, topic=STRICT_TIMES, record_errors=(0, 1)),
    Case("ahead, append time", lambda now: build_batch(records(2, now + 2 * HOUR_MS)), NONE, NONE, topic=APPEND_TIME),
    Case("says append time itself", lambda now: patched(good(now), 21, ">h", 8), NONE, NONE),
    Case("max timestamp too low", lambda now: patched(good(now), 35, ">q", 5), NONE, NONE),
    Case("max timestamp too high", lambda now: patched(good(now), 35, ">q", 2**62), NONE, NONE, topic=STRICT_TIMES),
    Case("far ahead, allowed", lambda now: build_batch(records(1, 2**62)), NONE, NONE, topic=ANY_FUTURE),
    Case("time beyond 64 bits",
         lambda now: patched(batch_of(encode_records([Record(0, 2**62, b"k", b"v")], 0, -(2**61)), 1, now), 27, ">q", 2**62),
         NONE, INVALID_TIMESTAMP, "Kafka wraps around to the distant past", topic=ANY_FUTURE, record_errors=(0,)),
]  # fmt: skip

KEYS = [
    Case(f"null keys, compacted, {compression.name.lower()}",
         lambda now, compression=compression: build_batch(
             [(b"a", b"1"), (None, b"2"), (b"c", b"3"), (None, b"4")], timestamp_ms=now, compression=compression),
         INVALID_RECORD, INVALID_RECORD, topic=COMPACTED, record_errors=(1, 3))
    for compression in (Compression.NONE, Compression.GZIP)
] + [
    Case("null key, not compacted", lambda now: build_batch([(None, b"1")], timestamp_ms=now), NONE, NONE),
    Case("empty key, compacted", lambda now: build_batch([(b"", b"1")], timestamp_ms=now), NONE, NONE, topic=COMPACTED),
]  # fmt: skip

COMPRESSED = [
    *(
        Case(f"zstd, Produce v{version}", lambda now: build_batch(records(3, now), compression=Compression.ZSTD), code, code,
             version=version)
        for version, code in ((3, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, NONE))
    ),
    *(
        Case(f"compression type {number}", lambda now, number=number: patched(good(now), 21, ">h", number),
             UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES)
        for number in (5, 6, 7)
    ),
    Case("snappy without framing",
         lambda now: batch_of(bytes(cramjam.snappy.compress_raw(encode_records(records(3, now), 0, now))), 3, now, 2), NONE, NONE),
    Case("snappy's other framing",
         lambda now: batch_of(bytes(cramjam.snappy.compress(encode_records(records(3, now), 0, now))), 3, now, 2),
         UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES),
    Case("lz4 with linked blocks",
         lambda now: batch_of(lz4_linked(encode_records(records(3, now), 0, now)), 3, now, 3),
         UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES),
    *(
        case
        for compression in COMPRESSIONS
        for case in (
            Case(f"good {compression.name.lower()}", compressed(compression, bytes), NONE, NONE),
            Case(f"not {compression.name.lower()} at all", compressed(compression, lambda _: b"not what it says it is"),
                 UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES),
            Case(f"{compression.name.lower()} cut off", compressed(compression, lambda data: data[:-3]),
                 UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES),
            Case(f"{compression.name.lower()} of fewer records", compressed(compression, bytes, 2), INVALID_RECORD, INVALID_RECORD),
            Case(f"{compression.name.lower()} of more records", compressed(compression, bytes, 4), INVALID_RECORD, INVALID_RECORD),
        )
    ),
]  # fmt: skip

RECORDS = [
    *(
        Case(f"first record's length {by:+}", first_length_changed(by, Compression.NONE), INVALID_RECORD, INVALID_RECORD)
        for by in (1, -1, 40)
    ),
    *(
        Case(f"first record's length {by:+}, compressed", first_length_changed(by, Compression.GZIP), NONE, INVALID_RECORD, STRICT)
        for by in (1, -1, 40)
    ),
    Case("number too long", lambda now: batch_of(b"\xff" * 12, 1, now), UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES),
    Case("offset deltas with a gap", with_offsets([0, 2, 3], Compression.NONE), NONE, INVALID_RECORD, TRIPS),
    Case("offset deltas out of order", with_offsets([0, 2, 1], Compression.NONE), NONE, INVALID_RECORD, TRIPS),
    Case("offset deltas from 1", with_offsets([1, 2, 3], Compression.NONE), NONE, INVALID_RECORD, TRIPS),
    *(
        Case(f"offset deltas out of order, {compression.name.lower()}", with_offsets([0, 2, 1], compression),
             UNKNOWN_SERVER_ERROR, INVALID_RECORD, STUMBLES)
        for compression in COMPRESSIONS
    ),
    *(
        Case(name, lambda now, body=body: batch_of(one_record(body), 1, now), kafka, ours, why)
        for name, body, kafka, ours, why in (
            ("header without key", b"\0\0\0\x01\x01\x02\x01\x01", INVALID_RECORD, INVALID_RECORD, ""),
            ("header count -1", b"\0\0\0\x01\x01\x01", INVALID_RECORD, INVALID_RECORD, ""),
            ("header count huge", b"\0\0\0\x01\x01\xfe\xff\xff\xff\x0f", INVALID_RECORD, INVALID_RECORD, ""),
            ("header missing", b"\0\0\0\x01\x01\x04\x02a\x01", INVALID_RECORD, INVALID_RECORD, ""),
            ("byte behind the headers", b"\0\0\0\x01\x01\0\0", INVALID_RECORD, INVALID_RECORD, ""),
            ("key length -2", b"\0\0\0\x03\x01\0", NONE, INVALID_RECORD, STRICT),
            ("value length -2", b"\0\0\0\x01\x03\0", NONE, INVALID_RECORD, STRICT),
            ("record attributes", b"\x55\0\0\x01\x01\0", NONE, NONE, ""),
            ("header key not UTF-8", b"\0\0\0\x01\x01\x02\x02\xff\x01", NONE, NONE, ""),
        )
    ),
]  # fmt: skip

CASES = [*FRAMING, *COUNTS, *TIMES, *KEYS, *COMPRESSED, *RECORDS]
