"""DeleteRecords, OffsetForLeaderEpoch and InitProducerId through their handlers."""

import pytest

from oncelog.access.authorizer import Operation
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from oncelog.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from oncelog.runtime.metadata_store import CommitFailed
from tests.unit.broker.admin_nodes import AdminNode


@pytest.fixture
def admin(tmp_path):
    admin = AdminNode(tmp_path)
    yield admin
    admin.close()


def delete_records(admin, topic, partition, offset, version=2):
    asked = DeleteRecordsTopic(
        name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
    )
    [answer] = admin.ask(ApiKey.DELETE_RECORDS, version, topics=[asked]).topics
    [result] = answer.partitions
    assert (answer.name, result.partition_index) == (topic, partition)
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_are_gone(admin, version):
    admin.create("orders")
    admin.produce("orders", 0, 10)

    assert delete_records(admin, "orders", 0, 3, version) == (0, 3)
    assert delete_records(admin, "orders", 0, 2, version) == (0, 3)
    assert delete_records(admin, "orders", 0, -1, version) == (0, 10)

    assert admin.node.partitions.get("orders", 0).log.log_start_offset == 10


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "code"),
    [
        ("orders", 0, 11, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 9, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nosuch", 0, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0, 0, ErrorCode.POLICY_VIOLATION),
        ("both", 0, 0, 0),
        ("__consumer_offsets", 0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("secret", 0, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_records_that_may_not_go_stay(admin, topic, partition, offset, code):
    for name, policy in (
        ("orders", "delete"),
        ("compacted", "compact"),
        ("both", "compact,delete"),
        ("secret", "delete"),
    ):
        admin.create(name, cleanup_policy=policy)
    admin.node.cluster.ensure_internal_topic("__consumer_offsets")
    admin.produce("orders", 0, 10)
    admin.access.forbidden = {(Operation.DELETE, "secret")}

    assert delete_records(admin, topic, partition, offset) == (code, 0 if code == 0 else -1)
    assert admin.node.partitions.get("orders", 0).log.log_start_offset == 0


def epoch_end(admin, topic, partition, leader_epoch, current=-1, version=4):
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch)
    reply = admin.ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, version, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )
    [answer] = reply.topics[0].partitions
    assert (reply.topics[0].topic, answer.partition) == (topic, partition)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", range(2, 5))
def test_an_epoch_ends_where_the_next_begins(tmp_path, version):
    first = AdminNode(tmp_path)
    first.create("orders")
    first.produce("orders", 0, 10)
    assert epoch_end(first, "orders", 0, 0, version=version) == (0, 0, 10)
    first.close()

    second = AdminNode(tmp_path)
    # Nothing is written under the new epoch yet: both end at the end of the log.
    assert epoch_end(second, "orders", 0, 0, version=version) == (0, 0, 10)
    assert epoch_end(second, "orders", 0, 1, version=version) == (0, 1, 10)
    second.produce("orders", 0, 5)
    assert epoch_end(second, "orders", 0, 0, version=version) == (0, 0, 10)
    assert epoch_end(second, "orders", 0, 1, version=version) == (0, 1, 15)
    assert epoch_end(second, "orders", 0, 7, version=version) == (0, -1, -1)
    assert epoch_end(second, "orders", 0, -1, version=version) == (0, -1, -1)
    second.close()


def test_an_epoch_that_wrote_nothing_ended_with_the_one_before(tmp_path):
    first = AdminNode(tmp_path)
    first.create("orders")
    first.produce("orders", 0, 10)
    first.close()
    AdminNode(tmp_path).close()

    third = AdminNode(tmp_path)

    assert third.node.partitions.get("orders", 0).leader_epoch == 2
    assert epoch_end(third, "orders", 0, 1) == (0, 0, 10)
    third.close()


@pytest.mark.parametrize(
    ("topic", "partition", "current", "code"),
    [
        ("orders", 0, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ("orders", 9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nosuch", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("secret", 0, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_an_epoch_of_nothing_is_refused(admin, topic, partition, current, code):
    admin.create("orders")
    admin.access.forbidden = {(Operation.DESCRIBE, "secret")}

    assert epoch_end(admin, topic, partition, 0, current) == (code, -1, -1)


def test_a_client_with_an_old_epoch_is_fenced(tmp_path):
    first = AdminNode(tmp_path)
    first.create("orders")
    first.close()

    second = AdminNode(tmp_path)
    assert epoch_end(second, "orders", 0, 0, current=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    second.close()


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(admin, version):
    drawn = [
        admin.ask(ApiKey.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout_ms=1000)
        for _ in range(3)
    ]

    assert [(reply.error_code, reply.producer_id, reply.producer_epoch) for reply in drawn] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": "", "transaction_timeout_ms": 1000}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_id": 5, "producer_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_id": -1, "producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_id": 5, "producer_epoch": 3}, ErrorCode.NONE),
    ],
)
def test_a_producer_names_its_old_identity_whole_or_not_at_all(admin, fields, code):
    reply = admin.ask(ApiKey.INIT_PRODUCER_ID, 4, **fields)

    assert reply.error_code == code
    assert (reply.producer_id, reply.producer_epoch) == ((0, 0) if code == 0 else (-1, -1))


def test_who_may_not_write_gets_no_identity(admin):
    admin.access.forbidden = {(Operation.IDEMPOTENT_WRITE, "kafka-cluster"), (Operation.WRITE, "billing")}

    plain = admin.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
    transactional = admin.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id="billing")

    assert plain.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert transactional.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_ids_that_cannot_be_reserved_are_asked_for_again(admin):
    for _ in range(1000):
        admin.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
    admin.store.holding = True
    waiting = admin.ask_later(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)

    admin.store.release(CommitFailed("no space left"))

    assert waiting.value.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
