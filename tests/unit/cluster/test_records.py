"""Replay rebuilds the live state: the one property that makes a restart safe."""

import hypothesis.strategies as st
from hypothesis import given, settings

from oncelog.cluster.leadership import decide_lead_again
from oncelog.cluster.producer_ids import BLOCK_SIZE, decide_reserve_producer_ids
from oncelog.cluster.records import BrokerConfigsStored, ClusterNamed, apply, decode, encode
from oncelog.cluster.state import ALL_BROKERS, Cluster
from oncelog.cluster.topics import (
    MorePartitions,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
)
from tests.unit.cluster.clusters import RULES, a_cluster, apply_all, create, new_topic

NAMES = st.sampled_from(["a", "b.c", "b_c", "d-1", "__consumer_offsets"])
CONFIGS = st.dictionaries(st.sampled_from(["retention.ms", "segment.ms"]), st.sampled_from(["5", "6"]))

COMMANDS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.integers(1, 4), CONFIGS),
    st.tuples(st.just("grow"), NAMES, st.integers(1, 6)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("configure"), st.sampled_from(["1", ALL_BROKERS]), CONFIGS),
    st.tuples(st.just("reserve")),
    st.tuples(st.just("restart")),
)


def records_of(cluster, command):
    match command:
        case ("create", name, count, configs):
            return decide_create_topics(cluster, [new_topic(name, count, configs=configs)], RULES).records
        case ("grow", name, count):
            return decide_create_partitions(cluster, [MorePartitions(name, count)]).records
        case ("delete", name):
            return decide_delete_topics(cluster, [cluster.topics[name]] if name in cluster.topics else []).records
        case ("configure", broker, configs):
            return [BrokerConfigsStored(broker, configs)]
        case ("reserve",):
            return decide_reserve_producer_ids(cluster).records
        case ("restart",):
            return decide_lead_again(cluster, 1).records
    raise AssertionError(command)


def view(cluster: Cluster):
    return (
        cluster.cluster_id,
        dict(sorted(cluster.topics.items())),
        dict(sorted(cluster.by_id.items())),
        cluster.broker_configs,
        cluster.next_producer_id,
    )


@given(st.lists(COMMANDS, max_size=25))
@settings(max_examples=150, deadline=None)
def test_what_the_store_holds_rebuilds_exactly_the_live_state(commands):
    live = a_cluster()
    stored: dict[str, bytes] = {}

    for record in [ClusterNamed("some-cluster")]:
        apply(live, record)
        key, value = encode(record)
        stored[key] = value
    for command in commands:
        for record in records_of(live, command):
            apply(live, record)
            key, value = encode(record)
            if value is None:
                del stored[key]
            else:
                stored[key] = value

    reloaded = a_cluster()
    for key, value in stored.items():
        apply(reloaded, decode(key, value))
    assert view(reloaded) == view(live)
    # Also what is kept beside it: the same names are free and taken.
    for name in ("b.c", "b_c", "a", "d_1"):
        assert (reloaded.colliding_topic(name) is None) == (live.colliding_topic(name) is None)


def test_a_key_of_a_later_version_is_left_alone():
    assert decode("something-new/1", b"{}") is None


def test_a_draft_does_not_touch_the_original():
    cluster = a_cluster()
    create(cluster, new_topic("a.b"))

    draft = cluster.copy()
    create(draft, new_topic("c.d"))
    apply(draft, BrokerConfigsStored("1", {"x": "y"}))
    apply_all(draft, decide_reserve_producer_ids(draft).records)

    assert list(cluster.topics) == ["a.b"]
    assert cluster.colliding_topic("c_d") is None
    assert cluster.broker_configs == {}
    assert cluster.next_producer_id == 0


def test_blocks_of_producer_ids_follow_each_other():
    cluster = a_cluster()

    first = decide_reserve_producer_ids(cluster)
    apply_all(cluster, first.records)
    second = decide_reserve_producer_ids(cluster)

    assert first.reply == range(BLOCK_SIZE)
    assert second.reply == range(BLOCK_SIZE, 2 * BLOCK_SIZE)


def test_a_broker_that_comes_back_leads_under_a_new_epoch():
    cluster = a_cluster(1, 2)
    create(cluster, new_topic("a", 4))

    apply_all(cluster, decide_lead_again(cluster, 2).records)
    apply_all(cluster, decide_lead_again(cluster, 2).records)

    assert [(state.leader, state.leader_epoch) for state in cluster.topics["a"].partitions] == [
        (1, 0),
        (2, 2),
        (1, 0),
        (2, 2),
    ]
