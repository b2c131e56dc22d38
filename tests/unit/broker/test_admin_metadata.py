"""Metadata, DescribeCluster and DescribeLogDirs, version by version, as Kafka 4.3 answers them."""

import pytest

from oncelog.access.authorizer import Operation
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_id import NO_TOPIC_ID
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic
from oncelog.protocol.messages.metadata import MetadataRequestTopic
from tests.unit.broker.admin_nodes import AdminNode

EVERY_VERSION = range(14)
NOT_ASKED = -(2**31)


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path)
    yield admin
    admin.close()


def metadata(admin, version, *names, **fields):
    return admin.ask(ApiKey.METADATA, version, topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def codes(reply):
    return {topic.name: topic.error_code for topic in reply.topics}


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_every_version_tells_brokers_topics_and_leaders(admin, version):
    topic = admin.create("orders", 2)

    reply = metadata(admin, version, "orders")

    [broker] = reply.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "broker.example", 9092, None)
    assert reply.controller_id == (1 if version >= 1 else -1)
    assert reply.cluster_id == (admin.node.cluster.cluster_id if version >= 2 else None)
    [answer] = reply.topics
    assert (answer.name, answer.error_code, answer.is_internal) == ("orders", 0, False)
    assert answer.topic_id == (topic.topic_id if version >= 10 else NO_TOPIC_ID)
    assert [
        (part.partition_index, part.leader_id, part.replica_nodes, part.isr_nodes) for part in answer.partitions
    ] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert [part.leader_epoch for part in answer.partitions] == [0 if version >= 7 else -1] * 2


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_all_topics_are_asked_for_with_null_and_before_version_1_with_nothing(admin, version):
    admin.create("a")
    admin.create("b")

    everything = admin.ask(ApiKey.METADATA, version, topics=[] if version == 0 else None)
    nothing = admin.ask(ApiKey.METADATA, version, topics=[])

    assert codes(everything) == {"a": 0, "b": 0}
    assert len(nothing.topics) == (2 if version == 0 else 0)


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_topic_that_is_asked_for_is_there_in_the_same_answer(admin, version):
    reply = metadata(admin, version, "fresh")

    assert codes(reply) == {"fresh": 0}
    assert len(reply.topics[0].partitions) == 1
    assert admin.node.partitions.get("fresh", 0).log.log_end_offset == 0


def test_a_topic_is_not_created_where_the_client_or_the_broker_does_not_want_it(admin, tmp_path):
    (tmp_path / "second").mkdir()
    other = AdminNode(tmp_path / "second", auto_create_topics_enable="false")

    assert codes(metadata(admin, 13, "fresh", allow_auto_topic_creation=False)) == {
        "fresh": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert codes(metadata(other, 13, "fresh")) == {"fresh": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    other.close()


def test_names_that_cannot_be_are_invalid_not_unknown(admin):
    admin.create("a.b")

    assert codes(metadata(admin, 13, "two words", "", ".", "a_b")) == dict.fromkeys(
        ["two words", "", ".", "a_b"], ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    assert codes(metadata(admin, 9, "two words", allow_auto_topic_creation=False)) == {
        "two words": ErrorCode.INVALID_TOPIC_EXCEPTION
    }


def test_a_default_that_cannot_be_met_is_told_instead_of_promised(tmp_path):
    admin = AdminNode(tmp_path, default_replication_factor="3")

    assert codes(metadata(admin, 13, "fresh")) == {"fresh": ErrorCode.INVALID_REPLICATION_FACTOR}
    admin.close()


def test_two_clients_that_ask_at_once_share_one_creation(admin):
    admin.store.holding = True
    first = admin.ask_later(ApiKey.METADATA, 12, topics=[MetadataRequestTopic(name="fresh")])
    second = admin.ask_later(ApiKey.METADATA, 12, topics=[MetadataRequestTopic(name="fresh")])
    assert not first.done
    assert len(admin.store.held) == 1

    admin.store.release()

    assert codes(first.value) == codes(second.value) == {"fresh": 0}
    assert first.value.topics[0].topic_id == second.value.topics[0].topic_id


def test_a_topic_named_twice_is_answered_once(admin):
    assert len(metadata(admin, 13, "a", "a").topics) == 1


def test_topics_can_be_asked_for_by_id_since_version_12(admin):
    topic = admin.create("orders")
    unknown = b"?" * 16
    asked = [
        MetadataRequestTopic(name=None, topic_id=topic.topic_id),
        MetadataRequestTopic(name=None, topic_id=unknown),
    ]

    found, missing = admin.ask(ApiKey.METADATA, 12, topics=asked).topics

    assert (found.name, found.error_code, len(found.partitions)) == ("orders", 0, 1)
    assert (missing.name, missing.error_code, missing.topic_id) == (None, ErrorCode.UNKNOWN_TOPIC_ID, unknown)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_version_12_are_an_invalid_request(admin, version):
    topic = admin.create("orders")

    reply = admin.ask(ApiKey.METADATA, version, topics=[MetadataRequestTopic(name="orders", topic_id=topic.topic_id)])

    assert codes(reply) == {"orders": ErrorCode.INVALID_REQUEST}


def test_internal_topics_are_made_the_way_the_broker_wants_them(admin):
    reply = metadata(admin, 13, "__consumer_offsets", "__transaction_state")

    assert [(topic.is_internal, len(topic.partitions)) for topic in reply.topics] == [(True, 50), (True, 50)]
    offsets = admin.node.cluster.topics["__consumer_offsets"]
    assert offsets.configs["cleanup.policy"] == "compact"
    assert offsets.configs["segment.bytes"] == "104857600"


def test_an_answer_follows_the_topic_as_it_changes(admin):
    admin.create("orders")
    assert len(metadata(admin, 13, "orders").topics[0].partitions) == 1

    from oncelog.protocol.messages.create_partitions import CreatePartitionsTopic

    more = CreatePartitionsTopic(name="orders", count=3, assignments=None)
    admin.ask(ApiKey.CREATE_PARTITIONS, 3, topics=[more])

    assert len(metadata(admin, 13, "orders").topics[0].partitions) == 3


def test_what_a_caller_may_do_is_told_to_whoever_asks(admin):
    admin.create("orders")

    silent = metadata(admin, 10, "orders")
    told = metadata(
        admin,
        10,
        "orders",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )

    assert silent.topics[0].topic_authorized_operations == silent.cluster_authorized_operations == NOT_ASKED
    assert told.topics[0].topic_authorized_operations == 3576  # as Kafka 4.3 without an authorizer
    assert told.cluster_authorized_operations == 8096
    assert metadata(admin, 13, "orders").topics[0].topic_authorized_operations == NOT_ASKED


def test_who_may_not_describe_a_topic_does_not_hear_of_it(admin):
    admin.create("secret")
    admin.create("open")
    admin.access.forbidden = {(Operation.DESCRIBE, "secret"), (Operation.DESCRIBE, "hidden")}

    assert codes(admin.ask(ApiKey.METADATA, 13, topics=None)) == {"open": 0}
    assert codes(metadata(admin, 13, "secret", "hidden")) == dict.fromkeys(
        ["secret", "hidden"], ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    assert "hidden" not in admin.node.cluster.topics


def test_who_may_not_create_gets_no_topic_by_asking(admin):
    admin.access.forbidden = {(Operation.CREATE, "kafka-cluster"), (Operation.CREATE, "fresh")}

    assert codes(metadata(admin, 13, "fresh", "allowed")) == {
        "fresh": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "allowed": 0,
    }


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(admin, version):
    reply = admin.ask(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)

    assert reply.error_code == 0
    assert reply.cluster_id == admin.node.cluster.cluster_id
    assert reply.controller_id == 1
    assert [(broker.broker_id, broker.host, broker.port) for broker in reply.brokers] == [(1, "broker.example", 9092)]
    assert reply.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_describe_cluster_of_controllers_is_for_controllers(admin, endpoint, code):
    assert admin.ask(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=endpoint).error_code == code


@pytest.mark.parametrize("version", range(1, 5))
def test_log_dirs_tell_the_size_of_each_partition(admin, tmp_path, version):
    admin.create("orders", 2)
    admin.produce("orders", 1, 10)

    [everything] = admin.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=None).results
    asked = DescribableLogDirTopic(topic="orders", partitions=[1, 99])
    unknown = DescribableLogDirTopic(topic="nosuch", partitions=[0])
    [some] = admin.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=[asked, unknown]).results

    assert everything.log_dir == str(tmp_path)
    assert [part.partition_index for part in everything.topics[0].partitions] == [0, 1]
    [topic] = some.topics
    [partition] = topic.partitions
    assert (topic.name, partition.partition_index, partition.offset_lag) == ("orders", 1, 0)
    assert partition.partition_size == admin.node.partitions.get("orders", 1).log.size_bytes > 0
    assert (everything.total_bytes >= everything.usable_bytes > 0) == (version >= 4)


def test_log_dirs_are_not_for_everybody(admin):
    admin.access.forbidden = {(Operation.DESCRIBE, "kafka-cluster")}

    reply = admin.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=None)

    assert (reply.error_code, reply.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
