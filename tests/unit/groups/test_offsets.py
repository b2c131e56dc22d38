"""Offsets: who may commit, what is read back, what is deleted and what runs out."""

import pytest

from oncelog.groups.commands import ExpireOffsets, ForgetTopic
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupRemoved, OffsetRemoved
from oncelog.groups.reading import read_offsets
from oncelog.groups.replies import OffsetsReply
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from tests.unit.groups.rehearsal import SESSION_MS, G, Rehearsal, subscription

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
PAYMENTS_0 = TopicPartition("payments", 0)
PRODUCER = ProducerIdentity(7, 0)
DAY_MS = 24 * 60 * 60 * 1000
OK = OffsetsReply()


# Committing


def test_a_member_of_the_generation_commits() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    assert groups.commit({ORDERS_0: 5, ORDERS_1: 6}, member_id="m-1", generation=1) == OK
    assert (groups.committed(ORDERS_0), groups.committed(ORDERS_1)) == (5, 6)


@pytest.mark.parametrize(
    ("member_id", "generation", "code"),
    [
        ("m-1", 0, ErrorCode.ILLEGAL_GENERATION),
        ("m-1", -1, ErrorCode.ILLEGAL_GENERATION),
        ("stranger", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_others_do_not_commit_into_a_group_with_members(member_id: str, generation: int, code: ErrorCode) -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    assert groups.commit({ORDERS_0: 5}, member_id=member_id, generation=generation) == OffsetsReply(code)
    assert groups.committed(ORDERS_0) is None


def test_a_group_in_name_only_is_made_by_its_first_commit() -> None:
    groups = Rehearsal()
    assert groups.commit({ORDERS_0: 5}) == OK
    assert groups.state is GroupState.EMPTY
    assert groups.group().protocol_type is None


def test_anybody_may_set_the_offsets_of_an_empty_group() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.leave(("m-1", None))
    assert groups.commit({ORDERS_0: 5}) == OK
    late = groups.commit({ORDERS_0: 6}, member_id="m-1", generation=1)
    assert late == OffsetsReply(ErrorCode.UNKNOWN_MEMBER_ID)
    assert groups.committed(ORDERS_0) == 5


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_member_of_a_group_that_does_not_exist_is_told_in_the_words_of_its_version(code: ErrorCode) -> None:
    reply = Rehearsal().commit({ORDERS_0: 5}, member_id="m-1", generation=1, error_if_no_group=code)
    assert reply == OffsetsReply(code)


def test_while_the_group_rebalances_the_old_generation_may_still_commit() -> None:
    groups = Rehearsal()
    groups.stable("m-1", "m-2")
    groups.join("m-1")
    assert groups.commit({ORDERS_0: 5}, member_id="m-2", generation=2) == OK


def test_before_its_assignment_a_member_of_the_new_generation_may_not() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    reply = groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1)
    assert reply == OffsetsReply(ErrorCode.REBALANCE_IN_PROGRESS)


def test_who_commits_is_alive() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    for _ in range(3):
        groups.pass_time(SESSION_MS - 1)
        groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1)
    assert groups.state is GroupState.STABLE


def test_long_metadata_fails_its_own_partition_only() -> None:
    groups = Rehearsal(GroupConfig(offset_metadata_max_bytes=3))
    assert groups.commit({ORDERS_0: 5}, metadata="1234") == OffsetsReply(
        failed=((ORDERS_0, ErrorCode.OFFSET_METADATA_TOO_LARGE),)
    )
    assert groups.commit({ORDERS_0: 5}, metadata="123") == OK


def test_a_commit_that_cannot_be_stored_did_not_happen() -> None:
    groups = Rehearsal()
    groups.log_refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.commit({ORDERS_0: 5}) == OffsetsReply(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert groups.committed(ORDERS_0) is None
    assert G not in groups.shard.groups


# Inside a transaction


@pytest.mark.seed("I11")
def test_nobody_sees_the_offsets_of_a_transaction_before_it_commits() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 1})
    groups.commit({ORDERS_0: 9}, producer=PRODUCER)
    assert groups.committed(ORDERS_0) == 1
    fetched = read_offsets(groups.shard, G, [ORDERS_0], require_stable=True)
    assert fetched[0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT

    groups.end_transaction(PRODUCER.producer_id, committed=True)

    assert groups.committed(ORDERS_0) == 9
    assert read_offsets(groups.shard, G, None, require_stable=True)[0].committed.offset == 9


@pytest.mark.seed("I11")
def test_the_offsets_of_an_aborted_transaction_never_were() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 1})
    groups.commit({ORDERS_0: 9, ORDERS_1: 9}, producer=PRODUCER)
    groups.end_transaction(PRODUCER.producer_id, committed=False)
    assert (groups.committed(ORDERS_0), groups.committed(ORDERS_1)) == (1, None)
    assert not groups.shard.pending


@pytest.mark.seed("I11")
def test_a_producer_that_names_its_member_is_fenced_like_the_member() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    fenced = groups.commit({ORDERS_0: 5}, member_id="m-1", generation=0, producer=PRODUCER)
    assert fenced == OffsetsReply(ErrorCode.ILLEGAL_GENERATION)
    assert groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1, producer=PRODUCER) == OK
    # An older producer says nothing about membership and is not asked.
    assert groups.commit({ORDERS_0: 6}, producer=PRODUCER) == OK


@pytest.mark.seed("I11")
def test_a_transaction_may_commit_offsets_before_the_assignment_is_known() -> None:
    groups = Rehearsal()
    groups.member("m-1")
    assert groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1, producer=PRODUCER) == OK


# Reading


def test_reading_offsets() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 5}, metadata="m")
    named = read_offsets(groups.shard, G, [ORDERS_0, ORDERS_1], require_stable=False)
    assert [(one.committed.offset, one.committed.leader_epoch, one.committed.metadata) for one in named] == [
        (5, 0, "m"),
        (-1, -1, ""),
    ]
    assert [one.topic_partition for one in read_offsets(groups.shard, G, None, require_stable=False)] == [ORDERS_0]
    assert read_offsets(groups.shard, "no such group", None, require_stable=False) == []


# Deleting


def test_offsets_of_topics_the_group_reads_stay() -> None:
    groups = Rehearsal()
    groups.stable("m-1", offers={"range": subscription("orders")})
    groups.commit({ORDERS_0: 5, PAYMENTS_0: 6}, member_id="m-1", generation=1)
    reply = groups.delete_offsets(ORDERS_0, PAYMENTS_0)
    assert reply == OffsetsReply(failed=((ORDERS_0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),))
    assert (groups.committed(ORDERS_0), groups.committed(PAYMENTS_0)) == (5, None)


def test_what_a_group_reads_is_unknown_if_its_members_do_not_say_it_readably() -> None:
    groups = Rehearsal()
    groups.stable("m-1", offers={"range": b"\xff"})
    groups.commit({PAYMENTS_0: 6}, member_id="m-1", generation=1)
    assert groups.delete_offsets(PAYMENTS_0).failed == ((PAYMENTS_0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),)


def test_whose_offsets_cannot_be_deleted() -> None:
    groups = Rehearsal()
    assert groups.delete_offsets(ORDERS_0).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.delete_offsets(ORDERS_0, group_id="").error is ErrorCode.INVALID_GROUP_ID
    groups.stable("m-1", protocol_type="connect")
    assert groups.delete_offsets(ORDERS_0).error is ErrorCode.NON_EMPTY_GROUP


def test_deleting_an_offset_that_is_not_there_writes_nothing() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 5})
    assert groups.delete_offsets(ORDERS_1) == OK
    assert len(groups.log) == 1


def test_a_deleted_offset_is_not_brought_back_by_a_transaction_that_was_open() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 5}, producer=PRODUCER)
    assert groups.delete_offsets(ORDERS_0) == OK
    groups.end_transaction(PRODUCER.producer_id, committed=True)
    assert groups.committed(ORDERS_0) is None


def test_deleting_a_group() -> None:
    groups = Rehearsal()
    groups.stable("m-1")
    groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1)
    assert groups.delete_group() is ErrorCode.NON_EMPTY_GROUP
    groups.leave(("m-1", None))
    assert groups.delete_group() is ErrorCode.NONE
    assert [written.record for written in groups.log[-2:]] == [OffsetRemoved(G, ORDERS_0), GroupRemoved(G)]
    assert groups.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND
    assert not groups.shard.offsets(G)


def test_a_group_whose_deletion_cannot_be_stored_stays() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 5})
    groups.log_refuses = ErrorCode.NOT_COORDINATOR
    assert groups.delete_group() is ErrorCode.NOT_COORDINATOR
    assert groups.committed(ORDERS_0) == 5


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    groups = Rehearsal()
    groups.commit({ORDERS_0: 5, PAYMENTS_0: 6})
    groups.commit({ORDERS_1: 7}, producer=PRODUCER)
    groups.run(ForgetTopic(G, "orders"))
    groups.end_transaction(PRODUCER.producer_id, committed=True)
    assert list(groups.shard.offsets(G)) == [PAYMENTS_0]


# Running out


def expire(groups: Rehearsal, group_id: str = G) -> None:
    groups.run(ExpireOffsets(group_id))


def test_offsets_of_a_group_that_ran_empty_are_kept_for_the_retention_and_then_the_group_goes() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=7 * DAY_MS))
    groups.stable("m-1")
    groups.commit({ORDERS_0: 5}, member_id="m-1", generation=1)
    for _ in range(10):
        groups.now_ms += DAY_MS
        expire(groups)
    assert groups.committed(ORDERS_0) == 5, "somebody reads it"
    groups.leave(("m-1", None))
    groups.now_ms += 7 * DAY_MS - 1
    expire(groups)
    assert groups.committed(ORDERS_0) == 5
    groups.now_ms += 1
    expire(groups)
    assert groups.committed(ORDERS_0) is None
    assert G not in groups.shard.groups
    assert [written.record for written in groups.log[-2:]] == [OffsetRemoved(G, ORDERS_0), GroupRemoved(G)]


def test_without_members_ever_each_offset_runs_out_by_its_own_commit() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=DAY_MS))
    groups.commit({ORDERS_0: 5})
    groups.now_ms += DAY_MS - 1
    groups.commit({ORDERS_1: 6})
    groups.now_ms += 1
    expire(groups)
    assert list(groups.shard.offsets(G)) == [ORDERS_1]
    assert G in groups.shard.groups


def test_a_stable_group_loses_offsets_of_topics_it_reads_no_more() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=DAY_MS))
    groups.stable("m-1", offers={"range": subscription("orders")})
    groups.commit({ORDERS_0: 5, PAYMENTS_0: 6}, member_id="m-1", generation=1)
    groups.now_ms += DAY_MS
    expire(groups)
    assert list(groups.shard.offsets(G)) == [ORDERS_0]


def test_while_a_group_rebalances_nothing_of_it_runs_out() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=DAY_MS))
    groups.stable("m-1", "m-2")
    groups.commit({PAYMENTS_0: 6}, member_id="m-1", generation=2)
    groups.join("m-1")
    groups.now_ms += DAY_MS
    expire(groups)
    assert groups.committed(PAYMENTS_0) == 6


def test_an_old_client_may_say_how_long_to_keep_an_offset() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=DAY_MS))
    groups.commit({ORDERS_0: 5}, retention_ms=1_000)
    groups.now_ms += 999
    expire(groups)
    assert groups.committed(ORDERS_0) == 5
    groups.now_ms += 1
    expire(groups)
    assert groups.committed(ORDERS_0) is None


def test_an_open_transaction_keeps_the_offset_it_is_about_to_replace_and_the_group() -> None:
    groups = Rehearsal(GroupConfig(offsets_retention_ms=DAY_MS))
    groups.commit({ORDERS_0: 5})
    groups.commit({ORDERS_0: 6, ORDERS_1: 6}, producer=PRODUCER)
    groups.now_ms += DAY_MS
    expire(groups)
    assert groups.committed(ORDERS_0) == 5
    groups.end_transaction(PRODUCER.producer_id, committed=False)
    expire(groups)
    assert G not in groups.shard.groups


def test_a_group_without_members_and_offsets_goes_unless_somebody_is_about_to_join() -> None:
    groups = Rehearsal()
    groups.join(fresh="m-1")
    expire(groups)
    assert G in groups.shard.groups
    groups.pass_time(SESSION_MS)
    expire(groups)
    assert G not in groups.shard.groups


def test_the_expiry_of_an_unknown_group_is_nothing() -> None:
    groups = Rehearsal()
    expire(groups, "no such group")
    assert not groups.log
