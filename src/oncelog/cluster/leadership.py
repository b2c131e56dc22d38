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
        partitions = tuple(
            [_under_next_epoch(state) if state.leader == broker else state for state in topic.partitions]
        )
        if partitions != topic.partitions:
            records.append(TopicStored(topic.with_partitions(partitions)))
    return Decision(records, None)


def _under_next_epoch(state: PartitionState) -> PartitionState:
    return PartitionState(state.leader, state.leader_epoch + 1, state.isr, state.replicas)
