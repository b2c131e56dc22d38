"""Readers of batches against arbitrary bytes: an answer or CorruptBatch, nothing else, and no more memory than the limits say."""

import random
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oncelog.model.refused import Refused
from oncelog.records.batch import HEADER, BatchHeader, CorruptBatch, batches, compute_crc, read_header
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression, Undecompressable, compress, decompress
from oncelog.records.control import read_control_record
from oncelog.records.record import Record, read_all_records, read_records
from oncelog.records.scan import scan_records, scan_records_in_python
from oncelog.records.validation import Produced, ProduceRules, RecordsRefused, refuse_for_version, validate_produced
from oncelog.records.walk import walk_records, walk_records_in_python

NOW = 1_700_000_000_000
RULES = [
    ProduceRules(),
    ProduceRules(compacted=True, timestamp_before_max_ms=1000, timestamp_after_max_ms=1000),
    ProduceRules(timestamp_after_max_ms=2**63 - 1, max_message_bytes=300),
]


def read_everything(data: bytes) -> None:
    for read in (read_records, read_all_records, read_control_record, lambda data: list(batches(data))):
        with suppress(CorruptBatch):
            read(data)
    for rules in RULES:
        answer = refuse_for_version(data, 6) or validate_produced(data, rules, NOW)
        assert isinstance(answer, Produced | Refused | RecordsRefused)
        if isinstance(answer, Produced):
            # What is taken can be read, and holds what its header says.
            assert len(read_records(data)) == answer.header.record_count
            assert len(data) == answer.header.size


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
@example(bytes(61))
@example(b"\xff" * 100)
def test_arbitrary_bytes(data: bytes) -> None:
    read_everything(data)
    for compression in Compression:
        with suppress(Undecompressable):
            decompress(compression, data, 1 << 20)


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_batches_with_a_right_crc(compression: Compression, seed: int) -> None:
    """The CRC is no defence against whoever computes it: the damage is sealed in."""
    chance = random.Random(seed * 10 + compression)
    records = [
        Record(i, NOW + chance.randrange(-5, 5), chance.choice([None, b"key"]), chance.randbytes(20), [("h", b"v")])
        for i in range(8)
    ]
    whole = build_batch(records, compression=compression)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        if len(data) > 61 and chance.random() < 0.9:
            data[8:12] = (len(data) - 12).to_bytes(4, "big")
            data[16] = 2
            data[0:8] = bytes(8)
            data[17:21] = compute_crc(data, 0, len(data)).to_bytes(4, "big")
        read_everything(bytes(data))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_records_inside_compressed_data(seed: int) -> None:
    chance = random.Random(seed)
    payload = build_batch([(b"key", chance.randbytes(10))] * 6, timestamp_ms=NOW)[61:]
    header = read_header(build_batch([(b"key", b"value")] * 6, timestamp_ms=NOW))
    for _ in range(300):
        data = bytearray(payload)
        for _ in range(chance.randrange(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        assert walk_records(data, 0, len(data), 6) == walk_records_in_python(data, 0, len(data), 6)
        assert scan_records(data, 0, 6) == scan_records_in_python(data, 0, 6)
        packed = compress(Compression.LZ4, bytes(data))
        batch = bytearray(whole_batch(header._replace(attributes=Compression.LZ4), packed))
        read_everything(bytes(batch))


def whole_batch(header: BatchHeader, payload: bytes) -> bytes:
    batch = bytearray(HEADER.pack(*header._replace(batch_length=49 + len(payload))) + payload)
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    return bytes(batch)
