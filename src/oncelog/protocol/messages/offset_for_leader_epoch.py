"""OffsetForLeaderEpoch (23): where a leader epoch ended, to find where two logs part."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct


@struct
class OffsetForLeaderPartition:
    partition: i32 = 0
    # KIP-320: fences a client or a leader with stale metadata.
    current_leader_epoch: i32 = -1
    leader_epoch: i32 = 0


@struct
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


@request(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest:
    # -2: a tool that may look past the high watermark; -1: a consumer.
    replica_id: Annotated[i32, since(3)] = -2
    topics: list[OffsetForLeaderTopic] = []


@struct
class EpochEndOffset:
    error_code: i16 = 0
    partition: i32 = 0
    # The largest epoch not above the one asked for; -1 if there is none.
    leader_epoch: i32 = -1
    # Exclusive.
    end_offset: i64 = -1


@struct
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: list[EpochEndOffset] = []


@response(to=OffsetForLeaderEpochRequest)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
