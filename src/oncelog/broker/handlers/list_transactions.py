"""ListTransactions (66): the transactional ids this coordinator holds, by state, producer, age or pattern."""

import re
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from oncelog.transactions.states import State, state_named

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_list_transactions(
    node: "Node", caller: "Caller", request: ListTransactionsRequest, version: int
) -> ListTransactionsResponse:
    states = {state for name in request.state_filters if (state := state_named(name)) is not None}
    unknown = [name for name in request.state_filters if state_named(name) is None]
    if request.state_filters and not states:
        return ListTransactionsResponse(unknown_state_filters=unknown)
    try:
        pattern = re.compile(request.transactional_id_pattern or "")
    except re.error:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    producers = set(request.producer_id_filters)
    now_ms = node.clock.now_ms()
    found = [
        TransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.public_name,
        )
        for transaction in node.transactions
        if transaction.state is not State.DEAD
        and (not states or transaction.state in states)
        and (not producers or transaction.producer_id in producers)
        and (request.duration_filter < 0 or _runs_for(transaction.start_ms, now_ms) > request.duration_filter)
        and (not request.transactional_id_pattern or pattern.fullmatch(transaction.transactional_id))
        and node.access.may(
            caller.principal, Operation.DESCRIBE, transactional_id_resource(transaction.transactional_id)
        )
    ]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def _runs_for(start_ms: int, now_ms: int) -> int:
    return now_ms - start_ms if start_ms >= 0 else -1
