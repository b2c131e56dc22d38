"""Incremental fetch sessions: what is remembered, what is told again, and when a client must name everything anew."""

import itertools

from oncelog.broker.fetch_sessions import FetchContext, FetchSessions
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData

VERSION = 12


def sessions(slots: int = 10, evict_after_ms: int = 1_000) -> FetchSessions:
    ids = itertools.count(100)
    return FetchSessions(slots, evict_after_ms, lambda: next(ids))


def request(session_id=0, session_epoch=0, partitions=(), forgotten=()):
    topics = [
        FetchTopic(topic="t", partitions=[FetchPartition(partition=index, fetch_offset=at) for index, at in partitions])
    ]
    return FetchRequest(
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forgotten))] if forgotten else [],
    )


def context(found: FetchSessions, asked: FetchRequest, version: int = VERSION, now_ms: int = 0) -> FetchContext:
    answer = found.context_of(asked, version, now_ms)
    assert isinstance(answer, FetchContext), answer
    return answer


def refusal(found: FetchSessions, asked: FetchRequest, version: int = VERSION) -> ErrorCode:
    answer = found.context_of(asked, version, 0)
    assert isinstance(answer, Refused)
    return answer.code


def test_a_full_fetch_opens_a_session_that_later_fetches_only_change():
    found = sessions()
    first = context(found, request(partitions=[(0, 5), (1, 6)]))
    assert first.session_id == 100
    assert not first.incremental

    second = context(found, request(100, 1, partitions=[(1, 7), (2, 0)], forgotten=[0]))
    assert second.incremental
    assert {key[1]: wanted.asked.fetch_offset for key, wanted in second.wanted.items()} == {1: 7, 2: 0}

    third = context(found, request(100, 2))
    assert {key[1]: wanted.asked.fetch_offset for key, wanted in third.wanted.items()} == {1: 7, 2: 0}


def test_a_client_without_sessions_gets_none():
    found = sessions()
    assert context(found, request(0, -1, partitions=[(0, 0)])).session_id == 0
    assert context(found, request(partitions=[(0, 0)]), version=6).session_id == 0
    assert len(found) == 0


def test_a_final_fetch_closes_its_session():
    found = sessions()
    context(found, request(partitions=[(0, 0)]))
    assert context(found, request(100, -1, partitions=[(0, 0)])).session_id == 0
    assert refusal(found, request(100, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_unexpected_epoch_is_refused_and_does_not_move_the_session():
    found = sessions()
    context(found, request(partitions=[(0, 0)]))
    assert refusal(found, request(100, 7)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert context(found, request(100, 1)).incremental


def test_a_session_keeps_to_names_or_to_ids():
    found = sessions()
    context(found, request(partitions=[(0, 0)]))
    assert refusal(found, request(100, 1), version=13) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_without_partitions_is_closed():
    found = sessions()
    context(found, request(partitions=[(0, 0)]))
    assert context(found, request(100, 1, forgotten=[0])).session_id == 0
    assert len(found) == 0


def test_full_slots_give_way_only_to_sessions_long_unused():
    found = sessions(slots=2, evict_after_ms=1_000)
    context(found, request(partitions=[(0, 0)]), now_ms=0)
    context(found, request(partitions=[(0, 0)]), now_ms=500)
    assert context(found, request(partitions=[(0, 0)]), now_ms=900).session_id == 0, (
        "both are in use: served without one"
    )
    context(found, request(100, 1), now_ms=950)
    assert context(found, request(partitions=[(0, 0)]), now_ms=1_600).session_id == 102, "101 has been idle the longest"
    assert refusal(found, request(101, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_only_what_changed_is_news():
    found = sessions()
    (wanted,) = context(found, request(partitions=[(0, 0)])).wanted.values()
    data = PartitionData(partition_index=0, high_watermark=5, last_stable_offset=5, log_start_offset=0, records=b"")
    assert wanted.is_news(data)
    assert not wanted.is_news(data)
    assert wanted.is_news(PartitionData(high_watermark=6, last_stable_offset=5, log_start_offset=0, records=b""))
    assert wanted.is_news(PartitionData(high_watermark=6, last_stable_offset=6, log_start_offset=0, records=b""))
    assert wanted.is_news(PartitionData(high_watermark=6, last_stable_offset=6, log_start_offset=1, records=b""))
    assert wanted.is_news(PartitionData(high_watermark=6, last_stable_offset=6, log_start_offset=1, records=b"x"))


def test_an_error_is_told_until_it_is_gone_and_so_is_its_end():
    found = sessions()
    (wanted,) = context(found, request(partitions=[(0, 0)])).wanted.values()
    fine = PartitionData(high_watermark=5, last_stable_offset=5, log_start_offset=0, records=b"")
    broken = PartitionData(error_code=3, high_watermark=-1, records=b"")
    wanted.is_news(fine)
    assert wanted.is_news(broken)
    assert wanted.is_news(broken)
    assert wanted.is_news(fine)
    assert not wanted.is_news(fine)


def test_a_partition_that_had_data_stands_behind_the_others():
    found = sessions()
    first = context(found, request(partitions=[(0, 0), (1, 0), (2, 0)]))
    assert first.session is not None
    first.session.move_to_end(("t", 0))
    assert [key[1] for key in context(found, request(100, 1)).wanted] == [1, 2, 0]
