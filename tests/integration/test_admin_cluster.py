"""The cluster as clients see it: its one broker, its id, its log directories, the versions it speaks."""

import asyncio
from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient

from tests.brokers import BrokerProcess, StartBroker
from tests.integration.clients import BY_NAME, Message, kcat, with_kcat
from tests.integration.topics import MakeTopic, unique


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


def test_every_client_sees_the_same_cluster(bootstrap: str, broker: BrokerProcess, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(20)
    (node,) = described.nodes
    assert (node.host, node.port) == ("127.0.0.1", broker.port)
    assert described.controller.id == node.id
    assert len(described.cluster_id) == 22

    listed = admin.list_topics(timeout=20)
    assert (listed.cluster_id, listed.controller_id) == (described.cluster_id, node.id)
    assert list(listed.brokers) == [node.id]

    python = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        found = python.describe_cluster()
        assert (found["cluster_id"], found["controller_id"]) == (described.cluster_id, node.id)
        assert [one["broker_id"] for one in found["brokers"]] == [node.id]
    finally:
        python.close()

    async def cluster_of_aiokafka() -> Any:
        aio = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await aio.start()
        try:
            return await aio.describe_cluster()
        finally:
            await aio.close()

    assert asyncio.run(cluster_of_aiokafka())["cluster_id"] == described.cluster_id


@with_kcat
def test_kcat_lists_the_topic(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    assert f'topic "{topic}" with 3 partitions' in kcat(bootstrap, ["-L", "-t", topic]).decode()


def test_identity_survives_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    before = admin.describe_cluster().result(20)
    broker.kill()
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    after = admin.describe_cluster().result(20)
    assert (after.cluster_id, after.nodes[0].id) == (before.cluster_id, before.nodes[0].id)


def test_log_directories_tell_sizes(
    bootstrap: str, broker: BrokerProcess, python_admin: Any, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"x" * 10_000)], partition=1)
    (answer,) = python_admin.describe_log_dirs({topic: [0, 1]})
    (directory,) = answer["log_dirs"]
    assert directory["error_code"] == 0
    assert directory["log_dir"] == str(broker.data_directory)
    (found,) = directory["topics"]
    sizes = {partition["partition_index"]: partition["partition_size"] for partition in found["partitions"]}
    assert found["name"] == topic
    assert sizes[0] == 0
    assert 10_000 < sizes[1] < 10_500
    assert directory["total_bytes"] >= directory["usable_bytes"] > 0


def test_all_log_directories(python_admin: Any, topic: str) -> None:
    (answer,) = python_admin.describe_log_dirs()
    (directory,) = answer["log_dirs"]
    assert topic in {found["name"] for found in directory["topics"]}


# What current clients need (see the project's table of APIs): name -> lowest and highest version at least offered.
NEEDED = {
    "Produce": (3, 12),
    "Fetch": (4, 16),
    "ListOffsets": (1, 10),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 9),
    "OffsetFetch": (1, 9),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 5),
    "ListGroups": (0, 5),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeLogDirs": (1, 4),
    "CreatePartitions": (0, 3),
    "DeleteGroups": (0, 2),
    "OffsetDelete": (0, 0),
    "DescribeCluster": (0, 2),
}


def test_the_versions_that_clients_need_are_offered(python_admin: Any) -> None:
    offered = {key.name: versions for key, versions in python_admin.api_versions().items()}
    missing = {
        name: offered.get(name)
        for name, (low, high) in NEEDED.items()
        if name not in offered or offered[name][0] > low or offered[name][1] < high
    }
    assert missing == {}


def test_a_topic_nobody_made_is_unknown(admin: AdminClient) -> None:
    assert unique("absent") not in admin.list_topics(timeout=20).topics
