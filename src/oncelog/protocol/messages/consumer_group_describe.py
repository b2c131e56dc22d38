"""ConsumerGroupDescribe (69): state and members of groups of the new protocol."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i8, i16, i32, request, response, since, struct, uuid


@request(key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeRequest:
    group_ids: list[str] = []
    include_authorized_operations: bool = False


@struct
class TopicPartitions:
    topic_id: uuid = NO_ID
    topic_name: str = ""
    partitions: list[i32] = []


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []


@struct
class Member:
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    # KIP-1099: 0 classic, 1 consumer.
    member_type: Annotated[i8, since(1)] = -1


@struct
class DescribedGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: i32 = -(2**31)


@response(to=ConsumerGroupDescribeRequest)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
