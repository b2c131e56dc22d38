"""DescribeCluster (60): the brokers, without the topics."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, NOT_ASKED, authorized_operations
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

_BROKERS, _CONTROLLERS = 1, 2


def handle_describe_cluster(
    node: "Node", caller: "Caller", request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    host, port = node.advertised
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = authorized_operations(node.access, caller.principal, CLUSTER)
    return DescribeClusterResponse(
        cluster_id=node.cluster.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(broker_id=node.node_id, host=host, port=port, rack=node.config.broker_rack)],
        cluster_authorized_operations=operations,
    )
