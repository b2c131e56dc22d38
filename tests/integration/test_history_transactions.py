"""Everything at once: producers that commit, abort, stall, die and are replaced, readers all the while, the broker killed.

Clients of both generations, by hand and with librdkafka; segments roll and the internal topics are compacted meanwhile. In the end
everything is held against what each client was told. ONCELOG_HISTORY_SECONDS says how long it goes (20), ONCELOG_HISTORY_SEED
which choices are made.
"""

import os
import random
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from oncelog.model.topic_partition import TopicPartition
from tests.brokers import BrokerProcess, oncelog_only
from tests.integration.transaction_history import (
    INPUT,
    CommittedReader,
    History,
    LibrdkafkaMember,
    Outcome,
    Participant,
    WireMember,
    judge,
)
from tests.integration.transaction_wire import V1, V2, Wire

SECONDS = float(os.environ.get("ONCELOG_HISTORY_SECONDS", "20"))
SEED = int(os.environ.get("ONCELOG_HISTORY_SEED", "1"))
pytestmark = [oncelog_only, pytest.mark.timeout(180 + 2 * SECONDS)]

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "log.roll.ms": "400",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.segment.delete.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
}


@pytest.mark.seed("T6", "T9", "I3", "I6", "I10", "I13", "I14", "X1", "X2")
@pytest.mark.parametrize("policy", ["page-cache", "group-commit"])
def test_everything_is_as_everybody_was_told(tmp_path: Path, policy: str) -> None:
    with BrokerProcess(tmp_path / "data", {**SETTINGS, "flush.policy": policy}) as broker:
        history = History(SEED, create_outputs(broker))
        producers: list[Participant] = [
            *(WireMember(history, broker.port, f"v1-{number}", V1) for number in range(3)),
            *(WireMember(history, broker.port, f"v2-{number}", V2) for number in range(3)),
            *(LibrdkafkaMember(history, broker.port, f"librdkafka-{number}") for number in range(2)),
        ]
        readers = [CommittedReader(history, broker.port, f"reader-{number}") for number in range(2)]
        for participant in (*producers, *readers):
            participant.start()
        kills = kill_now_and_then(broker, history)
        history.over.set()
        for participant in (*producers, *readers):
            participant.join(60)
            assert not participant.is_alive(), f"{participant.name} has got stuck"
        assert history.problems == []
        with Wire(broker.port) as wire:
            judge(history, wire, readers)
        outcomes = [written.outcome for written in history.written]
        counts = {outcome: outcomes.count(outcome) for outcome in Outcome}
        print(f"{len(outcomes)} transactions, {kills} kills: {counts}")
        assert counts[Outcome.COMMITTED] > SECONDS, "too little happened to prove anything"
        assert counts[Outcome.ABORTED] > SECONDS / 2
        assert kills > SECONDS / 10
        assert any(reader.values[output] for reader in readers for output in history.outputs)


def create_outputs(broker: BrokerProcess) -> list[TopicPartition]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topics = [NewTopic("orders", 2, 1), NewTopic("payments", 2, 1), NewTopic(INPUT.topic, 1, 1)]
    for made in admin.create_topics(topics).values():
        made.result(20)
    return [TopicPartition(name, index) for name in ("orders", "payments") for index in range(2)]


def kill_now_and_then(broker: BrokerProcess, history: History) -> int:
    chance = random.Random(f"{SEED} kills")
    until = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < until and not history.problems:
        time.sleep(chance.uniform(0.3, 2.5))
        broker.kill()
        kills += 1
        if chance.random() < 0.2:
            # Also in the middle of a start, when it goes on with what was prepared.
            broker.spawn()
            time.sleep(chance.uniform(0.1, 0.5))
            broker.kill()
        broker.start()
    return kills
