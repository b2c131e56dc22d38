"""The producers of a partition, as a `.snapshot` file keeps them."""

from oncelog.protocol.schema import i16, i32, i64, stored, struct, u32


@struct
class ProducerEntry:
    producer_id: i64 = 0
    epoch: i16 = 0
    last_sequence: i32 = 0
    last_offset: i64 = 0
    # Last offset minus first offset of the last batch.
    offset_delta: i32 = 0
    timestamp: i64 = 0
    coordinator_epoch: i32 = 0
    # -1: no open transaction.
    current_txn_first_offset: i64 = 0


@stored(versions=(1, 1))
class ProducerSnapshot:
    # CRC-32C of everything behind it.
    crc: u32 = 0
    producer_entries: list[ProducerEntry] = []
