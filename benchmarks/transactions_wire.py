"""Transactions on the raw wire: producers that cost little, and a loop that drives any number of them.

A producer is a cycle of requests, frames made once. Between two sends only identity, sequence and CRC change in them; of an
answer only the error code is looked at, and the identity where the answer gives a new one. Everything runs in one thread over
one epoll, so ten producers load a broker as ten clients would and cost less than it does.
"""

import select
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.wire import (
    CRC_AT,
    CRC_FROM,
    SEQUENCE_AT,
    Connection,
    compact,
    frame,
    record_batch,
    string,
    uvarint,
)
from oncelog.records.crc32c import crc32c

ATTRIBUTES_AT, IDENTITY_AT, IDENTITY_SIZE = 21, 43, 10
"""Places in a record batch; identity is producer id and epoch."""
TRANSACTIONAL_BIT = 0x10

PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 0, 10, 22, 24, 26
TRANSACTION_TIMEOUT_MS = 60_000

RETRIABLE = frozenset({14, 15, 16, 19, 51})
"""The coordinator loads, is not there or is elsewhere; NOT_ENOUGH_REPLICAS (a v2 produce that came too early);
CONCURRENT_TRANSACTIONS."""


class TransactionConnection(Connection):
    def __init__(self, port: int) -> None:
        super().__init__(port, buffer_bytes=1 << 16)

    def fileno(self) -> int:
        return self._socket.fileno()

    def initialise(self, transactional_id: bytes) -> bytes:
        """Take over a transactional id; the identity as requests carry it."""
        find = frame((FIND_COORDINATOR, 2), string(transactional_id) + b"\1", flexible=False)
        self._until_taken(find, 8)
        answer = self._until_taken(init_producer_id_frame(transactional_id), 9)
        return answer[11 : 11 + IDENTITY_SIZE]

    def _until_taken(self, request: bytearray, error_at: int) -> bytes:
        while True:
            answer = bytes(self.call(request))
            error = int.from_bytes(answer[error_at : error_at + 2])
            if not error:
                return answer
            if error not in RETRIABLE:
                raise RuntimeError(f"API {int.from_bytes(request[4:6])} was refused with error code {error}")
            time.sleep(0.01)


def init_producer_id_frame(transactional_id: bytes) -> bytearray:
    body = compact(transactional_id) + struct.pack(">iqh", TRANSACTION_TIMEOUT_MS, -1, -1) + b"\0"
    return frame((INIT_PRODUCER_ID, 4), body, flexible=True)


class Request:
    """One frame that is sent again and again; `error_at` is where its answer says whether it was taken."""

    def __init__(self, sent: bytearray, error_at: int, identity_at: int) -> None:
        self.frame = sent
        self.error_at = error_at
        self._identity = slice(identity_at, identity_at + IDENTITY_SIZE)

    def take_identity(self, identity: bytes) -> None:
        self.frame[self._identity] = identity

    def prepare(self) -> None:
        """Called before each send that is not a retry."""


class ProduceRequest(Request):
    """One batch of a producer; the sequence goes on until another identity comes."""

    def __init__(
        self, version: int, transactional_id: bytes | None, topic: bytes, partition: int, value: bytes
    ) -> None:
        batch = bytearray(record_batch([value], 0, 0))
        if transactional_id is not None:
            batch[ATTRIBUTES_AT + 1] |= TRANSACTIONAL_BIT
        named = b"\0" if transactional_id is None else compact(transactional_id)
        data = struct.pack(">i", partition) + uvarint(len(batch) + 1) + batch + b"\0"
        head = named + struct.pack(">hi", -1, 30_000) + b"\2" + compact(topic) + b"\2"
        sent = frame((PRODUCE, version), head + data + b"\0\0", flexible=True)
        self._batch_at = at = len(sent) - 3 - len(batch)
        self._sequence = 0
        # Response header with its tags, one topic with its name, one partition with its index: then the error code.
        super().__init__(sent, 4 + 1 + 1 + 1 + len(topic) + 1 + 4, at + IDENTITY_AT)
        self._covered = memoryview(sent)[at + CRC_FROM : at + len(batch)]

    def take_identity(self, identity: bytes) -> None:
        super().take_identity(identity)
        self._sequence = 0

    def prepare(self) -> None:
        at = self._batch_at
        self.frame[at + SEQUENCE_AT : at + SEQUENCE_AT + 4] = self._sequence.to_bytes(4)
        self.frame[at + CRC_AT : at + CRC_AT + 4] = crc32c(self._covered).to_bytes(4)
        self._sequence += 1


def add_partitions_request(transactional_id: bytes, topic: bytes, partition: int) -> Request:
    named = compact(transactional_id)
    body = named + bytes(IDENTITY_SIZE) + b"\2" + compact(topic) + b"\2" + struct.pack(">i", partition) + b"\0\0"
    sent = frame((ADD_PARTITIONS_TO_TXN, 3), body, flexible=True)
    return Request(sent, 4 + 1 + 4 + 1 + 1 + len(topic) + 1 + 4, len(sent) - len(body) + len(named))


def end_request(version: int, transactional_id: bytes, *, committed: bool) -> Request:
    named = compact(transactional_id)
    body = named + bytes(IDENTITY_SIZE) + bytes((committed,)) + b"\0"
    sent = frame((END_TXN, version), body, flexible=True)
    return Request(sent, 4 + 1 + 4, len(sent) - len(body) + len(named))


class Producer:
    """Goes round its requests; once round is one transaction, or one batch of an idempotent producer."""

    def __init__(self, connection: TransactionConnection, identity: bytes, requests: Sequence[Request]) -> None:
        self.connection = connection
        self.retries = 0
        self._requests = requests
        self._at = 0
        self._take_identity(identity)

    def _take_identity(self, identity: bytes) -> None:
        for request in self._requests:
            request.take_identity(identity)

    def begin(self) -> None:
        self._at = 0
        self._send()

    def _send(self) -> None:
        request = self._requests[self._at]
        request.prepare()
        self.connection.send(request.frame)

    def proceed(self) -> bool:
        """Take the answer that is there and send what comes next. True when the round is complete."""
        request = self._requests[self._at]
        answer = self.connection.response()
        error = int.from_bytes(answer[request.error_at : request.error_at + 2])
        if error:
            if error not in RETRIABLE:
                raise RuntimeError(f"API {int.from_bytes(request.frame[4:6])} was refused with error code {error}")
            self.retries += 1
            self.connection.send(request.frame)
            return False
        self._at += 1
        if self._at < len(self._requests):
            self._send()
            return False
        self.finished(answer)
        return True

    def finished(self, answer: memoryview) -> None:
        """The last answer of a round."""


class ProducerV1(Producer):
    """AddPartitionsToTxn, Produce, EndTxn, as clients before KIP-890 do: the epoch stays."""

    def __init__(
        self, connection: TransactionConnection, transactional_id: bytes, topic: bytes, partition: int, value: bytes
    ) -> None:
        requests = [
            add_partitions_request(transactional_id, topic, partition),
            ProduceRequest(9, transactional_id, topic, partition, value),
            end_request(3, transactional_id, committed=True),
        ]
        super().__init__(connection, connection.initialise(transactional_id), requests)


class ProducerV2(Producer):
    """Produce and EndTxn; every end gives the epoch of the next transaction (KIP-890)."""

    def __init__(
        self,
        connection: TransactionConnection,
        transactional_id: bytes,
        topic: bytes,
        partition: int,
        value: bytes,
        *,
        committed: bool = True,
    ) -> None:
        requests = [
            ProduceRequest(12, transactional_id, topic, partition, value),
            end_request(5, transactional_id, committed=committed),
        ]
        super().__init__(connection, connection.initialise(transactional_id), requests)

    def finished(self, answer: memoryview) -> None:
        self._take_identity(bytes(answer[11 : 11 + IDENTITY_SIZE]))


class IdempotentProducer(Producer):
    """One batch a round, without a transaction."""

    def __init__(self, connection: TransactionConnection, topic: bytes, partition: int, value: bytes) -> None:
        identity = struct.pack(">qh", *connection.producer_id())
        super().__init__(connection, identity, [ProduceRequest(12, None, topic, partition, value)])


@dataclass(frozen=True, slots=True)
class Turn:
    seconds: float
    latencies: list[float]
    """Of each transaction, from its first request to the answer to its last."""
    retries: int

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds


class Clients(Protocol):
    """Some producers that can be driven together for a while."""

    def run(self, seconds: float) -> Turn: ...

    def close(self) -> None: ...


class WireClients:
    def __init__(self, producers: Sequence[Producer]) -> None:
        self._producers = {producer.connection.fileno(): producer for producer in producers}

    def run(self, seconds: float) -> Turn:
        return self.drive(seconds, 1 << 62)

    def drive(self, seconds: float, rounds: int) -> Turn:
        """Until the time is over or so many rounds are complete, whichever is first."""
        producers = self._producers
        retries_before = sum(producer.retries for producer in producers.values())
        latencies: list[float] = []
        poll = select.epoll()
        begun_at = {}
        started_at = now = time.perf_counter()
        for descriptor, producer in producers.items():
            poll.register(descriptor, select.EPOLLIN)
            begun_at[descriptor] = now
            producer.begin()
        running = len(producers)
        while running:
            for descriptor, _ in poll.poll():
                producer = producers[descriptor]
                if not producer.proceed():
                    continue
                now = time.perf_counter()
                latencies.append(now - begun_at[descriptor])
                if now - started_at < seconds and len(latencies) + running <= rounds:
                    begun_at[descriptor] = now
                    producer.begin()
                else:
                    running -= 1
        poll.close()
        retries = sum(producer.retries for producer in producers.values()) - retries_before
        return Turn(time.perf_counter() - started_at, latencies, retries)

    def close(self) -> None:
        for producer in self._producers.values():
            producer.connection.close()
