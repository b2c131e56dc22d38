"""Deadlines that move: due when they are, found without touching the others."""

from oncelog.groups.deadlines import Deadlines


def test_what_is_due_comes_in_the_order_of_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("late", 30)
    deadlines.set("early", 10)
    deadlines.set("middle", 20)
    assert deadlines.take_due(9) == []
    assert deadlines.take_due(25) == ["early", "middle"]
    assert deadlines.take_due(30) == ["late"]
    assert deadlines.look_again_ms is None


def test_a_deadline_that_was_put_off_is_not_due_at_its_old_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("member", 10)
    deadlines.set("member", 20)
    assert deadlines.take_due(15) == []
    assert deadlines.look_again_ms == 20
    assert deadlines.take_due(20) == ["member"]


def test_a_deadline_that_was_brought_forward_is_due_once_at_its_new_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("member", 20)
    deadlines.set("member", 10)
    assert deadlines.take_due(10) == ["member"]
    assert deadlines.take_due(100) == []


def test_a_cancelled_deadline_never_comes_and_can_be_set_again() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("member", 10)
    deadlines.cancel("member")
    deadlines.cancel("nobody")
    assert "member" not in deadlines
    deadlines.set("member", 15)
    assert deadlines.take_due(12) == []
    assert deadlines.take_due(15) == ["member"]
    assert len(deadlines) == 0


def test_a_thousand_heartbeats_leave_one_entry_to_look_at() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for now_ms in range(1000):
        deadlines.set("member", now_ms + 10_000)
    assert deadlines.look_again_ms == 10_000
    assert deadlines.take_due(10_000) == []
    assert deadlines.look_again_ms == 10_999
