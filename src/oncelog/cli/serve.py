"""`oncelog serve`: one broker in this process, until SIGTERM or SIGINT.

Says `oncelog ready on HOST:PORT` on standard output once clients are served; everything else goes to standard error. What
keeps it from starting is one line that says what to do, with exit code 2.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oncelog.broker.config import BrokerConfig
    from oncelog.broker.server import Broker
    from oncelog.model.address import Address

CANNOT_START = 2


class CannotStart(Exception):
    """Why not, and what to do about it: shown as it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where to listen (127.0.0.1:9092); port 0 picks a free one"
    )
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where to keep the log; made if it is not there")
    parser.add_argument("--advertised", metavar="HOST:PORT", help="the address clients are told, if it is another one")
    parser.add_argument("--config", metavar="FILE", type=Path, help="a server.properties with Kafka's names")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="one config; wins over the file"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        return _serve(arguments)
    except CannotStart as problem:
        print(f"oncelog: {problem}", file=sys.stderr)
        return CANNOT_START


def _serve(arguments: argparse.Namespace) -> int:
    from oncelog.broker.config import ConfigError, load_config
    from oncelog.broker.logging import configure_logging
    from oncelog.model.address import BadAddress

    try:
        config = load_config(_overrides(arguments.set), arguments.config)
        listen, advertised = _addresses(arguments, config)
    except (ConfigError, BadAddress) as problem:
        raise CannotStart(str(problem)) from problem
    data_dir = _data_dir(arguments, config)
    configure_logging(config.logging_level, config.logging_format)
    _tell_ignored(config)

    # After the checks above: a mistake is told before the rest of the broker is even loaded.
    from oncelog.broker.server import Broker

    _raise_descriptor_limit()
    broker = Broker(config, data_dir, listen.host, listen.port, advertised)
    return _run_until_signal(broker, listen)


def _raise_descriptor_limit() -> None:
    """Each client takes a descriptor, and so does each log in use: take as many as the system lets this process have."""
    import resource
    from contextlib import suppress

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # what is there has to do
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _overrides(settings: list[str]) -> dict[str, str]:
    overrides = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise CannotStart(f"--set {setting}: write it as --set NAME=VALUE")
        overrides[name.strip()] = value.strip()
    return overrides


def _addresses(arguments: argparse.Namespace, config: "BrokerConfig") -> "tuple[Address, Address | None]":
    from oncelog.cli.addresses import advertised_address, listen_address
    from oncelog.model.address import parse_address

    listen = parse_address(arguments.listen) if arguments.listen else listen_address(config)
    if arguments.advertised:
        return listen, parse_address(arguments.advertised)
    return listen, advertised_address(config, listen)


def _data_dir(arguments: argparse.Namespace, config: "BrokerConfig") -> Path:
    if arguments.data_dir is not None:
        return Path(arguments.data_dir)
    directories = config.log_dirs or config.log_dir or ()
    if len(directories) != 1:
        raise CannotStart("say where to keep the log: --data-dir DIR, or one directory as log.dirs in the config file")
    return Path(directories[0])


def _tell_ignored(config: "BrokerConfig") -> None:
    ignored = config.ignored
    if ignored:
        from oncelog.broker.config_names import why_ignored
        from oncelog.broker.logging import get_logger

        log = get_logger(__name__)
        for name in ignored:
            log.notice("config ignored", name=name, why=why_ignored(name))


def _run_until_signal(broker: "Broker", listen: "Address") -> int:
    import asyncio

    from oncelog.broker.event_loop import new_event_loop
    from oncelog.runtime.data_directory import DataDirectoryUnusable

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            runner.run(_start_and_wait(broker))
        except OSError as problem:
            raise CannotStart(_why_not(problem, broker, listen)) from problem
        except DataDirectoryUnusable as problem:
            raise CannotStart(str(problem)) from problem
    return 0


async def _start_and_wait(broker: "Broker") -> None:
    import asyncio
    import gc
    import signal

    loop = asyncio.get_running_loop()
    told_to_stop = asyncio.Event()

    def stop() -> None:
        told_to_stop.set()
        # Whoever sends a second signal does not want to wait for a clean stop.
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    # What is loaded stays: looking for garbage among it while it loads, and ever after, would find none.
    gc.disable()
    await broker.start()
    gc.freeze()
    gc.enable()
    print(f"oncelog ready on {broker.host or '0.0.0.0'}:{broker.port}", flush=True)
    await told_to_stop.wait()
    await broker.stop()


def _why_not(problem: OSError, broker: "Broker", listen: "Address") -> str:
    import errno

    match problem.errno:
        case errno.EADDRINUSE:
            what_to_do = "stop what listens there, or choose another port with --listen (port 0 picks a free one)"
            return f"cannot listen on {listen}: the address is in use: {what_to_do}"
        case errno.EADDRNOTAVAIL:
            return f"cannot listen on {listen}: this machine has no such address: choose another with --listen"
        case errno.EACCES:
            return f"cannot listen on {listen}: permission denied: choose a port above 1023 with --listen"
        case _:
            return f"cannot start on {listen} with {broker.data_dir}: {problem}"
