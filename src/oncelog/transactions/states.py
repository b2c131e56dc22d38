"""The states of a transactional id, with the numbers Kafka writes into `__transaction_state`, and the ways between them.

The table is the law: a step that is not in it is a bug, and the diagram in docs/transactions.md is drawn from it.
"""

from enum import IntEnum


class State(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def public_name(self) -> str:
        """As Kafka's tools print it: PrepareCommit."""
        return self.name.title().replace("_", "")


def state_named(public_name: str) -> State | None:
    return _BY_PUBLIC_NAME.get(public_name)


_BY_PUBLIC_NAME = {state.public_name: state for state in State}

#: From each state, where a transactional id may go next, and what takes it there.
TRANSITIONS: dict[tuple[State, State], str] = {
    (State.EMPTY, State.EMPTY): "a new instance initialises",
    (State.EMPTY, State.ONGOING): "the first partition is added",
    (State.ONGOING, State.ONGOING): "another partition is added",
    (State.ONGOING, State.PREPARE_COMMIT): "commit",
    (State.ONGOING, State.PREPARE_ABORT): "abort, timeout, or a new instance",
    (State.PREPARE_COMMIT, State.COMPLETE_COMMIT): "all markers are written",
    (State.PREPARE_ABORT, State.COMPLETE_ABORT): "all markers are written",
    (State.COMPLETE_COMMIT, State.ONGOING): "the first partition is added",
    (State.COMPLETE_ABORT, State.ONGOING): "the first partition is added",
    (State.COMPLETE_COMMIT, State.EMPTY): "a new instance initialises",
    (State.COMPLETE_ABORT, State.EMPTY): "a new instance initialises",
    (State.EMPTY, State.PREPARE_ABORT): "abort of nothing (v2)",
    (State.COMPLETE_COMMIT, State.PREPARE_ABORT): "abort of nothing (v2)",
    (State.COMPLETE_ABORT, State.PREPARE_ABORT): "abort of nothing (v2)",
    (State.EMPTY, State.DEAD): "idle for too long",
    (State.COMPLETE_COMMIT, State.DEAD): "idle for too long",
    (State.COMPLETE_ABORT, State.DEAD): "idle for too long",
    # PrepareEpochFence is Kafka's step in memory between "a new instance came" and the abort's Prepare record. Here one
    # decision does both, and nobody is ever in that state.
}


def may_become(before: State, after: State) -> bool:
    return (before, after) in TRANSITIONS


def state_diagram() -> str:
    """The table as a Mermaid diagram, for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.EMPTY.public_name}"]
    for (before, after), why in TRANSITIONS.items():
        lines.append(f"    {before.public_name} --> {after.public_name}: {why}")
    lines.append(f"    {State.DEAD.public_name} --> [*]")
    return "\n".join(lines) + "\n"


#: The markers of these are still to be written: a coordinator that finds one at start goes on with it.
PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
#: The outcome is a commit, from the moment it is decided.
COMMITTED = frozenset({State.PREPARE_COMMIT, State.COMPLETE_COMMIT})
#: No transaction is open: a new one may begin, and the id may expire.
AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
