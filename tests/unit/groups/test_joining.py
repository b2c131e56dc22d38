"""JoinGroup: who gets in, under which id, and what the others notice."""

import pytest

from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupStored
from oncelog.groups.replies import JoinReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from tests.unit.groups.rehearsal import REBALANCE_MS, SESSION_MS, G, Rehearsal, subscription


def test_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    groups = Rehearsal()
    assert groups.join(fresh="m-1") == JoinReply(ErrorCode.MEMBER_ID_REQUIRED, "m-1")
    assert groups.state is GroupState.EMPTY

    reply = groups.join("m-1")

    assert reply is not None
    assert (reply.error, reply.generation, reply.leader, reply.protocol_name) == (ErrorCode.NONE, 1, "m-1", "range")
    assert [member.member_id for member in reply.members] == ["m-1"]


def test_an_older_client_is_in_at_once() -> None:
    reply = Rehearsal().join(fresh="m-1", id_required=False)
    assert reply is not None and (reply.error, reply.member_id) == (ErrorCode.NONE, "m-1")


def test_an_id_that_is_not_used_in_time_is_taken_back() -> None:
    groups = Rehearsal()
    groups.join(fresh="m-1")
    groups.pass_time(SESSION_MS)
    late = groups.join("m-1")
    assert late is not None and late.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_nobody_gave_out_is_unknown() -> None:
    groups = Rehearsal()
    assert groups.join("stranger") == JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    groups.stable("m-1")
    assert groups.join("stranger") == JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, "stranger")


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    groups = Rehearsal()
    reply = groups.join(session_ms=session_ms)
    assert reply is not None and reply.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert G not in groups.shard.groups


def test_a_group_needs_a_name_a_type_and_a_protocol() -> None:
    groups = Rehearsal()
    assert groups.join(group_id="") == JoinReply(ErrorCode.INVALID_GROUP_ID)
    assert groups.join(protocol_type="") == JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert groups.join(offers={}) == JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert not groups.shard.groups


def test_a_member_that_shares_no_protocol_with_the_others_stays_outside() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    assert groups.join(offers={"sticky": b""}) == JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert groups.join(protocol_type="connect") == JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert groups.state is GroupState.STABLE


def test_the_protocol_with_most_votes_among_the_common_ones_wins() -> None:
    groups = Rehearsal()
    groups.member("m-1", offers={"a": b"1a", "b": b"1b", "c": b"1c"})
    groups.member("m-2", offers={"b": b"2b", "c": b"2c"})
    groups.member("m-3", offers={"c": b"3c", "b": b"3b"})
    reply = groups.join("m-1", offers={"a": b"1a", "b": b"1b", "c": b"1c"})
    assert reply is not None and reply.protocol_name == "b"
    assert {member.member_id: member.metadata for member in reply.members} == {"m-1": b"1b", "m-2": b"2b", "m-3": b"3b"}


def test_only_the_leader_hears_what_everybody_wants() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    groups.member("m-2")
    follower = groups.last_token
    leader = groups.join("m-1")
    assert leader is not None and [member.member_id for member in leader.members] == ["m-1", "m-2"]
    assert groups.answers[follower].members == ()
    assert groups.answers[follower].leader == "m-1"


def test_a_full_group_takes_nobody_more() -> None:
    groups = Rehearsal(GroupConfig(max_size=2))
    groups.stable("m-1", "m-2")
    assert groups.join(fresh="m-3") == JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert groups.join(instance="static") == JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert groups.heartbeat("m-1") is ErrorCode.NONE


def test_when_the_limit_was_lowered_the_last_to_come_back_is_turned_away() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.config = GroupConfig(max_size=1)
    groups.join("m-1")
    first = groups.last_token
    assert groups.join("m-2") == JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert groups.answers[first].error is ErrorCode.NONE
    assert list(groups.group().members) == ["m-1"]


def test_the_leader_that_joins_again_starts_a_rebalance_a_follower_does_not() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    again = groups.join("m-2")
    assert again is not None and (again.generation, again.members) == (2, ())
    assert groups.state is GroupState.STABLE
    assert groups.join("m-1") is None
    assert groups.state is GroupState.PREPARING_REBALANCE


def test_a_follower_with_new_metadata_starts_a_rebalance() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    assert groups.join("m-2", offers={"range": subscription("orders", "payments")}) is None
    assert groups.state is GroupState.PREPARING_REBALANCE


def test_whoever_lost_the_answer_to_its_join_gets_it_again() -> None:
    groups = Rehearsal()
    first = groups.member("m-1")
    assert groups.join("m-1") == first
    assert groups.state is GroupState.COMPLETING_REBALANCE


def test_new_metadata_while_the_assignment_is_awaited_starts_over() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    reply = groups.join("m-1", offers={"range": subscription("payments")})
    assert reply is None or reply.error is ErrorCode.NONE
    assert groups.group().generation == 2


def test_a_second_join_of_a_member_that_waits_takes_the_place_of_the_first() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    first = groups.last_token
    groups.join("m-1")
    assert groups.answers[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.waiting


def test_a_new_member_whose_join_stays_parked_too_long_is_given_up() -> None:
    groups = Rehearsal(GroupConfig(new_member_join_timeout_ms=30_000))
    groups.stable("m-1", session_ms=100_000)
    groups.member("m-2")  # waits for m-1, which only heartbeats
    parked = groups.last_token
    groups.pass_time(30_000)
    assert groups.answers[parked].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(groups.group().members) == ["m-1"]


# The first rebalance of an empty group


def test_without_a_delay_the_first_member_goes_ahead_alone() -> None:
    groups = Rehearsal()
    groups.join(fresh="m-2")  # has an id, has not come back
    reply = groups.member("m-1")
    assert reply is not None and reply.generation == 1


def test_with_a_delay_members_that_come_in_time_share_the_first_generation() -> None:
    groups = Rehearsal(GroupConfig(initial_rebalance_delay_ms=3_000))
    assert groups.member("m-1") is None
    first = groups.last_token
    groups.pass_time(2_000)
    assert groups.member("m-2") is None
    second = groups.last_token
    groups.pass_time(2_000)
    assert first in groups.waiting, "somebody came: the delay starts again"
    groups.pass_time(2_000)
    assert groups.answers[first].generation == groups.answers[second].generation == 1


def test_the_delay_ends_with_the_rebalance_timeout_however_many_keep_coming() -> None:
    groups = Rehearsal(GroupConfig(initial_rebalance_delay_ms=3_000))
    groups.member("m-0", rebalance_ms=10_000)
    first = groups.last_token
    for number in range(1, 20):
        groups.pass_time(1_000)
        groups.member(f"m-{number}", rebalance_ms=10_000)
        if first in groups.answers:
            break
    assert groups.now_ms == 1_000_000 + 10_000


def test_who_leaves_during_the_delay_leaves_an_empty_group() -> None:
    groups = Rehearsal(GroupConfig(initial_rebalance_delay_ms=3_000))
    groups.member("m-1")
    groups.leave(("m-1", None))
    groups.pass_time(3_000)
    assert groups.state is GroupState.EMPTY
    assert isinstance(groups.log[-1].record, GroupStored)


# Rebalances


def test_a_rebalance_waits_for_everybody_and_those_who_do_not_come_are_out() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2", session_ms=100_000)
    groups.join("m-1")
    waiting = groups.last_token
    assert groups.heartbeat("m-2") is ErrorCode.REBALANCE_IN_PROGRESS
    groups.pass_time(REBALANCE_MS - 1)
    assert waiting in groups.waiting
    groups.pass_time(1)
    assert groups.answers[waiting].generation == 3
    assert groups.heartbeat("m-2", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_slowest_member_sets_the_time_for_a_rebalance() -> None:
    groups = Rehearsal()
    groups.member("m-1", rebalance_ms=5_000, session_ms=100_000)
    groups.member("m-2", rebalance_ms=20_000, session_ms=100_000)
    waiting = groups.last_token
    groups.pass_time(19_000)
    assert waiting in groups.waiting
    groups.pass_time(1_000)
    assert groups.answers[waiting].error is ErrorCode.NONE


def test_an_id_that_was_given_out_holds_up_a_rebalance_until_its_owner_comes() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.join(fresh="m-2")
    groups.join("m-1")
    leader = groups.last_token
    assert leader in groups.waiting
    groups.join("m-2")
    assert len(groups.answers[leader].members) == 2


def test_when_the_leader_does_not_come_another_leads() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2", session_ms=100_000)
    groups.join("m-2", offers={"range": subscription("new")})
    waiting = groups.last_token
    groups.pass_time(REBALANCE_MS)
    assert groups.answers[waiting].leader == "m-2"
    assert len(groups.answers[waiting].members) == 1
