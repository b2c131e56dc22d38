"""Java's string hash, and the partitions a real Kafka put groups into (seen on Apache Kafka 4.3 with 50 partitions)."""

import pytest

from oncelog.model.java_hash import coordinator_partition, java_string_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("g-simple", -498488872),
        ("polygenelubricants", -(2**31)),
        # Outside the basic plane Java sees two surrogates, not one character.
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@pytest.mark.seed("I7")
@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("", 0), ("g10", 0), ("gv", 11), ("g-simple", 22), ("g-dupc", 40), ("g-gone", 43), ("g-noproto", 3)],
)
def test_a_group_lives_where_kafka_puts_it(group_id: str, partition: int) -> None:
    assert coordinator_partition(group_id, 50) == partition


def test_the_one_integer_without_an_absolute_value_goes_to_partition_0() -> None:
    assert coordinator_partition("polygenelubricants", 50) == 0
