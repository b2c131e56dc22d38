"""The purgatory: operations that wait for something to happen to one of their keys, or for their deadline (MISSION P3, P8, P9).

An operation is tried before it comes here and again each time one of its keys is checked; the try that succeeds gives the
answer. What never succeeds expires. Nothing runs per waiting operation: a million of them cost memory, not CPU.

Always: an operation answers once, by `try_complete` or by `expire`, and is in no list afterwards.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Protocol


class WaitingOperation(Protocol):
    def try_complete(self) -> bool:
        """Give the answer if it can be given now, and say whether it was."""
        ...

    def expire(self) -> None:
        """Give the answer that is due when time ran out."""
        ...


class Ticket:
    """One watched operation; hand it back to `forget` to stop waiting without an answer."""

    __slots__ = ("operation", "keys", "deadline_ms", "waiting")

    def __init__(self, operation: WaitingOperation, keys: tuple[Hashable, ...], deadline_ms: int) -> None:
        self.operation = operation
        self.keys = keys
        self.deadline_ms = deadline_ms
        self.waiting = True


#: Entries of operations that were answered stay in the heap until their deadline; beyond this many it is built anew.
_STALE_ENTRIES_BEFORE_REBUILD = 1024


class Purgatory:
    __slots__ = ("_watching", "_deadlines", "_sequence", "_count")

    def __init__(self) -> None:
        # A dict, not a set, per key: operations are tried in the order in which they came.
        self._watching: dict[Hashable, dict[Ticket, None]] = {}
        self._deadlines: list[tuple[int, int, Ticket]] = []
        self._sequence = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def next_deadline_ms(self) -> int | None:
        while self._deadlines and not self._deadlines[0][2].waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def is_watched(self, key: Hashable) -> bool:
        return key in self._watching

    def watch(self, operation: WaitingOperation, keys: Iterable[Hashable], deadline_ms: int) -> Ticket:
        ticket = Ticket(operation, tuple(keys), deadline_ms)
        for key in ticket.keys:
            watchers = self._watching.get(key)
            if watchers is None:
                watchers = self._watching[key] = {}
            watchers[ticket] = None
        self._sequence += 1
        heapq.heappush(self._deadlines, (deadline_ms, self._sequence, ticket))
        self._count += 1
        return ticket

    def check(self, key: Hashable) -> int:
        """Try every operation that watches `key`; returns how many were answered."""
        watchers = self._watching.get(key)
        if watchers is None:
            return 0
        answered = 0
        for ticket in list(watchers):
            # An earlier operation's answer may have answered or withdrawn this one meanwhile.
            if ticket.waiting and ticket.operation.try_complete():
                self.forget(ticket)
                answered += 1
        return answered

    def expire(self, now_ms: int) -> int:
        """Give up on every operation whose deadline has come; returns how many."""
        expired = 0
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            ticket = heapq.heappop(self._deadlines)[2]
            if ticket.waiting:
                self.forget(ticket)
                ticket.operation.expire()
                expired += 1
        return expired

    def forget(self, ticket: Ticket) -> None:
        if not ticket.waiting:
            return
        ticket.waiting = False
        self._count -= 1
        for key in ticket.keys:
            watchers = self._watching.get(key)
            if watchers is not None:
                watchers.pop(ticket, None)
                if not watchers:
                    del self._watching[key]
        if len(self._deadlines) > _STALE_ENTRIES_BEFORE_REBUILD + 2 * self._count:
            self._deadlines = [entry for entry in self._deadlines if entry[2].waiting]
            heapq.heapify(self._deadlines)
