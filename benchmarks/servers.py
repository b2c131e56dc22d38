"""The processes under measurement: started, watched from outside, stopped.

Their CPU is read from the kernel's clock of the process (all its threads, also those that ended, in nanoseconds),
their memory is the resident set. Neither needs their help, so a floor, a broker and a Java process are measured
alike.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

READY = re.compile(r" ready on \S+:(\d+)")


@dataclass(slots=True)
class Server:
    name: str
    process: "subprocess.Popen[str]"
    port: int
    started_at: float
    """`time.perf_counter()` just before exec."""

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)

    def resident_bytes(self) -> int:
        return resident_bytes(self.process.pid)

    def run_on(self, cores: set[int]) -> None:
        """Keep all its threads, and those it starts from now on, to these cores."""
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def cpu_seconds(pid: int) -> float:
    # The number of a process' CPU clock, as clock_getcpuclockid(3) makes it.
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def start(name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> Server:
    """Start a server that prints one line with ` ready on HOST:PORT`, and wait for that line."""
    started_at = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    return Server(name, process, _port_announced(name, process.stdout), started_at)


def _port_announced(name: str, output: IO[str]) -> int:
    for line in output:
        if found := READY.search(line):
            return int(found.group(1))
    raise RuntimeError(f"{name} ended without a line that says where it is ready: its own error stands above")


def start_floor(file: Path, reply: bytes, *, records_at: int = 0, read_bytes: int = 0) -> Server:
    command = [sys.executable, "-m", "benchmarks.floor", "--file", str(file), "--reply", reply.hex()]
    return start("floor", [*command, "--records-at", str(records_at), "--read-bytes", str(read_bytes)])


def start_oncelog(data_dir: Path, settings: dict[str, str] | None = None) -> Server:
    # The installed command, as a user runs it: what its start script costs belongs to the start.
    command = [
        str(Path(sys.executable).with_name("oncelog")),
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        str(data_dir),
    ]
    for name, value in (settings or {}).items():
        command += ["--set", f"{name}={value}"]
    # Compiled modules are kept, as for every user: a setting for development must not make each start compile them again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return start("oncelog", command, environment)


def touch_memory(size: int, directory: Path) -> None:
    """Write and remove a file of this size, right before so much is going to be written.

    A virtual machine gets its memory from the host at the first touch, and gives it back after seconds without use: a
    touch costs several times the write that does it. So the pages are touched before the clock runs.
    """
    scratch = directory / "scratch"
    with scratch.open("wb") as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    scratch.unlink()
