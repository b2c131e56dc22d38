"""InitProducerId: who takes over a transactional id, what is finished first, who is fenced (MISSION I3, I8, I13)."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.transactions.decision import AbortFirst, Decision, NeedProducerId, Wait
from oncelog.transactions.ending import complete, fence
from oncelog.transactions.initialising import Initialise, decide_initialise
from oncelog.transactions.states import AT_REST, State
from oncelog.transactions.transaction import MAX_EPOCH
from tests.unit.transactions.transactions import NOW_MS, identity, transaction

MAX_TIMEOUT_MS = 900_000


def initialise(known, *, expected=None, timeout_ms=60_000, new_producer_id=None):
    command = Initialise("billing", timeout_ms, expected, new_producer_id)
    return decide_initialise(known, command, MAX_TIMEOUT_MS, NOW_MS)


def code_of(conclusion):
    assert isinstance(conclusion, Refused), conclusion
    return conclusion.code


@pytest.mark.seed("I8")
def test_a_new_id_needs_a_producer_id_and_then_is_stored_before_it_is_answered():
    assert isinstance(initialise(None), NeedProducerId)
    decision = initialise(None, new_producer_id=42)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.state is State.EMPTY
    assert decision.reply == ProducerIdentity(42, 0)


@pytest.mark.seed("I8")
def test_a_new_id_takes_whatever_identity_the_client_believes_in():
    decision = initialise(None, expected=ProducerIdentity(0, 0), new_producer_id=42)
    assert isinstance(decision, Decision)
    assert decision.reply == ProducerIdentity(42, 0)


@pytest.mark.seed("I3")
@pytest.mark.parametrize("state", sorted(AT_REST))
def test_every_initialisation_raises_the_epoch(state):
    decision = initialise(transaction(state))
    assert isinstance(decision, Decision)
    assert decision.reply == identity(6)
    assert decision.transaction is not None
    assert decision.transaction.state is State.EMPTY


@pytest.mark.seed("I13")
def test_an_open_transaction_of_the_predecessor_is_aborted_first():
    conclusion = initialise(transaction(State.ONGOING))
    assert isinstance(conclusion, AbortFirst)
    assert conclusion.transaction.state is State.PREPARE_ABORT
    assert conclusion.transaction.producer_epoch == 6

    after = initialise(complete(conclusion.transaction, NOW_MS))
    assert isinstance(after, Decision)
    assert after.reply == identity(7), "above every epoch a marker of the old holder carries"


@pytest.mark.seed("I13")
@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_a_prepared_end_of_the_predecessor_is_finished_first(state):
    assert isinstance(initialise(transaction(state)), Wait)


@pytest.mark.seed("I3")
def test_a_running_producer_may_ask_for_a_fresh_epoch_and_repeat_the_question():
    decision = initialise(transaction(State.COMPLETE_ABORT), expected=identity(5))
    assert isinstance(decision, Decision)
    assert decision.reply == identity(6)
    repeated = initialise(decision.transaction, expected=identity(5))
    assert isinstance(repeated, Decision)
    assert repeated.reply == identity(6)
    assert repeated.transaction is None


@pytest.mark.seed("I3")
@pytest.mark.parametrize("expected", [identity(4), identity(6), identity(5, producer_id=8)])
def test_a_producer_that_is_somebody_else_is_fenced(expected):
    assert code_of(initialise(transaction(State.COMPLETE_COMMIT), expected=expected)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("I3")
def test_a_zombie_that_asks_for_a_fresh_epoch_does_not_abort_its_successors_transaction():
    assert code_of(initialise(transaction(State.ONGOING), expected=identity(4))) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("I8")
def test_a_producer_gets_rid_of_its_own_open_transaction_by_asking_for_a_fresh_epoch():
    conclusion = initialise(transaction(State.ONGOING), expected=identity(5))
    assert isinstance(conclusion, AbortFirst)
    aborted = complete(conclusion.transaction, NOW_MS)

    after = initialise(aborted, expected=identity(5))
    assert isinstance(after, Decision)
    assert after.reply == identity(6)

    successor = initialise(aborted)
    assert isinstance(successor, Decision)
    assert code_of(initialise(successor.transaction, expected=identity(5))) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("I3")
def test_the_epoch_that_shut_a_holder_out_is_not_given_to_it_if_it_is_the_last_there_is():
    last = identity(MAX_EPOCH - 1)
    fenced = complete(fence(transaction(State.ONGOING, epoch=MAX_EPOCH - 1), NOW_MS), NOW_MS)
    assert isinstance(initialise(fenced, expected=last), NeedProducerId)
    rotated = initialise(fenced, expected=last, new_producer_id=99)
    assert isinstance(rotated, Decision)
    assert rotated.reply == ProducerIdentity(99, 0)
    repeated = initialise(rotated.transaction, expected=last)
    assert isinstance(repeated, Decision)
    assert repeated.reply == ProducerIdentity(99, 0)


@pytest.mark.seed("I3")
def test_exhausted_epochs_give_way_to_a_new_producer_id():
    known = transaction(State.COMPLETE_COMMIT, epoch=MAX_EPOCH - 1)
    assert isinstance(initialise(known), NeedProducerId)
    decision = initialise(known, new_producer_id=99)
    assert isinstance(decision, Decision)
    assert decision.reply == ProducerIdentity(99, 0)
    assert decision.transaction is not None
    assert decision.transaction.previous_producer_id == 7
    # The last holder of the old id asks again because its answer got lost.
    last = ProducerIdentity(7, MAX_EPOCH - 1)
    rotated = initialise(known, expected=last, new_producer_id=99)
    assert isinstance(rotated, Decision)
    repeated = initialise(rotated.transaction, expected=last)
    assert isinstance(repeated, Decision)
    assert repeated.reply == ProducerIdentity(99, 0)


@pytest.mark.seed("I10")
@pytest.mark.parametrize("timeout_ms", [0, -1, MAX_TIMEOUT_MS + 1])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms):
    refused = initialise(transaction(State.EMPTY), timeout_ms=timeout_ms)
    assert code_of(refused) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert "transaction.max.timeout.ms" in refused.why
