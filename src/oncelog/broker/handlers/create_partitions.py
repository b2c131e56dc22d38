"""CreatePartitions (37): more partitions for topics that are there."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.cluster.topics import MorePartitions, Results
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_create_partitions(
    node: "Node", caller: "Caller", request: CreatePartitionsRequest, version: int
) -> Later[CreatePartitionsResponse]:
    refused: Results = {}
    wanted: list[MorePartitions] = []
    for topic in request.topics:
        if node.access.may(caller.principal, Operation.ALTER, topic_resource(topic.name)):
            wanted.append(_more_partitions(topic))
        else:
            refused[topic.name] = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return node.cluster.create_partitions(wanted, validate_only=request.validate_only).then(
        lambda results: CreatePartitionsResponse(results=_results({**results, **refused}))
    )


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = [assigned.broker_ids for assigned in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)


def _results(results: Results) -> list[CreatePartitionsTopicResult]:
    return [
        CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=outcome.why)
        if isinstance(outcome, Refused)
        else CreatePartitionsTopicResult(name=name)
        for name, outcome in results.items()
    ]
