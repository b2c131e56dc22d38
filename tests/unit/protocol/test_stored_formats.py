"""What Apache Kafka 4.3 itself wrote into its internal topics and files: we read it, and would write the same."""

from typing import Any

import pytest

from oncelog.protocol.codec import decode_versioned, encode_versioned, version_of
from oncelog.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from oncelog.protocol.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from oncelog.protocol.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue
from oncelog.protocol.messages.internal.producer_snapshot import ProducerEntry, ProducerSnapshot
from oncelog.protocol.messages.internal.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue

_MEMBER = "inst-1-b0d85cb2-a09a-416d-8b34-cbc4d1ce471d"


@pytest.mark.parametrize(
    ("written", "version", "expected"),
    [
        ("0000 0003 747632", 0, TransactionLogKey(transactional_id="tv2")),
        (  # Empty: fresh from InitProducerId
            "0001 00000000000003e8 0000 00004e20 00 00 000001a1e11837c4 ffffffffffffffff 01 00 08 00000000000003e8",
            1,
            TransactionLogValue(
                producer_id=1000,
                previous_producer_id=1000,
                transaction_timeout_ms=20_000,
                transaction_partitions=None,
                transaction_last_update_timestamp_ms=1794777823172,
                transaction_start_timestamp_ms=-1,
            ),
        ),
        (  # PrepareCommit of a transaction v2
            (
                "0001 00000000000003e8 0001 00004e20 02 02 046f7574 02 00000000 00 000001a1e1183ed7 000001a1e1183d4c"
                "02 00 08 00000000000003e8 02 02 0002"
            ),
            1,
            TransactionLogValue(
                producer_id=1000,
                previous_producer_id=1000,
                producer_epoch=1,
                transaction_timeout_ms=20_000,
                transaction_status=2,
                transaction_partitions=[PartitionsSchema(topic="out", partition_ids=[0])],
                transaction_last_update_timestamp_ms=1794777824983,
                transaction_start_timestamp_ms=1794777824588,
                client_transaction_version=2,
            ),
        ),
        (  # CompleteAbort of a transaction v1
            "0001 0000000000000000 0000 00007530 05 01 000001a1e1174940 000001a1e117490d 01 00 08 0000000000000000",
            1,
            TransactionLogValue(
                previous_producer_id=0,
                transaction_timeout_ms=30_000,
                transaction_status=5,
                transaction_last_update_timestamp_ms=1794777762112,
                transaction_start_timestamp_ms=1794777762061,
            ),
        ),
        (
            "0001 0002 6731 0006 6f7264657273 00000001",
            1,
            OffsetCommitKey(group="g1", topic="orders", partition=1),
        ),
        (
            "0004 0000000000000001 00000000 01 000001a1e1175b66 01 00 10 5c28ab34330e485fb0f5300b6fd60e1e",
            4,
            OffsetCommitValue(
                offset=1,
                leader_epoch=0,
                commit_timestamp=1794777766758,
                topic_id=bytes.fromhex("5c28ab34330e485fb0f5300b6fd60e1e"),
            ),
        ),
        ("0002 0002 6731", 2, GroupMetadataKey(group="g1")),
        (
            "0003 0000 00000000 ffff ffff 000001a1e117597a 00000000",
            3,
            GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=1794777766266),
        ),
        (
            "0003 0008 636f6e73756d6572 00000001 0005 72616e6765 002b" + _MEMBER.encode().hex() + "000001a1e11759a7"
            "00000001 002b" + _MEMBER.encode().hex() + "0006 696e73742d31 0003 636c69 000a 2f3132372e302e302e31"
            "000493e0 0000afc8"
            "0000001e 0003 00000001 0006 6f7264657273 00000000 00000000 ffffffff 0002 7231"
            "0000001e 0000 00000001 0006 6f7264657273 00000002 00000000 00000001 00000000",
            3,
            GroupMetadataValue(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader=_MEMBER,
                current_state_timestamp=1794777766311,
                members=[
                    MemberMetadata(
                        member_id=_MEMBER,
                        group_instance_id="inst-1",
                        client_id="cli",
                        client_host="/127.0.0.1",
                        rebalance_timeout=300_000,
                        session_timeout=45_000,
                        subscription=encode_versioned(
                            ConsumerProtocolSubscription(topics=["orders"], user_data=b"", rack_id="r1"), 3
                        ),
                        assignment=encode_versioned(
                            ConsumerProtocolAssignment(
                                assigned_partitions=[TopicPartition(topic="orders", partitions=[0, 1])], user_data=b""
                            ),
                            0,
                        ),
                    )
                ],
            ),
        ),
        (
            (
                "0001 3e84d1f8 00000002"
                "0000000000000000 0001 ffffffff ffffffffffffffff 00000000 000001a1e1182c59 00000002 ffffffffffffffff"
                "00000000000003e8 0002 ffffffff ffffffffffffffff 00000000 000001a1e1183fd7 00000002 ffffffffffffffff"
            ),
            1,
            ProducerSnapshot(
                crc=0x3E84D1F8,
                producer_entries=[
                    ProducerEntry(
                        producer_id=producer_id,
                        epoch=epoch,
                        last_sequence=-1,
                        last_offset=-1,
                        timestamp=timestamp,
                        coordinator_epoch=2,
                        current_txn_first_offset=-1,
                    )
                    for producer_id, epoch, timestamp in ((0, 1, 1794777820249), (1000, 2, 1794777825239))
                ],
            ),
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__schema__") else "",
)
def test_kafkas_own_bytes(written: str, version: int, expected: Any) -> None:
    data = bytes.fromhex(written)

    assert version_of(data) == version
    assert decode_versioned(type(expected), data) == expected
    assert encode_versioned(expected, version) == data


def test_a_producer_id_whose_epochs_ran_out_names_its_successor() -> None:
    """Written out by hand from Kafka's schema: it takes 32,767 transactions to see one."""
    value = TransactionLogValue(next_producer_id=2, next_producer_epoch=3, transaction_partitions=None)

    assert encode_versioned(value, 1)[-15:] == bytes.fromhex("02 01 08 0000000000000002 03 02 0003")
