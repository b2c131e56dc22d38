"""JoinGroup (11): become a member, or take part in the next generation."""

from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.groups.commands import UNKNOWN_MEMBER, Join
from oncelog.groups.group import Protocol
from oncelog.groups.replies import JoinReply
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_join_group(
    node: "Node", caller: "Caller", request: JoinGroupRequest, version: int
) -> JoinGroupResponse | Later[JoinGroupResponse]:
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return _response(JoinReply(ErrorCode.GROUP_AUTHORIZATION_FAILED, request.member_id), version)
    instance_id = request.group_instance_id
    answer: Later[JoinReply] = Later()
    node.groups.run(
        Join(
            token=answer,
            group_id=request.group_id,
            member_id=request.member_id,
            fresh_member_id=_fresh_id(node, caller, instance_id) if request.member_id == UNKNOWN_MEMBER else "",
            group_instance_id=instance_id,
            client_id=caller.client_id,
            # Kafka prints addresses the way Java does, and so it stands in its records.
            client_host=f"/{caller.host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple(Protocol(protocol.name, protocol.metadata) for protocol in request.protocols),
            member_id_required=version >= 4,
            may_skip_assignment=version >= 9,
        )
    )
    return answer.then(lambda reply: _response(reply, version))


def _fresh_id(node: "Node", caller: "Caller", group_instance_id: str | None) -> str:
    digits = node.random_bytes(16).hex()
    # A random UUID (version 4, variant 1), as every Kafka broker gives out.
    unique = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    return f"{caller.client_id if group_instance_id is None else group_instance_id}-{unique}"


def _response(reply: JoinReply, version: int) -> JoinGroupResponse:
    # Before version 7 the name cannot be null.
    protocol_name = reply.protocol_name if version >= 7 else reply.protocol_name or ""
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in reply.members
        ],
    )
