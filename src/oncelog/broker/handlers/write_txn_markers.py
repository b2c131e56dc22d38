"""WriteTxnMarkers (27): a coordinator has a transaction ended in the partitions this broker leads (MISSION T10)."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.broker.marker_writer import write_markers
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from oncelog.transactions.markers import Marker
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_write_txn_markers(
    node: "Node", caller: "Caller", request: WriteTxnMarkersRequest, version: int
) -> WriteTxnMarkersResponse | Later[WriteTxnMarkersResponse]:
    if not node.access.may(caller.principal, Operation.CLUSTER_ACTION, CLUSTER):
        refused = {
            (marker.producer_id, TopicPartition(topic.name, index)): ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        }
        return _reply(request, refused)
    markers = [
        Marker(
            transactional_id="",
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            partitions=tuple(
                TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
            ),
        )
        for marker in request.markers
    ]
    answer: Later[WriteTxnMarkersResponse] = Later()
    write_markers(node, markers, lambda codes: answer.complete(_reply(request, codes)))
    return answer


def _reply(
    request: WriteTxnMarkersRequest, codes: dict[tuple[int, TopicPartition], ErrorCode]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=codes[marker.producer_id, TopicPartition(topic.name, index)],
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
