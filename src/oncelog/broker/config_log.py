"""How the log of a topic behaves: its own configs over the broker's, as the values the log works with."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oncelog.broker.config_topics import TOPIC_CONFIGS
from oncelog.broker.config_values import parse_value
from oncelog.log.log_config import CleanupPolicy, LogConfig
from oncelog.records.batch import TimestampType
from oncelog.records.compression import Compression

if TYPE_CHECKING:
    from oncelog.broker.config import BrokerConfig

_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_COMPRESSIONS = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def build_log_config(broker: "BrokerConfig", topic_configs: Mapping[str, str]) -> LogConfig:
    """`topic_configs` have been validated when they were set."""
    values: dict[str, Any] = {"producer_id_expiration_ms": broker.producer_id_expiration_ms}
    for name, setting in TOPIC_CONFIGS.items():
        if not setting.meaning:
            continue
        text = topic_configs.get(name)
        if text is None:
            text = broker.topic_default(name)
        if text is not None:
            values[setting.attribute] = parse_value(setting, text)
    values["cleanup_policy"] = frozenset(map(CleanupPolicy, values["cleanup_policy"]))
    values["compression_type"] = _COMPRESSIONS[values["compression_type"]]
    values["message_timestamp_type"] = _TIMESTAMP_TYPES[values["message_timestamp_type"]]
    # Kafka's own way to have small segments in tests: this one has no lower bound.
    values["segment_bytes"] = values.pop("internal_segment_bytes", values["segment_bytes"])
    return LogConfig(**values)
