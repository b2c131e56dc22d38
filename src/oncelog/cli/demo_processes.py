"""The processes of the demo: one broker and the workers, each a child of its own that can be killed and started again.

They are shielded from the terminal's Ctrl-C: the demo itself hears of it and ends them. What they print goes to a file each, which
is shown only when something went wrong.
"""

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

WORKERS = ("worker-1", "worker-2", "worker-3")
WORKER_COMMAND = [sys.executable, "-m", "oncelog.cli.demo_worker"]
READY = "oncelog ready on "
#: Below what the system hands out: a client that reconnects while the broker is down must not be given the broker's own port.
PORTS = range(10_000, 32_000)


class DemoFailed(Exception):
    """Why the demo cannot go on: shown as it is."""


class Child:
    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self._command = command
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def pause(self) -> None:
        """SIGSTOP: it stands still, and knows nothing of it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: it cannot tidy up, and says goodbye to nobody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """SIGTERM: it ends what it is at, and then itself."""
        if self._process is not None:
            self._process.terminate()

    def printed(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


class Processes:
    """The broker, and the workers by name. Leaving `with` ends them all, whatever happened."""

    def __init__(self, directory: Path) -> None:
        self.servers = f"127.0.0.1:{_free_port()}"
        self.broker = Child("broker", self._broker_command(directory / "data"), directory)
        self.workers = {name: Child(name, [*WORKER_COMMAND, self.servers, name], directory) for name in WORKERS}

    def _broker_command(self, data_dir: Path) -> list[str]:
        command = [sys.executable, "-m", "oncelog", "serve", "--listen", self.servers, "--data-dir", str(data_dir)]
        # The workers start together; Kafka's three seconds of waiting for more of them would be for nothing.
        return [*command, "--set", "group.initial.rebalance.delay.ms=300"]

    def start_broker(self, check: Callable[[], None], seconds: float = 30.0) -> None:
        """Returns once it serves clients. `check` is called while waiting, and may raise."""
        ready_before = self.broker.printed().count(READY)
        self.broker.spawn()
        deadline = time.monotonic() + seconds
        while self.broker.printed().count(READY) == ready_before:
            check()
            if not self.broker.running:
                raise DemoFailed(f"the broker does not start (exit code {self.broker.exit_code})")
            if time.monotonic() > deadline:
                raise DemoFailed(f"the broker is not ready after {seconds:.0f} s")
            time.sleep(0.01)

    def stop_workers(self, check: Callable[[], None], seconds: float = 10.0) -> None:
        """Lets them end what they are at; those that take longer than this are killed."""
        for worker in self.workers.values():
            worker.terminate()
        deadline = time.monotonic() + seconds
        while any(worker.running for worker in self.workers.values()) and time.monotonic() < deadline:
            check()
            time.sleep(0.01)
        for worker in self.workers.values():
            worker.kill()

    def printed(self, lines: int = 10) -> str:
        """The last lines that each of them printed."""
        ends = {child.name: child.printed().splitlines()[-lines:] for child in self._children}
        return "\n".join(f"{name}: {line}" for name, printed in ends.items() for line in printed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children:
            child.kill()

    @property
    def _children(self) -> list[Child]:
        return [*self.workers.values(), self.broker]


def _free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
