"""When a transaction is hanging, and when it only looks like it."""

from oncelog.client.hanging_transactions import find_hanging
from oncelog.client.transaction_admin import TransactionAdmin
from tests.unit.client.clusters import Known, ScriptedCluster, producer

SILENT_SINCE_MS = 1_000


def hanging_in(cluster: ScriptedCluster) -> list[tuple[int, int]]:
    """(partition, producer id) of those found."""
    with cluster.running() as brokers:
        view = brokers.view()
        found = find_hanging(TransactionAdmin(brokers), view, view.partitions, silent_since_ms=SILENT_SINCE_MS)
    return [(hanging.partition.partition, hanging.producer_id) for hanging in found.transactions]


def test_a_producer_no_coordinator_knows():
    assert hanging_in(ScriptedCluster([0, 1], open={1: [[producer(7, 3)]]})) == [(1, 7)]


def test_a_partition_its_coordinator_does_not_know_of():
    cluster = ScriptedCluster([0, 1], {"a": Known(0, 7, [0])}, {0: [[producer(7, 3)]], 1: [[producer(7, 8)]]})

    assert hanging_in(cluster) == [(1, 7)]


def test_one_whose_coordinator_has_finished_without_it():
    cluster = ScriptedCluster([0], {"a": Known(0, 7, state="CompleteCommit")}, {0: [[producer(7, 3)]]})

    assert hanging_in(cluster) == [(0, 7)]


def test_not_one_that_is_going_on_or_waits_for_its_marker():
    cluster = ScriptedCluster(
        [0, 0],
        {"a": Known(0, 7, [0]), "b": Known(0, 8, [1], "PrepareAbort")},
        {0: [[producer(7, 3)]], 1: [[producer(8, 3)]]},
    )

    assert hanging_in(cluster) == []


def test_not_one_that_was_written_to_just_now():
    cluster = ScriptedCluster([0], open={0: [[producer(7, 3, last_timestamp=SILENT_SINCE_MS)]]})

    assert hanging_in(cluster) == []


def test_not_one_that_ended_while_its_coordinator_was_asked():
    cluster = ScriptedCluster([0], open={0: [[producer(7, 3)], [producer(7, -1)]]})

    assert hanging_in(cluster) == []


def test_not_one_that_ended_and_was_followed_by_another():
    cluster = ScriptedCluster([0], open={0: [[producer(7, 3)], [producer(7, 5)]]})

    assert hanging_in(cluster) == []


def test_a_cluster_without_open_transactions_asks_no_coordinator():
    cluster = ScriptedCluster([0])

    assert hanging_in(cluster) == []
    assert {key.name for key, _, _ in cluster.brokers[0].asked} == {"API_VERSIONS", "METADATA", "DESCRIBE_PRODUCERS"}
