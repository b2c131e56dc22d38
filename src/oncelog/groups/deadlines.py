"""Many deadlines that mostly move: each heartbeat of each member pushes one back, and hardly any is ever reached.

Moving a deadline back is one write into a dict. The heap keeps the old, earlier time, and when that comes up the deadline is
looked at again and put back where it belongs now: one heap operation per session, not per heartbeat.
"""

import heapq
from typing import Generic, TypeVar

K = TypeVar("K")


class Deadlines(Generic[K]):
    __slots__ = ("_due_ms", "_queued_ms", "_queue", "_sequence")

    def __init__(self) -> None:
        self._due_ms: dict[K, int] = {}
        #: The earliest time each key has in the queue.
        self._queued_ms: dict[K, int] = {}
        self._queue: list[tuple[int, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._due_ms)

    def __contains__(self, key: object) -> bool:
        return key in self._due_ms

    def set(self, key: K, due_ms: int) -> None:
        self._due_ms[key] = due_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or due_ms < queued_ms:
            self._enqueue(key, due_ms)

    def cancel(self, key: K) -> None:
        self._due_ms.pop(key, None)

    @property
    def look_again_ms(self) -> int | None:
        """When to call `take_due` next: no deadline is reached before."""
        return self._queue[0][0] if self._queue else None

    def take_due(self, now_ms: int) -> list[K]:
        """The keys whose deadline has come, in that order; they have none afterwards."""
        due: list[K] = []
        while self._queue and self._queue[0][0] <= now_ms:
            queued_ms, _, key = heapq.heappop(self._queue)
            if self._queued_ms.get(key) != queued_ms:
                continue  # a later entry of a key that was moved forward
            del self._queued_ms[key]
            due_ms = self._due_ms.get(key)
            if due_ms is None:
                continue
            if due_ms > now_ms:
                self._enqueue(key, due_ms)
            else:
                del self._due_ms[key]
                due.append(key)
        return due

    def _enqueue(self, key: K, due_ms: int) -> None:
        self._queued_ms[key] = due_ms
        self._sequence += 1
        heapq.heappush(self._queue, (due_ms, self._sequence, key))
