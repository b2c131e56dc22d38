"""A TCP proxy between clients and the broker that cuts connections, or first loses what the broker answers.

A lost answer is what idempotence is for: the broker has the batch, the client does not know, and sends it again.
"""

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self

from tests.brokers import free_port


class CuttingProxy:
    def __init__(self, target: int | None = None) -> None:
        self.port = free_port()
        self.target = target
        self.cuts = 0
        # Bytes the broker sent and no client got.
        self.lost_bytes = 0
        self._losing = False
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing alone does not wake a thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def lose_answers(self) -> None:
        """From now to the next cut the broker's answers go nowhere."""
        self._losing = True

    def cut(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, set()
            self._losing = False
        for pair in pairs:
            self.cuts += 1
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def lose_some_answers(self) -> None:
        """At least one, if the broker has something to say at all."""
        before = self.lost_bytes
        self.lose_answers()
        patience = time.monotonic() + 0.5
        while self.lost_bytes == before and time.monotonic() < patience:
            time.sleep(0.002)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                assert self.target is not None
                broker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for end in (client, broker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.add((client, broker))
            for source, sink, answers in ((client, broker, False), (broker, client, True)):
                thread = threading.Thread(target=self._pump, args=(source, sink, answers), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if answers and self._losing:
                    self.lost_bytes += len(data)
                else:
                    sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        # Each end is read by one thread only, and that one closes it.
        source.close()
