"""A cluster of scripted brokers: who leads what, who coordinates whom, and what is open where."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from oncelog.client.brokers import Brokers
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from oncelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from oncelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from oncelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from oncelog.protocol.messages.list_transactions import TransactionState as ListedState
from oncelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted_broker import ScriptedBroker

T = TypeVar("T")

TOPIC = "orders"


@dataclass
class Known:
    """A transactional id as its coordinator knows it: `orders` in these partitions."""

    coordinator: int
    producer_id: int
    partitions: Sequence[int] = ()
    state: str = "Ongoing"
    producer_epoch: int = 0
    timeout_ms: int = 60_000
    start_ms: int = 1_000


@dataclass
class ScriptedCluster:
    """Brokers 0, 1, ...; partition p of `orders` is led by `leaders[p]`."""

    leaders: Sequence[int]
    transactions: dict[str, Known] = field(default_factory=dict)
    #: Per partition, what DescribeProducers answers: the last of several goes on for ever.
    open: dict[int, list[list[ProducerState]]] = field(default_factory=dict)
    #: Per partition, its last stable offset and its high watermark; the last of several goes on for ever.
    ends: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    brokers: list[ScriptedBroker] = field(default_factory=list)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        wanted = [TOPIC] if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node_id, host=broker.address.host, port=broker.address.port)
                for node_id, broker in enumerate(self.brokers)
            ],
            topics=[self._topic(name) for name in wanted],
        )

    def _topic(self, name: str | None) -> MetadataResponseTopic:
        if name != TOPIC:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=[leader])
            for index, leader in enumerate(self.leaders)
        ]
        return MetadataResponseTopic(name=TOPIC, partitions=partitions)

    def find_coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        found = []
        for key in request.coordinator_keys:
            node_id = self.transactions[key].coordinator if key in self.transactions else 0
            host, port = self.brokers[node_id].address
            found.append(Coordinator(key=key, node_id=node_id, host=host, port=port))
        return FindCoordinatorResponse(coordinators=found)

    def list_transactions(self, node_id: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            transaction_states=[
                ListedState(transactional_id=name, producer_id=known.producer_id, transaction_state=known.state)
                for name, known in self.transactions.items()
                if known.coordinator == node_id
                and (not request.producer_id_filters or known.producer_id in request.producer_id_filters)
            ]
        )

    def describe_transactions(self, node_id: int, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        states = []
        for name in request.transactional_ids:
            known = self.transactions.get(name)
            if known is None:
                states.append(TransactionState(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
                continue
            assert known.coordinator == node_id, "asked the wrong broker"
            states.append(
                TransactionState(
                    transactional_id=name,
                    transaction_state=known.state,
                    producer_id=known.producer_id,
                    producer_epoch=known.producer_epoch,
                    transaction_timeout_ms=known.timeout_ms,
                    transaction_start_time_ms=known.start_ms,
                    topics=[TopicData(topic=TOPIC, partitions=[*known.partitions])],
                )
            )
        return DescribeTransactionsResponse(transaction_states=states)

    def describe_producers(self, node_id: int, request: DescribeProducersRequest) -> DescribeProducersResponse:
        (topic,) = request.topics
        answers = []
        for index in topic.partition_indexes:
            assert self.leaders[index] == node_id, "asked the wrong broker"
            answers.append(PartitionResponse(partition_index=index, active_producers=_next(self.open.get(index, [[]]))))
        return DescribeProducersResponse(topics=[TopicResponse(name=TOPIC, partitions=answers)])

    def list_offsets(self, node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        answers = []
        for asked in topic.partitions:
            assert self.leaders[asked.partition_index] == node_id, "asked the wrong broker"
            assert (request.replica_id, asked.timestamp) == (-1, -1), "not a consumer that asks for the end"
            ends = self.ends.get(asked.partition_index, [(0, 0)])
            offset = ends[0][0] if request.isolation_level == 1 else _next(ends)[1]
            answers.append(ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset))
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=answers)])

    @contextmanager
    def running(self) -> Iterator[Brokers]:
        """Brokers of this cluster, of which a client is told only the first."""
        with ExitStack() as stack:
            for node_id in range(max(self.leaders) + 1):
                answers = {
                    ApiKey.METADATA: self.metadata,
                    ApiKey.FIND_COORDINATOR: self.find_coordinator,
                    ApiKey.LIST_TRANSACTIONS: lambda asked, at=node_id: self.list_transactions(at, asked),
                    ApiKey.DESCRIBE_TRANSACTIONS: lambda asked, at=node_id: self.describe_transactions(at, asked),
                    ApiKey.LIST_OFFSETS: lambda asked, at=node_id: self.list_offsets(at, asked),
                    ApiKey.DESCRIBE_PRODUCERS: lambda asked, at=node_id: self.describe_producers(at, asked),
                }
                self.brokers.append(stack.enter_context(ScriptedBroker(answers)))
            with Brokers([self.brokers[0].address], "test") as brokers:
                yield brokers


def _next(looks: list[T]) -> T:
    return looks.pop(0) if len(looks) > 1 else looks[0]


def producer(producer_id: int, start_offset: int, last_timestamp: int = 0, epoch: int = 0) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp=last_timestamp,
        coordinator_epoch=-1,
        current_txn_start_offset=start_offset,
    )
