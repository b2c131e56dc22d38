"""Joining a group (JoinGroup): new members, known members, and static members that come back under a new member id.

A static member (KIP-345) that restarts takes over its own place: while the group is Stable and would still choose the same
protocol, nobody else notices, and whoever still runs under the old member id is fenced.
"""

from dataclasses import replace

from oncelog.groups.commands import UNKNOWN_MEMBER, Join, session_of
from oncelog.groups.decision import Decision, Draft, just_reply
from oncelog.groups.group import Group, Member
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.rebalance import complete_if_everybody_joined, everybody, joined, prepare_rebalance, rebalance
from oncelog.groups.replies import JoinReply, SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode


def decide_join(known: Group | None, command: Join, config: GroupConfig, now_ms: int) -> Decision:
    refusal = _refusal(known, command, config)
    if refusal is not None:
        return just_reply(command.group_id, command.token, JoinReply(refusal, command.member_id))
    group = known if known is not None else Group(command.group_id, state_since_ms=now_ms)
    draft = Draft(group, config, now_ms)
    if not _has_room(group, command.member_id, config):
        if command.member_id in group.members or command.member_id in group.pending_joins:
            draft.remove_member(command.member_id, ErrorCode.GROUP_MAX_SIZE_REACHED)
            complete_if_everybody_joined(draft)
        draft.reply(command.token, JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED))
        return draft.decision()
    if not group.supports(command.protocol_type, command.protocols):
        return just_reply(
            command.group_id, command.token, JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id)
        )
    if command.member_id == UNKNOWN_MEMBER:
        return _new_member(draft, command)
    return _known_member(draft, command)


def _refusal(known: Group | None, command: Join, config: GroupConfig) -> ErrorCode | None:
    if command.group_id == "":
        return ErrorCode.INVALID_GROUP_ID
    if not config.min_session_timeout_ms <= command.session_timeout_ms <= config.max_session_timeout_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if known is None and command.member_id != UNKNOWN_MEMBER:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None


def _has_room(group: Group, member_id: str, config: GroupConfig) -> bool:
    if group.state is GroupState.PREPARING_REBALANCE:
        # Counting those who have joined, not all members, turns away the last to come if the limit was lowered.
        return member_id in group.joining or len(group.joining) < config.max_size
    if group.state is GroupState.EMPTY:
        return True
    return member_id in group.members or len(group.members) < config.max_size


def _new_member(draft: Draft, command: Join) -> Decision:
    if command.group_instance_id is not None:
        holder = draft.group.static_members.get(command.group_instance_id)
        if holder is not None:
            return _take_over(draft, command, holder)
        return _add(draft, command, command.fresh_member_id)
    if not command.member_id_required:
        return _add(draft, command, command.fresh_member_id)
    member_id = command.fresh_member_id
    draft.change(pending_joins=draft.group.pending_joins | {member_id})
    draft.timers[session_of(member_id)] = command.session_timeout_ms
    draft.reply(command.token, JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    return draft.decision()


def _known_member(draft: Draft, command: Join) -> Decision:
    group = draft.group
    if command.member_id in group.pending_joins and command.group_instance_id is None:
        return _add(draft, command, command.member_id)
    refused = group.check_member(command.member_id, command.group_instance_id)
    if refused is not None:
        draft.reply(command.token, JoinReply(refused.code, command.member_id))
        return draft.decision()
    member = group.members[command.member_id]
    same = member.protocols == command.protocols
    match group.state:
        case GroupState.COMPLETING_REBALANCE if same:
            # The answer to its join got lost: the same again.
            draft.reply(command.token, joined(group, command.member_id))
        case GroupState.STABLE if same and group.leader != command.member_id:
            draft.reply(command.token, replace(joined(group, command.member_id), members=()))
        case _:
            # A leader that joins again wants a rebalance: it may have seen new partitions.
            draft.group = group.with_member(_changed(member, command))
            draft.await_join(command.member_id, command.token)
            rebalance(draft)
    return draft.decision()


def _add(draft: Draft, command: Join, member_id: str) -> Decision:
    member = Member(
        member_id,
        command.group_instance_id,
        command.client_id,
        command.client_host,
        command.rebalance_timeout_ms,
        command.session_timeout_ms,
        command.protocols,
        is_new=True,
    )
    if not draft.group.members:
        draft.change(protocol_type=command.protocol_type)
    if draft.group.initial_rebalance is not None:
        draft.change(initial_rebalance=replace(draft.group.initial_rebalance, member_added=True))
    draft.group = draft.group.with_member(member)
    draft.await_join(member_id, command.token)
    draft.timers[session_of(member_id)] = draft.config.new_member_join_timeout_ms
    rebalance(draft)
    return draft.decision()


def _take_over(draft: Draft, command: Join, holder: str) -> Decision:
    """A static member is back under a new member id."""
    before, old = draft.group, draft.group.members[holder]
    if holder in before.joining:
        draft.reply(before.joining[holder], JoinReply(ErrorCode.FENCED_INSTANCE_ID, holder))
    if holder in before.syncing:
        draft.reply(before.syncing[holder], SyncReply(ErrorCode.FENCED_INSTANCE_ID))
    member = _changed(replace(old, member_id=command.fresh_member_id, is_new=False), command)
    draft.group = before.without_member(holder).with_member(member)
    if before.leader == holder:
        draft.change(leader=member.member_id)
    draft.end_session(holder)
    draft.restart_session(member)
    group = draft.group
    if group.state is GroupState.STABLE and group.selected_protocol() == group.protocol_name:
        draft.store()
        draft.reply(command.token, _told_of_take_over(before, group, member.member_id, command))
        return draft.decision(
            otherwise=lambda code: just_reply(
                command.group_id,
                command.token,
                JoinReply(code, generation=before.generation, leader=before.leader or ""),
            )
        )
    draft.await_join(member.member_id, command.token)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_everybody_joined(draft)
    else:
        # In CompletingRebalance the leader may be assigning to the old member id right now: only a new round helps.
        prepare_rebalance(draft)
    return draft.decision()


def _told_of_take_over(before: Group, group: Group, member_id: str, command: Join) -> JoinReply:
    reply = replace(joined(group, member_id), members=())
    if not command.may_skip_assignment:
        # An older client that hears it leads would assign anew; naming the old id as leader keeps it a follower.
        return replace(reply, leader=before.leader or "")
    leads = group.leader == member_id
    return replace(reply, members=everybody(group) if leads else (), skip_assignment=leads)


def _changed(member: Member, command: Join) -> Member:
    return replace(
        member,
        protocols=command.protocols,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
    )
