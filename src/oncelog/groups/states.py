"""The life of a group: its states under Kafka's names, and every way from one to another.

The table is the only place that says what may follow what; the diagram in docs/groups.md is drawn from it.
"""

from enum import Enum


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


#: (from, to) -> what makes a group go that way.
TRANSITIONS: dict[tuple[GroupState, GroupState], str] = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): "a first member joins",
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): "everybody has joined, or time is up",
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): "the last member left",
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): "the leader sent the assignment",
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): "a member joins, leaves, fails or never syncs",
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): "a member joins, leaves, fails or never syncs",
    (GroupState.EMPTY, GroupState.DEAD): "deleted, expired, or handed to another broker",
    (GroupState.PREPARING_REBALANCE, GroupState.DEAD): "handed to another broker",
    (GroupState.COMPLETING_REBALANCE, GroupState.DEAD): "handed to another broker",
    (GroupState.STABLE, GroupState.DEAD): "handed to another broker",
}


def may_become(state: GroupState, following: GroupState) -> bool:
    return (state, following) in TRANSITIONS


def state_diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {GroupState.EMPTY.value}"]
    lines += [f"    {before.value} --> {after.value}: {why}" for (before, after), why in TRANSITIONS.items()]
    lines.append(f"    {GroupState.DEAD.value} --> [*]")
    return "\n".join(lines) + "\n"
