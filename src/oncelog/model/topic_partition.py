"""A partition of a topic: the key of nearly every table in the broker, hence a tuple (hashing one is cheap)."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
