"""A broker inside this process: on a thread of its own, with a loop of its own, reachable by any client over TCP.

    with oncelog.embedded() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

`with` returns once clients are served, and leaves once everything is on disk and the thread has ended. What keeps the broker
from starting is raised where it was started. Several can run side by side. Start and stop may be called from any thread; a child
made by fork has no broker (the thread stays in the parent), and stopping there does nothing.
"""

import asyncio
import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType

from oncelog.broker.config import BrokerConfig, load_config
from oncelog.broker.event_loop import new_event_loop
from oncelog.broker.server import Broker


class EmbeddedBroker:
    def __init__(self, data_dir: str | os.PathLike[str] | None, config: Mapping[str, object], port: int) -> None:
        self._config = load_config({name: _text(value) for name, value in config.items()})
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        self._wanted_port = port
        self._running: _Running | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What clients want as `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def host(self) -> str:
        return self._now().broker.host

    @property
    def port(self) -> int:
        return self._now().broker.port

    @property
    def data_dir(self) -> Path:
        return self._now().broker.data_dir

    def start(self) -> None:
        """Return once clients are served; raise what kept the broker from it."""
        if self._running is not None:
            raise RuntimeError("this broker runs already: ask `oncelog.embedded()` for another one")
        self._running = _Running(self._config, self._given_data_dir, self._wanted_port)

    def stop(self) -> None:
        """Stop cleanly and remove the directory if it was a temporary one. Stopping twice is fine."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def __enter__(self) -> "EmbeddedBroker":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _now(self) -> "_Running":
        if self._running is None:
            raise RuntimeError("this broker does not run: use it inside `with oncelog.embedded() as broker:`")
        return self._running


def embedded(
    data_dir: str | os.PathLike[str] | None = None,
    config: Mapping[str, object] | None = None,
    *,
    port: int = 0,
) -> EmbeddedBroker:
    """A broker to use with `with`.

    `data_dir`: where to keep the log; without it a temporary directory, removed afterwards. `config`: Kafka's config names.
    `port`: on 127.0.0.1; 0 picks a free one.
    """
    return EmbeddedBroker(data_dir, config or {}, port)


class _Running:
    """One run of a broker, from a started thread to an ended one."""

    def __init__(self, config: BrokerConfig, data_dir: Path | None, port: int) -> None:
        self._process_id = os.getpid()
        self._temporary = data_dir is None
        directory = Path(tempfile.mkdtemp(prefix="oncelog-")) if data_dir is None else data_dir
        self.broker = Broker(config, directory, "127.0.0.1", port)
        self._started: Future[None] = Future()
        self._stopped: Future[None] = Future()
        # A daemon, so that a forgotten broker does not keep the interpreter from leaving; `atexit` then stops it cleanly.
        self._thread = threading.Thread(target=self._run, name="oncelog", daemon=True)
        self._thread.start()
        try:
            self._started.result()
        except BaseException:
            self._thread.join()
            self._remove_temporary()
            raise
        atexit.register(self.stop)

    def stop(self) -> None:
        if os.getpid() != self._process_id:
            return
        atexit.unregister(self.stop)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join()
        self._remove_temporary()
        self._stopped.result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            try:
                runner.run(self._serve())
            except BaseException as problem:
                (self._stopped if self._started.done() else self._started).set_exception(problem)
            else:
                self._stopped.set_result(None)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told_to_stop = asyncio.Event()
        await self.broker.start()
        self._started.set_result(None)
        await self._told_to_stop.wait()
        await self.broker.stop(keep_data=not self._temporary)

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self.broker.data_dir, ignore_errors=True)


def _text(value: object) -> str:
    """Python's way to say it, as Kafka's configs write it: True is true, a list is its elements with commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)
