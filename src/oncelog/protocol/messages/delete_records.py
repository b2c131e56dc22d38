"""DeleteRecords (21): move the start of a log forward."""

from oncelog.protocol.schema import i16, i32, i64, request, response, struct


@struct
class DeleteRecordsPartition:
    partition_index: i32 = 0
    # The first offset to keep; -1: delete up to the high watermark.
    offset: i64 = 0


@struct
class DeleteRecordsTopic:
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


@request(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: i32 = 0


@struct
class DeleteRecordsPartitionResult:
    partition_index: i32 = 0
    low_watermark: i64 = 0
    error_code: i16 = 0


@struct
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@response(to=DeleteRecordsRequest)
class DeleteRecordsResponse:
    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
