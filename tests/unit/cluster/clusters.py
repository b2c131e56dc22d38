"""Clusters to decide on, and topics to decide about."""

from collections.abc import Mapping

from oncelog.broker.config import validate_topic_configs
from oncelog.cluster.records import Decision, Record, apply
from oncelog.cluster.state import Cluster
from oncelog.cluster.topics import NewTopic, Results, TopicRules, decide_create_topics

RULES = TopicRules(num_partitions=3, replication_factor=1, check_configs=validate_topic_configs)


def a_cluster(*brokers: int) -> Cluster:
    cluster = Cluster()
    cluster.brokers = brokers or (1,)
    return cluster


def new_topic(
    name: str,
    num_partitions: int = -1,
    replication_factor: int = -1,
    assignments: tuple[tuple[int, list[int]], ...] = (),
    configs: Mapping[str, str | None] | None = None,
) -> NewTopic:
    topic_id = name.encode()[:16].ljust(16, b"\1")
    return NewTopic(name, topic_id, num_partitions, replication_factor, assignments, configs or {})


def carry_out(cluster: Cluster, decision: Decision[Results]) -> Results:
    apply_all(cluster, decision.records)
    return decision.reply


def apply_all(cluster: Cluster, records: list[Record]) -> None:
    for record in records:
        apply(cluster, record)


def create(cluster: Cluster, *topics: NewTopic) -> Results:
    return carry_out(cluster, decide_create_topics(cluster, topics, RULES))
