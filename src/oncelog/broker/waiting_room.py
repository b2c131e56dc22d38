"""Where unanswered requests wait: the purgatory with a clock and a loop around it.

`touch` says that something happened to a key. Who waits for it is tried a moment later, not inside the call: the producer
that caused the event gets its answer first, and ten appends in one turn of the loop wake a waiting fetch once.
"""

from collections.abc import Hashable, Iterable

from oncelog.runtime.clock import Clock
from oncelog.runtime.timers import TimerHandle, Timers
from oncelog.waiting.purgatory import Purgatory, Ticket, WaitingOperation


class WaitingRoom:
    __slots__ = ("_clock", "_timers", "_purgatory", "_touched", "_timer", "_armed_for_ms")

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._purgatory = Purgatory()
        self._touched: dict[Hashable, None] = {}
        self._timer: TimerHandle | None = None
        self._armed_for_ms = 0

    def __len__(self) -> int:
        return len(self._purgatory)

    def watch(self, operation: WaitingOperation, keys: Iterable[Hashable], timeout_ms: int) -> Ticket:
        ticket = self._purgatory.watch(operation, keys, self._clock.monotonic_ms() + timeout_ms)
        if self._timer is None or ticket.deadline_ms < self._armed_for_ms:
            self._arm(ticket.deadline_ms)
        return ticket

    def forget(self, ticket: Ticket) -> None:
        self._purgatory.forget(ticket)

    def touch(self, key: Hashable) -> None:
        if self._purgatory.is_watched(key):
            if not self._touched:
                self._timers.call_soon(self._check_touched)
            self._touched[key] = None

    def close(self) -> None:
        """Stop the clock: a node that stops answers nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_touched(self) -> None:
        touched, self._touched = self._touched, {}
        for key in touched:
            self._purgatory.check(key)

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for_ms = deadline_ms
        self._timer = self._timers.call_at(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._purgatory.expire(self._clock.monotonic_ms())
        deadline_ms = self._purgatory.next_deadline_ms
        if deadline_ms is not None and self._timer is None:
            self._arm(deadline_ms)
