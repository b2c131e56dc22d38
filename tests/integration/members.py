"""Members of a consumer group: several in one test, polled in turns; or one in a process of its own that can be killed."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

from tests.integration.clients import Received, from_confluent

# Short enough that a killed member is missed soon, long enough for a busy machine.
SESSION = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 200}


class Member:
    """A confluent-kafka consumer that remembers what happened to it."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **config: Any) -> None:
        self.events: list[tuple[str, frozenset[int]]] = []
        self.received: list[Received] = []
        self.errors: list[confluent_kafka.KafkaError] = []
        self.closed = False
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            # What is fatal for a consumer (a fenced instance) comes here, not out of poll.
            "error_cb": self.errors.append,
            **SESSION,
        }
        settings.update({name.replace("_", "."): value for name, value in config.items()})
        self.consumer = confluent_kafka.Consumer(settings)
        self.consumer.subscribe(
            list(topics),
            on_assign=lambda _, partitions: self._note("assigned", partitions),
            on_revoke=lambda _, partitions: self._note("revoked", partitions),
            on_lost=lambda _, partitions: self._note("lost", partitions),
        )

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(at.partition for at in self.consumer.assignment())

    def poll(self, timeout_s: float = 0.02) -> None:
        message = self.consumer.poll(timeout_s)
        while message is not None:
            error = message.error()
            if error:
                self.errors.append(error)
            else:
                self.received.append(from_confluent(message))
            message = self.consumer.poll(0)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.consumer.close()

    def _note(self, what: str, partitions: list[confluent_kafka.TopicPartition]) -> None:
        # Commit what was read before it is given away, so that nobody reads it again.
        if what == "revoked" and self.received:
            self._commit_read({at.partition for at in partitions})
        self.events.append((what, frozenset(at.partition for at in partitions)))

    def _commit_read(self, partitions: set[int]) -> None:
        read = [at for at in self.consumer.position(self.consumer.assignment()) if at.offset >= 0]
        offsets = [at for at in read if at.partition in partitions]
        if offsets:
            self.consumer.commit(offsets=offsets, asynchronous=False)


@contextmanager
def members() -> Iterator[Callable[..., Member]]:
    """Make members; all that are left are closed at the end."""
    made: list[Member] = []

    def make(*arguments: Any, **config: Any) -> Member:
        made.append(Member(*arguments, **config))
        return made[-1]

    try:
        yield make
    finally:
        for member in made:
            member.close()


def settle(group: Sequence[Member], done: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Poll everybody in turns until `done`: a rebalance needs all of them to take part."""
    deadline = time.monotonic() + timeout_s
    while not done():
        shares = [(sorted(member.partitions), member.events[-3:], member.errors) for member in group]
        assert time.monotonic() < deadline, f"the group did not settle: {shares}"
        for member in group:
            member.poll()


def share_evenly(group: Sequence[Member], partitions: int) -> Callable[[], bool]:
    """Every partition has one owner, and no member has two more than another."""

    def done() -> bool:
        shares = [member.partitions for member in group]
        owned = [partition for share in shares for partition in share]
        sizes = [len(share) for share in shares]
        return sorted(owned) == list(range(partitions)) and max(sizes) - min(sizes) <= 1

    return done


class MemberProcess:
    """A consumer in a process of its own (member_process.py), for what only SIGKILL shows."""

    def __init__(self, bootstrap: str, group: str, topic: str, **config: Any) -> None:
        script = Path(__file__).with_name("member_process.py")
        settings = {**SESSION, **{name.replace("_", "."): value for name, value in config.items()}}
        self.partitions: frozenset[int] = frozenset()
        self.process = subprocess.Popen(
            [sys.executable, str(script), bootstrap, group, topic, json.dumps(settings)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.partitions = frozenset(json.loads(line))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
