"""An answer that comes later is given once, and everything chained to it runs in order."""

import pytest

from oncelog.waiting.later import Later, all_of, completed


def test_what_was_chained_runs_in_order_when_the_answer_arrives():
    seen: list[object] = []
    answer: Later[int] = Later()
    answer.when_done(lambda value: seen.append(("first", value)))
    answer.when_done(lambda value: seen.append(("second", value)))
    assert seen == []

    answer.complete(7)

    assert seen == [("first", 7), ("second", 7)]
    answer.when_done(lambda value: seen.append(("late", value)))
    assert seen[-1] == ("late", 7)


def test_an_answer_is_given_once():
    answer = completed(1)
    with pytest.raises(RuntimeError, match="given once"):
        answer.complete(2)
    assert answer.value == 1


def test_asking_for_a_value_that_is_not_there_says_so():
    with pytest.raises(LookupError, match="not arrived yet"):
        _ = Later[int]().value


def test_then_follows_a_change_that_is_itself_later():
    first: Later[int] = Later()
    second: Later[str] = Later()
    both = first.then(lambda number: second.then(lambda text: f"{text}{number}"))
    first.complete(3)
    assert not both.done
    second.complete("n=")
    assert both.value == "n=3"


def test_all_of_keeps_the_order_of_its_parts_not_of_their_arrival():
    a: Later[str] = Later()
    b: Later[str] = Later()
    together = all_of([a, b])
    b.complete("b")
    assert not together.done
    a.complete("a")
    assert together.value == ["a", "b"]
    assert all_of([]).value == []
