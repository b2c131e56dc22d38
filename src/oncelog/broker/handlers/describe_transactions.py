"""DescribeTransactions (65): the state of transactional ids at their coordinator."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_describe_transactions(
    node: "Node", caller: "Caller", request: DescribeTransactionsRequest, version: int
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(node, caller, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(node: "Node", caller: "Caller", transactional_id: str) -> TransactionState:
    if not node.access.may(caller.principal, Operation.DESCRIBE, transactional_id_resource(transactional_id)):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return TransactionState(error_code=code, transactional_id=transactional_id)
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
    transaction = node.transactions.get(transactional_id)
    if transaction is None:
        return TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id)
    partitions_in_it = transaction.partitions
    if transaction.is_prepared:
        partitions_in_it = node.transactions.partitions_without_marker(transactional_id)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions_in_it):
        # Whoever may not know of a topic is not told that somebody writes to it.
        if node.access.may(caller.principal, Operation.DESCRIBE, topic_resource(topic)):
            by_topic.setdefault(topic, []).append(partition)
    last = node.transactions.last_caller(transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.public_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        client_id="" if last is None else last.client_id,
        client_host="" if last is None else last.host,
    )
