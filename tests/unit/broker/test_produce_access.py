"""Answers for topics one may not write to, and for unknown ones, stand beside those that were appended (MISSION P6)."""

import pytest

from oncelog.access.authorizer import Operation
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.produce import PartitionProduceData, TopicProduceData
from oncelog.records.builder import build_batch
from tests.unit.broker.admin_nodes import AdminNode


@pytest.fixture
def node(tmp_path):
    node = AdminNode(tmp_path)
    yield node
    node.close()


@pytest.mark.seed("P6")
@pytest.mark.parametrize("version", [3, 9, 12])
def test_refused_and_unknown_topics_do_not_keep_the_others_out(node, version):
    for name in ("allowed", "forbidden"):
        node.create(name)
    node.access.forbidden.add((Operation.WRITE, "forbidden"))
    now_ms = node.node.clock.now_ms()
    topics = [
        TopicProduceData(
            name=name,
            partition_data=[PartitionProduceData(index=0, records=build_batch([(b"k", b"v")], timestamp_ms=now_ms))],
        )
        for name in ("forbidden", "allowed", "unknown", "__consumer_offsets")
    ]

    response = node.ask(ApiKey.PRODUCE, version, acks=-1, timeout_ms=1_000, topic_data=topics, transactional_id=None)

    codes = {topic.name: topic.partition_responses[0].error_code for topic in response.responses}
    assert codes == {
        "forbidden": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "allowed": ErrorCode.NONE,
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "__consumer_offsets": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert node.node.partitions.get("allowed", 0).log.log_end_offset == 1
    assert node.node.partitions.get("forbidden", 0).log.log_end_offset == 0
