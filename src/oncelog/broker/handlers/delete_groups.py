"""DeleteGroups (42): empty groups are forgotten, with their offsets."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.groups.commands import DeleteGroup
from oncelog.groups.replies import DeleteReply
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_delete_groups(
    node: "Node", caller: "Caller", request: DeleteGroupsRequest, version: int
) -> Later[DeleteGroupsResponse]:
    # A group named twice is deleted once and answered once.
    deleted = [_delete(node, caller, group_id) for group_id in dict.fromkeys(request.groups_names)]
    return all_of(deleted).then(lambda results: DeleteGroupsResponse(results=results))


def _delete(node: "Node", caller: "Caller", group_id: str) -> Later[DeletableGroupResult]:
    if not node.access.may(caller.principal, Operation.DELETE, group(group_id)):
        return completed(DeletableGroupResult(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    answer: Later[DeleteReply] = Later()
    node.groups.run(DeleteGroup(answer, group_id))
    return answer.then(lambda reply: DeletableGroupResult(group_id=group_id, error_code=reply.error))
