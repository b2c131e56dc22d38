"""EndTxn over (state, producer, epoch, outcome): MISSION T5, under v1 and v2 rules."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.transactions.decision import Decision, NeedProducerId, Wait
from oncelog.transactions.ending import End, complete, decide_end, fence
from oncelog.transactions.states import State
from oncelog.transactions.transaction import MAX_EPOCH
from tests.unit.transactions.transactions import NOW_MS, ORDERS, PAYMENTS, identity, transaction

V1, V2 = 0, 2
COMMIT, ABORT = True, False


def end(known, committed, *, epoch=5, producer_id=7, version=V1, new_producer_id=None):
    command = End("billing", ProducerIdentity(producer_id, epoch), committed, version, new_producer_id)
    return decide_end(known, command, NOW_MS)


def code_of(conclusion):
    assert isinstance(conclusion, Refused), conclusion
    return conclusion.code


@pytest.mark.seed("T5")
@pytest.mark.parametrize("version", [V1, V2])
def test_an_unknown_id_has_no_producer(version):
    assert code_of(end(None, COMMIT, version=version)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.seed("T5")
@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT])
def test_another_producer_id_does_not_hold_the_id(state, version):
    refused = end(transaction(state), COMMIT, producer_id=8, version=version)
    assert code_of(refused) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.seed("T5")
@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("epoch", [4, 6])
def test_an_epoch_that_is_not_current_is_fenced(epoch, version):
    assert code_of(end(transaction(State.ONGOING), COMMIT, epoch=epoch, version=version)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("T5")
@pytest.mark.parametrize(("committed", "state"), [(COMMIT, State.PREPARE_COMMIT), (ABORT, State.PREPARE_ABORT)])
def test_v1_prepares_and_keeps_the_epoch(committed, state):
    decision = end(transaction(State.ONGOING), committed)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.state is state
    assert decision.transaction.producer_epoch == 5
    assert decision.transaction.partitions == {ORDERS, PAYMENTS}
    assert decision.reply == identity(5)


@pytest.mark.seed("I14")
@pytest.mark.parametrize(("committed", "state"), [(COMMIT, State.PREPARE_COMMIT), (ABORT, State.PREPARE_ABORT)])
def test_v2_prepares_and_bumps_the_epoch(committed, state):
    decision = end(transaction(State.ONGOING), committed, version=V2)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.state is state
    assert decision.transaction.producer_epoch == 6
    assert decision.reply == identity(6)


#: What a repeat of an end meets, by the state it finds: the outcome that led there, and the other one.
V1_REPEATS = [
    (State.COMPLETE_COMMIT, COMMIT, "answered"),
    (State.COMPLETE_COMMIT, ABORT, ErrorCode.INVALID_TXN_STATE),
    (State.COMPLETE_ABORT, ABORT, "answered"),
    (State.COMPLETE_ABORT, COMMIT, ErrorCode.INVALID_TXN_STATE),
    (State.PREPARE_COMMIT, COMMIT, "waits"),
    (State.PREPARE_COMMIT, ABORT, ErrorCode.INVALID_TXN_STATE),
    (State.PREPARE_ABORT, ABORT, "waits"),
    (State.PREPARE_ABORT, COMMIT, ErrorCode.INVALID_TXN_STATE),
    (State.EMPTY, COMMIT, ErrorCode.INVALID_TXN_STATE),
    (State.EMPTY, ABORT, ErrorCode.INVALID_TXN_STATE),
]


def check(conclusion, expected):
    match expected:
        case "answered":
            assert isinstance(conclusion, Decision)
            assert conclusion.transaction is None
        case "waits":
            assert isinstance(conclusion, Wait)
        case _:
            assert code_of(conclusion) is expected


@pytest.mark.seed("T5")
@pytest.mark.parametrize(("state", "committed", "expected"), V1_REPEATS)
def test_v1_repeats(state, committed, expected):
    check(end(transaction(state), committed), expected)


@pytest.mark.seed("I14")
@pytest.mark.parametrize(("state", "committed", "expected"), V1_REPEATS[:8])
def test_v2_repeats_carry_the_epoch_before_the_bump(state, committed, expected):
    check(end(transaction(state, epoch=6), committed, epoch=5, version=V2), expected)


@pytest.mark.seed("I14")
@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_v2_abort_of_nothing_bumps_the_epoch_so_that_a_late_produce_cannot_land(state):
    decision = end(transaction(state), ABORT, version=V2)
    assert isinstance(decision, Decision)
    assert decision.transaction is not None
    assert decision.transaction.state is State.PREPARE_ABORT
    assert decision.transaction.partitions == frozenset()
    assert decision.reply == identity(6)


@pytest.mark.seed("I14")
@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_v2_commit_of_nothing_is_refused(state):
    assert code_of(end(transaction(state), COMMIT, version=V2)) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.seed("I14")
def test_v2_an_end_of_the_transaction_before_the_last_is_fenced():
    assert (
        code_of(end(transaction(State.COMPLETE_COMMIT, epoch=7), COMMIT, epoch=5, version=V2))
        is ErrorCode.PRODUCER_FENCED
    )
    assert code_of(end(transaction(State.ONGOING, epoch=6), COMMIT, epoch=5, version=V2)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.seed("I3")
def test_v2_exhausted_epochs_give_way_to_a_new_producer_id():
    known = transaction(State.ONGOING, epoch=MAX_EPOCH - 1)
    assert isinstance(end(known, COMMIT, epoch=MAX_EPOCH - 1, version=V2), NeedProducerId)

    decision = end(known, COMMIT, epoch=MAX_EPOCH - 1, version=V2, new_producer_id=99)
    assert isinstance(decision, Decision)
    prepared = decision.transaction
    assert prepared is not None
    assert (prepared.producer_id, prepared.producer_epoch) == (7, MAX_EPOCH), "markers still belong to the old id"
    assert decision.reply == ProducerIdentity(99, 0)

    finished = complete(prepared, NOW_MS)
    assert finished.identity == ProducerIdentity(99, 0)
    assert finished.previous_producer_id == 7
    repeated = end(finished, COMMIT, epoch=MAX_EPOCH - 1, version=V2)
    assert isinstance(repeated, Decision), "the old holder may repeat its last end"
    assert repeated.reply == ProducerIdentity(99, 0)
    assert repeated.transaction is None


@pytest.mark.seed("T9")
@pytest.mark.parametrize(
    ("prepared", "completed"),
    [(State.PREPARE_COMMIT, State.COMPLETE_COMMIT), (State.PREPARE_ABORT, State.COMPLETE_ABORT)],
)
def test_completing_clears_the_partitions_and_keeps_the_outcome(prepared, completed):
    finished = complete(transaction(prepared), NOW_MS)
    assert finished.state is completed
    assert finished.partitions == frozenset()
    assert finished.identity == identity(5)


@pytest.mark.seed("I10")
def test_an_abort_nobody_asked_for_shuts_the_producer_out():
    prepared = fence(transaction(State.ONGOING), NOW_MS)
    assert prepared.state is State.PREPARE_ABORT
    assert prepared.producer_epoch == 6
    assert prepared.partitions == {ORDERS, PAYMENTS}
    assert code_of(end(complete(prepared, NOW_MS), COMMIT)) is ErrorCode.PRODUCER_FENCED
    assert fence(transaction(State.ONGOING, epoch=MAX_EPOCH - 1), NOW_MS).producer_epoch == MAX_EPOCH


@pytest.mark.seed("I3")
def test_nobody_goes_on_with_the_epoch_that_shut_the_last_holder_out():
    fenced = complete(fence(transaction(State.ONGOING, epoch=MAX_EPOCH - 1), NOW_MS), NOW_MS)
    assert code_of(end(fenced, ABORT, epoch=MAX_EPOCH - 1, version=V2)) is ErrorCode.PRODUCER_FENCED
