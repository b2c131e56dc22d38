"""TxnOffsetCommit (28): a group's offsets as part of a transaction; nobody sees them before its commit marker (MISSION I11).

From v5 on the client has not taken the group's partition into the transaction itself (KIP-890): it is added here first.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation, group
from oncelog.access.authorizer import topic as topic_resource
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.fail_points import reach
from oncelog.broker.transaction_versions import OFFSET_COMMIT_V2_SINCE, TRANSACTION_VERSION
from oncelog.cluster.topic import CONSUMER_OFFSETS
from oncelog.groups.commands import CommitOffsets, OffsetToCommit
from oncelog.groups.replies import OffsetsReply
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from oncelog.transactions.adding import AddPartitions
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


def handle_txn_offset_commit(
    node: "Node", caller: "Caller", request: TxnOffsetCommitRequest, version: int
) -> TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse]:
    denied = _denied(node, caller, request)
    if denied is not None:
        return _response(request, lambda _: denied)
    refused: dict[TopicPartition, ErrorCode] = {}
    wanted: list[OffsetToCommit] = []
    for topic in request.topics:
        allowed = node.access.may(caller.principal, Operation.READ, topic_resource(topic.name))
        for asked in topic.partitions:
            partition = TopicPartition(topic.name, asked.partition_index)
            if not allowed:
                refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif isinstance(node.partitions.get(*partition), Refused):
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append(
                    OffsetToCommit(
                        partition,
                        asked.committed_offset,
                        asked.committed_leader_epoch,
                        asked.committed_metadata or "",
                    )
                )
    if not wanted:
        return _response(request, refused.__getitem__)
    # In the group's turn, not before: while another of its commits is being stored, the transaction may end, and what an older
    # client then still writes under the same epoch would begin one that nobody ends.
    admitted: Later[ErrorCode | None] = node.groups.view(request.group_id).then(
        lambda _: _admit(node, caller, request, version)
    )
    return admitted.then(lambda no: _commit(node, request, tuple(wanted), refused, no))


def _denied(node: "Node", caller: "Caller", request: TxnOffsetCommitRequest) -> ErrorCode | None:
    if not node.access.may(caller.principal, Operation.WRITE, transactional_id_resource(request.transactional_id)):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not node.access.may(caller.principal, Operation.READ, group(request.group_id)):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    return None


def _admit(node: "Node", caller: "Caller", request: TxnOffsetCommitRequest, version: int) -> "Later[ErrorCode | None]":
    """Whether the group's partition is part of this producer's transaction, made so for a v2 client."""
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)

    def ask(created: object) -> "Later[ErrorCode | None] | ErrorCode | None":
        if isinstance(created, Refused):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        offsets = TopicPartition(CONSUMER_OFFSETS, node.groups.partition_of(request.group_id))
        log = node.partitions.get(*offsets)
        if not isinstance(log, Refused) and log.log.has_open_transaction(*producer):
            return None
        if version < OFFSET_COMMIT_V2_SINCE:
            refused = node.transactions.verify(request.transactional_id, producer, offsets)
            return None if refused is None else _code(refused.code, version)
        command = AddPartitions(request.transactional_id, producer, frozenset((offsets,)), TRANSACTION_VERSION)
        return node.transactions.run(command, caller).then(
            lambda result: _code(result.code, version) if isinstance(result, Refused) else None
        )

    return node.cluster.ensure_internal_topic(CONSUMER_OFFSETS).then(ask)


def _code(code: ErrorCode, version: int) -> ErrorCode:
    """A refusal of the transaction coordinator in words this API knows."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < OFFSET_COMMIT_V2_SINCE - 1:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _commit(
    node: "Node",
    request: TxnOffsetCommitRequest,
    wanted: tuple[OffsetToCommit, ...],
    refused: dict[TopicPartition, ErrorCode],
    not_admitted: ErrorCode | None,
) -> TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse]:
    if not_admitted is not None:
        return _response(request, lambda partition: refused.get(partition, not_admitted))
    reach("transactional offsets before store")
    answer: Later[OffsetsReply] = Later()
    node.groups.run(
        CommitOffsets(
            token=answer,
            group_id=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            offsets=wanted,
            producer=ProducerIdentity(request.producer_id, request.producer_epoch),
        )
    )

    def respond(reply: OffsetsReply) -> TxnOffsetCommitResponse:
        reach("transactional offsets after store")
        failed = dict(reply.failed)
        return _response(
            request,
            lambda partition: refused.get(partition) or reply.error or failed.get(partition, ErrorCode.NONE),
        )

    return answer.then(respond)


def _response(
    request: TxnOffsetCommitRequest, error_of: Callable[[TopicPartition], ErrorCode]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=asked.partition_index,
                        error_code=error_of(TopicPartition(topic.name, asked.partition_index)),
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
