"""What a producer may send: every case of produce_cases.py, with the kernel and without, and what else validation promises."""

import cramjam
import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.records import validation, walk
from oncelog.records.batch import TimestampType, crc_matches, read_header, stamp
from oncelog.records.builder import build_batch
from oncelog.records.compression import Compression
from oncelog.records.record import Record, read_records
from oncelog.records.validation import (
    Produced,
    ProduceRules,
    RecordsRefused,
    refuse_for_version,
    validate_produced,
)
from tests.unit.records.produce_cases import CASES, HOUR_MS, Case, batch_of, patched, records

NOW = 1_700_000_000_000


@pytest.fixture(params=["kernel", "python"], autouse=True)
def walker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(validation, "walk_records", walk.walk_records_in_python)
    elif walk.walk_records is walk.walk_records_in_python:
        pytest.skip("the C kernel is not built here")


def rules_of(topic: dict[str, str]) -> ProduceRules:
    defaults = ProduceRules()
    return ProduceRules(
        max_message_bytes=int(topic.get("max.message.bytes", defaults.max_message_bytes)),
        compacted=topic.get("cleanup.policy") == "compact",
        timestamp_type=TimestampType.LOG_APPEND_TIME
        if "message.timestamp.type" in topic
        else TimestampType.CREATE_TIME,
        timestamp_before_max_ms=int(topic.get("message.timestamp.before.max.ms", defaults.timestamp_before_max_ms)),
        timestamp_after_max_ms=int(topic.get("message.timestamp.after.max.ms", defaults.timestamp_after_max_ms)),
    )


def answer_to(case: Case) -> Produced | Refused:
    data = memoryview(bytearray(case.data(NOW)))
    return refuse_for_version(data, case.version) or validate_produced(data, rules_of(case.topic), NOW)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_batch_is_taken_or_refused_with_the_documented_code(case: Case) -> None:
    answer = answer_to(case)

    assert (answer.code if isinstance(answer, Refused) else ErrorCode.NONE) == case.ours, answer
    errors = answer.record_errors if isinstance(answer, RecordsRefused) else ()
    assert tuple(error.batch_index for error in errors) == case.record_errors


def test_every_difference_from_kafka_has_its_reason() -> None:
    assert [case.name for case in CASES if (case.ours != case.kafka) != bool(case.why)] == []


def test_a_refusal_says_what_is_wrong() -> None:
    refused = validate_produced(patched(build_batch(records(3, NOW)), 57, ">i", 9), ProduceRules(), NOW)

    assert isinstance(refused, Refused)
    assert "9 records" in refused.why
    assert "3" in refused.why


def test_the_greatest_timestamp_is_the_records_whatever_the_header_says() -> None:
    batch = patched(build_batch([Record(0, NOW - 5, b"k", b"v"), Record(1, NOW + 7, b"k", b"v")]), 35, ">q", 3)

    produced = validate_produced(batch, ProduceRules(), NOW)

    assert isinstance(produced, Produced)
    assert (produced.max_timestamp, produced.needs_stamp) == (NOW + 7, True)


def test_a_batch_as_it_should_be_needs_no_stamp() -> None:
    produced = validate_produced(build_batch(records(2, NOW)), ProduceRules(), NOW)

    assert isinstance(produced, Produced)
    assert (produced.max_timestamp, produced.needs_stamp) == (NOW, False)


def test_append_time_is_stamped_into_the_batch() -> None:
    batch = bytearray(build_batch(records(2, NOW - HOUR_MS)))
    rules = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)

    produced = validate_produced(batch, rules, NOW)
    assert isinstance(produced, Produced)
    assert produced.needs_stamp
    stamp(batch, 0, produced.header, rules.timestamp_type, produced.max_timestamp)

    assert crc_matches(batch, 0, read_header(batch))
    assert [record.timestamp for record in read_records(batch)] == [NOW, NOW]


def test_a_client_s_append_time_flag_does_not_survive_on_a_create_time_topic() -> None:
    batch = bytearray(patched(build_batch(records(2, NOW - 5)), 21, ">h", 8))

    produced = validate_produced(batch, ProduceRules(), NOW)
    assert isinstance(produced, Produced)
    assert produced.needs_stamp
    stamp(batch, 0, produced.header, TimestampType.CREATE_TIME, produced.max_timestamp)

    assert read_header(batch).timestamp_type is TimestampType.CREATE_TIME
    assert [record.timestamp for record in read_records(batch)] == [NOW - 5, NOW - 5]


class Limited(ProduceRules):
    """Snappy and gzip do not reach a hundredfold by much: a low limit makes small bombs of them."""

    @property
    def decompressed_limit(self) -> int:
        return 16 << 20


@pytest.mark.parametrize(
    ("compression", "bomb"),
    [
        (Compression.ZSTD, lambda: cramjam.zstd.compress(bytes(64 << 20), 1)),
        (Compression.GZIP, lambda: cramjam.gzip.compress(bytes(64 << 20), 1)),
        (Compression.SNAPPY, lambda: cramjam.snappy.compress_raw(bytes(64 << 20))),
    ],
)
def test_data_that_decompresses_without_end_is_refused(compression, bomb) -> None:
    batch = batch_of(bytes(bomb()), 1, NOW, compression)
    limit = 16 << 20

    refused = validate_produced(batch, Limited(max_message_bytes=len(batch)), NOW)

    assert isinstance(refused, Refused)
    assert refused.code is ErrorCode.MESSAGE_TOO_LARGE
    assert str(limit) in refused.why


def test_the_decompressed_limit_follows_the_topic_within_bounds() -> None:
    assert ProduceRules(max_message_bytes=1 << 20).decompressed_limit == 100 << 20
    assert ProduceRules(max_message_bytes=100).decompressed_limit == 16 << 20
    assert ProduceRules(max_message_bytes=2**31 - 1).decompressed_limit == 1 << 30
