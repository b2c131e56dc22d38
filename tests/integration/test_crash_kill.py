"""SIGKILL at random moments under an idempotent producer with acks=all: what was acknowledged is there once, in order.

The page cache outlives the process, so with the default flush policy nothing acknowledged may go. What a torn write leaves
behind the last whole batch is cut. ONCELOG_CRASH_ROUNDS says how often the broker is killed.
"""

import os
from pathlib import Path

import pytest

from tests.brokers import oncelog_only
from tests.integration.crashes import PARTITIONS, CrashRounds, damage_tail

ROUNDS = int(os.environ.get("ONCELOG_CRASH_ROUNDS", "50"))
pytestmark = [oncelog_only, pytest.mark.timeout(60 + 10 * ROUNDS)]


@pytest.mark.seed("I2")
@pytest.mark.parametrize("policy", ["page-cache", "group-commit"])
def test_every_acknowledged_record_is_there_once_after_kills(tmp_path: Path, policy: str) -> None:
    with CrashRounds(tmp_path / "data", policy, seed=1) as rounds:
        kinds: set[str] = set()

        def tear_tails(_: int) -> None:
            for partition in range(PARTITIONS):
                kinds.add(damage_tail(rounds.directory(partition), rounds.chance))

        # The rounds are about kills and torn tails; how acknowledgements wait for the disk is the other file's subject.
        rounds.run(ROUNDS if policy == "page-cache" else max(5, ROUNDS // 5), tear_tails)
        assert len(kinds) == 5
