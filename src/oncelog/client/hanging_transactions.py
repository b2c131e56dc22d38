"""Hanging transactions: open in a partition, and no coordinator will ever end them.

They hold the last stable offset back for good, so nobody reads past them under read_committed. They come from brokers and
clients before KIP-890: a produce that arrived after its transaction had ended began a new one behind the coordinator's back.

A transaction is hanging in a partition if its coordinator does not know the producer id, or knows it without this partition. The
coordinator forgets a partition only after its marker is written, so this holds for certain once the partition, asked again
after the coordinator, still has the same transaction open.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from oncelog.client.metadata import ClusterView
from oncelog.client.transaction_admin import OpenTransaction, TransactionAdmin, TransactionDescription
from oncelog.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Hanging:
    transactions: list[OpenTransaction]
    #: Partitions that could not be looked into, with the broker's error code.
    failed: dict[TopicPartition, int]


def find_hanging(
    admin: TransactionAdmin,
    view: ClusterView,
    partitions: Iterable[TopicPartition],
    *,
    silent_since_ms: int,
    at_broker: int | None = None,
) -> Hanging:
    """The hanging ones among those whose last write is older than `silent_since_ms`."""
    searched = admin.open_transactions(view, partitions, at_broker)
    silent = [transaction for transaction in searched.found if transaction.last_timestamp_ms < silent_since_ms]
    known = transactions_of_producers(admin, {transaction.producer_id for transaction in silent})
    suspects = [transaction for transaction in silent if is_unknown(transaction, known.get(transaction.producer_id))]
    return Hanging(still_open(admin, view, suspects, at_broker), searched.failed)


def transactions_of_producers(admin: TransactionAdmin, producer_ids: set[int]) -> dict[int, TransactionDescription]:
    """What the coordinators know, by producer id."""
    if not producer_ids:
        return {}
    listed = {found.transactional_id: found.producer_id for found in admin.list_transactions(producer_ids=producer_ids)}
    return {listed[name]: description for name, description in admin.describe_transactions(listed).items()}


def is_unknown(transaction: OpenTransaction, known: TransactionDescription | None) -> bool:
    return known is None or transaction.partition not in known.partitions


def still_open(
    admin: TransactionAdmin, view: ClusterView, suspects: list[OpenTransaction], at_broker: int | None = None
) -> list[OpenTransaction]:
    """Those of them that are open now too: it is not just that one ended between two questions."""
    partitions = sorted({suspect.partition for suspect in suspects})
    now = {
        (found.partition, found.producer_id, found.start_offset)
        for found in admin.open_transactions(view, partitions, at_broker).found
    }
    return [suspect for suspect in suspects if (suspect.partition, suspect.producer_id, suspect.start_offset) in now]
