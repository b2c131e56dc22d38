"""What follows from a command, and the draft on which a rule works it out.

The caller stores the records, then takes the group, sets the timers and sends the replies: in that order, so that nobody hears
of something a crash could take back. If the records cannot be stored the draft is dropped and `otherwise` says what then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from oncelog.groups.commands import JOIN_TIMER, SYNC_TIMER, Timer, session_of
from oncelog.groups.group import Group, Member, Token
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupRecord, GroupStored
from oncelog.groups.replies import DeleteReply, HeartbeatReply, JoinReply, LeaveReply, OffsetsReply, SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity

GroupReply: TypeAlias = JoinReply | SyncReply | HeartbeatReply | LeaveReply | OffsetsReply | DeleteReply


@dataclass(frozen=True, slots=True)
class Decision:
    group_id: str
    #: The group as it is from now on (before `records` are applied to it), or None if nothing changed in it.
    group: Group | None = None
    records: tuple[GroupRecord, ...] = ()
    #: The transaction the records belong to.
    producer: ProducerIdentity | None = None
    #: To start anew with this many milliseconds, or to stop (None).
    timers: dict[Timer, int | None] = field(default_factory=dict)
    replies: tuple[tuple[Token, GroupReply], ...] = ()
    #: What follows if the records cannot be stored.
    otherwise: "Callable[[ErrorCode], Decision] | None" = None


def just_reply(group_id: str, token: Token, reply: GroupReply) -> Decision:
    return Decision(group_id, replies=((token, reply),))


class Draft:
    """A group while a rule changes it, and what has come of it so far."""

    __slots__ = ("before", "group", "config", "now_ms", "records", "timers", "replies")

    def __init__(self, group: Group, config: GroupConfig, now_ms: int) -> None:
        self.before = group
        self.group = group
        self.config = config
        self.now_ms = now_ms
        self.records: list[GroupRecord] = []
        self.timers: dict[Timer, int | None] = {}
        self.replies: list[tuple[Token, GroupReply]] = []

    def decision(self, otherwise: Callable[[ErrorCode], Decision] | None = None) -> Decision:
        """By default the group goes on even if its record is lost: that it ran empty, say, is true all the same, and a
        restart that brings the last members back sees their sessions run out again."""
        decision = Decision(
            self.group.group_id,
            group=None if self.group is self.before else self.group,
            timers=self.timers,
            replies=tuple(self.replies),
        )
        if not self.records:
            return decision
        return replace(decision, records=tuple(self.records), otherwise=otherwise or (lambda _: decision))

    def change(self, **fields: object) -> None:
        self.group = replace(self.group, **fields)  # type: ignore[arg-type]

    def move_to(self, state: GroupState) -> None:
        self.group = self.group.moved_to(state, self.now_ms)

    def reply(self, token: Token, reply: GroupReply) -> None:
        self.replies.append((token, reply))

    def restart_session(self, member: Member) -> None:
        self.timers[session_of(member.member_id)] = member.session_timeout_ms

    def end_session(self, member_id: str) -> None:
        self.timers[session_of(member_id)] = None

    def wait_for_joins(self, delay_ms: int) -> None:
        self.timers[JOIN_TIMER] = delay_ms

    def stop_waiting_for_joins(self) -> None:
        self.timers[JOIN_TIMER] = None

    def wait_for_syncs(self, delay_ms: int) -> None:
        self.timers[SYNC_TIMER] = delay_ms

    def stop_waiting_for_syncs(self) -> None:
        self.timers[SYNC_TIMER] = None

    def store(self) -> None:
        """Write the group as it stands."""
        self.records.append(GroupStored.of(self.group, self.group.state_since_ms))

    def await_join(self, member_id: str, token: Token) -> None:
        """An earlier request of the same member is answered now: its connection is most likely gone, and if it is not,
        joining again is what it should do."""
        if member_id in self.group.joining:
            self.reply(self.group.joining[member_id], JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
        self.change(joining={**self.group.joining, member_id: token})

    def await_sync(self, member_id: str, token: Token) -> None:
        if member_id in self.group.syncing:
            self.reply(self.group.syncing[member_id], SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
        self.change(syncing={**self.group.syncing, member_id: token})

    def remove_member(self, member_id: str, error: ErrorCode, told_member_id: str = "") -> None:
        """Take a member out; whatever it waits for is answered with `error`."""
        if member_id in self.group.joining:
            self.reply(self.group.joining[member_id], JoinReply(error, told_member_id))
        if member_id in self.group.syncing:
            self.reply(self.group.syncing[member_id], SyncReply(error))
        self.end_session(member_id)
        self.group = self.group.without_member(member_id)
