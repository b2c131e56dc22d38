"""The codec by example. That every message is right in every version is shown in tests/properties/test_wire_*.py."""

import pytest

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.codec import (
    decode,
    decode_versioned,
    decoder_of,
    encode,
    encode_parts,
    encode_versioned,
    encoder_of,
    version_of,
)
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from oncelog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from oncelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from oncelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from oncelog.protocol.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue
from oncelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from oncelog.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


def test_a_message_in_an_old_and_in_a_flexible_version() -> None:
    commit = EndTxnRequest(transactional_id="billing", producer_id=7, producer_epoch=2, committed=True)
    numbers = bytes.fromhex("0000000000000007 0002 01")

    assert encode(commit, 2) == b"\x00\x07billing" + numbers
    assert encode(commit, 3) == b"\x08billing" + numbers + b"\x00"
    assert decode(EndTxnRequest, 3, encode(commit, 3)) == commit


def test_a_field_the_version_does_not_have_is_not_written_and_reads_as_its_default() -> None:
    answer = EndTxnResponse(producer_id=9, producer_epoch=1)

    assert encode(answer, 4) == bytes(7)
    assert decode(EndTxnResponse, 4, bytes(7)) == EndTxnResponse()
    assert decode(EndTxnResponse, 5, encode(answer, 5)) == answer


def test_an_error_code_may_be_given_as_what_it_is() -> None:
    assert encode(EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED), 0) == b"\x00\x00\x00\x00\x00\x5a"


def test_a_tagged_field_is_sent_only_if_it_says_something() -> None:
    def response(leader: LeaderIdAndEpoch | None) -> ProduceResponse:
        partition = PartitionProduceResponse(current_leader=leader)
        return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[partition])])

    silent = encode(response(None), 10)
    moved = response(LeaderIdAndEpoch(leader_id=3, leader_epoch=8))

    assert encode(response(LeaderIdAndEpoch()), 10) == silent
    assert decode(ProduceResponse, 10, silent) == response(None)
    assert decode(ProduceResponse, 10, encode(moved, 10)) == moved
    # One tag, number 0, nine bytes: two integers and the struct's own (empty) tagged section.
    assert bytes.fromhex("01 00 09 00000003 00000008 00") in encode(moved, 10)


def test_tagged_fields_are_written_in_the_order_of_their_tags() -> None:
    answer = ApiVersionsResponse(
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=2)],
        finalized_features_epoch=1,
    )

    tagged = encode(answer, 3)[7:]

    assert tagged[:12] == bytes.fromhex("02 01 08 0000000000000001 02")
    assert decode(ApiVersionsResponse, 3, encode(answer, 3)) == answer


def test_records_are_slices_of_the_frame_and_everything_else_is_copied_out_of_it() -> None:
    produce = ProduceRequest(
        topic_data=[TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=1, records=b"a batch")])]
    )
    for version in (8, 9):
        buffer = bytearray(encode(produce, version))
        read = decode(ProduceRequest, version, memoryview(buffer))
        records = read.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)

        records[:1] = b"A"
        assert b"A batch" in buffer
        buffer[:] = bytes(len(buffer))
        assert bytes(records) == bytes(7)
        assert read.topic_data[0].name == "orders"


def test_bytes_fields_survive_the_reuse_of_the_buffer() -> None:
    join = JoinGroupRequest(protocols=[JoinGroupRequestProtocol(name="range", metadata=b"topics")])
    buffer = bytearray(encode(join, 6))
    read = decode(JoinGroupRequest, 6, memoryview(buffer))
    buffer[:] = bytes(len(buffer))

    assert read == join
    assert isinstance(read.protocols[0].metadata, bytes)


@pytest.mark.parametrize("version", [11, 16])
def test_large_record_batches_are_passed_through(version: int) -> None:
    large, small = memoryview(bytes(100_000)), b"small"
    fetched = FetchResponse(
        responses=[
            FetchableTopicResponse(
                partitions=[
                    PartitionData(records=large),
                    PartitionData(records=small),
                    PartitionData(records=None),
                    PartitionData(records=large),
                ]
            )
        ]
    )

    parts = encode_parts(fetched, version)

    assert [part is large for part in parts] == [False, True, False, True, False]
    assert b"".join(parts) == encode(fetched, version)
    assert decode(FetchResponse, version, encode(fetched, version)) == fetched


def test_decoding_starts_where_it_is_told() -> None:
    commit = EndTxnRequest(transactional_id="billing")

    assert decode(EndTxnRequest, 5, b"header" + encode(commit, 5), 6) == commit


def test_bytes_behind_the_message_are_ignored_as_kafka_does() -> None:
    commit = EndTxnRequest(transactional_id="billing")

    assert decode(EndTxnRequest, 5, encode(commit, 5) + b"more") == commit


def test_a_version_the_message_does_not_have_is_named() -> None:
    with pytest.raises(LookupError, match="EndTxnRequest has no version 6: it has 0 to 5"):
        decode(EndTxnRequest, 6, b"")
    with pytest.raises(LookupError, match="ProduceRequest has no version 2"):
        encode(ProduceRequest(), 2)


def test_a_codec_is_compiled_once() -> None:
    assert decoder_of(EndTxnRequest, 1) is decoder_of(EndTxnRequest, 1)
    assert encoder_of(EndTxnRequest, 1) is encoder_of(EndTxnRequest, 1)


# -- with a version in front


def test_what_is_stored_starts_with_its_version() -> None:
    key = OffsetCommitKey(group="billing", topic="orders", partition=3)
    value = OffsetCommitValue(offset=42, metadata="", commit_timestamp=1)

    assert encode_versioned(key, 1) == b"\x00\x01\x00\x07billing\x00\x06orders\x00\x00\x00\x03"
    assert version_of(encode_versioned(value, 3)) == 3
    assert decode_versioned(OffsetCommitKey, encode_versioned(key, 1)) == key
    assert decode_versioned(OffsetCommitValue, encode_versioned(value, 3)) == value


def test_a_stored_version_nobody_knows_is_malformed() -> None:
    with pytest.raises(Malformed, match="OffsetCommitValue of version 9: known are 0 to 4"):
        decode_versioned(OffsetCommitValue, b"\x00\x09rest")
    with pytest.raises(Malformed, match="version -1"):
        decode_versioned(OffsetCommitValue, b"\xff\xffrest")
    with pytest.raises(Malformed, match="too short"):
        version_of(b"\x00")


def test_a_newer_subscription_is_read_as_the_newest_one_known() -> None:
    mine = ConsumerProtocolSubscription(topics=["orders"], generation_id=4, rack_id="a")
    theirs = b"\x00\x07" + encode_versioned(mine, 3)[2:] + b"a field of version 7"

    assert decode_versioned(ConsumerProtocolSubscription, theirs, newer_as_latest=True) == mine
    with pytest.raises(Malformed):
        decode_versioned(ConsumerProtocolSubscription, theirs)
