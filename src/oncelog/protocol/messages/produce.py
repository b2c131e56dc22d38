"""Produce (0): append record batches to partitions."""

from typing import Annotated

from oncelog.protocol.schema import (
    NO_ID,
    i16,
    i32,
    i64,
    record_bytes,
    request,
    response,
    since,
    struct,
    tagged,
    until,
    uuid,
)


@struct
class PartitionProduceData:
    index: i32 = 0
    records: record_bytes = None


@struct
class TopicProduceData:
    name: Annotated[str, until(12)] = ""
    # KIP-516: topics go by id from here on.
    topic_id: Annotated[uuid, since(13)] = NO_ID
    partition_data: list[PartitionProduceData] = []


@request(key=0, versions=(3, 13), flexible_since=9)
class ProduceRequest:
    """From v12 a transactional produce takes its partitions into the transaction by itself (KIP-890)."""

    transactional_id: str | None = None
    # 0: no answer at all; 1: the leader has it; -1: every in-sync replica has it.
    acks: i16 = 0
    timeout_ms: i32 = 0
    topic_data: list[TopicProduceData] = []


@struct
class BatchIndexAndErrorMessage:
    batch_index: i32 = 0
    batch_index_error_message: str | None = None


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class PartitionProduceResponse:
    index: i32 = 0
    error_code: i16 = 0
    base_offset: i64 = 0
    # -1 unless the topic stamps records when they are appended.
    log_append_time_ms: i64 = -1
    # Tells a producer whether a sequence is unknown because its records were deleted, or because they were lost.
    log_start_offset: Annotated[i64, since(5)] = -1
    # KIP-467: which records made the broker refuse the whole batch.
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8)] = []
    error_message: Annotated[str | None, since(8)] = None
    # KIP-951: where to go instead, so that the client need not ask for metadata first.
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(0, since=10)] = None


@struct
class TopicProduceResponse:
    name: Annotated[str, until(12)] = ""
    # KIP-516: topics go by id from here on.
    topic_id: Annotated[uuid, since(13)] = NO_ID
    partition_responses: list[PartitionProduceResponse] = []


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@response(to=ProduceRequest)
class ProduceResponse:
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    # KIP-951: addresses of the leaders named above.
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=10)] = []
