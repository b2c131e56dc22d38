"""InitProducerId: a producer takes over a transactional id (MISSION I3, I8, I13).

Whoever held it before is fenced from here on: the epoch that goes out is above every epoch that was ever given or used for
markers. What the predecessor left open is aborted first, what it had prepared is finished first.
"""

from typing import NamedTuple

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.transactions.decision import NEED_PRODUCER_ID, WAIT, AbortFirst, Conclusion, Decision
from oncelog.transactions.ending import fence
from oncelog.transactions.states import State
from oncelog.transactions.transaction import MAX_EPOCH, NO_PARTITIONS, Transaction


class Initialise(NamedTuple):
    transactional_id: str
    timeout_ms: int
    #: What a running producer that wants a fresh epoch believes to be (KIP-360); None for a new instance.
    expected: ProducerIdentity | None = None
    #: Filled in when an earlier look said that one is needed.
    new_producer_id: int | None = None
    client_version: int = 0


def decide_initialise(known: Transaction | None, command: Initialise, max_timeout_ms: int, now_ms: int) -> Conclusion:
    if not 0 < command.timeout_ms <= max_timeout_ms:
        return Refused(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"transaction.timeout.ms={command.timeout_ms} must be above 0 and at most "
            f"transaction.max.timeout.ms={max_timeout_ms}",
        )
    if known is None:
        return _create(command, now_ms)
    expected = command.expected
    if expected is not None and not _may_be(known, expected):
        return _fenced(known, expected)
    match known.state:
        case State.PREPARE_COMMIT | State.PREPARE_ABORT:
            return WAIT
        case State.ONGOING:
            if expected is not None and expected.producer_epoch != known.producer_epoch:
                return _fenced(known, expected)
            return AbortFirst(fence(known, now_ms))
        case _:
            return _take_over(known, command, now_ms)


def _create(command: Initialise, now_ms: int) -> Conclusion:
    if command.new_producer_id is None:
        return NEED_PRODUCER_ID
    created = Transaction(
        transactional_id=command.transactional_id,
        producer_id=command.new_producer_id,
        producer_epoch=0,
        timeout_ms=command.timeout_ms,
        last_update_ms=now_ms,
        client_version=command.client_version,
    )
    return Decision(created.identity, created)


def _take_over(known: Transaction, command: Initialise, now_ms: int) -> Conclusion:
    expected = command.expected
    if _needs_another_id(known, expected):
        if command.new_producer_id is None:
            return NEED_PRODUCER_ID
        return _stored(
            known,
            command,
            now_ms,
            producer_id=command.new_producer_id,
            previous_producer_id=known.producer_id,
            producer_epoch=0,
            # Lets the holder of the exhausted epoch, and only it, repeat this request.
            last_producer_epoch=NO_PRODUCER_EPOCH if expected is None else expected.producer_epoch,
        )
    if expected is None:
        return _stored(
            known, command, now_ms, producer_epoch=known.producer_epoch + 1, last_producer_epoch=NO_PRODUCER_EPOCH
        )
    if known.producer_epoch in (NO_PRODUCER_EPOCH, expected.producer_epoch):
        return _stored(
            known,
            command,
            now_ms,
            producer_epoch=known.producer_epoch + 1,
            last_producer_epoch=known.producer_epoch,
        )
    if expected.producer_epoch == known.last_producer_epoch:
        # A repeat: the answer got lost, not the epoch. Or its open transaction was aborted, and the epoch raised by that.
        return Decision(known.identity)
    return _fenced(known, expected)


def _needs_another_id(known: Transaction, expected: ProducerIdentity | None) -> bool:
    if not known.is_epoch_exhausted:
        return False
    if expected is None or expected.producer_epoch == known.producer_epoch:
        return True
    # The highest epoch shuts a holder out and is given to nobody, also not to that holder when it comes back.
    return known.producer_epoch == MAX_EPOCH and expected.producer_epoch == known.last_producer_epoch


def _stored(known: Transaction, command: Initialise, now_ms: int, **changes: int) -> Decision:
    initialised = known.to(
        State.EMPTY,
        now_ms,
        timeout_ms=command.timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=-1,
        client_version=command.client_version,
        **changes,
    )
    return Decision(initialised.identity, initialised)


def _may_be(known: Transaction, expected: ProducerIdentity) -> bool:
    return (
        known.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == known.producer_id
        # The id was rotated because its epochs ran out, and this is its last holder asking again.
        or (expected.producer_id == known.previous_producer_id and expected.producer_epoch >= MAX_EPOCH - 1)
    )


def _fenced(known: Transaction, expected: ProducerIdentity) -> Refused:
    return Refused(
        ErrorCode.PRODUCER_FENCED,
        f'transactional id "{known.transactional_id}" is held by producer {known.producer_id} epoch {known.producer_epoch}, '
        f"not {expected.producer_id} epoch {expected.producer_epoch}: stop this producer, or give it an id of its own",
    )
