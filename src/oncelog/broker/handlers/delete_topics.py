"""DeleteTopics (20): topics by name, or by id from version 6."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.cluster.topic import Topic
from oncelog.cluster.topics import Results
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import NO_TOPIC_ID
from oncelog.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one entry of the request means: a topic, or why not."""

    asked: DeleteTopicState
    meant: Topic | Refused


def handle_delete_topics(
    node: "Node", caller: "Caller", request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse | Later[DeleteTopicsResponse]:
    asked = request.topics if version >= 6 else [DeleteTopicState(name=name) for name in request.topic_names]
    if not node.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        disabled = Refused(code, "Topic deletion is disabled.")
        return DeleteTopicsResponse(responses=[_result(_Wanted(state, disabled), {}) for state in asked])
    wanted = _understand(node, caller, asked)
    doomed = [entry.meant for entry in wanted if isinstance(entry.meant, Topic)]
    return node.cluster.delete_topics(doomed).then(
        lambda results: DeleteTopicsResponse(responses=[_result(entry, results) for entry in wanted])
    )


def _understand(node: "Node", caller: "Caller", asked: list[DeleteTopicState]) -> list[_Wanted]:
    """Each topic once: one that is meant twice, by whatever means, is not deleted at all."""
    wanted: dict[tuple[str | None, bytes], _Wanted] = {}
    times = Counter((state.name, state.topic_id) for state in asked)
    for state in asked:
        key = (state.name, state.topic_id)
        meant = _meant(node, caller, state)
        if times[key] > 1 and (state.name is None) != (state.topic_id == NO_TOPIC_ID):
            what = "name" if state.name is not None else "id"
            meant = Refused(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
        wanted[key] = _Wanted(state, meant)
    named = {entry.asked.name for entry in wanted.values() if entry.asked.name is not None}
    for key, entry in list(wanted.items()):
        if entry.asked.name is None and isinstance(entry.meant, Topic) and entry.meant.name in named:
            del wanted[key]
            both = Refused(
                ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
            )
            by_name = DeleteTopicState(name=entry.meant.name, topic_id=entry.meant.topic_id)
            wanted[entry.meant.name, NO_TOPIC_ID] = _Wanted(by_name, both)
    return list(wanted.values())


def _meant(node: "Node", caller: "Caller", state: DeleteTopicState) -> Topic | Refused:
    by_id = state.topic_id != NO_TOPIC_ID
    if by_id and state.name is not None:
        return Refused(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if state.name is None and not by_id:
        return Refused(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = node.cluster.topic_by_id(state.topic_id) if by_id else node.cluster.topic(state.name or "")
    name = state.name if topic is None else topic.name
    if name is not None and not node.access.may(caller.principal, Operation.DELETE, topic_resource(name)):
        return Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    if topic is not None:
        return topic
    if by_id:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def _result(entry: _Wanted, results: Results) -> DeletableTopicResult:
    outcome = entry.meant
    if isinstance(outcome, Topic):
        outcome = results[outcome.name]
    if isinstance(outcome, Refused):
        return DeletableTopicResult(
            name=entry.asked.name,
            topic_id=entry.asked.topic_id,
            error_code=outcome.code,
            error_message=outcome.why,
        )
    return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
