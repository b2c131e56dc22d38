"""How a test starts a real broker process, kills it, and starts it again on the same data directory and port.

The target is `oncelog serve`. With ONCELOG_TEST_TARGET=kafka and ONCELOG_PEER=<script that runs an Apache Kafka with
--port, --dir and --set> the same tests run against Apache Kafka: a test which Kafka fails is a wrong test.

A broker that is to come back on its port must not sit in the kernel's ephemeral range: while it is down, a reconnecting
client can be given that very port as its own and connect to itself, and the restart finds the address taken. So ports
are picked below it.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pytest

ROOT = Path(__file__).resolve().parent.parent
READY = re.compile(r"ready on ([\w.]+):(\d+)")

# A test run that is killed must not leave brokers behind. `setpriv` becomes the broker, so the process id stays the same.
ENDS_WITH_ITS_PARENT = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []

# Quick groups: no wait for a first member, and sessions so short that a killed member is missed within a second.
QUICK_GROUPS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "300"}


def target_is_kafka() -> bool:
    return os.environ.get("ONCELOG_TEST_TARGET", "oncelog") == "kafka"


oncelog_only = pytest.mark.skipif(target_is_kafka(), reason="about Oncelog's own process, configuration or files")


def free_port() -> int:
    while True:
        port = random.randint(10_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def oncelog_command() -> list[str]:
    """The installed command where there is one, else the same entry point of this source tree."""
    installed = Path(sys.executable).parent / "oncelog"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "oncelog"]


class BrokerDied(Exception):
    """The process ended or did not get ready; carries what it printed."""


class BrokerProcess:
    """One broker in a process of its own.

    `kill` is SIGKILL, `stop` is SIGTERM; `start` after either uses the same directory and port.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        command: Sequence[str] | None = None,
        port: int | None = None,
    ) -> None:
        self.directory = directory
        self.settings = {**QUICK_GROUPS, **(settings or {})}
        self.port = free_port() if port is None else port
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._printed_before = 0
        self._output = directory.parent / f"{directory.name}.output"
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def data_directory(self) -> Path:
        """Where the partition directories lie."""
        return self.directory / "log" if target_is_kafka() else self.directory

    def output(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def spawn(self) -> None:
        """Start the process and do not wait for it."""
        assert not self.running, "it runs already"
        self._printed_before = len(self.output())
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*ENDS_WITH_ITS_PARENT, *self._arguments()],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=self._environment(),
                cwd=self.directory.parent,
            )

    def start(self, timeout_s: float = 60.0) -> Self:
        """Return once the broker says that it accepts clients."""
        self.spawn()
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            printed = self.output()[self._printed_before :]
            ready = READY.search(printed)
            if ready:
                self.port = int(ready[2])
                return self
            if self._process.poll() is not None:
                raise BrokerDied(f"exit code {self._process.returncode} before it was ready:\n{printed[-4000:]}")
            time.sleep(0.005)
        self.kill()
        raise BrokerDied(f"not ready after {timeout_s} s:\n{self.output()[self._printed_before :][-4000:]}")

    def kill(self) -> None:
        """SIGKILL: no chance to write anything more."""
        self._signal_all(signal.SIGKILL)
        self._wait(30.0)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 30.0) -> int:
        """A clean stop, and the exit code it ends with."""
        assert self._process is not None
        if self.running:
            # Kafka's starting script passes the signal on and waits; a group-wide SIGTERM would reach the JVM twice.
            self._process.send_signal(number)
        return self._wait(timeout_s)

    def restart(self) -> Self:
        """Clean stop, start."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()

    def _signal_all(self, number: int) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _wait(self, timeout_s: float) -> int:
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._signal_all(signal.SIGKILL)
            self._process.wait()
            raise BrokerDied(f"still running {timeout_s} s after the signal:\n{self.output()[-4000:]}") from None

    def _arguments(self) -> list[str]:
        settings = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        if target_is_kafka() and self._command is None:
            script = os.environ.get("ONCELOG_PEER")
            if not script:
                raise BrokerDied("ONCELOG_TEST_TARGET=kafka needs ONCELOG_PEER, the script that runs an Apache Kafka")
            return [script, "--port", str(self.port), "--dir", str(self.directory), *settings]
        command = self._command or [*oncelog_command(), "serve"]
        return [*command, "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.directory), *settings]

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment["PYTHONUNBUFFERED"] = "1"
        return environment


class StartBroker(Protocol):
    """The fixture `start_broker`: a broker of the test's own, gone with the test."""

    def __call__(self, settings: dict[str, str] | None = None) -> BrokerProcess: ...
