"""What holds back a last stable offset, told from what only seemed to."""

from oncelog.client.stable_offset import PartitionLag, explain_lag
from tests.unit.client.clusters import Known, ScriptedCluster, producer


def explained(cluster: ScriptedCluster) -> list[PartitionLag]:
    with cluster.running() as brokers:
        view = brokers.view()
        return explain_lag(brokers, view, view.partitions)


def test_nothing_is_held_back():
    cluster = ScriptedCluster([0, 1], ends={0: [(5, 5)], 1: [(9, 9)]})

    first, second = explained(cluster)

    assert (first.last_stable_offset, first.high_watermark, first.held_back) == (5, 5, 0)
    assert (second.held_back, second.holders) == (0, ())
    assert "DESCRIBE_PRODUCERS" not in {key.name for broker in cluster.brokers for key, _, _ in broker.asked}


def test_the_first_open_transaction_comes_first():
    cluster = ScriptedCluster(
        [0, 1],
        {"late": Known(1, 7, [1]), "early": Known(0, 8, [1])},
        {1: [[producer(7, 60), producer(8, 40), producer(9, -1)]]},
        {1: [(40, 100)]},
    )

    lag = explained(cluster)[1]

    assert lag.held_back == 60
    assert [holder.transaction.start_offset for holder in lag.holders] == [40, 60]
    assert [holder.description and holder.description.transactional_id for holder in lag.holders] == ["early", "late"]
    assert not any(holder.hanging for holder in lag.holders)


def test_one_that_waits_for_its_marker():
    cluster = ScriptedCluster([0], {"a": Known(0, 7, [0], "PrepareCommit")}, {0: [[producer(7, 1)]]}, {0: [(1, 2)]})

    (holder,) = explained(cluster)[0].holders

    assert holder.description is not None
    assert holder.description.is_prepared
    assert not holder.hanging


def test_a_hanging_one_is_told_without_waiting_for_a_timeout():
    cluster = ScriptedCluster([0], open={0: [[producer(7, 1)]]}, ends={0: [(1, 2)]})

    (holder,) = explained(cluster)[0].holders

    assert holder.hanging
    assert holder.description is None


def test_one_that_ended_while_it_was_looked_at_is_looked_at_again():
    cluster = ScriptedCluster([0], open={0: [[producer(7, 1)], []]}, ends={0: [(1, 2), (3, 3)]})

    (lag,) = explained(cluster)

    assert (lag.held_back, lag.holders) == (0, ())


def test_a_marker_that_is_not_on_all_replicas_yet():
    cluster = ScriptedCluster([0], ends={0: [(1, 3)]})

    (lag,) = explained(cluster)

    assert (lag.held_back, lag.holders) == (2, ())
