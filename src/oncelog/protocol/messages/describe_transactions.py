"""DescribeTransactions (65): state of transactional ids at their coordinator."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, struct, tagged


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
    # In a Prepare state only those whose marker is not written yet.
    topics: list[TopicData] = []
    # Oncelog's own, under numbers (OWN_TAGS_FROM) Kafka is far from: who sent the last request that changed the transaction.
    client_id: Annotated[str, tagged(10_000, since=0)] = ""
    client_host: Annotated[str, tagged(10_001, since=0)] = ""


@response(to=DescribeTransactionsRequest)
class DescribeTransactionsResponse:
    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
