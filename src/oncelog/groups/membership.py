"""Staying in a group and leaving it: heartbeats, sessions that run out, LeaveGroup, and the broker letting go of a group."""

from oncelog.groups.commands import UNKNOWN_MEMBER, Heartbeat, Leave, LeavingMember, session_of
from oncelog.groups.decision import Decision, Draft, just_reply
from oncelog.groups.group import Group
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.rebalance import complete_if_everybody_joined, complete_join, prepare_rebalance, rebalance
from oncelog.groups.replies import HeartbeatReply, JoinReply, LeaveReply, MemberLeft, SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode


def decide_heartbeat(known: Group | None, command: Heartbeat) -> Decision:
    error = _heartbeat_error(known, command)
    reply = ((command.token, HeartbeatReply(error)),)
    if known is None or error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        return Decision(command.group_id, replies=reply)
    # Also while rebalancing: a member that was told to join again has the rebalance timeout for it, not the session's.
    timeout_ms = known.members[command.member_id].session_timeout_ms
    return Decision(command.group_id, timers={session_of(command.member_id): timeout_ms}, replies=reply)


def _heartbeat_error(known: Group | None, command: Heartbeat) -> ErrorCode:
    if command.group_id == "":
        return ErrorCode.INVALID_GROUP_ID
    if known is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    refused = known.check_member(command.member_id, command.group_instance_id)
    if refused is not None:
        return refused.code
    if command.generation != known.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if known.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def decide_leave(known: Group | None, command: Leave, config: GroupConfig, now_ms: int) -> Decision:
    if command.group_id == "":
        return just_reply(command.group_id, command.token, LeaveReply(ErrorCode.INVALID_GROUP_ID))
    if known is None:
        unknown = tuple(MemberLeft(*leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in command.members)
        return just_reply(command.group_id, command.token, LeaveReply(members=unknown))
    draft = Draft(known, config, now_ms)
    left = tuple(_let_go(draft, leaving) for leaving in command.members)
    if any(member.error is ErrorCode.NONE for member in left):
        match known.state:
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                rebalance(draft)
            case GroupState.PREPARING_REBALANCE:
                complete_if_everybody_joined(draft)
            case GroupState.EMPTY | GroupState.DEAD:
                pass
    draft.reply(command.token, LeaveReply(members=left))
    return draft.decision()


def _let_go(draft: Draft, leaving: LeavingMember) -> MemberLeft:
    group = draft.group
    member_id = leaving.member_id
    error = ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER:
        held = None if leaving.group_instance_id is None else group.static_members.get(leaving.group_instance_id)
        if held is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            member_id = held
    elif member_id not in group.pending_joins:
        refused = group.check_member(member_id, leaving.group_instance_id)
        error = ErrorCode.NONE if refused is None else refused.code
    if error is ErrorCode.NONE:
        draft.remove_member(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    return MemberLeft(leaving.member_id, leaving.group_instance_id, error)


def decide_session_timeout(group: Group, member_id: str, config: GroupConfig, now_ms: int) -> Decision:
    draft = Draft(group, config, now_ms)
    member = group.members.get(member_id)
    waits = member_id in group.joining or member_id in group.syncing
    if member is not None and waits and not member.is_new:
        # Who waits for us cannot be asked to heartbeat; the answer starts the session anew.
        return draft.decision()
    if member is None and member_id not in group.pending_joins:
        return draft.decision()
    draft.remove_member(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.PREPARING_REBALANCE:
        if draft.group.everybody_joined:
            complete_join(draft)
    elif member is not None:
        rebalance(draft)
    return draft.decision()


def decide_loaded(group: Group, config: GroupConfig, now_ms: int) -> Decision:
    """A group fresh from the log: its members get the time to say that they are there."""
    draft = Draft(group, config, now_ms)
    for member in group.members.values():
        draft.restart_session(member)
    if len(group.members) > config.max_size:
        prepare_rebalance(draft)
    return draft.decision()


def decide_unloaded(group: Group, config: GroupConfig, now_ms: int) -> Decision:
    """This broker has the group no longer: whoever waits is sent to find the one that has."""
    draft = Draft(group, config, now_ms)
    for member_id, token in group.joining.items():
        draft.reply(token, JoinReply(ErrorCode.NOT_COORDINATOR, member_id))
    for token in group.syncing.values():
        draft.reply(token, SyncReply(ErrorCode.NOT_COORDINATOR))
    for member_id in (*group.members, *group.pending_joins):
        draft.end_session(member_id)
    draft.stop_waiting_for_joins()
    draft.stop_waiting_for_syncs()
    draft.change(joining={}, syncing={})
    draft.move_to(GroupState.DEAD)
    return draft.decision()
