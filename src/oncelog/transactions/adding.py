"""Adding partitions to a transaction, and asking whether one is in it (MISSION I9, I10).

The first partition starts the transaction and its clock. Partitions are stored before anything is written to them: whoever
finishes the transaction must know where its markers belong.
"""

from typing import NamedTuple

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.decision import WAIT, Conclusion, Decision
from oncelog.transactions.states import State
from oncelog.transactions.transaction import Transaction


class AddPartitions(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]
    client_version: int = 0


def decide_add(known: Transaction | None, command: AddPartitions, now_ms: int) -> Conclusion:
    refused = _check_holder(known, command.transactional_id, command.producer)
    if refused is not None or known is None:
        return refused or _no_mapping(command.transactional_id, command.producer)
    if known.is_prepared:
        return WAIT
    if known.state is State.ONGOING:
        if command.partitions <= known.partitions:
            return Decision(known.identity)
        added = known.to(
            State.ONGOING,
            now_ms,
            partitions=known.partitions | command.partitions,
            client_version=command.client_version,
        )
    else:
        added = known.to(
            State.ONGOING,
            now_ms,
            partitions=command.partitions,
            start_ms=now_ms,
            client_version=command.client_version,
        )
    return Decision(known.identity, added)


def decide_verify(
    known: Transaction | None, transactional_id: str, producer: ProducerIdentity, partition: TopicPartition
) -> Refused | None:
    """Whether this producer may write transactionally to the partition now (KIP-890, part 1)."""
    refused = _check_holder(known, transactional_id, producer)
    if refused is not None or known is None:
        return refused or _no_mapping(transactional_id, producer)
    if known.is_prepared:
        return Refused(
            ErrorCode.CONCURRENT_TRANSACTIONS, f'"{transactional_id}" is still finishing its last transaction'
        )
    if known.state is State.ONGOING and partition in known.partitions:
        return None
    return Refused(
        ErrorCode.TRANSACTION_ABORTABLE,
        f'{partition} is not part of the transaction of "{transactional_id}": abort it and begin again',
    )


def _check_holder(known: Transaction | None, transactional_id: str, producer: ProducerIdentity) -> Refused | None:
    if known is None or known.producer_id != producer.producer_id:
        return _no_mapping(transactional_id, producer)
    if known.producer_epoch != producer.producer_epoch:
        return Refused(
            ErrorCode.PRODUCER_FENCED,
            f'transactional id "{transactional_id}" was taken over by another producer '
            f"(epoch {known.producer_epoch}, not {producer.producer_epoch}): stop this one, or give it an id of its own",
        )
    return None


def _no_mapping(transactional_id: str, producer: ProducerIdentity) -> Refused:
    return Refused(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f'producer {producer.producer_id} does not hold transactional id "{transactional_id}": initialise again',
    )
