"""Each way bytes can be wrong, and what the error says."""

import pytest

from oncelog.protocol.codec import decode
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.messages.api_versions import ApiVersionsRequest
from oncelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from oncelog.protocol.messages.fetch import FetchRequest
from oncelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from oncelog.protocol.messages.heartbeat import HeartbeatRequest
from oncelog.protocol.messages.metadata import MetadataRequest
from oncelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from oncelog.protocol.messages.write_txn_markers import WriteTxnMarkersRequest


@pytest.mark.parametrize(
    ("cls", "version", "data", "why"),
    [
        (FindCoordinatorRequest, 0, "0005 61", "FindCoordinatorRequest.key: a length of 5 cannot be here"),
        (FindCoordinatorRequest, 0, "ffff", "FindCoordinatorRequest.key: a length of -1 cannot be here"),
        (FindCoordinatorRequest, 0, "8000", "FindCoordinatorRequest.key: a length of -32768 cannot be here"),
        (FindCoordinatorRequest, 0, "0002 c328", "FindCoordinatorRequest version 0 has a string that is not UTF-8"),
        (FindCoordinatorRequest, 0, "00", "FindCoordinatorRequest version 0 ends before its last field"),
        (FindCoordinatorRequest, 3, "00 00 00", "FindCoordinatorRequest.key: a length of -1 cannot be here"),
        (FindCoordinatorRequest, 3, "ffffffffff 01 00 00", "a varint of more than five bytes"),
        (FindCoordinatorRequest, 3, "ffffffff0f 00 00", "FindCoordinatorRequest.key: a length of 4294967294"),
        (FindCoordinatorRequest, 4, "00 06 03 61", "FindCoordinatorRequest.coordinator_keys: a length of 5"),
        (SaslAuthenticateRequest, 1, "ffffffff", "SaslAuthenticateRequest.auth_bytes: a length of -1"),
        (SaslAuthenticateRequest, 1, "7fffffff 00", "SaslAuthenticateRequest.auth_bytes: a length of 2147483647"),
        (MetadataRequest, 1, "fffffffe", "MetadataRequest.topics: a length of -2 cannot be here"),
        (MetadataRequest, 1, "7fffffff 0000", "MetadataRequest.topics: a length of 2147483647 cannot be here"),
        # Each name takes two bytes at least, and three bytes are left for two of them.
        (MetadataRequest, 1, "00000002 000161", "MetadataRequest.topics: a length of 2 cannot be here"),
        (MetadataRequest, 0, "ffffffff", "MetadataRequest.topics: a length of -1 cannot be here"),
        (WriteTxnMarkersRequest, 1, "02 " + "00" * 11 + " 02 0261 ff ff ff ff 0f", "partition_indexes: a length of"),
        (HeartbeatRequest, 4, "02 61 00000000 02 61 00 01 05 7f", "a tagged field that ends behind the frame"),
        (HeartbeatRequest, 4, "02 61 00000000 02 61 00 ff ff ff ff 0f", "ends before its last field"),
        # cluster_id (tag 0) claims three bytes and takes two, then four.
        (FetchRequest, 12, "00" * 25 + "01 01 01 01 00 03 02 61 00", "FetchRequest.cluster_id: a length of -1"),
        (FetchRequest, 12, "00" * 25 + "01 01 01 01 00 01 02 61", "FetchRequest.cluster_id: a length of 1"),
        (FetchRequest, 12, "00" * 25 + "01 01 01 01 00 7f 02 61", "a tagged field that ends behind the frame"),
        (ConsumerGroupHeartbeatResponse, 0, "00" * 16 + "05", "assignment: a length of 5 cannot be here"),
    ],
)
def test_bad_bytes_are_refused_with_the_reason(cls: type, version: int, data: str, why: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode(cls, version, bytes.fromhex(data))
    assert why in str(refused.value)


def test_nothing_is_too_short_for_a_message_without_fields() -> None:
    assert decode(ApiVersionsRequest, 0, b"") == ApiVersionsRequest()


def test_the_boundary_of_a_string_is_the_end_of_the_frame() -> None:
    assert decode(FindCoordinatorRequest, 0, b"\x00\x03abc").key == "abc"
    with pytest.raises(Malformed):
        decode(FindCoordinatorRequest, 0, b"\x00\x04abc")
