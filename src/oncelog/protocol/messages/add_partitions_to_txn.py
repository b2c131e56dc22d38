"""AddPartitionsToTxn (24): take partitions into a transaction before writing to them."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct, until


@struct
class AddPartitionsToTxnTopic:
    name: str = ""
    partitions: list[i32] = []


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    # Do not add: only say whether the partitions are in the transaction.
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []


@request(key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest:
    """Clients speak v0 to v3; from v4 on brokers ask about several transactions at once (KIP-890)."""

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = []
    v3_and_below_transactional_id: Annotated[str, until(3)] = ""
    v3_and_below_producer_id: Annotated[i64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[i16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = []


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: i32 = 0
    partition_error_code: i16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


@response(to=AddPartitionsToTxnRequest)
class AddPartitionsToTxnResponse:
    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(4)] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []
