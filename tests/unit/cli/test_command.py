"""The `oncelog` command as its users meet it: a real process, its output and its exit code."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import oncelog

COMMAND = [sys.executable, "-m", "oncelog"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that is ready, and the line that says so."""
    process = subprocess.Popen(
        [*COMMAND, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_version():
    assert run("--version").stdout == f"oncelog {oncelog.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",)])
def test_help_names_the_commands(arguments: tuple[str, ...]):
    result = run(*arguments)

    assert result.returncode == 0
    assert "serve" in result.stdout
    assert "demo" in result.stdout


def test_help_of_a_command_names_its_options():
    assert "--data-dir" in run("help", "serve").stdout


def test_an_unknown_command_is_refused():
    result = run("surf")

    assert result.returncode == 2
    assert "surf" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_says_when_it_is_ready_and_stops_cleanly(tmp_path: Path, number: signal.Signals):
    with serving("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)) as (process, line):
        host_port = line.removeprefix("oncelog ready on ")
        host, port = host_port.split(":")
        socket.create_connection((host, int(port)), timeout=10).close()
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_config_file_says_where_to_listen_and_what_has_no_effect(tmp_path: Path):
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\nnum.io.threads=4\n")

    with serving("--config", str(file)) as (process, line):
        process.terminate()
        _, errors = process.communicate(timeout=30)

    assert line.startswith("oncelog ready on 127.0.0.1:")
    assert (tmp_path / "data").is_dir()
    assert "NOTICE config ignored name=num.io.threads why=" in errors


def test_log_lines_can_be_json(tmp_path: Path):
    import json

    settings = ["--set", "logging.format=json", "--set", "num.io.threads=4"]
    with serving("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), *settings) as (process, _):
        process.terminate()
        _, errors = process.communicate(timeout=30)

    first = json.loads(errors.splitlines()[0])
    assert (first["level"], first["event"], first["name"]) == ("notice", "config ignored", "num.io.threads")


def refused(*arguments: str) -> str:
    """The one line that says why `oncelog serve` did not start."""
    result = run("serve", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("oncelog: ")
    return lines[0]


def test_an_address_in_use_is_said_with_what_to_do(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        line = refused("--listen", address, "--data-dir", str(tmp_path))

    assert f"cannot listen on {address}: the address is in use" in line
    assert "--listen" in line


def test_a_data_directory_in_use_names_the_process(tmp_path: Path):
    with serving("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)) as (process, _):
        line = refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))

    assert str(process.pid) in line
    assert str(tmp_path) in line


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()

    assert str(tmp_path / "file") in refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file" / "data"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "num.partition=3"], "unknown config num.partition: did you mean num.partitions?"),
        (["--set", "num.partitions=many"], "num.partitions=many: must be a whole number"),
        (["--set", "num.partitions"], "write it as --set NAME=VALUE"),
        (["--listen", "localhost"], "is no HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "needs --advertised HOST:PORT"),
        (["--listen", "127.0.0.1:0"], "say where to keep the log: --data-dir DIR"),
        (["--config", "nowhere.properties"], "cannot read the config file nowhere.properties"),
    ],
)
def test_a_bad_configuration_is_said_before_anything_is_touched(arguments: list[str], says: str):
    assert says in refused(*arguments)
