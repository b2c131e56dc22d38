"""DescribeTransactions (65): state of transactional ids at their coordinator."""

from oncelog.protocol.schema import i16, i32, i64, request, response, struct


@request(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest:
    transactional_ids: list[str] = []


@struct
class TopicData:
    topic: str = ""
    partitions: list[i32] = []


@struct
class TransactionState:
    error_code: i16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = []


@response(to=DescribeTransactionsRequest)
class DescribeTransactionsResponse:
    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
