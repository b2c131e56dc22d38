"""Looking at transactions from outside, and ending those that nobody else will.

Two sides know of a transaction: its coordinator (state, timeout, partitions, by transactional id) and the leader of each
partition it writes to (where it began, by producer id). Each answers for itself; putting the two together is what
`hanging_transactions` and `stable_offset` do.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from oncelog.client.brokers import Brokers
from oncelog.client.errors import error_for
from oncelog.client.metadata import NO_LEADER, ClusterView
from oncelog.client.retrying import retrying
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from oncelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from oncelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from oncelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from oncelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

#: The states in which a transaction is not over yet.
RUNNING = ("Ongoing", "PrepareCommit", "PrepareAbort")
#: A transaction prepared for two-phase commit (KIP-939) has this timeout: none.
NO_TIMEOUT_MS = 2**31 - 1
_FENCING_TIMEOUT_MS = 60_000
_PARTITIONS_PER_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """What its coordinator knows of a transactional id."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    #: -1 outside a transaction.
    start_ms: int
    #: In a Prepare state those that have no marker yet.
    partitions: frozenset[TopicPartition]
    #: Whose request changed it last. Only Oncelog's broker tells.
    client_id: str = ""
    client_host: str = ""

    @property
    def is_open(self) -> bool:
        return self.state == "Ongoing"

    @property
    def is_prepared(self) -> bool:
        return self.state in ("PrepareCommit", "PrepareAbort")

    @property
    def times_out_at_ms(self) -> int | None:
        if not self.is_open or self.timeout_ms == NO_TIMEOUT_MS:
            return None
        return self.start_ms + self.timeout_ms


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What the leader of a partition knows of a transaction that is open there."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionsSearched:
    found: list[OpenTransaction] = field(default_factory=list)
    #: Partitions that could not be looked into, with the broker's error code.
    failed: dict[TopicPartition, int] = field(default_factory=dict)


class TransactionAdmin:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def list_transactions(
        self,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        running_longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """The transactional ids of every coordinator, sorted; what is left empty does not filter."""
        request = ListTransactionsRequest(state_filters=[*states], producer_id_filters=[*producer_ids])
        at_least = 0
        if running_longer_than_ms is not None:
            request.duration_filter = running_longer_than_ms
            # Kafka counts on after the end of a transaction, and from 1970 for an id that never had one.
            request.state_filters = [*(states or RUNNING)]
            at_least = 1
        if pattern is not None:
            request.transactional_id_pattern = pattern
            at_least = 2
        found = []
        for node_id in sorted(self._brokers.view(()).brokers):
            response = retrying(lambda node_id=node_id: self._list_at(node_id, request, at_least))  # type: ignore[misc]
            for listed in response.transaction_states:
                found.append(
                    ListedTransaction(listed.transactional_id, node_id, listed.producer_id, listed.transaction_state)
                )
        return sorted(found, key=lambda listed: listed.transactional_id)

    def _list_at(self, node_id: int, request: ListTransactionsRequest, at_least: int) -> ListTransactionsResponse:
        response = self._brokers.node(node_id).call(request, ListTransactionsResponse, at_least=at_least)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"listing the transactions of broker {node_id}")
        return response

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        """What their coordinators know of these ids; those nobody knows are missing."""
        wanted = [*transactional_ids]
        return retrying(lambda: self._describe(wanted))

    def _describe(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        found = {}
        for node_id, its_ids in self._brokers.transaction_coordinators(transactional_ids).items():
            request = DescribeTransactionsRequest(transactional_ids=its_ids)
            response = self._brokers.node(node_id).call(request, DescribeTransactionsResponse)
            for state in response.transaction_states:
                if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    continue
                if state.error_code != ErrorCode.NONE:
                    raise error_for(state.error_code, f'describing "{state.transactional_id}"')
                found[state.transactional_id] = _description(node_id, state)
        return found

    def open_transactions(
        self, view: ClusterView, partitions: Iterable[TopicPartition], at_broker: int | None = None
    ) -> PartitionsSearched:
        """The transactions open in these partitions, as their leaders know them, or as `at_broker` does."""
        wanted = [*partitions]
        groups = view.by_leader(wanted) if at_broker is None else {at_broker: wanted}
        searched = PartitionsSearched()
        for node_id, its_partitions in groups.items():
            if node_id == NO_LEADER:
                for partition in its_partitions:
                    searched.failed[partition] = ErrorCode.LEADER_NOT_AVAILABLE
                continue
            for start in range(0, len(its_partitions), _PARTITIONS_PER_REQUEST):
                self._search(node_id, its_partitions[start : start + _PARTITIONS_PER_REQUEST], searched)
        searched.found.sort(key=lambda transaction: (transaction.partition, transaction.start_offset))
        return searched

    def _search(self, node_id: int, partitions: list[TopicPartition], searched: PartitionsSearched) -> None:
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=of) for topic, of in _by_topic(partitions).items()]
        )
        response = self._brokers.node(node_id).call(request, DescribeProducersResponse)
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code != ErrorCode.NONE:
                    searched.failed[partition] = answer.error_code
                for producer in answer.active_producers:
                    if producer.current_txn_start_offset >= 0:
                        searched.found.append(_open_transaction(partition, producer))

    def write_abort_marker(self, view: ClusterView, hanging: OpenTransaction) -> None:
        """End a transaction in one partition, past its coordinator. Only for one that no coordinator will ever end."""
        partition = hanging.partition
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            transaction_result=False,
            # A leader that never saw a marker of this producer says -1.
            coordinator_epoch=max(hanging.coordinator_epoch, 0),
            topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        )
        leader = self._brokers.node(view.partitions[partition].leader)
        response = leader.call(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
        for result in response.markers:
            for topic in result.topics:
                for answer in topic.partitions:
                    if answer.error_code != ErrorCode.NONE:
                        raise error_for(answer.error_code, f"writing the abort marker to {partition}")

    def fence(self, description: TransactionDescription) -> ProducerIdentity:
        """Take over the transactional id: its producer is fenced, its open transaction aborted. Returns what comes after it."""
        timeout_ms = description.timeout_ms
        request = InitProducerIdRequest(
            transactional_id=description.transactional_id,
            # The id keeps the timeout its producers gave it.
            transaction_timeout_ms=timeout_ms if 0 < timeout_ms < NO_TIMEOUT_MS else _FENCING_TIMEOUT_MS,
        )
        return retrying(lambda: self._initialise(request))

    def _initialise(self, request: InitProducerIdRequest) -> ProducerIdentity:
        transactional_id = request.transactional_id or ""
        (node_id,) = self._brokers.transaction_coordinators([transactional_id])
        response = self._brokers.node(node_id).call(request, InitProducerIdResponse)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f'taking over "{transactional_id}"')
        return ProducerIdentity(response.producer_id, response.producer_epoch)


def _description(node_id: int, state: TransactionState) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=state.transactional_id,
        coordinator=node_id,
        state=state.transaction_state,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        start_ms=state.transaction_start_time_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, partition) for topic in state.topics for partition in topic.partitions
        ),
        client_id=state.client_id,
        client_host=state.client_host,
    )


def _open_transaction(partition: TopicPartition, producer: ProducerState) -> OpenTransaction:
    return OpenTransaction(
        partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
        producer.last_timestamp,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for topic, partition in partitions:
        groups.setdefault(topic, []).append(partition)
    return groups
