"""A transactional id as `__transaction_state` stores it: Kafka's record format, so that Kafka's tools and brokers read it.

Under v1 rules Kafka writes version 0 of the value, which has no place for v2's fields; version 1 is written only for v2
clients. So an older broker that takes over the log understands what it can serve.
"""

from functools import lru_cache
from struct import Struct

from oncelog.model.producer_identity import NO_PRODUCER_ID
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.codec import decode_versioned, encode_versioned, version_of
from oncelog.protocol.messages.internal.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from oncelog.transactions.states import State
from oncelog.transactions.transaction import EPOCH_BUMP_SINCE, NO_PARTITIONS, Transaction

KEY_VERSION = 0

#: The value around its partitions: version, producer id and epoch, timeout, state; last update and start.
_BEFORE_PARTITIONS = Struct(">hqhib")
_AFTER_PARTITIONS = Struct(">qq")
#: Tag, size, and the field.
_TAGGED_ID = Struct(">BBq")
_TAGGED_VERSION = Struct(">BBh")


def encode_key(transactional_id: str) -> bytes:
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def decode_key(key: bytes) -> str | None:
    """The transactional id, or None for a key of a version that is not known here. Malformed if it is neither."""
    if version_of(key) != KEY_VERSION:
        return None
    return decode_versioned(TransactionLogKey, key).transactional_id


def encode_value(transaction: Transaction) -> bytes:
    """What the codec makes of a TransactionLogValue, put together by hand: it is written three times per transaction."""
    # Kafka leaves the partitions null for an id that has had none since it was initialised.
    partitions = None if transaction.state is State.EMPTY else transaction.partitions
    flexible = transaction.client_version >= EPOCH_BUMP_SINCE
    encoded = [
        _BEFORE_PARTITIONS.pack(
            1 if flexible else 0,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.state,
        ),
        _encoded_partitions(partitions, flexible),
        _AFTER_PARTITIONS.pack(transaction.last_update_ms, transaction.start_ms),
    ]
    if flexible:
        encoded.append(
            _tagged_fields(transaction.previous_producer_id, transaction.next_producer_id, transaction.client_version)
        )
    return b"".join(encoded)


@lru_cache(maxsize=1024)
def _encoded_partitions(partitions: frozenset[TopicPartition] | None, flexible: bool) -> bytes:
    """The middle of the value. Kept, since a transaction's records, and one transaction after the other, name the same ones."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions or ()):
        by_topic.setdefault(topic, []).append(partition)
    schemas = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()]
    value = TransactionLogValue(transaction_partitions=None if partitions is None else schemas)
    whole = encode_versioned(value, 1 if flexible else 0)
    return whole[_BEFORE_PARTITIONS.size : len(whole) - _AFTER_PARTITIONS.size - (1 if flexible else 0)]


@lru_cache(maxsize=1024)
def _tagged_fields(previous_producer_id: int, next_producer_id: int, client_version: int) -> bytes:
    fields = []
    if previous_producer_id != NO_PRODUCER_ID:
        fields.append(_TAGGED_ID.pack(0, 8, previous_producer_id))
    if next_producer_id != NO_PRODUCER_ID:
        fields.append(_TAGGED_ID.pack(1, 8, next_producer_id))
    fields.append(_TAGGED_VERSION.pack(2, 2, client_version))
    return b"".join((bytes((len(fields),)), *fields))


#: How much of a value there is when it names no partitions, and the little in it that then is always the same.
_AT_REST_V0 = _BEFORE_PARTITIONS.size + 4 + _AFTER_PARTITIONS.size
_AT_REST_V2_TAGS = _tagged_fields(NO_PRODUCER_ID, NO_PRODUCER_ID, EPOCH_BUMP_SINCE)
_AT_REST_V2 = _BEFORE_PARTITIONS.size + 1 + _AFTER_PARTITIONS.size + len(_AT_REST_V2_TAGS)


def decode_value(transactional_id: str, data: bytes) -> Transaction:
    """What the codec reads. Nearly all values a start finds name no partitions: those are read by hand, in a third of the time."""
    after = _BEFORE_PARTITIONS.size
    if (
        len(data) == _AT_REST_V0
        and data[:2] == b"\0\0"
        and data[after : after + 4] in (b"\xff\xff\xff\xff", b"\0\0\0\0")
    ):
        return _decode_at_rest(transactional_id, data, after + 4, 0)
    if len(data) == _AT_REST_V2 and data[:2] == b"\0\1" and data[after] <= 1 and data.endswith(_AT_REST_V2_TAGS):
        return _decode_at_rest(transactional_id, data, after + 1, EPOCH_BUMP_SINCE)
    return _decode_by_codec(transactional_id, data)


def _decode_at_rest(transactional_id: str, data: bytes, after_partitions: int, client_version: int) -> Transaction:
    _, producer_id, producer_epoch, timeout_ms, state = _BEFORE_PARTITIONS.unpack_from(data)
    last_update_ms, start_ms = _AFTER_PARTITIONS.unpack_from(data, after_partitions)
    return Transaction(
        transactional_id,
        producer_id,
        producer_epoch,
        timeout_ms,
        State(state),
        NO_PARTITIONS,
        start_ms,
        last_update_ms,
        client_version=client_version,
    )


def _decode_by_codec(transactional_id: str, data: bytes) -> Transaction:
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
