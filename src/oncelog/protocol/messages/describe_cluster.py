"""DescribeCluster (60): the brokers, without the topics."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, request, response, since, struct


@request(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = False
    # KIP-919: 1 brokers, 2 controllers.
    endpoint_type: Annotated[i8, since(1)] = 1
    # KIP-1073: also those that are registered and take no traffic.
    include_fenced_brokers: Annotated[bool, since(2)] = False


@struct
class DescribeClusterBroker:
    broker_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


@response(to=DescribeClusterRequest)
class DescribeClusterResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: str = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -(2**31)
