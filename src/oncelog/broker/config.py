"""The broker's configuration: Kafka's names as text in, typed attributes out.

Always: a `BrokerConfig` that exists is valid. Names and values are checked once, when it is built; nobody checks them again.
It does not change: a config altered while the broker runs makes a new one (`with_dynamic`).

The tables in `config_names` are the only place for names, types, ranges and defaults; the annotations below only tell the type
checker which attributes they become (a test holds the two together).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from oncelog.broker.config_log import build_log_config
from oncelog.broker.config_names import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    USED_CONFIGS,
    did_you_mean,
    is_ignored,
)
from oncelog.broker.config_values import BadValue, Value, parse_value
from oncelog.log.log_config import LogConfig
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused


class ConfigError(Exception):
    """Names or values that cannot be used: says which, and the nearest that can."""


class BrokerConfig:
    # Where it runs
    node_id: int
    broker_id: int
    broker_rack: str | None
    listeners: tuple[str, ...]
    advertised_listeners: tuple[str, ...] | None
    controller_listener_names: tuple[str, ...]
    listener_security_protocol_map: str
    log_dirs: tuple[str, ...] | None
    log_dir: tuple[str, ...] | None
    # Connections and requests
    max_connections: int
    max_connections_per_ip: int
    connections_max_idle_ms: int
    socket_request_max_bytes: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    # Topics
    auto_create_topics_enable: bool
    num_partitions: int
    default_replication_factor: int
    delete_topic_enable: bool
    min_insync_replicas: int
    # The log: defaults of topic configs
    log_segment_bytes: int
    log_roll_ms: int | None
    log_roll_hours: int
    log_roll_jitter_ms: int | None
    log_roll_jitter_hours: int
    log_retention_ms: int | None
    log_retention_minutes: int | None
    log_retention_hours: int
    log_retention_bytes: int
    log_cleanup_policy: tuple[str, ...]
    log_cleaner_delete_retention_ms: int
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_message_timestamp_type: str
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_after_max_ms: int
    log_segment_delete_delay_ms: int
    message_max_bytes: int
    compression_type: str
    # The log: background work
    log_retention_check_interval_ms: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    # Consumer groups
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    # Producers and transactions
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transaction_partition_verification_enable: bool
    # Oncelog's own
    flush_policy: str
    logging_level: str
    logging_format: str

    _NONE: ClassVar[Mapping[str, str]] = {}

    def __init__(self, static: Mapping[str, str], dynamic: Mapping[str, str] = _NONE) -> None:
        """`static` is what the broker was started with, `dynamic` what was altered since and wins. Raises ConfigError."""
        texts = {**static, **dynamic}
        values: dict[str, Any] = dict(_default_values())
        problems = []
        for name, text in texts.items():
            try:
                value = _parse_broker_value(name, text)
            except BadValue as bad:
                problems.append(str(bad))
                continue
            if name in USED_CONFIGS:
                values[USED_CONFIGS[name].attribute] = value
        if problems:
            raise ConfigError("; ".join(problems))
        # The older name of the same thing counts where the newer is not set.
        if "node.id" not in texts and values["broker_id"] >= 0:
            values["node_id"] = values["broker_id"]
        self.__dict__.update(values)
        self.__dict__["_static"] = dict(static)
        self.__dict__["_dynamic"] = dict(dynamic)
        self.__dict__["_log_defaults"] = None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a config does not change: build another one instead of setting {name}")

    @property
    def static(self) -> Mapping[str, str]:
        """What was set at the start, as text."""
        return self.__dict__["_static"]  # type: ignore[no-any-return]

    @property
    def dynamic(self) -> Mapping[str, str]:
        """What was altered since, as text."""
        return self.__dict__["_dynamic"]  # type: ignore[no-any-return]

    @property
    def ignored(self) -> list[str]:
        """Names that were set and do nothing here."""
        return [name for name in self.static if is_ignored(name)]

    def with_dynamic(self, dynamic: Mapping[str, str]) -> "BrokerConfig":
        """The same start configuration under other dynamic configs (all of them, not only the changed)."""
        return BrokerConfig(self.static, dynamic)

    def text(self, name: str) -> str | None:
        """The effective value of a broker config as text; None where it has neither value nor default."""
        if name in self.dynamic:
            return self.dynamic[name]
        if name in self.static:
            return self.static[name]
        if name == "node.id":
            return str(self.node_id)
        return BROKER_CONFIGS[name].default

    def topic_default(self, name: str) -> str | None:
        """What a topic without a value of its own for the topic config `name` has, as text."""
        setting = TOPIC_CONFIGS[name]
        for broker_name, factor in setting.broker_names:
            if broker_name in self.static or broker_name in self.dynamic:
                text = self.text(broker_name)
                return text if factor == 1 or text is None else _scaled(int(text), factor)
        return setting.default

    def log_config(self, topic_configs: Mapping[str, str]) -> LogConfig:
        """How the log of a topic behaves: its own configs over the broker's. They have been validated when they were set."""
        if not topic_configs:
            if self.__dict__["_log_defaults"] is None:
                self.__dict__["_log_defaults"] = build_log_config(self, {})
            return self.__dict__["_log_defaults"]  # type: ignore[no-any-return]
        return build_log_config(self, topic_configs)


def load_config(overrides: Mapping[str, str], file: Path | None = None) -> BrokerConfig:
    """The configuration of a broker: a server.properties file, with `overrides` on top. Raises ConfigError."""
    settings: dict[str, str] = {}
    if file is not None:
        from oncelog.broker.properties_file import read_properties

        try:
            settings.update(read_properties(file.read_bytes()))
        except (OSError, ValueError) as failed:
            raise ConfigError(f"cannot read the config file {file}: {failed}") from failed
    settings.update(overrides)
    return BrokerConfig(settings)


def validate_broker_config(name: str, value: str) -> Refused | None:
    try:
        _parse_broker_value(name, value)
    except BadValue as bad:
        return Refused(ErrorCode.INVALID_CONFIG, str(bad))
    return None


def validate_topic_config(name: str, value: str) -> Refused | None:
    """Whether one topic config may be set. `validate_topic_configs` also looks at how they go together."""
    setting = TOPIC_CONFIGS.get(name)
    if setting is None:
        return Refused(ErrorCode.INVALID_CONFIG, f"unknown topic config {name}{did_you_mean(name, TOPIC_CONFIGS)}")
    try:
        parsed = parse_value(setting, value)
    except BadValue as bad:
        return Refused(ErrorCode.INVALID_CONFIG, str(bad))
    if name == "remote.storage.enable" and parsed:
        return Refused(ErrorCode.INVALID_CONFIG, "remote.storage.enable=true: there is no tiered storage here")
    return None


def validate_topic_configs(configs: Mapping[str, str]) -> Refused | None:
    """Whether a topic may have these configs, all that it has of its own."""
    for name, value in configs.items():
        refused = validate_topic_config(name, value)
        if refused is not None:
            return refused
    least = int(configs.get("min.compaction.lag.ms", "0"))
    most = int(configs.get("max.compaction.lag.ms", str(2**63 - 1)))
    if least > most:
        why = f"min.compaction.lag.ms={least} must not be above max.compaction.lag.ms={most}"
        return Refused(ErrorCode.INVALID_CONFIG, why)
    return None


def _parse_broker_value(name: str, text: str) -> Value:
    setting = BROKER_CONFIGS.get(name)
    if setting is None:
        if is_ignored(name):
            return text
        raise BadValue(f"unknown config {name}{did_you_mean(name, BROKER_CONFIGS)}")
    return parse_value(setting, text)


_parsed_defaults: dict[str, Value] = {}


def _default_values() -> dict[str, Value]:
    if not _parsed_defaults:
        for setting in USED_CONFIGS.values():
            _parsed_defaults[setting.attribute] = (
                None if setting.default is None else parse_value(setting, setting.default)
            )
    return _parsed_defaults


def _scaled(number: int, factor: int) -> str:
    """In the topic config's unit; "never" stays "never"."""
    return str(number * factor if number >= 0 else number)
