"""The producers of a partition, as a `.snapshot` file keeps them."""

from oncelog.protocol.schema import i16, i32, i64, stored, struct, u32


@struct
class ProducerEntry:
    producer_id: i64 = 0
    epoch: i16 = 0
    last_sequence: i32 = 0
    last_offset: i64 = 0
    offset_delta: i32 = 0
    timestamp: i64 = 0
    coordinator_epoch: i32 = 0
    current_txn_first_offset: i64 = 0


@stored(versions=(1, 1))
class ProducerSnapshot:
    crc: u32 = 0
    producer_entries: list[ProducerEntry] = []
