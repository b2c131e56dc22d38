"""Transactions to start a test from, and short ways to ask the rules."""

from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.states import State
from oncelog.transactions.transaction import Transaction

NOW_MS = 1_000_000
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)


def transaction(state: State, *, epoch: int = 5, **changes: object) -> Transaction:
    """One that is in `state` the way it gets there: with partitions and a start where it has them."""
    open_or_prepared = state in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)
    fields: dict[str, object] = {
        "transactional_id": "billing",
        "producer_id": 7,
        "producer_epoch": epoch,
        "timeout_ms": 60_000,
        "state": state,
        "partitions": frozenset({ORDERS, PAYMENTS}) if open_or_prepared else frozenset(),
        "start_ms": NOW_MS - 1_000 if open_or_prepared else -1,
        "last_update_ms": NOW_MS - 1_000,
        **changes,
    }
    return Transaction(**fields)  # type: ignore[arg-type]


def identity(epoch: int = 5, producer_id: int = 7) -> ProducerIdentity:
    return ProducerIdentity(producer_id, epoch)
