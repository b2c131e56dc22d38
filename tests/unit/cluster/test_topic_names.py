import pytest

from oncelog.cluster.topic_names import check_topic_name, collision_key
from oncelog.model.error_code import ErrorCode


@pytest.mark.parametrize("name", ["a", "A-1", "orders.eu", "__consumer_offsets", "x" * 249, "...", "-"])
def test_a_name_kafka_takes_is_taken(name):
    assert check_topic_name(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "two words", "a/b", "ü", "a\n", "a\0b"])
def test_any_other_name_is_an_invalid_topic(name):
    refused = check_topic_name(name)

    assert refused is not None
    assert refused.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.why.startswith("Topic name is invalid: ")


def test_dot_and_underscore_are_one_letter_where_names_collide():
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a-b") is None
