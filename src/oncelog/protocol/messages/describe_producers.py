"""DescribeProducers (61): the producers a partition's leader remembers."""

from oncelog.protocol.schema import i16, i32, i64, request, response, struct


@struct
class TopicRequest:
    name: str = ""
    partition_indexes: list[i32] = []


@request(key=61, versions=(0, 0), flexible_since=0)
class DescribeProducersRequest:
    topics: list[TopicRequest] = []


@struct
class ProducerState:
    producer_id: i64 = 0
    producer_epoch: i32 = 0
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    coordinator_epoch: i32 = 0
    # -1: no open transaction.
    current_txn_start_offset: i64 = -1


@struct
class PartitionResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []


@struct
class TopicResponse:
    name: str = ""
    partitions: list[PartitionResponse] = []


@response(to=DescribeProducersRequest)
class DescribeProducersResponse:
    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = []
