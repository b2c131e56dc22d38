"""The demo finds what is lost, doubled and torn; it survives its own kills; it leaves nothing behind, whichever way it ends."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import confluent_kafka
import pytest

from oncelog.broker.embedded import EmbeddedBroker
from oncelog.cli import demo_processes, demo_story
from oncelog.cli.demo_progress import Progress
from oncelog.cli.demo_records import OUTPUTS, create_topics, read_everything
from oncelog.cli.demo_verdict import Output, Verdict, judge
from oncelog.cli.demo_worker import PAYMENTS, SHIPMENTS
from oncelog.cli.main import main

COMMAND = [sys.executable, "-m", "oncelog", "demo"]
# The transactions of three orders: the first two in one, the third in one of its own.
WHOLE = [
    Output(PAYMENTS, 0, "a/1", 2),
    Output(PAYMENTS, 1, "a/1", 2),
    Output(SHIPMENTS, 0, "a/1", 2),
    Output(SHIPMENTS, 1, "a/1", 2),
    Output(PAYMENTS, 2, "b/1", 1),
    Output(SHIPMENTS, 2, "b/1", 1),
]
SENT = {0, 1, 2}


def verdict(outputs: list[Output]) -> Verdict:
    return judge(SENT, outputs, OUTPUTS)


def without(*gone: Output) -> list[Output]:
    return [output for output in WHOLE if output not in gone]


def test_what_is_whole_has_no_problems():
    assert verdict(WHOLE) == Verdict(sent=3, arrived=3, lost=0, duplicated=0, torn=0, unexpected=0, transactions=2)
    assert verdict(WHOLE).problems == []


def test_an_order_that_is_in_no_topic_is_lost():
    found = verdict(without(*WHOLE[4:]))

    assert found.problems == ["1 lost"]
    assert (found.arrived, found.transactions) == (2, 1)


def test_an_order_handled_twice_is_duplicated_and_hides_no_lost_one():
    again = [Output(PAYMENTS, 2, "c/1", 1), Output(SHIPMENTS, 2, "c/1", 1)]

    assert verdict([*WHOLE, *again]).problems == ["2 duplicated"]
    assert verdict([*without(*WHOLE[:4]), *again]).problems == ["2 lost", "2 duplicated"]


def test_a_transaction_is_torn_if_one_topic_has_an_order_that_the_other_has_not():
    found = verdict(without(Output(SHIPMENTS, 2, "b/1", 1)))

    assert found.problems == ["1 lost", "1 torn"]


def test_a_transaction_is_torn_though_what_is_missing_came_later_in_another():
    later = [Output(SHIPMENTS, 2, "c/1", 1), Output(PAYMENTS, 2, "c/1", 1)]

    assert verdict([*without(Output(SHIPMENTS, 2, "b/1", 1)), *later]).problems == ["1 duplicated", "1 torn"]


def test_a_transaction_is_torn_if_an_order_of_it_is_missing_everywhere():
    found = verdict(without(Output(PAYMENTS, 1, "a/1", 2), Output(SHIPMENTS, 1, "a/1", 2)))

    assert found.problems == ["1 lost", "1 torn"]


def test_an_order_that_nobody_sent_is_told():
    invented = [Output(PAYMENTS, 7, "z/1", 1), Output(SHIPMENTS, 7, "z/1", 1)]

    assert verdict([*WHOLE, *invented]).problems == ["2 never sent"]


def write(servers: str, outputs: list[Output], *, transactional_id: str, commit: bool) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(20)
    producer.begin_transaction()
    for output in outputs:
        headers = {"transaction": output.transaction, "orders": str(output.orders_in_transaction)}
        producer.produce(output.topic, json.dumps({"order": output.order}), str(output.order), headers=headers)
    assert producer.flush(20) == 0
    if commit:
        producer.commit_transaction(20)
    return producer


def test_reading_back_finds_loss_duplicates_and_torn_pairs_in_real_topics(oncelog_broker: EmbeddedBroker):
    servers = oncelog_broker.bootstrap_servers
    create_topics(servers)
    lost, doubled, torn = WHOLE[:4], WHOLE[4:], Output(PAYMENTS, 3, "d/1", 1)
    write(servers, [*doubled, *doubled, torn], transactional_id="committed", commit=True)
    write(servers, lost, transactional_id="aborted", commit=False).abort_transaction(20)

    outputs, unreadable = read_everything(servers, "read_committed", check=lambda: None)
    written, _ = read_everything(servers, "read_uncommitted", check=lambda: None)

    assert judge({*SENT, 3}, outputs, OUTPUTS).problems == ["3 lost", "2 duplicated", "2 torn"]
    assert sorted(outputs) == sorted([*doubled, *doubled, torn])
    assert sorted(written) == sorted([*doubled, *doubled, torn, *lost])
    assert unreadable == []


def test_reading_back_says_where_a_transaction_is_still_open(oncelog_broker: EmbeddedBroker):
    servers = oncelog_broker.bootstrap_servers
    create_topics(servers)
    write(servers, [Output(SHIPMENTS, 0, "a/1", 1)], transactional_id="left open", commit=False)

    outputs, unreadable = read_everything(servers, "read_committed", check=lambda: None, seconds=1)

    assert outputs == []
    assert [partition.partition("-")[0] for partition in unreadable] == [SHIPMENTS]


def table(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\S.*?)  +([\d,]+)(?:$|  )", printed, re.MULTILINE))


def test_with_a_worker_and_the_broker_killed_everything_arrives_once(tmp_path: Path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*COMMAND, "--orders", "600"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        try:
            printed, errors = demo.communicate(timeout=100)
        finally:
            # Not killed: its children would stay.
            demo.terminate()

    assert demo.returncode == 0, printed + errors
    rows = table(printed)
    assert {name: rows[name] for name in ("lost", "duplicated", "torn transactions", "kills")} == {
        "lost": "0",
        "duplicated": "0",
        "torn transactions": "0",
        "kills": "2",
    }
    # A very slow machine may send fewer; never so few that nobody was in the middle of anything.
    assert rows["sent"] == rows["arrived"]
    assert int(rows["arrived"]) > 300
    assert re.search(r"worker-2 \(process \d+\) killed", printed)
    assert re.search(r"broker \(process \d+\) killed", printed)
    assert list(tmp_path.iterdir()) == []


CARELESS_WORKER = """
# Takes its orders, writes payments, and forgets every tenth order; ships nothing; knows no transactions.
import json, sys
from confluent_kafka import Consumer, Producer

servers, name = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": servers, "group.id": "order-workers", "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
producer = Producer({"bootstrap.servers": servers})
while True:
    message = consumer.poll(0.1)
    if message is None or message.error():
        continue
    order = json.loads(message.value())["order"]
    for topic in ("payments", "shipments"):
        if order % 10 != 0:
            headers = {"transaction": f"none/{order}", "orders": "1"}
            producer.produce(topic, json.dumps({"order": order}), headers=headers)
    producer.flush()
"""


def test_a_careless_worker_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    worker = tmp_path / "careless.py"
    worker.write_text(CARELESS_WORKER)
    monkeypatch.setattr(demo_processes, "WORKER_COMMAND", [sys.executable, str(worker)])
    monkeypatch.setattr(demo_story, "STALLED_SECONDS", 4.0)

    assert main(["demo", "--orders", "100"]) == 1

    printed = capsys.readouterr()
    assert int(table(printed.out)["lost"]) > 0
    assert re.search(r"the demo FAILED: \d+ lost", printed.err)
    assert "Nothing lost" not in printed.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "arrived" in line:
                break
        children = children_of(demo.pid)
        demo.send_signal(number)
        printed, errors = demo.communicate(timeout=60)

    assert demo.returncode == 128 + number, printed + errors
    assert f"stopped by {number.name}" in errors
    assert len(children) == 4, "a broker and three workers"
    assert [pid for pid in children if is_running(pid)] == []
    assert list(tmp_path.iterdir()) == []


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_without_a_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    assert main(["demo"]) == 2
    assert "pip install 'oncelog[demo]'" in capsys.readouterr().err


@pytest.mark.parametrize("orders", ["99", "-1", "many"])
def test_too_few_orders_are_refused(orders: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as refusal:
        main(["demo", "--orders", orders])

    assert refusal.value.code == 2
    assert "100 or more" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_moving_line_on_a_terminal_and_lines_elsewhere():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.show("one")
        progress.tell("killed")
        time.sleep(0.11)
        progress.show("two")
        progress.end()

    assert re.sub(r" +0\.\d s", "", terminal.getvalue()) == "\r\x1b[K  one\r\x1b[K  killed\n\r\x1b[K  two\r\x1b[K\n"
    # A file gets fewer lines: what is shown again within two seconds is left out.
    assert re.sub(r" +0\.\d s", "", file.getvalue()) == "  one\n  killed\n\n"
