"""What configs belong to: a topic, this broker, all brokers; and the kinds that Kafka has and that hold nothing here."""

from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.access.authorizer import group as group_resource
from oncelog.access.authorizer import topic as topic_resource
from oncelog.cluster.state import ALL_BROKERS
from oncelog.cluster.topic import Topic
from oncelog.cluster.topic_names import check_topic_name
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


class ConfigResourceType(IntEnum):
    """Numbers as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


#: A topic; a broker's id in decimal or ALL_BROKERS; None for a kind without configs here.
ConfigResource: TypeAlias = Topic | str | None


def find_resource(
    node: "Node", caller: "Caller", operation: Operation, resource_type: int, name: str
) -> ConfigResource | Refused:
    match resource_type:
        case ConfigResourceType.TOPIC:
            return _find_topic(node, caller, operation, name)
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            if not node.access.may(caller.principal, operation, CLUSTER):
                return Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
            return _find_broker(node, resource_type, name)
        case ConfigResourceType.GROUP:
            if not node.access.may(caller.principal, operation, group_resource(name)):
                return Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
            return None if name else Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        case ConfigResourceType.CLIENT_METRICS:
            if not node.access.may(caller.principal, operation, CLUSTER):
                return Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
            if name:
                return None
            return Refused(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        case _:
            return Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _find_topic(node: "Node", caller: "Caller", operation: Operation, name: str) -> Topic | Refused:
    if not node.access.may(caller.principal, operation, topic_resource(name)):
        return Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    topic = node.cluster.topic(name)
    if topic is not None:
        return topic
    missing = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return check_topic_name(name) or missing


def _find_broker(node: "Node", resource_type: int, name: str) -> ConfigResource | Refused:
    is_logger = resource_type == ConfigResourceType.BROKER_LOGGER
    if name == ALL_BROKERS and not is_logger:
        return ALL_BROKERS
    if name == str(node.node_id):
        return None if is_logger else name
    if not name.removeprefix("-").isdecimal():
        return Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return Refused(
        ErrorCode.INVALID_REQUEST,
        f"Unexpected broker id, expected {node.node_id} or empty string, but received {name}",
    )
