"""Transactions by hand: every request of a transactional producer over a raw connection, in any version.

`Wire` sends what it is told and gives back what it heard: for tests of exact answers. `WireProducer` on top of it does what a
client of one generation does, and fails the test when something is refused.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from oncelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from oncelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from oncelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from oncelog.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from oncelog.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from oncelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from oncelog.records.builder import build_batch
from tests.brokers import target_is_kafka
from tests.integration.raw_connection import RawConnection

Answer = TypeVar("Answer")

NOBODY = ProducerIdentity(-1, -1)
GROUP, TRANSACTIONAL_ID = 0, 1
TIMEOUT_MS = 60_000
#: Kafka sends clients away while markers are out or a coordinator loads; there a producer asks again. Oncelog has one chance.
TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class Generation(NamedTuple):
    """The versions a client speaks that knows transactions v1, or v2 (KIP-890)."""

    name: str
    init: int
    produce: int
    offsets: int
    end: int


V1 = Generation("v1", init=4, produce=11, offsets=4, end=4)
V2 = Generation("v2", init=5, produce=12, offsets=5, end=5)


def batch_of(
    values: Sequence[bytes],
    producer: ProducerIdentity,
    sequence: int,
    *,
    transactional: bool = True,
    key: bytes | None = None,
) -> bytes:
    return build_batch(
        [(key, value) for value in values],
        timestamp_ms=int(time.time() * 1000),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def produce_request(
    transactional_id: str | None, batches: dict[TopicPartition, bytes], *, acks: int = -1
) -> ProduceRequest:
    by_topic: dict[str, list[PartitionProduceData]] = {}
    for (topic, index), batch in batches.items():
        by_topic.setdefault(topic, []).append(PartitionProduceData(index=index, records=batch))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data) for topic, data in by_topic.items()],
    )


def end_request(transactional_id: str, producer: ProducerIdentity, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


class Wire(RawConnection):
    """Requests as they are, answers as they come."""

    def find_coordinator(self, key: str, kind: int = TRANSACTIONAL_ID) -> ErrorCode:
        """Asked for the first time, it makes the internal topic be there."""
        asked = FindCoordinatorRequest(key=key, key_type=kind)
        return ErrorCode(self.call(asked, 2, FindCoordinatorResponse).error_code)

    def initialise(
        self,
        transactional_id: str | None,
        version: int = 5,
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: ProducerIdentity = NOBODY,
    ) -> InitProducerIdResponse:
        asked = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.producer_epoch,
        )
        return self.call(asked, version, InitProducerIdResponse)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Sequence[TopicPartition], version: int = 3
    ) -> list[ErrorCode]:
        """The code of each partition, in the order asked."""
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        answer = self.call(asked, version, AddPartitionsToTxnResponse)
        codes = {
            TopicPartition(topic.name, result.partition_index): ErrorCode(result.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        return [codes[partition] for partition in partitions]

    def add_offsets(self, transactional_id: str, producer: ProducerIdentity, group: str, version: int = 3) -> ErrorCode:
        asked = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group,
        )
        return ErrorCode(self.call(asked, version, AddOffsetsToTxnResponse).error_code)

    def commit_offsets(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        group: str,
        offsets: dict[TopicPartition, int],
        version: int = 5,
        *,
        member_id: str = "",
        generation: int = -1,
    ) -> list[ErrorCode]:
        asked = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=generation,
            member_id=member_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offsets[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        answer = self.call(asked, version, TxnOffsetCommitResponse)
        return [ErrorCode(partition.error_code) for topic in answer.topics for partition in topic.partitions]

    def produce(
        self, transactional_id: str | None, batches: dict[TopicPartition, bytes], version: int = 12
    ) -> list[PartitionProduceResponse]:
        answer = self.call(produce_request(transactional_id, batches), version, ProduceResponse)
        return [result for topic in answer.responses for result in topic.partition_responses]

    def end(
        self, transactional_id: str, producer: ProducerIdentity, *, committed: bool, version: int = 5
    ) -> EndTxnResponse:
        return self.call(end_request(transactional_id, producer, committed=committed), version, EndTxnResponse)

    def end_code(
        self, transactional_id: str, producer: ProducerIdentity, *, committed: bool, version: int = 5
    ) -> ErrorCode:
        return ErrorCode(self.end(transactional_id, producer, committed=committed, version=version).error_code)

    def describe(self, transactional_id: str) -> TransactionState:
        asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (found,) = self.call(asked, 0, DescribeTransactionsResponse).transaction_states
        return found

    def settled(self, transactional_id: str) -> str:
        """The state of the id once its markers are out: Kafka answers an end before that, and so does Oncelog on a slow disk."""
        deadline = time.monotonic() + 20
        while (found := self.describe(transactional_id).transaction_state).startswith("Prepare"):
            assert time.monotonic() < deadline, found
            time.sleep(0.005)
        return found


def warm_up(wire: Wire) -> None:
    """Have both internal topics made and their coordinators ready: what is refused after this is refused for a reason."""
    until_taken(lambda: wire.find_coordinator("any", GROUP), int, "find a group's coordinator")
    # Kafka's fifty partitions are ready one after the other.
    for number in range(50 if target_is_kafka() else 1):
        WireProducer(wire, f"warm-up-{number}").initialise()


def worst(codes: Sequence[ErrorCode]) -> int:
    return max(codes)


class Denied(Exception):
    """What a producer asked for was refused."""

    def __init__(self, code: ErrorCode, doing: str) -> None:
        super().__init__(f"{doing}: {code.name}")
        self.code = code


def until_taken(ask: Callable[[], Answer], code_of: Callable[[Answer], int], doing: str) -> Answer:
    deadline = time.monotonic() + 30
    while True:
        answer = ask()
        code = ErrorCode(code_of(answer))
        if code is ErrorCode.NONE:
            return answer
        if not target_is_kafka() or code not in TRY_AGAIN or time.monotonic() > deadline:
            raise Denied(code, doing)
        time.sleep(0.01)


class WireProducer:
    """A producer of one generation that does everything right. What the broker refuses is raised as Denied."""

    def __init__(self, wire: Wire, transactional_id: str, generation: Generation = V2) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.generation = generation
        self.identity = NOBODY
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition | str] = set()

    def initialise(self, timeout_ms: int = TIMEOUT_MS) -> "WireProducer":
        until_taken(lambda: self.wire.find_coordinator(self.transactional_id), int, "find the coordinator")
        answer = until_taken(
            lambda: self.wire.initialise(self.transactional_id, self.generation.init, timeout_ms=timeout_ms),
            lambda answer: answer.error_code,
            "initialise",
        )
        self._take(ProducerIdentity(answer.producer_id, answer.producer_epoch))
        return self

    def _take(self, identity: ProducerIdentity) -> None:
        if identity != self.identity:
            self.identity = identity
            self._sequences.clear()
        self._added.clear()

    def add(self, *partitions: TopicPartition) -> None:
        new = [partition for partition in partitions if partition not in self._added]
        if new and self.generation is V1:
            until_taken(
                lambda: self.wire.add_partitions(self.transactional_id, self.identity, new), worst, "add partitions"
            )
        self._added.update(new)

    def send(self, *partitions: TopicPartition, values: Sequence[bytes]) -> list[int]:
        """The same values to each of the partitions in one request; the base offset in each."""
        self.add(*partitions)
        batches = {
            partition: batch_of(values, self.identity, self._sequences.get(partition, 0)) for partition in partitions
        }
        results = until_taken(
            lambda: self.wire.produce(self.transactional_id, batches, self.generation.produce),
            lambda results: max(result.error_code for result in results),
            "produce",
        )
        for partition in partitions:
            self._sequences[partition] = self._sequences.get(partition, 0) + len(values)
        return [result.base_offset for result in results]

    def send_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        if group not in self._added:
            until_taken(lambda: self.wire.find_coordinator(group, GROUP), int, "find the group's coordinator")
            if self.generation is V1:
                until_taken(
                    lambda: self.wire.add_offsets(self.transactional_id, self.identity, group), int, "add offsets"
                )
            self._added.add(group)
        until_taken(
            lambda: self.wire.commit_offsets(
                self.transactional_id, self.identity, group, offsets, self.generation.offsets
            ),
            worst,
            "commit offsets",
        )

    def end(self, *, committed: bool) -> None:
        answer = until_taken(
            lambda: self.wire.end(
                self.transactional_id, self.identity, committed=committed, version=self.generation.end
            ),
            lambda answer: answer.error_code,
            "commit" if committed else "abort",
        )
        if self.generation is V2:
            self._take(ProducerIdentity(answer.producer_id, answer.producer_epoch))
        self._added.clear()

    def settle(self) -> "WireProducer":
        """Return when the markers of the last transaction are out."""
        self.wire.settled(self.transactional_id)
        return self

    def commit(self) -> None:
        self.end(committed=True)

    def abort(self) -> None:
        self.end(committed=False)
