"""One front for all rules: a command goes to the rule for it."""

from typing import TypeAlias, assert_never

from oncelog.groups.commands import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    ExpireOffsets,
    ForgetTopic,
    Heartbeat,
    Join,
    Leave,
    Sync,
    TimedOut,
    TimerKind,
)
from oncelog.groups.decision import Decision, Draft
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.joining import decide_join
from oncelog.groups.membership import decide_heartbeat, decide_leave, decide_session_timeout
from oncelog.groups.offsets import (
    decide_commit_offsets,
    decide_delete_group,
    decide_delete_offsets,
    decide_expire_offsets,
    decide_forget_topic,
)
from oncelog.groups.rebalance import join_time_is_up
from oncelog.groups.shard import Shard
from oncelog.groups.syncing import decide_sync, decide_sync_timeout

Command: TypeAlias = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | CommitOffsets
    | DeleteOffsets
    | DeleteGroup
    | TimedOut
    | ExpireOffsets
    | ForgetTopic
)


def decide(shard: Shard, command: Command, config: GroupConfig, now_ms: int) -> Decision:
    group = shard.groups.get(command.group_id)
    match command:
        case Heartbeat():
            return decide_heartbeat(group, command)
        case CommitOffsets():
            return decide_commit_offsets(shard, command, config, now_ms)
        case Join():
            return decide_join(group, command, config, now_ms)
        case Sync():
            return decide_sync(group, command, config, now_ms)
        case Leave():
            return decide_leave(group, command, config, now_ms)
        case TimedOut():
            return _decide_timeout(shard, command, config, now_ms)
        case DeleteOffsets():
            return decide_delete_offsets(shard, command)
        case DeleteGroup():
            return decide_delete_group(shard, command)
        case ExpireOffsets():
            return decide_expire_offsets(shard, command, config, now_ms)
        case ForgetTopic():
            return decide_forget_topic(shard, command)
        case _:
            assert_never(command)


def _decide_timeout(shard: Shard, command: TimedOut, config: GroupConfig, now_ms: int) -> Decision:
    group = shard.groups.get(command.group_id)
    if group is None:
        return Decision(command.group_id)
    match command.timer.kind:
        case TimerKind.SESSION:
            return decide_session_timeout(group, command.timer.member_id, config, now_ms)
        case TimerKind.SYNC:
            return decide_sync_timeout(group, config, now_ms)
        case TimerKind.JOIN:
            draft = Draft(group, config, now_ms)
            join_time_is_up(draft)
            return draft.decision()
