"""What the cleaner knows of the transactions it meets, from the beginning of the log on.

Data of an aborted transaction goes. A marker stays as long as the log has a batch of its transaction, be it an empty one: without
its marker such a batch would open a transaction that nobody ends. A round that no longer meets such a batch before the
marker may let the marker go, and does so after delete.retention.ms, like a tombstone, so that slow readers see it.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from oncelog.log.transaction_index import AbortedTransaction
from oncelog.records.batch import BatchHeader
from oncelog.records.control import ControlType


class CleanedTransactions:
    __slots__ = ("_upcoming", "_aborted", "_aborted_with_data", "_committed_with_data")

    def __init__(self) -> None:
        self._upcoming: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, AbortedTransaction] = {}
        self._aborted_with_data: set[int] = set()
        self._committed_with_data: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Of the range that is read next. The same transaction may be announced again."""
        for transaction in aborted:
            heappush(self._upcoming, (transaction.first_offset, transaction))

    def meet_data(self, header: BatchHeader) -> bool:
        """True if the batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._aborted_with_data.add(header.producer_id)
            return True
        self._committed_with_data.add(header.producer_id)
        return False

    def meet_marker(self, header: BatchHeader, kind: ControlType | None) -> tuple[bool, AbortedTransaction | None]:
        """Whether nothing of its transaction is left, and the entry the transaction index must keep if something is.

        `kind` is None for a batch whose marker has been cleaned away.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if kind is None:
            return True, None
        if kind is ControlType.ABORT:
            transaction = self._aborted.pop(producer_id, None)
            had_data = producer_id in self._aborted_with_data
            self._aborted_with_data.discard(producer_id)
            return not had_data, transaction if had_data else None
        if kind is ControlType.COMMIT:
            had_data = producer_id in self._committed_with_data
            self._committed_with_data.discard(producer_id)
            return not had_data, None
        return False, None

    def _begin_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0][0] <= offset:
            transaction = heappop(self._upcoming)[1]
            self._aborted.setdefault(transaction.producer_id, transaction)
