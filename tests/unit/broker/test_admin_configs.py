"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs through their handlers."""

import pytest

from oncelog.access.authorizer import Operation
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages import alter_configs, incremental_alter_configs
from oncelog.protocol.messages.describe_configs import DescribeConfigsResource
from tests.unit.broker.admin_nodes import AdminNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
FROM_TOPIC, FROM_BROKER_DYNAMIC, FROM_ALL_BROKERS, FROM_START, FROM_DEFAULT = 1, 2, 3, 4, 5


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path, log_retention_hours="2", num_partitions="4")
    admin.create("orders", retention_bytes="1000")
    yield admin
    admin.close()


def describe(admin, resource_type, name, *keys, version=4, **fields):
    asked = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=list(keys) or None
    )
    [result] = admin.ask(ApiKey.DESCRIBE_CONFIGS, version, resources=[asked], **fields).results
    return result


def configs(admin, resource_type, name, *keys, **fields):
    result = describe(admin, resource_type, name, *keys, **fields)
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def change(admin, resource_type, name, *changes, version=1, **fields):
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    [response] = admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=[resource], **fields).responses
    assert (response.resource_type, response.resource_name) == (resource_type, name)
    return response.error_code


def replace(admin, resource_type, name, version=2, validate_only=False, **values):
    resource = alter_configs.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
        ],
    )
    reply = admin.ask(ApiKey.ALTER_CONFIGS, version, resources=[resource], validate_only=validate_only)
    return reply.responses[0].error_code


# Describing


@pytest.mark.parametrize("version", range(1, 5))
def test_every_topic_config_is_described_with_its_source(admin, version):
    described = configs(admin, TOPIC, "orders", version=version)

    assert len(described) == 33
    assert (described["retention.bytes"].value, described["retention.bytes"].config_source) == ("1000", FROM_TOPIC)
    assert (described["retention.ms"].value, described["retention.ms"].config_source) == ("7200000", FROM_START)
    assert (described["segment.bytes"].value, described["segment.bytes"].config_source) == ("1073741824", FROM_DEFAULT)
    assert not any(config.read_only or config.is_sensitive or config.synonyms for config in described.values())
    assert described["retention.ms"].config_type == (5 if version >= 3 else 0)
    assert described["retention.ms"].documentation == (None if version >= 3 else "")


def test_only_the_configs_that_are_named_are_described(admin):
    assert set(configs(admin, TOPIC, "orders", "retention.ms", "nope", "log.retention.ms")) == {"retention.ms"}


def test_synonyms_tell_every_layer_the_one_that_counts_first(admin):
    change(admin, BROKER, "1", ("log.retention.ms", SET, "50"))
    change(admin, BROKER, "", ("log.retention.ms", SET, "60"))

    retention = configs(admin, TOPIC, "orders", "retention.ms", include_synonyms=True)["retention.ms"]

    assert (retention.value, retention.config_source) == ("50", FROM_BROKER_DYNAMIC)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in retention.synonyms] == [
        ("log.retention.ms", "50", FROM_BROKER_DYNAMIC),
        ("log.retention.ms", "60", FROM_ALL_BROKERS),
        ("log.retention.hours", "2", FROM_START),
        ("log.retention.hours", "168", FROM_DEFAULT),
    ]


def test_broker_configs_are_described_with_what_can_change(admin):
    described = configs(admin, BROKER, "1")

    assert len(described) > 300
    assert (described["num.partitions"].value, described["num.partitions"].read_only) == ("4", True)
    assert described["num.partitions"].config_source == FROM_START
    assert (described["log.retention.ms"].value, described["log.retention.ms"].read_only) == (None, False)
    assert described["node.id"].value == "1"
    assert described["log.dirs"].value == str(admin.node.data_dir)
    assert described["advertised.listeners"].value == "PLAINTEXT://broker.example:9092"
    assert (described["ssl.keystore.password"].value, described["ssl.keystore.password"].is_sensitive) == (None, True)


def test_the_default_broker_has_only_what_was_set_for_all(admin):
    assert configs(admin, BROKER, "") == {}

    change(admin, BROKER, "", ("message.max.bytes", SET, "2000"))

    assert {name: config.value for name, config in configs(admin, BROKER, "").items()} == {"message.max.bytes": "2000"}


def test_documentation_comes_on_request(admin):
    documented = configs(admin, TOPIC, "orders", "retention.ms", include_documentation=True)

    assert "deleted" in documented["retention.ms"].documentation


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "9", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", 0),
        (GROUP, "workers", 0),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "metrics", 0),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (3, "x", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_each_kind_of_resource_has_its_answer(admin, resource_type, name, code):
    assert describe(admin, resource_type, name).error_code == code


def test_who_may_not_read_configs_does_not(admin):
    admin.access.forbidden = {(Operation.DESCRIBE_CONFIGS, name) for name in ("orders", "kafka-cluster", "workers")}

    assert describe(admin, TOPIC, "orders").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert describe(admin, BROKER, "1").error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert describe(admin, GROUP, "workers").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


# Changing


@pytest.mark.parametrize("version", range(2))
def test_a_changed_topic_config_counts_at_once(admin, version):
    assert change(admin, TOPIC, "orders", ("retention.ms", SET, "77"), version=version) == 0

    assert admin.node.partitions.get("orders", 0).log.config.retention_ms == 77
    assert configs(admin, TOPIC, "orders", "retention.ms")["retention.ms"].config_source == FROM_TOPIC

    assert change(admin, TOPIC, "orders", ("retention.ms", DELETE, None), version=version) == 0
    assert admin.node.partitions.get("orders", 0).log.config.retention_ms == 7_200_000


def test_lists_are_added_to_and_taken_from(admin):
    assert change(admin, TOPIC, "orders", ("cleanup.policy", APPEND, "compact")) == 0
    assert configs(admin, TOPIC, "orders")["cleanup.policy"].value == "delete,compact"

    assert change(admin, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert configs(admin, TOPIC, "orders")["cleanup.policy"].value == "compact"


@pytest.mark.parametrize("version", range(3))
def test_replacing_configs_resets_what_is_not_named(admin, version):
    assert replace(admin, TOPIC, "orders", version=version, retention_ms="77") == 0

    assert admin.node.cluster.topics["orders"].configs == {"retention.ms": "77"}


def test_a_changed_broker_config_reaches_every_topic_without_its_own(admin):
    admin.create("own", max_message_bytes="500")

    assert change(admin, BROKER, "", ("message.max.bytes", SET, "2000")) == 0

    assert admin.node.config.message_max_bytes == 2000
    assert admin.node.partitions.get("orders", 0).log.config.max_message_bytes == 2000
    assert admin.node.partitions.get("own", 0).log.config.max_message_bytes == 500

    assert change(admin, BROKER, "1", ("message.max.bytes", SET, "3000")) == 0
    assert admin.node.config.message_max_bytes == 3000
    assert change(admin, BROKER, "1", ("message.max.bytes", DELETE, None)) == 0
    assert admin.node.config.message_max_bytes == 2000


def test_changed_configs_survive_a_restart(admin, tmp_path):
    change(admin, BROKER, "", ("message.max.bytes", SET, "2000"))
    change(admin, TOPIC, "orders", ("retention.ms", SET, "77"))
    admin.close()

    again = AdminNode(tmp_path)

    assert again.node.config.message_max_bytes == 2000
    assert again.node.partitions.get("orders", 0).log.config.retention_ms == 77
    assert again.node.partitions.get("orders", 0).log.config.max_message_bytes == 2000
    # The fixture closes the first again, which is fine; this one is ours.
    again.close()


def test_validating_only_changes_nothing(admin):
    assert change(admin, TOPIC, "orders", ("retention.ms", SET, "77"), validate_only=True) == 0
    assert change(admin, TOPIC, "orders", ("retention.ms", SET, "x"), validate_only=True) == ErrorCode.INVALID_CONFIG
    assert replace(admin, TOPIC, "orders", validate_only=True) == 0

    assert admin.node.cluster.topics["orders"].configs == {"retention.bytes": "1000"}


@pytest.mark.parametrize(
    ("resource_type", "name", "changes", "code"),
    [
        (TOPIC, "orders", [("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "nosuch", [("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "x", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "", [("num.partitions", SET, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "", [("log.segment.bytes", SET, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "", [("num.io.threads", SET, "4")], 0),
        (LOGGER, "1", [("root", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        (GROUP, "workers", [("consumer.session.timeout.ms", SET, "46000")], ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "metrics", [], 0),
        (99, "x", [("x", SET, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_each_kind_of_change_has_its_answer(admin, resource_type, name, changes, code):
    assert change(admin, resource_type, name, *changes) == code


def test_a_resource_that_is_named_twice_is_changed_in_no_way(admin):
    twice = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC,
            resource_name="orders",
            configs=[incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=SET, value=value)],
        )
        for value in ("1", "2")
    ]

    responses = admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=twice).responses

    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert "retention.ms" not in admin.node.cluster.topics["orders"].configs


def test_who_may_not_change_configs_does_not(admin):
    admin.access.forbidden = {(Operation.ALTER_CONFIGS, name) for name in ("orders", "kafka-cluster")}

    assert change(admin, TOPIC, "orders", ("retention.ms", SET, "1")) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert change(admin, BROKER, "1", ("log.retention.ms", SET, "1")) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
