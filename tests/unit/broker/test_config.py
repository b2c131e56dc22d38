"""A broker's configuration: what it takes, what it refuses, and how it says so."""

from pathlib import Path

import pytest

from oncelog.broker.config import BrokerConfig, ConfigError, load_config, validate_broker_config
from oncelog.log.log_config import CleanupPolicy
from oncelog.records.batch import TimestampType
from oncelog.records.compression import Compression


def test_without_settings_everything_has_its_default():
    config = load_config({})

    assert config.num_partitions == 1
    assert config.auto_create_topics_enable is True
    assert config.log_cleaner_min_cleanable_ratio == 0.5
    assert config.listeners == ("PLAINTEXT://127.0.0.1:9092",)
    assert config.log_retention_ms is None
    assert config.flush_policy == "page-cache"


def test_settings_arrive_as_typed_attributes():
    config = load_config({"num.partitions": " 7 ", "delete.topic.enable": "FALSE", "flush.policy": "group-commit"})

    assert config.num_partitions == 7
    assert config.delete_topic_enable is False
    assert config.flush_policy == "group-commit"


def test_a_file_is_read_and_overrides_win(tmp_path: Path):
    file = tmp_path / "server.properties"
    file.write_text("# ours\nnum.partitions=3\nmessage.max.bytes = 2000\n")

    config = load_config({"num.partitions": "5"}, file)

    assert (config.num_partitions, config.message_max_bytes) == (5, 2000)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot read the config file .*nowhere\.properties"):
        load_config({}, tmp_path / "nowhere.properties")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("num.partition", "1", "unknown config num.partition: did you mean num.partitions?"),
        ("qwertz", "1", "unknown config qwertz"),
        ("num.partitions", "many", "num.partitions=many: must be a whole number at least 1"),
        ("num.partitions", "0", "num.partitions=0: must be at least 1"),
        ("num.partitions", "1_000", "num.partitions=1_000: must be a whole number at least 1"),
        ("num.partitions", str(2**31), "num.partitions=2147483648: does not fit into 32 bits"),
        ("delete.topic.enable", "yes", "delete.topic.enable=yes: must be true or false"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "log.cleaner.min.cleanable.ratio=1.5: must be between 0 and 1"),
        ("flush.policy", "always", "flush.policy=always: must be one of page-cache, group-commit"),
        ("log.cleanup.policy", "shred", "log.cleanup.policy=shred: must be a list of compact, delete"),
        # Without effect here, and still checked as Kafka checks it.
        ("num.io.threads", "none", "num.io.threads=none: must be a whole number at least 1"),
        ("compression.gzip.level", "0", "compression.gzip.level=0: must be between 1 and 9 (or -1)"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, value: str, says: str):
    with pytest.raises(ConfigError) as refused:
        load_config({name: value})

    assert str(refused.value) == says


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"unknown config nope.*; num\.partitions=x: "):
        load_config({"nope": "1", "num.partitions": "x"})


def test_names_of_kafka_without_meaning_here_are_accepted_and_listed():
    config = load_config({"num.network.threads": "8", "listener.name.internal.ssl.key.password": "x", "node.id": "4"})

    assert config.ignored == ["num.network.threads", "listener.name.internal.ssl.key.password"]


def test_broker_id_is_the_older_name_of_node_id():
    assert load_config({"broker.id": "7"}).node_id == 7
    assert load_config({"broker.id": "7", "node.id": "8"}).node_id == 8


def test_a_config_does_not_change():
    config = load_config({})

    with pytest.raises(AttributeError, match="does not change"):
        config.num_partitions = 2


def test_dynamic_configs_win_over_those_of_the_start():
    config = BrokerConfig({"log.retention.ms": "5", "num.partitions": "3"}).with_dynamic({"log.retention.ms": "9"})

    assert (config.log_retention_ms, config.num_partitions) == (9, 3)
    assert config.text("log.retention.ms") == "9"
    assert config.with_dynamic({}).text("log.retention.ms") == "5"


def test_text_is_the_value_in_force():
    config = load_config({"num.partitions": "3", "broker.id": "7"})

    assert config.text("num.partitions") == "3"
    assert config.text("message.max.bytes") == "1048588"
    assert config.text("num.io.threads") == "8"
    assert config.text("broker.rack") is None
    assert config.text("node.id") == "7"


def test_a_broker_config_is_validated_for_altering():
    assert validate_broker_config("log.retention.ms", "5") is None
    refused = validate_broker_config("log.retention.ms", "soon")
    assert refused is not None
    assert refused.why == "log.retention.ms=soon: must be a whole number"


def test_a_log_config_takes_the_brokers_defaults():
    config = load_config({"log.segment.bytes": "2000000", "log.cleanup.policy": "compact,delete"})

    log = config.log_config({})

    assert log.segment_bytes == 2_000_000
    assert log.cleanup_policy == {CleanupPolicy.COMPACT, CleanupPolicy.DELETE}
    assert log is config.log_config({}), "the same defaults serve every topic"


def test_a_topics_own_configs_win():
    config = load_config({"log.segment.bytes": "2000000"})

    log = config.log_config(
        {
            "segment.bytes": "3000000",
            "compression.type": "zstd",
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "",
            "retention.ms": "-1",
        }
    )

    assert log.segment_bytes == 3_000_000
    assert log.compression_type is Compression.ZSTD
    assert log.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert log.cleanup_policy == frozenset()
    assert log.retention_ms == -1


def test_the_default_log_config_is_the_logs_own_default():
    assert load_config({}).log_config({}) == type(load_config({}).log_config({}))()


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_that_is_set_wins(settings: dict[str, str], retention_ms: int):
    assert load_config(settings).log_config({}).retention_ms == retention_ms


def test_small_segments_for_tests_have_their_own_name():
    assert load_config({}).log_config({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_what_a_topic_inherits_as_text():
    config = load_config({"log.roll.hours": "1"})

    assert config.topic_default("segment.ms") == "3600000"
    assert config.topic_default("retention.ms") == "604800000"
    assert config.topic_default("internal.segment.bytes") is None
