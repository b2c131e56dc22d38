"""What a handler may answer besides a message: nothing at all, or the end of the connection."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias


class _NoReply(Enum):
    NO_REPLY = 0


NO_REPLY = _NoReply.NO_REPLY
NoReply: TypeAlias = Literal[_NoReply.NO_REPLY]


@dataclass(frozen=True, slots=True)
class CloseConnection:
    why: str
