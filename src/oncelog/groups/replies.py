"""What the members of a group are told. Handlers turn these into the message of whatever version was asked in."""

from dataclasses import dataclass
from typing import NamedTuple

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition


class JoinedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinReply:
    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    #: Everybody's metadata, for the leader only.
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncReply:
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    error: ErrorCode = ErrorCode.NONE


class MemberLeft(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class LeaveReply:
    error: ErrorCode = ErrorCode.NONE
    members: tuple[MemberLeft, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetsReply:
    """Of a commit or a deletion. `error` speaks for all partitions; else those that failed are in `failed`."""

    error: ErrorCode = ErrorCode.NONE
    failed: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteReply:
    error: ErrorCode = ErrorCode.NONE
