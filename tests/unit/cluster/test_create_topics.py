"""What Kafka 4.3 answered to the same requests, code by code."""

import pytest

from oncelog.cluster.topic import Topic
from oncelog.cluster.topics import decide_create_topics
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from tests.unit.cluster.clusters import RULES, a_cluster, create, new_topic


def code_of(outcome):
    return outcome.code if isinstance(outcome, Refused) else ErrorCode.NONE


def test_a_topic_is_created_as_asked():
    cluster = a_cluster()

    topic = create(cluster, new_topic("orders", 2, 1, configs={"retention.ms": "5"}))["orders"]

    assert isinstance(topic, Topic)
    assert cluster.topics["orders"] is topic
    assert cluster.by_id[topic.topic_id] is topic
    assert [state.leader for state in topic.partitions] == [1, 1]
    assert topic.configs == {"retention.ms": "5"}
    assert not topic.internal


def test_minus_one_asks_for_the_brokers_defaults():
    topic = create(a_cluster(), new_topic("orders"))["orders"]

    assert len(topic.partitions) == RULES.num_partitions
    assert topic.replication_factor == RULES.replication_factor


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new_topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new_topic("with_dot"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 10_001), ErrorCode.POLICY_VIOLATION),
        (new_topic("t", 2, -1, ((0, [1]), (1, [1]))), ErrorCode.INVALID_REQUEST),
        (new_topic("t", -1, 1, ((0, [1]),)), ErrorCode.INVALID_REQUEST),
        (new_topic("t", -1, -1, ((1, [1]),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", -1, -1, ((0, [1]), (2, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", -1, -1, ((0, [1]), (0, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", -1, -1, ((0, [1, 1]),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", -1, -1, ((0, [9]),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", -1, -1, ((0, []),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new_topic("t", configs={"nope": "1"}), ErrorCode.INVALID_CONFIG),
        (new_topic("t", configs={"retention.ms": "abc"}), ErrorCode.INVALID_CONFIG),
        (new_topic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (new_topic("t", -1, -1, ((0, [1]), (1, [1]))), ErrorCode.NONE),
    ],
)
def test_each_mistake_has_its_code_and_changes_nothing(topic, code):
    cluster = a_cluster()
    create(cluster, new_topic("there"), new_topic("with.dot"))

    decision = decide_create_topics(cluster, [topic], RULES)

    assert code_of(decision.reply[topic.name]) == code
    assert bool(decision.records) == (code == ErrorCode.NONE)


def test_replicas_placed_by_hand_are_as_many_for_every_partition():
    outcome = create(a_cluster(1, 2), new_topic("t", -1, -1, ((0, [1]), (1, [1, 2]))))["t"]

    assert code_of(outcome) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_one_refused_topic_does_not_hold_up_the_others():
    outcomes = create(a_cluster(), new_topic("good"), new_topic("not good"), new_topic("better"))

    assert [code_of(outcome) for outcome in outcomes.values()] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


def test_a_name_that_stands_twice_in_a_request_is_not_created():
    cluster = a_cluster()

    outcomes = create(cluster, new_topic("twice"), new_topic("once"), new_topic("twice"))

    assert code_of(outcomes["twice"]) == ErrorCode.INVALID_REQUEST
    assert list(cluster.topics) == ["once"]


def test_names_of_one_request_may_not_collide_either():
    outcomes = create(a_cluster(), new_topic("a.b"), new_topic("a_b"))

    assert [code_of(outcome) for outcome in outcomes.values()] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_many_topics_of_one_request_share_the_bound_on_partitions():
    outcomes = create(a_cluster(), new_topic("a", 6_000), new_topic("b", 6_000), new_topic("c", 4_000))

    assert [code_of(outcome) for outcome in outcomes.values()] == [
        0,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.POLICY_VIOLATION,
    ]
