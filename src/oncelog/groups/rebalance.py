"""A rebalance: everybody joins again, a leader is found, and a new generation waits for its assignment.

prepare ──▶ all joined, or the slowest member's rebalance timeout ──▶ complete: generation + 1
                                                                        │ no member left: Empty, stored
                                                                        └ members: CompletingRebalance, answers go out
"""

from dataclasses import replace

from oncelog.groups.decision import Draft
from oncelog.groups.group import Group, InitialRebalance
from oncelog.groups.replies import JoinedMember, JoinReply, SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode

_MAY_REBALANCE = (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


def rebalance(draft: Draft) -> None:
    """Somebody came or went: begin a rebalance, or go on with the one that is under way."""
    if draft.group.state in _MAY_REBALANCE:
        prepare_rebalance(draft)
    else:
        complete_if_everybody_joined(draft)


def prepare_rebalance(draft: Draft) -> None:
    if draft.group.state is GroupState.COMPLETING_REBALANCE:
        take_back_assignments(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    draft.stop_waiting_for_syncs()
    draft.change(unsynced=frozenset())
    initial = draft.group.state is GroupState.EMPTY
    draft.move_to(GroupState.PREPARING_REBALANCE)
    if initial and draft.config.initial_rebalance_delay_ms > 0:
        delay_ms = draft.config.initial_rebalance_delay_ms
        draft.change(initial_rebalance=InitialRebalance(max(draft.group.rebalance_timeout_ms - delay_ms, 0)))
        draft.wait_for_joins(delay_ms)
    elif initial or draft.group.everybody_joined:
        # With no initial delay the first member goes ahead alone: an id that was given out does not hold it up.
        complete_join(draft)
    else:
        draft.wait_for_joins(draft.group.rebalance_timeout_ms)


def complete_if_everybody_joined(draft: Draft) -> None:
    group = draft.group
    if group.state is GroupState.PREPARING_REBALANCE and group.initial_rebalance is None and group.everybody_joined:
        complete_join(draft)


def join_time_is_up(draft: Draft) -> None:
    group = draft.group
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    initial = group.initial_rebalance
    if initial is not None and initial.member_added and initial.remaining_ms > 0:
        delay_ms = min(draft.config.initial_rebalance_delay_ms, initial.remaining_ms)
        draft.change(initial_rebalance=InitialRebalance(initial.remaining_ms - delay_ms))
        draft.wait_for_joins(delay_ms)
    else:
        complete_join(draft)


def complete_join(draft: Draft) -> None:
    """The next generation. Dynamic members that did not come are out; static ones may be restarting and stay."""
    draft.stop_waiting_for_joins()
    for member in list(draft.group.members.values()):
        if member.group_instance_id is None and member.member_id not in draft.group.joining:
            draft.remove_member(member.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    group = draft.group
    if group.members and not group.joining:
        # Only static members are left and none came: wait until sessions decide who is still there.
        draft.wait_for_joins(group.rebalance_timeout_ms)
        return
    if not group.members:
        draft.change(
            generation=group.generation + 1,
            protocol_name=None,
            leader=None,
            unsynced=frozenset(),
            initial_rebalance=None,
        )
        draft.group = draft.group.with_subscriptions_read()
        draft.move_to(GroupState.EMPTY)
        draft.store()
        return
    leader = group.leader if group.leader in group.joining else next(iter(group.joining))
    members = {key: replace(member, is_new=False) for key, member in group.members.items()}
    draft.change(
        generation=group.generation + 1,
        protocol_name=group.selected_protocol(),
        leader=leader,
        members=members,
        joining={},
        unsynced=frozenset(members),
        initial_rebalance=None,
    )
    draft.group = draft.group.with_subscriptions_read()
    draft.move_to(GroupState.COMPLETING_REBALANCE)
    for member_id, token in group.joining.items():
        draft.reply(token, joined(draft.group, member_id))
    for member in members.values():
        draft.restart_session(member)
    draft.wait_for_syncs(draft.group.rebalance_timeout_ms)


def joined(group: Group, member_id: str) -> JoinReply:
    """What a member of the current generation is told; the leader also hears what everybody wants."""
    return JoinReply(
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        members=everybody(group) if group.leader == member_id else (),
    )


def everybody(group: Group) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(member.member_id, member.group_instance_id, member.metadata(group.protocol_name))
        for member in group.members.values()
    )


def take_back_assignments(draft: Draft, error: ErrorCode) -> None:
    """What was assigned counts no more; whoever waits for it is told so."""
    group = draft.group
    for member_id, token in group.syncing.items():
        draft.reply(token, SyncReply(error))
        draft.restart_session(group.members[member_id])
    draft.change(
        members={key: replace(member, assignment=b"") for key, member in group.members.items()},
        syncing={},
    )
