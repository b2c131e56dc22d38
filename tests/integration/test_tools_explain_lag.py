"""`oncelog explain-lag` on a live broker: who holds back readers, since when, and that it is over when it is over."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.brokers import oncelog_only
from tests.integration.tool_scenes import Tools, open_transaction, produce_plain, transactional_producer
from tests.integration.topics import MakeTopic, soon, unique


@pytest.fixture
def tools(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Tools:
    return Tools(bootstrap, capsys)


def test_an_open_transaction_is_named_as_what_holds_readers_back(bootstrap: str, tools: Tools, make_topic: MakeTopic):
    topic = make_topic(2)
    produce_plain(bootstrap, topic, 5)
    with open_transaction(bootstrap, topic, 0, transaction_timeout_ms=50_000) as (producer, transactional_id):
        produce_plain(bootstrap, topic, 10)
        lag = tools.lag(topic)
        described = tools.json("transactions", "describe", transactional_id)
        text = tools.text("explain-lag", topic)

        assert (lag["high_watermark"], lag["last_stable_offset"], lag["held_back"]) == (16, 5, 11)
        (holder,) = lag["holders"]
        assert holder["transactional_id"] == transactional_id
        assert holder["producer_id"] == described["producer_id"]
        assert holder["producer_epoch"] == described["producer_epoch"]
        assert (holder["state"], holder["hanging"], holder["start_offset"]) == ("Ongoing", False, 5)
        assert 0 < holder["times_out_in_ms"] <= 50_000
        assert f'"{transactional_id}" (Ongoing for ' in text
        assert f"oncelog transactions abort {transactional_id} --bootstrap-server {bootstrap}" in text

        assert tools.lag(topic, 1)["held_back"] == 0
        producer.commit_transaction(30)

    soon(lambda: tools.lag(topic), lambda now: now["held_back"] == 0 and now["holders"] == [])
    assert "Nothing is held back" in tools.text("explain-lag", topic)


@oncelog_only
def test_the_client_to_talk_to_is_named(bootstrap: str, tools: Tools, topic: str):
    with open_transaction(bootstrap, topic, 0, client_id="worker-3"):
        (holder,) = tools.lag(topic)["holders"]
        text = tools.text("explain-lag", topic)

    assert (holder["client_id"], holder["client_host"]) == ("worker-3", "127.0.0.1")
    assert "last client  worker-3 at 127.0.0.1" in text


def test_transactions_in_line_are_shown_in_order(bootstrap: str, tools: Tools, topic: str):
    with (
        open_transaction(bootstrap, topic, 0) as (first_producer, first),
        open_transaction(bootstrap, topic, 0) as (_, second),
    ):
        lag = tools.lag(topic)
        assert [holder["transactional_id"] for holder in lag["holders"]] == [first, second]
        assert lag["last_stable_offset"] == 0
        assert "and 1 more" in tools.text("explain-lag", topic)

        first_producer.commit_transaction(30)

        lag = soon(lambda: tools.lag(topic), lambda now: now["last_stable_offset"] == 1)
        assert [holder["transactional_id"] for holder in lag["holders"]] == [second]


def test_offsets_in_a_transaction_are_explained_too(bootstrap: str, tools: Tools, topic: str, group: str):
    transactional_id = unique("mover")
    producer = transactional_producer(bootstrap, transactional_id)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        producer.begin_transaction()
        position = TopicPartition(topic, 0, 1)
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), 30)

        lags = tools.json("explain-lag", "__consumer_offsets")

        holders = [holder["transactional_id"] for lag in lags for holder in lag["holders"]]
        assert transactional_id in holders
        producer.abort_transaction(30)
    finally:
        consumer.close()
