"""Unsigned varints and tagged sections (KIP-482): what compiled codecs call when the one-byte case does not hold.

A reader has fetched the first byte already and comes here only if it is above 127.
"""

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.malformed import Malformed


def finish_uvarint(data: BytesLike, position: int, first: int) -> tuple[int, int]:
    """The whole number whose first byte was `first`, and the position behind it. `position` is behind that first byte."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Malformed("a varint of more than five bytes")


def read_uvarint(data: BytesLike, position: int) -> tuple[int, int]:
    first = data[position]
    if first < 0x80:
        return first, position + 1
    return finish_uvarint(data, position + 1, first)


def encode_uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_tag(data: BytesLike, position: int, end: int) -> tuple[int, int, int]:
    """The number of a tagged field, where its value starts, and where it ends: within the frame."""
    tag, position = read_uvarint(data, position)
    size, position = read_uvarint(data, position)
    if position + size > end:
        raise Malformed("a tagged field that ends behind the frame")
    return tag, position, position + size


def skip_tagged_fields(data: BytesLike, position: int, first: int, end: int) -> int:
    """The position behind tagged fields nobody here knows. `first` is the first byte of their count.

    Each takes two bytes at least, so a huge count ends soon.
    """
    count = first
    if first > 0x7F:
        count, position = finish_uvarint(data, position, first)
    for _ in range(count):
        _, _, position = read_tag(data, position, end)
    return position
