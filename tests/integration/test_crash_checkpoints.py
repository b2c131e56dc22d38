"""What the data directory remembers between runs holds after a crash, and for the right topic."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import BrokerProcess, oncelog_only

pytestmark = oncelog_only


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(tmp_path / "data", {"log.flush.offset.checkpoint.interval.ms": "200"}) as broker:
        yield broker


def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def produce(broker: BrokerProcess, count: int, size: int = 10) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "batch.num.messages": 10})
    for number in range(count):
        producer.produce("orders", f"{number}".ljust(size).encode(), partition=0)
    assert producer.flush(20) == 0


def offsets(broker: BrokerProcess) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "nobody"})
    try:
        return consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=10)
    finally:
        consumer.close()


def delete_records(broker: BrokerProcess, before: int) -> None:
    client = admin(broker)
    for future in client.delete_records([TopicPartition("orders", 0, before)]).values():
        future.result(10)


def create(broker: BrokerProcess) -> None:
    client = admin(broker)
    for future in client.create_topics([NewTopic("orders", 1, 1)]).values():
        future.result(10)


def delete(broker: BrokerProcess) -> None:
    client = admin(broker)
    for future in client.delete_topics(["orders"]).values():
        future.result(10)


def test_deleted_records_stay_deleted_after_a_crash(broker):
    create(broker)
    produce(broker, 100)
    delete_records(broker, 60)
    broker.kill()
    broker.start()
    assert offsets(broker) == (60, 100)


def test_a_topic_made_anew_does_not_inherit_where_its_predecessor_began(broker):
    create(broker)
    produce(broker, 100)
    delete_records(broker, 100)
    broker.stop()
    broker.start()
    delete(broker)
    create(broker)
    produce(broker, 50)
    broker.kill()
    broker.start()
    assert offsets(broker) == (0, 50), "every acknowledged record of the new topic is there"


def test_recovery_after_a_crash_reads_only_what_was_not_flushed(tmp_path):
    """Segments that were rolled and flushed are not looked at again: even damage there goes unnoticed until it is read."""
    settings = {"log.flush.offset.checkpoint.interval.ms": "100", "log.segment.bytes": "1048576"}
    with BrokerProcess(tmp_path / "data", settings) as broker:
        create(broker)
        produce(broker, 300, size=10_000)
        first = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
        checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
        for _ in range(100):
            lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
            if any(line.startswith("orders 0 ") and int(line.split()[2]) > 0 for line in lines):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the recovery point never moved past the rolled segments")
        broker.kill()
        content = bytearray(first.read_bytes())
        content[5_000] ^= 0xFF
        first.write_bytes(content)
        broker.start()
        assert offsets(broker)[1] == 300
