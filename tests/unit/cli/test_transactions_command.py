"""`oncelog transactions` and `oncelog explain-lag` as commands: what they accept, how they end, what they say when they cannot."""

import json
import socket
import subprocess
import sys
from io import StringIO

import pytest

from oncelog.cli.main import main
from oncelog.model.address import Address
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.init_producer_id import InitProducerIdResponse
from oncelog.protocol.messages.list_transactions import ListTransactionsResponse
from tests.unit.client.clusters import Known, ScriptedCluster, producer
from tests.unit.client.scripted_broker import EVERYTHING, ScriptedBroker, api_versions

HANGING = ("--topic", "orders", "--partition", "0", "--start-offset", "3")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_on(cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with cluster.running():
        return run(capsys, *arguments, "--bootstrap-server", str(cluster.brokers[0].address))


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions", "list"),
        ("transactions", "describe", "billing"),
        ("transactions", "find-hanging"),
        ("transactions", "abort", "billing", "--yes"),
        ("transactions", "abort", *HANGING),
        ("explain-lag", "orders"),
    ],
)
def test_a_broker_that_is_not_there_is_one_line(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = Address(*listener.getsockname())

    code, out, err = run(capsys, *arguments, "--bootstrap-server", str(nobody))

    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line == (
        f"oncelog: cannot reach a broker at {nobody}: Connection refused (--bootstrap-server HOST:PORT says which one to use)"
    )


def test_a_broker_that_lacks_the_call_is_one_line(capsys: pytest.CaptureFixture[str]):
    with_less = {key: versions for key, versions in EVERYTHING.items() if key is not ApiKey.LIST_TRANSACTIONS}
    cluster = ScriptedCluster([0])
    with cluster.running():
        cluster.brokers[0].answers[ApiKey.API_VERSIONS] = api_versions(with_less)
        code, _, err = run(capsys, "transactions", "list", "--bootstrap-server", str(cluster.brokers[0].address))

    assert (code, err) == (2, "oncelog: the broker does not support ListTransactions\n")


@pytest.mark.parametrize(
    ("filters", "version"), [(["--older-than", "5s"], 1), (["--pattern", "bill.*"], 2), (["--state", "Empty"], 0)]
)
def test_a_filter_the_broker_would_not_see_is_not_sent(
    filters: list[str], version: int, capsys: pytest.CaptureFixture[str]
):
    older = {**EVERYTHING, ApiKey.LIST_TRANSACTIONS: (0, max(version - 1, 0))}
    cluster = ScriptedCluster([0])
    with cluster.running():
        cluster.brokers[0].answers[ApiKey.API_VERSIONS] = api_versions(older)
        code, _, err = run(
            capsys, "transactions", "list", "--bootstrap-server", str(cluster.brokers[0].address), *filters
        )

    if version == 0:
        assert code == 0
    else:
        assert code == 2
        assert f"version {version} or later of ListTransactions" in err


def test_filters_go_over_the_wire(capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster([0])
    filters = ("--state", "Ongoing", "--producer-id", "5", "--older-than", "1m", "--pattern", "b.*")

    code, out, _ = run_on(cluster, capsys, "transactions", "list", *filters)

    (request,) = cluster.brokers[0].requests(ApiKey.LIST_TRANSACTIONS)
    assert (code, out) == (0, "no transactional ids\n")
    assert request.state_filters == ["Ongoing"]
    assert request.producer_id_filters == [5]
    assert request.duration_filter == 60_000
    assert request.transactional_id_pattern == "b.*"


def test_what_is_over_does_not_run_for_long(capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster([0])

    run_on(cluster, capsys, "transactions", "list", "--older-than", "1m")

    (request,) = cluster.brokers[0].requests(ApiKey.LIST_TRANSACTIONS)
    assert request.state_filters == ["Ongoing", "PrepareCommit", "PrepareAbort"]


def test_a_list_as_table_and_as_json(capsys: pytest.CaptureFixture[str]):
    known = {"billing": Known(0, 4003), "audit": Known(1, 9, state="CompleteCommit")}

    _, table, _ = run_on(ScriptedCluster([0, 1], known), capsys, "transactions", "list")
    _, listed, _ = run_on(ScriptedCluster([0, 1], known), capsys, "transactions", "list", "--json")

    assert table.splitlines() == [
        "TRANSACTIONAL ID  COORDINATOR  PRODUCER ID  STATE",
        "audit                       1            9  CompleteCommit",
        "billing                     0         4003  Ongoing",
    ]
    assert json.loads(listed)[1] == {
        "transactional_id": "billing",
        "coordinator": 0,
        "producer_id": 4003,
        "state": "Ongoing",
    }


def test_describing_a_prepared_transaction_says_which_partitions_lack_a_marker(capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster([0, 0], {"billing": Known(0, 4003, [1], "PrepareCommit")})

    code, out, _ = run_on(cluster, capsys, "transactions", "describe", "billing")

    assert code == 0
    assert "without a marker  orders-1" in out
    assert "started           1970-01-01 00:00:01 UTC" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("transactions", "describe", "nobody"), 'no coordinator knows a transactional id "nobody"'),
        (("transactions", "abort", "nobody", "--yes"), 'no coordinator knows a transactional id "nobody"'),
        (("transactions", "abort", "done", "--yes"), '"done" has nothing to abort: it is in CompleteCommit'),
        (("transactions", "abort", "ending", "--yes"), '"ending" has nothing to abort any more'),
        (("transactions", "find-hanging", "--topic", "orderz"), "there is no topic orderz"),
        (("transactions", "abort", *HANGING), "began at offset 3: no transaction is open there"),
        (("transactions", "abort", *HANGING[:2], "--partition", "7", *HANGING[4:]), "orders has no partition 7"),
        (("explain-lag", "orderz"), "there is no topic orderz"),
        (("explain-lag", "orders", "--partition", "7"), "orders has no partition 7: it has 1"),
    ],
)
def test_what_is_not_there_is_exit_code_1(arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster(
        [0], {"done": Known(0, 1, state="CompleteCommit"), "ending": Known(0, 2, state="PrepareAbort")}
    )

    code, out, err = run_on(cluster, capsys, *arguments)

    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert says in line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("transactions", "abort"), "either a transactional id, or --topic, --partition and --start-offset"),
        (("transactions", "abort", "billing", "--topic", "orders"), "either a transactional id, or"),
        (("transactions", "abort", "--topic", "orders"), "either a transactional id, or"),
        (("transactions", "abort", "billing"), "Give --yes if that is wanted"),
        (("transactions", "abort", *HANGING), 'it is not hanging: it belongs to "billing" (Ongoing)'),
        (("transactions", "find-hanging", "--broker", "9"), "no broker 9"),
    ],
)
def test_what_cannot_be_done_as_asked_is_exit_code_2(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", StringIO())
    cluster = ScriptedCluster([0], {"billing": Known(0, 7, [0])}, {0: [[producer(7, 3)]]})

    code, out, err = run_on(cluster, capsys, *arguments)

    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert says in line


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "fenced"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_it_asks_before_it_fences_somebody(
    typed: str, fenced: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    cluster = ScriptedCluster([0], {"billing": Known(0, 7, [0], timeout_ms=20_000)})
    with cluster.running():
        taken_over = InitProducerIdResponse(producer_id=7, producer_epoch=2)
        cluster.brokers[0].answers[ApiKey.INIT_PRODUCER_ID] = taken_over
        code, out, err = run(
            capsys, "transactions", "abort", "billing", "--bootstrap-server", str(cluster.brokers[0].address)
        )
    requests = cluster.brokers[0].requests(ApiKey.INIT_PRODUCER_ID)

    assert "fences producer 7, epoch 0" in err
    assert code == (0 if fenced else 2)
    assert [(asked.transactional_id, asked.transaction_timeout_ms) for asked in requests] == (
        [("billing", 20_000)] if fenced else []
    )
    assert ("transaction aborted" in out) == fenced


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions",),
        ("transactions", "list", "--state", "Napping"),
        ("transactions", "list", "--older-than", "15"),
        ("transactions", "describe"),
        ("explain-lag",),
    ],
)
def test_arguments_that_make_no_sense_are_exit_code_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_an_address_that_is_none_is_exit_code_2(capsys: pytest.CaptureFixture[str]):
    code, _, err = run(capsys, "transactions", "list", "--bootstrap-server", "localhost")

    assert code == 2
    assert "localhost is no HOST:PORT" in err


def test_a_hanging_transaction_is_shown_with_the_command_that_ends_it(capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster([0], open={0: [[producer(7, 3, last_timestamp=1_000)]]})

    code, out, _ = run_on(cluster, capsys, "transactions", "find-hanging")

    server = cluster.brokers[0].address
    assert code == 1
    assert out.splitlines()[-1] == f"  oncelog transactions abort {' '.join(HANGING)} --bootstrap-server {server}"


def test_a_partition_that_cannot_be_looked_into_is_said_and_the_others_are_looked_into(
    capsys: pytest.CaptureFixture[str],
):
    code, out, err = run_on(ScriptedCluster([0, -1]), capsys, "transactions", "find-hanging")

    assert code == 0
    assert out == "no hanging transactions in 1 partitions\n"
    assert err == "oncelog: could not look into orders-1: LEADER_NOT_AVAILABLE\n"


def test_commands_for_the_default_server_do_not_repeat_it(capsys: pytest.CaptureFixture[str]):
    import argparse

    from oncelog.cli.broker_commands import DEFAULT_SERVER, command_line

    line = command_line(argparse.Namespace(bootstrap_server=DEFAULT_SERVER), "transactions", "abort", "it's mine")

    assert line == """oncelog transactions abort 'it'"'"'s mine'"""


def test_serving_does_not_load_the_tools_and_the_tools_do_not_load_the_broker():
    loaded = (
        "import sys; from oncelog.cli.main import main\n"
        "try: main([*sys.argv[1:], '--help'])\n"
        "except SystemExit: pass\n"
        "print(*sorted(name for name in sys.modules if name.startswith('oncelog.')), file=sys.stderr)"
    )

    def modules(*arguments: str) -> list[str]:
        done = subprocess.run([sys.executable, "-c", loaded, *arguments], capture_output=True, text=True, timeout=60)
        return done.stderr.split()

    assert modules("serve") == ["oncelog.cli", "oncelog.cli.main", "oncelog.cli.serve"]
    assert not [name for name in modules("transactions", "list") if name.startswith("oncelog.broker")]
    assert not [name for name in modules("explain-lag") if name.startswith("oncelog.broker")]


def test_an_error_of_one_coordinator_is_told_with_its_number(capsys: pytest.CaptureFixture[str]):
    cluster = ScriptedCluster([0, 1])
    with cluster.running():
        cluster.brokers[1].answers[ApiKey.LIST_TRANSACTIONS] = ListTransactionsResponse(error_code=31)
        code, _, err = run(capsys, "transactions", "list", "--bootstrap-server", str(cluster.brokers[0].address))

    assert code == 2
    assert err == "oncelog: listing the transactions of broker 1: CLUSTER_AUTHORIZATION_FAILED\n"


def test_a_reader_that_has_seen_enough_is_no_problem():
    with ScriptedCluster([0], {f"id-{number}": Known(0, number) for number in range(5000)}).running() as brokers:
        server = str(brokers.any().address)
        command = [sys.executable, "-m", "oncelog", "transactions", "list", "--bootstrap-server", server]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline().startswith(b"TRANSACTIONAL ID")
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(30) == 0


def test_a_broker_that_hangs_up_in_the_middle(capsys: pytest.CaptureFixture[str]):
    with ScriptedBroker({ApiKey.METADATA: None}) as broker:
        code, _, err = run(capsys, "transactions", "list", "--bootstrap-server", str(broker.address))

    assert code == 2
    assert "broke before it answered Metadata" in err
