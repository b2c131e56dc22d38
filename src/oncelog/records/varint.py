"""Zigzag variable-length integers, as records carry them: seven bits a byte, the low ones first, small magnitudes in few bytes."""

from oncelog.model.bytes_like import BytesLike

LONGEST_VARINT = 5
LONGEST_VARLONG = 10


def encode_varint(value: int) -> bytes:
    """Of up to 64 bits; most lengths and deltas fit one byte."""
    if -64 <= value < 64:
        return _ONE_BYTE[value]
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def decode_varint(data: BytesLike, position: int, end: int, longest: int = LONGEST_VARINT) -> tuple[int, int]:
    """The integer at `position` and where it ends; an end of -1 if it is cut off by `end` or has more bits than its kind.

    `longest` is LONGEST_VARINT for 32 bits or LONGEST_VARLONG for 64.
    """
    if position < end and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw = shift = 0
    stop = min(end, position + longest)
    while position < stop:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> (32 if longest == LONGEST_VARINT else 64):
                return 0, -1
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, -1


_ONE_BYTE = {value: bytes(((value << 1) ^ (value >> 63),)) for value in range(-64, 64)}
