"""Fetch (1): read batches, waiting for enough of them if the client says so (MISSION P8, X2).

A fetch is looked at in two steps. `_Look` says where the bytes of a partition lie without touching the disk: enough to know
whether the fetch can be answered. Only then are they read; what is not in the page cache is read in a worker thread, so
that one reader of old data does not hold up everybody else.
"""

from typing import TYPE_CHECKING, cast

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import topic as topic_resource
from oncelog.broker.fetch_sessions import FetchContext, Wanted
from oncelog.log.reading import Read, ReadPlan
from oncelog.log.storage import StorageFailed
from oncelog.model.error_code import ErrorCode
from oncelog.model.isolation_level import IsolationLevel
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition

TOPIC_ID_SINCE = 13


def handle_fetch(
    node: "Node", caller: "Caller", request: FetchRequest, version: int
) -> "FetchResponse | Later[FetchResponse]":
    context = node.fetch_sessions.context_of(request, version, node.clock.monotonic_ms())
    if isinstance(context, Refused):
        return FetchResponse(error_code=context.code)
    fetch = DelayedFetch(node, caller, request, version, context)
    if fetch.try_complete():
        return fetch.answer.value if fetch.answer.done else fetch.answer
    node.room.watch(fetch, fetch.keys, min(request.max_wait_ms, 2**31 - 1))
    return fetch.answer


class DelayedFetch:
    __slots__ = ("answer", "keys", "_node", "_caller", "_request", "_version", "_context", "_committed_only")

    def __init__(
        self, node: "Node", caller: "Caller", request: FetchRequest, version: int, context: FetchContext
    ) -> None:
        self.answer: Later[FetchResponse] = Later()
        self.keys: list[TopicPartition] = []
        self._node = node
        self._caller = caller
        self._request = request
        self._version = version
        self._context = context
        self._committed_only = request.isolation_level == IsolationLevel.READ_COMMITTED

    def try_complete(self) -> bool:
        found = self._look()
        enough = self._request.max_wait_ms <= 0 or not found
        available = 0
        for look in found:
            enough = enough or look.refused is not None or look.diverging is not None
            available += look.length
        if not enough and available < self._request.min_bytes:
            self.keys = [look.partition.topic_partition for look in found if look.partition is not None]
            return False
        self._read(found)
        return True

    def expire(self) -> None:
        self._read(self._look())

    def _look(self) -> "list[_Look]":
        """Where the bytes of every wanted partition lie, within the limits of this fetch."""
        budget = min(self._request.max_bytes, self._node.config.fetch_max_bytes)
        nothing_yet = True
        found: list[_Look] = []
        for wanted in self._context.wanted.values():
            look = self._look_at(wanted, budget, nothing_yet)
            if look.length:
                nothing_yet = False
                budget -= look.length
            found.append(look)
        return found

    def _look_at(self, wanted: Wanted, budget: int, nothing_yet: bool) -> "_Look":
        node, asked = self._node, wanted.asked
        name = wanted.topic
        if isinstance(name, bytes):
            topic = node.cluster.topic_by_id(name)
            if topic is None:
                return _Look(wanted, refused=Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id"))
            name = topic.name
        if not node.access.may(self._caller.principal, Operation.READ, topic_resource(name)):
            return _Look(wanted, refused=Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{name} is not for you"))
        partition = node.partitions.get(name, asked.partition)
        if isinstance(partition, Refused):
            return _Look(wanted, refused=partition)
        stale = partition.check_epoch(asked.current_leader_epoch)
        if stale is not None:
            return _Look(wanted, partition, refused=stale)
        log = partition.log
        if asked.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
                # The client read something this log no longer has (KIP-595): tell it where the two histories part.
                return _Look(wanted, partition, diverging=EpochEndOffset(epoch=epoch, end_offset=end_offset))
        bound = log.last_stable_offset if self._committed_only else log.high_watermark
        max_bytes = min(asked.partition_max_bytes, budget) if budget > 0 else 0
        located = log.locate(asked.fetch_offset, max_bytes, bound, at_least_one_batch=nothing_yet)
        if isinstance(located, Refused):
            return _Look(wanted, partition, refused=located)
        return _Look(wanted, partition, plan=located if isinstance(located, ReadPlan) else None)

    def _read(self, found: "list[_Look]") -> None:
        cold: list[_Look] = []
        for look in found:
            plan = look.plan
            if plan is None:
                continue
            try:
                data = plan.file.read_at_if_cached(plan.position, plan.length)
            except StorageFailed as problem:
                look.refused = Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
                continue
            if data is None:
                cold.append(look)
            else:
                look.read = plan.finish(data)
        if cold:
            self._node.timers.in_thread(lambda: [_read_cold(look) for look in cold]).when_done(
                lambda results: self._reply_with_cold(found, cold, results)
            )
        else:
            self._reply(found)

    def _reply_with_cold(
        self, found: "list[_Look]", cold: "list[_Look]", results: "list[bytes | Refused] | BaseException"
    ) -> None:
        for index, look in enumerate(cold):
            data = (
                Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(results))
                if isinstance(results, BaseException)
                else results[index]
            )
            if isinstance(data, Refused):
                look.refused = data
            elif look.plan is not None:
                look.read = look.plan.finish(data)
        self._reply(found)

    def _reply(self, found: "list[_Look]") -> None:
        context = self._context
        by_topic: dict[str | bytes, list[PartitionData]] = {}
        for look in found:
            data = self._partition_data(look)
            if context.session is not None:
                news = look.wanted.is_news(data)
                if data.records:
                    context.session.move_to_end((look.wanted.topic, data.partition_index))
                if context.incremental and not news:
                    continue
            answers = by_topic.get(look.wanted.topic)
            if answers is None:
                by_topic[look.wanted.topic] = [data]
            else:
                answers.append(data)
        responses = [
            FetchableTopicResponse(topic_id=topic, partitions=answers)
            if isinstance(topic, bytes)
            else FetchableTopicResponse(topic=topic, partitions=answers)
            for topic, answers in by_topic.items()
        ]
        self.answer.complete(FetchResponse(session_id=context.session_id, responses=responses))

    def _partition_data(self, look: "_Look") -> PartitionData:
        index = look.wanted.asked.partition
        partition = look.partition
        if look.refused is not None or partition is None:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if look.refused is None else look.refused.code
            return PartitionData(
                partition_index=index,
                error_code=code,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                preferred_read_replica=-1,
                records=b"",
            )
        log = partition.log
        aborted: list[AbortedTransaction] | None = None
        if self._committed_only:
            aborted = []
            if look.read is not None:
                # The index's entries go out as they are: they have the fields of the message, and there may be many.
                found = log.aborted_transactions(look.wanted.asked.fetch_offset, look.read.next_offset)
                aborted = cast("list[AbortedTransaction]", found)
        data = PartitionData(
            partition_index=index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            preferred_read_replica=-1,
            records=b"" if look.read is None else look.read.records,
        )
        if look.diverging is not None:
            data.diverging_epoch = look.diverging
        return data


class _Look:
    """One wanted partition as it stands now."""

    __slots__ = ("wanted", "partition", "refused", "diverging", "plan", "length", "read")

    def __init__(
        self,
        wanted: Wanted,
        partition: "Partition | None" = None,
        *,
        refused: Refused | None = None,
        diverging: EpochEndOffset | None = None,
        plan: ReadPlan | None = None,
    ) -> None:
        self.wanted = wanted
        self.partition = partition
        self.refused = refused
        self.diverging = diverging
        self.plan = plan
        self.length = 0 if plan is None else plan.length
        self.read: Read | None = None


def _read_cold(look: _Look) -> bytes | Refused:
    """In a worker thread. The segment may be gone by now, or the disk may fail: then the reader asks again."""
    plan = look.plan
    try:
        return b"" if plan is None else plan.file.read_cold_at(plan.position, plan.length)
    except StorageFailed as problem:
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(problem))
