"""Records of `__transaction_state`: Kafka's format, what goes in comes out, and the short way makes the codec's bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.codec import encode_versioned
from oncelog.protocol.messages.internal.transaction_log import PartitionsSchema, TransactionLogValue
from oncelog.transactions.states import State
from oncelog.transactions.transaction import Transaction
from oncelog.transactions.transaction_records import decode_key, decode_value, encode_key, encode_value

producer_ids = st.integers(-1, 2**62)
transactions = st.builds(
    Transaction,
    transactional_id=st.text(min_size=1, max_size=40),
    producer_id=st.integers(0, 2**62),
    producer_epoch=st.integers(0, 2**15 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from([state for state in State if state is not State.EMPTY]),
    partitions=st.frozensets(
        st.builds(TopicPartition, st.sampled_from(["orders", "payments", "__consumer_offsets"]), st.integers(0, 60)),
        max_size=20,
    ),
    start_ms=st.integers(-1, 2**50),
    last_update_ms=st.integers(0, 2**50),
    last_producer_epoch=st.just(-1),
    previous_producer_id=st.just(-1),
    next_producer_id=st.just(-1),
    client_version=st.just(0),
)
v2 = st.fixed_dictionaries({"previous_producer_id": producer_ids, "next_producer_id": producer_ids})


def by_codec(transaction: Transaction) -> bytes:
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
        transaction_partitions=[PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()],
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return encode_versioned(value, 1 if transaction.client_version >= 2 else 0)


@given(transactions)
@settings(max_examples=150)
def test_a_transaction_of_v1_comes_back(transaction):
    encoded = encode_value(transaction)
    assert encoded == by_codec(transaction)
    assert decode_value(transaction.transactional_id, encoded) == transaction


@given(transactions, v2)
@settings(max_examples=150)
def test_a_transaction_of_v2_comes_back(transaction, fields):
    transaction = transaction._replace(client_version=2, **fields)
    encoded = encode_value(transaction)
    assert encoded == by_codec(transaction)
    assert decode_value(transaction.transactional_id, encoded) == transaction


@pytest.mark.parametrize("client_version", [0, 2])
def test_an_id_without_a_transaction_has_no_partitions(client_version):
    empty = Transaction("billing", 7, 0, 60_000, client_version=client_version, last_update_ms=5)
    assert decode_value("billing", encode_value(empty)) == empty


@given(st.text(max_size=60))
def test_a_key_comes_back(transactional_id):
    assert decode_key(encode_key(transactional_id)) == transactional_id


def test_a_key_of_another_version_is_told_apart():
    assert decode_key(b"\x00\x07whatever") is None
