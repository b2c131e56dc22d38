"""Produce (0): append batches, and answer when they are acknowledged (MISSION P1-P5).

One partition's failure leaves the others' results intact. acks=0 has no answer at all; if something failed the connection is
closed instead, which is the only way to tell such a client that its metadata is stale.
"""

from typing import TYPE_CHECKING, TypeAlias

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.broker.replies import NO_REPLY, CloseConnection, NoReply
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from oncelog.records.batch import is_transactional
from oncelog.records.validation import FIRST_PRODUCE_VERSION_WITH_ZSTD, RecordsRefused, refuse_for_version
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition
    from oncelog.model.bytes_like import BytesLike

TOPIC_ID_SINCE = 13
CURRENT_LEADER_SINCE = 10

Reply: TypeAlias = ProduceResponse | NoReply | CloseConnection
#: A partition's answer that must still wait for the high watermark to reach an offset.
_Waiting = tuple["Partition", int, PartitionProduceResponse]


def handle_produce(node: "Node", caller: "Caller", request: ProduceRequest, version: int) -> "Reply | Later[Reply]":
    if version >= TOPIC_ID_SINCE:
        _name_topics(node, request)
    if request.transactional_id is None:
        return _produce(node, caller, request, version, {})
    from oncelog.broker.transactional_produce import (
        admit,  # not before it is needed: the first produce is quicker without
    )

    admitted = admit(node, caller, request, version)
    if not isinstance(admitted, Later):
        return _produce(node, caller, request, version, admitted)
    # The frame's buffer is used again once this returns: what must wait takes its records along.
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None if data.records is None else memoryview(bytearray(data.records))
    return admitted.then(lambda refusals: _produce(node, caller, request, version, refusals))


def _name_topics(node: "Node", request: ProduceRequest) -> None:
    """From v13 on topics come by id; everything here goes by name."""
    for topic in request.topic_data:
        known = node.cluster.topic_by_id(topic.topic_id)
        topic.name = "" if known is None else known.name


def _produce(
    node: "Node", caller: "Caller", request: ProduceRequest, version: int, refusals: dict[TopicPartition, Refused]
) -> "Reply | Later[Reply]":
    acks = request.acks
    transactional = request.transactional_id is not None
    waiting: list[_Waiting] = []
    failed = False
    responses: list[TopicProduceResponse] = []
    for topic_data in request.topic_data:
        name = topic_data.name
        topic_refused = _refuse_topic(node, caller, name, acks)
        answers: list[PartitionProduceResponse] = []
        for data in topic_data.partition_data:
            index = data.index
            refused = topic_refused
            if refused is None and refusals:
                refused = refusals.get(TopicPartition(name, index))
            if refused is None:
                answer = _append(node, name, index, data.records, acks, version, transactional, waiting)
            else:
                answer = _refusal(node, None, index, refused, version)
            failed = failed or answer.error_code != 0
            answers.append(answer)
        responses.append(TopicProduceResponse(name=name, topic_id=topic_data.topic_id, partition_responses=answers))
    if acks == 0:
        return CloseConnection("a produce with acks=0 failed") if failed else NO_REPLY
    response = ProduceResponse(responses=responses)
    if failed and version >= CURRENT_LEADER_SINCE:
        _add_endpoints(node, response)
    if not waiting:
        return response
    delayed = DelayedProduce(waiting, response)
    node.room.watch(delayed, [partition.topic_partition for partition, _, _ in waiting], request.timeout_ms)
    return delayed.answer


def _refuse_topic(node: "Node", caller: "Caller", name: str, acks: int) -> Refused | None:
    if acks not in (-1, 0, 1):
        return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: choose 0, 1 or -1")
    if not name:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    if not node.access.may(caller.principal, Operation.WRITE, topic_resource(name)):
        return Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{caller.principal} may not write to {name}")
    if name in node.internal_topics:
        return Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker alone")
    return None


def _append(
    node: "Node",
    name: str,
    index: int,
    records: "BytesLike | None",
    acks: int,
    version: int,
    transactional: bool,
    waiting: list[_Waiting],
) -> PartitionProduceResponse:
    partition = node.partitions.get(name, index)
    if isinstance(partition, Refused):
        return _refusal(node, None, index, partition, version)
    if records is None:
        records = b""
    if not transactional and is_transactional(records):
        why = "a transactional batch in a request without a transactional id"
        return _refusal(node, partition, index, Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why), version)
    if version < FIRST_PRODUCE_VERSION_WITH_ZSTD:
        refused = refuse_for_version(records, version)
        if refused is not None:
            return _refusal(node, partition, index, refused, version)
    appended = partition.append(records, node.clock.now_ms(), acks=acks)
    if not isinstance(appended, Appended):
        return _refusal(node, partition, index, appended, version)
    answer = PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    # With group commit even acks=1 means "on this broker's disk"; with the page cache the append is already acknowledged.
    if acks != 0 and not partition.is_acknowledged(appended.last_offset + 1):
        waiting.append((partition, appended.last_offset + 1, answer))
    return answer


def _refusal(
    node: "Node", partition: "Partition | None", index: int, refused: Refused, version: int
) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index,
        error_code=refused.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=refused.why,
    )
    if isinstance(refused, RecordsRefused):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=error.batch_index, batch_index_error_message=error.why)
            for error in refused.record_errors
        ]
    if partition is not None and version >= CURRENT_LEADER_SINCE and refused.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        answer.current_leader = LeaderIdAndEpoch(leader_id=node.node_id, leader_epoch=partition.leader_epoch)
    return answer


def _add_endpoints(node: "Node", response: ProduceResponse) -> None:
    if any(answer.current_leader is not None for topic in response.responses for answer in topic.partition_responses):
        host, port = node.advertised
        response.node_endpoints = [NodeEndpoint(node_id=node.node_id, host=host, port=port)]


class DelayedProduce:
    """A produce whose appends are done and whose acknowledgement is not (MISSION P3): the clock runs from here."""

    __slots__ = ("answer", "_waiting", "_response")

    def __init__(self, waiting: list[_Waiting], response: ProduceResponse) -> None:
        self.answer: Later[Reply] = Later()
        self._waiting = waiting
        self._response = response

    def try_complete(self) -> bool:
        still: list[_Waiting] = []
        for partition, required_offset, answer in self._waiting:
            if partition.is_acknowledged(required_offset):
                continue
            if partition.closed is not None:
                _overwrite(answer, partition.closed.code, partition.closed.why)
            else:
                still.append((partition, required_offset, answer))
        self._waiting = still
        if still:
            return False
        self.answer.complete(self._response)
        return True

    def expire(self) -> None:
        for partition, _, answer in self._waiting:
            _overwrite(answer, ErrorCode.REQUEST_TIMED_OUT, f"{partition.topic_partition}: not acknowledged in time")
        self.answer.complete(self._response)


def _overwrite(answer: PartitionProduceResponse, code: ErrorCode, why: str) -> None:
    answer.error_code = code
    answer.error_message = why
    answer.base_offset = -1
    answer.log_append_time_ms = -1
