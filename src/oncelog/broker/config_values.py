"""From a config's text to its value, with Kafka's types and ranges."""

import math
from typing import TypeAlias

from oncelog.broker.config_setting import ConfigType, Setting, TopicSetting

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class BadValue(ValueError):
    """The text is no value of this config; says why, and what would be one."""


def parse_value(setting: Setting | TopicSetting, text: str) -> Value:
    """The value that `text` stands for. Raises BadValue."""
    text = text.strip()
    match setting.type:
        case ConfigType.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                raise BadValue(f"{setting.name}={text}: must be true or false")
            return lowered == "true"
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            number = _integer(setting, text)
            _check_range(setting, number)
            return number
        case ConfigType.DOUBLE:
            real = _real(setting, text)
            _check_range(setting, real)
            return real
        case ConfigType.LIST:
            # As Kafka: an element named twice counts once, and an empty text is an empty list.
            elements = tuple(dict.fromkeys(part.strip() for part in text.split(","))) if text else ()
            _check_list(setting, elements)
            return elements
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD:
            return _choice(setting, text)


def _integer(setting: Setting | TopicSetting, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # int() alone would also take "1_000" and digits of other scripts.
    if not (digits.isascii() and digits.isdigit()):
        raise BadValue(f"{setting.name}={text}: must be a whole number{_bounds(setting)}")
    number = int(text)
    limit = 1 << (_BITS[setting.type] - 1)
    if not -limit <= number < limit:
        raise BadValue(f"{setting.name}={text}: does not fit into {_BITS[setting.type]} bits")
    return number


def _real(setting: Setting | TopicSetting, text: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        real = float(text)
    except ValueError:
        raise BadValue(f"{setting.name}={text}: must be a number{_bounds(setting)}") from None
    if math.isnan(real):
        raise BadValue(f"{setting.name}={text}: must be a number{_bounds(setting)}")
    return real


def _check_range(setting: Setting | TopicSetting, number: float) -> None:
    valid = setting.valid
    if not valid:
        return
    exception, bar, bounds = valid.rpartition("|")
    if bar and number == float(exception):
        return
    low, _, high = bounds.partition("..")
    if (low and number < float(low)) or (high and number > float(high)):
        raise BadValue(f"{setting.name}={number}: must be{_bounds(setting)}")


def _bounds(setting: Setting | TopicSetting) -> str:
    """The range in words, with a space before it; nothing where every number is right."""
    if not setting.valid:
        return ""
    exception, bar, bounds = setting.valid.rpartition("|")
    low, _, high = bounds.partition("..")
    words = f" between {low} and {high}" if low and high else f" at least {low}"
    return f"{words} (or {exception})" if bar else words


def _check_list(setting: Setting | TopicSetting, elements: tuple[str, ...]) -> None:
    if setting.valid == "non-empty":
        if not elements:
            raise BadValue(f"{setting.name}: must not be empty")
    elif setting.valid == "replicas":
        if elements != ("*",) and not all(_is_replica(element) for element in elements):
            raise BadValue(f"{setting.name}={','.join(elements)}: must be * or partition:broker,partition:broker,…")
    elif setting.valid:
        allowed = setting.valid.split("|")
        for element in elements:
            if element not in allowed:
                raise BadValue(f"{setting.name}={','.join(elements)}: must be a list of {', '.join(allowed)}")


def _is_replica(text: str) -> bool:
    partition, _, broker = text.partition(":")
    return partition.isdigit() and broker.isdigit()


def _choice(setting: Setting | TopicSetting, text: str) -> str:
    valid = setting.valid
    if valid == "non-empty":
        if not text:
            raise BadValue(f"{setting.name}: must not be empty")
        return text
    if valid:
        any_case = valid.startswith("~")
        for choice in valid.lstrip("~").split("|"):
            if text == choice or (any_case and text.lower() == choice.lower()):
                return choice
        raise BadValue(f"{setting.name}={text}: must be one of {valid.lstrip('~').replace('|', ', ')}")
    return text
