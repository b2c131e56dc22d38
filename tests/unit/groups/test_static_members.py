"""Static members (KIP-345): a restart under the same instance id is no rebalance, and the old holder is fenced."""

import pytest

from oncelog.groups.commands import session_of
from oncelog.groups.group_records import GroupStored
from oncelog.groups.replies import JoinReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from tests.unit.groups.rehearsal import REBALANCE_MS, SESSION_MS, G, Rehearsal, subscription

ORDERS_0 = TopicPartition("orders", 0)


def stable_pair() -> Rehearsal:
    """Instances a (leader) and b, both with an assignment."""
    groups = Rehearsal()
    groups.join(instance="a", fresh="a-1")
    groups.join(instance="b", fresh="b-1")
    groups.join("a-1", instance="a")
    groups.sync("b-1", instance="b")
    groups.sync("a-1", instance="a", assignments={"a-1": b"for a", "b-1": b"for b"})
    assert groups.state is GroupState.STABLE
    return groups


def test_a_static_member_joins_without_being_sent_back_for_an_id() -> None:
    reply = Rehearsal().join(instance="a", fresh="a-1")
    assert reply is not None and (reply.error, reply.member_id) == (ErrorCode.NONE, "a-1")


def test_a_restarted_static_member_takes_its_place_and_nobody_rebalances() -> None:
    groups = stable_pair()
    reply = groups.join(instance="b", fresh="b-2")
    assert reply is not None
    assert (reply.error, reply.generation, reply.leader, reply.members) == (ErrorCode.NONE, 2, "a-1", ())
    assert groups.state is GroupState.STABLE
    assert groups.heartbeat("a-1") is ErrorCode.NONE
    answer = groups.sync("b-2", instance="b")
    assert answer is not None and answer.assignment == b"for b"
    stored = groups.log[-1].record
    assert isinstance(stored, GroupStored) and [member.member_id for member in stored.members] == ["a-1", "b-2"]


def test_a_restarted_static_member_has_a_session_of_its_own() -> None:
    groups = stable_pair()
    groups.join(instance="b", fresh="b-2")
    assert (G, session_of("b-1")) not in groups.due
    groups.pass_time(SESSION_MS - 1)
    groups.heartbeat("a-1", instance="a")
    groups.pass_time(1)
    assert list(groups.group().members) == ["a-1"]


def test_the_old_holder_of_an_instance_id_is_fenced_whatever_it_does() -> None:
    groups = stable_pair()
    groups.join(instance="b", fresh="b-2")
    assert groups.heartbeat("b-1", instance="b") is ErrorCode.FENCED_INSTANCE_ID
    assert groups.join("b-1", instance="b") == JoinReply(ErrorCode.FENCED_INSTANCE_ID, "b-1")
    sync = groups.sync("b-1", instance="b")
    assert sync is not None and sync.error is ErrorCode.FENCED_INSTANCE_ID
    commit = groups.commit({ORDERS_0: 1}, member_id="b-1", generation=2, instance="b")
    assert commit.error is ErrorCode.FENCED_INSTANCE_ID
    assert groups.leave(("b-1", "b")).members[0].error is ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat("b-1") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restarted_leader_leads_on_and_is_told_not_to_assign() -> None:
    groups = stable_pair()
    reply = groups.join(instance="a", fresh="a-2")
    assert reply is not None
    assert (reply.leader, reply.skip_assignment) == ("a-2", True)
    assert [member.member_id for member in reply.members] == ["b-1", "a-2"]


def test_an_older_client_that_led_is_told_that_it_follows() -> None:
    groups = stable_pair()
    reply = groups.join(instance="a", fresh="a-2", may_skip=False)
    assert reply is not None
    assert (reply.leader, reply.skip_assignment, reply.members) == ("a-1", False, ())
    # It leads all the same: its next join starts a rebalance.
    assert groups.group().leader == "a-2"


def test_a_restart_that_would_change_the_chosen_protocol_rebalances() -> None:
    groups = Rehearsal()
    both = {"range": subscription("orders"), "sticky": subscription("orders")}
    groups.join(instance="a", fresh="a-1", offers=both)
    groups.sync("a-1", instance="a")
    groups.join(instance="a", fresh="a-2", offers={"sticky": subscription("orders")})
    assert groups.group().generation == 2
    assert groups.group().protocol_name == "sticky"


def test_a_restart_while_the_assignment_is_awaited_starts_a_new_round() -> None:
    groups = Rehearsal()
    groups.join(instance="a", fresh="a-1")
    groups.join(instance="b", fresh="b-1")
    groups.join("a-1", instance="a")
    groups.sync("b-1", instance="b")
    waiting = groups.last_token
    groups.join(instance="a", fresh="a-2")
    assert groups.answers[waiting].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.state is GroupState.PREPARING_REBALANCE


def test_a_join_that_waits_under_a_taken_over_instance_id_is_fenced() -> None:
    groups = stable_pair()
    groups.join("a-1", instance="a")  # starts a rebalance and waits for b
    waiting = groups.last_token
    assert groups.join(instance="a", fresh="a-2") is None
    assert groups.answers[waiting] == JoinReply(ErrorCode.FENCED_INSTANCE_ID, "a-1")


def test_a_sync_that_waits_under_a_taken_over_instance_id_is_fenced() -> None:
    groups = Rehearsal()
    groups.join(instance="a", fresh="a-1")
    groups.join(instance="b", fresh="b-1")
    groups.join("a-1", instance="a")
    groups.sync("b-1", instance="b")
    waiting = groups.last_token
    groups.join(instance="b", fresh="b-2")
    assert groups.answers[waiting].error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_misses_a_rebalance_keeps_its_place_until_its_session_ends() -> None:
    groups = Rehearsal()
    groups.join(instance="a", fresh="a-1", session_ms=100_000, rebalance_ms=5_000)
    groups.sync("a-1", instance="a")
    groups.member("m-1", rebalance_ms=5_000)
    waiting = groups.last_token
    groups.pass_time(5_000)
    assert {member.member_id for member in groups.answers[waiting].members} == {"a-1", "m-1"}
    assert groups.answers[waiting].leader == "m-1"


def test_a_rebalance_for_which_nobody_comes_is_put_off_while_static_members_may_be_restarting() -> None:
    groups = Rehearsal()
    groups.join(instance="a", fresh="a-1", session_ms=300_000)
    groups.sync("a-1", instance="a")
    groups.member("m-1")
    groups.leave(("m-1", None))
    assert groups.state is GroupState.PREPARING_REBALANCE
    groups.pass_time(2 * REBALANCE_MS)
    assert groups.state is GroupState.PREPARING_REBALANCE
    groups.pass_time(300_000)
    assert groups.state is GroupState.EMPTY


def test_an_administrator_removes_members_by_instance_id() -> None:
    groups = stable_pair()
    reply = groups.leave(("", "b"), ("", "nobody"), ("", None))
    assert [member.error for member in reply.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(groups.group().members) == ["a-1"]
    assert groups.state is GroupState.PREPARING_REBALANCE


def test_if_the_take_over_cannot_be_stored_the_old_holder_stays() -> None:
    groups = stable_pair()
    groups.log_refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    reply = groups.join(instance="b", fresh="b-2")
    assert reply is not None and reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.heartbeat("b-1", instance="b") is ErrorCode.NONE
    assert (G, session_of("b-2")) not in groups.due


def test_an_unknown_instance_id_with_a_member_id_is_unknown() -> None:
    groups = stable_pair()
    assert groups.join("x", instance="c") == JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, "x")


@pytest.mark.parametrize("instance", ["a", "c"])
def test_an_id_given_to_a_dynamic_member_is_no_way_into_a_static_place(instance: str) -> None:
    groups = stable_pair()
    groups.join(fresh="m-1")
    reply = groups.join("m-1", instance=instance)
    assert reply is not None and reply.error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID)
    assert groups.state is GroupState.STABLE


def test_a_static_member_is_gone_when_its_session_ends() -> None:
    groups = stable_pair()
    groups.heartbeat("a-1", instance="a")
    groups.pass_time(SESSION_MS - 1)
    groups.heartbeat("a-1", instance="a")
    groups.pass_time(1)
    assert list(groups.group().members) == ["a-1"]
