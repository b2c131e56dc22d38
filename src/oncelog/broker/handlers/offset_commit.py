"""OffsetCommit (8): a group remembers how far it has read. By topic name up to version 9, by topic id from version 10."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.access.authorizer import topic as topic_resource
from oncelog.groups.commands import CommitOffsets, OffsetToCommit
from oncelog.groups.replies import OffsetsReply
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.cluster.topic import Topic


def handle_offset_commit(
    node: "Node", caller: "Caller", request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return _response(request, lambda *_: ErrorCode.GROUP_AUTHORIZATION_FAILED)
    topics = [_look_up(node, asked, version) for asked in request.topics]
    refused: dict[tuple[int, int], ErrorCode] = {}
    wanted: list[OffsetToCommit] = []
    for at, (asked, topic) in enumerate(zip(request.topics, topics, strict=True)):
        error = _topic_error(node, caller, topic, version)
        for partition in asked.partitions:
            index = partition.partition_index
            if topic is None or error is not ErrorCode.NONE:
                refused[at, index] = error
            elif not 0 <= index < len(topic.partitions):
                refused[at, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append(
                    OffsetToCommit(
                        TopicPartition(topic.name, index),
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                        topic.topic_id,
                    )
                )
    if not wanted:
        return _response(request, lambda at, index: refused[at, index])
    answer: Later[OffsetsReply] = Later()
    node.groups.run(
        CommitOffsets(
            token=answer,
            group_id=request.group_id,
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            offsets=tuple(wanted),
            retention_ms=request.retention_time_ms,
            error_if_no_group=ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION,
        )
    )

    def respond(reply: OffsetsReply) -> OffsetCommitResponse:
        failed = dict(reply.failed)

        def error_of(at: int, index: int) -> ErrorCode:
            topic = topics[at]
            if topic is None or (at, index) in refused:
                return refused[at, index]
            return reply.error or failed.get(TopicPartition(topic.name, index), ErrorCode.NONE)

        return _response(request, error_of)

    return answer.then(respond)


def _look_up(node: "Node", asked: OffsetCommitRequestTopic, version: int) -> "Topic | None":
    return node.cluster.by_id.get(asked.topic_id) if version >= 10 else node.cluster.topics.get(asked.name)


def _topic_error(node: "Node", caller: "Caller", topic: "Topic | None", version: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not node.access.may(caller.principal, Operation.READ, topic_resource(topic.name)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _response(request: OffsetCommitRequest, error_of: Callable[[int, int], ErrorCode]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error_of(at, partition.partition_index)
                    )
                    for partition in asked.partitions
                ],
            )
            for at, asked in enumerate(request.topics)
        ]
    )
