"""Getting the markers of prepared transactions to every partition they wrote to (MISSION T7, T8).

Per destination broker there is one queue; whatever waits in it when a request can leave goes in that one request, markers of
many transactions together. Partitions whose leader is not known wait apart until it is. A transaction is finished when no
partition of it is left; it is cancelled when this coordinator no longer speaks for it.

Pure: it says what to send and takes in what came back. A broker that is this node itself is a destination like any other.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.transaction import Transaction


class Gone(Enum):
    """Why a partition has no leader to ask for: it does not exist any more, so it needs no marker."""

    GONE = 0


GONE = Gone.GONE
#: Who leads a partition: a broker id, None while nobody knows, GONE if there is no such partition.
LeaderOf = Callable[[TopicPartition], int | Gone | None]


class Marker(NamedTuple):
    """The end of one transaction for some partitions of one broker."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class _Outstanding:
    transaction: Transaction
    coordinator_epoch: int
    left: set[TopicPartition]


class Answer(Enum):
    """What a partition's answer to a marker means."""

    DONE = "done"
    RETRY = "retry"
    CANCEL = "cancel"
    BUG = "bug"


_ANSWERS: dict[int, Answer] = {
    ErrorCode.NONE: Answer.DONE,
    # The producer cannot have written there either, so there is nothing to end.
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Answer.DONE,
    ErrorCode.UNSUPPORTED_VERSION: Answer.DONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Answer.RETRY,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Answer.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: Answer.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Answer.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Answer.RETRY,
    ErrorCode.KAFKA_STORAGE_ERROR: Answer.RETRY,
    # Another coordinator or a later epoch has taken this transaction over: its outcome is theirs to finish.
    ErrorCode.INVALID_PRODUCER_EPOCH: Answer.CANCEL,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Answer.CANCEL,
}


def meaning_of(code: int) -> Answer:
    """Everything not in the table cannot be answered to a marker unless somebody made a mistake."""
    return _ANSWERS.get(code, Answer.BUG)


@dataclass(slots=True)
class Outcome:
    """What answers led to."""

    finished: list[Transaction] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    #: (transactional id, partition, code): answers that only a bug explains. They are said loudly and not retried.
    bugs: list[tuple[str, TopicPartition, int]] = field(default_factory=list)


class MarkerSender:
    __slots__ = ("_leader_of", "_outstanding", "_queues", "_unknown_leader")

    def __init__(self, leader_of: LeaderOf) -> None:
        self._leader_of = leader_of
        self._outstanding: dict[str, _Outstanding] = {}
        self._queues: dict[int, list[Marker]] = {}
        self._unknown_leader: list[Marker] = []

    def __len__(self) -> int:
        return len(self._outstanding)

    @property
    def destinations(self) -> list[int]:
        """Brokers something waits for."""
        return list(self._queues)

    @property
    def waits_for_leaders(self) -> bool:
        return bool(self._unknown_leader)

    def is_sending(self, transactional_id: str) -> bool:
        return transactional_id in self._outstanding

    def partitions_left(self, transactional_id: str) -> frozenset[TopicPartition]:
        outstanding = self._outstanding.get(transactional_id)
        return frozenset() if outstanding is None else frozenset(outstanding.left)

    def send(self, prepared: Transaction, coordinator_epoch: int) -> bool:
        """Queue the markers of a prepared transaction; True if none are needed and it is finished already."""
        outstanding = _Outstanding(prepared, coordinator_epoch, set(prepared.partitions))
        self._outstanding[prepared.transactional_id] = outstanding
        self._enqueue(outstanding, prepared.partitions)
        return self._take_if_finished(outstanding)

    def take(self, broker_id: int) -> list[Marker]:
        """Everything that waits for this broker: the content of one request."""
        return self._queues.pop(broker_id, [])

    def look_for_leaders(self) -> list[Transaction]:
        """Try again those whose leader nobody knew; returns transactions finished by that (their partitions are gone)."""
        waiting, self._unknown_leader = self._unknown_leader, []
        finished = []
        for marker in waiting:
            outstanding = self._speaking_for(marker)
            if outstanding is not None:
                self._enqueue(outstanding, marker.partitions)
                if self._take_if_finished(outstanding):
                    finished.append(outstanding.transaction)
        return finished

    def answered(self, markers: Iterable[Marker], codes: Callable[[Marker, TopicPartition], int]) -> Outcome:
        """Take in a broker's answer to the markers of one request."""
        outcome = Outcome()
        for marker in markers:
            outstanding = self._speaking_for(marker)
            if outstanding is None:
                continue
            retry: list[TopicPartition] = []
            for partition in marker.partitions:
                code = codes(marker, partition)
                match meaning_of(code):
                    case Answer.DONE:
                        outstanding.left.discard(partition)
                    case Answer.RETRY:
                        retry.append(partition)
                    case Answer.CANCEL:
                        self.cancel(marker.transactional_id)
                        outcome.cancelled.append(marker.transactional_id)
                        break
                    case Answer.BUG:
                        outcome.bugs.append((marker.transactional_id, partition, code))
            else:
                if retry:
                    self._enqueue(outstanding, retry)
                if self._take_if_finished(outstanding):
                    outcome.finished.append(outstanding.transaction)
        return outcome

    def disconnected(self, markers: Iterable[Marker]) -> None:
        """No answer came. The markers may or may not be written; writing one twice does no harm, so they go out again."""
        for marker in markers:
            outstanding = self._speaking_for(marker)
            if outstanding is not None:
                self._enqueue(outstanding, outstanding.left.intersection(marker.partitions))

    def cancel(self, transactional_id: str) -> None:
        """This coordinator no longer speaks for the id: it was moved, reloaded, or overtaken."""
        if self._outstanding.pop(transactional_id, None) is None:
            return
        for broker_id in list(self._queues):
            self._queues[broker_id] = [m for m in self._queues[broker_id] if m.transactional_id != transactional_id]
            if not self._queues[broker_id]:
                del self._queues[broker_id]
        self._unknown_leader = [m for m in self._unknown_leader if m.transactional_id != transactional_id]

    def _speaking_for(self, marker: Marker) -> _Outstanding | None:
        outstanding = self._outstanding.get(marker.transactional_id)
        if outstanding is None or outstanding.coordinator_epoch != marker.coordinator_epoch:
            return None
        if outstanding.transaction.producer_epoch != marker.producer_epoch:
            return None
        return outstanding

    def _enqueue(self, outstanding: _Outstanding, partitions: Iterable[TopicPartition]) -> None:
        by_leader: dict[int | None, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._leader_of(partition)
            if leader is GONE:
                outstanding.left.discard(partition)
            elif not isinstance(leader, Gone):
                by_leader.setdefault(leader, []).append(partition)
        prepared = outstanding.transaction
        for broker_id, its_partitions in by_leader.items():
            marker = Marker(
                transactional_id=prepared.transactional_id,
                producer_id=prepared.producer_id,
                producer_epoch=prepared.producer_epoch,
                committed=prepared.commits,
                coordinator_epoch=outstanding.coordinator_epoch,
                transaction_version=prepared.client_version,
                partitions=tuple(its_partitions),
            )
            if broker_id is None:
                self._unknown_leader.append(marker)
            else:
                self._queues.setdefault(broker_id, []).append(marker)

    def _take_if_finished(self, outstanding: _Outstanding) -> bool:
        if outstanding.left:
            return False
        self._outstanding.pop(outstanding.transaction.transactional_id, None)
        return True
