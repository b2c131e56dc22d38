"""ListOffsets (2): the offset at a timestamp, or at an end of the log."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, i64, request, response, since, struct


@struct
class ListOffsetsPartition:
    partition_index: i32 = 0
    # KIP-320: fences a client or a leader with stale metadata.
    current_leader_epoch: Annotated[i32, since(4)] = -1
    # Negative numbers are places: -1 latest, -2 earliest, -3 the largest timestamp (v7, KIP-734);
    # -4, -5 and -6 (v8, v9, v11) are about remote storage.
    timestamp: i64 = 0


@struct
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


@request(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest:
    # -1: a consumer.
    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    # KIP-1075: how long the broker may look in remote storage.
    timeout_ms: Annotated[i32, since(10)] = 0


@struct
class ListOffsetsPartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    # -1 with offset -1: no record is that young.
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
