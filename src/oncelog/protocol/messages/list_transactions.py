"""ListTransactions (66): the transactional ids a coordinator holds."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since, struct


@request(key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsRequest:
    state_filters: list[str] = []
    producer_id_filters: list[i64] = []
    # KIP-994: open for at least this many milliseconds.
    duration_filter: Annotated[i64, since(1)] = -1
    # KIP-1152: a regular expression.
    transactional_id_pattern: Annotated[str | None, since(2)] = None


@struct
class TransactionState:
    transactional_id: str = ""
    producer_id: i64 = 0
    transaction_state: str = ""


@response(to=ListTransactionsRequest)
class ListTransactionsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
