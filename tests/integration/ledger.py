"""What a producer was promised, to be held against what a log holds.

A `Ledger` numbers the messages of each partition and notes the offset each was acknowledged at. `check` then reads the
partitions and proves: every acknowledged message stands at its offset, nothing stands twice, all in the order sent.
"""

import threading
import time
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

import confluent_kafka

# A producer that never gives up within a test: it reconnects at once and repeats until the broker is back.
PATIENT_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 1,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "message.timeout.ms": 120_000,
    "socket.timeout.ms": 5_000,
    "log_level": 0,
}


class Ledger:
    def __init__(self) -> None:
        self.sent: dict[int, int] = defaultdict(int)
        # partition -> message number -> offset
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)
        self.failed: list[str] = []

    def next_number(self, partition: int) -> int:
        number = self.sent[partition]
        self.sent[partition] += 1
        return number

    def note(self, partition: int, number: int, offset: int | None, error: object = None) -> None:
        if error or offset is None:
            self.failed.append(f"partition {partition} message {number}: {error}")
        else:
            self.acknowledged[partition][number] = offset

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def check(self, bootstrap: str, topic: str, *, all_delivered: bool = True) -> int:
        """Read everything back; the number of messages found."""
        if all_delivered:
            assert not self.failed, self.failed[:5]
            assert {partition: len(found) for partition, found in self.acknowledged.items()} == dict(self.sent)
        total = 0
        for partition in self.sent:
            found = read_numbers(bootstrap, topic, partition)
            total += len(found)
            numbers = list(found.values())
            assert len(set(numbers)) == len(numbers), f"partition {partition}: {first_repeat(numbers)} is there twice"
            assert numbers == sorted(numbers), f"partition {partition} is out of order"
            for number, offset in self.acknowledged[partition].items():
                assert found.get(offset) == number, (
                    f"partition {partition}: message {number} was acknowledged at offset {offset}, "
                    f"where {found.get(offset)} stands; the log has {len(found)} messages"
                )
            assert list(found) == list(range(len(found))), f"partition {partition} has holes"
        return total


def first_repeat(numbers: list[int]) -> int:
    seen: set[int] = set()
    for number in numbers:
        if number in seen:
            return number
        seen.add(number)
    raise ValueError("no repeat")


def read_numbers(bootstrap: str, topic: str, partition: int) -> dict[int, int]:
    """offset -> message number, of a whole partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "check.crcs": True, "enable.auto.commit": False}
    )
    try:
        at = confluent_kafka.TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(at, timeout=20)
        consumer.assign([at])
        found: dict[int, int] = {}
        deadline = time.monotonic() + 60
        while len(found) < end:
            assert time.monotonic() < deadline, f"partition {partition}: {len(found)} of {end} read"
            for message in consumer.consume(5000, 0.5):
                assert message.error() is None, message.error()
                value: Any = message.value()
                offset: Any = message.offset()
                assert offset not in found, f"offset {offset} was delivered twice"
                found[offset] = int(value[:10])
        return found
    finally:
        consumer.close()


class ProducingThread:
    """An idempotent producer that sends without pause, a bounded number of messages ahead of the acknowledgements."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        padding: int = 200,
        pause_s: float = 0.002,
        ledger: Ledger | None = None,
    ) -> None:
        self.ledger = ledger or Ledger()
        self._topic = topic
        self._partitions = partitions
        self._padding = b"." * padding
        self._pause_s = pause_s
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **PATIENT_PRODUCER})
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            for partition in range(self._partitions):
                if len(self._producer) < 500:
                    self._send(partition)
            self._producer.poll(self._pause_s)

    def _send(self, partition: int) -> None:
        number = self.ledger.next_number(partition)

        def noted(error: object, message: confluent_kafka.Message) -> None:
            self.ledger.note(partition, number, message.offset(), error)

        self._producer.produce(self._topic, b"%010d" % number + self._padding, partition=partition, on_delivery=noted)

    def wait_for_more(self, count: int = 100) -> None:
        """Until so many more messages are acknowledged."""
        goal = self.ledger.acknowledged_count + count
        deadline = time.monotonic() + 30
        while self.ledger.acknowledged_count < goal:
            assert time.monotonic() < deadline, f"{self.ledger.acknowledged_count} acknowledged, waiting for {goal}"
            time.sleep(0.01)

    def finish(self) -> Ledger:
        """Send no more, and wait until everything is acknowledged."""
        self._stop_sending()
        left = self._producer.flush(60)
        assert left == 0, f"{left} messages were never acknowledged"
        return self.ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            # The test has failed already: nobody may be there to acknowledge anything.
            self.give_up()

    def give_up(self) -> None:
        """Send no more, and forget what is not acknowledged."""
        self._stop_sending()
        self._producer.purge()

    def _stop_sending(self) -> None:
        self._end.set()
        self._thread.join()
