"""The broker as something that starts and stops: data directory, logs, coordinators, listener, in that order.

Ready means loaded: nothing listens before every log is recovered and every group is back, so the first request after a
restart is answered as correctly as the thousandth.
"""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from oncelog.broker.background import Background
from oncelog.broker.connection import Connection
from oncelog.broker.group_commit import GroupCommit
from oncelog.broker.logging import get_logger
from oncelog.broker.metadata import ClusterMetadata
from oncelog.broker.node import Node
from oncelog.broker.partitions import Partitions
from oncelog.runtime.clock import SystemClock
from oncelog.runtime.data_directory import DataDirectory
from oncelog.runtime.disk import RealDisk
from oncelog.runtime.metadata_store import SqliteMetadataStore
from oncelog.runtime.timers import LoopTimers

if TYPE_CHECKING:
    from oncelog.broker.config import BrokerConfig
    from oncelog.log.storage import Disk

_log = get_logger(__name__)

SCRATCH_BYTES = 256 << 10
SWEEP_EVERY_MS = 10_000
BUFFER_IDLE_MS = 10_000


class Broker:
    def __init__(
        self,
        config: "BrokerConfig",
        data_dir: Path,
        host: str,
        port: int,
        advertised: tuple[str, int] | None = None,
        *,
        disk: "Disk | None" = None,
    ) -> None:
        self.config = config
        self.data_dir = data_dir
        self.host = host
        self.port = port
        self._advertised = advertised
        self._disk = disk
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.max_frame_bytes: int = config.socket_request_max_bytes
        self.node: Node
        self._connections: dict[Connection, None] = {}
        self._per_host: dict[str, int] = {}
        self._connection_id = 0
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Load everything, then listen; returns when clients are served."""
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        timers = LoopTimers(loop, clock.monotonic_ms)
        listening = _bind(self.host, self.port)
        try:
            self._directory = DataDirectory.open(self.data_dir)
        except BaseException:
            listening.close()
            raise
        try:
            self.node = node = Node(self.config, self.data_dir, clock, timers)
            host, self.port = listening.getsockname()[:2]
            node.advertised = self._advertised or (self.host or host, self.port)
            self._load(loop)
            self._listener = await loop.create_server(lambda: Connection(self), sock=listening, backlog=1024)
        except BaseException:
            listening.close()
            self._directory.close()
            raise
        self._background.start()
        self._sweep()
        _log.info(
            "ready", host=self.host, port=self.port, topics=len(node.cluster.topics), partitions=len(node.partitions)
        )

    def _load(self, loop: asyncio.AbstractEventLoop) -> None:
        node = self.node
        disk = self._disk or RealDisk(self.data_dir)
        clean = self._directory.take_clean_shutdown_marker()
        self._directory.remove_deleted_partitions()
        group_commit = GroupCommit(node.timers) if self.config.flush_policy == "group-commit" else None
        self._store = SqliteMetadataStore(self.data_dir / "metadata.sqlite", loop.call_soon_threadsafe)
        node.partitions = Partitions(node, disk, group_commit, clean_shutdown=clean)
        node.cluster = ClusterMetadata(node, self._store)
        node.cluster.load()
        node.cluster_id = node.cluster.cluster_id
        self._directory.write_meta_properties(node.cluster_id, node.node_id)
        node.partitions.serving()
        node.load_coordinators()
        self._background = Background(node)

    async def stop(self, *, keep_data: bool = True) -> None:
        """Answer no more, put everything on disk, and leave the mark of a clean stop.

        A broker whose directory goes with it need not wait for the disk: `keep_data=False`.
        """
        if self._listener is not None:
            self._listener.close()
        # Members of groups that wait for an answer get one, so that they look for their coordinator again at once.
        if self.node.has_groups:
            self.node.groups.close()
        for connection in list(self._connections):
            connection.close("the broker is stopping")
        # One turn, so that what was just written to the sockets leaves.
        await asyncio.sleep(0)
        self._background.stop()
        self._sweeping.cancel()
        self.node.room.close()
        if keep_data:
            self.node.partitions.close()
        self._store.close()
        if keep_data:
            self._directory.mark_clean_shutdown()
        self._directory.close()
        _log.info("stopped", host=self.host, port=self.port)

    # Connections

    def next_connection_id(self) -> int:
        self._connection_id += 1
        return self._connection_id

    def admit(self, connection: Connection) -> str | None:
        """Take a connection in, or say why not."""
        self._connections[connection] = None
        host = connection.caller.host
        count = self._per_host.get(host, 0) + 1
        self._per_host[host] = count
        if len(self._connections) > self.config.max_connections:
            return f"max.connections={self.config.max_connections} is reached"
        if count > self.config.max_connections_per_ip:
            return f"max.connections.per.ip={self.config.max_connections_per_ip} is reached"
        return None

    def dismiss(self, connection: Connection) -> None:
        if self._connections.pop(connection, self) is self:
            return
        host = connection.caller.host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    def _sweep(self) -> None:
        """Now and then: idle connections give back their buffers, dead ones are closed (connections.max.idle.ms)."""
        now_ms = self.node.clock.monotonic_ms()
        idle_limit_ms = self.config.connections_max_idle_ms
        for connection in list(self._connections):
            if connection.spoke:
                connection.spoke = False
                connection.used_ms = now_ms
            idle_ms = now_ms - connection.used_ms
            if 0 < idle_limit_ms < idle_ms:
                connection.close("idle for longer than connections.max.idle.ms")
            elif idle_ms > BUFFER_IDLE_MS:
                connection.drop_idle_buffer()
        self._sweeping = self.node.timers.call_at(now_ms + SWEEP_EVERY_MS, self._sweep)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
