"""InitProducerId (22): an identity for a producer that numbers its batches.

Without a transactional id any broker answers from its block of ids. With one, the transaction coordinator does.
"""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.transaction_versions import code_for_client
from oncelog.cluster.topic import TRANSACTION_STATE
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from oncelog.transactions.initialising import Initialise
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_init_producer_id(
    node: "Node", caller: "Caller", request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse | Later[InitProducerIdResponse]:
    if request.transactional_id is not None:
        return _for_transactions(node, caller, request, request.transactional_id, version)
    if not node.access.may(caller.principal, Operation.IDEMPOTENT_WRITE, CLUSTER):
        return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refusal(ErrorCode.INVALID_REQUEST)
    # An id that the producer had before is of no use to it: without a transactional id, a new one is as good.
    return node.cluster.next_producer_id().then(_reply)


def _for_transactions(
    node: "Node", caller: "Caller", request: InitProducerIdRequest, transactional_id: str, version: int
) -> InitProducerIdResponse | Later[InitProducerIdResponse]:
    resource = transactional_id_resource(transactional_id)
    if not node.access.may(caller.principal, Operation.WRITE, resource):
        return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return _refusal(ErrorCode.INVALID_REQUEST)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refusal(ErrorCode.INVALID_REQUEST)
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    command = Initialise(transactional_id, request.transaction_timeout_ms, expected)

    def initialise(created: object) -> InitProducerIdResponse | Later[InitProducerIdResponse]:
        if isinstance(created, Refused):
            return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return node.transactions.run(command, caller).then(lambda result: _reply_transactional(result, version))

    return node.cluster.ensure_internal_topic(TRANSACTION_STATE).then(initialise)


def _reply_transactional(result: ProducerIdentity | Refused, version: int) -> InitProducerIdResponse:
    if isinstance(result, Refused):
        return _refusal(code_for_client(result.code, fenced_since=4, version=version))
    return InitProducerIdResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)


def _reply(producer_id: int | Refused) -> InitProducerIdResponse:
    if isinstance(producer_id, Refused):
        # Whatever the store's trouble is: nothing was given out, and trying again is right.
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
