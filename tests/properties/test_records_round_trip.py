"""Any records, any compression: what was built is read back, by us and by two other implementations, and theirs by us."""

import warnings

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.records.batch import crc_matches, read_header
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.record import Record, read_records
from oncelog.records.scan import scan_records, scan_records_in_python
from oncelog.records.validation import LONGEST_TIME_MS, Produced, ProduceRules, validate_produced
from oncelog.records.walk import walk_records, walk_records_in_python

with warnings.catch_warnings():
    # Its import reads resources in a way Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

small_bytes = st.one_of(st.none(), st.binary(max_size=60), st.binary(min_size=120, max_size=200))
headers = st.lists(st.tuples(st.text(max_size=8), small_bytes), max_size=3)
timestamps = st.integers(min_value=0, max_value=2**45)
contents = st.lists(st.tuples(timestamps, small_bytes, small_bytes, headers), min_size=1, max_size=12)
compressions = st.sampled_from(Compression)
# The codecs the other libraries bring without further packages.
theirs = st.sampled_from([Compression.NONE, Compression.GZIP])

ANY_TIME = ProduceRules(timestamp_after_max_ms=LONGEST_TIME_MS)


def records_of(content, base: int = 0) -> list[Record]:
    return [Record(base + index, *fields[:3], fields[3] or ()) for index, fields in enumerate(content)]


@settings(max_examples=150, deadline=None)
@given(contents, compressions, st.integers(0, 2**60))
def test_what_is_built_is_read_and_taken(content, compression, base) -> None:
    records = records_of(content, base)
    batch = build_batch(records, base_offset=base, compression=compression)

    assert crc_matches(batch, 0, read_header(batch))
    assert read_records(batch) == records
    as_sent = bytes(8) + batch[8:]
    produced = validate_produced(as_sent, ANY_TIME, 0)
    assert isinstance(produced, Produced)
    assert produced.max_timestamp == max(record.timestamp for record in records)


@settings(max_examples=100, deadline=None)
@given(contents, theirs)
def test_kafka_python_reads_ours(content, compression) -> None:
    records = records_of(content)
    theirs = KafkaPythonBatch(build_batch(records, compression=compression))

    assert theirs.validate_crc()
    assert [
        (record.offset, record.timestamp, record.key, record.value, [(key, value) for key, value in record.headers])
        for record in theirs
    ] == [(record.offset, record.timestamp, record.key, record.value, list(record.headers)) for record in records]


@settings(max_examples=100, deadline=None)
@given(contents, theirs, st.booleans())
def test_we_read_and_take_kafka_python_s(content, compression, transactional) -> None:
    builder = KafkaPythonBuilder(
        magic=2, compression_type=compression, is_transactional=transactional, producer_id=9, producer_epoch=1,
        base_sequence=5, batch_size=1 << 20,
    )  # fmt: skip
    for index, (timestamp, key, value, header) in enumerate(content):
        assert builder.append(index, timestamp, key, value, header)
    batch = bytes(builder.build())

    assert read_records(batch) == records_of(content)
    produced = validate_produced(batch, ANY_TIME, 0)
    assert isinstance(produced, Produced)
    assert (produced.header.producer_id, produced.header.base_sequence) == (9, 5)
    assert produced.header.is_transactional == transactional


@settings(max_examples=100, deadline=None)
@given(contents, st.sampled_from(Compression))
def test_we_read_and_take_aiokafka_s(content, compression) -> None:
    builder = AiokafkaBuilder(
        magic=2, compression_type=compression, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for index, (timestamp, key, value, header) in enumerate(content):
        assert builder.append(index, timestamp, key, value, header)
    batch = bytes(builder.build())

    assert read_records(batch) == records_of(content)
    assert isinstance(validate_produced(batch, ANY_TIME, 0), Produced)


@settings(max_examples=300, deadline=None)
@given(contents, st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=3), st.integers(0, 15))
def test_the_kernel_and_python_agree_on_damaged_records_too(content, damage, count) -> None:
    payload = bytearray(build_batch(records_of(content))[61:])
    for position, byte in damage:
        payload[position % len(payload)] = byte

    assert walk_records(payload, 0, len(payload), count) == walk_records_in_python(payload, 0, len(payload), count)
    assert scan_records(payload, 0, count) == scan_records_in_python(payload, 0, count)
