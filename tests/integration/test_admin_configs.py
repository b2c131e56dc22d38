"""Configurations described and altered by real administrators, and felt by clients."""

import asyncio
from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import MakeTopic, unique

SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def of_topic(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


def describe(admin: AdminClient, resource: ConfigResource) -> dict[str, Any]:
    found: dict[str, Any] = admin.describe_configs([resource])[resource].result(20)
    return found


def alter(admin: AdminClient, topic: str, *changes: tuple[AlterConfigOpType, str, str | None]) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=operation) for operation, name, value in changes]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(20)


def refusal(admin: AdminClient, topic: str, *changes: tuple[AlterConfigOpType, str, str | None]) -> int:
    with pytest.raises(KafkaException) as refused:
        alter(admin, topic, *changes)
    code: int = refused.value.args[0].code()
    return code


def test_a_topics_configs_say_where_each_value_comes_from(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"retention.ms": "123456"})
    configs = describe(admin, of_topic(topic))

    own = configs["retention.ms"]
    assert (own.value, own.source, own.is_default) == ("123456", ConfigSource.DYNAMIC_TOPIC_CONFIG.value, False)
    default = configs["cleanup.policy"]
    assert (default.value, default.source) == ("delete", ConfigSource.DEFAULT_CONFIG.value)
    assert default.is_default
    assert not any(entry.is_sensitive or entry.is_read_only for entry in configs.values())


# Kafka 4.3's names and defaults of topic configs that every client may ask for.
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def test_a_topics_defaults_are_kafkas(admin: AdminClient, topic: str) -> None:
    configs = describe(admin, of_topic(topic))
    assert {name: configs[name].value for name in DEFAULTS if name in configs} == DEFAULTS


def test_values_are_set_and_reset(admin: AdminClient, topic: str) -> None:
    alter(admin, topic, (SET, "retention.ms", "1000"), (SET, "max.message.bytes", "2000000"))
    configs = describe(admin, of_topic(topic))
    assert (configs["retention.ms"].value, configs["max.message.bytes"].value) == ("1000", "2000000")

    alter(admin, topic, (DELETE, "retention.ms", None))
    configs = describe(admin, of_topic(topic))
    assert (configs["retention.ms"].value, configs["max.message.bytes"].value) == ("604800000", "2000000")
    assert configs["retention.ms"].is_default


def test_lists_are_appended_to_and_subtracted_from(admin: AdminClient, topic: str) -> None:
    alter(admin, topic, (APPEND, "cleanup.policy", "compact"))
    assert set(describe(admin, of_topic(topic))["cleanup.policy"].value.split(",")) == {"delete", "compact"}
    alter(admin, topic, (SUBTRACT, "cleanup.policy", "delete"))
    assert describe(admin, of_topic(topic))["cleanup.policy"].value == "compact"


def test_bad_changes_are_refused_whole(admin: AdminClient, topic: str) -> None:
    good = (SET, "retention.ms", "1000")
    assert refusal(admin, topic, good, (SET, "no.such.config", "1")) == KafkaError.INVALID_CONFIG
    assert refusal(admin, topic, good, (SET, "segment.bytes", "many")) == KafkaError.INVALID_CONFIG
    assert refusal(admin, topic, good, (APPEND, "retention.bytes", "1")) == KafkaError.INVALID_CONFIG
    assert refusal(admin, unique("absent"), good) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert describe(admin, of_topic(topic))["retention.ms"].is_default


def test_a_change_is_felt_at_once(bootstrap: str, admin: AdminClient, topic: str) -> None:
    client = BY_NAME["confluent-kafka"]
    message = Message(b"x" * 5000)
    client.produce(bootstrap, topic, [message])
    alter(admin, topic, (SET, "max.message.bytes", "1000"))
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        client.produce(bootstrap, topic, [message])
    alter(admin, topic, (DELETE, "max.message.bytes", None))
    client.produce(bootstrap, topic, [message])
    assert len(client.read(bootstrap, topic, 2)) == 2


def test_the_older_call_replaces_all_values(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"retention.ms": "1000", "segment.ms": "5000"})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "6000"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        admin.alter_configs([resource])[resource].result(20)
    configs = describe(admin, of_topic(topic))
    assert configs["segment.ms"].value == "6000"
    assert configs["retention.ms"].is_default


def test_configs_of_a_missing_topic(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as refused:
        describe(admin, of_topic(unique("absent")))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_brokers_configs(admin: AdminClient) -> None:
    broker = next(iter(admin.list_topics(timeout=20).brokers))
    configs = describe(admin, ConfigResource(ResourceType.BROKER, str(broker)))
    assert configs["num.partitions"].value == "1"
    assert configs["log.retention.hours"].value == "168"
    assert configs["message.max.bytes"].value == "1048588"
    # Given on the command line of the test's broker.
    assert configs["group.min.session.timeout.ms"].value == "300"
    assert configs["group.min.session.timeout.ms"].source == ConfigSource.STATIC_BROKER_CONFIG.value


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


def test_kafka_python_describes_and_alters(python_admin: Any, topic: str) -> None:
    def retention() -> Any:
        resource = kafka.admin.ConfigResource("TOPIC", topic)
        return python_admin.describe_configs([resource], config_filter="all")["topic"][topic]["retention.ms"]["value"]

    assert retention() == "604800000"
    change = kafka.admin.ConfigResource("TOPIC", topic, configs={"retention.ms": "1000"})
    python_admin.alter_configs([change])
    assert retention() == "1000"
    python_admin.reset_configs([kafka.admin.ConfigResource("TOPIC", topic, configs={"retention.ms": None})])
    assert retention() == "604800000"
    # The older call.
    change = kafka.admin.ConfigResource("TOPIC", topic, configs={"retention.ms": "2000"})
    python_admin.alter_configs([change], incremental=False)
    assert retention() == "2000"


def test_synonyms_tell_what_stands_behind_a_value(python_admin: Any, topic: str) -> None:
    resource = kafka.admin.ConfigResource("TOPIC", topic)
    found = python_admin.describe_configs([resource], include_synonyms=True, config_filter="all")["topic"][topic]
    assert [synonym["name"] for synonym in found["max.message.bytes"]["synonyms"]] == ["message.max.bytes"]


def test_aiokafka_describes_and_alters(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            resource = AioConfigResource(AioConfigResourceType.TOPIC, topic, configs={"retention.ms": "4321"})
            await admin.alter_configs([resource])
            (answer,) = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, topic)])
            (found,) = answer.resources
            values = {entry[0]: entry[1] for entry in found[4]}
            assert values["retention.ms"] == "4321"
        finally:
            await admin.close()

    asyncio.run(run())
