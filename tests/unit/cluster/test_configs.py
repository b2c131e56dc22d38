import pytest

from oncelog.broker.config import load_config
from oncelog.broker.config_rules import BrokerConfigRules, TopicConfigRules
from oncelog.cluster.configs import (
    ConfigChange,
    ConfigOperation,
    decide_broker_configs,
    decide_topic_configs,
)
from oncelog.cluster.state import ALL_BROKERS
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from tests.unit.cluster.clusters import a_cluster, apply_all, create, new_topic

SET, DELETE, APPEND, SUBTRACT = ConfigOperation


def change_topic(cluster, *changes, replace_all=False, **broker_configs):
    rules = TopicConfigRules(load_config({name.replace("_", "."): value for name, value in broker_configs.items()}))
    topic_id = cluster.topics["orders"].topic_id
    decision = decide_topic_configs(cluster, topic_id, changes, rules, replace_all=replace_all)
    if isinstance(decision, Refused):
        return decision
    apply_all(cluster, decision.records)
    return cluster.topics["orders"].configs


def change_broker(cluster, broker, *changes):
    rules = BrokerConfigRules(load_config({}), for_all=broker == ALL_BROKERS)
    decision = decide_broker_configs(cluster, broker, changes, rules, replace_all=False)
    if isinstance(decision, Refused):
        return decision
    apply_all(cluster, decision.records)
    return cluster.broker_configs[broker]


@pytest.fixture
def cluster():
    cluster = a_cluster()
    create(cluster, new_topic("orders", configs={"retention.ms": "7", "segment.ms": "70"}))
    return cluster


def test_single_configs_are_set_and_removed(cluster):
    changed = change_topic(
        cluster,
        ConfigChange("retention.ms", SET, "8"),
        ConfigChange("segment.ms", DELETE),
        ConfigChange("nope", DELETE),
    )

    assert changed == {"retention.ms": "8"}


def test_replacing_forgets_what_is_not_named(cluster):
    assert change_topic(cluster, ConfigChange("max.message.bytes", SET, "99"), replace_all=True) == {
        "max.message.bytes": "99"
    }
    assert change_topic(cluster, replace_all=True) == {}


@pytest.mark.parametrize(
    ("operation", "value", "result"),
    [(APPEND, "compact", "delete,compact"), (APPEND, "delete", "delete"), (SUBTRACT, "compact", "delete")],
)
def test_a_list_that_was_not_set_starts_from_what_the_broker_says(cluster, operation, value, result):
    assert change_topic(cluster, ConfigChange("cleanup.policy", operation, value))["cleanup.policy"] == result


def test_a_list_takes_the_value_of_the_brokers_own_config(cluster):
    changed = change_topic(
        cluster, ConfigChange("cleanup.policy", SUBTRACT, "delete"), log_cleanup_policy="compact,delete"
    )

    assert changed["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([ConfigChange("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([ConfigChange("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        ([ConfigChange("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([ConfigChange("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([ConfigChange("cleanup.policy", APPEND, "nope")], ErrorCode.INVALID_CONFIG),
        ([ConfigChange("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        ([ConfigChange("retention.ms", SET, "1"), ConfigChange("retention.ms", DELETE)], ErrorCode.INVALID_REQUEST),
        ([ConfigChange("max.message.bytes", SET, "1"), ConfigChange("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        (
            [ConfigChange("min.compaction.lag.ms", SET, "9"), ConfigChange("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_one_bad_change_refuses_them_all(cluster, changes, code):
    before = cluster.topics["orders"]

    refused = change_topic(cluster, *changes)

    assert isinstance(refused, Refused)
    assert refused.code == code
    assert cluster.topics["orders"] is before


def test_a_change_that_changes_nothing_writes_nothing(cluster):
    rules = TopicConfigRules(load_config({}))
    topic = cluster.topics["orders"]

    decision = decide_topic_configs(
        cluster, topic.topic_id, [ConfigChange("retention.ms", SET, "7")], rules, replace_all=False
    )

    assert decision.records == []


def test_a_topic_deleted_meanwhile_is_unknown(cluster):
    refused = decide_topic_configs(cluster, b"?" * 16, [], TopicConfigRules(load_config({})), replace_all=False)

    assert refused.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_broker_configs_are_kept_for_all_brokers_and_for_one():
    cluster = a_cluster()

    change_broker(cluster, ALL_BROKERS, ConfigChange("log.retention.ms", SET, "5"))
    change_broker(cluster, "1", ConfigChange("log.retention.ms", SET, "6"))

    assert cluster.broker_configs == {ALL_BROKERS: {"log.retention.ms": "5"}, "1": {"log.retention.ms": "6"}}


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (ConfigChange("node.id", SET, "5"), ErrorCode.INVALID_REQUEST, "node.id"),
        (ConfigChange("auto.create.topics.enable", SET, "false"), ErrorCode.INVALID_REQUEST, "dynamically"),
        (ConfigChange("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST, "dynamically"),
        (ConfigChange("log.retention.ms", SET, "abc"), ErrorCode.INVALID_REQUEST, "log.retention.ms"),
        (ConfigChange("log.retention.mss", SET, "5"), ErrorCode.INVALID_CONFIG, "did you mean log.retention.ms"),
    ],
)
def test_a_broker_config_that_cannot_change_says_why(change, code, says):
    refused = change_broker(a_cluster(), ALL_BROKERS, change)

    assert isinstance(refused, Refused)
    assert refused.code == code
    assert says in refused.why
