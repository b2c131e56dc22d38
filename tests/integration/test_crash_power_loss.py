"""Group commit under power cuts: what was acknowledged is there once, in order, though the page cache is gone.

The broker runs on a disk that writes down what was synced (tests/disks.py). After a kill every file of the log is cut back
to that; sometimes only the process dies and the page cache stays, so that a later cut meets what an earlier run wrote.
ONCELOG_CRASH_ROUNDS says how often.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.brokers import ROOT, oncelog_only
from tests.disks import lose_page_cache
from tests.integration.crashes import CrashRounds

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
