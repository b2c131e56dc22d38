"""Topics made, grown, described and deleted by the administrators of three libraries."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.brokers import target_is_kafka
from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import MakeTopic, soon, unique

CONFLUENT = BY_NAME["confluent-kafka"]


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


def refusal(future: Any) -> int:
    with pytest.raises(KafkaException) as refused:
        future.result(20)
    code: int = refused.value.args[0].code()
    return code


def create(admin: AdminClient, new: NewTopic, **options: Any) -> Any:
    return admin.create_topics([new], operation_timeout=20, **options)[new.topic]


def describe(admin: AdminClient, topic: str) -> Any:
    return admin.describe_topics(TopicCollection([topic]))[topic].result(20)


def partition_count(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=20).topics[topic].partitions)


def test_a_new_topic_is_as_it_was_asked_for(admin: AdminClient) -> None:
    topic = unique("topic")
    create(admin, NewTopic(topic, 5, 1, config={"retention.ms": "12345"})).result(20)
    soon(lambda: partition_count(admin, topic), lambda count: count == 5)

    described = describe(admin, topic)
    assert described.name == topic
    assert not described.is_internal
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3, 4]
    leader = described.partitions[0].leader.id
    for partition in described.partitions:
        assert partition.leader.id == leader
        assert [node.id for node in partition.replicas] == [leader]
        assert [node.id for node in partition.isr] == [leader]


def test_a_topic_can_be_used_at_once(bootstrap: str, admin: AdminClient) -> None:
    for _ in range(5):
        topic = unique("topic")
        create(admin, NewTopic(topic, 3, 1)).result(20)
        CONFLUENT.produce(bootstrap, topic, [Message(b"x")], partition=2)
        assert [message.offset for message in CONFLUENT.read(bootstrap, topic, 1, partition=2)] == [0]


def test_defaults_are_the_brokers(python_admin: Any) -> None:
    topic = unique("topic")
    answer = python_admin.create_topics([topic])
    (created,) = answer["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (1, 1)
    # The answer tells the new topic's configuration (KIP-525).
    assert created["configs"]["cleanup.policy"]["value"] == "delete"
    soon(python_admin.list_topics, lambda topics: topic in topics)


def test_replicas_can_be_placed_by_hand(admin: AdminClient, python_admin: Any) -> None:
    broker = next(iter(admin.list_topics(timeout=20).brokers))
    topic = unique("topic")
    python_admin.create_topics({topic: {"assignments": {0: [broker], 1: [broker]}}})
    soon(lambda: partition_count(admin, topic), lambda count: count == 2)


def test_a_topic_that_is_there_is_refused(admin: AdminClient, topic: str) -> None:
    assert refusal(create(admin, NewTopic(topic, 1, 1))) == KafkaError.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "config", "code"),
    [
        ("ok", 1, 3, {}, KafkaError.INVALID_REPLICATION_FACTOR),
        ("ok", 1, 1, {"no.such.config": "1"}, KafkaError.INVALID_CONFIG),
        ("ok", 1, 1, {"retention.ms": "soon"}, KafkaError.INVALID_CONFIG),
        ("ok", 1, 1, {"cleanup.policy": "shred"}, KafkaError.INVALID_CONFIG),
        ("ok", 1, 1, {"max.message.bytes": "-7"}, KafkaError.INVALID_CONFIG),
        ("bad name", 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
        ("..", 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
        ("x" * 250, 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_is_refused(
    admin: AdminClient, name: str, partitions: int, replicas: int, config: dict[str, str], code: int
) -> None:
    topic = unique("refused") if name == "ok" else name
    assert refusal(create(admin, NewTopic(topic, partitions, replicas, config=config))) == code
    assert topic not in admin.list_topics(timeout=20).topics


def test_no_partitions_is_refused(python_admin: Any) -> None:
    topic = unique("refused")
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        python_admin.create_topics({topic: {"num_partitions": 0, "replication_factor": 1}})


def test_one_refusal_does_not_stop_the_others(admin: AdminClient, topic: str) -> None:
    first, last = unique("topic"), unique("topic")
    futures = admin.create_topics([NewTopic(name, 1, 1) for name in (first, topic, last)], operation_timeout=20)
    futures[first].result(20)
    futures[last].result(20)
    assert refusal(futures[topic]) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validation_alone_makes_nothing(admin: AdminClient) -> None:
    topic = unique("absent")
    create(admin, NewTopic(topic, 1, 1), validate_only=True).result(20)
    assert topic not in admin.list_topics(timeout=20).topics
    assert refusal(create(admin, NewTopic(topic, 1, 3), validate_only=True)) == KafkaError.INVALID_REPLICATION_FACTOR


def test_a_deleted_topic_is_gone_and_its_name_is_free(bootstrap: str, admin: AdminClient, topic: str) -> None:
    CONFLUENT.produce(bootstrap, topic, [Message(b"of the first life")])
    first_id = str(describe(admin, topic).topic_id)
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    soon(lambda: admin.list_topics(timeout=20).topics, lambda topics: topic not in topics)

    create(admin, NewTopic(topic, 2, 1)).result(20)
    CONFLUENT.produce(bootstrap, topic, [Message(b"of the second life")])
    assert [message.value for message in CONFLUENT.read(bootstrap, topic, 1)] == [b"of the second life"]
    described = describe(admin, topic)
    assert len(described.partitions) == 2
    assert str(described.topic_id) != first_id


def test_a_topic_that_is_not_there_cannot_be_deleted(admin: AdminClient) -> None:
    topic = unique("absent")
    assert refusal(admin.delete_topics([topic])[topic]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_can_be_deleted_by_id(admin: AdminClient, python_admin: Any, topic: str) -> None:
    (described,) = python_admin.describe_topics([topic])
    python_admin.delete_topics([UUID(described["topic_id"])])
    soon(lambda: admin.list_topics(timeout=20).topics, lambda topics: topic not in topics)


def test_a_reader_hears_that_its_topic_was_deleted(bootstrap: str, admin: AdminClient, topic: str, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 200,
            "topic.metadata.propagation.max.ms": 200,
        }
    )
    try:
        CONFLUENT.produce(bootstrap, topic, [Message(b"x")])
        consumer.subscribe([topic])
        first = consumer.poll(20)
        assert first is not None
        assert first.error() is None
        admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
        heard = consumer.poll(20)
        assert heard is not None
        error: Any = heard.error()
        assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    finally:
        consumer.close()


def test_a_topic_grows(bootstrap: str, admin: AdminClient, topic: str) -> None:
    CONFLUENT.produce(bootstrap, topic, [Message(b"old")])
    admin.create_partitions([NewPartitions(topic, 4)], operation_timeout=20)[topic].result(20)
    soon(lambda: partition_count(admin, topic), lambda count: count == 4)

    CONFLUENT.produce(bootstrap, topic, [Message(b"new")], partition=3)
    assert [message.value for message in CONFLUENT.read(bootstrap, topic, 1, partition=0)] == [b"old"]
    assert [message.value for message in CONFLUENT.read(bootstrap, topic, 1, partition=3)] == [b"new"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_topic_never_shrinks(admin: AdminClient, make_topic: MakeTopic, count: int) -> None:
    topic = make_topic(3)
    assert refusal(admin.create_partitions([NewPartitions(topic, count)])[topic]) == KafkaError.INVALID_PARTITIONS
    assert len(describe(admin, topic).partitions) == 3


def test_growing_what_is_not_there_is_refused(admin: AdminClient) -> None:
    topic = unique("absent")
    assert refusal(admin.create_partitions([NewPartitions(topic, 3)])[topic]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_kafka_python_describes_what_it_made(python_admin: Any) -> None:
    topic = unique("topic")
    python_admin.create_topics({topic: {"num_partitions": 2, "configs": {"compression.type": "lz4"}}})
    python_admin.create_partitions({topic: 3})
    (described,) = soon(lambda: python_admin.describe_topics([topic]), lambda found: len(found[0]["partitions"]) == 3)
    assert described["error_code"] == 0
    assert sorted(partition["partition_index"] for partition in described["partitions"]) == [0, 1, 2]
    (by_id,) = python_admin.describe_topics([UUID(described["topic_id"])])
    assert by_id["name"] == topic
    python_admin.delete_topics([topic])


def test_aiokafka_administers_topics(bootstrap: str) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            topic = unique("topic")
            answer = await admin.create_topics([AioNewTopic(topic, 2, 1, topic_configs={"retention.ms": "777000"})])
            assert [error[1] for error in answer.topic_errors] == [0]
            while target_is_kafka() and topic not in await admin.list_topics():
                await asyncio.sleep(0.05)
            (described,) = await admin.describe_topics([topic])
            assert len(described["partitions"]) == 2
            answer = await admin.delete_topics([topic])
            assert [error[1] for error in answer.topic_error_codes] == [0]
        finally:
            await admin.close()

    asyncio.run(run())


def test_records_can_be_deleted_up_to_an_offset(bootstrap: str, admin: AdminClient, topic: str) -> None:
    CONFLUENT.produce(bootstrap, topic, [Message(b"%d" % number) for number in range(10)])
    at = confluent_kafka.TopicPartition(topic, 0, 4)
    assert admin.delete_records([at])[at].result(20).low_watermark == 4
    assert [message.offset for message in CONFLUENT.read(bootstrap, topic, 6, offset=4)] == list(range(4, 10))

    # -1 is all that is there.
    at = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_END)
    assert admin.delete_records([at])[at].result(20).low_watermark == 10
    CONFLUENT.produce(bootstrap, topic, [Message(b"next")])
    assert [message.offset for message in CONFLUENT.read(bootstrap, topic, 1, offset=10)] == [10]


def test_records_beyond_the_end_cannot_be_deleted(admin: AdminClient, topic: str) -> None:
    at = confluent_kafka.TopicPartition(topic, 0, 4)
    assert refusal(admin.delete_records([at])[at]) == KafkaError.OFFSET_OUT_OF_RANGE


def test_kafka_python_deletes_records(bootstrap: str, python_admin: Any, topic: str) -> None:
    CONFLUENT.produce(bootstrap, topic, [Message(b"%d" % number) for number in range(10)])
    at = kafka.TopicPartition(topic, 0)
    answer = python_admin.delete_records({at: 7})
    assert answer[at]["low_watermark"] == 7
    (found,) = python_admin.list_partition_offsets({at: kafka.admin.OffsetSpec.EARLIEST}).values()
    assert found.offset == 7
