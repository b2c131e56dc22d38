"""Which names a topic may have: Kafka's rules, because the name is also that of a directory and of metrics."""

import re

from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> Refused | None:
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    elif _LEGAL.fullmatch(name) is None:
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def collision_key(name: str) -> str | None:
    """Names with the same key are the same metric; None for a name that cannot collide with a different one."""
    return name.replace(".", "_") if "." in name or "_" in name else None
