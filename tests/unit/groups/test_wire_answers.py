"""What the group APIs answer on the wire, version by version. Apache Kafka 4.3 gives the same answers to all of it:

ONCELOG_TEST_TARGET=kafka ONCELOG_PEER=<script> pytest tests/unit/groups/test_wire_answers.py
"""

import time
from collections.abc import Iterator
from itertools import count

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from oncelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from oncelog.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from oncelog.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.protocol.messages.join_group import JoinGroupResponse
from oncelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from oncelog.protocol.messages.sync_group import SyncGroupResponse
from tests.brokers import BrokerProcess
from tests.unit.groups.group_wire import GroupWire
from tests.unit.groups.rehearsal import subscription

_numbers = count()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    settings = {"group.min.session.timeout.ms": "1000", "offset.metadata.max.bytes": "10"}
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data", settings) as broker:
        with GroupWire(broker.port) as wire:
            topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("t", "u", "gone")]
            wire.call(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5, CreateTopicsResponse)
            for key_type in (0, 1):
                find = FindCoordinatorRequest(key="x", key_type=key_type)
                while wire.call(find, 1, FindCoordinatorResponse).error_code:
                    time.sleep(0.1)
            while wire.join("warm-up").error_code != ErrorCode.MEMBER_ID_REQUIRED:
                time.sleep(0.1)
        yield broker.port


@pytest.fixture
def wire(port: int) -> Iterator[GroupWire]:
    with GroupWire(port) as wire:
        yield wire


@pytest.fixture
def other(port: int) -> Iterator[GroupWire]:
    with GroupWire(port) as wire:
        yield wire


@pytest.fixture
def group() -> str:
    return f"group-{next(_numbers)}"


def start_join(wire: GroupWire, group: str, member_id: str = "", **fields: object) -> None:
    """Ask, and do not wait for the answer."""
    wire.send(encode_request(1, "raw", wire.join_request(group, member_id, **fields), 9))  # type: ignore[arg-type]
    time.sleep(0.2)


def joined(wire: GroupWire) -> JoinGroupResponse:
    return decode_response(JoinGroupResponse, 9, wire.response())[1]


# FindCoordinator


def test_before_version_4_one_coordinator_is_found_and_no_error_has_a_name(wire: GroupWire, port: int) -> None:
    for version, key, key_type in ((0, "x", 0), (1, "x", 0), (3, "", 0), (3, "x", 1), (3, "", 1)):
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        found = wire.call(request, version, FindCoordinatorResponse)
        assert (found.error_code, found.host, found.port) == (0, "127.0.0.1", port)
        assert found.error_message == ("NONE" if version else "")


def test_from_version_4_on_several_are_found_at_once(wire: GroupWire, port: int) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "", "b"])
    found = wire.call(request, 4, FindCoordinatorResponse).coordinators
    assert [(one.key, one.error_code, one.port, one.error_message) for one in found] == [
        ("a", 0, port, ""),
        ("", 0, port, ""),
        ("b", 0, port, ""),
    ]


def test_a_kind_of_coordinator_that_is_not_here_is_an_invalid_request(wire: GroupWire) -> None:
    alone = wire.call(FindCoordinatorRequest(key="a", key_type=7), 3, FindCoordinatorResponse)
    assert (alone.error_code, alone.node_id, alone.host, alone.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=["a"])
    (share,) = wire.call(request, 6, FindCoordinatorResponse).coordinators
    assert (share.error_code, share.node_id) == (ErrorCode.INVALID_REQUEST, -1)


# JoinGroup and SyncGroup


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_names_no_protocol(wire: GroupWire, version: int) -> None:
    refused = wire.join("", version=version)
    assert (refused.error_code, refused.generation_id, refused.leader) == (ErrorCode.INVALID_GROUP_ID, -1, "")
    assert refused.protocol_name == (None if version >= 7 else "")


def test_joins_that_are_refused(wire: GroupWire, group: str) -> None:
    def error(**fields: object) -> int:
        return wire.join(group, **fields).error_code  # type: ignore[arg-type]

    assert error(session_ms=10) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert error(session_ms=10**8) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert error(member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(offers=()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(protocol_type="") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wire.stable_member(group)
    assert error(offers=("sticky",)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(member_id="nobody", instance="i") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_nobody_is_sent_back_for_an_id(wire: GroupWire, group: str, version: int) -> None:
    answer = wire.join(group, version=version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id != ""
    assert [member.metadata for member in answer.members] == [subscription("t")]


def test_a_member_from_its_id_to_its_assignment(wire: GroupWire, group: str) -> None:
    member_id = wire.dynamic_member(group)
    assert wire.describe(group).group_state == "Empty"
    assert wire.heartbeat(group, -1, member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.sync(group, 0, member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    first = wire.join(group, member_id)
    assert (first.error_code, first.protocol_type, first.skip_assignment) == (0, "consumer", False)
    assert wire.join(group, member_id) == first, "the answer got lost: the same again"
    assert wire.heartbeat(group, 1, member_id) == 0
    assert wire.commit(group, 1, member_id) == ErrorCode.REBALANCE_IN_PROGRESS

    def error(generation: int = 1, who: str = member_id, **fields: str | None) -> int:
        return wire.sync(group, generation, who, **fields).error_code  # type: ignore[arg-type]

    assert error(generation=7) == ErrorCode.ILLEGAL_GENERATION
    assert error(who="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(protocol_name="sticky") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(protocol_type=None) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(protocol_name=None) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    done = wire.sync(group, 1, member_id, {member_id: b"part"})
    assert (done.error_code, done.protocol_type, done.protocol_name) == (0, "consumer", "range")
    assert done.assignment == b"part"
    for version in range(5):
        again = wire.sync(group, 1, member_id, version=version, protocol_type=None, protocol_name=None)
        assert (again.error_code, again.assignment) == (0, b"part")


def test_who_is_not_there_cannot_sync(wire: GroupWire, group: str) -> None:
    assert wire.sync("", 1, "x").error_code == ErrorCode.INVALID_GROUP_ID
    assert wire.sync(group, 1, "x").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_joins_and_everybody_starts_over(wire: GroupWire, other: GroupWire, group: str) -> None:
    leader = wire.stable_member(group)
    follower = other.dynamic_member(group)
    assert wire.describe(group).group_state == "Stable", "an id alone is no member"
    start_join(other, group, follower, offers=("sticky", "range"), topics=("u",))

    assert wire.describe(group).group_state == "PreparingRebalance"
    assert wire.heartbeat(group, 1, leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert wire.heartbeat(group, 1, follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert wire.sync(group, 1, leader).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert wire.commit(group, 1, leader) == 0
    assert wire.commit(group, 2, leader) == ErrorCode.ILLEGAL_GENERATION

    leads = wire.join(group, leader, offers=("sticky", "range"))
    follows = joined(other)
    assert (leads.generation_id, leads.protocol_name, leads.leader) == (2, "sticky", leader)
    assert {member.member_id: member.metadata for member in leads.members} == {
        leader: subscription("t"),
        follower: subscription("u"),
    }
    assert (follows.generation_id, follows.protocol_name, follows.members) == (2, "sticky", [])
    parts = {leader: b"1", follower: b"2"}
    assert wire.sync(group, 2, leader, parts, protocol_name="sticky").assignment == b"1"
    assert other.sync(group, 2, follower, protocol_name="sticky").assignment == b"2"
    unchanged = other.join(group, follower, offers=("sticky", "range"), topics=("u",))
    assert (unchanged.error_code, unchanged.generation_id, unchanged.members) == (0, 2, [])
    assert wire.heartbeat(group, 2, leader) == 0


def test_a_member_that_does_not_join_again_is_out_after_the_rebalance_timeout(
    wire: GroupWire, other: GroupWire, group: str
) -> None:
    lost = wire.stable_member(group, rebalance_ms=1_000)
    stays = other.dynamic_member(group, rebalance_ms=1_000)
    began = time.monotonic()
    answer = other.join(group, stays, rebalance_ms=1_000)
    assert (answer.generation_id, answer.leader) == (2, stays)
    assert time.monotonic() - began > 0.9
    assert wire.heartbeat(group, 1, lost) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.join(group, lost).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_never_syncs_is_out_after_the_rebalance_timeout(
    wire: GroupWire, other: GroupWire, group: str
) -> None:
    leader = wire.stable_member(group, rebalance_ms=1_000)
    silent = other.dynamic_member(group, rebalance_ms=1_000)
    start_join(other, group, silent, rebalance_ms=1_000)
    wire.join(group, leader, rebalance_ms=1_000)
    joined(other)
    assert wire.sync(group, 2, leader, {leader: b"1", silent: b"2"}).error_code == 0
    time.sleep(1.3)
    assert wire.heartbeat(group, 2, leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert other.heartbeat(group, 2, silent) == ErrorCode.UNKNOWN_MEMBER_ID
    (left,) = wire.describe(group).members
    assert (left.member_id, left.member_metadata, left.member_assignment) == (leader, b"", b"1")


def test_a_silent_member_is_out_after_its_session(wire: GroupWire, group: str) -> None:
    member_id = wire.stable_member(group, session_ms=1_000)
    time.sleep(1.3)
    assert wire.describe(group).group_state == "Empty"
    assert wire.heartbeat(group, 1, member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.join(group, member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.sync(group, 2, member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# Static members


def test_a_static_member_comes_back_and_the_old_one_is_fenced(wire: GroupWire, other: GroupWire, group: str) -> None:
    old = wire.join(group, instance="a").member_id
    assert wire.sync(group, 1, old, {old: b"A"}, instance="a").assignment == b"A"

    older_client = other.join(group, instance="a", version=5)
    assert (older_client.error_code, older_client.generation_id) == (0, 1)
    assert (older_client.leader, older_client.members) == (old, []), "it must not assign again"

    assert wire.heartbeat(group, 1, old, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert wire.heartbeat(group, 1, old) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.sync(group, 1, old, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert wire.commit(group, 1, old, instance="a") == ErrorCode.FENCED_INSTANCE_ID
    assert wire.join(group, old, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert wire.leave(group, (old, "a")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID

    assert other.sync(group, 1, older_client.member_id, instance="a").assignment == b"A"
    current = other.join(group, instance="a")
    assert (current.leader, current.skip_assignment) == (current.member_id, True)
    assert [member.group_instance_id for member in current.members] == ["a"]
    assert other.heartbeat(group, 1, current.member_id, "a") == 0
    assert wire.describe(group).group_state == "Stable"


def test_an_administrator_removes_a_static_member(wire: GroupWire, other: GroupWire, group: str) -> None:
    wire.join(group, instance="a")
    answer = other.leave(group, ("", "a"), ("", "zz"), ("nobody", "a"), ("", None))
    assert [member.error_code for member in answer.members] == [0, *[ErrorCode.UNKNOWN_MEMBER_ID] * 3]
    assert wire.describe(group).group_state == "Empty"


# Heartbeat and LeaveGroup


def test_heartbeats(wire: GroupWire, group: str) -> None:
    member_id = wire.stable_member(group)
    assert wire.heartbeat(group, 1, member_id) == 0
    assert wire.heartbeat(group, 2, member_id) == ErrorCode.ILLEGAL_GENERATION
    assert wire.heartbeat(group, 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.heartbeat(group, 1, member_id, "no such instance") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.heartbeat("no such group", 1, "x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.heartbeat("", 1, "x") == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_leaving(wire: GroupWire, group: str, version: int) -> None:
    member_id = wire.stable_member(group)

    def error(answered_group: str, who: str) -> int:
        answer = wire.leave(answered_group, (who, None), version=version)
        if version < 3:
            assert answer.members == []
            return answer.error_code
        assert answer.error_code == 0
        return answer.members[0].error_code

    assert error(group, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error("no such group", "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.leave("", ("x", None), version=version).error_code == ErrorCode.INVALID_GROUP_ID
    assert error(group, member_id) == 0
    assert wire.describe(group).group_state == "Empty"


# OffsetCommit


def test_who_may_commit(wire: GroupWire, group: str) -> None:
    assert wire.commit(group, 3, "x", version=8) == ErrorCode.ILLEGAL_GENERATION
    assert wire.commit(group, 3, "x", version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    member_id = wire.stable_member(group)
    assert wire.commit(group, 1, member_id, offset=11) == 0
    assert wire.commit(group, 0, member_id) == ErrorCode.ILLEGAL_GENERATION
    assert wire.commit(group, -1, member_id) == ErrorCode.ILLEGAL_GENERATION
    assert wire.commit(group, 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.commit(group) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.offsets(group) == {("t", 0): 11}
    wire.leave(group, (member_id, None))
    assert wire.commit(group, 1, member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.commit(group, offset=77) == 0
    assert wire.offsets(group) == {("t", 0): 77}


def test_what_may_be_committed(wire: GroupWire, group: str) -> None:
    assert wire.commit(group, metadata="12345678901") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert wire.commit(group, metadata="1234567890") == 0
    assert wire.commit(group, metadata=None, partition=1, offset=-1) == 0
    assert wire.commit(group, topic="nope") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.commit(group, partition=99) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.commit(group, partition=-1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.offsets(group) == {("t", 0): 5, ("t", 1): -1}


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits(wire: GroupWire, group: str, version: int) -> None:
    assert wire.commit(group, version=version, retention_ms=3_600_000 if version < 5 else -1) == 0
    (topic,) = wire.fetch(group).topics
    assert topic.partitions[0].committed_leader_epoch == (0 if version >= 6 else -1)


def test_a_group_without_a_name_may_have_offsets(wire: GroupWire) -> None:
    assert wire.commit("") == 0
    assert wire.offsets("") == {("t", 0): 5}
    assert wire.delete_groups("") == {"": 0}


def test_version_10_speaks_of_topics_by_id(wire: GroupWire, group: str) -> None:
    (topic,) = wire.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12, MetadataResponse).topics
    assert wire.commit(group, topic="", topic_id=topic.topic_id, version=10) == 0
    for unknown in (b"\x01" * 16, bytes(16)):
        assert wire.commit(group, topic="", topic_id=unknown, version=10) == ErrorCode.UNKNOWN_TOPIC_ID
    (named,) = wire.fetch_groups({group: {topic.topic_id: [0, 1], b"\x01" * 16: [0]}}, version=10)
    assert [
        (one.topic_id, part.partition_index, part.committed_offset, part.error_code)
        for one in named.topics
        for part in one.partitions
    ] == [(topic.topic_id, 0, 5, 0), (topic.topic_id, 1, -1, 0), (b"\x01" * 16, 0, -1, ErrorCode.UNKNOWN_TOPIC_ID)]
    (every,) = wire.fetch_groups({group: None}, version=10)
    assert [(one.topic_id, one.name, len(one.partitions)) for one in every.topics] == [(topic.topic_id, "", 1)]


# OffsetFetch


@pytest.mark.parametrize("version", range(1, 8))
def test_fetching_offsets_of_one_group(wire: GroupWire, group: str, version: int) -> None:
    wire.commit(group, metadata="hi")
    answer = wire.fetch(group, {"t": [0, 1, 99], "nope": [0]}, version=version)
    epoch = 0 if version >= 5 else -1
    assert [
        (topic.name, part.partition_index, part.committed_offset, part.committed_leader_epoch, part.metadata)
        for topic in answer.topics
        for part in topic.partitions
    ] == [("t", 0, 5, epoch, "hi"), ("t", 1, -1, -1, ""), ("t", 99, -1, -1, ""), ("nope", 0, -1, -1, "")]
    assert {part.error_code for topic in answer.topics for part in topic.partitions} == {0}
    if version >= 2:
        assert [len(topic.partitions) for topic in wire.fetch(group, version=version).topics] == [1]
        assert wire.fetch("no such group", version=version).topics == []


@pytest.mark.parametrize("version", [8, 9])
def test_fetching_offsets_of_several_groups(wire: GroupWire, group: str, version: int) -> None:
    wire.commit(group)
    fetched = wire.fetch_groups({group: {"t": [0]}, "no such group": None, "nor this": {"t": [0]}}, version=version)
    assert [
        (one.group_id, one.error_code, [part.committed_offset for topic in one.topics for part in topic.partitions])
        for one in fetched
    ] == [(group, 0, [5]), ("no such group", 0, []), ("nor this", 0, [-1])]


def test_offsets_of_a_deleted_topic_are_gone(wire: GroupWire, group: str) -> None:
    assert wire.commit(group, topic="gone") == 0
    wire.call(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=10_000), 4, DeleteTopicsResponse)
    deadline = time.monotonic() + 10
    while wire.offsets(group) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert wire.offsets(group) == {}
    assert wire.describe(group).group_state == "Empty"


# OffsetDelete, DeleteGroups


def test_deleting_offsets(wire: GroupWire, group: str) -> None:
    assert wire.delete_offsets(group, {"t": [0]}).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert wire.delete_offsets(group, {"nope": [0]}).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert wire.delete_offsets("", {"t": [0]}).error_code == ErrorCode.INVALID_GROUP_ID
    member_id = wire.stable_member(group)
    wire.commit(group, 1, member_id)
    wire.commit(group, 1, member_id, topic="u")
    answer = wire.delete_offsets(group, {"t": [0], "u": [0, 77], "nope": [0]})
    assert answer.error_code == 0
    assert {
        (topic.name, part.partition_index): part.error_code for topic in answer.topics for part in topic.partitions
    } == {
        ("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): 0,
        ("u", 77): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert wire.offsets(group) == {("t", 0): 5}


def test_deleting_groups(wire: GroupWire, group: str) -> None:
    member_id = wire.stable_member(group)
    wire.commit("simple")
    assert wire.delete_groups(group, "no such group", "simple") == {
        group: ErrorCode.NON_EMPTY_GROUP,
        "no such group": ErrorCode.GROUP_ID_NOT_FOUND,
        "simple": 0,
    }
    assert wire.delete_groups("simple") == {"simple": ErrorCode.GROUP_ID_NOT_FOUND}
    wire.leave(group, (member_id, None))
    assert wire.delete_groups(group) == {group: 0}
    assert wire.describe(group).group_state == "Dead"


# DescribeGroups, ListGroups


@pytest.mark.parametrize("version", range(7))
def test_describing(wire: GroupWire, group: str, version: int) -> None:
    unknown = wire.describe(group, version)
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert unknown.error_message == (f"Group {group} not found." if version >= 6 else None)

    member_id = wire.stable_member(group)
    known = wire.describe(group, version)
    assert (known.error_code, known.group_state) == (0, "Stable")
    assert (known.protocol_type, known.protocol_data) == ("consumer", "range")
    (member,) = known.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"part")

    wire.leave(group, (member_id, None))
    empty = wire.describe(group, version)
    assert (empty.group_state, empty.protocol_type, empty.protocol_data) == ("Empty", "consumer", "")
    assert empty.members == []


def test_what_a_caller_may_do_is_told_if_asked(wire: GroupWire, group: str) -> None:
    wire.commit(group)
    for asked, told in ((True, 3400), (False, -(2**31))):
        request = DescribeGroupsRequest(groups=[group], include_authorized_operations=asked)
        assert wire.call(request, 5, DescribeGroupsResponse).groups[0].authorized_operations == told


def test_listing(wire: GroupWire, group: str) -> None:
    wire.stable_member(group)
    wire.commit("listed-simple")

    def listed(version: int = 5, **filters: list[str]) -> set[tuple[str, str, str]]:
        mine = (group, "listed-simple")
        found = wire.list_groups(version, **filters)
        return {(one.group_id, one.protocol_type, one.group_state) for one in found if one.group_id in mine}

    stable, simple = (group, "consumer", "Stable"), ("listed-simple", "", "Empty")
    assert listed() == {stable, simple}
    assert listed(3) == {(group, "consumer", ""), ("listed-simple", "", "")}
    assert listed(states_filter=["stable"]) == {stable}
    assert listed(4, states_filter=["EMPTY", "bogus"]) == {simple}
    assert listed(states_filter=["bogus"]) == set()
    assert listed(types_filter=["Classic"]) == {stable, simple}
    assert listed(types_filter=["consumer"]) == listed(types_filter=["bogus"]) == set()
    assert {one.group_type for one in wire.list_groups()} == {"classic"}


def test_the_answer_of_a_sync_has_its_protocol_from_version_5_on(wire: GroupWire, group: str) -> None:
    member_id = wire.stable_member(group)
    older = wire.sync(group, 1, member_id, version=4)
    assert older == SyncGroupResponse(assignment=b"part")
