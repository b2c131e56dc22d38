"""Records of `__consumer_offsets`: bytes that a Kafka 4.3 broker wrote are read, and written again the same."""

import pytest

from oncelog.groups.group import Group, Member, Protocol
from oncelog.groups.group_records import (
    CommittedOffset,
    GroupRecord,
    GroupRemoved,
    GroupStored,
    OffsetCommitted,
    OffsetRemoved,
    StoredMember,
    decode_record,
    encode_record,
    restored,
)
from oncelog.groups.states import GroupState
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.malformed import Malformed
from tests.unit.groups.rehearsal import subscription

TOPIC_ID = bytes.fromhex("880e841c16a84033af3a8b48b04e6902")
STATIC = "a-9611a8ef-fc02-4a43-bbab-c381711b3ccd"

WRITTEN_BY_KAFKA: list[tuple[str, str | None, GroupRecord]] = [
    (
        "00010002673100017400000000",
        "0004000000000000000b00000000036869000001a1e0f87d9f010010880e841c16a84033af3a8b48b04e6902",
        OffsetCommitted("g1", TopicPartition("t", 0), CommittedOffset(11, 0, "hi", 1794775743903, topic_id=TOPIC_ID)),
    ),
    (
        "00010008672d73696d706c6500017400000001",
        "000100000000000000050000000001a1e0f87dc6000001a1e12f6c46",
        OffsetCommitted(
            "g-simple",
            TopicPartition("t", 1),
            CommittedOffset(5, -1, "", 1794775743942, expire_timestamp_ms=1794779343942),
        ),
    ),
    ("00010002673100017400000001", None, OffsetRemoved("g1", TopicPartition("t", 1))),
    ("000200026731", None, GroupRemoved("g1")),
    (
        "000200026778",
        "00030008636f6e73756d657200000002ffffffff000001a1e0f88fc400000000",
        GroupStored("gx", "consumer", 2, None, None, 1794775748548, ()),
    ),
    (
        "000200026773",
        (
            "00030008636f6e73756d657200000001000572616e67650026612d39363131613865662d666330322d346134332d626261622d6333"
            "38313731316233636364000001a1e0f87e95000000010026612d39363131613865662d666330322d346134332d626261622d63333831"
            "3731316233636364000161000570726f6265000a2f3132372e302e302e3100000bb8000027100000000d000000000001000174ffffff"
            "ff000000024141"
        ),
        GroupStored(
            "gs",
            "consumer",
            1,
            "range",
            STATIC,
            1794775744149,
            (StoredMember(STATIC, "a", "probe", "/127.0.0.1", 3000, 10000, subscription("t"), b"AA"),),
        ),
    ),
]


@pytest.mark.parametrize(("key", "value", "record"), WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_read_and_written_again_byte_for_byte(
    key: str, value: str | None, record: GroupRecord
) -> None:
    key_bytes, value_bytes = bytes.fromhex(key), None if value is None else bytes.fromhex(value)
    assert decode_record(key_bytes, value_bytes) == record
    assert encode_record(record) == (key_bytes, value_bytes)


def test_the_oldest_key_of_an_offset_is_read_too() -> None:
    key, value = encode_record(WRITTEN_BY_KAFKA[0][2])
    assert decode_record(b"\x00\x00" + key[2:], value) == WRITTEN_BY_KAFKA[0][2]


def test_a_member_written_before_rebalance_timeouts_existed_has_its_session_timeout_for_both() -> None:
    value = (
        b"\x00\x00"
        b"\x00\x08consumer"
        + (4).to_bytes(4, "big")
        + b"\x00\x05range"
        + b"\x00\x01m"
        + (1).to_bytes(4, "big")
        + b"\x00\x01m"
        + b"\x00\x01c"
        + b"\x00\x01h"
        + (9000).to_bytes(4, "big")
        + b"\x00\x00\x00\x00"
        + b"\x00\x00\x00\x00"
    )
    record = decode_record(bytes.fromhex("000200026731"), value)
    assert isinstance(record, GroupStored)
    assert record.state_since_ms == -1
    assert record.members == (StoredMember("m", None, "c", "h", 9000, 9000, b"", b""),)


@pytest.mark.parametrize("kind", [3, 5, 99, 32767])
def test_records_of_other_kinds_are_none_of_ours(kind: int) -> None:
    assert decode_record(kind.to_bytes(2, "big") + b"whatever", b"whatever") is None


@pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x01\x00\x09short", b"\x00\x02\x7f\xff"])
def test_a_broken_key_is_told_as_such(key: bytes) -> None:
    with pytest.raises(Malformed):
        decode_record(key, None)


def test_a_value_of_a_version_to_come_is_told_as_such() -> None:
    with pytest.raises(Malformed):
        decode_record(bytes.fromhex("00010002673100017400000000"), b"\x00\x09" + bytes(40))


# What a record makes of a group


def a_group() -> Group:
    offers = (Protocol("range", b"r"), Protocol("sticky", b"s"))
    group = Group("g", GroupState.COMPLETING_REBALANCE, 1, 3, "consumer", "range")
    for name in ("m-1", "m-2"):
        group = group.with_member(Member(name, None, "client", "/host", 1, 2, offers))
    return group


def test_a_record_makes_a_group_with_members_stable_and_one_without_empty() -> None:
    stored = GroupStored.of(a_group(), 50, {"m-1": b"one"})
    group = restored(None, stored)
    assert (group.state, group.generation, group.leader, group.state_since_ms) == (GroupState.STABLE, 3, "m-1", 50)
    assert [member.assignment for member in group.members.values()] == [b"one", b""]
    assert restored(group, stored._replace(members=())).state is GroupState.EMPTY


def test_in_operation_a_record_leaves_what_it_does_not_speak_of() -> None:
    group = restored(a_group(), GroupStored.of(a_group(), 50))
    assert len(group.members["m-1"].protocols) == 2, "all that it offers, not only what was chosen"
    assert group.offered == {"range": 2, "sticky": 2}


def test_a_later_record_with_another_subscription_replaces_what_was_known() -> None:
    earlier = restored(None, GroupStored.of(a_group(), 50))
    stored = GroupStored.of(a_group(), 60)
    changed = stored._replace(members=(stored.members[0]._replace(subscription=b"new"),))
    group = restored(earlier, changed)
    assert group.members["m-1"].protocols == (Protocol("range", b"new"),)
    assert group.offered == {"range": 1}
