"""One config name: what Kafka knows of it, and what it means here.

`valid` is the range in a short notation that costs nothing until a value is checked (see `config_values`):
"1.." at least, "0..1" between, "a|b" one of (each element, for a list), "~a|b" the same in any case, "non-empty".
"""

from enum import IntEnum
from typing import NamedTuple


class ConfigType(IntEnum):
    """Numbers as DescribeConfigs sends them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
)
DOUBLE, LIST, CLASS, PASSWORD = ConfigType.DOUBLE, ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD

#: When a broker config may be altered while the broker runs: never, for one broker, for all of them.
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"


class Setting(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    valid: str = ""
    update_mode: str = READ_ONLY
    meaning: str = ""

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD


class TopicSetting(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    valid: str = ""
    #: The broker configs a topic without a value of its own takes it from, first one set wins, with the factor to this unit.
    broker_names: tuple[tuple[str, int], ...] = ()
    meaning: str = ""

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")
