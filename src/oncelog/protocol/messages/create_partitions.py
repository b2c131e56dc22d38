"""CreatePartitions (37): add partitions to topics."""

from oncelog.protocol.schema import i16, i32, request, response, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[i32] = []


@struct
class CreatePartitionsTopic:
    name: str = ""
    # The new total.
    count: i32 = 0
    # For the new partitions only.
    assignments: list[CreatePartitionsAssignment] | None = []


@request(key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: bool = False


@struct
class CreatePartitionsTopicResult:
    name: str = ""
    error_code: i16 = 0
    error_message: str | None = None


@response(to=CreatePartitionsRequest)
class CreatePartitionsResponse:
    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []
