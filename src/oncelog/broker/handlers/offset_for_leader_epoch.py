"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a reader finds out whether it had read a tail that is lost."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition


def handle_offset_for_leader_epoch(
    node: "Node", caller: "Caller", request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.topics:
        if node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(topic.topic)):
            answers = [_answer(node, topic.topic, asked) for asked in topic.partitions]
        else:
            answers = [_refusal(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions]
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _answer(node: "Node", name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = node.partitions.get(name, asked.partition)
    if isinstance(partition, Refused):
        return _refusal(asked, partition.code)
    stale = partition.check_epoch(asked.current_leader_epoch)
    if stale is not None:
        return _refusal(asked, stale.code)
    epoch, end_offset = _end_of(partition, asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


def _end_of(partition: "Partition", epoch: int) -> tuple[int, int]:
    log = partition.log
    if epoch == partition.leader_epoch:
        # The running epoch ends where the log ends, also while nothing has been written under it yet.
        return epoch, log.log_end_offset
    if log.latest_epoch < epoch < partition.leader_epoch and epoch >= 0:
        # An epoch that wrote nothing ended with the last one that did.
        return (log.latest_epoch if log.latest_epoch >= 0 else epoch), log.log_end_offset
    return log.end_offset_for_epoch(epoch)


def _refusal(asked: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=asked.partition)
