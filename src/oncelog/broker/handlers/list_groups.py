"""ListGroups (16): every group this broker coordinates, or those in some states or of some types."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import CLUSTER, Operation
from oncelog.access.authorizer import group as group_resource
from oncelog.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node

_TYPE = "classic"


def handle_list_groups(node: "Node", caller: "Caller", request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    # Kafka compares both without regard to case, and takes a name it does not know for one that nothing matches.
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    sees_all = node.access.may(caller.principal, Operation.DESCRIBE, CLUSTER)
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=_TYPE,
        )
        for group in node.groups.groups()
        if (not states or group.state.value.lower() in states)
        and (not types or _TYPE in types)
        and (sees_all or node.access.may(caller.principal, Operation.DESCRIBE, group_resource(group.group_id)))
    ]
    return ListGroupsResponse(groups=listed)
