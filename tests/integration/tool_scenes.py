"""Scenes for the transaction tools: a transaction left open by a real client, one left hanging by bytes no client should send."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from oncelog.cli.main import main
from oncelog.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from oncelog.records.builder import build_batch
from tests.integration.raw_connection import RawConnection
from tests.integration.topics import soon, unique

#: The last version whose client names its partitions itself (AddPartitionsToTxn): here it just does not.
PRODUCE_OF_V1_CLIENTS = 11


class Tools:
    """`oncelog COMMAND` for one cluster, without a process per call."""

    def __init__(self, bootstrap_servers: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._server = ["--bootstrap-server", bootstrap_servers]
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        server = [] if "--bootstrap-server" in arguments else self._server
        code = main([*arguments, *server])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def text(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        ended, out, err = self.run(*arguments, "--json")
        assert ended == code, err
        return json.loads(out)

    def lag(self, topic: str, partition: int = 0) -> Any:
        (lag,) = self.json("explain-lag", topic, "--partition", str(partition))
        return lag


def transactional_producer(bootstrap_servers: str, transactional_id: str, **settings: object) -> Producer:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    # Being fenced is part of the scene: librdkafka need not tell the world.
    quiet = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    producer = Producer({**quiet, "transactional.id": transactional_id, **names})
    producer.init_transactions(30)
    return producer


@contextmanager
def open_transaction(
    bootstrap_servers: str, topic: str, *partitions: int, **settings: object
) -> Iterator[tuple[Producer, str]]:
    """A producer in the middle of a transaction with a record in each partition, and its transactional id."""
    transactional_id = unique("billing")
    producer = transactional_producer(bootstrap_servers, transactional_id, **settings)
    producer.begin_transaction()
    for partition in partitions:
        producer.produce(topic, b"not committed", partition=partition)
    assert producer.flush(30) == 0
    try:
        yield producer, transactional_id
    finally:
        # Where the test has ended it already, there is nothing to abort.
        with suppress(KafkaException):
            producer.abort_transaction(10)


def produce_plain(bootstrap_servers: str, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for _ in range(count):
        producer.produce(topic, b"plain", partition=partition)
    assert producer.flush(30) == 0


def leave_hanging(
    port: int,
    topic: str,
    partition: int,
    producer_id: int,
    *,
    epoch: int = 0,
    age_ms: int = 20 * 60_000,
    name: str = "ghost",
) -> int:
    """Write transactionally to a partition that no coordinator was told of; gives the offset."""
    batch = build_batch(
        [(None, b"late")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
        timestamp_ms=int(time.time() * 1000) - age_ms,
    )
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[data])
    with RawConnection(port) as connection:

        def produce() -> PartitionProduceResponse:
            response = connection.call(request, PRODUCE_OF_V1_CLIENTS, ProduceResponse)
            return response.responses[0].partition_responses[0]

        answer = soon(produce, lambda answer: answer.error_code == 0)
    return answer.base_offset


def read_committed(bootstrap_servers: str, topic: str, partition: int = 0) -> list[bytes]:
    """All a read_committed reader sees of a partition now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": unique("reader"),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[bytes] = []
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                values.append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return values
        raise AssertionError(f"no end of {topic}-{partition} after {values}")
    finally:
        consumer.close()
