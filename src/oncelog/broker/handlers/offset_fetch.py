"""OffsetFetch (9): how far groups have read. One group up to version 7, several from version 8, by topic id from version 10."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.access.authorizer import topic as topic_resource
from oncelog.groups.reading import NO_OFFSET, FetchedOffset, read_offsets
from oncelog.groups.shard import Shard
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_id import TopicId
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_offset_fetch(
    node: "Node", caller: "Caller", request: OffsetFetchRequest, version: int
) -> Later[OffsetFetchResponse]:
    if version >= 8:
        groups = [_of_group(node, caller, asked, request.require_stable, version) for asked in request.groups]
        return all_of(groups).then(lambda fetched: OffsetFetchResponse(groups=fetched))
    asked = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )
    return _of_group(node, caller, asked, request.require_stable, version).then(
        lambda fetched: _alone(fetched, asked, version)
    )


def _of_group(
    node: "Node", caller: "Caller", asked: OffsetFetchRequestGroup, require_stable: bool, version: int
) -> Later[OffsetFetchResponseGroup]:
    group_id = asked.group_id
    if not node.access.may(caller.principal, Operation.DESCRIBE, group(group_id)):
        return completed(OffsetFetchResponseGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))

    def read(shard: Shard) -> OffsetFetchResponseGroup:
        if asked.topics is None:
            topics = _all_topics(
                node, caller, read_offsets(shard, group_id, None, require_stable=require_stable), version
            )
        else:
            topics = [
                _of_topic(node, caller, shard, group_id, topic, require_stable, version) for topic in asked.topics
            ]
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    return node.groups.view(group_id).then(read)


def _all_topics(
    node: "Node", caller: "Caller", fetched: list[FetchedOffset], version: int
) -> list[OffsetFetchResponseTopics]:
    topics = []
    by_topic = sorted(fetched, key=lambda one: one.topic_partition)
    for name, offsets in groupby(by_topic, key=lambda one: one.topic_partition.topic):
        topic = node.cluster.topics.get(name)
        may_see = node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(name))
        # By id, a topic that is gone has no name to be called by.
        if may_see and (version < 10 or topic is not None):
            topic_id = topic.topic_id if topic is not None and version >= 10 else bytes(16)
            topics.append(_topic(name if version < 10 else "", topic_id, offsets))
    return topics


def _of_topic(
    node: "Node",
    caller: "Caller",
    shard: Shard,
    group_id: str,
    asked: OffsetFetchRequestTopics,
    require_stable: bool,
    version: int,
) -> OffsetFetchResponseTopics:
    name = asked.name
    error = ErrorCode.NONE
    if version >= 10:
        topic = node.cluster.by_id.get(asked.topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            name = topic.name
    if error is ErrorCode.NONE and not node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(name)):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    positions = [TopicPartition(name, index) for index in asked.partition_indexes]
    if error is ErrorCode.NONE:
        fetched = read_offsets(shard, group_id, positions, require_stable=require_stable)
    else:
        fetched = [FetchedOffset(position, NO_OFFSET, error) for position in positions]
    return _topic(asked.name, asked.topic_id, fetched)


def _topic(name: str, topic_id: TopicId, offsets: Iterable[FetchedOffset]) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=position.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=error,
            )
            for position, committed, error in offsets
        ],
    )


def _alone(fetched: OffsetFetchResponseGroup, asked: OffsetFetchRequestGroup, version: int) -> OffsetFetchResponse:
    topics = fetched.topics
    if fetched.error_code and version < 2:
        # No place for the group's error: every partition bears it.
        topics = [
            _topic(
                topic.name,
                topic.topic_id,
                [
                    FetchedOffset(TopicPartition(topic.name, index), NO_OFFSET, ErrorCode(fetched.error_code))
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=fetched.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
