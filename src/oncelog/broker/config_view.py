"""What configs look like from outside: every value with where it comes from, layer over layer.

A topic's own config wins over what was set for this broker at run time, that over what was set for all brokers, that over
what the broker was started with, and that over the default.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from oncelog.broker.config_names import BROKER_CONFIGS, TOPIC_CONFIGS
from oncelog.broker.config_rules import is_dynamic
from oncelog.broker.config_setting import ConfigType, Setting
from oncelog.cluster.state import ALL_BROKERS
from oncelog.cluster.topic import Topic

if TYPE_CHECKING:
    from oncelog.broker.node import Node

#: Known to whoever sets it; Kafka does not show it either.
_HIDDEN = "internal.segment.bytes"


class ConfigSource(IntEnum):
    """Numbers as DescribeConfigs sends them."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Layer(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigView(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    sensitive: bool
    #: Everything that is set for it, the one that counts first.
    layers: list[Layer]
    meaning: str


def topic_config_views(node: "Node", topic: Topic) -> Iterator[ConfigView]:
    for name, setting in TOPIC_CONFIGS.items():
        own = topic.configs.get(name)
        if name == _HIDDEN and own is None:
            continue
        layers = [Layer(name, own, ConfigSource.TOPIC)] if own is not None else []
        for broker_name, _ in setting.broker_names:
            layers += _broker_layers(node, BROKER_CONFIGS[broker_name])
        inherited_from = layers[0].source if layers else ConfigSource.DEFAULT
        value = own if own is not None else node.config.topic_default(name)
        yield ConfigView(name, value, inherited_from, setting.type, False, False, layers, setting.meaning)


def broker_config_views(node: "Node") -> Iterator[ConfigView]:
    for name, setting in BROKER_CONFIGS.items():
        layers = _broker_layers(node, setting)
        source = layers[0].source if layers else ConfigSource.DEFAULT
        value = layers[0].value if layers else None
        yield ConfigView(
            name, value, source, setting.type, not is_dynamic(name), setting.sensitive, layers, setting.meaning
        )


def default_broker_config_views(node: "Node") -> Iterator[ConfigView]:
    """Only what was set for all brokers at run time."""
    for name, value in node.cluster.broker_configs.get(ALL_BROKERS, {}).items():
        setting = BROKER_CONFIGS[name]
        shown = None if setting.sensitive else value
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        yield ConfigView(
            name, shown, source, setting.type, False, setting.sensitive, [Layer(name, shown, source)], setting.meaning
        )


def _broker_layers(node: "Node", setting: Setting) -> list[Layer]:
    name = setting.name
    values = (
        (node.cluster.broker_configs.get(str(node.node_id), {}).get(name), ConfigSource.DYNAMIC_BROKER),
        (node.cluster.broker_configs.get(ALL_BROKERS, {}).get(name), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (_at_start(node, name), ConfigSource.STATIC_BROKER),
        (setting.default, ConfigSource.DEFAULT),
    )
    return [Layer(name, None if setting.sensitive else value, source) for value, source in values if value is not None]


def _at_start(node: "Node", name: str) -> str | None:
    """What the broker was started with, also where the command line said it in other words than a config."""
    match name:
        case "node.id":
            return str(node.node_id)
        case "log.dirs":
            return str(node.data_dir)
        case "advertised.listeners":
            host, port = node.advertised
            return f"PLAINTEXT://{host}:{port}"
        case _:
            return node.config.static.get(name)
