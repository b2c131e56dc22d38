"""The table of states, and the diagram that is drawn from it."""

from pathlib import Path

import pytest

from oncelog.transactions.states import PREPARED, TRANSITIONS, State, may_become, state_diagram, state_named
from tests.unit.transactions.transactions import NOW_MS, transaction

DOCUMENT = Path(__file__).parents[3] / "docs" / "transactions.md"


def test_the_diagram_in_the_documentation_is_the_one_the_table_draws():
    assert f"```mermaid\n{state_diagram()}```\n" in DOCUMENT.read_text()


def test_what_is_prepared_can_only_be_completed_the_way_it_was_prepared():
    onward = {before: [after for one, after in TRANSITIONS if one is before] for before in PREPARED}
    assert onward == {
        State.PREPARE_COMMIT: [State.COMPLETE_COMMIT],
        State.PREPARE_ABORT: [State.COMPLETE_ABORT],
    }


def test_a_step_that_is_not_in_the_table_is_a_bug():
    assert not may_become(State.PREPARE_COMMIT, State.COMPLETE_ABORT)
    with pytest.raises(AssertionError, match="no way from PrepareCommit to CompleteAbort"):
        transaction(State.PREPARE_COMMIT).to(State.COMPLETE_ABORT, NOW_MS)


def test_states_have_the_names_kafkas_tools_print():
    assert [state.public_name for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert state_named("PrepareCommit") is State.PREPARE_COMMIT
    assert state_named("nonsense") is None
