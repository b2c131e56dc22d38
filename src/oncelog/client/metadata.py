"""What a client knows of a cluster: its brokers, and who leads which partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from oncelog.model.address import Address
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.metadata import MetadataResponse

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionView:
    leader: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    brokers: dict[int, Address]
    partitions: dict[TopicPartition, PartitionView]
    #: Topics that were asked for and are not there, or may not be seen, with the broker's reason.
    refused: dict[str, int]

    def by_leader(self, wanted: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The partitions grouped by the broker that leads them, under NO_LEADER those that nobody leads now."""
        groups: dict[int, list[TopicPartition]] = {}
        for topic_partition in wanted:
            groups.setdefault(self.partitions[topic_partition].leader, []).append(topic_partition)
        return groups


def view_of(response: MetadataResponse) -> ClusterView:
    partitions = {}
    refused = {}
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            refused[name] = topic.error_code
            continue
        for partition in topic.partitions:
            view = PartitionView(partition.leader_id, tuple(partition.replica_nodes))
            partitions[TopicPartition(name, partition.partition_index)] = view
    brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
    return ClusterView(brokers, dict(sorted(partitions.items())), refused)
