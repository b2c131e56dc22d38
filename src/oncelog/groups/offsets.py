"""Offsets of a group: committing them, deleting them, and letting go of those nobody needs.

Who may commit: the members of the current generation; anybody if the group is empty (a tool, or a consumer that assigns its
own partitions); and, inside a transaction, also a producer that says nothing about membership (KIP-447 came later).
"""

from oncelog.groups.commands import (
    UNKNOWN_MEMBER,
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    ExpireOffsets,
    ForgetTopic,
    Timer,
    session_of,
)
from oncelog.groups.decision import Decision, just_reply
from oncelog.groups.group import Group
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import CommittedOffset, GroupRecord, GroupRemoved, OffsetCommitted, OffsetRemoved
from oncelog.groups.replies import DeleteReply, OffsetsReply
from oncelog.groups.shard import Shard
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition


def decide_commit_offsets(shard: Shard, command: CommitOffsets, config: GroupConfig, now_ms: int) -> Decision:
    group = shard.groups.get(command.group_id)
    refusal = _commit_refusal(group, command)
    if refusal is not None:
        return just_reply(command.group_id, command.token, OffsetsReply(refusal))
    expire_timestamp_ms = -1 if command.retention_ms == -1 else now_ms + command.retention_ms
    records: list[GroupRecord] = []
    failed: list[tuple[TopicPartition, ErrorCode]] = []
    for asked in command.offsets:
        if len(asked.metadata) > config.offset_metadata_max_bytes:
            failed.append((asked.topic_partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            continue
        committed = CommittedOffset(
            asked.offset, asked.leader_epoch, asked.metadata, now_ms, expire_timestamp_ms, asked.topic_id
        )
        records.append(OffsetCommitted(command.group_id, asked.topic_partition, committed))
    timers: dict[Timer, int | None] = {}
    if group is not None and command.producer is None and command.member_id in group.members:
        # Who commits is alive.
        timers[session_of(command.member_id)] = group.members[command.member_id].session_timeout_ms
    return Decision(
        command.group_id,
        records=tuple(records),
        producer=command.producer,
        timers=timers,
        replies=((command.token, OffsetsReply(failed=tuple(failed))),),
        otherwise=lambda code: just_reply(command.group_id, command.token, OffsetsReply(code)),
    )


def _commit_refusal(group: Group | None, command: CommitOffsets) -> ErrorCode | None:
    if group is None:
        return None if command.generation < 0 else command.error_if_no_group
    transactional = command.producer is not None
    if command.generation < 0 and group.state is GroupState.EMPTY:
        return None
    names_member = command.member_id != UNKNOWN_MEMBER or command.group_instance_id is not None
    if command.generation >= 0 or names_member:
        refused = group.check_member(command.member_id, command.group_instance_id)
        if refused is not None:
            return refused.code
        if command.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not transactional and group.state is not GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not transactional and group.state is GroupState.COMPLETING_REBALANCE:
        # It is a member of the coming generation, but its partitions are not assigned yet: it should go on and ask again.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def decide_delete_offsets(shard: Shard, command: DeleteOffsets) -> Decision:
    if command.group_id == "":
        return just_reply(command.group_id, command.token, OffsetsReply(ErrorCode.INVALID_GROUP_ID))
    group = shard.groups.get(command.group_id)
    if group is None:
        return just_reply(command.group_id, command.token, OffsetsReply(ErrorCode.GROUP_ID_NOT_FOUND))
    if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
        # Only consumers say what they read; of others nobody can tell which offsets they still need.
        return just_reply(command.group_id, command.token, OffsetsReply(ErrorCode.NON_EMPTY_GROUP))
    records: list[GroupRecord] = []
    failed: list[tuple[TopicPartition, ErrorCode]] = []
    for asked in command.partitions:
        if group.is_subscribed_to(asked.topic):
            failed.append((asked, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
        elif asked in shard.offsets(command.group_id) or shard.pending.has(command.group_id, asked):
            records.append(OffsetRemoved(command.group_id, asked))
    return Decision(
        command.group_id,
        records=tuple(records),
        replies=((command.token, OffsetsReply(failed=tuple(failed))),),
        otherwise=lambda code: just_reply(command.group_id, command.token, OffsetsReply(code)),
    )


def decide_delete_group(shard: Shard, command: DeleteGroup) -> Decision:
    group = shard.groups.get(command.group_id)
    if group is None:
        return just_reply(command.group_id, command.token, DeleteReply(ErrorCode.GROUP_ID_NOT_FOUND))
    if group.state is not GroupState.EMPTY:
        return just_reply(command.group_id, command.token, DeleteReply(ErrorCode.NON_EMPTY_GROUP))
    positions = dict.fromkeys((*shard.offsets(command.group_id), *shard.pending.partitions_of(command.group_id)))
    return Decision(
        command.group_id,
        records=(
            *(OffsetRemoved(command.group_id, position) for position in positions),
            GroupRemoved(command.group_id),
        ),
        timers=_nobody_expected(group),
        replies=((command.token, DeleteReply()),),
        otherwise=lambda code: just_reply(command.group_id, command.token, DeleteReply(code)),
    )


def decide_expire_offsets(shard: Shard, command: ExpireOffsets, config: GroupConfig, now_ms: int) -> Decision:
    """Kafka's rules (KIP-211): an offset's time counts from when the group ran empty; from its commit if nobody ever
    joined the group, or if the group is stable and does not read the topic any more."""
    group = shard.groups.get(command.group_id)
    if group is None:
        return Decision(command.group_id)
    expired = [
        position
        for position, standing in shard.offsets(command.group_id).items()
        if _is_expired(group, position, standing.committed, config, now_ms)
        and not shard.pending.has(command.group_id, position)
    ]
    records: list[GroupRecord] = [OffsetRemoved(command.group_id, position) for position in expired]
    unused = group.state is GroupState.EMPTY and not group.pending_joins and not shard.pending.has_any(command.group_id)
    if unused and len(expired) == len(shard.offsets(command.group_id)):
        records.append(GroupRemoved(command.group_id))
    return Decision(command.group_id, records=tuple(records), otherwise=lambda _: Decision(command.group_id))


def _is_expired(
    group: Group, position: TopicPartition, committed: CommittedOffset, config: GroupConfig, now_ms: int
) -> bool:
    if group.is_subscribed_to(position.topic):
        return False
    since_ms = committed.commit_timestamp_ms
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since_ms = group.state_since_ms if group.state_since_ms != -1 else since_ms
        elif group.subscribed_topics is None or group.state is not GroupState.STABLE:
            return False
    if committed.expire_timestamp_ms != -1:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= config.offsets_retention_ms


def decide_forget_topic(shard: Shard, command: ForgetTopic) -> Decision:
    positions = dict.fromkeys((*shard.offsets(command.group_id), *shard.pending.partitions_of(command.group_id)))
    records = tuple(
        OffsetRemoved(command.group_id, position) for position in positions if position.topic == command.topic
    )
    return Decision(command.group_id, records=records, otherwise=lambda _: Decision(command.group_id))


def _nobody_expected(group: Group) -> dict[Timer, int | None]:
    return {session_of(member_id): None for member_id in group.pending_joins}
