"""The four compressions of a record batch, as Kafka's own clients write and read them.

- gzip: one or more members. zstd: plain frames. lz4: frames of independent blocks, as the Java reader refuses linked ones.
- snappy: the Java library's framing (a magic, then length-prefixed raw blocks) when writing; that or one raw block when reading,
  since several clients send the latter.
- Compressed bytes come from strangers. Nothing is ever decompressed into more than `limit` bytes: the output is a buffer of a
  known size, which is grown and tried again, so that memory follows what really comes out and stops at the limit.
- The library (cramjam) is imported at the first compressed batch: a broker that sees none does not pay for it.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any

from oncelog.model.bytes_like import BytesLike


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Undecompressable(Exception):
    """The bytes are not what the compression type says."""


class TooLargeDecompressed(Undecompressable):
    """The bytes grow beyond the limit given."""


GIB = 1 << 30
SMALLEST_OUTPUT = 64 << 10
USUAL_RATIO = 8

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_VERSIONS = (1, 1)
XERIAL_HEADER = Struct(">8sii")
XERIAL_BLOCK_SIZE = 32 << 10
_LENGTH = Struct(">i")

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_INDEPENDENT_BLOCKS_BIT = 0x20


def compress(compression: Compression, data: BytesLike) -> bytes:
    match compression:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            import cramjam

            return bytes(cramjam.gzip.compress(data, 6))
        case Compression.SNAPPY:
            return _compress_snappy(data)
        case Compression.LZ4:
            import cramjam

            compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
            compressor.compress(bytes(data))
            return bytes(compressor.finish())
        case Compression.ZSTD:
            import cramjam

            return bytes(cramjam.zstd.compress(data, 3))


def decompress(compression: Compression, data: BytesLike, limit: int) -> BytesLike:
    """What was compressed; Undecompressable if it is not that, TooLargeDecompressed if it is more than `limit` bytes."""
    match compression:
        case Compression.NONE:
            if len(data) > limit:
                raise TooLargeDecompressed(f"{len(data)} bytes are more than the limit of {limit}")
            return data
        case Compression.GZIP:
            import cramjam

            return _decompress_growing(cramjam.gzip.decompress_into, cramjam.DecompressionError, data, limit)
        case Compression.SNAPPY:
            return _decompress_snappy(data, limit)
        case Compression.LZ4:
            import cramjam

            # Java's reader refuses frames whose blocks depend on each other: storing one would stop every Java consumer.
            if bytes(data[:4]) != LZ4_MAGIC or len(data) < 7 or not data[4] & LZ4_INDEPENDENT_BLOCKS_BIT:
                raise Undecompressable("not an lz4 frame of independent blocks")
            return _decompress_growing(cramjam.lz4.decompress_into, cramjam.DecompressionError, data, limit)
        case Compression.ZSTD:
            import cramjam

            return _decompress_growing(cramjam.zstd.decompress_into, cramjam.DecompressionError, data, limit)


def _decompress_growing(
    decompress_into: Callable[[Any, Any], int], failure: type[Exception], data: BytesLike, limit: int
) -> BytesLike:
    """One try fits nearly always. The library does not say whether the output was too small or the input bad: a try with
    more room that fails at the limit too decides it."""
    room = min(limit, max(SMALLEST_OUTPUT, len(data) * USUAL_RATIO))
    while True:
        output = bytearray(room)
        try:
            size = decompress_into(data, output)
        except failure as error:
            if "failed to write whole buffer" not in str(error):
                raise Undecompressable(str(error)) from error
        else:
            return memoryview(output)[:size]
        if room >= limit:
            raise TooLargeDecompressed(f"{len(data)} bytes decompress to more than the limit of {limit}")
        room = min(limit, room * USUAL_RATIO)


def _compress_snappy(data: BytesLike) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [XERIAL_HEADER.pack(XERIAL_MAGIC, *XERIAL_VERSIONS)]
    for start in range(0, len(view), XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_SIZE]))
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: BytesLike, limit: int) -> BytesLike:
    view = memoryview(data)
    if bytes(view[:8]) != XERIAL_MAGIC:
        return _decompress_snappy_block(view, limit)
    position = XERIAL_HEADER.size
    parts: list[BytesLike] = []
    total = 0
    while position < len(view):
        if position + 4 > len(view):
            raise Undecompressable("snappy: a block's length is cut off")
        (length,) = _LENGTH.unpack_from(view, position)
        position += 4
        if length < 0 or length > len(view) - position:
            raise Undecompressable(f"snappy: a block of {length} bytes where {len(view) - position} are left")
        part = _decompress_snappy_block(view[position : position + length], limit - total)
        parts.append(part)
        total += len(part)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, limit: int) -> BytesLike:
    import cramjam

    try:
        # The block says its size; Snappy cannot produce more than that, but it may claim anything.
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise TooLargeDecompressed(f"a snappy block of {size} bytes, {limit} are left of the limit")
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise Undecompressable(f"snappy: {error}") from error
    return memoryview(output)[:written]
