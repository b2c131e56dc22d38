"""The purgatory answers each operation once: by an event on one of its keys, or by its deadline."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.waiting.purgatory import Purgatory


class Threshold:
    """An operation that completes once a shared counter has reached what it waits for."""

    def __init__(self, counter: dict[str, int], key: str, required: int) -> None:
        self.counter, self.key, self.required = counter, key, required
        self.answers: list[str] = []
        self.tries = 0

    def try_complete(self) -> bool:
        self.tries += 1
        if self.counter[self.key] < self.required:
            return False
        self.answers.append("completed")
        return True

    def expire(self) -> None:
        self.answers.append("expired")


@pytest.mark.seed("P3")
def test_an_operation_completes_when_its_key_reaches_what_it_waits_for():
    counter = {"a": 0}
    operation = Threshold(counter, "a", 2)
    purgatory = Purgatory()
    purgatory.watch(operation, ["a"], deadline_ms=100)

    counter["a"] = 1
    assert purgatory.check("a") == 0
    counter["a"] = 2
    assert purgatory.check("a") == 1

    assert operation.answers == ["completed"]
    assert len(purgatory) == 0
    assert purgatory.expire(1_000) == 0, "an answered operation must not expire as well"


@pytest.mark.seed("P3")
def test_an_operation_expires_at_its_deadline_and_not_before():
    operation = Threshold({"a": 0}, "a", 1)
    purgatory = Purgatory()
    purgatory.watch(operation, ["a"], deadline_ms=100)
    assert purgatory.expire(99) == 0
    assert purgatory.next_deadline_ms == 100
    assert purgatory.expire(100) == 1
    assert operation.answers == ["expired"]
    assert not purgatory.is_watched("a")
    assert purgatory.next_deadline_ms is None


def test_an_operation_with_many_keys_leaves_all_of_them_when_one_completes_it():
    counter = {"a": 1}
    operation = Threshold(counter, "a", 1)
    purgatory = Purgatory()
    purgatory.watch(operation, ["a", "b", "c"], deadline_ms=100)
    purgatory.check("c")
    assert not any(purgatory.is_watched(key) for key in "abc")


def test_an_answer_that_withdraws_another_operation_is_respected():
    purgatory = Purgatory()
    other = Threshold({"a": 1}, "a", 1)

    class Withdraws:
        def try_complete(self) -> bool:
            purgatory.forget(ticket_of_other)
            return True

        def expire(self) -> None: ...

    purgatory.watch(Withdraws(), ["a"], 100)
    ticket_of_other = purgatory.watch(other, ["a"], 100)
    assert purgatory.check("a") == 1
    assert other.answers == []


@pytest.mark.seed("P9")
def test_waiting_operations_cost_nothing_while_nothing_happens_to_their_keys():
    """Checking one key tries only who waits for it, however many others wait; measured as a ratio in one run."""

    def cost(bystanders: int) -> float:
        counter = {"a": 0, "other": 0}
        purgatory = Purgatory()
        for index in range(bystanders):
            purgatory.watch(Threshold(counter, "other", 1), [("other", index)], deadline_ms=10**9)
        purgatory.watch(Threshold(counter, "a", 1), ["a"], deadline_ms=10**9)
        best = float("inf")
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(2_000):
                purgatory.check("a")
                purgatory.expire(1)
            best = min(best, time.perf_counter() - begin)
        return best

    assert cost(200_000) < 5 * cost(10)


def test_stale_deadlines_do_not_pile_up():
    counter = {"a": 1}
    purgatory = Purgatory()
    for _ in range(50_000):
        purgatory.watch(Threshold(counter, "a", 1), ["a"], deadline_ms=10**9)
        purgatory.check("a")
    assert len(purgatory._deadlines) < 5_000


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("watch"), st.sampled_from("abc"), st.integers(1, 5), st.integers(0, 50)),
            st.tuples(st.just("advance"), st.sampled_from("abc")),
            st.tuples(st.just("time"), st.integers(0, 20)),
        ),
        max_size=60,
    )
)
@settings(max_examples=200, deadline=None)
def test_every_operation_is_answered_exactly_once(history):
    counter = dict.fromkeys("abc", 0)
    purgatory = Purgatory()
    operations: list[Threshold] = []
    now_ms = 0
    for step in history:
        match step:
            case ("watch", key, more, timeout_ms):
                operation = Threshold(counter, key, counter[key] + more)
                operations.append(operation)
                purgatory.watch(operation, ["abc", key], now_ms + timeout_ms)
            case ("advance", key):
                counter[key] += 1
                purgatory.check(key)
                due = [o for o in operations if o.key == key and o.required <= counter[key]]
                assert all(o.answers for o in due)
            case ("time", passed):
                now_ms += passed
                purgatory.expire(now_ms)
    purgatory.expire(10**9)
    assert all(len(operation.answers) == 1 for operation in operations)
    assert len(purgatory) == 0
