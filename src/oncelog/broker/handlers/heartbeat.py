"""Heartbeat (12): a member says that it is there, and hears whether it must join again."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.groups.commands import Heartbeat
from oncelog.groups.replies import HeartbeatReply
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_heartbeat(
    node: "Node", caller: "Caller", request: HeartbeatRequest, version: int
) -> HeartbeatResponse | Later[HeartbeatResponse]:
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answer: Later[HeartbeatReply] = Later()
    node.groups.run(
        Heartbeat(answer, request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    )
    return answer.then(lambda reply: HeartbeatResponse(error_code=reply.error))
