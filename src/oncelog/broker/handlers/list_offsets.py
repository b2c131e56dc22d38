"""ListOffsets (2): where a partition begins and ends, and which record is the first at or after a time."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.model.error_code import ErrorCode
from oncelog.model.isolation_level import IsolationLevel
from oncelog.model.refused import Refused
from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

#: The version from which a client may ask for each of the special timestamps (KIP-734, KIP-405, KIP-1005, KIP-1023).
_SPECIAL_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle_list_offsets(
    node: "Node", caller: "Caller", request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    isolation = IsolationLevel.READ_COMMITTED if request.isolation_level == 1 else IsolationLevel.READ_UNCOMMITTED
    twice = _named_twice(request)
    topics: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        allowed = node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(topic.name))
        answers: list[ListOffsetsPartitionResponse] = []
        for asked in topic.partitions:
            if not allowed:
                answers.append(_refusal(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif (topic.name, asked.partition_index) in twice:
                answers.append(_refusal(asked, ErrorCode.INVALID_REQUEST))
            else:
                answers.append(_answer(node, topic.name, asked, isolation, version))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _named_twice(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            (twice if key in seen else seen).add(key)
    return twice


def _answer(
    node: "Node", name: str, asked: ListOffsetsPartition, isolation: IsolationLevel, version: int
) -> ListOffsetsPartitionResponse:
    if version < _SPECIAL_SINCE.get(asked.timestamp, 0):
        return _refusal(asked, ErrorCode.UNSUPPORTED_VERSION)
    partition = node.partitions.get(name, asked.partition_index)
    if isinstance(partition, Refused):
        return _refusal(asked, partition.code)
    stale = partition.check_epoch(asked.current_leader_epoch)
    if stale is not None:
        return _refusal(asked, stale.code)
    timestamp_ms, offset, epoch = _look_up(partition, asked.timestamp, isolation)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, timestamp=timestamp_ms, offset=offset, leader_epoch=epoch
    )


def _look_up(partition: "Partition", timestamp: int, isolation: IsolationLevel) -> tuple[int, int, int]:
    """The (timestamp, offset, leader epoch) that answers; -1 for what does not exist."""
    log = partition.log
    bound = log.last_stable_offset if isolation is IsolationLevel.READ_COMMITTED else log.high_watermark
    match timestamp:
        case -1:
            return -1, bound, partition.leader_epoch
        case -2 | -4:
            return -1, log.log_start_offset, log.epoch_of(log.log_start_offset)
        case -5 | -6:
            return -1, -1, -1  # nothing of this log is tiered
        case -3:
            found = log.max_timestamp_offset()
        case _:
            found = log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= bound:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def _refusal(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
    )
