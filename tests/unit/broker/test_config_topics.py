"""Topic configs are taken and refused as Apache Kafka 4.3 takes and refuses them.

`kafka_topic_config_answers.json` is what its LogConfig answered to every candidate value for every name.
"""

import json
from pathlib import Path

import pytest

from oncelog.broker.config import validate_topic_config, validate_topic_configs
from oncelog.model.error_code import ErrorCode

ANSWERS = json.loads((Path(__file__).parent / "kafka_topic_config_answers.json").read_text())

#: Not a number is no ratio: Kafka takes it and then never compacts.
TAKEN_BY_KAFKA_ONLY = {("min.cleanable.dirty.ratio", "NaN")}


@pytest.mark.parametrize("name", sorted(ANSWERS["accepted"]))
def test_values_are_taken_as_kafka_takes_them(name: str):
    taken = [value for value in ANSWERS["candidates"] if validate_topic_config(name, value) is None]
    expected = [
        value
        for value in ANSWERS["accepted"][name]
        if (name, value) not in TAKEN_BY_KAFKA_ONLY
        # A single broker of Kafka's refuses these too, one step later.
        and not (name == "remote.storage.enable" and value.lower() == "true")
    ]

    assert taken == expected


def test_an_unknown_name_suggests_the_nearest():
    refused = validate_topic_config("retention.msec", "1")

    assert refused is not None
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert refused.why == "unknown topic config retention.msec: did you mean retention.ms?"


def test_a_refusal_says_what_would_do():
    refused = validate_topic_config("retention.ms", "-2")

    assert refused is not None
    assert refused.why == "retention.ms=-2: must be at least -1"


def test_configs_must_go_together():
    assert validate_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}) is None
    refused = validate_topic_configs({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})

    assert refused is not None
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert refused.why == "min.compaction.lag.ms=6 must not be above max.compaction.lag.ms=5"


def test_each_config_of_a_set_is_looked_at():
    refused = validate_topic_configs({"retention.ms": "5", "segment.bytes": "1"})

    assert refused is not None
    assert refused.why == "segment.bytes=1: must be at least 1048576"
