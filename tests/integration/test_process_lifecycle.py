"""`oncelog serve` as a process: how it starts, what it says, how it stops, and what it leaves for the next start."""

import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import confluent_kafka
import pytest

from tests.brokers import BrokerProcess, StartBroker, oncelog_command, oncelog_only
from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import create_topic

pytestmark = oncelog_only
CONFLUENT = BY_NAME["confluent-kafka"]


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    return subprocess.run([*oncelog_command(), "serve", *arguments], capture_output=True, text=True, timeout=20)


def test_it_says_where_it_is_ready_and_stops_on_sigterm(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", port=0) as broker:
        assert re.search(rf"^oncelog ready on 127\.0\.0\.1:{broker.port}$", broker.output(), re.MULTILINE)
        create_topic(broker.bootstrap_servers)
        assert broker.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port))


def test_sigint_is_a_clean_stop_too(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.stop(signal.SIGINT) == 0


def test_a_second_broker_on_the_same_directory_says_who_has_it(start_broker: StartBroker) -> None:
    broker = start_broker()
    second = serve("--listen", "127.0.0.1:0", "--data-dir", str(broker.directory))
    assert second.returncode != 0
    assert str(broker.pid) in second.stderr
    assert str(broker.directory) in second.stderr
    assert "Traceback" not in second.stderr
    # The first is unharmed.
    topic = create_topic(broker.bootstrap_servers)
    CONFLUENT.produce(broker.bootstrap_servers, topic, [Message(b"x")])

    # After a kill, the directory is free at once.
    broker.kill()
    broker.start()


def test_a_port_in_use_is_told(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker()
    second = serve("--listen", broker.bootstrap_servers, "--data-dir", str(tmp_path / "other"))
    assert second.returncode != 0
    assert broker.bootstrap_servers in second.stderr
    assert "Traceback" not in second.stderr


def test_a_wrong_setting_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    unknown = serve("--listen", "127.0.0.1:0", "--data-dir", data, "--set", "log.retention.hour=5")
    assert unknown.returncode != 0
    assert "log.retention.hours" in unknown.stderr
    bad = serve("--listen", "127.0.0.1:0", "--data-dir", data, "--set", "num.partitions=many")
    assert bad.returncode != 0
    assert "num.partitions" in bad.stderr
    assert "many" in bad.stderr


def test_a_kafka_configuration_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "# as Kafka ships it\nnum.network.threads=3\nnum.io.threads=8\nnum.partitions=4\n"
        "log.retention.hours=12\ngroup.initial.rebalance.delay.ms=0\n"
    )
    command = [*oncelog_command(), "serve", "--config", str(file)]
    with BrokerProcess(tmp_path / "data", command=command) as broker:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("made", b"x")
        assert producer.flush(20) == 0
        assert len(admin.list_topics("made", timeout=20).topics["made"].partitions) == 4
        assert "num.network.threads" in broker.output()


def test_after_a_clean_stop_everything_is_there_and_the_start_is_quick(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers, 3, {"retention.ms": "-1"})
    messages = [Message(b"%d" % number * 100) for number in range(5000)]
    CONFLUENT.produce(broker.bootstrap_servers, topic, messages)
    files_before = {path.name for path in (broker.data_directory / f"{topic}-0").iterdir()}
    assert broker.stop() == 0
    started = time.monotonic()
    broker.start()
    assert time.monotonic() - started < 5

    assert {path.name for path in (broker.data_directory / f"{topic}-0").iterdir()} >= files_before
    received = CONFLUENT.read(broker.bootstrap_servers, topic, 5000)
    assert [message.value for message in received] == [message.value for message in messages]
    CONFLUENT.produce(broker.bootstrap_servers, topic, [Message(b"next")])
    assert [message.offset for message in CONFLUENT.read(broker.bootstrap_servers, topic, 1, offset=5000)] == [5000]


def test_stopping_with_clients_connected_does_not_hang(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = create_topic(broker.bootstrap_servers)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "fetch.wait.max.ms": 60_000,
            "log_level": 0,
            "socket.timeout.ms": 61_000,
        }
    )
    try:
        consumer.subscribe([topic])
        consumer.poll(1.0)
        started = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - started < 5
    finally:
        consumer.close()


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    told = serve("--listen", "127.0.0.1:0", "--data-dir", str(file))
    assert told.returncode != 0
    assert str(file) in told.stderr
    assert "Traceback" not in told.stderr


def test_a_topic_made_before_a_kill_is_there_after_it(start_broker: StartBroker) -> None:
    broker = start_broker()
    topics = []
    for partitions in range(1, 4):
        topics.append(create_topic(broker.bootstrap_servers, partitions, {"retention.ms": str(partitions * 1000000)}))
        broker.kill()
        broker.start()
        listed = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(
            timeout=20
        )
        assert [len(listed.topics[topic].partitions) for topic in topics] == list(range(1, partitions + 1))
