"""Group commit under power cuts: what was acknowledged is there once, in order, though the page cache is gone.

The broker runs on a disk that writes down what was synced (tests/disks.py). After a kill every file of the log is cut back
to that; sometimes only the process dies and the page cache stays, so that a later cut meets what an earlier run wrote.
ONCELOG_CRASH_ROUNDS says how often.
"""

import os
import sys
import time
from pathlib import Path

import pytest

from oncelog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from oncelog.records.builder import build_batch
from tests.brokers import ROOT, BrokerProcess, oncelog_only
from tests.disks import lose_page_cache
from tests.integration.crashes import CrashRounds, check_files
from tests.integration.raw_connection import RawConnection, create_topic

ROUNDS = int(os.environ.get("ONCELOG_CRASH_ROUNDS", "50"))
pytestmark = [oncelog_only, pytest.mark.timeout(60 + 10 * ROUNDS)]


TRACKING = [sys.executable, str(ROOT / "tests" / "serve_tracking.py")]


@pytest.mark.seed("I2")
def test_group_commit_keeps_what_it_acknowledged_through_power_cuts(tmp_path: Path) -> None:
    with CrashRounds(tmp_path / "data", "group-commit", seed=2, command=TRACKING) as rounds:
        lost_bytes = 0

        def cut_power(_: int) -> None:
            nonlocal lost_bytes
            if rounds.chance.random() < 0.7:
                lost_bytes += sum(lose_page_cache(rounds.broker.directory).values())

        rounds.run(ROUNDS, cut_power)
        # Otherwise the cuts took nothing and prove nothing.
        assert lost_bytes > 0


def test_the_cut_is_real(tmp_path: Path) -> None:
    """Under the default policy the same cut loses acknowledged records: the test above could fail."""
    with CrashRounds(tmp_path / "data", "page-cache", seed=3, command=TRACKING) as rounds:
        rounds.producing.wait_for_more()
        promised = rounds.promised()
        rounds.broker.kill()
        lose_page_cache(rounds.broker.directory)
        rounds.broker.start()
        with pytest.raises(AssertionError, match="acknowledged"):
            rounds.check_end_offsets(promised, "after the cut")


def test_what_a_crash_left_unsynced_is_synced_before_anybody_hears_of_it(tmp_path: Path) -> None:
    """A process dies between write and sync, and its successor is asked for that batch: by a reader, and by its producer."""
    with BrokerProcess(tmp_path / "data", {"flush.policy": "group-commit"}, command=TRACKING) as broker:
        with RawConnection(broker.port) as connection:
            topic = create_topic(connection)
            assert send(connection, topic, sequence=0) == (0, 0)
        broker.kill()
        log = broker.directory / f"{topic}-0" / f"{0:020}.log"
        with log.open("ab") as unsynced:
            unsynced.write(batch(sequence=1, base_offset=1))
        broker.start()
        with RawConnection(broker.port) as connection:
            assert send(connection, topic, sequence=1) == (0, 1)

        broker.kill()
        lose_page_cache(broker.directory)
        broker.start()
        with RawConnection(broker.port) as connection:
            assert send(connection, topic, sequence=2) == (0, 2)
    check_files(log.parent)


def batch(sequence: int, base_offset: int = 0) -> bytes:
    return build_batch(
        [(None, b"message %d" % sequence)],
        base_offset=base_offset,
        # Now, or the producer counts as expired.
        timestamp_ms=int(time.time() * 1000),
        producer_id=4000,
        producer_epoch=0,
        base_sequence=sequence,
        partition_leader_epoch=0,
    )


def send(connection: RawConnection, topic: str, sequence: int) -> tuple[int, int]:
    """Error code and offset of the answer."""
    partition = PartitionProduceData(index=0, records=batch(sequence))
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )
    answer = connection.call(request, 9, ProduceResponse).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset
