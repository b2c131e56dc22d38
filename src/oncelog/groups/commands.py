"""What can be asked of a group. Wire versions end at the handler: what a version changes arrives here as a plain fact."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from oncelog.groups.group import Protocol, Token
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_id import NO_TOPIC_ID, TopicId
from oncelog.model.topic_partition import TopicPartition

UNKNOWN_MEMBER = ""
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Join:
    token: Token
    group_id: str
    member_id: str
    #: The id this member gets if it has none: made by the caller, because a rule may not roll dice.
    fresh_member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    #: KIP-394: a new member first gets an id, and only then a place in the group.
    member_id_required: bool = True
    #: KIP-814: this client understands that it leads and must not assign.
    may_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class Sync:
    token: Token
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    token: Token
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(NamedTuple):
    """A member names itself; an administrator names the instance id and leaves the member id empty."""

    member_id: str
    group_instance_id: str | None


@dataclass(frozen=True, slots=True)
class Leave:
    token: Token
    group_id: str
    members: tuple[LeavingMember, ...]


class OffsetToCommit(NamedTuple):
    topic_partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    token: Token
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    offsets: tuple[OffsetToCommit, ...]
    #: Only OffsetCommit v2-4 can say how long to keep an offset; -1 is the broker's own rule.
    retention_ms: int = -1
    #: Inside a transaction: nobody sees the offsets before its commit marker.
    producer: ProducerIdentity | None = None
    #: OffsetCommit v9 has a code of its own for a group that does not exist.
    error_if_no_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    token: Token
    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    token: Token
    group_id: str


class TimerKind(Enum):
    #: A member has not been heard of for its session timeout.
    SESSION = "session"
    #: Whoever has not joined by now is out.
    JOIN = "join"
    #: Whoever has not asked for its assignment by now is out.
    SYNC = "sync"


class Timer(NamedTuple):
    kind: TimerKind
    member_id: str = ""


def session_of(member_id: str) -> Timer:
    return Timer(TimerKind.SESSION, member_id)


JOIN_TIMER = Timer(TimerKind.JOIN)
SYNC_TIMER = Timer(TimerKind.SYNC)


@dataclass(frozen=True, slots=True)
class TimedOut:
    group_id: str
    timer: Timer


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """Drop what nobody has asked to keep for longer than the retention, and the group if nothing is left of it."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ForgetTopic:
    """The topic is gone: so are the offsets committed for it."""

    group_id: str
    topic: str
