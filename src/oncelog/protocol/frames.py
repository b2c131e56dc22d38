"""Frames: the size, the header, and the message behind it.

A request header has the client's id, and tagged fields when the request itself is flexible; a response header has only the
correlation id, and tagged fields likewise. ApiVersions responses never have them: a client that does not know yet what the broker
speaks must be able to read the answer (KIP-511).
"""

from struct import Struct, error
from typing import TypeVar, cast

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decoder_of, encoder_of
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.schema import schema_of
from oncelog.protocol.varint import finish_uvarint, skip_tagged_fields

T = TypeVar("T")

_SIZE = Struct(">i")
_REQUEST_HEADER = Struct(">hhih")
_RESPONSE_HEADER = Struct(">i")
_SIZE_AND_RESPONSE_HEADER = Struct(">ii")
_SIZE_AND_FLEXIBLE_RESPONSE_HEADER = Struct(">iix")

_NEVER = 32768
_FLEXIBLE_REQUEST_SINCE = {
    int(key): _NEVER if api.flexible_since is None else api.flexible_since for key, api in APIS.items()
}
_FLEXIBLE_RESPONSE_SINCE = {**_FLEXIBLE_REQUEST_SINCE, int(ApiKey.API_VERSIONS): _NEVER}


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

    The version may be one nobody knows: answering that is the broker's business. An unknown API key is not readable at all,
    since the shape of its header is not known.
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST_HEADER.unpack_from(data)
        position = 10
        if length == -1:
            client_id = None
        else:
            position += length
            if not 10 <= position <= len(data):
                raise Malformed(f"RequestHeader.client_id: a length of {length} cannot be here")
            client_id = str(data[10:position], "utf-8")
        if api_version >= _FLEXIBLE_REQUEST_SINCE[api_key]:
            count = data[position]
            position += 1
            if count:
                if count > 127:
                    count, position = finish_uvarint(data, position, count)
                position = skip_tagged_fields(data, position, count, len(data))
        return RequestHeader(api_key, api_version, correlation_id, client_id), position
    except (IndexError, error):
        raise Malformed("a request that ends within its header") from None
    except UnicodeDecodeError:
        raise Malformed("a client id that is not UTF-8") from None
    except KeyError:
        raise Malformed(f"a request of unknown API key {api_key}") from None


def encode_request(correlation_id: int, client_id: str | None, message: object, version: int) -> bytes:
    """A whole frame, size included."""
    key = cast(int, schema_of(type(message)).key)
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    out = bytearray(_SIZE.size)
    out += _REQUEST_HEADER.pack(key, version, correlation_id, length)
    out += name
    if version >= _FLEXIBLE_REQUEST_SINCE[key]:
        out.append(0)
    return b"".join(_sized(encoder_of(type(message), version)(message, out)))


def encode_response(correlation_id: int, message: object, version: int) -> list[BytesLike]:
    """A whole frame, size included, in pieces to be sent one after the other. Large record batches are passed through, not copied."""
    cls = type(message)
    key = cast(int, schema_of(cls).key)
    header = _SIZE_AND_FLEXIBLE_RESPONSE_HEADER if version >= _FLEXIBLE_RESPONSE_SINCE[key] else _SIZE_AND_RESPONSE_HEADER
    return _sized(encoder_of(cls, version)(message, bytearray(header.pack(0, correlation_id))))


def _sized(parts: list[BytesLike]) -> list[BytesLike]:
    """Fill in the size, for which the first part has left room."""
    first = cast(bytearray, parts[0])
    size = len(first) if len(parts) == 1 else sum(map(len, parts))
    _SIZE.pack_into(first, 0, size - _SIZE.size)
    return parts


def decode_response(cls: type[T], version: int, data: BytesLike) -> tuple[int, T]:
    """The correlation id and the message of a frame (`data` is without its size)."""
    if len(data) < _RESPONSE_HEADER.size:
        raise Malformed("a response that ends within its header")
    correlation_id: int = _RESPONSE_HEADER.unpack_from(data)[0]
    position = _RESPONSE_HEADER.size
    if version >= _FLEXIBLE_RESPONSE_SINCE[cast(int, schema_of(cls).key)]:
        try:
            count = data[position]
            position += 1
            if count:
                if count > 127:
                    count, position = finish_uvarint(data, position, count)
                position = skip_tagged_fields(data, position, count, len(data))
        except IndexError:
            raise Malformed("a response that ends within its header") from None
    return correlation_id, cast(T, decoder_of(cls, version)(data, position))
