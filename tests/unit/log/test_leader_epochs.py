"""Leader epochs: where each began, and where it ended as a replica that asks is told."""

import pytest

from oncelog.log.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs() -> LeaderEpochs:
    return LeaderEpochs([(1, 0), (3, 10), (4, 25)])


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(0, (0, 0)), (1, (1, 10)), (2, (1, 10)), (3, (3, 25)), (4, (4, 40)), (5, (-1, -1)), (-1, (-1, -1))],
)
def test_the_end_of_an_epoch(epochs: LeaderEpochs, asked: int, answer: tuple[int, int]) -> None:
    assert epochs.end_offset_of(asked, 40) == answer


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (24, 3), (25, 4), (99, 4)])
def test_the_epoch_of_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_of(offset) == epoch
    assert LeaderEpochs().epoch_of(offset) == -1


def test_what_contradicts_a_new_entry_is_forgotten(epochs: LeaderEpochs) -> None:
    assert epochs.assign(5, 20)
    assert epochs.entries == [(1, 0), (3, 10), (5, 20)]
    assert epochs.assign(6, 10)
    assert epochs.entries == [(1, 0), (6, 10)]
    assert not epochs.assign(6, 30)
    assert epochs.latest == 6


def test_cutting_the_end(epochs: LeaderEpochs) -> None:
    assert not epochs.truncate_from(26)
    assert epochs.truncate_from(25)
    assert (epochs.latest, epochs.entries) == (3, [(1, 0), (3, 10)])
    assert epochs.truncate_from(0)
    assert (epochs.latest, epochs.entries) == (-1, [])


def test_cutting_the_beginning(epochs: LeaderEpochs) -> None:
    assert not epochs.truncate_before(0)
    assert epochs.truncate_before(5)
    assert epochs.entries == [(1, 5), (3, 10), (4, 25)]
    assert epochs.truncate_before(10)
    assert epochs.entries == [(3, 10), (4, 25)]
    assert epochs.truncate_before(100)
    assert epochs.entries == [(4, 100)]
    assert epochs.latest == 4
