"""Any history of a group: members of every kind that join, sync, commit, leave, fall silent and come back, in any order.

What must hold at every step, and what must be left in the end, whatever happened in between.
"""

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given, settings

from oncelog.groups.commands import JOIN_TIMER, SYNC_TIMER, ExpireOffsets, ForgetTopic, session_of
from oncelog.groups.group import Group
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import GroupStored
from oncelog.groups.states import GroupState
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from tests.unit.groups.rehearsal import G, Rehearsal, subscription

GROUPS = (G, "others")
OFFERS = (
    {"range": subscription("orders")},
    {"range": subscription("orders"), "sticky": subscription("orders")},
    {"sticky": subscription("payments"), "range": subscription("payments")},
    {"sticky": b"unreadable"},
)
POSITIONS = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("payments", 0))
FOREVER_MS = 100 * 24 * 60 * 60 * 1000

Step = Callable[["World"], None]


class World:
    """A coordinator, and the member ids its clients have heard of."""

    def __init__(self, config: GroupConfig) -> None:
        self.groups = Rehearsal(config)
        self.ids = 0

    def fresh(self) -> str:
        self.ids += 1
        return f"m-{self.ids}"

    def some_member(self, group_id: str, choice: int) -> str:
        """A member, an id that was given out, or one that was never seen or is long gone."""
        group = self.groups.shard.groups.get(group_id)
        known = [] if group is None else [*group.members, *sorted(group.pending_joins)]
        known.append(f"m-{choice}")
        return known[choice % len(known)]

    def instance_of(self, group_id: str, member_id: str) -> str | None:
        group = self.groups.shard.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        return None if member is None else member.group_instance_id

    def generation(self, group_id: str, behind: int) -> int:
        group = self.groups.shard.groups.get(group_id)
        return -1 if group is None else group.generation - behind


@st.composite
def steps(draw: st.DrawFn) -> Step:
    group_id = draw(st.sampled_from(GROUPS))
    choice = draw(st.integers(0, 6))
    offers = draw(st.sampled_from(OFFERS))
    instance = draw(st.sampled_from([None, None, "i-1", "i-2"]))
    behind = draw(st.sampled_from([0, 0, 0, 1]))
    position = draw(st.sampled_from(POSITIONS))
    producer = draw(st.sampled_from([None, ProducerIdentity(1, 0), ProducerIdentity(2, 0)]))
    flag = draw(st.booleans())
    rebalance_ms = draw(st.sampled_from([5_000, 60_000]))
    by_ms = draw(st.sampled_from([1, 3_000, 9_999, 60_000, 8 * 24 * 60 * 60 * 1000]))

    def new_member(world: World) -> None:
        world.groups.join(
            fresh=world.fresh(),
            instance=instance,
            offers=offers,
            id_required=flag,
            rebalance_ms=rebalance_ms,
            group_id=group_id,
        )

    def known_member(world: World) -> None:
        member_id = world.some_member(group_id, choice)
        static = world.instance_of(group_id, member_id)
        world.groups.join(member_id, instance=static, offers=offers, rebalance_ms=rebalance_ms, group_id=group_id)

    def sync(world: World) -> None:
        member_id = world.some_member(group_id, choice)
        generation = world.generation(group_id, behind)
        world.groups.sync(member_id, generation, {member_id: b"part"}, group_id=group_id)

    def heartbeat(world: World) -> None:
        world.groups.heartbeat(
            world.some_member(group_id, choice), world.generation(group_id, behind), group_id=group_id
        )

    def leave(world: World) -> None:
        world.groups.leave((world.some_member(group_id, choice), None), ("", instance), group_id=group_id)

    def commit(world: World) -> None:
        member_id = "" if flag else world.some_member(group_id, choice)
        generation = -1 if flag else world.generation(group_id, behind)
        world.groups.commit(
            {position: choice}, member_id=member_id, generation=generation, producer=producer, group_id=group_id
        )

    def end_transaction(world: World) -> None:
        world.groups.end_transaction(1 if producer is None else producer.producer_id, committed=flag)

    def delete(world: World) -> None:
        if flag:
            world.groups.delete_offsets(position, group_id=group_id)
        else:
            world.groups.delete_group(group_id)

    def expire(world: World) -> None:
        world.groups.run(ExpireOffsets(group_id))

    def forget_topic(world: World) -> None:
        world.groups.run(ForgetTopic(group_id, "orders"))

    def pass_time(world: World) -> None:
        world.groups.pass_time(by_ms)

    often = [new_member, known_member, known_member, sync, sync, heartbeat, pass_time, commit]
    return draw(st.sampled_from([*often, leave, end_transaction, delete, expire, forget_topic]))


configs = st.builds(
    GroupConfig,
    initial_rebalance_delay_ms=st.sampled_from([0, 3_000]),
    max_size=st.sampled_from([2, 100]),
)
histories = st.lists(steps(), min_size=1, max_size=40)


@settings(max_examples=150)
@given(configs, histories)
def test_at_every_step_the_group_is_sound_and_nobody_who_waits_is_forgotten(
    config: GroupConfig, history: list[Step]
) -> None:
    world = World(config)
    for step in history:
        step(world)
        check_sound(world.groups)
    # Whoever still waits is answered once time has run out, and silent members are gone.
    world.groups.pass_time(FOREVER_MS)
    assert not world.groups.waiting
    for group in world.groups.shard.groups.values():
        assert group.state is GroupState.EMPTY


@settings(max_examples=100)
@given(configs, histories, st.integers(0, 39), st.integers(1, 10))
def test_a_log_that_refuses_for_a_while_costs_nobody_an_answer(
    config: GroupConfig, history: list[Step], fails_from: int, fails_for: int
) -> None:
    world = World(config)
    for number, step in enumerate(history):
        fails = fails_from <= number < fails_from + fails_for
        world.groups.log_refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else None
        step(world)
        check_sound(world.groups)
    world.groups.pass_time(FOREVER_MS)
    assert not world.groups.waiting


@settings(max_examples=150)
@given(configs, histories)
def test_replay_rebuilds_exactly_what_was_stored(config: GroupConfig, history: list[Step]) -> None:
    world = World(config)
    for step in history:
        step(world)
    live, replayed = world.groups.shard, world.groups.replayed()
    for group_id in GROUPS:
        assert dict(live.offsets(group_id)) == dict(replayed.offsets(group_id))
        assert sorted(live.pending.partitions_of(group_id)) == sorted(replayed.pending.partitions_of(group_id))
        check_same(live.groups.get(group_id), replayed.groups.get(group_id))


def check_same(live: Group | None, replayed: Group | None) -> None:
    if live is None:
        assert replayed is None
    elif live.state is GroupState.STABLE or (live.state is GroupState.EMPTY and live.generation > 0):
        assert replayed is not None
        assert replayed.state is live.state
        assert GroupStored.of(replayed, replayed.state_since_ms) == GroupStored.of(live, live.state_since_ms)
        assert replayed.subscribed_topics == live.subscribed_topics
    elif replayed is not None:
        # In the middle of a rebalance a restart falls back to the generation before.
        assert replayed.generation <= live.generation


def check_sound(groups: Rehearsal) -> None:
    waiting: set[int] = set()
    for group in groups.shard.groups.values():
        members = set(group.members)
        waiting |= set(group.joining.values()) | set(group.syncing.values())
        assert set(group.joining) <= members
        assert set(group.syncing) <= members
        assert group.unsynced <= members
        assert not group.pending_joins & members
        assert (group.leader in members) if members else group.leader is None
        assert group.static_members == {
            member.group_instance_id: member.member_id
            for member in group.members.values()
            if member.group_instance_id is not None
        }
        offered: dict[str, int] = {}
        for member in group.members.values():
            for name, _ in member.protocols:
                offered[name] = offered.get(name, 0) + 1
        assert group.offered == offered
        assert not members or len(members) in offered.values(), "everybody has something in common"
        check_state(groups, group)
    assert waiting == groups.waiting


def check_state(groups: Rehearsal, group: Group) -> None:
    key = group.group_id
    match group.state:
        case GroupState.EMPTY:
            assert not group.members
        case GroupState.PREPARING_REBALANCE:
            assert not group.syncing
            assert (key, JOIN_TIMER) in groups.due
        case GroupState.COMPLETING_REBALANCE:
            assert group.members and not group.joining
            assert (key, SYNC_TIMER) in groups.due or not group.unsynced
        case GroupState.STABLE:
            assert group.members and not group.joining and not group.syncing
        case GroupState.DEAD:
            raise AssertionError("nobody let go of this group")
    for member_id in (*group.members, *group.pending_joins):
        heard_of = member_id in group.joining or member_id in group.syncing
        assert heard_of or (key, session_of(member_id)) in groups.due, "a member nobody would miss"
