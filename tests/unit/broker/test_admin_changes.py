"""ClusterMetadata: what is in flight, what a restart finds, and what a store that fails does to those who wait."""

import pytest

from oncelog.broker.metadata import ClusterMetadata
from oncelog.broker.partitions import Partitions
from oncelog.cluster.records import BrokerConfigsStored, encode
from oncelog.cluster.state import ALL_BROKERS
from oncelog.cluster.topic import CONSUMER_OFFSETS, TRANSACTION_STATE, Topic
from oncelog.cluster.topics import NewTopic
from oncelog.log.storage import StorageFailed
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.runtime.metadata_store import CommitFailed, MetadataUnusable, Transaction
from tests.unit.broker.admin_nodes import AdminNode


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path)
    yield admin
    admin.close()


@pytest.fixture
def cluster(admin) -> ClusterMetadata:
    return admin.node.cluster


def new_topic(cluster, name):
    return NewTopic(name, cluster.new_topic_id())


def test_nobody_sees_a_topic_before_the_store_has_it(admin, cluster):
    admin.store.holding = True

    created = cluster.create_topics([new_topic(cluster, "orders")])

    assert not created.done
    assert cluster.topic("orders") is None
    assert isinstance(admin.node.partitions.get("orders", 0), Refused)

    admin.store.release()

    topic = cluster.topic("orders")
    assert created.value == {"orders": topic}
    assert cluster.topic_by_id(topic.topic_id) is topic
    assert not isinstance(admin.node.partitions.get("orders", 0), Refused)


def test_what_is_asked_while_a_commit_runs_shares_the_next_one(admin, cluster):
    admin.store.holding = True
    first = cluster.create_topics([new_topic(cluster, "first")])
    others = [cluster.create_topics([new_topic(cluster, f"topic-{number}")]) for number in range(20)]
    again = cluster.create_topics([new_topic(cluster, "topic-3")])

    admin.store.release()
    assert first.done
    [(transaction, _)] = admin.store.held
    assert len(transaction.writes) == 20
    admin.store.release()

    assert all(isinstance(topic, Topic) for answer in others for topic in answer.value.values())
    # Decided on top of the others: the name was taken, if only for a moment.
    assert again.value["topic-3"].code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert len(cluster.topics) == 21


def test_a_topic_may_come_go_and_come_again_within_one_transaction(admin, cluster, tmp_path):
    first = admin.create("orders")
    admin.store.holding = True
    cluster.create_topics([new_topic(cluster, "busy")])
    deleted = cluster.delete_topics([first])
    created = cluster.create_topics([new_topic(cluster, "orders")])

    admin.store.release()
    admin.store.release()

    assert deleted.value["orders"] is first
    second = created.value["orders"]
    assert cluster.topic("orders") is second
    assert second.topic_id != first.topic_id
    admin.close()
    again = AdminNode(tmp_path)
    assert again.node.cluster.topic("orders").topic_id == second.topic_id
    again.close()


def test_a_failed_commit_refuses_everybody_in_it_and_changes_nothing(admin, cluster):
    admin.store.holding = True
    lost = cluster.create_topics([new_topic(cluster, "lost")])
    next_one = cluster.create_topics([new_topic(cluster, "next")])

    admin.store.release(CommitFailed("no space left on device"))

    assert lost.value["lost"].code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in lost.value["lost"].why
    admin.store.release()
    assert list(cluster.topics) == ["next"]
    assert isinstance(next_one.value["next"], Topic)


def test_a_partition_that_cannot_be_opened_does_not_stop_the_rest(admin, cluster, monkeypatch):
    real = admin.node.partitions.create

    class Broken:
        def __getattr__(self, name):
            return getattr(admin_partitions, name)

        def create(self, topic, index, state):
            if index == 1:
                raise StorageFailed("orders-1: no space left on device")
            return real(topic, index, state)

    admin_partitions = admin.node.partitions
    admin.node.partitions = Broken()
    admin.create("orders", 3)
    admin.node.partitions = admin_partitions

    assert list(admin.node.partitions.of_topic("orders")) == [0, 2]


def test_a_bug_in_one_change_does_not_stop_the_next(admin, cluster, monkeypatch):
    admin.store.holding = True
    broken = cluster.create_topics([new_topic(cluster, "broken")])
    good = cluster.create_topics([new_topic(cluster, "good")])

    with monkeypatch.context() as patched:
        patched.setattr(Partitions, "create", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            admin.store.release()

    assert not broken.done
    admin.store.release()
    assert good.value == {"good": cluster.topic("good")}


def test_everything_is_back_after_a_restart_under_a_new_epoch(admin, cluster, tmp_path):
    topic = admin.create("orders", 3, retention_ms="77")
    cluster_id = cluster.cluster_id
    admin.close()

    for epoch in (1, 2):
        again = AdminNode(tmp_path)
        found = again.node.cluster.topic("orders")
        assert (found.topic_id, found.configs) == (topic.topic_id, {"retention.ms": "77"})
        assert [state.leader_epoch for state in found.partitions] == [epoch] * 3
        assert [partition.leader_epoch for partition in again.node.partitions] == [epoch] * 3
        assert again.node.cluster.cluster_id == cluster_id
        again.close()


def test_a_start_is_one_transaction_however_many_topics_there_are(admin, cluster, tmp_path):
    for number in range(30):
        admin.create(f"topic-{number}")
    before = max(entry.mod_revision for entry in admin.store.load().values())
    admin.close()

    again = AdminNode(tmp_path)
    revisions = {entry.mod_revision for key, entry in again.store.load().items() if key.startswith("topics/")}
    assert revisions == {before + 1}
    again.close()


def test_no_producer_id_is_given_twice_over_restarts(tmp_path):
    given: list[int] = []
    for count in (1500, 3, 1000):
        admin = AdminNode(tmp_path)
        given += [admin.node.cluster.next_producer_id().value for _ in range(count)]
        # No clean close: what a crash leaves is what the store has.
        admin.store.close()

    assert len(set(given)) == len(given)
    assert given == sorted(given)


def test_those_who_wait_for_producer_ids_share_a_reservation(admin, cluster):
    for _ in range(1000):
        assert cluster.next_producer_id().done
    admin.store.holding = True

    waiting = [cluster.next_producer_id() for _ in range(1500)]
    assert len(admin.store.held) == 1
    admin.store.release()
    assert sum(answer.done for answer in waiting) == 1000
    admin.store.release()

    assert [answer.value for answer in waiting] == list(range(1000, 2500))


def test_an_internal_topic_is_made_once_with_configs_of_its_own(tmp_path):
    admin = AdminNode(tmp_path, offsets_topic_num_partitions="7", transaction_state_log_min_isr="2")
    cluster = admin.node.cluster

    offsets = cluster.ensure_internal_topic(CONSUMER_OFFSETS).value
    assert cluster.ensure_internal_topic(CONSUMER_OFFSETS).value is offsets
    assert cluster.auto_create(CONSUMER_OFFSETS).value is offsets
    transactions = cluster.auto_create(TRANSACTION_STATE).value

    assert len(offsets.partitions) == 7
    assert offsets.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    # One node cannot have two replicas in sync: the topic must be writable all the same.
    assert transactions.configs["min.insync.replicas"] == "1"
    assert transactions.configs["compression.type"] == "uncompressed"
    admin.close()


def test_a_topic_that_somebody_else_creates_meanwhile_is_as_good(admin, cluster):
    admin.store.holding = True
    by_name = cluster.create_topics([new_topic(cluster, "orders")])
    by_use = cluster.auto_create("orders")

    admin.store.release()

    assert by_use.value is by_name.value["orders"] is cluster.topic("orders")


def test_a_stored_config_that_is_not_understood_is_left_out(admin, cluster, tmp_path):
    key, value = encode(BrokerConfigsStored(ALL_BROKERS, {"message.max.bytes": "2000", "from.the.future": "1"}))
    admin.store.commit_now(Transaction({key: value}))
    admin.close()

    again = AdminNode(tmp_path)

    assert again.node.config.message_max_bytes == 2000
    again.close()


def test_a_data_directory_of_another_broker_is_refused(admin, tmp_path):
    admin.create("orders")
    admin.close()

    with pytest.raises(MetadataUnusable, match=r"belongs to broker 1, not 2: set node\.id=1"):
        AdminNode(tmp_path, node_id="2")


def test_topic_ids_never_look_like_an_option(admin, cluster):
    drawn = iter([b"\xf8" + bytes(15), bytes(range(16))])
    admin.node.random_bytes = lambda count: next(drawn)

    assert cluster.new_topic_id() == bytes([0, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15])
