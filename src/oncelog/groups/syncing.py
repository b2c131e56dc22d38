"""Asking for one's assignment (SyncGroup): the leader brings everybody's, the others wait for it.

The assignment is stored before anybody hears it: a broker that takes over finds the same generation with the same parts.
"""

from oncelog.groups.commands import Sync
from oncelog.groups.decision import Decision, Draft, just_reply
from oncelog.groups.group import Group
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupStored
from oncelog.groups.rebalance import prepare_rebalance, take_back_assignments
from oncelog.groups.replies import SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode


def decide_sync(known: Group | None, command: Sync, config: GroupConfig, now_ms: int) -> Decision:
    refusal = _refusal(known, command)
    if known is None or refusal is not None:
        return just_reply(command.group_id, command.token, SyncReply(refusal or ErrorCode.UNKNOWN_MEMBER_ID))
    draft = Draft(known, config, now_ms)
    draft.change(unsynced=known.unsynced - {command.member_id})
    if not draft.group.unsynced:
        draft.stop_waiting_for_syncs()
    if known.state is GroupState.STABLE:
        draft.reply(command.token, _assigned(known, known.members[command.member_id].assignment))
        return draft.decision()
    draft.await_sync(command.member_id, command.token)
    if known.leader != command.member_id:
        return draft.decision()
    return _assign(draft, command)


def decide_sync_timeout(group: Group, config: GroupConfig, now_ms: int) -> Decision:
    """Members that joined and then never asked for their part hold the group's partitions for nothing."""
    draft = Draft(group, config, now_ms)
    if group.unsynced and group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        for member_id in sorted(group.unsynced):
            draft.remove_member(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        prepare_rebalance(draft)
    return draft.decision()


def _refusal(known: Group | None, command: Sync) -> ErrorCode | None:
    if command.group_id == "":
        return ErrorCode.INVALID_GROUP_ID
    if known is None or known.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    refused = known.check_member(command.member_id, command.group_instance_id)
    if refused is not None:
        return refused.code
    if command.generation != known.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(command.protocol_type, known.protocol_type) or _differs(command.protocol_name, known.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if known.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differs(asked: str | None, actual: str | None) -> bool:
    # KIP-559: older clients do not say, and then there is nothing to compare.
    return asked is not None and actual is not None and asked != actual


def _assign(draft: Draft, command: Sync) -> Decision:
    waiting = draft.group
    for member_id, token in waiting.syncing.items():
        draft.reply(token, _assigned(waiting, command.assignments.get(member_id, b"")))
        draft.restart_session(waiting.members[member_id])
    draft.change(syncing={})
    # The record makes the group Stable: applying it does, here and in whoever takes over.
    draft.records.append(GroupStored.of(waiting, draft.now_ms, command.assignments))

    def not_stored(code: ErrorCode) -> Decision:
        again = Draft(waiting, draft.config, draft.now_ms)
        take_back_assignments(again, code)
        prepare_rebalance(again)
        return again.decision()

    return draft.decision(otherwise=not_stored)


def _assigned(group: Group, assignment: bytes) -> SyncReply:
    return SyncReply(protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment)
