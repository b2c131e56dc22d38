"""Creating, growing and deleting topics: who asked for what, judged by Kafka's rules in Kafka's order.

A request names several topics, and each stands alone: what is wrong with one does not hold up the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from oncelog.cluster.placement import place, place_as_asked
from oncelog.cluster.records import Decision, Record, TopicRemoved, TopicStored
from oncelog.cluster.state import Cluster
from oncelog.cluster.topic import PartitionState, Topic
from oncelog.cluster.topic_names import check_topic_name
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import TopicId

#: Asks for the broker's default where a number is expected.
BROKER_DEFAULT = -1
MAX_PARTITIONS_PER_REQUEST = 10_000

Results: TypeAlias = dict[str, Topic | Refused]


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    #: Drawn by the caller: chance is no part of a decision. Used only if the topic is created.
    topic_id: TopicId
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    #: Partition index and the brokers for it, where an administrator places partitions by hand.
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MorePartitions:
    name: str
    #: How many partitions the topic shall have in the end.
    count: int
    #: Brokers for each partition that is added, or None to have them placed.
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What the broker's own config says about topics."""

    num_partitions: int
    replication_factor: int
    check_configs: Callable[[Mapping[str, str]], Refused | None]


def decide_create_topics(cluster: Cluster, wanted: Sequence[NewTopic], rules: TopicRules) -> Decision[Results]:
    results: Results = {}
    partitions_so_far = 0
    draft = cluster.copy() if len(wanted) > 1 else cluster
    for new in wanted:
        if new.name in results:
            results[new.name] = _duplicate()
            continue
        topic = _new_topic(draft, new, rules)
        if isinstance(topic, Topic):
            partitions_so_far += len(topic.partitions)
            if partitions_so_far > MAX_PARTITIONS_PER_REQUEST:
                topic = _too_many_partitions()
            elif draft is not cluster:
                draft.put_topic(topic)
        results[new.name] = topic
    records: list[Record] = [TopicStored(topic) for topic in results.values() if isinstance(topic, Topic)]
    return Decision(records, results)


def decide_create_partitions(cluster: Cluster, wanted: Sequence[MorePartitions]) -> Decision[Results]:
    results: Results = {}
    partitions_so_far = 0
    for more in wanted:
        if more.name in results:
            results[more.name] = _duplicate()
            continue
        topic = _grown_topic(cluster, more)
        if isinstance(topic, Topic):
            partitions_so_far += len(topic.partitions) - len(cluster.topics[more.name].partitions)
            if partitions_so_far > MAX_PARTITIONS_PER_REQUEST:
                topic = _too_many_partitions()
        results[more.name] = topic
    records: list[Record] = [TopicStored(topic) for topic in results.values() if isinstance(topic, Topic)]
    return Decision(records, results)


def decide_delete_topics(cluster: Cluster, wanted: Sequence[Topic]) -> Decision[Results]:
    """The topics go that were meant when the request was read: one made since then under the same name stays."""
    results: Results = {}
    for topic in wanted:
        if topic.topic_id not in cluster.by_id:
            results[topic.name] = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name} is already deleted")
        elif topic.internal:
            # Kafka would delete it and lose every group's offsets; nobody has ever wanted that.
            results[topic.name] = Refused(
                ErrorCode.INVALID_REQUEST,
                f"{topic.name} is the broker's own and cannot be deleted while it runs",
            )
        else:
            results[topic.name] = topic
    records: list[Record] = [TopicRemoved(topic.name) for topic in results.values() if isinstance(topic, Topic)]
    return Decision(records, results)


def _new_topic(cluster: Cluster, new: NewTopic, rules: TopicRules) -> Topic | Refused:
    bad_name = check_topic_name(new.name)
    if bad_name is not None:
        return bad_name
    if new.name in cluster.topics:
        return Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    collides_with = cluster.colliding_topic(new.name)
    if collides_with is not None:
        return Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{new.name}' collides with existing topic: {collides_with}"
        )
    configs = {}
    for name, value in new.configs.items():
        if value is None:
            return Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        configs[name] = value
    bad_config = rules.check_configs(configs)
    if bad_config is not None:
        return bad_config
    partitions = _assigned(cluster, new) if new.assignments else _placed(cluster, new, rules)
    if isinstance(partitions, Refused):
        return partitions
    return Topic(new.name, new.topic_id, tuple(partitions), configs)


def _placed(cluster: Cluster, new: NewTopic, rules: TopicRules) -> list[PartitionState] | Refused:
    if new.replication_factor != BROKER_DEFAULT and new.replication_factor <= 0:
        return Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if new.num_partitions != BROKER_DEFAULT and new.num_partitions <= 0:
        return Refused(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = rules.num_partitions if new.num_partitions == BROKER_DEFAULT else new.num_partitions
    if count > MAX_PARTITIONS_PER_REQUEST:
        return _too_many_partitions()
    factor = rules.replication_factor if new.replication_factor == BROKER_DEFAULT else new.replication_factor
    return place(cluster.brokers, count, factor, first=len(cluster.topics))


def _assigned(cluster: Cluster, new: NewTopic) -> list[PartitionState] | Refused:
    if new.replication_factor != BROKER_DEFAULT:
        return Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if new.num_partitions != BROKER_DEFAULT:
        return Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_index: dict[int, PartitionState] = {}
    for index, brokers in new.assignments:
        if index in by_index:
            return Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        partition = place_as_asked(cluster.brokers, brokers)
        if isinstance(partition, Refused):
            return partition
        by_index[index] = partition
    if sorted(by_index) != list(range(len(by_index))):
        return Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    partitions = [by_index[index] for index in range(len(by_index))]
    return _same_factor(partitions, len(partitions[0].replicas))


def _grown_topic(cluster: Cluster, more: MorePartitions) -> Topic | Refused:
    topic = cluster.topics.get(more.name)
    if topic is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if topic.internal:
        # Groups and transactional ids find their coordinator by the number of partitions.
        return Refused(
            ErrorCode.INVALID_REQUEST, f"{topic.name} is the broker's own: the number of its partitions is fixed"
        )
    have = len(topic.partitions)
    if more.count == have:
        return Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if more.count < have:
        return Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {have} partition(s); {more.count} would not be an increase.",
        )
    added = _more_placed(cluster, topic, more)
    if isinstance(added, Refused):
        return added
    return topic.with_partitions((*topic.partitions, *added))


def _more_placed(cluster: Cluster, topic: Topic, more: MorePartitions) -> list[PartitionState] | Refused:
    adding = more.count - len(topic.partitions)
    if more.assignments is None:
        if adding > MAX_PARTITIONS_PER_REQUEST:
            return _too_many_partitions()
        # The wheel goes on where it stood: the partition after the last is led by the broker after the last leader.
        last_leader = topic.partitions[-1].leader
        turned = cluster.brokers.index(last_leader) + 1 if last_leader in cluster.brokers else 0
        return place(cluster.brokers, adding, topic.replication_factor, first=turned)
    if len(more.assignments) != adding:
        return Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {adding} additional partition(s), but only {len(more.assignments)} assignment(s) "
            "were specified.",
        )
    added: list[PartitionState] = []
    for brokers in more.assignments:
        partition = place_as_asked(cluster.brokers, brokers)
        if isinstance(partition, Refused):
            return partition
        added.append(partition)
    return _same_factor(added, topic.replication_factor)


def _same_factor(partitions: list[PartitionState], factor: int) -> list[PartitionState] | Refused:
    for partition in partitions:
        if len(partition.replicas) != factor:
            return Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(partition.replicas)} replica(s), but "
                f"this is not consistent with previous partitions, which have {factor} replica(s).",
            )
    return partitions


def _duplicate() -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _too_many_partitions() -> Refused:
    return Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
