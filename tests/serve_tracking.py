"""`oncelog serve` on a disk that writes down what was synced, for tests that take away what a power cut could have taken.

    python tests/serve_tracking.py --listen HOST:PORT --data-dir DIR [--set NAME=VALUE]...

The same broker as the command starts; only its disk port is another (see tests/disks.py).
"""

import argparse
import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from oncelog.broker.config import load_config
from oncelog.broker.event_loop import new_event_loop
from oncelog.broker.server import Broker
from oncelog.cli.addresses import advertised_address, parse_address
from tests.disks import WrappedDisk, sync_tracking_disk


def main(disk_on: Callable[[Path], WrappedDisk] = sync_tracking_disk) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    config = load_config(dict(setting.split("=", 1) for setting in arguments.set), None)
    listen = parse_address(arguments.listen)
    arguments.data_dir.mkdir(parents=True, exist_ok=True)
    advertised = advertised_address(config, listen)
    disk = disk_on(arguments.data_dir)
    broker = Broker(config, arguments.data_dir, listen.host, listen.port, advertised, disk=disk)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(broker))


async def serve(broker: Broker) -> None:
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    await broker.start()
    print(f"oncelog ready on {broker.host}:{broker.port}", flush=True)
    await told_to_stop.wait()
    await broker.stop()


if __name__ == "__main__":
    main()
