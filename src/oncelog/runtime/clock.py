"""The clock port, and the machine's own clocks behind it.

Two clocks, because they answer different questions: the wall clock stamps records and may jump; the monotonic one measures
waiting and never does.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
