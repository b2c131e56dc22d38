"""Building record batches: what a producer sends, what the coordinators write, and what is written again otherwise compressed."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from oncelog.model.bytes_like import BytesLike
from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from oncelog.records.batch import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    CRC_COVERS_FROM,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from oncelog.records.compression import Compression, compress
from oncelog.records.crc32c import crc32c
from oncelog.records.record import Record, RecordHeader, records_payload
from oncelog.records.varint import encode_varint

KeyValue: TypeAlias = tuple[bytes | None, bytes | None]


def build_batch(
    records: Iterable[Record | KeyValue],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    timestamp_ms: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """One whole batch. A (key, value) pair takes the next offset and `timestamp_ms`, a Record keeps its own."""
    placed: list[Record] = []
    for record in records:
        if not isinstance(record, Record):
            offset = placed[-1].offset + 1 if placed else base_offset
            record = Record(offset, timestamp_ms, *record)
        placed.append(record)
    attributes = compression | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    base_timestamp = placed[0].timestamp if placed else timestamp_ms
    payload = encode_records(placed, base_offset, base_timestamp)
    return seal(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=partition_leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=placed[-1].offset - base_offset if placed else 0,
            base_timestamp=base_timestamp,
            max_timestamp=max((record.timestamp for record in placed), default=timestamp_ms),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(placed),
        ),
        compress(compression, payload),
    )


def recompress(data: BytesLike, compression: Compression) -> bytes:
    """The batch at the start of `data` under another compression: a topic's compression.type that is not the producer's."""
    header = read_header(data)
    payload = compress(compression, records_payload(data, 0, header))
    return seal(header._replace(attributes=header.attributes & ~COMPRESSION_BITS | compression), payload)


def seal(header: BatchHeader, payload: BytesLike) -> bytes:
    """A whole batch of a header and its records, encoded and compressed already; length and CRC are filled in."""
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LOG_OVERHEAD))
    batch[HEADER_SIZE:] = payload
    with memoryview(batch) as view, view[CRC_COVERS_FROM:] as covered:
        crc = crc32c(covered)
    batch[CRC_POSITION:CRC_COVERS_FROM] = crc.to_bytes(4, "big")
    return bytes(batch)


def encode_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytes:
    parts: list[bytes] = []
    for offset, timestamp, key, value, headers in records:
        body = [
            b"\x00",
            encode_varint(timestamp - base_timestamp),
            encode_varint(offset - base_offset),
            *_nullable(key),
            *_nullable(value),
            *_headers(headers),
        ]
        joined = b"".join(body)
        parts.append(encode_varint(len(joined)))
        parts.append(joined)
    return b"".join(parts)


def _headers(headers: Sequence[RecordHeader]) -> Iterable[bytes]:
    yield encode_varint(len(headers))
    for key, value in headers:
        yield from _nullable(key.encode("utf-8"))
        yield from _nullable(value)


def _nullable(data: bytes | None) -> tuple[bytes, ...]:
    if data is None:
        return (encode_varint(-1),)
    return encode_varint(len(data)), data
