"""What a reader may see: everything replicated, or only what committed transactions wrote."""

from enum import IntEnum


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
