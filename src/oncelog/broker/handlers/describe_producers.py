"""DescribeProducers (61): the producers a partition's leader remembers, and where their open transactions began."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_describe_producers(
    node: "Node", caller: "Caller", request: DescribeProducersRequest, version: int
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        allowed = node.access.may(caller.principal, Operation.READ, topic_resource(topic.name))
        topics.append(
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(node, topic.name, index)
                    if allowed
                    else PartitionResponse(partition_index=index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    for index in topic.partition_indexes
                ],
            )
        )
    return DescribeProducersResponse(topics=topics)


def _describe(node: "Node", name: str, index: int) -> PartitionResponse:
    partition = node.partitions.get(name, index)
    if isinstance(partition, Refused):
        return PartitionResponse(partition_index=index, error_code=partition.code, error_message=partition.why)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in partition.log.active_producers
        ],
    )
