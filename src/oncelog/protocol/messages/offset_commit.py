"""OffsetCommit (8): store a group's position."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, i64, request, response, since, struct, until, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(6)] = -1
    committed_metadata: str | None = ""


@struct
class OffsetCommitRequestTopic:
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_ID
    partitions: list[OffsetCommitRequestPartition] = []


@request(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest:
    group_id: str = ""
    generation_id_or_member_epoch: i32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[i64, until(4)] = -1
    topics: list[OffsetCommitRequestTopic] = []


@struct
class OffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class OffsetCommitResponseTopic:
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_ID
    partitions: list[OffsetCommitResponsePartition] = []


@response(to=OffsetCommitRequest)
class OffsetCommitResponse:
    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
