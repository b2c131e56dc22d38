"""One blocking connection to one broker: ask, wait, get the answer.

One request at a time. The first thing asked is which versions the broker speaks; every request after it goes out in the newest
version both know. An answer that is cut short, too large or not the one asked for breaks the connection: nothing that comes
after it could be trusted.
"""

import socket
from struct import Struct
from typing import TypeVar

import oncelog
from oncelog.client.errors import Fatal, Retriable
from oncelog.client.versions import Ranges, choose_version, ranges_of
from oncelog.model.address import Address
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.frames import decode_response, encode_request
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from oncelog.protocol.schema import schema_of

Response = TypeVar("Response")

CONNECT_TIMEOUT_S = 10.0
#: Above what a broker lets a request wait, so that its own answer comes first.
REQUEST_TIMEOUT_S = 35.0
#: No answer to anything asked here comes near; what announces more is no Kafka broker (an HTTP or TLS server, mostly).
LARGEST_RESPONSE = 256 * 1024 * 1024
_CHUNK = 64 * 1024
_SIZE = Struct(">i")
_CORRELATION_ID_AND_ERROR = Struct(">ih")


class Connection:
    def __init__(self, address: Address, client_id: str) -> None:
        self.address = address
        self._client_id = client_id
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection(address, CONNECT_TIMEOUT_S)
        except OSError as problem:
            raise Retriable(f"cannot reach a broker at {address}: {_reason(problem)}") from problem
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(REQUEST_TIMEOUT_S)
        try:
            self._versions = self._ask_versions()
        except Retriable as problem:
            raise Retriable(f"cannot reach a broker at {address}: {problem}") from problem
        except BaseException:
            self.close()
            raise

    def call(self, request: object, response: type[Response], *, at_least: int = 0) -> Response:
        """The answer to the request, in the newest common version. `at_least` is the oldest that has what the request says."""
        version = choose_version(_key_of(request), self._versions, at_least=at_least)
        return self._decode(response, version, self._exchange(request, version))

    def close(self) -> None:
        self._socket.close()

    def _ask_versions(self) -> Ranges:
        version = APIS[ApiKey.API_VERSIONS].versions[1]
        while True:
            request = ApiVersionsRequest(client_software_name="oncelog", client_software_version=oncelog.__version__)
            answer = self._exchange(request, version)
            if len(answer) < _CORRELATION_ID_AND_ERROR.size:
                raise Fatal(f"{self.address} does not speak the Kafka protocol")
            code = _CORRELATION_ID_AND_ERROR.unpack_from(answer)[1]
            if code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
                # Answered in version 0, whatever was asked (KIP-511): the broker is older than this client.
                offered = ranges_of(self._decode(ApiVersionsResponse, 0, answer))
                highest = offered.get(ApiKey.API_VERSIONS, (0, 0))[1]
                version = highest if highest < version else 0
                continue
            return ranges_of(self._decode(ApiVersionsResponse, version, answer))

    def _exchange(self, request: object, version: int) -> bytes:
        self._correlation_id += 1
        frame = encode_request(self._correlation_id, self._client_id, request, version)
        try:
            self._socket.sendall(frame)
            (size,) = _SIZE.unpack(self._receive(_SIZE.size))
            if not _SIZE.size <= size <= LARGEST_RESPONSE:
                self.close()
                raise Fatal(f"{self.address} does not speak the Kafka protocol (or wants TLS)")
            return self._receive(size)
        except OSError as problem:
            self.close()
            name = APIS[_key_of(request)].name
            why = f"the connection to {self.address} broke before it answered {name}: {_reason(problem)}"
            raise Retriable(why, outcome_unknown=True) from problem

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(min(_CHUNK, size - len(received)))
            if not chunk:
                raise ConnectionResetError("the broker closed it")
            received += chunk
        return bytes(received)

    def _decode(self, response: type[Response], version: int, answer: bytes) -> Response:
        try:
            correlation_id, decoded = decode_response(response, version, answer)
        except Malformed as problem:
            self.close()
            raise Fatal(f"{self.address} sent something that is no {response.__name__}: {problem}") from problem
        if correlation_id != self._correlation_id:
            self.close()
            raise Fatal(f"{self.address} answered request {correlation_id} where {self._correlation_id} was asked")
        return decoded


def _key_of(request: object) -> ApiKey:
    key = schema_of(type(request)).key
    assert key is not None, f"{type(request).__name__} is no request"
    return ApiKey(key)


def _reason(problem: OSError) -> str:
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    return problem.strerror or str(problem)
