"""Heartbeats, sessions, leaving, and groups that come and go with their broker."""

import pytest

from oncelog.groups.commands import session_of
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupStored
from oncelog.groups.membership import decide_loaded, decide_unloaded
from oncelog.groups.replies import LeaveReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from tests.unit.groups.rehearsal import SESSION_MS, G, Rehearsal


def test_what_a_heartbeat_is_told() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    assert groups.heartbeat("m-1") is ErrorCode.NONE
    assert groups.heartbeat("m-1", 1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat("m-1", instance="none") is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat("m-1", 2, group_id="no such group") is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat("m-1", 2, group_id="") is ErrorCode.INVALID_GROUP_ID
    groups.leave(("m-2", None))
    assert groups.heartbeat("m-1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_between_join_and_sync_a_heartbeat_is_welcome() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    assert groups.heartbeat("m-1") is ErrorCode.NONE


def test_a_silent_member_is_out_when_its_session_ends_and_the_others_rebalance() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.pass_time(SESSION_MS // 2)
    groups.heartbeat("m-1")
    groups.pass_time(SESSION_MS // 2)
    assert list(groups.group().members) == ["m-1"]
    assert groups.heartbeat("m-1") is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat("m-2") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_during_a_rebalance_keeps_the_session() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    for _ in range(5):
        groups.pass_time(SESSION_MS - 1)
        assert groups.heartbeat("m-2") is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(groups.group().members) == {"m-1", "m-2"}


def test_waiting_in_a_join_counts_as_life() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    for _ in range(3):
        groups.pass_time(SESSION_MS - 1)
        groups.heartbeat("m-2")
    assert "m-1" in groups.group().members


def test_the_answer_to_a_join_starts_the_session_anew() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    for _ in range(3):
        groups.pass_time(SESSION_MS - 1)
        groups.heartbeat("m-2")
    groups.join("m-2")  # now everybody has joined
    groups.pass_time(SESSION_MS - 1)
    assert set(groups.group().members) == {"m-1", "m-2"}
    groups.pass_time(1)
    assert groups.state is GroupState.EMPTY


def test_a_new_member_has_its_session_from_the_answer_to_its_join() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    groups.pass_time(SESSION_MS)
    assert groups.state is GroupState.EMPTY


def test_when_the_last_one_waited_for_fails_the_rebalance_goes_on() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    waiting = groups.last_token
    groups.pass_time(SESSION_MS)
    assert groups.answers[waiting].generation == 3


def test_when_the_last_member_fails_the_group_is_empty_and_that_is_stored() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.pass_time(SESSION_MS)
    assert groups.state is GroupState.EMPTY
    stored = groups.log[-1].record
    assert isinstance(stored, GroupStored)
    assert (stored.members, stored.generation, stored.protocol_name, stored.leader) == ((), 2, None, None)
    assert stored.state_since_ms == groups.now_ms


def test_leaving() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    assert groups.leave(("m-2", None)) == LeaveReply(members=(("m-2", None, ErrorCode.NONE),))
    assert groups.state is GroupState.PREPARING_REBALANCE
    groups.leave(("m-1", None))
    assert groups.state is GroupState.EMPTY
    assert not groups.due, "nobody is expected any more"


def test_several_leave_at_once_each_with_its_own_result() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2", "m-3")
    reply = groups.leave(("m-1", None), ("stranger", None), ("m-2", None), ("m-1", None))
    assert [member.error for member in reply.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.group().leader == "m-3"


def test_an_id_that_was_only_given_out_can_be_given_back() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.join(fresh="m-2")
    groups.join("m-1")
    waiting = groups.last_token
    assert groups.leave(("m-2", None)).members[0].error is ErrorCode.NONE
    assert waiting in groups.answers


def test_leaving_what_is_not_there() -> None:
    groups = Rehearsal()
    assert groups.leave(("m-1", None), group_id="").error is ErrorCode.INVALID_GROUP_ID
    assert groups.leave(("m-1", None)) == LeaveReply(members=(("m-1", None, ErrorCode.UNKNOWN_MEMBER_ID),))
    groups.stable("m-1")
    groups.leave()
    assert groups.state is GroupState.STABLE


def test_a_join_that_waits_is_answered_when_its_member_is_removed() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    waiting = groups.last_token
    groups.leave(("m-1", None))
    assert groups.answers[waiting].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_that_a_group_ran_empty_holds_even_if_it_cannot_be_stored() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.log_refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.leave(("m-1", None)).members[0].error is ErrorCode.NONE
    assert groups.state is GroupState.EMPTY


# Coming and going of the broker


def reloaded(groups: Rehearsal) -> Rehearsal:
    """The same log under a new broker."""
    again = Rehearsal(groups.config, groups.now_ms, groups.replayed())
    for group in list(again.shard.groups.values()):
        again.carry_out(decide_loaded(group, again.config, again.now_ms))
    return again


def test_after_a_restart_members_go_on_as_if_nothing_had_happened() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    again = reloaded(groups)
    assert again.heartbeat("m-1", 2) is ErrorCode.NONE
    reply = again.sync("m-2", 2)
    assert reply is not None and reply.assignment == b"m-2"
    follower = again.join("m-2")
    assert follower is not None and follower.generation == 2


def test_after_a_restart_members_have_a_session_to_say_that_they_are_there() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    again = reloaded(groups)
    again.pass_time(SESSION_MS - 1)
    again.heartbeat("m-1", 2)
    again.pass_time(1)
    assert list(again.group().members) == ["m-1"]


def test_a_restart_in_the_middle_of_a_rebalance_falls_back_to_the_last_stored_generation() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.member("m-2")
    again = reloaded(groups)
    assert again.state is GroupState.STABLE
    assert list(again.group().members) == ["m-1"]


def test_a_group_over_the_limit_rebalances_when_it_is_loaded() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.config = GroupConfig(max_size=1)
    again = reloaded(groups)
    assert again.state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("phase", ["joining", "syncing"])
def test_a_broker_that_lets_go_of_a_group_sends_whoever_waits_elsewhere(phase: str) -> None:
    groups = Rehearsal()
    if phase == "joining":
        groups.stable("m-1", "m-2")
        groups.join("m-1")
    else:
        groups.member("m-1")
        groups.member("m-2")
        groups.join("m-1")
        groups.sync("m-2")
    waiting = groups.last_token
    groups.carry_out(decide_unloaded(groups.group(), groups.config, groups.now_ms))
    assert groups.answers[waiting].error is ErrorCode.NOT_COORDINATOR
    assert groups.state is GroupState.DEAD
    assert not groups.due


def test_a_timer_that_goes_off_for_nobody_changes_nothing() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    before = groups.group()
    groups.due[G, session_of("gone")] = groups.now_ms
    groups.due["no such group", session_of("m-1")] = groups.now_ms
    groups.pass_time(0)
    assert groups.group() is before
