"""Message classes as their users see them."""

import pytest

from oncelog.protocol.messages.consumer_group_describe import Assignment, Member, TopicPartitions
from oncelog.protocol.messages.end_txn import EndTxnResponse
from oncelog.protocol.messages.fetch import FetchRequest, FetchTopic, PartitionData
from oncelog.protocol.messages.metadata import MetadataRequest
from oncelog.protocol.schema import schema_of


def test_fields_that_are_not_given_have_the_default_of_the_schema() -> None:
    answer = EndTxnResponse(error_code=51)

    assert (answer.throttle_time_ms, answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 51, -1, -1)
    assert FetchRequest().max_bytes == 2**31 - 1
    assert PartitionData().records is None


def test_a_default_list_or_struct_belongs_to_one_message_only() -> None:
    one, other = FetchRequest(), FetchRequest()
    one.topics.append(FetchTopic(topic="orders"))
    member, another = Member(), Member()
    member.assignment.topic_partitions.append(TopicPartitions())

    assert other.topics == []
    assert another.assignment == Assignment()


def test_none_can_be_given_where_the_default_is_a_list() -> None:
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest().topics == []


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="eror_code"):
        EndTxnResponse(eror_code=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        EndTxnResponse().eror_code = 1  # type: ignore[attr-defined]


def test_messages_are_equal_by_their_fields_and_print_them() -> None:
    assert FetchTopic(topic="a") == FetchTopic(topic="a")
    assert FetchTopic(topic="a") != FetchTopic(topic="b")
    different: object = FetchTopic()
    assert EndTxnResponse() != different
    expected = "EndTxnResponse(throttle_time_ms=0, error_code=3, producer_id=-1, producer_epoch=-1)"
    assert repr(EndTxnResponse(error_code=3)) == expected


def test_a_response_has_the_versions_of_its_request() -> None:
    assert schema_of(EndTxnResponse).versions == (0, 5)
    assert schema_of(EndTxnResponse).key == 26
