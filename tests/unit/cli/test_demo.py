"""The demo counts honestly, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

from oncelog.cli.demo import Arrivals


def arrived(*numbers: int, records: int = 6, partitions: int = 2) -> Arrivals:
    arrivals = Arrivals(records, partitions)
    for number in numbers:
        arrivals.add(number)
    return arrivals


def counts(arrivals: Arrivals) -> tuple[int, int, int]:
    return arrivals.lost, arrivals.duplicated, arrivals.out_of_order


def test_partitions_may_arrive_in_any_order_among_each_other():
    arrivals = arrived(1, 3, 5, 0, 2, 4)

    assert arrivals.complete
    assert counts(arrivals) == (0, 0, 0)


def test_a_lost_record_is_counted():
    arrivals = arrived(0, 1, 2, 3, 5)

    assert not arrivals.complete
    assert counts(arrivals) == (1, 0, 0)


def test_a_doubled_record_is_counted_and_hides_no_lost_one():
    arrivals = arrived(0, 1, 2, 3, 3, 5)

    assert not arrivals.complete
    assert counts(arrivals) == (1, 1, 0)


def test_a_displaced_record_is_counted():
    assert counts(arrived(2, 0, 4, 1, 3, 5)) == (0, 0, 1)


def test_it_sends_receives_and_cleans_up(tmp_path: Path):
    command = [sys.executable, "-m", "oncelog", "demo", "--records", "3000"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)

    table = dict(re.findall(r"^  (\S.*?)  +(\S+)$", result.stdout, re.MULTILINE))
    assert result.returncode == 0, result.stderr
    assert {name: table[name] for name in ("sent", "arrived", "lost", "duplicated", "out of order")} == {
        "sent": "3,000",
        "arrived": "3,000",
        "lost": "0",
        "duplicated": "0",
        "out of order": "0",
    }
    assert list(tmp_path.iterdir()) == []
