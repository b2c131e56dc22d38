"""DescribeLogDirs (35): sizes of logs on disk."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct


@struct
class DescribableLogDirTopic:
    topic: str = ""
    partitions: list[i32] = []


@request(key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest:
    # Null: all of them.
    topics: list[DescribableLogDirTopic] | None = []


@struct
class DescribeLogDirsPartition:
    partition_index: i32 = 0
    partition_size: i64 = 0
    offset_lag: i64 = 0
    # A copy on its way to another directory.
    is_future_key: bool = False


@struct
class DescribeLogDirsTopic:
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


@struct
class DescribeLogDirsResult:
    error_code: i16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    # KIP-827: of the disk.
    total_bytes: Annotated[i64, since(4)] = -1
    usable_bytes: Annotated[i64, since(4)] = -1
    # KIP-1066: takes no new partitions.
    is_cordoned: Annotated[bool, since(5)] = False


@response(to=DescribeLogDirsRequest)
class DescribeLogDirsResponse:
    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(3)] = 0
    results: list[DescribeLogDirsResult] = []
