"""Java's `String.hashCode`, and the partition Kafka derives from it: where a group or a transactional id lives.

Every broker and every tool must come to the same partition, so this is Java's arithmetic to the letter: UTF-16 code units,
32-bit overflow, and Kafka's `abs`, which is 0 for the one integer that has no absolute value.
"""

from functools import lru_cache

_SMALLEST = -(2**31)


def java_string_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


@lru_cache(maxsize=4096)
def coordinator_partition(key: str, partitions: int) -> int:
    """The partition of `__consumer_offsets` (or `__transaction_state`) that holds what belongs to `key`."""
    value = java_string_hash(key)
    return 0 if value == _SMALLEST else abs(value) % partitions
