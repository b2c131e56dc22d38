"""CreateTopics (19): new topics, each created or refused on its own."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.broker.config_view import topic_config_views
from oncelog.cluster.topic import Topic
from oncelog.cluster.topics import NewTopic, Results
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

#: Kafka's own log of metadata: a topic of this name would look like it.
_RESERVED = "__cluster_metadata"


def handle_create_topics(
    node: "Node", caller: "Caller", request: CreateTopicsRequest, version: int
) -> Later[CreateTopicsResponse]:
    refused: Results = {}
    wanted: list[NewTopic] = []
    for topic in request.topics:
        if not _may_create(node, caller, topic.name):
            refused[topic.name] = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
        elif topic.name == _RESERVED:
            refused[topic.name] = Refused(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {_RESERVED} is prohibited."
            )
        else:
            wanted.append(_new_topic(node, topic))
    return node.cluster.create_topics(wanted, validate_only=request.validate_only).then(
        lambda results: CreateTopicsResponse(
            topics=[_result(node, caller, name, outcome) for name, outcome in {**results, **refused}.items()]
        )
    )


def _new_topic(node: "Node", topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        topic_id=node.cluster.new_topic_id(),
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def _result(node: "Node", caller: "Caller", name: str, outcome: Topic | Refused) -> CreatableTopicResult:
    if isinstance(outcome, Refused):
        return CreatableTopicResult(name=name, error_code=outcome.code, error_message=outcome.why)
    if not node.access.may(caller.principal, Operation.DESCRIBE_CONFIGS, topic_resource(name)):
        return CreatableTopicResult(
            name=name,
            topic_id=outcome.topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_message=None,
        num_partitions=len(outcome.partitions),
        replication_factor=outcome.replication_factor,
        configs=[
            CreatableTopicConfigs(name=view.name, value=view.value, config_source=view.source)
            for view in topic_config_views(node, outcome)
        ],
    )


def _may_create(node: "Node", caller: "Caller", name: str) -> bool:
    access, principal = node.access, caller.principal
    return access.may(principal, Operation.CREATE, CLUSTER) or access.may(
        principal, Operation.CREATE, topic_resource(name)
    )
