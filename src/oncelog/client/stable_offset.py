"""What holds back the last stable offset of a partition: every transaction open below the high watermark, the first one first.

The leader of the partition knows their producer ids and where they began, the coordinators know whose they are. A partition
whose transactions end while it is being looked at is looked at again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from oncelog.client.brokers import Brokers
from oncelog.client.errors import error_for
from oncelog.client.hanging_transactions import is_unknown, still_open, transactions_of_producers
from oncelog.client.metadata import NO_LEADER, ClusterView
from oncelog.client.transaction_admin import OpenTransaction, TransactionAdmin, TransactionDescription
from oncelog.model.error_code import ErrorCode
from oncelog.model.isolation_level import IsolationLevel
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST = -1
NO_REPLICA = -1
ISOLATION_SINCE = 2
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Holder:
    transaction: OpenTransaction
    #: What the coordinator knows of it; None when it is hanging and its producer has no transactional id any more.
    description: TransactionDescription | None
    hanging: bool


@dataclass(frozen=True, slots=True)
class PartitionLag:
    partition: TopicPartition
    last_stable_offset: int
    high_watermark: int
    #: The first is the one that holds the offset where it is; each one after it would, once those before it are gone.
    holders: tuple[Holder, ...]

    @property
    def held_back(self) -> int:
        return self.high_watermark - self.last_stable_offset


def explain_lag(brokers: Brokers, view: ClusterView, partitions: Iterable[TopicPartition]) -> list[PartitionLag]:
    """One answer per partition, in order. No holders though something is held back: the marker is on its way to the replicas."""
    admin = TransactionAdmin(brokers)
    explained: dict[TopicPartition, PartitionLag] = {}
    unclear = [*partitions]
    for _ in range(_LOOKS):
        for lag in _look(brokers, admin, view, unclear):
            explained[lag.partition] = lag
        unclear = [lag.partition for lag in explained.values() if lag.held_back and not lag.holders]
        if not unclear:
            break
    return [explained[partition] for partition in sorted(explained)]


def _look(
    brokers: Brokers, admin: TransactionAdmin, view: ClusterView, partitions: list[TopicPartition]
) -> Iterable[PartitionLag]:
    # In this order: what lies between the two is never negative, however fast the partition grows.
    stable = _latest(brokers, view, partitions, IsolationLevel.READ_COMMITTED)
    high = _latest(brokers, view, partitions, IsolationLevel.READ_UNCOMMITTED)
    behind = [partition for partition in partitions if stable[partition] < high[partition]]
    searched = admin.open_transactions(view, behind)
    for partition, code in searched.failed.items():
        raise error_for(code, f"looking at the producers of {partition}")
    holding = [found for found in searched.found if found.start_offset < high[found.partition]]
    known = transactions_of_producers(admin, {found.producer_id for found in holding})
    unknown = [found for found in holding if is_unknown(found, known.get(found.producer_id))]
    hanging = set(still_open(admin, view, unknown)) if unknown else set()
    holders: dict[TopicPartition, list[Holder]] = {}
    for found in holding:
        if found not in unknown or found in hanging:
            holder = Holder(found, known.get(found.producer_id), found in hanging)
            holders.setdefault(found.partition, []).append(holder)
    for partition in partitions:
        yield PartitionLag(partition, stable[partition], high[partition], tuple(holders.get(partition, ())))


def _latest(
    brokers: Brokers, view: ClusterView, partitions: list[TopicPartition], isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """The end of each partition as a reader under this isolation level sees it."""
    found = {}
    for node_id, its_partitions in view.by_leader(partitions).items():
        if node_id == NO_LEADER:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"asking for the end of {its_partitions[0]}")
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, partition in its_partitions:
            asked = topics.setdefault(topic, ListOffsetsTopic(name=topic))
            asked.partitions.append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
        request = ListOffsetsRequest(replica_id=NO_REPLICA, isolation_level=isolation, topics=[*topics.values()])
        response = brokers.node(node_id).call(request, ListOffsetsResponse, at_least=ISOLATION_SINCE)
        for topic_answer in response.topics:
            for answer in topic_answer.partitions:
                topic_partition = TopicPartition(topic_answer.name, answer.partition_index)
                if answer.error_code != ErrorCode.NONE:
                    raise error_for(answer.error_code, f"asking for the end of {topic_partition}")
                found[topic_partition] = answer.offset
    return found
