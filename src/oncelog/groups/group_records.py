"""What `__consumer_offsets` holds, and its bytes: Kafka's formats, so that Kafka's own tools read them.

Keys start with a number that says what they are of: 0 and 1 an offset, 2 a group. A key without a value takes back what was
said under it. Other numbers (groups of the newer protocol, which a Kafka broker may have left here) are passed over.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from oncelog.groups.group import Group, Member, Protocol
from oncelog.groups.states import GroupState
from oncelog.model.topic_id import NO_TOPIC_ID, TopicId
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.codec import decode_versioned, encode_versioned, version_of
from oncelog.protocol.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from oncelog.protocol.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue

# The versions Kafka 4.3 writes. Version 1 of the offset is the only one that can carry an expiry time of its own.
OFFSET_KEY_VERSION = 1
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_KEY_VERSION = 2
GROUP_VALUE_VERSION = 3


class CommittedOffset(NamedTuple):
    """How far a group has read in one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    #: -1: the broker's retention decides.
    expire_timestamp_ms: int = -1
    topic_id: TopicId = NO_TOPIC_ID


class StoredMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupStored(NamedTuple):
    group_id: str
    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_since_ms: int
    members: tuple[StoredMember, ...]

    @staticmethod
    def of(group: Group, state_since_ms: int, assignments: Mapping[str, bytes] | None = None) -> "GroupStored":
        """The group as it stands, with these assignments if they are new."""
        return GroupStored(
            group.group_id,
            group.protocol_type or "",
            group.generation,
            group.protocol_name,
            group.leader,
            state_since_ms,
            tuple(
                StoredMember(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(group.protocol_name),
                    member.assignment if assignments is None else assignments.get(member.member_id, b""),
                )
                for member in group.members.values()
            ),
        )


class GroupRemoved(NamedTuple):
    group_id: str


class OffsetCommitted(NamedTuple):
    group_id: str
    topic_partition: TopicPartition
    committed: CommittedOffset


class OffsetRemoved(NamedTuple):
    group_id: str
    topic_partition: TopicPartition


GroupRecord: TypeAlias = GroupStored | GroupRemoved | OffsetCommitted | OffsetRemoved


def restored(current: Group | None, stored: GroupStored) -> Group:
    """The group a record speaks of. Of the group as it was only that stays of which records do not speak: who waits."""
    members: dict[str, Member] = {}
    offered: dict[str, int] = {}
    for entry in stored.members:
        subscription = Protocol(stored.protocol_name or "", entry.subscription)
        before = None if current is None else current.members.get(entry.member_id)
        # A record keeps only the chosen protocol of what a member offers.
        known = before is not None and subscription in before.protocols
        protocols = before.protocols if before is not None and known else (subscription,)
        members[entry.member_id] = Member(*entry[:6], protocols, entry.assignment)
        for name in {protocol.name for protocol in protocols}:
            offered[name] = offered.get(name, 0) + 1
    group = Group(
        stored.group_id,
        GroupState.STABLE if members else GroupState.EMPTY,
        stored.state_since_ms,
        stored.generation,
        stored.protocol_type or None,
        stored.protocol_name,
        stored.leader,
        members,
        {member.group_instance_id: key for key, member in members.items() if member.group_instance_id is not None},
        offered,
        pending_joins=frozenset() if current is None else current.pending_joins,
        joining={} if current is None else current.joining,
        syncing={} if current is None else current.syncing,
        unsynced=frozenset() if current is None else current.unsynced,
    )
    return group.with_subscriptions_read()


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they go into the log."""
    match record:
        case OffsetCommitted(group_id, topic_partition, committed):
            return _offset_key(group_id, topic_partition), _offset_value(committed)
        case OffsetRemoved(group_id, topic_partition):
            return _offset_key(group_id, topic_partition), None
        case GroupStored(group_id):
            return _group_key(group_id), _group_value(record)
        case GroupRemoved(group_id):
            return _group_key(group_id), None


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """None for a kind of record that is none of ours. Malformed bytes raise `Malformed`."""
    match version_of(key):
        case 0 | 1:
            offset_key = decode_versioned(OffsetCommitKey, key)
            topic_partition = TopicPartition(offset_key.topic, offset_key.partition)
            if value is None:
                return OffsetRemoved(offset_key.group, topic_partition)
            stored = decode_versioned(OffsetCommitValue, value)
            return OffsetCommitted(
                offset_key.group,
                topic_partition,
                CommittedOffset(
                    stored.offset,
                    stored.leader_epoch,
                    stored.metadata,
                    stored.commit_timestamp,
                    stored.expire_timestamp,
                    stored.topic_id,
                ),
            )
        case 2:
            group_id = decode_versioned(GroupMetadataKey, key).group
            if value is None:
                return GroupRemoved(group_id)
            return _group_stored(group_id, decode_versioned(GroupMetadataValue, value))
        case _:
            return None


def _offset_key(group_id: str, topic_partition: TopicPartition) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=topic_partition.topic, partition=topic_partition.partition)
    return encode_versioned(key, OFFSET_KEY_VERSION)


def _offset_value(committed: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    expires = committed.expire_timestamp_ms != -1
    return encode_versioned(value, OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else OFFSET_VALUE_VERSION)


def _group_key(group_id: str) -> bytes:
    return encode_versioned(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)


def _group_value(stored: GroupStored) -> bytes:
    value = GroupMetadataValue(
        protocol_type=stored.protocol_type,
        generation=stored.generation,
        protocol=stored.protocol_name,
        leader=stored.leader,
        current_state_timestamp=stored.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in stored.members
        ],
    )
    return encode_versioned(value, GROUP_VALUE_VERSION)


def _group_stored(group_id: str, value: GroupMetadataValue) -> GroupStored:
    return GroupStored(
        group_id,
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            StoredMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                # Version 0 had no rebalance timeout: the session timeout served for both.
                member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout,
                member.session_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
    )
