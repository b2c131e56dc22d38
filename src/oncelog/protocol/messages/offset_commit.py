"""OffsetCommit (8): store a group's position."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, i64, request, response, since, struct, until, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    # KIP-320: the epoch of the last record read, for whoever resumes here.
    committed_leader_epoch: Annotated[i32, since(6)] = -1
    committed_metadata: str | None = ""


@struct
class OffsetCommitRequestTopic:
    name: Annotated[str, until(9)] = ""
    # KIP-848: topics go by id from here on.
    topic_id: Annotated[uuid, since(10)] = NO_ID
    partitions: list[OffsetCommitRequestPartition] = []


@request(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest:
    group_id: str = ""
    # -1 with an empty member id: a commit from outside the group.
    generation_id_or_member_epoch: i32 = -1
    member_id: str = ""
    # KIP-345: static membership.
    group_instance_id: Annotated[str | None, since(7)] = None
    # KIP-211: since v5 the broker alone decides how long offsets are kept.
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
