"""Trying again, and knowing when not to."""

import time

import pytest

from oncelog.client.errors import ClientError, Fatal, Retriable
from oncelog.client.retrying import retrying
from oncelog.model.error_code import ErrorCode

LOADING = Retriable("loading", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Attempts:
    """Fails with each of these in turn, then succeeds."""

    def __init__(self, *problems: ClientError) -> None:
        self._problems = [*problems]
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self._problems:
            raise self._problems.pop(0)
        return "done"


def test_what_a_broker_asks_to_try_again_is_tried_again():
    attempts = Attempts(LOADING, LOADING, LOADING)

    assert retrying(attempts) == "done"
    assert attempts.count == 4


@pytest.mark.parametrize("problem", [Fatal("no"), Retriable("nobody there"), Retriable("broke", outcome_unknown=True)])
def test_nothing_else_is(problem: ClientError):
    attempts = Attempts(problem)

    with pytest.raises(type(problem)):
        retrying(attempts)

    assert attempts.count == 1


def test_patience_ends_with_the_last_error():
    began = time.monotonic()

    with pytest.raises(Retriable, match="loading"):
        retrying(Attempts(*[LOADING] * 1000), patience_s=0.2)

    assert time.monotonic() - began < 5
