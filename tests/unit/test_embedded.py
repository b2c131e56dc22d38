"""A broker inside this process: starts, serves, stops, and leaves nothing behind."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import oncelog
from oncelog.broker.config import ConfigError
from oncelog.runtime.data_directory import DataDirectoryUnusable


def produce(broker: oncelog.EmbeddedBroker, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value)
    assert producer.flush(10) == 0


def consume_one(broker: oncelog.EmbeddedBroker, topic: str) -> bytes | None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        message = consumer.poll(10)
        return None if message is None else message.value()
    finally:
        consumer.close()


def oncelog_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "oncelog"]


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_serves_a_client_and_leaves_nothing_behind():
    with oncelog.embedded() as broker:
        data_dir, port = broker.data_dir, broker.port
        produce(broker, "orders", b"one espresso")

        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
        assert consume_one(broker, "orders") == b"one espresso"
        assert any(data_dir.iterdir())

    assert not data_dir.exists()
    assert not accepts(port)
    assert oncelog_threads() == []


def test_a_given_directory_stays_and_is_found_again(tmp_path: Path):
    with oncelog.embedded(tmp_path) as broker:
        produce(broker, "orders", b"before")

    with oncelog.embedded(data_dir=str(tmp_path)) as broker:
        assert broker.data_dir == tmp_path
        assert consume_one(broker, "orders") == b"before"


def test_several_run_side_by_side():
    with oncelog.embedded() as one, oncelog.embedded() as other:
        produce(one, "orders", b"at one")
        produce(other, "orders", b"at the other")

        assert consume_one(one, "orders") == b"at one"
        assert consume_one(other, "orders") == b"at the other"


def test_configs_may_be_python_values():
    settings = {"num.partitions": 3, "auto.create.topics.enable": True, "log.cleanup.policy": ["compact", "delete"]}
    with oncelog.embedded(config=settings) as broker:
        produce(broker, "orders", b"x")
        partitions = Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics("orders", 10)

    assert len(partitions.topics["orders"].partitions) == 3


def test_a_bad_config_is_raised_at_once():
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        oncelog.embedded(config={"num.partition": 3})


def test_what_keeps_it_from_starting_is_raised_to_the_caller(tmp_path: Path):
    with oncelog.embedded() as first, pytest.raises(OSError, match="in use"):
        oncelog.embedded(tmp_path, port=first.port).start()

    assert oncelog_threads() == []


def test_one_directory_has_one_broker(tmp_path: Path):
    with oncelog.embedded(tmp_path), pytest.raises(DataDirectoryUnusable, match=str(os.getpid())):
        oncelog.embedded(tmp_path).start()


def test_stopping_twice_is_fine_and_starting_twice_is_not():
    broker = oncelog.embedded()
    broker.start()
    with pytest.raises(RuntimeError, match="runs already"):
        broker.start()
    broker.stop()
    broker.stop()

    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.bootstrap_servers


def test_it_can_be_started_again_after_a_stop(tmp_path: Path):
    broker = oncelog.embedded(tmp_path)
    broker.start()
    produce(broker, "orders", b"first run")
    broker.stop()

    with broker:
        assert consume_one(broker, "orders") == b"first run"


def test_a_forgotten_broker_does_not_keep_the_interpreter_and_stops_cleanly():
    program = "import oncelog; b = oncelog.embedded(); b.start(); print(b.data_dir, flush=True)"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (result.returncode, result.stderr) == (0, "")
    assert not Path(result.stdout.strip()).exists()


def test_a_forked_child_cannot_stop_its_parents_broker():
    program = (
        "import os, oncelog\n"
        "with oncelog.embedded() as broker:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        broker.stop()\n"
        "        os._exit(7)\n"
        "    _, status = os.waitpid(child, 0)\n"
        "    assert os.waitstatus_to_exitcode(status) == 7\n"
        "    assert broker.data_dir.exists()\n"
        "print('ok')\n"
    )

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert result.stdout == "ok\n", result.stderr


def test_importing_the_package_does_not_load_the_broker():
    program = "import sys, oncelog; assert 'asyncio' not in sys.modules; assert 'oncelog.broker' not in sys.modules"

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
