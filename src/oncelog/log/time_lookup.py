"""Finding offsets by time: the first record not older than a timestamp, and the record with the largest.

The time index says from where to look, the batch headers which batch it is; only that one batch is opened.
"""

from typing import NamedTuple

from oncelog.log.segment import Segment
from oncelog.log.segments import Segments
from oncelog.records.batch import BatchHeader
from oncelog.records.record import Record, read_records


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(segments: Segments, timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    """The first record from `log_start_offset` on whose timestamp is not below `timestamp`."""
    for segment in segments:
        if segment.indexes.max_timestamp < timestamp:
            continue
        segments.use(segment)
        start = max(segment.indexes.by_time.offset_before(timestamp), log_start_offset)
        for position, header in segment.headers_near(start):
            if header.max_timestamp < timestamp or header.last_offset < log_start_offset:
                continue
            for record in _records(segment, position, header):
                if record.timestamp >= timestamp and record.offset >= log_start_offset:
                    return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def find_max_timestamp(segments: Segments) -> TimestampOffset | None:
    """The first record with the largest timestamp; None if no record has one."""
    segment = max(segments, key=lambda segment: segment.indexes.max_timestamp)
    largest = segment.indexes.max_timestamp
    if largest < 0:
        return None
    segments.use(segment)
    for position, header in segment.headers_near(segment.indexes.offset_of_max_timestamp):
        if header.max_timestamp == largest:
            for record in _records(segment, position, header):
                if record.timestamp == largest:
                    return TimestampOffset(largest, record.offset, header.partition_leader_epoch)
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    return read_records(segment.file.read_at(position, header.size))
