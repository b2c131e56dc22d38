"""Messages to bytes and back. The functions behind are compiled for a (class, version) when it is first met, and kept."""

from struct import Struct
from typing import TypeVar

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.decoder_compiler import Decoder, compile_decoder
from oncelog.protocol.encoder_compiler import Encoder, compile_encoder
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.schema import schema_of

T = TypeVar("T")

_VERSION = Struct(">h")
_decoders: dict[tuple[type, int], Decoder] = {}
_encoders: dict[tuple[type, int], Encoder] = {}


def decoder_of(cls: type, version: int) -> Decoder:
    """`read(data, offset) -> message`, for this version. Raises Malformed on bad bytes."""
    decoder = _decoders.get((cls, version))
    if decoder is None:
        _check_version(cls, version)
        decoder = _decoders[cls, version] = compile_decoder(cls, version)
    return decoder


def encoder_of(cls: type, version: int) -> Encoder:
    """`write(message, out) -> parts`: appends to the bytearray `out`, which is the first of the parts it returns."""
    encoder = _encoders.get((cls, version))
    if encoder is None:
        _check_version(cls, version)
        encoder = _encoders[cls, version] = compile_encoder(cls, version)
    return encoder


def _check_version(cls: type, version: int) -> None:
    lowest, highest = schema_of(cls).versions
    if not lowest <= version <= highest:
        raise LookupError(f"{cls.__name__} has no version {version}: it has {lowest} to {highest}")


def decode(cls: type[T], version: int, data: BytesLike, offset: int = 0) -> T:
    """The message that starts at `offset`. Records in it are slices of `data`; everything else is copied out of it."""
    message: T = decoder_of(cls, version)(data, offset)
    return message


def encode_parts(message: object, version: int) -> list[BytesLike]:
    """The message in pieces to be sent one after the other: large record batches are passed through, not copied."""
    return encoder_of(type(message), version)(message, bytearray())


def encode(message: object, version: int) -> bytes:
    return b"".join(encode_parts(message, version))


# Keys and values of internal topics, and what consumers embed in group requests, start with their version.


def encode_versioned(message: object, version: int) -> bytes:
    return b"".join(encoder_of(type(message), version)(message, bytearray(_VERSION.pack(version))))


def version_of(data: BytesLike) -> int:
    if len(data) < _VERSION.size:
        raise Malformed("too short to hold a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def decode_versioned(cls: type[T], data: BytesLike, *, newer_as_latest: bool = False) -> T:
    """Read what starts with its version. `newer_as_latest` is for formats whose later versions only append fields."""
    version = version_of(data)
    lowest, highest = schema_of(cls).versions
    if version > highest and newer_as_latest:
        version = highest
    if not lowest <= version <= highest:
        raise Malformed(f"{cls.__name__} of version {version}: known are {lowest} to {highest}")
    message: T = decoder_of(cls, version)(data, _VERSION.size)
    return message
