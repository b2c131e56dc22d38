"""The table of states, and the diagram that is drawn from it."""

from pathlib import Path

import pytest

from oncelog.groups.group import Group
from oncelog.groups.states import TRANSITIONS, GroupState, may_become, state_diagram

DOCUMENT = Path(__file__).parents[3] / "docs" / "groups.md"


def test_the_diagram_in_the_documentation_is_the_one_the_table_draws() -> None:
    assert f"```mermaid\n{state_diagram()}```\n" in DOCUMENT.read_text()


def test_every_state_can_be_reached_and_only_dead_cannot_be_left() -> None:
    assert {after for _, after in TRANSITIONS} == set(GroupState)
    assert set(GroupState) - {before for before, _ in TRANSITIONS} == {GroupState.DEAD}


def test_a_group_becomes_stable_only_by_an_assignment() -> None:
    assert [state for state in GroupState if may_become(state, GroupState.STABLE)] == [GroupState.COMPLETING_REBALANCE]


def test_a_move_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no way from Empty to Stable"):
        Group("g").moved_to(GroupState.STABLE, now_ms=0)
