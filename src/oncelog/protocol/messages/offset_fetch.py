"""OffsetFetch (9): read a group's position."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, i64, nullable, request, response, since, struct, until, uuid


@struct
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = []


@struct
class OffsetFetchRequestTopics:
    name: Annotated[str, until(9)] = ""
    # KIP-848: topics go by id from here on.
    topic_id: Annotated[uuid, since(10)] = NO_ID
    partition_indexes: list[i32] = []


@struct
class OffsetFetchRequestGroup:
    group_id: str = ""
    # KIP-848: checked if the group uses the new protocol.
    member_id: Annotated[str | None, since(9)] = None
    member_epoch: Annotated[i32, since(9)] = -1
    topics: list[OffsetFetchRequestTopics] | None = []


@request(key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest:
    group_id: Annotated[str, until(7)] = ""
    # Null: every topic the group has an offset for.
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(since=2)] = []
    # KIP-709: several groups at once.
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    # KIP-447: answer UNSTABLE_OFFSET_COMMIT rather than an offset that an open transaction is about to replace.
    require_stable: Annotated[bool, since(7)] = False


@struct
class OffsetFetchResponsePartition:
    partition_index: i32 = 0
    # -1: nothing committed.
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(5)] = -1
    metadata: str | None = ""
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []


@struct
class OffsetFetchResponsePartitions:
    partition_index: i32 = 0
    # -1: nothing committed.
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = -1
    metadata: str | None = ""
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopics:
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_ID
    partitions: list[OffsetFetchResponsePartitions] = []


@struct
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: i16 = 0


@response(to=OffsetFetchRequest)
class OffsetFetchResponse:
    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[i16, since(2), until(7)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
