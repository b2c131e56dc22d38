"""The floor: what a request costs a server that does nothing for it.

Under the same uvloop and `BufferedProtocol` as the broker it takes in a whole frame, and then
- to produce: writes the frame's records to a file with one `os.write` and sends a reply that was given to it at the
  start;
- to fetch:   reads a stretch of a file with one `os.pread` and sends it behind a reply head that was given to it.
  Nothing is parsed, checked, assigned or remembered. A broker's CPU per request over this one's is the price of being
  a broker.
"""

import argparse
import asyncio
import os
import signal
from pathlib import Path
from typing import cast

import uvloop

CORRELATION_ID = slice(8, 12)
"""Where it stands in a request frame; in the reply it follows the size. Clients drop a reply without it."""


class Floor(asyncio.BufferedProtocol):
    def __init__(self, file: int, reply: bytes, records_at: int, read_bytes: int) -> None:
        self._file = file
        self._reply = bytearray(reply)
        self._records_at = records_at
        self._read_bytes = read_bytes
        self._readable = os.fstat(file).st_size - read_bytes
        self._read_at = 0
        self._buffer = memoryview(bytearray(4 << 20))
        self._filled = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, received: int) -> None:
        self._filled += received
        start = 0
        while self._filled - start >= 4:
            end = start + 4 + int.from_bytes(self._buffer[start : start + 4])
            if end > self._filled:
                break
            self._answer(self._buffer[start:end])
            start = end
        if start:
            self._buffer[: self._filled - start] = self._buffer[start : self._filled]
            self._filled -= start

    def _answer(self, frame: memoryview) -> None:
        self._reply[4:8] = frame[CORRELATION_ID]
        if self._read_bytes:
            if self._read_at > self._readable:
                self._read_at = 0
            data = os.pread(self._file, self._read_bytes, self._read_at)
            self._read_at += self._read_bytes
            self._transport.writelines([bytes(self._reply), data])
        else:
            os.write(self._file, frame[self._records_at :])
            self._transport.write(bytes(self._reply))


async def serve(arguments: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    flags = os.O_RDONLY if arguments.read_bytes else os.O_WRONLY | os.O_CREAT | os.O_APPEND
    file = os.open(arguments.file, flags, 0o644)
    server = await loop.create_server(
        lambda: Floor(file, bytes.fromhex(arguments.reply), arguments.records_at, arguments.read_bytes), "127.0.0.1", 0
    )
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    host, port = server.sockets[0].getsockname()
    print(f"floor ready on {host}:{port}", flush=True)
    await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, required=True, help="written by produce, read by fetch")
    parser.add_argument("--reply", required=True, metavar="HEX", help="the reply's bytes with its size in front")
    parser.add_argument("--records-at", type=int, default=0, help="where in the frame the records begin")
    parser.add_argument("--read-bytes", type=int, default=0, help="answer each frame with this much of the file")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
