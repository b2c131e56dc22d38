"""An answer that is not there yet.

A handler returns its reply, or a `Later` that somebody completes exactly once. It is not a future: nothing awaits it, nothing
schedules it. Completing runs what was chained, at once and in order, so the same code runs under a server, in a test and in a
simulator.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")

_NOTHING: Any = object()


class Later(Generic[T]):
    __slots__ = ("_value", "_chained")

    def __init__(self) -> None:
        self._value: Any = _NOTHING
        self._chained: list[Callable[[T], None]] | None = None

    @property
    def done(self) -> bool:
        return self._value is not _NOTHING

    @property
    def value(self) -> T:
        if self._value is _NOTHING:
            raise LookupError("this answer has not arrived yet: look at `done` first, or chain with `when_done`")
        return cast(T, self._value)

    def complete(self, value: T) -> None:
        if self._value is not _NOTHING:
            raise RuntimeError("an answer is given once: this one had already been completed")
        self._value = value
        chained, self._chained = self._chained, None
        for run in chained or ():
            run(value)

    def when_done(self, run: Callable[[T], None]) -> None:
        """Run with the value: now if it is there, else when it arrives."""
        if self._value is not _NOTHING:
            run(self._value)
        elif self._chained is None:
            self._chained = [run]
        else:
            self._chained.append(run)

    def then(self, change: "Callable[[T], U | Later[U]]") -> "Later[U]":
        """The answer after `change`, which may itself give a `Later`."""
        if self._value is not _NOTHING:
            # Most answers are there at once: these need nobody to wait for them.
            result = change(self._value)
            return result if isinstance(result, Later) else completed(result)
        changed: Later[U] = Later()

        def pass_on(value: T) -> None:
            result = change(value)
            if isinstance(result, Later):
                result.when_done(changed.complete)
            else:
                changed.complete(result)

        self.when_done(pass_on)
        return changed


def all_of(answers: "list[Later[T]]") -> "Later[list[T]]":
    """One answer that arrives with the last of `answers`, in their order."""
    together: Later[list[T]] = Later()
    missing = len(answers)

    def count_down(_: T) -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            together.complete([answer.value for answer in answers])

    if not answers:
        together.complete([])
    for answer in answers:
        answer.when_done(count_down)
    return together


def completed(value: T) -> "Later[T]":
    answer: Later[T] = Later()
    answer._value = value
    return answer
