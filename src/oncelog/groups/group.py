"""A group and its members, as values: every change gives a new one, so a decision can be thrown away if it cannot be stored.

What a restart brings back is what `GroupStored` carries (see group_records.py); the rest (who waits for an answer, who was
given an id and has not come back) lives only here, and clients bring it back themselves by asking again.

Always: `joining` and `syncing` hold members only; `leader` is a member or None; `static_members` maps to members.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from oncelog.groups.states import GroupState, may_become
from oncelog.groups.subscription import subscribed_topics
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused

#: Whatever the caller wants back with the answer. Never looked at here.
Token: TypeAlias = Any

CONSUMER_PROTOCOL_TYPE = "consumer"


class Protocol(NamedTuple):
    """One way of assigning that a member offers, with what it wants the leader to know."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    #: Until its first join is answered a member knows no id to heartbeat with, so a parked join does not count as life.
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""


@dataclass(frozen=True, slots=True)
class InitialRebalance:
    """The first rebalance of an empty group waits a little for more members, and longer while they keep coming."""

    remaining_ms: int
    member_added: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    group_id: str
    state: GroupState = GroupState.EMPTY
    #: Wall clock at the last change of state; -1 where an old record did not say.
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    static_members: Mapping[str, str] = field(default_factory=dict)
    #: How many members offer each protocol.
    offered: Mapping[str, int] = field(default_factory=dict)
    #: None when the members' own words about it cannot be read.
    subscribed_topics: frozenset[str] | None = None
    #: Ids given out with MEMBER_ID_REQUIRED whose owners have not come back with them.
    pending_joins: frozenset[str] = frozenset()
    joining: Mapping[str, Token] = field(default_factory=dict)
    syncing: Mapping[str, Token] = field(default_factory=dict)
    #: Members of this generation that have not asked for their assignment.
    unsynced: frozenset[str] = frozenset()
    initial_rebalance: InitialRebalance | None = None

    @property
    def everybody_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the slowest member asked for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def moved_to(self, state: GroupState, now_ms: int) -> "Group":
        if not may_become(self.state, state):
            raise AssertionError(f"group {self.group_id}: no way from {self.state.value} to {state.value}")
        return replace(self, state=state, state_since_ms=now_ms)

    def with_member(self, member: Member) -> "Group":
        """A member added, or changed in its place."""
        before = self.members.get(member.member_id)
        offered = dict(self.offered)
        if before is not None:
            _count(offered, before, -1)
        _count(offered, member, +1)
        static_members = self.static_members
        if member.group_instance_id is not None and static_members.get(member.group_instance_id) != member.member_id:
            static_members = {**static_members, member.group_instance_id: member.member_id}
        return replace(
            self,
            members={**self.members, member.member_id: member},
            static_members=static_members,
            offered=offered,
            leader=self.leader if self.leader is not None else member.member_id,
            pending_joins=self.pending_joins - {member.member_id},
        )

    def without_member(self, member_id: str) -> "Group":
        """Also takes back an id that was given out and not used yet. Whoever waits under it must have been answered."""
        member = self.members.get(member_id)
        if member is None:
            return replace(self, pending_joins=self.pending_joins - {member_id})
        members = {key: other for key, other in self.members.items() if key != member_id}
        offered = dict(self.offered)
        _count(offered, member, -1)
        return replace(
            self,
            members=members,
            static_members={key: held for key, held in self.static_members.items() if held != member_id},
            offered=offered,
            leader=next(iter(members), None) if self.leader == member_id else self.leader,
            joining=_without(self.joining, member_id),
            syncing=_without(self.syncing, member_id),
            unsynced=self.unsynced - {member_id},
        )

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a member that offers these can work with everybody who is here."""
        if self.state is GroupState.EMPTY:
            return protocol_type != "" and len(protocols) > 0
        return protocol_type == self.protocol_type and any(
            self.offered.get(protocol.name, 0) == len(self.members) for protocol in protocols
        )

    def selected_protocol(self) -> str:
        """Each member votes for the first of its protocols that everybody offers; most votes win."""
        common = {name for name, count in self.offered.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(protocol.name for protocol in member.protocols if protocol.name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def with_subscriptions_read(self) -> "Group":
        topics: frozenset[str] | None = None
        if self.uses_consumer_protocol and not self.members:
            topics = frozenset()
        elif self.uses_consumer_protocol and self.protocol_name is not None:
            topics = subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())
        return replace(self, subscribed_topics=topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """When in doubt, yes: an offset that is still wanted must not be dropped."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def check_member(self, member_id: str, group_instance_id: str | None) -> Refused | None:
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                return Refused(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"no member with instance id {group_instance_id}: join again"
                )
            if holder != member_id:
                return Refused(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"instance id {group_instance_id} was taken over by member {holder}: stop this one",
                )
        if member_id not in self.members:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"no member {member_id} in group {self.group_id}: join again")
        return None


def _count(offered: dict[str, int], member: Member, step: int) -> None:
    # A member that names a protocol twice still offers it once.
    for name in {protocol.name for protocol in member.protocols}:
        count = offered.get(name, 0) + step
        if count:
            offered[name] = count
        else:
            offered.pop(name, None)


def _without(waiting: Mapping[str, Token], member_id: str) -> Mapping[str, Token]:
    if member_id not in waiting:
        return waiting
    return {key: token for key, token in waiting.items() if key != member_id}
