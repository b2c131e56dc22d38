"""DeleteRecords (21): the start of a log moves forward; what lies before it can no longer be read."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.cluster.topic import INTERNAL_TOPICS
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

_NO_OFFSET = -1


def handle_delete_records(
    node: "Node", caller: "Caller", request: DeleteRecordsRequest, version: int
) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        if node.access.may(caller.principal, Operation.DELETE, topic_resource(topic.name)):
            results = [_result(asked, _delete(node, topic.name, asked)) for asked in topic.partitions]
        else:
            refused = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not allowed")
            results = [_result(asked, refused) for asked in topic.partitions]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    # What was deleted must not come back with a crash, though its segments may still be there.
    node.partitions.checkpoint()
    return DeleteRecordsResponse(topics=topics)


def _delete(node: "Node", name: str, asked: DeleteRecordsPartition) -> int | Refused:
    """The offset the log starts with afterwards."""
    partition = node.partitions.get(name, asked.partition_index)
    if isinstance(partition, Refused):
        return partition
    if name in INTERNAL_TOPICS:
        return Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is the broker's own")
    return partition.log.delete_records_before(asked.offset)


def _result(asked: DeleteRecordsPartition, outcome: int | Refused) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, Refused):
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=_NO_OFFSET, error_code=outcome.code
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=outcome)
