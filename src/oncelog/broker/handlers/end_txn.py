"""EndTxn (26): commit or abort the running transaction of a transactional id (MISSION T4-T6)."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.transaction_versions import client_version_of_end, code_for_client
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from oncelog.transactions.ending import End
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_end_txn(
    node: "Node", caller: "Caller", request: EndTxnRequest, version: int
) -> EndTxnResponse | Later[EndTxnResponse]:
    transactional_id = request.transactional_id
    if not node.access.may(caller.principal, Operation.WRITE, transactional_id_resource(transactional_id)):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    command = End(
        transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        client_version_of_end(version),
    )
    return node.transactions.run(command, caller).then(lambda result: _reply(result, version))


def _reply(result: ProducerIdentity | Refused, version: int) -> EndTxnResponse:
    if isinstance(result, Refused):
        return EndTxnResponse(error_code=code_for_client(result.code, fenced_since=2, version=version))
    return EndTxnResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)
