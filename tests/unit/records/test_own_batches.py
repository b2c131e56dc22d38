"""The short way to the broker's own batches gives the same bytes as the long one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.records.builder import build_batch
from oncelog.records.control import end_transaction_marker
from oncelog.records.own_batches import end_marker_batch, single_record_batch

timestamps = st.integers(0, 2**62)


@given(key=st.binary(max_size=300), value=st.none() | st.binary(max_size=20_000), timestamp_ms=timestamps)
@settings(max_examples=200)
def test_one_record(key, value, timestamp_ms):
    assert single_record_batch(key, value, timestamp_ms) == build_batch([(key, value)], timestamp_ms=timestamp_ms)


@given(
    producer_id=st.integers(0, 2**62),
    producer_epoch=st.integers(0, 2**15 - 1),
    committed=st.booleans(),
    coordinator_epoch=st.integers(0, 2**31 - 1),
    timestamp_ms=timestamps,
)
@settings(max_examples=200)
def test_a_marker(producer_id, producer_epoch, committed, coordinator_epoch, timestamp_ms):
    arguments = (producer_id, producer_epoch, committed, coordinator_epoch, timestamp_ms)
    assert end_marker_batch(*arguments) == end_transaction_marker(*arguments)
