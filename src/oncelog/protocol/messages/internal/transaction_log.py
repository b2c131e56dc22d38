"""A transactional id, as `__transaction_state` keeps it."""

from typing import Annotated

from oncelog.protocol.schema import i8, i16, i32, i64, stored, struct, tagged


@stored(versions=(0, 0))
class TransactionLogKey:
    transactional_id: str = ""


@struct
class PartitionsSchema:
    topic: str = ""
    partition_ids: list[i32] = []


@stored(versions=(0, 1), flexible_since=1)
class TransactionLogValue:
    producer_id: i64 = 0
    # KIP-890: the id the last ended transaction was written under, and the one to go on with once the epochs of this one run out.
    previous_producer_id: Annotated[i64, tagged(0, since=1)] = -1
    next_producer_id: Annotated[i64, tagged(1, since=1)] = -1
    producer_epoch: i16 = 0
    next_producer_epoch: Annotated[i16, tagged(3, since=1)] = -1
    transaction_timeout_ms: i32 = 0
    # The numbers of the transaction states; they are part of the format.
    transaction_status: i8 = 0
    # Null in state Empty; an empty list once the transaction is complete.
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: i64 = 0
    transaction_start_timestamp_ms: i64 = 0
    # KIP-890: 2 if the client bumps its epoch with every transaction.
    client_transaction_version: Annotated[i16, tagged(2, since=1)] = 0
