"""What `oncelog explain-lag` says to do, case by case."""

import json
import time

import pytest

from oncelog.cli.main import main
from oncelog.client.transaction_admin import NO_TIMEOUT_MS
from tests.unit.client.clusters import Known, ScriptedCluster, producer


def explain(cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with cluster.running():
        server = str(cluster.brokers[0].address)
        assert main(["explain-lag", "orders", "--bootstrap-server", server, *arguments]) == 0
    return capsys.readouterr().out.replace(f" --bootstrap-server {server}", "")


def held_by(known: Known | None) -> ScriptedCluster:
    """Partition 0 is held back at offset 3 by producer 7."""
    transactions = {} if known is None else {"billing": known}
    return ScriptedCluster([0], transactions, {0: [[producer(7, 3, last_timestamp=1_000)]]}, {0: [(3, 10)]})


def seconds_ago(seconds: int) -> int:
    return int((time.time() - seconds) * 1000)


@pytest.mark.parametrize(
    ("known", "says", "command"),
    [
        (
            # A day is far off however long ago these lines were read in: minutes may lie between that and the test.
            Known(0, 7, [0], start_ms=seconds_ago(10), timeout_ms=86_400_000),
            "wait: its timeout ends it in 23h",
            "oncelog transactions abort billing",
        ),
        (
            Known(0, 7, [0], start_ms=seconds_ago(100), timeout_ms=60_000),
            "wait: its timeout is over",
            "oncelog transactions abort billing",
        ),
        (
            Known(0, 7, [0], start_ms=seconds_ago(100), timeout_ms=NO_TIMEOUT_MS),
            "it has no timeout (two-phase commit)",
            "oncelog transactions abort billing",
        ),
        (
            Known(0, 7, [0], "PrepareCommit"),
            "wait: it is being committed; broker 0 still has to write markers to orders-0",
            None,
        ),
        (Known(0, 7, [0], "PrepareAbort"), "wait: it is being aborted", None),
        (
            None,
            "no coordinator will ever end it",
            "oncelog transactions abort --topic orders --partition 0 --start-offset 3",
        ),
        (
            Known(0, 7, [], "CompleteCommit"),
            "no coordinator will ever end it",
            "oncelog transactions abort --topic orders --partition 0 --start-offset 3",
        ),
    ],
)
def test_what_to_do(known: Known | None, says: str, command: str | None, capsys: pytest.CaptureFixture[str]):
    text = explain(held_by(known), capsys)
    ((lag,)) = json.loads(explain(held_by(known), capsys, "--json"))
    (holder,) = lag["holders"]

    assert says in text
    assert holder["what_to_do"].startswith(says)
    assert (holder["command"] or "").partition(" --bootstrap-server")[0] == (command or "")
    if command is not None:
        assert text.rstrip().endswith(command)


def test_of_a_hanging_one_nothing_is_told_that_belongs_to_another_transaction(capsys: pytest.CaptureFixture[str]):
    later = Known(0, 7, [], "Ongoing", start_ms=seconds_ago(5))

    (lag,) = json.loads(explain(held_by(later), capsys, "--json"))
    (holder,) = lag["holders"]

    assert (holder["hanging"], holder["transactional_id"]) == (True, "billing")
    assert (holder["state"], holder["running_ms"], holder["times_out_in_ms"]) == (None, None, None)


def test_a_transaction_over_many_partitions_is_explained_once(capsys: pytest.CaptureFixture[str]):
    partitions = range(5)
    cluster = ScriptedCluster(
        [0] * 5,
        {"billing": Known(0, 7, partitions)},
        {index: [[producer(7, index)]] for index in partitions},
        {index: [(index, 10)] for index in partitions},
    )

    text = explain(cluster, capsys)

    assert text.count("what to do") == 1
    assert "orders-0 offset 0, orders-1 offset 1, orders-2 offset 2, orders-3 offset 3, orders-4 offset 4" in text


def test_nothing_held_back_is_said_so(capsys: pytest.CaptureFixture[str]):
    text = explain(ScriptedCluster([0], ends={0: [(4, 4)]}), capsys)

    assert text.splitlines() == [
        "PARTITION  HIGH WATERMARK  LAST STABLE OFFSET  HELD BACK  HELD BY",
        "orders-0                4                   4          0  -",
        "",
        "Nothing is held back: read_committed readers may read to the high watermark.",
    ]


def test_one_partition_alone(capsys: pytest.CaptureFixture[str]):
    text = explain(ScriptedCluster([0, 0, 0]), capsys, "--partition", "1")

    assert "orders-1" in text
    assert "orders-2" not in text
