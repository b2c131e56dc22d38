import pytest

from oncelog.cluster.topic import CONSUMER_OFFSETS, Topic
from oncelog.cluster.topics import MorePartitions, decide_create_partitions, decide_delete_topics
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from tests.unit.cluster.clusters import a_cluster, carry_out, create, new_topic


def code_of(outcome):
    return outcome.code if isinstance(outcome, Refused) else ErrorCode.NONE


def grow(cluster, *wanted):
    return carry_out(cluster, decide_create_partitions(cluster, wanted))


def delete(cluster, *topics):
    return carry_out(cluster, decide_delete_topics(cluster, topics))


def test_a_topic_grows_and_keeps_what_it_had():
    cluster = a_cluster()
    before = create(cluster, new_topic("orders", 2))["orders"]

    after = grow(cluster, MorePartitions("orders", 5))["orders"]

    assert isinstance(after, Topic)
    assert after.partitions[:2] == before.partitions
    assert len(cluster.topics["orders"].partitions) == 5
    assert cluster.by_id[before.topic_id] is after


def test_added_partitions_go_on_round_the_brokers():
    cluster = a_cluster(1, 2, 3)
    create(cluster, new_topic("orders", 2))

    after = grow(cluster, MorePartitions("orders", 5))["orders"]

    assert [state.leader for state in after.partitions] == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (MorePartitions("orders", 2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("orders", 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("orders", -1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("nosuch", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("orders", 20_000), ErrorCode.POLICY_VIOLATION),
        (MorePartitions("orders", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 3, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(CONSUMER_OFFSETS, 51), ErrorCode.INVALID_REQUEST),
        (MorePartitions("orders", 3, [[2]]), ErrorCode.NONE),
    ],
)
def test_each_mistake_has_its_code_and_changes_nothing(wanted, code):
    cluster = a_cluster(1, 2)
    create(cluster, new_topic("orders", 2), new_topic(CONSUMER_OFFSETS, 50))

    decision = decide_create_partitions(cluster, [wanted])

    assert code_of(decision.reply[wanted.name]) == code
    assert bool(decision.records) == (code == ErrorCode.NONE)


def test_a_topic_that_is_named_twice_does_not_grow():
    cluster = a_cluster()
    create(cluster, new_topic("orders", 2))

    outcome = grow(cluster, MorePartitions("orders", 3), MorePartitions("orders", 4))["orders"]

    assert code_of(outcome) == ErrorCode.INVALID_REQUEST
    assert len(cluster.topics["orders"].partitions) == 2


def test_a_deleted_topic_is_gone_by_name_and_by_id():
    cluster = a_cluster()
    topic = create(cluster, new_topic("orders"))["orders"]

    assert delete(cluster, topic) == {"orders": topic}

    assert not cluster.topics
    assert not cluster.by_id


def test_a_deleted_topics_name_is_free_again():
    cluster = a_cluster()
    delete(cluster, create(cluster, new_topic("a.b"))["a.b"])

    assert isinstance(create(cluster, new_topic("a_b"))["a_b"], Topic)


def test_the_successor_of_a_deleted_topic_is_not_deleted_in_its_place():
    cluster = a_cluster()
    first = create(cluster, new_topic("orders"))["orders"]
    delete(cluster, first)
    second = Topic("orders", b"another topic id", first.partitions, {})
    cluster.put_topic(second)

    outcome = delete(cluster, first)["orders"]

    assert code_of(outcome) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.topics["orders"] is second


def test_the_brokers_own_topics_stay():
    cluster = a_cluster()
    topic = create(cluster, new_topic(CONSUMER_OFFSETS, 50))[CONSUMER_OFFSETS]

    assert topic.internal
    assert code_of(delete(cluster, topic)[CONSUMER_OFFSETS]) == ErrorCode.INVALID_REQUEST
