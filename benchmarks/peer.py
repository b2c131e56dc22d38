"""Apache Kafka beside us: one KRaft node from a directory of jars, to be measured in the same run.

The jars are not part of the project: `--peer-jars DIR` names a directory with Kafka's server and its dependencies.
"""

import base64
import os
import socket
import subprocess
import time
from pathlib import Path

from benchmarks.servers import Server


def start_kafka(jars: Path, directory: Path) -> Server:
    """Format `directory` unless it is already, start the broker and return once it accepts connections."""
    port, controller = _free_port(), _free_port()
    properties = directory / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(directory / "log"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = ["java", "-cp", f"{jars}/*"]
    if not (directory / "log").exists():
        cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        format_storage = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties), "--standalone"]
        subprocess.run([*java, *format_storage], check=True, stdout=subprocess.DEVNULL)
    # The heap Kafka's own start script gives it.
    command = [*java[:1], "-Xmx1G", "-Xms1G", *java[1:], "kafka.Kafka", str(properties)]
    started_at = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True)
    server = Server("kafka", process, port, started_at)
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return server
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"Apache Kafka ended with status {process.returncode}: are all its jars in {jars}?")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
