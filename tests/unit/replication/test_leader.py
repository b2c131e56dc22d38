"""The high watermark follows the slowest in-sync replica, and too few of them refuse an acks=-1 produce."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.replication.leader import LeaderView


@pytest.mark.seed("P2")
def test_alone_the_leader_decides():
    assert LeaderView(1, [1]).progress(1, 42) == 42


@pytest.mark.seed("P2")
def test_the_slowest_in_sync_replica_decides():
    view = LeaderView(1, [1, 2, 3])
    assert view.progress(1, 100) == 0
    assert view.progress(2, 60) == 0
    assert view.progress(3, 70) == 60
    assert view.progress(2, 90) == 70


@pytest.mark.seed("P4")
def test_too_few_in_sync_replicas_are_refused_before_the_append():
    view = LeaderView(1, [1])
    assert view.enough_in_sync(1) is None
    refused = view.enough_in_sync(2)
    assert refused is not None
    assert refused.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "min.insync.replicas" in refused.why


def test_a_leader_outside_its_in_sync_set_is_a_bug():
    with pytest.raises(ValueError, match="not in its own in-sync set"):
        LeaderView(1, [2])
