"""Which configs may be changed while the broker runs, in the terms of `cluster.configs`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oncelog.broker.config import validate_broker_config, validate_topic_configs
from oncelog.broker.config_names import BROKER_CONFIGS, TOPIC_CONFIGS, USED_CONFIGS
from oncelog.broker.config_setting import PER_BROKER, READ_ONLY, ConfigType
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused

if TYPE_CHECKING:
    from oncelog.broker.config import BrokerConfig


class TopicConfigRules:
    __slots__ = ("_config",)

    def __init__(self, config: "BrokerConfig") -> None:
        self._config = config

    def is_list(self, name: str) -> bool:
        setting = TOPIC_CONFIGS.get(name)
        return setting is not None and setting.type is ConfigType.LIST

    def inherited(self, name: str) -> str:
        return self._config.topic_default(name) or ""

    def check(self, configs: Mapping[str, str], changed: Sequence[str]) -> Refused | None:
        return validate_topic_configs(configs)


class BrokerConfigRules:
    __slots__ = ("_config", "_for_all")

    def __init__(self, config: "BrokerConfig", *, for_all: bool) -> None:
        self._config = config
        self._for_all = for_all

    def is_list(self, name: str) -> bool:
        setting = BROKER_CONFIGS.get(name)
        return setting is not None and setting.type is ConfigType.LIST

    def inherited(self, name: str) -> str:
        return self._config.text(name) or ""

    def check(self, configs: Mapping[str, str], changed: Sequence[str]) -> Refused | None:
        for name in changed:
            # An unknown name is refused here though Kafka keeps it: there is no plug-in that could want it.
            refused = validate_broker_config(name, configs[name])
            if refused is not None:
                # Kafka's code for bad broker configs, where bad topic configs are INVALID_CONFIG.
                known = name in BROKER_CONFIGS
                return Refused(ErrorCode.INVALID_REQUEST, refused.why) if known else refused
        fixed = [name for name in changed if not is_dynamic(name)]
        if fixed:
            return Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
        own = [name for name in changed if BROKER_CONFIGS[name].update_mode == PER_BROKER]
        if own and self._for_all:
            return Refused(
                ErrorCode.INVALID_REQUEST,
                f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(own)}]",
            )
        return None


def is_dynamic(name: str) -> bool:
    """Whether a broker config may be altered while the broker runs."""
    setting = BROKER_CONFIGS.get(name)
    if setting is None or setting.update_mode == READ_ONLY:
        return False
    # Kafka can move its listeners while it runs; here they are bound once.
    return not (setting.update_mode == PER_BROKER and name in USED_CONFIGS)
