"""What a partition knows of its producers: which batch each must send next, and where its open transaction began (MISSION I2).

A batch is first checked, then written, then applied: checking changes nothing, so that a failed write leaves no trace. Rules, as
Apache Kafka 4 has them:
- The next expected sequence is taken. One of the last five batches again is a duplicate: acknowledged with its old offset, not
  written. Anything else is OUT_OF_ORDER_SEQUENCE_NUMBER. After 2^31-1 comes 0.
- A producer nobody knows (new here, expired, or deleted with its data) may begin with any sequence.
- A higher epoch takes over and begins with sequence 0; a lower one is INVALID_PRODUCER_EPOCH.
- While its transaction is open a producer writes nothing outside it (INVALID_TXN_STATE).
- A marker ends the open transaction. It is refused from a coordinator older than one seen (TRANSACTION_COORDINATOR_FENCED) and for
  an epoch below the producer's. Under transactions v2 (KIP-890) its epoch must be above the producer's, unless it is a repeat.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from oncelog.log.stable_offset import OpenTransactions
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import NO_SEQUENCE
from oncelog.model.refused import Refused
from oncelog.records.batch import TRANSACTIONAL_BIT, BatchHeader
from oncelog.records.control import ControlRecord, ControlType

BATCHES_KEPT = 5
LARGEST_SEQUENCE = 2**31 - 1
NO_TRANSACTION = -1
NO_COORDINATOR_EPOCH = -1
TRANSACTION_VERSION_2 = 2


_new = tuple.__new__


class Origin(Enum):
    """Who appends: clients are checked in full, coordinators number no sequences, a leader has checked what it replicates."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class BatchMetadata(NamedTuple):
    """A batch a producer may send again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    #: As a reader would see it once the marker is replicated; goes into the transaction index.
    last_stable_offset: int


class Producer:
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "coordinator_epoch",
        "last_timestamp",
        "transaction_first_offset",
        "batches",
        "next_sequence",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = -1
        self.transaction_first_offset = NO_TRANSACTION
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_KEPT)
        self.next_sequence = 0

    def remember(self, batch: BatchMetadata) -> None:
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp
        self.next_sequence = (batch.last_sequence + 1) & LARGEST_SEQUENCE

    def take_epoch(self, producer_epoch: int) -> None:
        """Sequences are counted within an epoch: a new one starts again at 0, and nothing of the old one can be repeated."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()
            self.next_sequence = 0

    def copy(self) -> "Producer":
        twin = Producer(self.producer_id, self.producer_epoch)
        twin.coordinator_epoch = self.coordinator_epoch
        twin.last_timestamp = self.last_timestamp
        twin.transaction_first_offset = self.transaction_first_offset
        twin.batches = self.batches.copy()
        twin.next_sequence = self.next_sequence
        return twin

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerState:
    __slots__ = ("_producers", "transactions")

    def __init__(self, producers: Iterable[Producer] = ()) -> None:
        self._producers = {producer.producer_id: producer for producer in producers}
        self.transactions = OpenTransactions()
        with_transaction = [producer for producer in self if producer.transaction_first_offset >= 0]
        for producer in sorted(with_transaction, key=lambda producer: producer.transaction_first_offset):
            self.transactions.begin(producer.transaction_first_offset, producer.producer_id)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def copy(self) -> "ProducerState":
        """To try several batches that build on one another before any is written."""
        return ProducerState(producer.copy() for producer in self)

    def check_batch(self, header: BatchHeader, origin: Origin) -> BatchMetadata | Refused | None:
        """None: write it. Else the batch it repeats, or why it is refused. For a batch with a producer id."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch = header.producer_epoch
        if epoch == producer.producer_epoch:
            sequence = header.base_sequence
            if sequence != producer.next_sequence and origin is Origin.CLIENT:
                return self._check_repeat(producer, header)
        elif epoch < producer.producer_epoch:
            return Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {producer.producer_epoch} by now, this batch is of epoch {epoch}: "
                f"another instance took over",
            )
        elif header.base_sequence != 0 and origin is Origin.CLIENT:
            return Refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} begins epoch {epoch} with sequence {header.base_sequence} instead of 0",
            )
        if producer.transaction_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            return Refused(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} wrote outside of its transaction, which is open since offset "
                f"{producer.transaction_first_offset}",
            )
        return None

    def _check_repeat(self, producer: Producer, header: BatchHeader) -> BatchMetadata | Refused:
        first = header.base_sequence
        last = last_sequence_of(header)
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return Refused(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {first} where {producer.next_sequence} was next",
        )

    def check_marker(self, header: BatchHeader, marker: ControlRecord, transaction_version: int) -> Refused | None:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, current = header.producer_epoch, producer.producer_epoch
        # The coordinator writes a marker again when it did not hear of the first: under v2 that one already raised the epoch.
        repeat = epoch == current and producer.transaction_first_offset < 0
        if epoch < current or (transaction_version >= TRANSACTION_VERSION_2 and epoch == current and not repeat):
            return Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {epoch} for producer {header.producer_id}, whose epoch is {current} by now",
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return Refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {marker.coordinator_epoch} for producer {header.producer_id}, after one of "
                f"{producer.coordinator_epoch}",
            )
        return None

    def apply_batch(self, header: BatchHeader, base_offset: int) -> None:
        """The batch was written at `base_offset`. For a data batch with a producer id."""
        producer_id = header.producer_id
        epoch = header.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id, epoch)
        elif epoch != producer.producer_epoch:
            producer.take_epoch(epoch)
        delta = header.last_offset_delta
        first = header.base_sequence
        last = (first + delta) & LARGEST_SEQUENCE if first >= 0 else NO_SEQUENCE
        timestamp = header.max_timestamp
        producer.batches.append(_new(BatchMetadata, (first, last, base_offset, base_offset + delta, timestamp)))
        producer.last_timestamp = timestamp
        producer.next_sequence = (last + 1) & LARGEST_SEQUENCE
        if header.attributes & TRANSACTIONAL_BIT and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self.transactions.begin(base_offset, producer_id)

    def apply_marker(self, header: BatchHeader, marker: ControlRecord, offset: int) -> CompletedTransaction | None:
        """The marker was written at `offset`. The transaction it ended; None if the producer had none open here."""
        if marker.type is not ControlType.COMMIT and marker.type is not ControlType.ABORT:
            return None
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_id, header.producer_epoch)
        producer.take_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset = producer.transaction_first_offset
        if first_offset < 0:
            return None
        producer.transaction_first_offset = NO_TRANSACTION
        last_stable_offset = self.transactions.complete(first_offset, offset)
        return CompletedTransaction(
            header.producer_id, first_offset, offset, marker.type is ControlType.ABORT, last_stable_offset
        )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget who has not written for `expiration_ms`, except with a transaction open. How many were forgotten."""
        expired = [
            producer.producer_id
            for producer in self
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)


def last_sequence_of(header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return (header.base_sequence + header.last_offset_delta) & LARGEST_SEQUENCE
