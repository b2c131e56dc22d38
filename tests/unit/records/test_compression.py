"""Compression: what comes back is what went in, and strangers' bytes cost no more than the limit."""

import tracemalloc

import cramjam
import pytest

from oncelog.records.compression import (
    XERIAL_MAGIC,
    Compression,
    TooLargeDecompressed,
    Undecompressable,
    compress,
    decompress,
)

REAL = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
LIMIT = 10 << 20


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("data", [b"", b"x", b"abc" * 10, bytes(range(256)) * 4000, bytes(3_000_000)], ids=len)
def test_what_comes_back_is_what_went_in(compression: Compression, data: bytes) -> None:
    assert bytes(decompress(compression, compress(compression, data), LIMIT)) == data
    assert bytes(decompress(compression, memoryview(bytearray(compress(compression, data))), LIMIT)) == data


@pytest.mark.parametrize("compression", Compression)
def test_exactly_the_limit_passes_and_one_more_does_not(compression: Compression) -> None:
    data = bytes(200_000)
    compressed = compress(compression, data)

    assert len(decompress(compression, compressed, len(data))) == len(data)
    with pytest.raises(TooLargeDecompressed):
        decompress(compression, compressed, len(data) - 1)


@pytest.mark.parametrize("compression", REAL)
def test_memory_stops_at_the_limit(compression: Compression) -> None:
    bomb = compress(compression, bytes(32 << 20))
    limit = 1 << 20
    tracemalloc.start()
    with pytest.raises(TooLargeDecompressed):
        decompress(compression, bomb, limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 2 * limit + (64 << 10)


@pytest.mark.parametrize("compression", REAL)
@pytest.mark.parametrize("data", [b"garbage", b"\xff" * 100, bytes(50)], ids=repr)
def test_garbage_is_a_typed_refusal(compression: Compression, data: bytes) -> None:
    with pytest.raises(Undecompressable):
        decompress(compression, data, LIMIT)


@pytest.mark.parametrize("compression", REAL)
def test_cut_data_is_a_typed_refusal_or_less_data(compression: Compression) -> None:
    data = bytes(range(256)) * 400
    whole = compress(compression, data)
    for cut in {0, 1, 4, 10, 17, len(whole) // 2, len(whole) - 1}:
        try:
            got = bytes(decompress(compression, whole[:cut], LIMIT))
        except Undecompressable:
            continue
        assert compression is Compression.SNAPPY, "only whole snappy blocks may stand alone"
        assert data.startswith(got)


def test_snappy_carries_the_java_library_s_framing_and_reads_a_bare_block_too() -> None:
    data = bytes(100_000)
    framed = compress(Compression.SNAPPY, data)

    assert framed.startswith(XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01")
    assert bytes(decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), LIMIT)) == data


def test_a_snappy_block_that_claims_gigabytes_is_not_believed() -> None:
    claims_4_gib = b"\xff\xff\xff\xff\x0f" + b"\x00a"
    with pytest.raises(TooLargeDecompressed):
        decompress(Compression.SNAPPY, claims_4_gib, LIMIT)
    framed = XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2 + len(claims_4_gib).to_bytes(4, "big") + claims_4_gib
    with pytest.raises(TooLargeDecompressed):
        decompress(Compression.SNAPPY, framed, LIMIT)


def test_lz4_blocks_do_not_depend_on_each_other() -> None:
    frame = compress(Compression.LZ4, bytes(range(256)) * 2000)
    assert frame[4] & 0x20


def test_lz4_with_checksums_and_content_size_is_read() -> None:
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=True, block_linked=False)
    compressor.compress(b"abc" * 1000)
    assert bytes(decompress(Compression.LZ4, bytes(compressor.finish()), LIMIT)) == b"abc" * 1000


def test_several_gzip_members_are_one_text() -> None:
    members = compress(Compression.GZIP, b"one ") + compress(Compression.GZIP, b"two")
    assert bytes(decompress(Compression.GZIP, members, LIMIT)) == b"one two"
