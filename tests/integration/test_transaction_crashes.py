"""The broker dies at every step of a transaction, and of what its log does meanwhile.

Told outcomes hold, untold ones are all or nothing.

Places have names in the code (`oncelog.broker.fail_points`), or are operations on files. Each is met ten times (as many as
ONCELOG_TRANSACTION_CRASH_ROUNDS says), by clients of both generations, with both flush policies. In some rounds the same instance
comes back and repeats what it was about, in the others a successor takes over.
"""

import random
import threading
from pathlib import Path

import pytest

from tests.brokers import oncelog_only
from tests.disks import lose_page_cache
from tests.integration.transaction_crashes import (
    NAME,
    ROUNDS,
    Attempt,
    Billing,
    Dead,
    Doing,
    FailingBroker,
    FailPoint,
    assert_fenced,
    on_disk,
    place,
)
from tests.integration.transaction_wire import NOBODY, V1, V2, Generation, Wire, WireProducer

pytestmark = [oncelog_only, pytest.mark.timeout(60 + 15 * ROUNDS)]

PREPARED = ("PREPARE_COMMIT", "PREPARE_ABORT")
STATES = ("EMPTY", "ONGOING", *PREPARED, "COMPLETE_COMMIT", "COMPLETE_ABORT")

#: Before these, nothing says yet how a transaction ends; after them it cannot change any more.
UNDECIDED = {place("transaction before store", state) for state in PREPARED}
DECIDED = {
    *(place("transaction after store", state) for state in (*PREPARED, "COMPLETE_COMMIT", "COMPLETE_ABORT")),
    *(place("transaction before store", state) for state in ("COMPLETE_COMMIT", "COMPLETE_ABORT")),
    *(place("transaction before markers", state) for state in PREPARED),
    *(place("transaction after markers", state) for state in PREPARED),
    place("between markers"),
}
ELSEWHERE = {
    *(place(f"transaction {when} store", state) for when in ("before", "after") for state in ("EMPTY", "ONGOING")),
    place("transactional offsets before store"),
    place("transactional offsets after store"),
}


def named(fail_point: FailPoint) -> str:
    return fail_point.place.removesuffix("/*")


@pytest.mark.seed("T6", "T9", "I6", "I8", "I13")
@pytest.mark.parametrize("fail_point", sorted(UNDECIDED | DECIDED | ELSEWHERE), ids=named)
def test_the_broker_dies_at(tmp_path: Path, fail_point: FailPoint) -> None:
    broker = FailingBroker(tmp_path / "data", {"flush.policy": "page-cache"})
    with broker:
        billing = Billing.on(broker)
        broker.kill()
        for number in range(ROUNDS):
            broker.settings["flush.policy"] = "group-commit" if number % 2 else "page-cache"
            generation = V2 if number // 2 % 2 else V1
            broker.start_armed(fail_point.at(1 + number % 4))
            dead = billing.work_until_death(broker, generation)
            broker.start()
            come_back(billing, broker, generation, dead, fail_point, same_instance=number // 4 % 2 == 0)
            broker.kill()


@pytest.mark.seed("T6", "T9")
@pytest.mark.parametrize(
    "again",
    [
        place("transaction before markers"),
        place("between markers"),
        place("transaction after markers"),
        place("transaction before store"),
        place("transaction after store"),
    ],
    ids=named,
)
@pytest.mark.parametrize("state", PREPARED)
def test_the_broker_dies_again_while_it_goes_on_with_what_was_prepared(
    tmp_path: Path, state: str, again: FailPoint
) -> None:
    first = place("transaction after store", state)
    broker = FailingBroker(tmp_path / "data", {})
    with broker:
        billing = Billing.on(broker)
        broker.kill()
        for number in range(max(2, ROUNDS // 3)):
            generation = V2 if number % 2 else V1
            broker.start_armed(first.at(1 + number % 3))
            dead = billing.work_until_death(broker, generation)
            broker.start_armed(again.at(1))
            assert not broker.running
            broker.start()
            come_back(billing, broker, generation, dead, first, same_instance=number % 4 < 2)
            broker.kill()


#: Compaction of the coordinator's own log, at each step of putting a compacted segment in place.
COMPACTION = {
    "a compacted segment is begun": on_disk("create", r"^__transaction_state-0/.*\.cleaned$"),
    "a compacted segment is written": on_disk("append", r"^__transaction_state-0/.*\.cleaned$"),
    "a compacted segment takes its place": on_disk(
        "rename", r"^__transaction_state-0/.*\.(cleaned|swap|log|index|timeindex)$"
    ),
    "old segments are removed": on_disk("remove", r"^__transaction_state-0/.*\.deleted$"),
}
OFTEN = {
    # A segment that is 20 ms old is no longer written, and compacted as soon as something in it is superseded.
    "log.roll.ms": "20",
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "0",
    "log.retention.check.interval.ms": "20",
}


@pytest.mark.seed("I12")
@pytest.mark.parametrize("step", COMPACTION)
def test_the_broker_dies_while_the_state_topic_is_compacted(tmp_path: Path, step: str) -> None:
    broker = FailingBroker(tmp_path / "data", OFTEN, script="serve_failing.py")
    with broker:
        billing = Billing.on(broker)
        broker.kill()
        for number in range(ROUNDS):
            generation = V2 if number % 2 else V1
            broker.start_armed(COMPACTION[step].at(1 + number))
            dead = billing.work_until_death(broker, generation, limit=3000)
            broker.start()
            come_back(billing, broker, generation, dead, None, same_instance=number // 2 % 2 == 0)
            broker.kill()


#: A new segment in a partition with an open transaction.
ROLL = {
    "before a batch is written": on_disk("append", r"^topic-.*\.log$"),
    "before indexes and snapshot are written": on_disk("write_file", r"^topic-"),
    "before the new segment is made": on_disk("create", r"^topic-.*\.log$"),
    "in the offsets topic": on_disk("append|write_file|create", r"^__consumer_offsets-0/"),
    "in the state topic": on_disk("append|write_file|create", r"^__transaction_state-0/"),
}


@pytest.mark.seed("X1", "X2")
@pytest.mark.parametrize("step", ROLL)
def test_the_broker_dies_while_a_segment_is_rolled_under_an_open_transaction(tmp_path: Path, step: str) -> None:
    broker = FailingBroker(tmp_path / "data", {"log.roll.ms": "5"}, script="serve_failing.py")
    with broker:
        billing = Billing.on(broker)
        broker.kill()
        for number in range(ROUNDS):
            generation = V2 if number % 2 else V1
            broker.start_armed(ROLL[step].at(3 + 2 * number))
            dead = billing.work_until_death(broker, generation, limit=3000)
            broker.start()
            come_back(billing, broker, generation, dead, None, same_instance=number // 2 % 2 == 0)
            broker.kill()


@pytest.mark.seed("T6", "I8")
def test_with_group_commit_told_outcomes_hold_through_power_cuts(tmp_path: Path) -> None:
    """The broker is killed at any moment, and every file loses what was not synced: also of markers, offsets and states."""
    chance = random.Random(7)
    lost: dict[str, int] = {}
    broker = FailingBroker(tmp_path / "data", {"flush.policy": "group-commit"}, script="serve_tracking.py")
    with broker:
        billing = Billing.on(broker)
        for number in range(ROUNDS):
            generation = V2 if number % 2 else V1
            cut = threading.Timer(chance.uniform(0.02, 0.4), broker.kill)
            cut.start()
            dead = billing.work_until_death(broker, generation, limit=100_000)
            cut.join()
            lost |= lose_page_cache(broker.directory)
            broker.start()
            come_back(billing, broker, generation, dead, None, same_instance=number // 2 % 2 == 0)
    found = [name for name in lost if name.startswith("__") and name.endswith(".log")]
    assert found or ROUNDS < 10, f"nothing of interest was lost, which proves nothing: {lost}"


def come_back(
    billing: Billing,
    broker: FailingBroker,
    generation: Generation,
    dead: Dead,
    fail_point: FailPoint | None,
    *,
    same_instance: bool,
) -> None:
    old, attempt = dead
    with Wire(broker.port) as wire:
        if same_instance and old is not None and attempt.doing is not Doing.REPLACE:
            old.wire = wire
            go_on(billing, wire, old, attempt)
        successor = WireProducer(wire, NAME, generation).initialise()
        if attempt.doing is not Doing.NOTHING:
            judge(billing, wire, attempt, fail_point)
        billing.check(wire, "when a successor has come")
        if old is not None and old.identity != NOBODY:
            assert_fenced(wire, old.identity, billing.outputs[0])
        billing.commit_one_more(successor)
        successor.settle()
        billing.check(wire, "when the successor has worked")


def go_on(billing: Billing, wire: Wire, producer: WireProducer, attempt: Attempt) -> None:
    """The same instance repeats what it got no answer to, as its client would, and never notices more than a slow broker."""
    billing.carry_out(producer, attempt)
    if attempt.wanted == "leave open":
        producer.abort()
    billing.commit_one_more(producer)
    producer.settle()
    billing.check(wire, "when the same instance went on")


def judge(billing: Billing, wire: Wire, attempt: Attempt, fail_point: FailPoint | None) -> None:
    """Nobody was told how this one ended. It did end, the same for everybody, and as it had been decided if it had been."""
    committed = billing.is_committed(wire, attempt)
    asked = attempt.wanted == "commit" and attempt.doing is Doing.END
    if not asked or fail_point in UNDECIDED:
        assert not committed, f"nobody has decided to commit {attempt}"
    elif fail_point in DECIDED:
        assert committed, f"{attempt} had been decided"
    if committed:
        billing.committed.append(attempt)
