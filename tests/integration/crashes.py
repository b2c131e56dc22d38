"""Killing a broker again and again under an idempotent producer, and what a crash can leave behind.

`CrashRounds` runs the rounds; what happens to the files between a kill and the next start is given by the test.
"""

import contextlib
import random
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from oncelog.records.batch import BatchHeader, CorruptBatch, batches, crc_matches
from tests.brokers import BrokerProcess
from tests.integration.ledger import ProducingThread
from tests.integration.proxy import CuttingProxy
from tests.integration.raw_connection import RawConnection
from tests.integration.topics import create_topic

PARTITIONS = 3
# Small, so that many rounds meet a segment that has just begun.
TOPIC_CONFIG = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
LATEST = -1


class CrashRounds:
    """A broker killed at random moments, its producer that never notices more than a slow answer.

    Between the two stands a proxy that loses the last answers before a kill: batches that the broker took and the producer
    sends again are rare otherwise, and they are what a restarted broker must recognise.
    """

    def __init__(self, directory: Path, policy: str, seed: int, command: Sequence[str] | None = None) -> None:
        self.chance = random.Random(seed)
        self.proxy = CuttingProxy()
        settings = {"flush.policy": policy, "advertised.listeners": f"PLAINTEXT://{self.proxy.bootstrap_servers}"}
        self.broker = BrokerProcess(directory, settings, command=command)
        self.proxy.target = self.broker.port

    def __enter__(self) -> Self:
        self.broker.start()
        self.topic = create_topic(self.proxy.bootstrap_servers, PARTITIONS, TOPIC_CONFIG)
        self.producing = ProducingThread(self.proxy.bootstrap_servers, self.topic, PARTITIONS, padding=600)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.producing.give_up()
        if self.broker.running:
            self.broker.kill()
        self.proxy.__exit__(kind, error, trace)

    def run(self, rounds: int, after_kill: Callable[[int], object]) -> None:
        with self.producing as producing:
            for number in range(rounds):
                self._live(lose_answers=number % 2 == 0)
                # What is acknowledged by now must be there for ever, whatever happens next.
                promised = self.promised()
                self.broker.kill()
                self.proxy.cut()
                after_kill(number)
                if self.chance.random() < 0.15:
                    self._die_while_starting()
                    after_kill(number)
                self.broker.start()
                self.check_end_offsets(promised, f"after kill {number}")
            producing.wait_for_more(1)
        ledger = self.producing.ledger
        found = ledger.check(self.proxy.bootstrap_servers, self.topic)
        assert found > 10 * rounds, "the rounds were too short to prove anything"
        assert self.proxy.lost_bytes > 0
        self.broker.stop()
        for partition in range(PARTITIONS):
            check_files(self.directory(partition))

    def promised(self) -> dict[int, int]:
        """How many messages of each partition are acknowledged by now."""
        return {at: len(found) for at, found in self.producing.ledger.acknowledged.items()}

    def directory(self, partition: int) -> Path:
        return self.broker.data_directory / f"{self.topic}-{partition}"

    def _live(self, *, lose_answers: bool) -> None:
        """Mostly until something was acknowledged and a little longer; now and then hardly at all."""
        if lose_answers or self.chance.random() < 0.6:
            self.producing.wait_for_more(1)
            time.sleep(self.chance.uniform(0.0, 0.2))
            if lose_answers:
                self.proxy.lose_some_answers()
                time.sleep(self.chance.uniform(0.0, 0.02))
        else:
            time.sleep(self.chance.uniform(0.0, 0.05))

    def _die_while_starting(self) -> None:
        """In the middle of a recovery: the one after it must find everything again."""
        self.broker.spawn()
        time.sleep(self.chance.uniform(0.05, 0.4))
        self.broker.kill()

    def check_end_offsets(self, promised: dict[int, int], when: str) -> None:
        topics = [
            ListOffsetsTopic(
                name=self.topic,
                partitions=[ListOffsetsPartition(partition_index=at, timestamp=LATEST) for at in range(PARTITIONS)],
            )
        ]
        with RawConnection(self.broker.port) as connection:
            answer = connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), 5, ListOffsetsResponse)
        for partition in answer.topics[0].partitions:
            at, end = partition.partition_index, partition.offset
            assert end >= promised.get(at, 0), f"{when}: partition {at} ends at {end}, acknowledged: {promised[at]}"


def check_files(directory: Path) -> None:
    """Every byte of every segment belongs to a whole batch with the right checksum, and offsets go on without a gap."""
    expected = 0
    for file in sorted(directory.glob("*.log")):
        data = file.read_bytes()
        end = 0
        for position, header in batches(data):
            assert crc_matches(data, position, header), f"{file.name} at {position}"
            assert header.base_offset == expected, f"{file.name} at {position}"
            expected = header.next_offset
            end = position + header.size
        assert end == len(data), f"{file.name}: {len(data) - end} bytes after the last batch"


def whole_batches(data: bytes) -> list[tuple[int, BatchHeader]]:
    """Up to where an earlier crash tore the file."""
    found = []
    with contextlib.suppress(CorruptBatch):
        for position, header in batches(data):
            if not crc_matches(data, position, header):
                break
            found.append((position, header))
    return found


def damage_tail(directory: Path, chance: random.Random) -> str:
    """What a torn write leaves at the end of the newest segment: never a whole batch, nothing before it touched."""
    file = max(directory.glob("*.log"))
    data = file.read_bytes()
    last = whole_batches(data)[-1:]
    kind = chance.choice(["nothing", "garbage", "zeros", "half a batch", "a batch with a wrong byte"])
    torn = b""
    if kind == "garbage":
        torn = chance.randbytes(chance.randint(1, 500))
    elif kind == "zeros":
        torn = bytes(chance.randint(1, 5000))
    elif kind != "nothing" and last:
        position, header = last[0]
        batch = bytearray(data[position : position + header.size])
        struct.pack_into(">q", batch, 0, header.next_offset)
        if kind == "half a batch":
            torn = bytes(batch[: chance.randint(1, len(batch) - 1)])
        else:
            # Behind the checksum's own place, so that it does not match.
            batch[chance.randint(21, len(batch) - 1)] ^= 0x40
            torn = bytes(batch)
    with file.open("ab") as end:
        end.write(torn)
    return kind
