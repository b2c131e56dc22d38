"""Metadata (3): which brokers there are, which topics, and who leads their partitions.

Every client asks this first and often. A topic that is created by asking is answered as created, not with an error to come
back with: the asker's first produce finds it there.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from oncelog.access.authorizer import CLUSTER, NOT_ASKED, Operation, authorized_operations
from oncelog.access.authorizer import topic as topic_resource
from oncelog.cluster.topic import INTERNAL_TOPICS, NO_LEADER, Topic
from oncelog.cluster.topic_names import check_topic_name
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import NO_TOPIC_ID
from oncelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from oncelog.waiting.later import Later, all_of

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

#: Below this version clients could write topic ids, but no broker has ever looked at them.
_IDS_SINCE = 12

_UNKNOWN = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
_NOT_ALLOWED = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not allowed")


def handle_metadata(
    node: "Node", caller: "Caller", request: MetadataRequest, version: int
) -> MetadataResponse | Later[MetadataResponse]:
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        return _response(node, caller, request, _all_topics(node, caller))
    if version < _IDS_SINCE and any(topic.name is None or topic.topic_id != NO_TOPIC_ID for topic in asked):
        return _ids_not_understood(asked)
    missing = _to_create(node, request, asked)
    if not missing:
        return _response(node, caller, request, _asked_topics(node, caller, asked, {}))
    return all_of([_create(node, caller, name) for name in missing]).then(
        lambda created: _response(
            node, caller, request, _asked_topics(node, caller, asked, dict(zip(missing, created, strict=True)))
        )
    )


def _to_create(node: "Node", request: MetadataRequest, asked: list[MetadataRequestTopic]) -> list[str]:
    if not (request.allow_auto_topic_creation and node.config.auto_create_topics_enable):
        return []
    topics = node.cluster.topics
    names = (topic.name for topic in asked if topic.topic_id == NO_TOPIC_ID)
    return list(dict.fromkeys(name for name in names if name is not None and name not in topics))


def _create(node: "Node", caller: "Caller", name: str) -> "Later[Topic | Refused]":
    refused: Later[Topic | Refused] = Later()
    bad_name = check_topic_name(name)
    if not _may_describe(node, caller, name) or not _may_create(node, caller, name):
        refused.complete(_NOT_ALLOWED)
        return refused
    if bad_name is not None:
        refused.complete(bad_name)
        return refused
    return node.cluster.auto_create(name)


def _all_topics(node: "Node", caller: "Caller") -> list[MetadataResponseTopic]:
    described = _descriptions(node)
    return [
        described_topic(described, topic)
        for topic in node.cluster.topics.values()
        if _may_describe(node, caller, topic.name)
    ]


def _asked_topics(
    node: "Node", caller: "Caller", asked: Iterable[MetadataRequestTopic], created: Mapping[str, Topic | Refused]
) -> list[MetadataResponseTopic]:
    described = _descriptions(node)
    answers: dict[str | bytes, MetadataResponseTopic] = {}  # as Kafka: a topic that is asked for twice is answered once
    for wanted in asked:
        if wanted.topic_id != NO_TOPIC_ID or wanted.name is None:
            topic = node.cluster.topic_by_id(wanted.topic_id)
            if topic is None or not _may_describe(node, caller, topic.name):
                code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                answers[wanted.topic_id] = MetadataResponseTopic(error_code=code, name=None, topic_id=wanted.topic_id)
            else:
                answers[topic.name] = described_topic(described, topic)
        else:
            found = _look_up(node, caller, wanted.name, created)
            if isinstance(found, Refused):
                internal = wanted.name in INTERNAL_TOPICS
                answers[wanted.name] = MetadataResponseTopic(
                    error_code=found.code, name=wanted.name, is_internal=internal
                )
            else:
                answers[wanted.name] = described_topic(described, found)
    return list(answers.values())


def _look_up(node: "Node", caller: "Caller", name: str, created: Mapping[str, Topic | Refused]) -> Topic | Refused:
    if not _may_describe(node, caller, name):
        return _NOT_ALLOWED
    topic = node.cluster.topic(name)
    if topic is not None:
        return topic
    refused = created.get(name)
    if isinstance(refused, Refused):
        return refused
    return check_topic_name(name) or _UNKNOWN


def _response(
    node: "Node", caller: "Caller", request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    host, port = node.advertised
    if request.include_topic_authorized_operations:
        topics = [_with_operations(node, caller, topic) for topic in topics]
    cluster_operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        cluster_operations = authorized_operations(node.access, caller.principal, CLUSTER)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node.node_id, host=host, port=port, rack=node.config.broker_rack)],
        cluster_id=node.cluster.cluster_id,
        controller_id=node.node_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations,
    )


def _with_operations(node: "Node", caller: "Caller", topic: MetadataResponseTopic) -> MetadataResponseTopic:
    if topic.error_code or topic.name is None:
        return topic
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=topic.partitions,
        topic_authorized_operations=authorized_operations(node.access, caller.principal, topic_resource(topic.name)),
    )


def _ids_not_understood(asked: Iterable[MetadataRequestTopic]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in asked
        ]
    )


def _may_describe(node: "Node", caller: "Caller", name: str) -> bool:
    return node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(name))


def _may_create(node: "Node", caller: "Caller", name: str) -> bool:
    access, principal = node.access, caller.principal
    return access.may(principal, Operation.CREATE, CLUSTER) or access.may(
        principal, Operation.CREATE, topic_resource(name)
    )


# What a topic looks like in an answer is kept until the topic changes: with hundreds of topics, making it anew for every
# client that asks for all of them would be most of the work.

_Descriptions = dict[str, tuple[Topic, MetadataResponseTopic]]
_kept: "WeakKeyDictionary[Node, _Descriptions]" = WeakKeyDictionary()


def _descriptions(node: "Node") -> _Descriptions:
    described = _kept.get(node)
    # Deleted topics are forgotten when they outnumber those that are left.
    if described is None or len(described) > 2 * len(node.cluster.topics) + 100:
        described = _kept[node] = {}
    return described


def described_topic(described: _Descriptions, topic: Topic) -> MetadataResponseTopic:
    known = described.get(topic.name)
    if known is not None and known[0] is topic:
        return known[1]
    answer = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE,
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
            )
            for index, state in enumerate(topic.partitions)
        ],
    )
    described[topic.name] = (topic, answer)
    return answer
