"""Producer state as it was at an offset, in a file named after that offset: `.snapshot`, Kafka's version 1.

    version i16 · CRC-32C of all that follows u32 · number of producers i32 · per producer: producer id i64, epoch i16,
    last sequence i32, last offset i64, last batch's offsets minus one i32, timestamp i64, coordinator epoch i32, first offset of
    the open transaction i64

Of the five batches that could be repeated only the last is kept: the others come back from the log if it is replayed.
"""

from collections.abc import Iterable
from struct import Struct

from oncelog.log.producer_state import LARGEST_SEQUENCE, NO_TRANSACTION, BatchMetadata, Producer
from oncelog.model.producer_identity import NO_SEQUENCE
from oncelog.records.crc32c import crc32c

VERSION = 1
_VERSION_AND_CRC = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_ENTRIES_AT = _VERSION_AND_CRC.size + _COUNT.size
NO_OFFSET = -1


class CorruptSnapshot(Exception):
    """The file is no producer snapshot: an older one is used, or none, and more of the log is replayed."""


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    entries = []
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        entries.append(
            _ENTRY.pack(
                producer.producer_id,
                producer.producer_epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
        )
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _VERSION_AND_CRC.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[Producer]:
    if len(data) < _ENTRIES_AT:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, crc = _VERSION_AND_CRC.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} instead of {VERSION}")
    if crc32c(data[_VERSION_AND_CRC.size :]) != crc:
        raise CorruptSnapshot("the CRC does not match")
    (count,) = _COUNT.unpack_from(data, _VERSION_AND_CRC.size)
    if count * _ENTRY.size != len(data) - _ENTRIES_AT:
        raise CorruptSnapshot(f"{count} producers are announced in {len(data) - _ENTRIES_AT} bytes")
    producers = []
    for fields in _ENTRY.iter_unpack(data[_ENTRIES_AT:]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = fields
        producer = Producer(producer_id, epoch)
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & LARGEST_SEQUENCE if last_sequence >= 0 else NO_SEQUENCE
            producer.remember(BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))
        producer.last_timestamp = timestamp
        producer.coordinator_epoch = coordinator_epoch
        producer.transaction_first_offset = first_offset if first_offset >= 0 else NO_TRANSACTION
        producers.append(producer)
    return producers
