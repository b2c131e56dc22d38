"""The real clients' transactions behind the same calls: producers of confluent-kafka, kafka-python and aiokafka, and their readers.

The calls raise what the library raises; `is_fenced` says whether that means that another instance has taken over.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import confluent_kafka
import kafka
import kafka.errors
import kafka.structs
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced

from oncelog.model.topic_partition import TopicPartition

T = TypeVar("T")

CALL_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 20.0


class TransactionalProducer(Protocol):
    """Initialised when it is made."""

    def begin(self) -> None: ...

    def send(self, partition: TopicPartition, value: bytes) -> None:
        """Into the transaction; acknowledged when `flush` or `commit` returns."""

    def flush(self) -> None: ...

    def send_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class TransactionalLibrary(Protocol):
    name: str

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer: ...

    def is_fenced(self, error: Exception) -> bool: ...


class Reader(Protocol):
    name: str

    def read(self, bootstrap: str, partition: TopicPartition, *, committed_only: bool) -> list[bytes]:
        """All values of a partition up to where this reader may see."""


def isolation(committed_only: bool) -> str:
    return "read_committed" if committed_only else "read_uncommitted"


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self.client = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 10_000),
                "linger.ms": 0,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self.client.init_transactions(CALL_TIMEOUT_S)

    def begin(self) -> None:
        self.client.begin_transaction()

    def send(self, partition: TopicPartition, value: bytes) -> None:
        self.client.produce(partition.topic, value, partition=partition.partition)

    def flush(self) -> None:
        assert self.client.flush(CALL_TIMEOUT_S) == 0

    def send_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
        try:
            positions = [confluent_kafka.TopicPartition(*at, offset) for at, offset in offsets.items()]
            self.client.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), CALL_TIMEOUT_S)
        finally:
            consumer.close()

    def commit(self) -> None:
        self.client.commit_transaction(CALL_TIMEOUT_S)

    def abort(self) -> None:
        self.client.abort_transaction(CALL_TIMEOUT_S)

    def close(self) -> None:
        self.client.purge()


class Confluent:
    name = "confluent-kafka"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> ConfluentProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    def is_fenced(self, error: Exception) -> bool:
        if not isinstance(error, confluent_kafka.KafkaException):
            return False
        code = error.args[0].code()
        return code in (
            confluent_kafka.KafkaError._FENCED,
            confluent_kafka.KafkaError.PRODUCER_FENCED,
            confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
        )

    def read(self, bootstrap: str, partition: TopicPartition, *, committed_only: bool) -> list[bytes]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": isolation(committed_only),
                "enable.partition.eof": True,
                "check.crcs": True,
            }
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(*partition, 0)])
            values: list[bytes] = []
            deadline = time.monotonic() + READ_TIMEOUT_S
            while time.monotonic() < deadline:
                for message in consumer.consume(500, 0.5):
                    error = message.error()
                    if error is None:
                        value: Any = message.value()
                        values.append(value)
                    elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                        return values
                    else:
                        raise confluent_kafka.KafkaException(error)
            raise AssertionError(f"{partition} does not end: {len(values)} values")
        finally:
            consumer.close()


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self.client = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=int(CALL_TIMEOUT_S * 1000),
            linger_ms=0,
        )
        self.client.init_transactions()

    def begin(self) -> None:
        self.client.begin_transaction()

    def send(self, partition: TopicPartition, value: bytes) -> None:
        self.client.send(partition.topic, value=value, partition=partition.partition)

    def flush(self) -> None:
        self.client.flush(timeout=CALL_TIMEOUT_S)

    def send_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        positions = {
            kafka.TopicPartition(*at): kafka.structs.OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()
        }
        self.client.send_offsets_to_transaction(positions, group)

    def commit(self) -> None:
        self.client.commit_transaction()

    def abort(self) -> None:
        self.client.abort_transaction()

    def close(self) -> None:
        self.client.close(timeout=0)


class KafkaPython:
    name = "kafka-python"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> KafkaPythonProducer:
        return KafkaPythonProducer(bootstrap, transactional_id, timeout_ms)

    def is_fenced(self, error: Exception) -> bool:
        # What is asked of a producer that is already dead is answered with an error that names the first one.
        return isinstance(
            error, kafka.errors.ProducerFencedError | kafka.errors.InvalidProducerEpochError
        ) or "Fenced" in repr(error)

    def read(self, bootstrap: str, partition: TopicPartition, *, committed_only: bool) -> list[bytes]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level=isolation(committed_only)
        )
        try:
            at = kafka.TopicPartition(*partition)
            consumer.assign([at])
            consumer.seek(at, 0)
            end = consumer.end_offsets([at])[at]
            values: list[bytes] = []
            deadline = time.monotonic() + READ_TIMEOUT_S
            while consumer.position(at) < end:
                assert time.monotonic() < deadline, f"{partition} does not end: {len(values)} values"
                for record in consumer.poll(200).get(at, []):
                    values.append(record.value)
            return values
        finally:
            consumer.close()


class AioKafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._runner = asyncio.Runner()
        self._sent: list[asyncio.Future[Any]] = []

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            await producer.start()
            return producer

        self.client = self._run(start())

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(asyncio.wait_for(call, CALL_TIMEOUT_S))

    def begin(self) -> None:
        self._run(self.client.begin_transaction())

    def send(self, partition: TopicPartition, value: bytes) -> None:
        sent = self.client.send(partition.topic, value=value, partition=partition.partition)
        self._sent.append(self._run(sent))

    def flush(self) -> None:
        self._run(self._acknowledged())

    async def _acknowledged(self) -> None:
        sent, self._sent = self._sent, []
        await asyncio.gather(*sent)

    def send_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        positions = {AioTopicPartition(*at): offset for at, offset in offsets.items()}
        self._run(self.client.send_offsets_to_transaction(positions, group))

    def commit(self) -> None:
        self.flush()
        self._run(self.client.commit_transaction())

    def abort(self) -> None:
        self._sent.clear()
        self._run(self.client.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self.client.stop())
        except Exception:
            pass  # a producer that was fenced says so once more when it is stopped
        finally:
            self._runner.close()


class AioKafka:
    name = "aiokafka"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> AioKafkaProducer:
        return AioKafkaProducer(bootstrap, transactional_id, timeout_ms)

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, ProducerFenced)

    def read(self, bootstrap: str, partition: TopicPartition, *, committed_only: bool) -> list[bytes]:
        async def run() -> list[bytes]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level=isolation(committed_only)
            )
            at = AioTopicPartition(*partition)
            await consumer.start()
            try:
                consumer.assign([at])
                consumer.seek(at, 0)
                end = (await consumer.end_offsets([at]))[at]
                values: list[bytes] = []
                deadline = time.monotonic() + READ_TIMEOUT_S
                while await consumer.position(at) < end:
                    assert time.monotonic() < deadline, f"{partition} does not end: {len(values)} values"
                    got = await consumer.getmany(at, timeout_ms=200)
                    values += [record.value or b"" for record in got.get(at, [])]
                return values
            finally:
                await consumer.stop()

        return asyncio.run(run())


TRANSACTIONAL: list[TransactionalLibrary] = [Confluent(), KafkaPython(), AioKafka()]
READERS: list[Reader] = [Confluent(), KafkaPython(), AioKafka()]
