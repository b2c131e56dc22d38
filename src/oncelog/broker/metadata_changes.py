"""The way of every metadata change: decided, committed to the store, applied, and only then answered.

One transaction is in flight at a time. What is asked meanwhile waits and then shares the next one: each is decided on a
draft that holds the decisions before it, so a hundred clients that each want a topic cost two or three syncs, not a
hundred.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from oncelog.broker.logging import get_logger
from oncelog.cluster.records import Decision, Record, apply, decode, encode
from oncelog.cluster.state import Cluster
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.runtime.metadata_store import ABSENT, Committed, MetadataStore, MetadataUnusable, Outcome, Transaction
from oncelog.waiting.later import Later

_log = get_logger(__name__)

R = TypeVar("R")


class _Asked(NamedTuple):
    decide: Callable[[Cluster], Decision[Any] | Refused]
    answer: Later[Any]


class MetadataChanges:
    __slots__ = ("_store", "_cluster", "_make_true", "_revisions", "_asked", "_committing")

    def __init__(self, store: MetadataStore, cluster: Cluster, make_true: Callable[[Record], None]) -> None:
        """`make_true` applies a committed record to the cluster and does what follows from it."""
        self._store = store
        self._cluster = cluster
        self._make_true = make_true
        #: By which revision each key was written last: what a transaction expects of it.
        self._revisions: dict[str, int] = {}
        self._asked: list[_Asked] = []
        self._committing = False

    def load(self) -> None:
        for key, entry in self._store.load().items():
            self._revisions[key] = entry.mod_revision
            record = decode(key, entry.value)
            if record is not None:
                apply(self._cluster, record)

    def commit_now(self, records: list[Record]) -> None:
        """For the start: committed and applied on return. Raises MetadataUnusable."""
        transaction = self._transaction(records)
        outcome = self._store.commit_now(transaction)
        if not isinstance(outcome, Committed):
            raise MetadataUnusable(f"the metadata store does not take writes: {outcome}")
        self._remember(transaction, outcome)
        for record in records:
            apply(self._cluster, record)

    def ask(self, decide: Callable[[Cluster], Decision[R] | Refused]) -> "Later[R | Refused]":
        answer: Later[R | Refused] = Later()
        self._asked.append(_Asked(decide, answer))
        if not self._committing:
            self._commit_asked()
        return answer

    def _commit_asked(self) -> None:
        asked, self._asked = self._asked, []
        answers = [waiting.answer for waiting in asked]
        draft = self._cluster.copy() if len(asked) > 1 else self._cluster
        records: list[Record] = []
        replies: list[Any] = []
        for decide, _ in asked:
            decision = decide(draft)
            if isinstance(decision, Refused):
                replies.append(decision)
                continue
            replies.append(decision.reply)
            records += decision.records
            if draft is not self._cluster:
                for record in decision.records:
                    apply(draft, record)
        if not records:
            _complete(answers, replies)
            return
        self._committing = True
        transaction = self._transaction(records)
        self._store.commit(transaction).when_done(
            lambda outcome: self._finish(transaction, outcome, records, answers, replies)
        )

    def _finish(
        self,
        transaction: Transaction,
        outcome: Outcome,
        records: list[Record],
        answers: list[Later[Any]],
        replies: list[Any],
    ) -> None:
        try:
            if isinstance(outcome, Committed):
                self._remember(transaction, outcome)
                for record in records:
                    self._make_true(record)
            else:
                _log.error("a metadata change was not committed", problem=str(outcome))
                why = f"the broker could not store the change: {outcome}"
                replies = [Refused(ErrorCode.KAFKA_STORAGE_ERROR, why)] * len(answers)
        finally:
            # Whatever this change meets, and before anybody is told (answers run code of others): those who came meanwhile
            # are on their way. One bug must not stop every later change.
            self._committing = False
            if self._asked:
                self._commit_asked()
        _complete(answers, replies)

    def _transaction(self, records: list[Record]) -> Transaction:
        # Later records win over earlier ones for the same key: they were decided on top of them.
        writes = dict(map(encode, records))
        return Transaction(writes, expected={key: self._revisions.get(key, ABSENT) for key in writes})

    def _remember(self, transaction: Transaction, committed: Committed) -> None:
        for key, value in transaction.writes.items():
            if value is None:
                self._revisions.pop(key, None)
            else:
                self._revisions[key] = committed.revision


def _complete(answers: list[Later[Any]], replies: list[Any]) -> None:
    for answer, reply in zip(answers, replies, strict=True):
        answer.complete(reply)
