"""CreateTopics, DeleteTopics and CreatePartitions through their handlers; the rules themselves are tested in unit/cluster."""

import pytest

from oncelog.access.authorizer import Operation
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import NO_TOPIC_ID
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from oncelog.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from oncelog.protocol.messages.delete_topics import DeleteTopicState
from tests.unit.broker.admin_nodes import AdminNode


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path)
    yield admin
    admin.close()


def creatable(name, num_partitions=-1, replication_factor=-1, **fields):
    return CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=replication_factor, **fields)


def create(admin, version, *topics, **fields):
    reply = admin.ask(ApiKey.CREATE_TOPICS, version, topics=list(topics), **fields)
    return {topic.name: topic for topic in reply.topics}


def delete(admin, version, *topics):
    if version >= 6:
        reply = admin.ask(ApiKey.DELETE_TOPICS, version, topics=list(topics))
    else:
        reply = admin.ask(ApiKey.DELETE_TOPICS, version, topic_names=list(topics))
    return [(result.name, result.error_code) for result in reply.responses]


# CreateTopics


@pytest.mark.parametrize("version", range(2, 8))
def test_a_created_topic_is_described_as_far_as_the_version_can(admin, version):
    configs = [CreatableTopicConfig(name="retention.ms", value="77")]

    result = create(admin, version, creatable("orders", 3, 1, configs=configs))["orders"]

    topic = admin.node.cluster.topics["orders"]
    assert (result.error_code, result.error_message) == (0, None)
    assert result.topic_id == (topic.topic_id if version >= 7 else NO_TOPIC_ID)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        described = {config.name: (config.value, config.config_source) for config in result.configs}
        assert len(described) == 33  # as many as Kafka 4.3
        assert described["retention.ms"] == ("77", 1)
        assert described["cleanup.policy"] == ("delete", 5)
    assert len(admin.node.partitions.of_topic("orders")) == 3
    assert admin.node.partitions.get("orders", 2).log.config.retention_ms == 77


def test_validating_only_creates_nothing(admin):
    results = create(admin, 7, creatable("orders", 3), creatable("bad name"), validate_only=True)

    assert {name: result.error_code for name, result in results.items()} == {
        "orders": 0,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert results["orders"].num_partitions == 3
    assert not admin.node.cluster.topics


def test_a_refused_topic_says_why(admin):
    result = create(admin, 7, creatable("orders", 1, 3))["orders"]

    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s)" in result.error_message
    assert (result.topic_id, result.num_partitions, result.replication_factor, result.configs) == (
        NO_TOPIC_ID,
        -1,
        -1,
        [],
    )


def test_partitions_can_be_placed_by_hand(admin):
    by_hand = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)]

    assert create(admin, 7, creatable("orders", assignments=by_hand))["orders"].num_partitions == 2


def test_kafkas_own_metadata_log_is_nobodys_topic(admin):
    assert (
        create(admin, 7, creatable("__cluster_metadata"))["__cluster_metadata"].error_code == ErrorCode.INVALID_REQUEST
    )


def test_who_may_not_create_does_not(admin):
    admin.access.forbidden = {(Operation.CREATE, "kafka-cluster"), (Operation.CREATE, "secret")}

    results = create(admin, 7, creatable("secret"), creatable("open"))

    assert {name: result.error_code for name, result in results.items()} == {
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "open": 0,
    }


def test_who_may_not_read_configs_creates_without_seeing_them(admin):
    admin.access.forbidden = {(Operation.DESCRIBE_CONFIGS, "orders")}

    result = create(admin, 7, creatable("orders"))["orders"]

    assert (result.error_code, result.topic_config_error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (result.num_partitions, result.configs) == (-1, [])


# DeleteTopics


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(admin, tmp_path, version):
    admin.create("orders", 2)
    assert (tmp_path / "orders-1").is_dir()

    assert delete(admin, version, "orders", "nosuch") == [
        ("orders", 0),
        ("nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]

    assert not admin.node.cluster.topics
    assert isinstance(admin.node.partitions.get("orders", 0), Refused)
    assert not list(tmp_path.glob("orders-*"))
    assert admin.groups.forgotten == ["orders"]


def test_topics_are_deleted_by_name_or_id_since_version_6(admin):
    first, second = admin.create("first"), admin.create("second")
    by_id = DeleteTopicState(name=None, topic_id=second.topic_id)

    reply = admin.ask(ApiKey.DELETE_TOPICS, 6, topics=[DeleteTopicState(name="first"), by_id])

    assert [(result.name, result.topic_id, result.error_code) for result in reply.responses] == [
        ("first", first.topic_id, 0),
        ("second", second.topic_id, 0),
    ]
    assert not admin.node.cluster.topics


def test_an_entry_that_is_unclear_deletes_nothing(admin):
    topic = admin.create("orders")
    unknown = b"?" * 16

    outcomes = delete(
        admin,
        6,
        DeleteTopicState(name="orders", topic_id=topic.topic_id),
        DeleteTopicState(name=None),
        DeleteTopicState(name=None, topic_id=unknown),
    )

    assert outcomes == [
        ("orders", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert "orders" in admin.node.cluster.topics


def test_a_topic_that_is_meant_twice_stays(admin):
    topic = admin.create("orders")
    by_name, by_id = DeleteTopicState(name="orders"), DeleteTopicState(name=None, topic_id=topic.topic_id)

    assert delete(admin, 6, by_name, by_name) == [("orders", ErrorCode.INVALID_REQUEST)]
    assert delete(admin, 6, by_id, by_id) == [(None, ErrorCode.INVALID_REQUEST)]
    assert delete(admin, 6, by_name, by_id) == [("orders", ErrorCode.INVALID_REQUEST)]
    assert delete(admin, 5, "orders", "orders") == [("orders", ErrorCode.INVALID_REQUEST)]
    assert "orders" in admin.node.cluster.topics


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_switched_off(tmp_path, version, code):
    admin = AdminNode(tmp_path, delete_topic_enable="false")
    admin.create("orders")

    wanted = DeleteTopicState(name="orders") if version >= 6 else "orders"
    assert delete(admin, version, wanted) == [("orders", code)]
    admin.close()


def test_who_may_not_delete_does_not(admin):
    admin.create("orders")
    admin.access.forbidden = {(Operation.DELETE, "orders")}

    assert delete(admin, 5, "orders") == [("orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    assert "orders" in admin.node.cluster.topics


def test_a_topic_made_anew_starts_empty_with_another_id(admin):
    first = admin.create("orders")
    admin.produce("orders", 0, 5)
    delete(admin, 5, "orders")

    second = admin.create("orders")

    assert second.topic_id != first.topic_id
    assert admin.node.partitions.get("orders", 0).log.log_end_offset == 0


# CreatePartitions


@pytest.mark.parametrize("version", range(4))
def test_a_topic_gets_more_partitions_and_keeps_its_records(admin, version):
    admin.create("orders", 2)
    admin.produce("orders", 1, 5)

    more = CreatePartitionsTopic(name="orders", count=4, assignments=None)
    [result] = admin.ask(ApiKey.CREATE_PARTITIONS, version, topics=[more]).results

    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert [partition.log.log_end_offset for partition in admin.node.partitions.of_topic("orders").values()] == [
        0,
        5,
        0,
        0,
    ]


def test_growth_can_be_tried_out_or_placed_by_hand(admin):
    admin.create("orders")
    more = CreatePartitionsTopic(name="orders", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[1])])

    [tried] = admin.ask(ApiKey.CREATE_PARTITIONS, 3, topics=[more], validate_only=True).results
    assert tried.error_code == 0
    assert len(admin.node.cluster.topics["orders"].partitions) == 1

    [done] = admin.ask(ApiKey.CREATE_PARTITIONS, 3, topics=[more]).results
    assert done.error_code == 0
    assert len(admin.node.cluster.topics["orders"].partitions) == 2


def test_growth_that_is_refused_says_why(admin):
    admin.create("orders", 3)
    admin.create("secret")
    admin.access.forbidden = {(Operation.ALTER, "secret")}
    asked = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("orders", "nosuch", "secret")]

    results = admin.ask(ApiKey.CREATE_PARTITIONS, 3, topics=asked).results

    assert {result.name: result.error_code for result in results} == {
        "orders": ErrorCode.INVALID_PARTITIONS,
        "nosuch": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert all(result.error_message for result in results)
