"""A transactional id as `__transaction_state` stores it: Kafka's record format, so that Kafka's tools and brokers read it.

Under v1 rules Kafka writes version 0 of the value, which has no place for v2's fields; version 1 is written only for v2
clients. So an older broker that takes over the log understands what it can serve.
"""

from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.codec import decode_versioned, encode_versioned, version_of
from oncelog.protocol.messages.internal.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from oncelog.transactions.states import State
from oncelog.transactions.transaction import EPOCH_BUMP_SINCE, Transaction

KEY_VERSION = 0


def encode_key(transactional_id: str) -> bytes:
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def decode_key(key: bytes) -> str | None:
    """The transactional id, or None for a key of a version that is not known here."""
    if version_of(key) != KEY_VERSION:
        return None
    return decode_versioned(TransactionLogKey, key).transactional_id


def encode_value(transaction: Transaction) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # Kafka leaves the field null for an id that has never had a partition since it was initialised.
        transaction_partitions=None
        if transaction.state is State.EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()],
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return encode_versioned(value, 1 if transaction.client_version >= EPOCH_BUMP_SINCE else 0)


def decode_value(transactional_id: str, data: bytes) -> Transaction:
    value = decode_versioned(TransactionLogValue, data)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=State(value.transaction_status),
        partitions=frozenset(
            TopicPartition(schema.topic, partition)
            for schema in value.transaction_partitions or ()
            for partition in schema.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
