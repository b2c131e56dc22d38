"""A real Apache Kafka, one node, for tests that ask it. Its jars lie in the directory ONCELOG_PEER_JARS names."""

import base64
import os
import socket
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

JARS = os.environ.get("ONCELOG_PEER_JARS", "")


def require_jars() -> str:
    if not JARS or not any(Path(JARS).glob("kafka-server-*.jar")):
        pytest.skip("ONCELOG_PEER_JARS does not name a directory with Apache Kafka's jars")
    return f"{JARS}/*"


def run_tool(tool: str, *arguments: str) -> str:
    """One of Kafka's command-line tools; what it printed."""
    ran = subprocess.run(
        ["java", "-Xmx256M", "-cp", require_jars(), tool, *arguments], capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Peer:
    def __init__(self, directory: Path) -> None:
        self._class_path = require_jars()
        self._directory = directory
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        controller = _free_port()
        config = self._directory / "server.properties"
        config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\ncontroller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.dirs={self._directory}/log\noffsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        java = ["java", "-Xmx512M", "-cp", self._class_path]
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config), "--standalone"],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=100,
        )
        self._process = subprocess.Popen(
            [*java, "kafka.Kafka", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            except OSError:
                time.sleep(0.1)
            else:
                return self
        self.__exit__(None, None, None)
        raise RuntimeError("Kafka did not get ready")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
