"""What a group reads, as its members say: any version of the consumer protocol, and anything else that may come."""

import pytest

from oncelog.groups.subscription import subscribed_topics
from oncelog.protocol.codec import encode_versioned
from oncelog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from tests.unit.groups.rehearsal import subscription


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_of_the_protocol_names_its_topics(version: int) -> None:
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["orders", "bücher"]), version)
    assert subscribed_topics([metadata]) == {"orders", "bücher"}


def test_a_version_to_come_is_read_by_its_front() -> None:
    assert subscribed_topics([b"\x00\x63" + subscription("orders")[2:] + b"more"]) == {"orders"}


def test_the_members_together_name_all_topics() -> None:
    assert subscribed_topics([subscription("a"), subscription("a", "b"), subscription()]) == {"a", "b"}
    assert subscribed_topics([]) == set()


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\xff\xff\xff\xff",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x00\x01\x00\x05abc",
        b"\x00\x00\x00\x00\x00\x01\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe",
    ],
)
def test_one_member_that_cannot_be_read_makes_the_whole_unknown(metadata: bytes) -> None:
    assert subscribed_topics([subscription("orders"), metadata]) is None
