"""WriteTxnMarkers (27): the coordinator tells leaders to end a transaction in their logs."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, i64, request, response, since, struct


@struct
class WritableTxnMarkerTopic:
    name: str = ""
    partition_indexes: list[i32] = []


@struct
class WritableTxnMarker:
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    # True: committed.
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    # A marker from a coordinator that has been replaced is refused.
    coordinator_epoch: i32 = 0
    # KIP-1228: at 2 a marker's epoch lies above that of the records it ends.
    transaction_version: Annotated[i8, since(2)] = 0


@request(key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = []


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class WritableTxnMarkerTopicResult:
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


@struct
class WritableTxnMarkerResult:
    producer_id: i64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@response(to=WriteTxnMarkersRequest)
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = []
