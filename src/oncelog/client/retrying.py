"""Trying again what a broker asks to try again: the one place where a blocking call waits between attempts."""

import time
from collections.abc import Callable
from typing import TypeVar

from oncelog.client.errors import Retriable

Result = TypeVar("Result")

PATIENCE_S = 15.0
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5


def retrying(attempt: Callable[[], Result], patience_s: float = PATIENCE_S) -> Result:
    """Run `attempt` until it succeeds or patience ends; then its last error is raised.

    Only what a broker answered is tried again. A broker that cannot be reached, or a connection that broke, is told at once:
    whether to ask another one, or whether the request may be repeated, is for the caller to say.
    """
    deadline = time.monotonic() + patience_s
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except Retriable as problem:
            if problem.code is None or time.monotonic() + pause_s > deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
