"""OffsetDelete (47): a group forgets how far it has read, in topics it does not read any more."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.access.authorizer import topic as topic_resource
from oncelog.groups.commands import DeleteOffsets
from oncelog.groups.replies import OffsetsReply
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_offset_delete(
    node: "Node", caller: "Caller", request: OffsetDeleteRequest, version: int
) -> OffsetDeleteResponse | Later[OffsetDeleteResponse]:
    if not node.access.may(caller.principal, Operation.DELETE, group(request.group_id)):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: dict[TopicPartition, ErrorCode] = {}
    wanted: list[TopicPartition] = []
    for asked in request.topics:
        for partition in asked.partitions:
            position = TopicPartition(asked.name, partition.partition_index)
            error = _error(node, caller, position)
            if error is ErrorCode.NONE:
                wanted.append(position)
            else:
                refused[position] = error
    answer: Later[OffsetsReply] = Later()
    node.groups.run(DeleteOffsets(answer, request.group_id, tuple(wanted)))
    return answer.then(lambda reply: _response(request, reply, refused))


def _error(node: "Node", caller: "Caller", position: TopicPartition) -> ErrorCode:
    if not node.access.may(caller.principal, Operation.READ, topic_resource(position.topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = node.cluster.topics.get(position.topic)
    if topic is None or not 0 <= position.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _response(
    request: OffsetDeleteRequest, reply: OffsetsReply, refused: dict[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    if reply.error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=reply.error)
    errors = {**refused, **dict(reply.failed)}
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=asked.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(TopicPartition(asked.name, partition.partition_index), ErrorCode.NONE),
                    )
                    for partition in asked.partitions
                ],
            )
            for asked in request.topics
        ]
    )
