"""Writing transaction markers into the partitions this node leads (MISSION T10).

One control batch per (producer, partition). For `__consumer_offsets` the marker also decides over that producer's pending
offsets: the group coordinator publishes or drops them before the answer says that the marker is there.
"""

from typing import TYPE_CHECKING

from oncelog.cluster.topic import CONSUMER_OFFSETS
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.control import end_transaction_marker
from oncelog.transactions.markers import Marker
from oncelog.waiting.later import Later, all_of

if TYPE_CHECKING:
    from oncelog.broker.node import Node


def write_marker(node: "Node", marker: Marker, topic_partition: TopicPartition) -> "Later[ErrorCode]":
    """Append one marker; the answer comes once it is acknowledged and its offsets are decided."""
    found = node.partitions.get(topic_partition.topic, topic_partition.partition)
    if isinstance(found, Refused):
        answer: Later[ErrorCode] = Later()
        answer.complete(found.code)
        return answer
    batch = end_transaction_marker(
        marker.producer_id, marker.producer_epoch, marker.committed, marker.coordinator_epoch, node.clock.now_ms()
    )

    def appended(result: Appended | Refused) -> ErrorCode:
        if isinstance(result, Refused):
            return result.code
        if topic_partition.topic == CONSUMER_OFFSETS:
            node.groups.end_transaction(topic_partition.partition, marker.producer_id, committed=marker.committed)
        return ErrorCode.NONE

    return found.append_internal(batch, transaction_version=marker.transaction_version).then(appended)


def write_markers(node: "Node", markers: list[Marker]) -> "Later[dict[tuple[int, TopicPartition], ErrorCode]]":
    """Append the markers of one request; answers per (producer id, partition) when the last is in."""
    keys = [(marker.producer_id, partition) for marker in markers for partition in marker.partitions]
    answers = [write_marker(node, marker, partition) for marker in markers for partition in marker.partitions]
    return all_of(answers).then(lambda codes: dict(zip(keys, codes, strict=True)))
