"""SyncGroup: the assignment is stored, then told; who never asks for it is out."""

from oncelog.groups.commands import SYNC_TIMER
from oncelog.groups.group_records import GroupStored
from oncelog.groups.replies import SyncReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from tests.unit.groups.rehearsal import REBALANCE_MS, SESSION_MS, G, Rehearsal


def joined_pair(**join: int) -> Rehearsal:
    """m-1 (leader) and m-2 know their generation, 2, and nobody its assignment."""
    groups = Rehearsal()
    groups.member("m-1", **join)
    groups.member("m-2", **join)
    groups.join("m-1", **join)
    assert groups.state is GroupState.COMPLETING_REBALANCE
    return groups


def test_followers_wait_for_the_leader_and_everybody_gets_its_part() -> None:
    groups = joined_pair()
    assert groups.sync("m-2") is None
    waiting = groups.last_token
    leader = groups.sync("m-1", assignments={"m-1": b"one", "m-2": b"two"})
    assert leader == SyncReply(protocol_type="consumer", protocol_name="range", assignment=b"one")
    assert groups.answers[waiting].assignment == b"two"
    assert groups.state is GroupState.STABLE


def test_the_assignment_is_stored_with_the_generation() -> None:
    groups = joined_pair()
    groups.sync("m-1", assignments={"m-1": b"one", "m-2": b"two"})
    stored = groups.log[-1].record
    assert isinstance(stored, GroupStored)
    assert (stored.generation, stored.leader, stored.protocol_name) == (2, "m-1", "range")
    assert {member.member_id: member.assignment for member in stored.members} == {"m-1": b"one", "m-2": b"two"}


def test_a_follower_that_asks_later_gets_its_part_at_once() -> None:
    groups = joined_pair()
    groups.sync("m-1", assignments={"m-2": b"two"})
    late = groups.sync("m-2")
    assert late is not None and late.assignment == b"two"
    again = groups.sync("m-2")
    assert again == late


def test_a_member_the_leader_forgot_gets_nothing() -> None:
    groups = joined_pair()
    groups.sync("m-1", assignments={"m-1": b"one"})
    reply = groups.sync("m-2")
    assert reply is not None and (reply.error, reply.assignment) == (ErrorCode.NONE, b"")


def test_who_may_not_sync() -> None:
    groups = joined_pair()

    def error(reply: SyncReply | None) -> ErrorCode:
        assert reply is not None
        return reply.error

    assert error(groups.sync("m-1", 1)) is ErrorCode.ILLEGAL_GENERATION
    assert error(groups.sync("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(groups.sync("m-1", protocol_name="sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(groups.sync("m-1", protocol_type="connect")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(groups.sync("m-1", 1, group_id="no such group")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(groups.sync("m-1", 1, group_id="")) is ErrorCode.INVALID_GROUP_ID
    groups.join(fresh="m-3", id_required=False)
    assert error(groups.sync("m-1", 2)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_sends_those_who_wait_for_an_assignment_back_to_join() -> None:
    groups = joined_pair()
    groups.sync("m-2")
    waiting = groups.last_token
    groups.leave(("m-1", None))
    assert groups.answers[waiting].error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_leaves_while_it_waits_for_its_assignment_is_answered() -> None:
    groups = joined_pair()
    groups.sync("m-2")
    waiting = groups.last_token
    groups.leave(("m-2", None))
    assert groups.answers[waiting].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_sync_of_a_member_that_waits_takes_the_place_of_the_first() -> None:
    groups = joined_pair()
    groups.sync("m-2")
    first = groups.last_token
    groups.sync("m-2")
    second = groups.last_token
    assert groups.answers[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.sync("m-1", assignments={"m-2": b"two"})
    assert groups.answers[second].assignment == b"two"


def test_members_that_never_ask_for_their_part_are_out_after_the_rebalance_timeout() -> None:
    groups = joined_pair(session_ms=200_000)
    groups.sync("m-1")
    groups.pass_time(REBALANCE_MS - 1)
    assert groups.state is GroupState.STABLE
    groups.pass_time(1)
    assert groups.state is GroupState.PREPARING_REBALANCE
    assert list(groups.group().members) == ["m-1"]


def test_a_leader_that_never_assigns_is_out_and_the_others_start_over() -> None:
    groups = joined_pair(session_ms=200_000)
    groups.sync("m-2")
    waiting = groups.last_token
    groups.pass_time(REBALANCE_MS)
    assert groups.answers[waiting].error is ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.join("m-2")
    assert again is not None and (again.leader, again.generation) == ("m-2", 3)


def test_once_everybody_has_asked_nobody_is_waited_for() -> None:
    groups = joined_pair(session_ms=200_000)
    groups.sync("m-1")
    assert (G, SYNC_TIMER) in groups.due
    groups.sync("m-2")
    assert (G, SYNC_TIMER) not in groups.due
    groups.pass_time(REBALANCE_MS)
    assert groups.state is GroupState.STABLE


def test_waiting_for_an_assignment_counts_as_life_and_the_answer_starts_the_session_anew() -> None:
    groups = joined_pair()
    groups.sync("m-2")
    groups.pass_time(SESSION_MS - 1)
    groups.heartbeat("m-1")
    groups.pass_time(SESSION_MS - 1)
    assert set(groups.group().members) == {"m-1", "m-2"}
    groups.sync("m-1")
    groups.heartbeat("m-1")
    groups.pass_time(SESSION_MS - 1)
    assert "m-2" in groups.group().members
    groups.pass_time(1)
    assert "m-2" not in groups.group().members


def test_if_the_assignment_cannot_be_stored_everybody_hears_it_and_joins_again() -> None:
    groups = joined_pair()
    groups.sync("m-2")
    waiting = groups.last_token
    groups.log_refuses = ErrorCode.NOT_COORDINATOR
    leader = groups.sync("m-1", assignments={"m-1": b"one", "m-2": b"two"})
    assert leader is not None and leader.error is ErrorCode.NOT_COORDINATOR
    assert groups.answers[waiting].error is ErrorCode.NOT_COORDINATOR
    assert groups.state is GroupState.PREPARING_REBALANCE
    assert all(member.assignment == b"" for member in groups.group().members.values())
