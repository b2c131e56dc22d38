"""A transactional id and the transaction it is in: all a coordinator knows of it, and exactly what one record stores.

Never changed in place: every step makes the next one, which is written to `__transaction_state` and only then takes the old
one's place. So an append that fails leaves nothing to undo. A tuple, because three of them are made per transaction.
"""

from typing import NamedTuple

from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.states import COMMITTED, PREPARED, State, may_become

MAX_EPOCH = 2**15 - 1
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()

#: From this transaction version on every end bumps the epoch (KIP-890).
EPOCH_BUMP_SINCE = 2


class Transaction(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    #: When the first partition came; the timeout counts from here. -1 outside a transaction.
    start_ms: int = -1
    last_update_ms: int = -1
    #: The epoch before the last initialisation: tells a retried request from a zombie's. Not stored, as in Kafka.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    #: Given out in place of an exhausted producer id when the prepared end completes.
    next_producer_id: int = NO_PRODUCER_ID
    #: The transaction version its client speaks: 0 and 1 (v1 rules), 2 (KIP-890).
    client_version: int = 0

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def commits(self) -> bool:
        return self.state in COMMITTED

    @property
    def is_epoch_exhausted(self) -> bool:
        # The highest epoch is kept for fencing: a marker must always be able to carry one above the client's.
        return self.producer_epoch >= MAX_EPOCH - 1

    def is_over_its_timeout(self, now_ms: int) -> bool:
        return self.state is State.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def to(
        self,
        state: State,
        now_ms: int,
        *,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        timeout_ms: int | None = None,
        partitions: frozenset[TopicPartition] | None = None,
        start_ms: int | None = None,
        last_producer_epoch: int | None = None,
        previous_producer_id: int | None = None,
        next_producer_id: int | None = None,
        client_version: int | None = None,
    ) -> "Transaction":
        """The next step: what is not named stays. Written out because `_replace` takes five times as long."""
        if not may_become(self.state, state):
            raise AssertionError(f"no way from {self.state.public_name} to {state.public_name}")
        return Transaction(
            self.transactional_id,
            self.producer_id if producer_id is None else producer_id,
            self.producer_epoch if producer_epoch is None else producer_epoch,
            self.timeout_ms if timeout_ms is None else timeout_ms,
            state,
            self.partitions if partitions is None else partitions,
            self.start_ms if start_ms is None else start_ms,
            now_ms,
            self.last_producer_epoch if last_producer_epoch is None else last_producer_epoch,
            self.previous_producer_id if previous_producer_id is None else previous_producer_id,
            self.next_producer_id if next_producer_id is None else next_producer_id,
            self.client_version if client_version is None else client_version,
        )
