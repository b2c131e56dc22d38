"""`oncelog transactions list`, `describe` and `abort` on a live broker, with transactions of a real client."""

import subprocess
import sys
import time

import pytest
from confluent_kafka import KafkaException

from tests.brokers import BrokerProcess, StartBroker, oncelog_only
from tests.integration.tool_scenes import (
    Tools,
    open_transaction,
    produce_plain,
    read_committed,
    transactional_producer,
)
from tests.integration.topics import MakeTopic, unique


@pytest.fixture
def tools(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Tools:
    return Tools(bootstrap, capsys)


def wait_for_state(tools: Tools, transactional_id: str, state: str) -> None:
    deadline = time.monotonic() + 20
    while tools.json("transactions", "describe", transactional_id)["state"] != state:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_open_transaction_is_described(bootstrap: str, tools: Tools, make_topic: MakeTopic):
    topic = make_topic(3)
    with open_transaction(bootstrap, topic, 0, 2, transaction_timeout_ms=45_000) as (_, transactional_id):
        described = tools.json("transactions", "describe", transactional_id)
        text = tools.text("transactions", "describe", transactional_id)

    assert described["state"] == "Ongoing"
    assert described["timeout_ms"] == 45_000
    assert 0 <= described["running_ms"] < 30_000
    assert described["partitions"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 2}]
    assert f"partitions        {topic}-0, {topic}-2" in text
    assert "timeout           45s, over in " in text


@oncelog_only
def test_the_client_behind_a_transaction_is_named(bootstrap: str, tools: Tools, topic: str):
    with open_transaction(bootstrap, topic, 0, client_id="worker-3") as (_, transactional_id):
        described = tools.json("transactions", "describe", transactional_id)
        text = tools.text("transactions", "describe", transactional_id)

    assert (described["client_id"], described["client_host"]) == ("worker-3", "127.0.0.1")
    assert "last client       worker-3 at 127.0.0.1" in text


@oncelog_only
def test_a_restarted_broker_does_not_guess_who_it_was(
    start_broker: StartBroker, make_topic: MakeTopic, capsys: pytest.CaptureFixture[str]
):
    broker = start_broker()
    tools = Tools(broker.bootstrap_servers, capsys)
    producer = transactional_producer(broker.bootstrap_servers, "billing", client_id="worker-3")
    producer.begin_transaction()
    producer.produce("orders", b"1")
    producer.commit_transaction(30)
    del producer
    broker.restart()

    described = tools.json("transactions", "describe", "billing")

    assert described["state"] == "CompleteCommit"
    assert (described["client_id"], described["client_host"]) == (None, None)


def test_a_finished_transaction_is_described_without_one(bootstrap: str, tools: Tools, topic: str):
    with open_transaction(bootstrap, topic, 0) as (producer, transactional_id):
        producer.commit_transaction(30)
        wait_for_state(tools, transactional_id, "CompleteCommit")
        described = tools.json("transactions", "describe", transactional_id)

    assert described["partitions"] == []
    assert described["running_ms"] is None


def test_transactions_are_listed_by_state_producer_age_and_name(bootstrap: str, tools: Tools, topic: str):
    with open_transaction(bootstrap, topic, 0) as (_, running):
        idle = unique("idle")
        transactional_producer(bootstrap, idle)
        producer_id = tools.json("transactions", "describe", running)["producer_id"]
        time.sleep(0.3)

        def listed(*filters: str) -> set[str]:
            return {found["transactional_id"] for found in tools.json("transactions", "list", *filters)}

        assert {running, idle} <= listed()
        assert running in listed("--state", "Ongoing")
        assert idle not in listed("--state", "Ongoing")
        assert listed("--producer-id", str(producer_id)) == {running}
        assert running in listed("--older-than", "100ms")
        assert running not in listed("--older-than", "1h")
        assert idle not in listed("--older-than", "100ms")
        assert listed("--pattern", f"{running[:-1]}.") == {running}
        assert listed("--pattern", running[:-1]) == set()


def test_aborting_an_id_frees_readers_and_fences_the_producer(bootstrap: str, tools: Tools, make_topic: MakeTopic):
    topic = make_topic(2)
    with open_transaction(bootstrap, topic, 0, 1, transaction_timeout_ms=50_000) as (producer, transactional_id):
        produce_plain(bootstrap, topic, 3)
        before = tools.json("transactions", "describe", transactional_id)
        assert read_committed(bootstrap, topic) == []

        out = tools.text("transactions", "abort", transactional_id, "--yes")

        assert out == (
            f'"{transactional_id}": transaction aborted, producer {before["producer_id"]}, '
            f"epoch {before['producer_epoch']} is fenced\n"
        )
        assert tools.lag(topic)["held_back"] == 0
        assert tools.lag(topic, 1)["held_back"] == 0
        assert read_committed(bootstrap, topic) == [b"plain"] * 3
        with pytest.raises(KafkaException) as caught:
            producer.commit_transaction(30)
        assert caught.value.args[0].fatal()
        after = tools.json("transactions", "describe", transactional_id)
        assert after["timeout_ms"] == 50_000
        assert after["producer_epoch"] > before["producer_epoch"]

    successor = transactional_producer(bootstrap, transactional_id)
    successor.begin_transaction()
    successor.produce(topic, b"from the successor", partition=0)
    successor.commit_transaction(30)
    wait_for_state(tools, transactional_id, "CompleteCommit")
    assert read_committed(bootstrap, topic) == [*[b"plain"] * 3, b"from the successor"]


def test_without_yes_nothing_is_aborted(bootstrap: str, topic: str):
    """As a process, as a script would run it: standard input is no terminal."""
    with open_transaction(bootstrap, topic, 0) as (producer, transactional_id):
        command = [sys.executable, "-m", "oncelog", "transactions", "abort", transactional_id]
        ended = subprocess.run(
            [*command, "--bootstrap-server", bootstrap],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

        assert ended.returncode == 2
        assert ended.stdout == ""
        assert "Give --yes" in ended.stderr
        producer.commit_transaction(30)


def test_an_id_at_rest_is_left_alone(bootstrap: str, tools: Tools):
    transactional_id = unique("idle")
    transactional_producer(bootstrap, transactional_id)
    before = tools.json("transactions", "describe", transactional_id)

    code, _, err = tools.run("transactions", "abort", transactional_id, "--yes")

    assert code == 1
    assert err == f'oncelog: "{transactional_id}" has nothing to abort: it is in Empty\n'
    assert tools.json("transactions", "describe", transactional_id)["producer_epoch"] == before["producer_epoch"]


def test_a_pattern_that_is_none_is_refused(tools: Tools):
    code, _, err = tools.run("transactions", "list", "--pattern", "(")

    assert code == 2
    assert "INVALID_REGULAR_EXPRESSION" in err


def test_a_broker_that_has_gone_is_exit_code_2(start_broker: StartBroker, capsys: pytest.CaptureFixture[str]):
    broker: BrokerProcess = start_broker()
    tools = Tools(broker.bootstrap_servers, capsys)
    assert tools.json("transactions", "list") == []
    broker.kill()

    code, _, err = tools.run("transactions", "list")

    assert code == 2
    assert f"cannot reach a broker at {broker.bootstrap_servers}" in err
