"""AddPartitionsToTxn (24): take partitions into a transaction before writing to them; for brokers also to ask whether they are.

All or nothing per transaction: if one partition cannot be added, the others answer OPERATION_NOT_ATTEMPTED.
"""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.transaction_versions import code_for_client
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from oncelog.transactions.adding import AddPartitions
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

BATCHED_SINCE = 4

Codes = dict[TopicPartition, ErrorCode]


def handle_add_partitions_to_txn(
    node: "Node", caller: "Caller", request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse | Later[AddPartitionsToTxnResponse]:
    if version < BATCHED_SINCE:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return _add(node, caller, transaction, version).then(
            lambda codes: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(codes))
        )
    if not node.access.may(caller.principal, Operation.CLUSTER_ACTION, CLUSTER):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    transactions = request.transactions
    return all_of([_add(node, caller, transaction, version) for transaction in transactions]).then(
        lambda results: AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=_by_topic(codes))
                for asked, codes in zip(transactions, results, strict=True)
            ]
        )
    )


def _add(node: "Node", caller: "Caller", asked: AddPartitionsToTxnTransaction, version: int) -> Later[Codes]:
    transactional_id = asked.transactional_id
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    if not node.access.may(caller.principal, Operation.WRITE, transactional_id_resource(transactional_id)):
        return completed(dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not transactional_id:
        return completed(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
    refused = {partition: code for partition in partitions if (code := _refused(node, caller, partition, version))}
    if refused:
        return completed(
            {partition: refused.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED) for partition in partitions}
        )
    producer = ProducerIdentity(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        return completed(
            {partition: _verified(node, transactional_id, producer, partition) for partition in partitions}
        )
    command = AddPartitions(transactional_id, producer, frozenset(partitions))

    def codes(result: ProducerIdentity | Refused) -> Codes:
        code = ErrorCode.NONE
        if isinstance(result, Refused):
            code = code_for_client(result.code, fenced_since=2, version=version)
        return dict.fromkeys(partitions, code)

    return node.transactions.run(command, caller).then(codes)


def _refused(node: "Node", caller: "Caller", partition: TopicPartition, version: int) -> ErrorCode | None:
    # From v4 on it is a broker that asks, for a partition it leads and a client it has authorised.
    if version < BATCHED_SINCE and not node.access.may(
        caller.principal, Operation.WRITE, topic_resource(partition.topic)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = node.partitions.get(partition.topic, partition.partition)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(found, Refused) else None


def _verified(node: "Node", transactional_id: str, producer: ProducerIdentity, partition: TopicPartition) -> ErrorCode:
    refused = node.transactions.verify(transactional_id, producer, partition)
    return ErrorCode.NONE if refused is None else refused.code


def _by_topic(codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    results: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), code in codes.items():
        results.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return [AddPartitionsToTxnTopicResult(name=topic, results_by_partition=of) for topic, of in results.items()]
