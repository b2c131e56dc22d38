"""DescribeGroups (15): the state of groups and who is in them."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import NOT_ASKED, Operation, authorized_operations
from oncelog.access.authorizer import group as group_resource
from oncelog.groups.group import Group
from oncelog.groups.shard import Shard
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_describe_groups(
    node: "Node", caller: "Caller", request: DescribeGroupsRequest, version: int
) -> Later[DescribeGroupsResponse]:
    described = [
        _describe(node, caller, group_id, request.include_authorized_operations, version) for group_id in request.groups
    ]
    return all_of(described).then(lambda groups: DescribeGroupsResponse(groups=groups))


def _describe(
    node: "Node", caller: "Caller", group_id: str, include_operations: bool, version: int
) -> Later[DescribedGroup]:
    resource = group_resource(group_id)
    if not node.access.may(caller.principal, Operation.DESCRIBE, resource):
        return completed(DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    operations = authorized_operations(node.access, caller.principal, resource) if include_operations else NOT_ASKED

    def describe(shard: Shard) -> DescribedGroup:
        group = shard.groups.get(group_id)
        described = _unknown(group_id, version) if group is None else _known(group)
        described.authorized_operations = operations
        return described

    return node.groups.view(group_id).then(describe)


def _unknown(group_id: str, version: int) -> DescribedGroup:
    # KIP-1043: before version 6 a group that does not exist was described as a dead one.
    if version < 6:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    return DescribedGroup(
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
    )


def _known(group: Group) -> DescribedGroup:
    # What counts of what members offer is settled only while the group is stable.
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
