"""Things to do later on the one thread that runs a node. The simulator has its own; this one asks the event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from oncelog.waiting.later import Later

T = TypeVar("T")


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    def call_at(self, monotonic_ms: int, run: Callable[[], None]) -> TimerHandle: ...

    def call_soon(self, run: Callable[[], None]) -> None:
        """Run after what is running now, before the loop waits again."""
        ...

    def in_thread(self, work: Callable[[], T]) -> "Later[T | BaseException]":
        """Run blocking work in a worker thread; the answer (or what it raised) arrives on the node's own thread."""
        ...


class LoopTimers:
    __slots__ = ("_loop", "_monotonic_ms")

    def __init__(self, loop: asyncio.AbstractEventLoop, monotonic_ms: Callable[[], int]) -> None:
        self._loop = loop
        self._monotonic_ms = monotonic_ms

    def call_at(self, monotonic_ms: int, run: Callable[[], None]) -> TimerHandle:
        # The loop's clock need not be ours: only the distance carries over.
        return self._loop.call_later(max(0, monotonic_ms - self._monotonic_ms()) / 1000, run)

    def call_soon(self, run: Callable[[], None]) -> None:
        self._loop.call_soon(run)

    def in_thread(self, work: Callable[[], T]) -> "Later[T | BaseException]":
        answer: Later[T | BaseException] = Later()

        def deliver(future: "asyncio.Future[T]") -> None:
            problem = future.exception()
            answer.complete(problem if problem is not None else future.result())

        self._loop.run_in_executor(None, work).add_done_callback(deliver)
        return answer
