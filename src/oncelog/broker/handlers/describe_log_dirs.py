"""DescribeLogDirs (35): how much room each partition takes on disk."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition


def handle_describe_log_dirs(
    node: "Node", caller: "Caller", request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResponse:
    if not node.access.may(caller.principal, Operation.DESCRIBE, CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.topics is None:
        asked = {name: set(node.partitions.of_topic(name)) for name in node.cluster.topics}
    else:
        asked = {topic.topic: set(topic.partitions) for topic in request.topics}
    topics = []
    for name, indexes in asked.items():
        # As Kafka: what is not here is left out.
        found = [(index, partition) for index, partition in node.partitions.of_topic(name).items() if index in indexes]
        if found:
            topics.append(DescribeLogDirsTopic(name=name, partitions=_sizes(found)))
    volume = os.statvfs(node.data_dir)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=str(node.data_dir.absolute()),
                topics=topics,
                total_bytes=volume.f_blocks * volume.f_frsize,
                usable_bytes=volume.f_bavail * volume.f_frsize,
            )
        ]
    )


def _sizes(partitions: "Iterable[tuple[int, Partition]]") -> list[DescribeLogDirsPartition]:
    return [
        DescribeLogDirsPartition(partition_index=index, partition_size=partition.log.size_bytes)
        for index, partition in partitions
    ]
