"""A partition of `__consumer_offsets` read from its beginning: the groups it tells of, as they were when it ended."""

from typing import TYPE_CHECKING

from oncelog.broker.logging import get_logger
from oncelog.groups.group_records import decode_record
from oncelog.groups.shard import Shard
from oncelog.model.bytes_like import BytesLike
from oncelog.model.refused import Refused
from oncelog.protocol.malformed import Malformed
from oncelog.records.batch import CorruptBatch, batches
from oncelog.records.control import ControlType, read_control_record
from oncelog.records.record import read_records

if TYPE_CHECKING:
    from oncelog.log.partition_log import PartitionLog

_log = get_logger(__name__)

_READ_BYTES = 1 << 20


def load_shard(log: "PartitionLog") -> Shard:
    shard = Shard()
    skipped = 0
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, _READ_BYTES, log.log_end_offset, True)
        if isinstance(read, Refused) or not read.records:
            break
        for position, header in batches(read.records):
            try:
                if header.is_control:
                    _apply_marker(shard, read.records, position, header.producer_id)
                else:
                    producer_id = header.producer_id if header.is_transactional else -1
                    skipped += _apply_batch(shard, read.records, position, producer_id)
            except CorruptBatch as problem:
                # The log checked its CRC: it was written so. What else the partition tells is still worth having.
                _log.error(
                    "a batch of group records is unreadable", partition=str(log.topic_partition), problem=str(problem)
                )
            offset = header.next_offset
    if skipped:
        _log.warning("records of unknown kinds passed over", partition=str(log.topic_partition), records=skipped)
    return shard


def _apply_marker(shard: Shard, data: BytesLike, position: int, producer_id: int) -> None:
    kind = read_control_record(data, position).type
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        shard.apply_marker(producer_id, committed=kind is ControlType.COMMIT)


def _apply_batch(shard: Shard, data: BytesLike, position: int, producer_id: int) -> int:
    """Returns how many records were none of ours."""
    skipped = 0
    for record in read_records(data, position):
        try:
            known = decode_record(record.key or b"", record.value)
        except Malformed:
            known = None
        if known is None:
            skipped += 1
        else:
            shard.apply(known, record.offset, producer_id)
    return skipped
