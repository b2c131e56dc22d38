"""ListOffsets (2): the offset at a timestamp, or at an end of the log."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, i64, request, response, since, struct


@struct
class ListOffsetsPartition:
    partition_index: i32 = 0
    current_leader_epoch: Annotated[i32, since(4)] = -1
    timestamp: i64 = 0


@struct
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


@request(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest:
    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[i32, since(10)] = 0


@struct
class ListOffsetsPartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    timestamp: i64 = -1
    offset: i64 = -1
    leader_epoch: Annotated[i32, since(4)] = -1


@struct
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@response(to=ListOffsetsRequest)
class ListOffsetsResponse:
    throttle_time_ms: Annotated[i32, since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
