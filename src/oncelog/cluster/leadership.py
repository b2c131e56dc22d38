"""Who leads a partition, and since which epoch.

An epoch names one uninterrupted stretch of leadership. A broker that comes back may have lost the tail of a log, so it
leads on under a new epoch: a client that had read further learns of it by asking where the old epoch ended
(OffsetForLeaderEpoch).
"""

from oncelog.cluster.records import Decision, Record, TopicStored
from oncelog.cluster.state import Cluster
from oncelog.cluster.topic import PartitionState


def decide_lead_again(cluster: Cluster, broker: int) -> Decision[None]:
    """The broker was away, if only for a moment: everything it leads gets a new epoch."""
    records: list[Record] = []
    for topic in cluster.topics.values():
        if any(partition.leader == broker for partition in topic.partitions):
            partitions = tuple(
                _under_next_epoch(partition) if partition.leader == broker else partition
                for partition in topic.partitions
            )
            records.append(TopicStored(topic.with_partitions(partitions)))
    return Decision(records, None)


def _under_next_epoch(partition: PartitionState) -> PartitionState:
    return partition._replace(leader_epoch=partition.leader_epoch + 1)
