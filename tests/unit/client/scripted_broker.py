"""A broker that says what a test tells it to: real sockets and real frames, no broker behind them."""

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from oncelog.model.address import Address
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decode
from oncelog.protocol.frames import decode_request_header, encode_response
from oncelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

#: A message is sent as the answer; bytes are sent as they are; None closes the connection.
Answer = Any
Ranges = Mapping[ApiKey, tuple[int, int]]

EVERYTHING: Ranges = {key: api.versions for key, api in APIS.items()}


def api_versions(ranges: Ranges = EVERYTHING) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()]
    )


class ScriptedBroker:
    """Answers each API with what `answers` has for it: a message, or a function of the request."""

    def __init__(self, answers: Mapping[ApiKey, Answer | Callable[[Any], Answer]]) -> None:
        self.answers = {ApiKey.API_VERSIONS: api_versions(), **answers}
        #: What was asked, with the version it was asked in.
        self.asked: list[tuple[ApiKey, int, Any]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def requests(self, key: ApiKey) -> list[Any]:
        return [request for asked, _, request in self.asked if asked is key]

    def versions(self, key: ApiKey) -> list[int]:
        return [version for asked, version, _ in self.asked if asked is key]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            # The other side may have been quicker.
            with connection, suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while size := connection.recv(4, socket.MSG_WAITALL):
                frame = connection.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)
                if not self._reply(connection, frame):
                    connection.shutdown(socket.SHUT_RDWR)
                    return
        except OSError:
            return

    def _reply(self, connection: socket.socket, frame: bytes) -> bool:
        header, body = decode_request_header(frame)
        key = ApiKey(header.api_key)
        request = decode(APIS[key].request, header.api_version, frame, body)
        self.asked.append((key, header.api_version, request))
        answer = self.answers[key]
        if callable(answer):
            answer = answer(request)
        if answer is None:
            return False
        if not isinstance(answer, bytes):
            answer = b"".join(encode_response(header.correlation_id, answer, header.api_version))
        connection.sendall(answer)
        return True
