"""LeaveGroup (13): members go, one by its own wish or several by an administrator's."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.groups.commands import Leave, LeavingMember
from oncelog.groups.replies import LeaveReply
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_leave_group(
    node: "Node", caller: "Caller", request: LeaveGroupRequest, version: int
) -> LeaveGroupResponse | Later[LeaveGroupResponse]:
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if version < 3:
        leaving: tuple[LeavingMember, ...] = (LeavingMember(request.member_id, None),)
    else:
        leaving = tuple(LeavingMember(member.member_id, member.group_instance_id) for member in request.members)
    answer: Later[LeaveReply] = Later()
    node.groups.run(Leave(answer, request.group_id, leaving))
    return answer.then(lambda reply: _response(reply, version))


def _response(reply: LeaveReply, version: int) -> LeaveGroupResponse:
    if version < 3:
        # One member, and one error for it.
        return LeaveGroupResponse(error_code=reply.error or (reply.members[0].error if reply.members else reply.error))
    return LeaveGroupResponse(
        error_code=reply.error,
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
            for member_id, instance_id, error in reply.members
        ],
    )
