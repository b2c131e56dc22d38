"""SyncGroup (14): the leader brings the assignment of a generation, every member takes its own."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.groups.commands import Sync
from oncelog.groups.replies import SyncReply
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_sync_group(
    node: "Node", caller: "Caller", request: SyncGroupRequest, version: int
) -> SyncGroupResponse | Later[SyncGroupResponse]:
    if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        # KIP-559: from here on a client must say what it believes was chosen.
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answer: Later[SyncReply] = Later()
    node.groups.run(
        Sync(
            token=answer,
            group_id=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments={assigned.member_id: assigned.assignment for assigned in request.assignments},
        )
    )
    return answer.then(_response)


def _response(reply: SyncReply) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
