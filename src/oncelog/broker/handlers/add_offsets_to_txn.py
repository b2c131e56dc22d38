"""AddOffsetsToTxn (25): take a group's partition of `__consumer_offsets` into the transaction (MISSION I11)."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.transaction_versions import code_for_client
from oncelog.cluster.topic import CONSUMER_OFFSETS
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from oncelog.transactions.adding import AddPartitions
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_add_offsets_to_txn(
    node: "Node", caller: "Caller", request: AddOffsetsToTxnRequest, version: int
) -> AddOffsetsToTxnResponse | Later[AddOffsetsToTxnResponse]:
    transactional_id = request.transactional_id
    if not node.access.may(caller.principal, Operation.WRITE, transactional_id_resource(transactional_id)):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)

    def add(created: object) -> Later[AddOffsetsToTxnResponse] | AddOffsetsToTxnResponse:
        if isinstance(created, Refused):
            return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        offsets = TopicPartition(CONSUMER_OFFSETS, node.groups.partition_of(request.group_id))
        command = AddPartitions(transactional_id, producer, frozenset((offsets,)))
        return node.transactions.run(command, caller).then(lambda result: _reply(result, version))

    # Markers go only to partitions that exist, so the topic is there before the transaction names it.
    return node.cluster.ensure_internal_topic(CONSUMER_OFFSETS).then(add)


def _reply(result: ProducerIdentity | Refused, version: int) -> AddOffsetsToTxnResponse:
    if isinstance(result, Refused):
        return AddOffsetsToTxnResponse(error_code=code_for_client(result.code, fenced_since=2, version=version))
    return AddOffsetsToTxnResponse()
