"""Hundreds of producers at once, each with a transactional id of its own: all outcomes hold, nobody waits for another."""

import asyncio
import random
import struct
import threading
from typing import Any, TypeVar

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer

from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from oncelog.protocol.messages.end_txn import EndTxnResponse
from oncelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from oncelog.protocol.messages.produce import ProduceResponse
from tests.brokers import StartBroker, target_is_kafka
from tests.integration.topics import create_topic
from tests.integration.transaction_reading import read_partition, wait_until_stable
from tests.integration.transaction_wire import (
    TRY_AGAIN,
    V1,
    V2,
    Generation,
    Wire,
    batch_of,
    by_topic,
    end_request,
    produce_request,
    warm_up,
)

T = TypeVar("T")

PARTITIONS = 4
#: Each producer writes to its own transactions; a value says whose it is, which transaction it is of, and how that ended.
Outcomes = dict[bytes, list[bytes]]


class AsyncWire:
    """The raw connection of one among hundreds of producers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def call(self, message: object, version: int, answer: type[T]) -> T:
        self._writer.write(encode_request(1, "raw", message, version))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(answer, version, await self._reader.readexactly(size))[1]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def until_taken(ask: Any, code_of: Any) -> Any:
    while True:
        answer = await ask()
        code = ErrorCode(code_of(answer))
        if code is ErrorCode.NONE:
            return answer
        assert target_is_kafka() and code in TRY_AGAIN, code.name
        await asyncio.sleep(0.02)


async def produce_transactions(port: int, topic: str, name: str, generation: Generation, count: int) -> list[bytes]:
    """What of it was committed."""
    chance = random.Random(name)
    wire = AsyncWire(*await asyncio.open_connection("127.0.0.1", port))
    committed_values = []
    try:
        asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        made = await until_taken(
            lambda: wire.call(asked, generation.init, InitProducerIdResponse), lambda answer: answer.error_code
        )
        producer = ProducerIdentity(made.producer_id, made.producer_epoch)
        sequences = dict.fromkeys(range(PARTITIONS), 0)
        for number in range(count):
            partitions = [TopicPartition(topic, at) for at in chance.sample(range(PARTITIONS), 2)]
            committed = chance.random() < 0.7
            value = f"{name} {number} {'commit' if committed else 'abort'}".encode()
            if generation is V1:
                add = AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=producer.producer_id,
                    v3_and_below_producer_epoch=producer.producer_epoch,
                    v3_and_below_topics=[
                        AddPartitionsToTxnTopic(name=topic, partitions=found)
                        for topic, found in by_topic(partitions).items()
                    ],
                )
                await until_taken(
                    lambda add=add: wire.call(add, 3, AddPartitionsToTxnResponse),
                    lambda answer: max(
                        result.partition_error_code
                        for topic in answer.results_by_topic_v3_and_below
                        for result in topic.results_by_partition
                    ),
                )
            batches = {at: batch_of([value], producer, sequences[at.partition]) for at in partitions}
            await until_taken(
                lambda batches=batches: wire.call(produce_request(name, batches), generation.produce, ProduceResponse),
                lambda answer: max(
                    result.error_code for topic in answer.responses for result in topic.partition_responses
                ),
            )
            end = end_request(name, producer, committed=committed)
            ended = await until_taken(
                lambda end=end: wire.call(end, generation.end, EndTxnResponse), lambda answer: answer.error_code
            )
            if generation is V2:
                producer = ProducerIdentity(ended.producer_id, ended.producer_epoch)
                sequences = dict.fromkeys(range(PARTITIONS), 0)
            else:
                for at in partitions:
                    sequences[at.partition] += 1
            if committed:
                committed_values += [value] * 2
    finally:
        await wire.close()
    return committed_values


def check_values(port: int, topic: str, expected: list[bytes]) -> None:
    """Every committed value is there, each once per partition, the values of each producer in order; nothing else is."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    found: list[bytes] = []
    with Wire(port) as wire:
        wait_until_stable(wire, *partitions)
        for partition in partitions:
            values = read_partition(wire, partition)
            assert len(set(values)) == len(values), f"{partition} has a value twice"
            numbers: dict[bytes, int] = {}
            for value in values:
                name, number, _ = value.split()
                assert numbers.get(name, -1) < int(number), f"{partition} has {name!r} out of order"
                numbers[name] = int(number)
            found += values
    assert sorted(found) == sorted(expected)


@pytest.mark.seed("I3", "I14")
@pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
def test_three_hundred_producers_by_hand(start_broker: StartBroker, generation: Generation) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers, PARTITIONS)
    with Wire(broker.port) as wire:
        warm_up(wire)

    async def run() -> list[bytes]:
        producers = [produce_transactions(broker.port, topic, f"id-{number}", generation, 5) for number in range(300)]
        return [value for values in await asyncio.gather(*producers) for value in values]

    check_values(broker.port, topic, asyncio.run(run()))


def test_fifty_producers_of_librdkafka(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers, PARTITIONS)
    with Wire(broker.port) as wire:
        warm_up(wire)
    expected: list[bytes] = []
    problems: list[BaseException] = []

    def run(name: str) -> None:
        try:
            chance = random.Random(name)
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "linger.ms": 0}
            )
            producer.init_transactions(60)
            for number in range(4):
                committed = chance.random() < 0.7
                value = f"{name} {number} {'commit' if committed else 'abort'}".encode()
                producer.begin_transaction()
                for at in chance.sample(range(PARTITIONS), 2):
                    producer.produce(topic, value, partition=at)
                producer.flush(60)
                producer.commit_transaction(60) if committed else producer.abort_transaction(60)
                if committed:
                    expected.extend([value] * 2)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(f"id-{number}",)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    check_values(broker.port, topic, expected)


def test_fifty_producers_of_aiokafka(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers, PARTITIONS)
    with Wire(broker.port) as wire:
        warm_up(wire)
    expected: list[bytes] = []

    async def produce(name: str) -> None:
        chance = random.Random(name)
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
        await producer.start()
        try:
            for number in range(4):
                committed = chance.random() < 0.7
                value = f"{name} {number} {'commit' if committed else 'abort'}".encode()
                await producer.begin_transaction()
                partitions = chance.sample(range(PARTITIONS), 2)
                await asyncio.gather(*[await producer.send(topic, value, partition=at) for at in partitions])
                if committed:
                    await producer.commit_transaction()
                    expected.extend([value] * 2)
                else:
                    await producer.abort_transaction()
        finally:
            await producer.stop()

    async def run() -> None:
        await asyncio.gather(*(produce(f"id-{number}") for number in range(50)))

    asyncio.run(run())
    check_values(broker.port, topic, expected)
