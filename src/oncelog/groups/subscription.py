"""Which topics a group reads, from what its members say in their join metadata.

Only the first fields are read (a version, then the topics): they stand at the front in every version of the consumer
protocol, today's and tomorrow's. The metadata is the client's own, so anything may be in it.
"""

from collections.abc import Iterable
from struct import Struct

_INT16 = Struct(">h")
_INT32 = Struct(">i")


def subscribed_topics(metadata_of_members: Iterable[bytes]) -> frozenset[str] | None:
    """All topics the members name, or None if one of them does not speak the consumer protocol."""
    topics: set[str] = set()
    for metadata in metadata_of_members:
        named = _topics(metadata)
        if named is None:
            return None
        topics.update(named)
    return frozenset(topics)


def _topics(metadata: bytes) -> list[str] | None:
    if len(metadata) < 6:
        return None
    (version,) = _INT16.unpack_from(metadata, 0)
    (count,) = _INT32.unpack_from(metadata, 2)
    if version < 0 or count < 0:
        return None
    position = 6
    topics: list[str] = []
    for _ in range(count):
        if position + 2 > len(metadata):
            return None
        (length,) = _INT16.unpack_from(metadata, position)
        position += 2
        if length < 0 or position + length > len(metadata):
            return None
        try:
            topics.append(metadata[position : position + length].decode("utf-8"))
        except UnicodeDecodeError:
            return None
        position += length
    return topics
