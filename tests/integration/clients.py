"""The real clients behind the same two calls: produce these messages to a partition, read a partition from an offset.

What a test sends with one client it reads with every other, so that no two sides of one library can agree on a mistake.
"""

import asyncio
import itertools
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition

READ_TIMEOUT_S = 30.0
# Above the 5 MB messages that the tests send, at every limit that a client has.
LARGE = 8 * 1024 * 1024

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    # 0 CreateTime, 1 LogAppendTime; None where the client does not tell.
    timestamp_type: int | None = None


class Client(Protocol):
    name: str

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, partition: int = 0, compression: str = "none"
    ) -> None: ...

    def read(
        self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0
    ) -> list[Received]: ...


class Confluent:
    name = "confluent-kafka"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, partition: int = 0, compression: str = "none"
    ) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": compression,
                "linger.ms": 20,
                "enable.idempotence": True,
                "message.max.bytes": LARGE,
            }
        )
        errors: list[Any] = []
        for message in messages:
            extra: dict[str, Any] = {} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}
            producer.produce(
                topic,
                message.value,
                message.key,
                partition,
                lambda error, _: errors.append(error) if error else None,
                headers=list(message.headers),
                **extra,
            )
        left = producer.flush(READ_TIMEOUT_S)
        assert not errors, errors
        assert not left, f"{left} not delivered"

    def read(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.max.bytes": LARGE * 2,
                "message.max.bytes": LARGE,
                "max.partition.fetch.bytes": LARGE,
            }
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
            received: list[Received] = []
            deadline = time.monotonic() + READ_TIMEOUT_S
            while len(received) < count and time.monotonic() < deadline:
                for message in consumer.consume(count - len(received), 0.5):
                    assert message.error() is None, message.error()
                    received.append(from_confluent(message))
            return received
        finally:
            consumer.close()


def from_confluent(message: confluent_kafka.Message) -> Received:
    kind, timestamp_ms = message.timestamp()
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    key: Any = message.key()
    value: Any = message.value()
    return Received(partition, offset, key, value, tuple(headers), timestamp_ms, kind - 1)


class KafkaPython:
    name = "kafka-python"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, partition: int = 0, compression: str = "none"
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if compression == "none" else compression,
            linger_ms=20,
            enable_idempotence=True,
            max_request_size=LARGE,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(timeout=READ_TIMEOUT_S)
            for future in futures:
                future.get(timeout=READ_TIMEOUT_S)
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            fetch_max_bytes=LARGE * 2,
            max_partition_fetch_bytes=LARGE,
        )
        try:
            at = kafka.TopicPartition(topic, partition)
            consumer.assign([at])
            consumer.seek(at, offset)
            received: list[Received] = []
            deadline = time.monotonic() + READ_TIMEOUT_S
            while len(received) < count and time.monotonic() < deadline:
                for record in consumer.poll(500, max_records=count - len(received)).get(at, []):
                    received.append(from_record(record))
            return received
        finally:
            consumer.close()


def from_record(record: Any) -> Received:
    """kafka-python and aiokafka name the parts of a record alike."""
    return Received(
        record.partition,
        record.offset,
        record.key,
        record.value,
        tuple(record.headers),
        record.timestamp,
        record.timestamp_type,
    )


class AioKafka:
    name = "aiokafka"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, partition: int = 0, compression: str = "none"
    ) -> None:
        async def run() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if compression == "none" else compression,
                linger_ms=20,
                enable_idempotence=True,
                max_request_size=LARGE,
                max_batch_size=LARGE,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=message.value,
                        key=message.key,
                        partition=partition,
                        headers=list(message.headers),
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        asyncio.run(run())

    def read(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        async def run() -> list[Received]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                enable_auto_commit=False,
                fetch_max_bytes=LARGE * 2,
                max_partition_fetch_bytes=LARGE,
            )
            at = AioTopicPartition(topic, partition)
            await consumer.start()
            try:
                consumer.assign([at])
                consumer.seek(at, offset)
                received: list[Received] = []
                deadline = time.monotonic() + READ_TIMEOUT_S
                while len(received) < count and time.monotonic() < deadline:
                    got = await consumer.getmany(at, timeout_ms=500, max_records=count - len(received))
                    received.extend(from_record(record) for record in got.get(at, []))
                return received
            finally:
                await consumer.stop()

        return asyncio.run(run())


class Kcat:
    """The command-line tool on librdkafka 2.0: an older client, so older versions of every API."""

    name = "kcat"
    # Lengths first, so that keys and values may hold anything; a length of -1 is a null.
    FORMAT = "%p %o %T %K %S %h\n%k%s\n"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, partition: int = 0, compression: str = "none"
    ) -> None:
        """One run of kcat has the same headers on all messages, and either knows nulls (-Z) or knows empty values."""
        for (headers, nulls), run in itertools.groupby(messages, lambda sent: (sent.headers, sent.value is None)):
            arguments = ["-P", "-t", topic, "-p", str(partition), "-z", compression, "-K", KEY_END, "-D", MESSAGE_END]
            if nulls:
                arguments.append("-Z")
            for name, value in headers:
                arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
            kcat(bootstrap, arguments, b"".join(map(kcat_input, run)))

    def read(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        position = ["-C", "-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count), "-q"]
        limits = ["-X", f"receive.message.max.bytes={LARGE * 2}", "-X", f"fetch.max.bytes={LARGE + 1024}"]
        return parse_kcat(kcat(bootstrap, [*position, *limits, "-X", "check.crcs=true", "-f", self.FORMAT]))


KEY_END, MESSAGE_END = "\x1f", "\x1e"


def kcat_input(message: Message) -> bytes:
    key = b"" if message.key is None else message.key + KEY_END.encode()
    if message.value is None:
        # Something must stand on the line: the end of a key, even of a null one.
        return (key or KEY_END.encode()) + MESSAGE_END.encode()
    return key + message.value + MESSAGE_END.encode()


def kcat(bootstrap: str, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
    command = ["kcat", "-b", bootstrap, "-X", f"message.max.bytes={LARGE}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=READ_TIMEOUT_S)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def parse_kcat(output: bytes) -> list[Received]:
    received = []
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        partition, offset, timestamp, key_length, value_length, headers = output[at:end].split(b" ", 5)
        key, at = take(output, end + 1, int(key_length))
        value, at = take(output, at, int(value_length))
        assert output[at : at + 1] == b"\n"
        at += 1
        pairs = tuple(parse_header(pair) for pair in headers.split(b",") if pair)
        received.append(Received(int(partition), int(offset), key, value, pairs, int(timestamp)))
    return received


def parse_header(pair: bytes) -> tuple[str, bytes | None]:
    name, _, value = pair.partition(b"=")
    return name.decode(), None if value == b"NULL" else value


def take(output: bytes, at: int, length: int) -> tuple[bytes | None, int]:
    # A null has the length -1 and prints as nothing.
    if length < 0:
        return None, at
    return output[at : at + length], at + length


LIBRARIES: list[Client] = [Confluent(), KafkaPython(), AioKafka()]
KCAT = Kcat()
with_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt install kcat)")
# Those that can be used here; `by_each_client` runs a test once for each, and says so when it skips one.
CLIENTS: list[Client] = [*LIBRARIES, KCAT] if shutil.which("kcat") else LIBRARIES
BY_NAME: dict[str, Client] = {client.name: client for client in (*LIBRARIES, KCAT)}
by_each_client = pytest.mark.parametrize(
    "producing",
    [*(pytest.param(client, id=client.name) for client in LIBRARIES), pytest.param(KCAT, id="kcat", marks=with_kcat)],
)
by_each_library = pytest.mark.parametrize("producing", LIBRARIES, ids=lambda client: client.name)
