"""Groups listed, described and deleted, and their offsets read, altered and deleted, by real administrators."""

import asyncio
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.integration.members import Member, members, settle, share_evenly
from tests.integration.topics import MakeTopic, unique

PARTITIONS = 4


@pytest.fixture
def wide_topic(make_topic: MakeTopic) -> str:
    return make_topic(PARTITIONS)


@pytest.fixture
def live(bootstrap: str, wide_topic: str, group: str) -> Iterator[Member]:
    """A group with one member."""
    with members() as join:
        member = join(bootstrap, group, [wide_topic], client_id="the-client")
        settle([member], share_evenly([member], PARTITIONS))
        yield member


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    """As a group without members."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def offsets_of(admin: AdminClient, group: str, asked: list[TopicPartition] | None = None) -> dict[int, int]:
    request = ConsumerGroupTopicPartitions(group, asked)
    found = admin.list_consumer_group_offsets([request])[group].result(20)
    return {at.partition: at.offset for at in found.topic_partitions}


def refusal(future: Any) -> int:
    with pytest.raises(KafkaException) as refused:
        future.result(20)
    code: int = refused.value.args[0].code()
    return code


def test_a_live_group_is_described(admin: AdminClient, live: Member, wide_topic: str, group: str) -> None:
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert described.state == ConsumerGroupState.STABLE
    assert described.partition_assignor == "range"
    assert not described.is_simple_consumer_group
    assert described.coordinator.id in admin.list_topics(timeout=20).brokers
    (member,) = described.members
    assert member.client_id == "the-client"
    assert member.host.endswith("127.0.0.1")
    assert member.member_id.startswith("the-client-")
    assigned = sorted((at.topic, at.partition) for at in member.assignment.topic_partitions)
    assert assigned == [(wide_topic, partition) for partition in range(PARTITIONS)]


def test_an_empty_group_is_described(bootstrap: str, admin: AdminClient, wide_topic: str, group: str) -> None:
    commit(bootstrap, group, wide_topic, {0: 1})
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])


def test_groups_are_listed_by_state(
    bootstrap: str, admin: AdminClient, live: Member, wide_topic: str, group: str
) -> None:
    empty = unique("group")
    commit(bootstrap, empty, wide_topic, {0: 1})

    def listed(**options: Any) -> dict[str, ConsumerGroupState]:
        found = admin.list_consumer_groups(**options).result(20)
        assert found.errors == []
        return {group.group_id: group.state for group in found.valid}

    everything = listed()
    assert everything[group] == ConsumerGroupState.STABLE
    assert everything[empty] == ConsumerGroupState.EMPTY
    stable = listed(states={ConsumerGroupState.STABLE})
    assert group in stable
    assert empty not in stable


def test_kafka_python_lists_and_describes(python_admin: Any, live: Member, group: str) -> None:
    assert group in {found["group_id"] for found in python_admin.list_groups()}
    assert group in {found["group_id"] for found in python_admin.list_groups(states_filter=["Stable"])}
    assert group not in {found["group_id"] for found in python_admin.list_groups(states_filter=["Empty"])}
    described = python_admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_type"], described["protocol_data"]) == (
        "Stable",
        "consumer",
        "range",
    )


def test_aiokafka_lists_and_describes(bootstrap: str, live: Member, wide_topic: str, group: str) -> None:
    live.consumer.commit(offsets=[TopicPartition(wide_topic, 2, 33)], asynchronous=False)

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            assert (group, "consumer") in await admin.list_consumer_groups()
            (answer,) = await admin.describe_consumer_groups([group])
            ((error, name, state, *_),) = answer.groups
            assert (error, name, state) == (0, group, "Stable")
            offsets = await admin.list_consumer_group_offsets(group)
            assert offsets[AioTopicPartition(wide_topic, 2)].offset == 33
        finally:
            await admin.close()

    asyncio.run(run())


def test_an_unknown_group(admin: AdminClient) -> None:
    group = unique("absent")
    assert refusal(admin.delete_consumer_groups([group])[group]) == KafkaError.GROUP_ID_NOT_FOUND
    assert offsets_of(admin, group) == {}


def test_a_group_is_deleted_once_it_is_empty(
    bootstrap: str, admin: AdminClient, live: Member, wide_topic: str, group: str
) -> None:
    live.consumer.commit(offsets=[TopicPartition(wide_topic, 0, 3)], asynchronous=False)
    assert refusal(admin.delete_consumer_groups([group])[group]) == KafkaError.NON_EMPTY_GROUP
    live.close()
    admin.delete_consumer_groups([group])[group].result(20)

    assert group not in {found.group_id for found in admin.list_consumer_groups().result(20).valid}
    assert offsets_of(admin, group) == {}


def test_offsets_are_altered_while_nobody_is_there(
    bootstrap: str, admin: AdminClient, live: Member, wide_topic: str, group: str
) -> None:
    live.consumer.commit(offsets=[TopicPartition(wide_topic, 0, 3)], asynchronous=False)
    change = ConsumerGroupTopicPartitions(group, [TopicPartition(wide_topic, at, 10 + at) for at in range(2)])
    answered = admin.alter_consumer_group_offsets([change])[group]
    # The refusal stands at each partition.
    with pytest.raises(KafkaException) as refused:
        raise_first_error(answered.result(20))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert offsets_of(admin, group) == {0: 3}

    live.close()
    raise_first_error(admin.alter_consumer_group_offsets([change])[group].result(20))
    assert offsets_of(admin, group) == {0: 10, 1: 11}


def raise_first_error(answer: Any) -> None:
    for at in answer.topic_partitions:
        if at.error:
            raise KafkaException(at.error)


def test_offsets_of_chosen_partitions(bootstrap: str, admin: AdminClient, wide_topic: str, group: str) -> None:
    commit(bootstrap, group, wide_topic, {0: 7, 1: 8})
    asked = [TopicPartition(wide_topic, 1), TopicPartition(wide_topic, 2)]
    assert offsets_of(admin, group, asked) == {1: 8, 2: confluent_kafka.OFFSET_INVALID}


def test_offsets_of_several_groups_in_one_call(bootstrap: str, python_admin: Any, wide_topic: str) -> None:
    groups = [unique("group") for _ in range(3)]
    for number, group in enumerate(groups):
        commit(bootstrap, group, wide_topic, {0: number})
    found = python_admin.list_group_offsets(groups)
    at = kafka.TopicPartition(wide_topic, 0)
    assert [found[group][at].offset for group in groups] == [0, 1, 2]


def test_offsets_are_deleted(
    bootstrap: str, admin: AdminClient, python_admin: Any, wide_topic: str, group: str
) -> None:
    commit(bootstrap, group, wide_topic, {0: 7, 1: 8})
    at = kafka.TopicPartition(wide_topic, 0)
    assert python_admin.delete_group_offsets(group, [at]) == {at: kafka.errors.NoError}
    assert offsets_of(admin, group) == {1: 8}


def test_offsets_of_a_subscribed_topic_are_not_deleted(
    admin: AdminClient, python_admin: Any, live: Member, wide_topic: str, group: str
) -> None:
    live.consumer.commit(offsets=[TopicPartition(wide_topic, 0, 3)], asynchronous=False)
    at = kafka.TopicPartition(wide_topic, 0)
    assert python_admin.delete_group_offsets(group, [at]) == {at: kafka.errors.GroupSubscribedToTopicError}
    assert offsets_of(admin, group) == {0: 3}


def test_kafka_python_deletes_groups(bootstrap: str, python_admin: Any, wide_topic: str, group: str) -> None:
    commit(bootstrap, group, wide_topic, {0: 7})
    absent = unique("absent")
    assert python_admin.delete_groups([group, absent]) == {group: "OK", absent: "GroupIdNotFoundError"}


def test_offsets_of_a_deleted_topic_are_gone(bootstrap: str, admin: AdminClient, make_topic: MakeTopic) -> None:
    topic, other, group = make_topic(), make_topic(), unique("group")
    commit(bootstrap, group, topic, {0: 7})
    commit(bootstrap, group, other, {0: 9})
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    request = ConsumerGroupTopicPartitions(group)

    def names() -> set[str]:
        found = admin.list_consumer_group_offsets([request])[group].result(20)
        return {at.topic for at in found.topic_partitions}

    for _ in range(100):
        if names() == {other}:
            break
    assert names() == {other}
