"""The tables of config names hold together, and hold with the code."""

import dataclasses
import re
from pathlib import Path

import oncelog
from oncelog.broker.config import BrokerConfig
from oncelog.broker.config_ignored import IGNORED
from oncelog.broker.config_names import BROKER_CONFIGS, TOPIC_CONFIGS, USED_CONFIGS, is_ignored, why_ignored
from oncelog.broker.config_setting import ConfigType
from oncelog.broker.config_used import DEVIATIONS, USED
from oncelog.broker.config_values import parse_value
from oncelog.log.log_config import LogConfig

PYTHON_TYPES = {
    ConfigType.BOOLEAN: "bool",
    ConfigType.STRING: "str",
    ConfigType.INT: "int",
    ConfigType.SHORT: "int",
    ConfigType.LONG: "int",
    ConfigType.DOUBLE: "float",
    ConfigType.LIST: "tuple[str, ...]",
}


def test_every_name_of_kafka_is_here_once():
    rows = [setting.name for table in (USED, IGNORED) for group in table.values() for setting in group]
    own = {"flush.policy", "logging.level", "logging.format"}

    assert len(rows) == len(set(rows))
    # Kafka 4.3: 360 in its ConfigDef, and three rates that exist only as dynamic configs.
    assert len(set(rows) - own) == 363
    assert len(TOPIC_CONFIGS) == 34


def test_an_attribute_is_annotated_as_its_name_is_typed():
    for setting in USED_CONFIGS.values():
        annotation = BrokerConfig.__annotations__[setting.attribute]
        plain = setting.default is not None and setting.type is not ConfigType.LIST
        expected = PYTHON_TYPES[setting.type] + (" | None" if setting.default is None else "")

        assert (annotation.__name__ if plain else str(annotation)) == expected, setting.name


def test_there_is_no_attribute_without_a_name():
    attributes = {name for name in BrokerConfig.__annotations__ if not name.startswith("_")}

    assert attributes == {setting.attribute for setting in USED_CONFIGS.values()}


def test_a_default_is_a_value_of_its_own_config():
    for setting in [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()]:
        if setting.default:
            parse_value(setting, setting.default)


def test_topic_configs_with_meaning_are_in_the_logs_config():
    fields = {field.name for field in dataclasses.fields(LogConfig)}
    with_meaning = {setting.attribute for setting in TOPIC_CONFIGS.values() if setting.meaning}

    assert with_meaning - {"internal_segment_bytes"} <= fields


def test_a_topic_config_inherits_from_broker_configs_that_exist():
    for setting in TOPIC_CONFIGS.values():
        for broker_name, _ in setting.broker_names:
            assert broker_name in BROKER_CONFIGS
            assert bool(setting.meaning) == (broker_name in USED_CONFIGS), (setting.name, broker_name)


def test_a_default_that_differs_from_kafkas_is_explained():
    for name, (kafka_default, why) in DEVIATIONS.items():
        assert USED_CONFIGS[name].default != kafka_default
        assert why


def test_what_is_ignored_has_a_reason():
    ignored = [name for name in BROKER_CONFIGS if is_ignored(name)]

    assert len(ignored) > 200
    assert all(why_ignored(name) for name in ignored)


def test_every_name_said_to_do_something_is_read_by_the_code():
    source = Path(oncelog.__file__).parent
    texts = [
        path.read_text()
        for path in source.rglob("*.py")
        if not (path.parent.name == "broker" and path.name.startswith("config"))
    ]
    read = set(re.findall(r"\.(\w+)\b", "\n".join(texts)))
    topic_names = {
        name for topic in TOPIC_CONFIGS.values() if topic.attribute in read for name, _ in topic.broker_names
    }

    unread = [
        setting.name
        for setting in USED_CONFIGS.values()
        if setting.attribute not in read and setting.name not in topic_names and setting.name != "broker.id"
    ]
    unread_topics = [
        setting.name
        for setting in TOPIC_CONFIGS.values()
        if setting.meaning and setting.attribute not in read and setting.name != "internal.segment.bytes"
    ]
    assert unread == []
    assert unread_topics == []
