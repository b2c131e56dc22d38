"""Metadata (3): brokers, topics, partitions and their leaders."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, nullable, request, response, since, struct, until, uuid


@struct
class MetadataRequestTopic:
    topic_id: Annotated[uuid, since(10)] = NO_ID
    # May be null, with an id instead, from v12 in truth: v10 and v11 had the field, no broker answered it.
    name: Annotated[str | None, nullable(since=10)] = ""


@request(key=3, versions=(0, 13), flexible_since=9)
class MetadataRequest:
    # All topics: an empty list in v0, null from v1 on (where an empty list is no topic).
    topics: Annotated[list[MetadataRequestTopic] | None, nullable(since=1)] = []
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    # KIP-430; DescribeCluster answers this from v11 on (KIP-700).
    include_cluster_authorized_operations: Annotated[bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


@struct
class MetadataResponseBroker:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: Annotated[str | None, since(1)] = None


@struct
class MetadataResponsePartition:
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: Annotated[i32, since(7)] = -1
    replica_nodes: list[i32] = []
    isr_nodes: list[i32] = []
    offline_replicas: Annotated[list[i32], since(5)] = []


@struct
class MetadataResponseTopic:
    error_code: i16 = 0
    # Null if the topic was asked for by an id that nobody knows.
    name: Annotated[str | None, nullable(since=12)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_ID
    is_internal: Annotated[bool, since(1)] = False
    partitions: list[MetadataResponsePartition] = []
    # A bit per operation; the default means: not asked for.
    topic_authorized_operations: Annotated[i32, since(8)] = -(2**31)


@response(to=MetadataRequest)
class MetadataResponse:
    throttle_time_ms: Annotated[i32, since(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, since(2)] = None
    controller_id: Annotated[i32, since(1)] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[i32, since(8), until(10)] = -(2**31)
    # KIP-1102: REBOOTSTRAP_REQUIRED sends the client back to its bootstrap servers.
    error_code: Annotated[i16, since(13)] = 0
