"""OffsetDelete (47): forget a group's positions in topics it does not read any more."""

from oncelog.protocol.schema import i16, i32, request, response, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: i32 = 0


@struct
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@request(key=47, versions=(0, 0), flexible_since=None)
class OffsetDeleteRequest:
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


@struct
class OffsetDeleteResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@response(to=OffsetDeleteRequest)
class OffsetDeleteResponse:
    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
