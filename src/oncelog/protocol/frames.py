"""Frames: the size, the header, and the message behind it.

A request header has the client's id, and tagged fields when the request itself is flexible; a response header has only the
correlation id, and tagged fields likewise. ApiVersions responses never have them: a client that does not know yet what the broker
speaks must be able to read the answer (KIP-511).
"""

from collections.abc import Callable
from struct import Struct, error
from typing import TypeVar

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decoder_of, encoder_of
from oncelog.protocol.encoder_compiler import Encoder
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.schema import schema_of
from oncelog.protocol.varint import skip_tagged_fields

T = TypeVar("T")

_SIZE = Struct(">i")
_REQUEST_HEADER = Struct(">hhih")
_unpack_request_header = _REQUEST_HEADER.unpack_from
_RESPONSE_HEADER = Struct(">i")
_SIZE_AND_RESPONSE_HEADER = Struct(">ii")
_SIZE_AND_FLEXIBLE_RESPONSE_HEADER = Struct(">iix")

_NEVER = 32768
_FLEXIBLE_REQUEST_SINCE = {
    int(key): _NEVER if api.flexible_since is None else api.flexible_since for key, api in APIS.items()
}
_FLEXIBLE_RESPONSE_SINCE = {**_FLEXIBLE_REQUEST_SINCE, int(ApiKey.API_VERSIONS): _NEVER}

_new = object.__new__


class RequestHeader:
    __slots__ = ("api_key", "api_version", "correlation_id", "client_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def decode_request_header(data: BytesLike) -> tuple[RequestHeader, int]:
    """The header of a frame (`data` is without its size) and the offset of the body behind it.

    The version may be one nobody knows: answering that is the broker's business. A request of an unknown API key is Malformed:
    what its header looks like cannot be known.
    """
    view = data if data.__class__ is memoryview else memoryview(data)
    position = 10
    try:
        api_key, api_version, correlation_id, length = _unpack_request_header(view)
        if length == -1:
            client_id = None
        else:
            position += length
            if not 10 <= position <= len(view):
                raise Malformed(f"RequestHeader.client_id: a length of {length} cannot be here")
            client_id = view[10:position].tobytes().decode()
        if api_version >= _FLEXIBLE_REQUEST_SINCE[api_key]:
            first = view[position]
            position += 1
            if first:
                position = skip_tagged_fields(view, position, first, len(view))
    except (IndexError, error):
        raise Malformed("a request that ends within its header") from None
    except UnicodeDecodeError:
        raise Malformed("RequestHeader.client_id is not UTF-8") from None
    except KeyError as unknown:
        raise Malformed(f"a request of unknown API key {unknown}") from None
    # Every request comes through here: this is what the constructor does, without the call.
    header = _new(RequestHeader)
    header.api_key = api_key
    header.api_version = api_version
    header.correlation_id = correlation_id
    header.client_id = client_id
    return header, position


def encode_request(correlation_id: int, client_id: str | None, message: object, version: int) -> bytes:
    """A whole frame, size included."""
    key = _key_of(type(message))
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    out = bytearray(_SIZE.size)
    out += _REQUEST_HEADER.pack(key, version, correlation_id, length)
    out += name
    if version >= _FLEXIBLE_REQUEST_SINCE[key]:
        out.append(0)
    frame = bytearray().join(encoder_of(type(message), version)(message, out))
    _SIZE.pack_into(frame, 0, len(frame) - _SIZE.size)
    return bytes(frame)


def encode_response(correlation_id: int, message: object, version: int) -> list[BytesLike]:
    """A whole frame, size included, in pieces to be sent in this order. Large record batches are passed through, not copied."""
    write, header = _response_writers.get((message.__class__, version)) or _response_writer(type(message), version)
    start = bytearray(header(0, correlation_id))
    parts = write(message, start)
    size = len(start) if len(parts) == 1 else sum(map(len, parts))
    _SIZE.pack_into(start, 0, size - 4)
    return parts


_response_writers: dict[tuple[type, int], tuple[Encoder, Callable[[int, int], bytes]]] = {}


def _response_writer(cls: type, version: int) -> tuple[Encoder, Callable[[int, int], bytes]]:
    flexible = version >= _FLEXIBLE_RESPONSE_SINCE[_key_of(cls)]
    header = _SIZE_AND_FLEXIBLE_RESPONSE_HEADER if flexible else _SIZE_AND_RESPONSE_HEADER
    writer = _response_writers[cls, version] = (encoder_of(cls, version), header.pack)
    return writer


def decode_response(cls: type[T], version: int, data: BytesLike) -> tuple[int, T]:
    """The correlation id and the message of a frame (`data` is without its size)."""
    try:
        correlation_id: int = _RESPONSE_HEADER.unpack_from(data)[0]
        position = _RESPONSE_HEADER.size
        if version >= _FLEXIBLE_RESPONSE_SINCE[_key_of(cls)]:
            position = skip_tagged_fields(data, position + 1, data[position], len(data))
    except (IndexError, error):
        raise Malformed("a response that ends within its header") from None
    message: T = decoder_of(cls, version)(data, position)
    return correlation_id, message


def _key_of(cls: type) -> int:
    key = schema_of(cls).key
    if key is None:
        raise TypeError(f"{cls.__name__} is no request and no response")
    return key
