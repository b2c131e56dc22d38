"""A transaction that hangs for real: found, told from those that do not, and ended."""

import shlex

import pytest

from oncelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tests.brokers import BrokerProcess, StartBroker
from tests.integration.raw_connection import RawConnection
from tests.integration.tool_scenes import Tools, leave_hanging, open_transaction, produce_plain, read_committed
from tests.integration.topics import create_topic, soon

#: Nobody's: ids are given out from 0 on.
PRODUCER_ID = 7_000_000


@pytest.fixture
def unguarded(start_broker: StartBroker) -> BrokerProcess:
    """A broker as they were before KIP-890: it does not ask the coordinator before it appends."""
    return start_broker({"transaction.partition.verification.enable": "false"})


@pytest.fixture
def tools(unguarded: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> Tools:
    return Tools(unguarded.bootstrap_servers, capsys)


@pytest.fixture
def topic(unguarded: BrokerProcess) -> str:
    return create_topic(unguarded.bootstrap_servers, partitions=2)


def test_it_is_found_and_the_command_that_is_shown_ends_it(unguarded: BrokerProcess, tools: Tools, topic: str):
    servers = unguarded.bootstrap_servers
    start_offset = leave_hanging(unguarded.port, topic, 0, PRODUCER_ID)
    produce_plain(servers, topic, 3)
    assert read_committed(servers, topic) == []

    (found,) = tools.json("transactions", "find-hanging", code=1)
    code, out, _ = tools.run("transactions", "find-hanging")

    assert (found["topic"], found["partition"], found["start_offset"]) == (topic, 0, start_offset)
    assert (found["producer_id"], found["producer_epoch"]) == (PRODUCER_ID, 0)
    assert found["duration_ms"] >= 20 * 60_000
    assert code == 1
    *_, command = out.splitlines()
    assert command.strip() == found["abort_command"]

    program, *arguments = shlex.split(command)
    assert program == "oncelog"
    code, out, _ = tools.run(*arguments)

    assert code == 0
    assert (
        out == f"{topic}-0: transaction of producer {PRODUCER_ID}, epoch 0, open since offset {start_offset}, aborted\n"
    )
    assert tools.json("transactions", "find-hanging") == []
    soon(lambda: tools.lag(topic), lambda lag: lag["held_back"] == 0)
    assert read_committed(servers, topic) == [b"plain"] * 3


def test_it_outlives_a_restart_and_is_explained(unguarded: BrokerProcess, tools: Tools, topic: str):
    start_offset = leave_hanging(unguarded.port, topic, 1, PRODUCER_ID)
    unguarded.restart()

    (holder,) = tools.lag(topic, 1)["holders"]

    assert holder["hanging"]
    assert holder["transactional_id"] is None
    assert holder["start_offset"] == start_offset
    place = f"--topic {topic} --partition 1 --start-offset {start_offset}"
    assert holder["command"] == f"oncelog transactions abort {place} --bootstrap-server {unguarded.bootstrap_servers}"


def test_one_that_was_written_to_just_now_is_not_called_hanging(unguarded: BrokerProcess, tools: Tools, topic: str):
    leave_hanging(unguarded.port, topic, 0, PRODUCER_ID, age_ms=60_000)

    assert tools.json("transactions", "find-hanging") == []
    assert len(tools.json("transactions", "find-hanging", "--max-transaction-timeout", "30s", code=1)) == 1


def test_it_is_looked_for_where_it_is_asked_for(unguarded: BrokerProcess, tools: Tools, topic: str):
    other = create_topic(unguarded.bootstrap_servers)
    leave_hanging(unguarded.port, topic, 0, PRODUCER_ID)

    assert tools.json("transactions", "find-hanging", "--topic", other) == []
    assert len(tools.json("transactions", "find-hanging", "--topic", topic, "--broker", "1", code=1)) == 1


def test_an_ongoing_transaction_is_not_hanging_and_its_marker_is_refused(
    unguarded: BrokerProcess, tools: Tools, topic: str
):
    servers = unguarded.bootstrap_servers
    with open_transaction(servers, topic, 0) as (producer, transactional_id):
        assert tools.json("transactions", "find-hanging", "--max-transaction-timeout", "0ms") == []

        place = ("--topic", topic, "--partition", "0", "--start-offset", "0")
        code, _, err = tools.run("transactions", "abort", *place)

        assert code == 2
        assert f'it belongs to "{transactional_id}" (Ongoing)' in err
        producer.commit_transaction(30)
    soon(lambda: tools.lag(topic), lambda lag: lag["held_back"] == 0)
    assert read_committed(servers, topic) == [b"not committed"]


def test_ending_one_partition_leaves_the_same_producers_transaction_alone(
    unguarded: BrokerProcess, tools: Tools, topic: str
):
    """Its coordinator knows partition 0; the write to partition 1 came past it."""
    servers = unguarded.bootstrap_servers
    with open_transaction(servers, topic, 0) as (producer, transactional_id):
        known = tools.json("transactions", "describe", transactional_id)
        leave_hanging(
            unguarded.port,
            topic,
            1,
            known["producer_id"],
            epoch=known["producer_epoch"],
            name=transactional_id,
        )

        (found,) = tools.json("transactions", "find-hanging", code=1)
        assert found["partition"] == 1
        (holder,) = tools.lag(topic, 1)["holders"]
        assert (holder["hanging"], holder["transactional_id"], holder["state"]) == (True, transactional_id, None)

        place = ("--topic", topic, "--partition", "1", "--start-offset", str(found["start_offset"]))
        tools.text("transactions", "abort", *place)
        producer.commit_transaction(30)

    soon(lambda: tools.lag(topic), lambda lag: lag["held_back"] == 0)
    assert read_committed(servers, topic, 0) == [b"not committed"]
    assert read_committed(servers, topic, 1) == []


def test_the_marker_leaves_a_producer_without_an_open_transaction(unguarded: BrokerProcess, tools: Tools, topic: str):
    start_offset = leave_hanging(unguarded.port, topic, 0, PRODUCER_ID, epoch=3)

    tools.text(
        "transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", str(start_offset), "--json"
    )

    with RawConnection(unguarded.port) as connection:
        asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
        response = connection.call(asked, 0, DescribeProducersResponse)
    (producer,) = response.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.current_txn_start_offset) == (PRODUCER_ID, 3, -1)
    assert producer.coordinator_epoch == 0
