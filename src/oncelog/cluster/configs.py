"""Changing configs at run time: name by name (IncrementalAlterConfigs) or all of a resource's at once (AlterConfigs).

A change is taken whole or not at all. Which names there are, which of them are lists and which values are good is the
broker's table (`ConfigRules`); here stand the operations on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from oncelog.cluster.records import BrokerConfigsStored, Decision, TopicStored
from oncelog.cluster.state import Cluster
from oncelog.cluster.topic import Topic
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import TopicId


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    operation: ConfigOperation
    value: str | None = None


class ConfigRules(Protocol):
    def is_list(self, name: str) -> bool: ...

    def inherited(self, name: str) -> str:
        """The value that counts while none is set here."""
        ...

    def check(self, configs: Mapping[str, str], changed: Sequence[str]) -> Refused | None:
        """Whether these may be the configs; `changed` names those that this change sets."""
        ...


def decide_topic_configs(
    cluster: Cluster, topic_id: TopicId, changes: Sequence[ConfigChange], rules: ConfigRules, *, replace_all: bool
) -> Decision[Topic] | Refused:
    topic = cluster.by_id.get(topic_id)
    if topic is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile")
    configs = changed_configs(topic.configs, changes, rules, replace_all=replace_all)
    if isinstance(configs, Refused):
        return configs
    if configs == topic.configs:
        return Decision([], topic)
    changed = topic.with_configs(configs)
    return Decision([TopicStored(changed)], changed)


def decide_broker_configs(
    cluster: Cluster, broker: str, changes: Sequence[ConfigChange], rules: ConfigRules, *, replace_all: bool
) -> Decision[dict[str, str]] | Refused:
    """`broker` is a broker's id in decimal, or ALL_BROKERS."""
    current = cluster.broker_configs.get(broker, {})
    configs = changed_configs(current, changes, rules, replace_all=replace_all)
    if isinstance(configs, Refused):
        return configs
    if configs == current:
        return Decision([], configs)
    return Decision([BrokerConfigsStored(broker, configs)], configs)


def changed_configs(
    current: Mapping[str, str], changes: Sequence[ConfigChange], rules: ConfigRules, *, replace_all: bool
) -> dict[str, str] | Refused:
    configs = {} if replace_all else dict(current)
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        return Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    for change in changes:
        refused = _apply_change(configs, change, rules)
        if refused is not None:
            return refused
    return rules.check(configs, [name for name in names if name in configs]) or configs


def _apply_change(configs: dict[str, str], change: ConfigChange, rules: ConfigRules) -> Refused | None:
    name, value = change.name, change.value
    if change.operation is ConfigOperation.DELETE:
        configs.pop(name, None)
        return None
    if value is None:
        return Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if change.operation is ConfigOperation.SET:
        configs[name] = value
        return None
    if not rules.is_list(name):
        return Refused(
            ErrorCode.INVALID_CONFIG, f"Can't {change.operation.name} to key {name} because its type is not LIST."
        )
    items = _items(configs[name] if name in configs else rules.inherited(name))
    if change.operation is ConfigOperation.APPEND:
        items += [item for item in _items(value) if item not in items]
    else:
        gone = _items(value)
        items = [item for item in items if item not in gone]
    configs[name] = ",".join(items)
    return None


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
