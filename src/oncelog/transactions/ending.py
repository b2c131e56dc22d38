"""Ending a transaction (MISSION T5, T6, I10, I14).

    Ongoing ──commit──▶ PrepareCommit ──markers out──▶ CompleteCommit
       └─────abort───▶ PrepareAbort  ──markers out──▶ CompleteAbort

The client hears NONE once Prepare is stored: from then on the outcome cannot change, whoever crashes.

Two generations of clients. Under v1 an end keeps the epoch, so a repeat is told from the next end by the state alone, and a
delayed end of an earlier transaction that meets a later one cannot be told from its own. Under v2 (KIP-890) every end bumps
the epoch, also of an empty transaction: an end that comes late carries an old epoch and is refused.
"""

from typing import NamedTuple

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import NO_PRODUCER_ID, ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.decision import NEED_PRODUCER_ID, WAIT, Conclusion, Decision
from oncelog.transactions.states import State
from oncelog.transactions.transaction import EPOCH_BUMP_SINCE, MAX_EPOCH, NO_PARTITIONS, Transaction


class End(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    committed: bool
    client_version: int = 0
    #: Filled in when an earlier look said that one is needed: the epochs of the producer id are used up.
    new_producer_id: int | None = None


def decide_end(known: Transaction | None, command: End, now_ms: int) -> Conclusion:
    if known is None:
        return _no_mapping(command)
    if command.client_version >= EPOCH_BUMP_SINCE:
        return _decide_v2(known, command, now_ms)
    return _decide_v1(known, command, now_ms)


def _decide_v1(known: Transaction, command: End, now_ms: int) -> Conclusion:
    if known.producer_id != command.producer.producer_id:
        return _no_mapping(command)
    if known.producer_epoch != command.producer.producer_epoch:
        return _fenced(known, command)
    match known.state:
        case State.ONGOING:
            return Decision(known.identity, known.to(_prepared_state(command), now_ms))
        case State.COMPLETE_COMMIT | State.COMPLETE_ABORT if known.commits is command.committed:
            return Decision(known.identity)  # a repeat: the answer got lost, not the transaction
        case State.PREPARE_COMMIT | State.PREPARE_ABORT if known.commits is command.committed:
            return WAIT
        case _:
            return _wrong_state(known, command)


def _decide_v2(known: Transaction, command: End, now_ms: int) -> Conclusion:
    producer = command.producer
    rotated = (
        known.previous_producer_id == producer.producer_id
        and producer.producer_epoch == MAX_EPOCH - 1
        and known.producer_epoch == 0
    )
    if known.producer_id != producer.producer_id and not rotated:
        return _no_mapping(command)
    bumped = known.producer_epoch == producer.producer_epoch + 1
    current = known.producer_epoch == producer.producer_epoch
    match known.state:
        case State.EMPTY | State.ONGOING if not current:
            return _fenced(known, command)
        case State.ONGOING:
            return _prepare_v2(known, command, now_ms, known.partitions, known.start_ms)
        case State.EMPTY:
            return _abort_nothing(known, command, now_ms)
        case State.PREPARE_COMMIT | State.PREPARE_ABORT:
            if not bumped:
                return _fenced(known, command)
            return WAIT if known.commits is command.committed else _wrong_state(known, command)
        case State.COMPLETE_COMMIT | State.COMPLETE_ABORT:
            if bumped or rotated:
                if known.producer_epoch == MAX_EPOCH:
                    return _fenced(known, command)  # it was taken to shut this producer out, and nobody goes on with it
                if known.commits is command.committed:
                    return Decision(known.identity)  # a repeat: the answer got lost, not the transaction
                return _wrong_state(known, command)
            return _abort_nothing(known, command, now_ms) if current else _fenced(known, command)
        case _:
            return _wrong_state(known, command)


def _abort_nothing(known: Transaction, command: End, now_ms: int) -> Conclusion:
    """A v2 client that aborts does not know whether its first produce arrived: the bump makes sure that it never will."""
    if command.committed:
        return _wrong_state(known, command)
    return _prepare_v2(known, command, now_ms, NO_PARTITIONS, now_ms)


def _prepare_v2(
    known: Transaction, command: End, now_ms: int, partitions: frozenset[TopicPartition], start_ms: int
) -> Conclusion:
    next_producer_id = NO_PRODUCER_ID
    if known.is_epoch_exhausted:
        if command.new_producer_id is None:
            return NEED_PRODUCER_ID
        next_producer_id = command.new_producer_id
    prepared = known.to(
        _prepared_state(command),
        now_ms,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch,
        partitions=partitions,
        start_ms=start_ms,
        next_producer_id=next_producer_id,
        client_version=command.client_version,
    )
    return Decision(identity_after(prepared), prepared)


def _prepared_state(command: End) -> State:
    return State.PREPARE_COMMIT if command.committed else State.PREPARE_ABORT


def identity_after(prepared: Transaction) -> ProducerIdentity:
    """What the producer goes on with once this end is through."""
    if prepared.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(prepared.next_producer_id, 0)
    return prepared.identity


def fence(known: Transaction, now_ms: int) -> Transaction:
    """The Prepare of an abort nobody's client asked for: a timeout, or an initialisation. The bumped epoch shuts the holder out.

    Until somebody else initialises, the holder may come back by initialising again (KIP-360): that is how a client gets rid of a
    transaction it cannot end, and of one that timed out.
    """
    return known.to(
        State.PREPARE_ABORT,
        now_ms,
        producer_epoch=min(known.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=known.producer_epoch,
    )


def complete(prepared: Transaction, now_ms: int) -> Transaction:
    """What is stored when the last marker is out (MISSION T9)."""
    state = State.COMPLETE_COMMIT if prepared.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
    producer_id, producer_epoch = identity_after(prepared)
    rotated = producer_id != prepared.producer_id
    return prepared.to(
        state,
        now_ms,
        partitions=NO_PARTITIONS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=prepared.producer_id if rotated else prepared.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def _no_mapping(command: End) -> Refused:
    return Refused(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f'producer {command.producer.producer_id} does not hold transactional id "{command.transactional_id}": initialise again',
    )


def _fenced(known: Transaction, command: End) -> Refused:
    return Refused(
        ErrorCode.PRODUCER_FENCED,
        f'transactional id "{known.transactional_id}" was taken over by another producer '
        f"(epoch {known.producer_epoch}, not {command.producer.producer_epoch}): stop this one, or give it an id of its own",
    )


def _wrong_state(known: Transaction, command: End) -> Refused:
    wanted = "commit" if command.committed else "abort"
    return Refused(ErrorCode.INVALID_TXN_STATE, f'{wanted} of "{known.transactional_id}" in {known.state.public_name}')
