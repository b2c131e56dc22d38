"""FindCoordinator (10): which broker coordinates a group or a transactional id. On one node: this one.

The first time somebody asks, the internal topic behind it comes into being; whoever hears the answer can use it at once.
"""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group, transactional_id
from oncelog.cluster.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.cluster.topic import Topic


def handle_find_coordinator(
    node: "Node", caller: "Caller", request: FindCoordinatorRequest, version: int
) -> Later[FindCoordinatorResponse]:
    if version < 4:
        return _find(node, caller, request.key, request.key_type).then(_alone)
    found = [_find(node, caller, key, request.key_type) for key in request.coordinator_keys]
    return all_of(found).then(lambda coordinators: FindCoordinatorResponse(coordinators=coordinators))


def _find(node: "Node", caller: "Caller", key: str, key_type: int) -> Later[Coordinator]:
    match key_type:
        case 0:
            internal_topic, resource = CONSUMER_OFFSETS, group(key)
            denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
        case 1:
            internal_topic, resource = TRANSACTION_STATE, transactional_id(key)
            denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        case _:
            return completed(_nobody(key, ErrorCode.INVALID_REQUEST, f"no coordinator of type {key_type} here"))
    if not node.access.may(caller.principal, Operation.DESCRIBE, resource):
        return completed(_nobody(key, denied, "not allowed to describe it"))

    def answer(topic: "Topic | Refused") -> Coordinator:
        if isinstance(topic, Refused):
            return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{internal_topic}: {topic.why}")
        host, port = node.advertised
        return Coordinator(key=key, node_id=node.node_id, host=host, port=port)

    return node.cluster.ensure_internal_topic(internal_topic).then(answer)


def _nobody(key: str, code: ErrorCode, why: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=why)


def _alone(found: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # As Kafka: in these versions "no error" has a name.
        error_message=found.error_message or "NONE",
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )
