"""TxnOffsetCommit (28): store a group's position as part of a transaction."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    # KIP-320: the epoch of the last record read, for whoever resumes here.
    committed_leader_epoch: Annotated[i32, since(2)] = -1
    committed_metadata: str | None = ""


@struct
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


@request(key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitRequest:
    """From v5 it takes the offsets partition into the transaction by itself (KIP-890)."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    # KIP-447: fences a member that lost its partitions, without a producer per partition.
    generation_id: Annotated[i32, since(3)] = -1
    member_id: Annotated[str, since(3)] = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


@response(to=TxnOffsetCommitRequest)
class TxnOffsetCommitResponse:
    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
