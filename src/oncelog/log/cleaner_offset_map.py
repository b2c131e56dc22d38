"""The last offset of every key in the dirty part of a log: what tells the cleaner which records are superseded.

It holds a bounded number of keys. When it is full the round ends there and the rest is left to the next one.
Long keys are kept as a digest, so that memory is bounded by the number of keys. A digest is longer than any key that is kept as
itself: the two can never be mistaken for one another.
"""

from hashlib import blake2b

LONGEST_KEY_KEPT = 40
DIGEST_SIZE = LONGEST_KEY_KEPT + 1
#: About 60 MB for short keys.
DEFAULT_MAX_KEYS = 500_000
NOTHING_READ = -1


class OffsetMap:
    __slots__ = ("latest_offset", "_offsets", "_max_keys")

    def __init__(self, max_keys: int = DEFAULT_MAX_KEYS) -> None:
        #: Everything up to here has been read; NOTHING_READ before.
        self.latest_offset = NOTHING_READ
        self._offsets: dict[bytes, int] = {}
        self._max_keys = max_keys

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """False if there is no room for another key: then nothing changed."""
        if len(key) > LONGEST_KEY_KEPT:
            key = blake2b(key, digest_size=DIGEST_SIZE).digest()
        offsets = self._offsets
        if len(offsets) >= self._max_keys and key not in offsets:
            return False
        offsets[key] = offset
        self.latest_offset = offset
        return True

    def is_superseded(self, key: bytes, offset: int) -> bool:
        """A later record of the same key is known."""
        if len(key) > LONGEST_KEY_KEPT:
            key = blake2b(key, digest_size=DIGEST_SIZE).digest()
        return offset < self._offsets.get(key, NOTHING_READ)
