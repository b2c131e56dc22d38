"""A coordinator for tests: decisions are carried out in memory, and time passes only when a test says so.

Always checked on the way: a command is answered at most once, and only tokens that were handed in are answered.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from oncelog.groups.commands import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    Heartbeat,
    Join,
    Leave,
    LeavingMember,
    OffsetToCommit,
    Sync,
    TimedOut,
    Timer,
)
from oncelog.groups.decide import Command, decide
from oncelog.groups.decision import Decision
from oncelog.groups.group import Group, Protocol
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupRecord, decode_record, encode_record
from oncelog.groups.replies import DeleteReply, HeartbeatReply, JoinReply, LeaveReply, OffsetsReply, SyncReply
from oncelog.groups.shard import Shard
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition

G = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """What a consumer puts into its join metadata, version 0."""
    parts = [b"\x00\x00", len(topics).to_bytes(4, "big")]
    for topic in topics:
        parts += [len(topic).to_bytes(2, "big"), topic.encode()]
    return b"".join(parts) + b"\xff\xff\xff\xff"


@dataclass
class Written:
    offset: int
    record: GroupRecord
    producer_id: int


@dataclass
class Marker:
    producer_id: int
    committed: bool


@dataclass
class Rehearsal:
    config: GroupConfig = field(default_factory=GroupConfig)
    now_ms: int = 1_000_000
    shard: Shard = field(default_factory=Shard)
    log: list[Written] = field(default_factory=list)
    #: The log with the markers of transactions between its records.
    history: list[Written | Marker] = field(default_factory=list)
    answers: dict[int, Any] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    due: dict[tuple[str, Timer], int] = field(default_factory=dict)
    #: What the log answers instead of taking records.
    log_refuses: ErrorCode | None = None
    tokens: Any = field(default_factory=count)

    def group(self, group_id: str = G) -> Group:
        return self.shard.groups[group_id]

    @property
    def state(self) -> GroupState:
        return self.group().state

    # Carrying out

    def run(self, command: Command) -> None:
        self.carry_out(decide(self.shard, command, self.config, self.now_ms))

    def carry_out(self, decision: Decision) -> None:
        if decision.records and self.log_refuses is not None:
            assert decision.otherwise is not None
            decision = decision.otherwise(self.log_refuses)
            assert not decision.records
        if decision.group is not None:
            self.shard.groups[decision.group_id] = decision.group
        producer_id = -1 if decision.producer is None else decision.producer.producer_id
        for record in decision.records:
            offset = len(self.log)
            self.log.append(Written(offset, record, producer_id))
            self.history.append(self.log[-1])
            self.shard.apply(record, offset, producer_id)
        for timer, delay_ms in decision.timers.items():
            self.due.pop((decision.group_id, timer), None)
            if delay_ms is not None:
                self.due[decision.group_id, timer] = self.now_ms + delay_ms
        for token, reply in decision.replies:
            assert token in self.waiting, f"{token} was answered twice, or never asked: {reply}"
            self.waiting.remove(token)
            self.answers[token] = reply

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.history.append(Marker(producer_id, committed))
        self.shard.apply_marker(producer_id, committed=committed)

    def replayed(self) -> Shard:
        """What a restart makes of the bytes in the log."""
        shard = Shard()
        for entry in self.history:
            if isinstance(entry, Marker):
                shard.apply_marker(entry.producer_id, committed=entry.committed)
            else:
                record = decode_record(*encode_record(entry.record))
                assert record == entry.record
                shard.apply(record, entry.offset, entry.producer_id)
        return shard

    def pass_time(self, by_ms: int) -> None:
        """Let time go by; timers go off when they are due."""
        until_ms = self.now_ms + by_ms
        while True:
            upcoming = sorted((at_ms, str(key), key) for key, at_ms in self.due.items() if at_ms <= until_ms)
            if not upcoming:
                break
            at_ms, _, (group_id, timer) = upcoming[0]
            self.now_ms = max(self.now_ms, at_ms)
            del self.due[group_id, timer]
            self.run(TimedOut(group_id, timer))
        self.now_ms = until_ms

    def token(self) -> int:
        token = int(next(self.tokens))
        self.waiting.add(token)
        return token

    # Asking. Each gives the answer, or None while there is none; `last_token` finds it later.

    @property
    def last_token(self) -> int:
        return max(*self.answers, *self.waiting, -1)

    def join(
        self,
        member_id: str = "",
        *,
        fresh: str = "fresh",
        instance: str | None = None,
        offers: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        id_required: bool = True,
        may_skip: bool = True,
        group_id: str = G,
    ) -> JoinReply | None:
        token = self.token()
        offered = {"range": subscription("orders")} if offers is None else offers
        self.run(
            Join(
                token,
                group_id,
                member_id,
                fresh,
                instance,
                "client",
                "/127.0.0.1",
                session_ms,
                rebalance_ms,
                protocol_type,
                tuple(Protocol(name, metadata) for name, metadata in offered.items()),
                id_required,
                may_skip,
            )
        )
        return self.answers.get(token)

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        group_id: str = G,
    ) -> SyncReply | None:
        token = self.token()
        if generation is None:
            generation = self.group(group_id).generation
        self.run(
            Sync(token, group_id, generation, member_id, instance, protocol_type, protocol_name, assignments or {})
        )
        return self.answers.get(token)

    def heartbeat(
        self, member_id: str, generation: int | None = None, *, instance: str | None = None, group_id: str = G
    ) -> ErrorCode:
        token = self.token()
        if generation is None:
            generation = self.group(group_id).generation
        self.run(Heartbeat(token, group_id, generation, member_id, instance))
        reply: HeartbeatReply = self.answers[token]
        return reply.error

    def leave(self, *members: tuple[str, str | None], group_id: str = G) -> LeaveReply:
        token = self.token()
        self.run(Leave(token, group_id, tuple(LeavingMember(*member) for member in members)))
        reply: LeaveReply = self.answers[token]
        return reply

    def commit(
        self,
        offsets: dict[TopicPartition, int],
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str = "",
        retention_ms: int = -1,
        producer: ProducerIdentity | None = None,
        error_if_no_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
        group_id: str = G,
    ) -> OffsetsReply:
        token = self.token()
        wanted = tuple(OffsetToCommit(position, offset, 0, metadata) for position, offset in offsets.items())
        self.run(
            CommitOffsets(
                token, group_id, generation, member_id, instance, wanted, retention_ms, producer, error_if_no_group
            )
        )
        reply: OffsetsReply = self.answers[token]
        return reply

    def delete_offsets(self, *partitions: TopicPartition, group_id: str = G) -> OffsetsReply:
        token = self.token()
        self.run(DeleteOffsets(token, group_id, partitions))
        reply: OffsetsReply = self.answers[token]
        return reply

    def delete_group(self, group_id: str = G) -> ErrorCode:
        token = self.token()
        self.run(DeleteGroup(token, group_id))
        reply: DeleteReply = self.answers[token]
        return reply.error

    def committed(self, position: TopicPartition, group_id: str = G) -> int | None:
        found = self.shard.offset(group_id, position)
        return None if found is None else found.offset

    # Whole stories

    def member(self, member_id: str, **join: Any) -> JoinReply | None:
        """A dynamic member that got its id beforehand and joins with it."""
        first = self.join(fresh=member_id, **join)
        assert first == JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self.join(member_id, **join)

    def stable(self, *member_ids: str, **join: Any) -> None:
        """A group of these dynamic members in which everybody has its assignment; the first one leads."""
        first, *others = member_ids
        self.member(first, **join)
        for other in others:
            self.member(other, **join)
        if others:
            self.join(first, **join)
            for already_in in others[:-1]:
                self.join(already_in, **join)
        for member_id in reversed(member_ids):
            self.sync(member_id, assignments={each: each.encode() for each in member_ids})
        assert self.state is GroupState.STABLE
