"""May these transactional batches be written now? Asked before the log is (KIP-890).

A partition that already holds this producer's open transaction needs no question. For any other the coordinator decides: a v2
client (Produce v12) has never named the partition, so it is added to the transaction here, all new ones of a request in one
record; an older client must have added it itself, which is verified. So no batch lands in a partition its coordinator does
not know of, and no transaction is left hanging there.
"""

from typing import TYPE_CHECKING, NamedTuple

from oncelog.access.authorizer import Operation
from oncelog.access.authorizer import transactional_id as transactional_id_resource
from oncelog.broker.transaction_versions import PRODUCE_V2_SINCE, TRANSACTION_VERSION
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.batch import HEADER, is_transactional
from oncelog.transactions.adding import AddPartitions
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition
    from oncelog.model.bytes_like import BytesLike
    from oncelog.protocol.messages.produce import ProduceRequest

#: From this version on a producer is told that aborting helps; before, the same is INVALID_TXN_STATE.
ABORTABLE_SINCE = 11

Refusals = dict[TopicPartition, Refused]
NO_REFUSALS: Refusals = {}


def admit(node: "Node", caller: "Caller", request: "ProduceRequest", version: int) -> "Refusals | Later[Refusals]":
    """Which of the request's partitions must not be written to; empty when all may."""
    batches = _transactional_batches(request)
    if not batches:
        return NO_REFUSALS
    transactional_id = request.transactional_id or ""
    if not node.access.may(caller.principal, Operation.WRITE, transactional_id_resource(transactional_id)):
        why = "transactional batches need a transactional id that this client may use"
        return dict.fromkeys(batches, Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why))
    if not transactional_id:
        why = "transactional batches need a transactional id that is not empty"
        return dict.fromkeys(batches, Refused(ErrorCode.INVALID_REQUEST, why))
    if len({sent.producer for sent in batches.values()}) > 1:
        why = "batches of several producers in one transactional request"
        return dict.fromkeys(batches, Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why))
    unknown = {
        partition: sent for partition, sent in batches.items() if not _is_in_transaction(node, partition, sent.producer)
    }
    if not unknown:
        return NO_REFUSALS
    if version >= PRODUCE_V2_SINCE:
        return _add(node, caller, transactional_id, unknown)
    return _verify(node, transactional_id, unknown, version)


def admit_one(
    node: "Node",
    caller: "Caller",
    transactional_id: str | None,
    partition: "Partition",
    records: "BytesLike",
    version: int,
) -> bool:
    """Whether the transactional batch of a request with no other may be written now. False says nothing yet: ask `admit`."""
    if not transactional_id or not node.access.may(
        caller.principal, Operation.WRITE, transactional_id_resource(transactional_id)
    ):
        return False
    sent = _sent(records)
    if partition.log.has_open_transaction(*sent.producer):
        return True
    alone = {partition.topic_partition: sent}
    if version >= PRODUCE_V2_SINCE:
        return _add(node, caller, transactional_id, alone) is NO_REFUSALS
    return not _verify(node, transactional_id, alone, version)


class _Sent(NamedTuple):
    """Who sent a batch, and its number among the producer's."""

    producer: ProducerIdentity
    sequence: int


def _sent(records: "BytesLike") -> _Sent:
    header = HEADER.unpack_from(records)
    return _Sent(ProducerIdentity(header[9], header[10]), header[11])


def _transactional_batches(request: "ProduceRequest") -> dict[TopicPartition, _Sent]:
    found = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is not None and is_transactional(records):
                found[TopicPartition(topic.name, data.index)] = _sent(records)
    return found


def _is_in_transaction(node: "Node", partition: TopicPartition, producer: ProducerIdentity) -> bool:
    found = node.partitions.get(partition.topic, partition.partition)
    # An unknown partition is refused by the append itself, with the right code.
    return isinstance(found, Refused) or found.log.has_open_transaction(*producer)


def _add(
    node: "Node", caller: "Caller", transactional_id: str, unknown: dict[TopicPartition, _Sent]
) -> "Refusals | Later[Refusals]":
    early = {
        partition: _NOT_THE_FIRST for partition, sent in unknown.items() if _comes_too_early(node, partition, sent)
    }
    added = frozenset(unknown).difference(early)
    if not added:
        return early
    command = AddPartitions(transactional_id, next(iter(unknown.values())).producer, added, TRANSACTION_VERSION)

    def refusals(result: ProducerIdentity | Refused) -> Refusals:
        if isinstance(result, Refused):
            return {**dict.fromkeys(added, Refused(_produce_code(result.code), result.why)), **early}
        return early or NO_REFUSALS

    answer = node.transactions.run(command, caller)
    return refusals(answer.value) if answer.done else answer.then(refusals)


_NOT_THE_FIRST = Refused(
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    "a transaction's first batch in this partition has sequence 0: one is missing",
)


def _comes_too_early(node: "Node", partition: TopicPartition, sent: _Sent) -> bool:
    """Under v2 sequences start anew with every transaction: a later one first means that the one before it is still to come."""
    if sent.sequence == 0:
        return False
    found = node.partitions.get(partition.topic, partition.partition)
    # Of a producer that the partition knows, the log itself can tell.
    return not isinstance(found, Refused) and not found.log.knows_producer(sent.producer.producer_id)


def _verify(node: "Node", transactional_id: str, unknown: dict[TopicPartition, _Sent], version: int) -> Refusals:
    if not node.config.transaction_partition_verification_enable:
        return NO_REFUSALS
    refusals = {}
    for partition, sent in unknown.items():
        refused = node.transactions.verify(transactional_id, sent.producer, partition)
        if refused is not None:
            code = _produce_code(refused.code)
            if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
                code = ErrorCode.INVALID_TXN_STATE
            refusals[partition] = Refused(code, refused.why)
    return refusals


def _produce_code(code: ErrorCode) -> ErrorCode:
    """The coordinator's refusal in words a producer knows from Produce: fencing has one name there, and waiting is a retry."""
    match code:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case (
            ErrorCode.CONCURRENT_TRANSACTIONS
            | ErrorCode.NOT_COORDINATOR
            | ErrorCode.COORDINATOR_NOT_AVAILABLE
            | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        ):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        case _:
            return code
