"""Adding partitions to a transaction, and verifying that one is in it (MISSION I9, I10)."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.transactions.adding import AddPartitions, decide_add, decide_verify
from oncelog.transactions.decision import Decision, Wait
from oncelog.transactions.states import AT_REST, State
from tests.unit.transactions.transactions import NOW_MS, ORDERS, PAYMENTS, identity, transaction


def add(known, *partitions, producer=None):
    return decide_add(known, AddPartitions("billing", producer or identity(), frozenset(partitions)), NOW_MS)


@pytest.mark.seed("I9")
@pytest.mark.parametrize("state", sorted(AT_REST))
def test_the_first_partition_starts_the_transaction_and_its_clock(state):
    decision = add(transaction(state), ORDERS)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.state is State.ONGOING
    assert decision.transaction.start_ms == NOW_MS
    assert decision.transaction.partitions == {ORDERS}


@pytest.mark.seed("I10")
def test_another_partition_joins_and_the_clock_runs_on():
    known = transaction(State.ONGOING, partitions=frozenset({ORDERS}))
    decision = add(known, PAYMENTS)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.partitions == {ORDERS, PAYMENTS}
    assert decision.transaction.start_ms == known.start_ms


def test_partitions_that_are_in_already_are_not_stored_again():
    decision = add(transaction(State.ONGOING), ORDERS)
    assert isinstance(decision, Decision)
    assert decision.transaction is None


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_the_next_transaction_waits_for_the_markers_of_the_last(state):
    assert isinstance(add(transaction(state), ORDERS), Wait)


@pytest.mark.seed("I3")
@pytest.mark.parametrize(
    ("producer", "code"),
    [
        (identity(4), ErrorCode.PRODUCER_FENCED),
        (identity(6), ErrorCode.PRODUCER_FENCED),
        (identity(5, producer_id=8), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_only_the_holder_of_the_id_adds_and_is_verified(producer, code):
    for conclusion in (
        add(transaction(State.ONGOING), ORDERS, producer=producer),
        decide_verify(transaction(State.ONGOING), "billing", producer, ORDERS),
    ):
        assert isinstance(conclusion, Refused)
        assert conclusion.code is code


def test_an_unknown_id_has_no_producer():
    for conclusion in (add(None, ORDERS), decide_verify(None, "billing", identity(), ORDERS)):
        assert isinstance(conclusion, Refused)
        assert conclusion.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.seed("I14")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.EMPTY, ErrorCode.TRANSACTION_ABORTABLE),
        (State.COMPLETE_COMMIT, ErrorCode.TRANSACTION_ABORTABLE),
        (State.PREPARE_COMMIT, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_a_batch_outside_a_transaction_is_not_verified(state, code):
    refused = decide_verify(transaction(state), "billing", identity(), ORDERS)
    assert refused is not None
    assert refused.code is code


@pytest.mark.seed("I14")
def test_only_partitions_of_the_transaction_are_verified():
    known = transaction(State.ONGOING, partitions=frozenset({ORDERS}))
    assert decide_verify(known, "billing", identity(), ORDERS) is None
    refused = decide_verify(known, "billing", identity(), PAYMENTS)
    assert refused is not None
    assert refused.code is ErrorCode.TRANSACTION_ABORTABLE
