"""When a segment is full: by size, by age, or because its indexes could not hold more."""

from oncelog.log.log_config import LONG_MAX, LogConfig
from oncelog.log.time_index import ENTRY_SIZE
from oncelog.records.batch import HEADER_SIZE


def capacity(config: LogConfig) -> int:
    """How many bytes of log a segment takes. The larger of the two indexes must stay below its limit as well: each of its
    entries stands for more than an interval of log."""
    entries = config.segment_index_bytes // ENTRY_SIZE
    return min(config.segment_bytes, entries * max(config.index_interval_bytes, HEADER_SIZE))


def latest_timestamp(config: LogConfig, first_timestamp: int, spread_by: int) -> int:
    """The largest timestamp a segment takes whose first batch has `first_timestamp`. One without timestamps takes any.

    `spread_by` is any number that differs from log to log: with segment.jitter.ms they do not all roll at once.
    """
    if first_timestamp < 0:
        return LONG_MAX
    jitter = spread_by % config.segment_jitter_ms if config.segment_jitter_ms > 0 else 0
    return first_timestamp + config.segment_ms - jitter
