"""Consume, transform, produce: a group's offsets and the outputs become visible together or not at all (MISSION I6, I11).

Workers of one library read an input topic as members of one group, write to an output topic, and commit what they read inside the
same transaction. Now and then one aborts, or dies with its transaction open; what it had read is read again by whoever comes next.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from tests.brokers import BrokerProcess, StartBroker
from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import create_topic, unique
from tests.integration.transaction_reading import committed_offset, read_partition, wait_until_stable
from tests.integration.transaction_wire import V1, V2, Generation, Wire, WireProducer, warm_up

PARTITIONS = 3
MESSAGES = 60

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}

#: One pass of a worker: reads, writes, commits or aborts as `chance` says, and returns when nothing more comes.
Worker = Callable[[str, str, str, str, str, random.Random], None]


class Died(Exception):
    """What a worker raises to die with its transaction open."""


def ending(chance: random.Random, number: int) -> str:
    if number == 0:
        return "commit"
    return chance.choice(["commit", "commit", "commit", "abort", "die"])


def confluent_worker(
    bootstrap: str, group: str, source: str, target: str, transactional_id: str, chance: random.Random
) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 200,
        }
    )
    try:
        consumer.subscribe([source])
        idle_since = time.monotonic()
        number = 0
        while time.monotonic() - idle_since < 3:
            messages: list[Any] = [message for message in consumer.consume(10, 0.3) if message.error() is None]
            if not messages:
                continue
            idle_since = time.monotonic()
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, b"seen " + message.value(), partition=message.partition())
            next_offsets = {message.partition(): message.offset() + 1 for message in messages}
            producer.send_offsets_to_transaction(
                [confluent_kafka.TopicPartition(source, at, offset) for at, offset in next_offsets.items()],
                consumer.consumer_group_metadata(),
                30,
            )
            match ending(chance, number):
                case "commit":
                    producer.commit_transaction(30)
                case "abort":
                    producer.abort_transaction(30)
                    for message in reversed(messages):
                        at = confluent_kafka.TopicPartition(source, message.partition(), message.offset())
                        consumer.seek(at)
                case _:
                    producer.flush(30)
                    raise Died
            number += 1
    finally:
        consumer.close()


def kafka_python_worker(
    bootstrap: str, group: str, source: str, target: str, transactional_id: str, chance: random.Random
) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    consumer = kafka.KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=1000,
        heartbeat_interval_ms=200,
    )
    try:
        producer.init_transactions()
        idle_since = time.monotonic()
        number = 0
        while time.monotonic() - idle_since < 3:
            got = consumer.poll(300, max_records=10)
            if not got:
                continue
            idle_since = time.monotonic()
            producer.begin_transaction()
            for at, records in got.items():
                for record in records:
                    producer.send(target, value=b"seen " + record.value, partition=at.partition)
            offsets = {
                at: kafka.structs.OffsetAndMetadata(records[-1].offset + 1, "", -1) for at, records in got.items()
            }
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            match ending(chance, number):
                case "commit":
                    producer.commit_transaction()
                case "abort":
                    producer.abort_transaction()
                    for at, records in got.items():
                        consumer.seek(at, records[0].offset)
                case _:
                    producer.flush()
                    raise Died
            number += 1
    finally:
        consumer.close()
        producer.close(timeout=0)


def aiokafka_worker(
    bootstrap: str, group: str, source: str, target: str, transactional_id: str, chance: random.Random
) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=1000,
            heartbeat_interval_ms=200,
        )
        await producer.start()
        await consumer.start()
        try:
            idle_since = time.monotonic()
            number = 0
            while time.monotonic() - idle_since < 3:
                got = await consumer.getmany(timeout_ms=300, max_records=10)
                if not got:
                    continue
                idle_since = time.monotonic()
                await producer.begin_transaction()
                for at, records in got.items():
                    for record in records:
                        await producer.send(target, value=b"seen " + (record.value or b""), partition=at.partition)
                offsets = {at: records[-1].offset + 1 for at, records in got.items()}
                await producer.send_offsets_to_transaction(offsets, group)
                match ending(chance, number):
                    case "commit":
                        await producer.commit_transaction()
                    case "abort":
                        await producer.abort_transaction()
                        for at, records in got.items():
                            consumer.seek(at, records[0].offset)
                    case _:
                        await producer.flush()
                        raise Died
                number += 1
        finally:
            await consumer.stop()
            await producer.stop()  # which does not end its transaction

    asyncio.run(run())


WORKERS: dict[str, Worker] = {
    "confluent-kafka": confluent_worker,
    "kafka-python": kafka_python_worker,
    "aiokafka": aiokafka_worker,
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("groups") / "data", QUICK) as process:
        with Wire(process.port) as wire:
            warm_up(wire)
        yield process


@pytest.fixture
def wire(quick: BrokerProcess) -> Iterator[Wire]:
    with Wire(quick.port) as connection:
        yield connection


@pytest.mark.seed("I6", "I11")
@pytest.mark.parametrize("library", WORKERS)
def test_workers_that_abort_and_die_see_every_input_once(quick: BrokerProcess, wire: Wire, library: str) -> None:
    bootstrap = quick.bootstrap_servers
    source, target = create_topic(bootstrap, PARTITIONS), create_topic(bootstrap, PARTITIONS)
    group = unique("group")
    for index in range(PARTITIONS):
        messages = [Message(b"%d/%d" % (index, number)) for number in range(MESSAGES)]
        BY_NAME["confluent-kafka"].produce(bootstrap, source, messages, partition=index)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        """Until one pass ends by itself; one that died is followed by its successor."""
        chance = random.Random(number)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                WORKERS[library](bootstrap, group, source, target, f"{group}-worker-{number}", chance)
                return
            except Died:
                continue
            except BaseException as problem:
                problems.append(problem)
                raise

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert problems == []

    outputs = [TopicPartition(target, index) for index in range(PARTITIONS)]
    wait_until_stable(wire, *outputs)
    for output in outputs:
        index = output.partition
        expected = [b"seen %d/%d" % (index, number) for number in range(MESSAGES)]
        assert read_partition(wire, output) == expected
        assert committed_offset(wire, group, TopicPartition(source, index)) == MESSAGES


@pytest.mark.seed("I11")
def test_a_consumer_that_joins_waits_for_offsets_that_a_transaction_is_about_to_replace(
    quick: BrokerProcess, wire: Wire
) -> None:
    bootstrap = quick.bootstrap_servers
    source = TopicPartition(create_topic(bootstrap), 0)
    group = unique("group")
    BY_NAME["confluent-kafka"].produce(bootstrap, source.topic, [Message(b"%d" % number) for number in range(5)])
    producer = WireProducer(wire, unique("id"), V1).initialise()
    producer.send_offsets(group, {source: 3})
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([source.topic])
        assert consumer.poll(2.0) is None, "it would read again what the transaction has read"
        assert committed_offset(wire, group, source) is ErrorCode.UNSTABLE_OFFSET_COMMIT
        producer.commit()
        deadline = time.monotonic() + 20
        while (message := consumer.poll(0.5)) is None:
            assert time.monotonic() < deadline
        assert message.error() is None
        assert message.offset() == 3
    finally:
        consumer.close()


@pytest.mark.seed("I11")
@pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
def test_the_producer_of_a_member_that_lost_its_partitions_commits_no_offsets(
    quick: BrokerProcess, wire: Wire, generation: Generation
) -> None:
    bootstrap = quick.bootstrap_servers
    source = TopicPartition(create_topic(bootstrap), 0)
    group = unique("group")
    member = kafka.KafkaConsumer(
        source.topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        session_timeout_ms=5000,
        heartbeat_interval_ms=200,
        enable_auto_commit=False,
    )
    try:
        deadline = time.monotonic() + 20
        while not member.assignment():
            assert time.monotonic() < deadline
            member.poll(100)
        metadata = member.group_metadata()
        producer = WireProducer(wire, unique("id"), generation).initialise()
        producer.send_offsets(group, {source: 1})

        def commit(member_id: str, number: int) -> list[ErrorCode]:
            return wire.commit_offsets(
                producer.transactional_id,
                producer.identity,
                group,
                {source: 2},
                generation.offsets,
                member_id=member_id,
                generation=number,
            )

        assert commit(metadata.member_id, metadata.generation_id) == [ErrorCode.NONE]
        assert commit(metadata.member_id, metadata.generation_id - 1) == [ErrorCode.ILLEGAL_GENERATION]
        assert commit("somebody else", metadata.generation_id) == [ErrorCode.UNKNOWN_MEMBER_ID]
    finally:
        member.close()
    producer.commit()
    producer.settle()
    assert committed_offset(wire, group, source) == 2


@pytest.mark.seed("I6", "I11")
@pytest.mark.parametrize("generation", [V1, V2], ids=lambda generation: generation.name)
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_pending_offsets_outlive_a_kill_and_follow_their_transaction(
    start_broker: StartBroker, generation: Generation, committed: bool
) -> None:
    broker = start_broker()
    source, target = (TopicPartition(create_topic(broker.bootstrap_servers), 0) for _ in range(2))
    with Wire(broker.port) as wire:
        warm_up(wire)
        producer = WireProducer(wire, "worker", generation).initialise()
        producer.send(target, values=[b"output"])
        producer.send_offsets("group", {source: 4})
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        warm_up(wire)
        assert committed_offset(wire, "group", source) is ErrorCode.UNSTABLE_OFFSET_COMMIT
        producer.wire = wire
        producer.end(committed=committed)
        producer.settle()
        wait_until_stable(wire, target)
        assert committed_offset(wire, "group", source) == (4 if committed else -1)
        assert read_partition(wire, target) == ([b"output"] if committed else [])
