"""ConsumerGroupHeartbeat (68): membership and assignment in the new group protocol."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, request, response, since, struct, uuid


@struct
class TopicPartitions:
    topic_id: uuid = NO_ID
    partitions: list[i32] = []


@request(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest:
    """KIP-848. A null field is unchanged since the last heartbeat. From v1 the client makes its own member id (KIP-1082)."""

    group_id: str = ""
    member_id: str = ""
    # 0 joins, -1 leaves, -2 leaves for a while as a static member.
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: Annotated[str | None, since(1)] = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []


@response(to=ConsumerGroupHeartbeatRequest)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    # Null: unchanged.
    assignment: Assignment | None = None
