"""Named places where a test lets this process die, as if the machine had taken it at that very moment.

Off unless the environment names one: ONCELOG_FAIL_POINT="transaction after store/PREPARE_COMMIT/3" kills the process with SIGKILL
the third time that place is reached with that detail. A detail of * is any.
"""

import os
import signal
from enum import Enum

_armed = os.environ.get("ONCELOG_FAIL_POINT", "")
_left = int(_armed.rpartition("/")[2]) if _armed else 0


def reach(name: str, detail: Enum | None = None) -> None:
    if _armed:
        _count_down(name, "" if detail is None else detail.name)


def _count_down(name: str, detail: str) -> None:
    global _left
    wanted_name, wanted_detail, _ = _armed.rsplit("/", 2)
    if wanted_name == name and wanted_detail in ("*", detail):
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
