from collections import Counter
from itertools import chain

import pytest

from oncelog.cluster.placement import place, place_as_asked
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused


def test_one_broker_leads_everything():
    placed = place([7], 3, 1)

    assert [(state.leader, state.isr, state.replicas) for state in placed] == [(7, (7,), (7,))] * 3
    assert all(state.leader_epoch == 0 for state in placed)


def test_more_replicas_than_brokers_are_refused():
    refused = place([7], 3, 2)

    assert isinstance(refused, Refused)
    assert refused.code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("brokers", [[1, 2, 3], [4, 9, 17, 23, 50]])
def test_leaders_and_replicas_spread_evenly(brokers):
    count = len(brokers) * (len(brokers) - 1)

    placed = place(brokers, count, 3)

    assert all(state.replicas[0] == state.leader and len(set(state.replicas)) == 3 for state in placed)
    assert set(Counter(state.leader for state in placed).values()) == {count // len(brokers)}
    assert set(Counter(chain.from_iterable(state.replicas for state in placed)).values()) == {count * 3 // len(brokers)}


def test_the_followers_of_one_leader_take_turns():
    second = [state.replicas[1] for state in place([1, 2, 3, 4], 12, 2) if state.leader == 1]

    assert sorted(second) == [2, 3, 4]


def test_the_wheel_can_be_turned():
    assert [state.leader for state in place([1, 2, 3], 3, 1, first=2)] == [3, 1, 2]


@pytest.mark.parametrize("replicas", [[], [1, 1], [1, 9], [-1]])
def test_a_placement_by_hand_names_known_brokers_once(replicas):
    refused = place_as_asked([1, 2], replicas)

    assert isinstance(refused, Refused)
    assert refused.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_first_broker_named_by_hand_leads():
    state = place_as_asked([1, 2], [2, 1])

    assert not isinstance(state, Refused)
    assert (state.leader, state.replicas) == (2, (2, 1))
