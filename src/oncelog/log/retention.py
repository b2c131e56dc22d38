"""Which segments have outlived what the topic keeps: by age, by size, or because the log now starts after them.

Only whole segments go, from the oldest on, and never anything that is not below the high watermark. The last segment may go too;
the log then rolls to an empty one first, so that there is always one to write to.
"""

from collections.abc import Sequence
from typing import Protocol

from oncelog.log.log_config import LogConfig


class Aged(Protocol):
    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def largest_timestamp(self) -> int:
        """Of its records; of the file where the records have none."""
        ...


def outlived(
    segments: Sequence[Aged],
    config: LogConfig,
    now_ms: int,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """How many segments may go, counted from the oldest."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    gone = 0
    while gone < len(segments) - 1 and ends[gone] <= min(log_start_offset, high_watermark):
        gone += 1
    if not config.deletes:
        return gone
    surplus = sum(segment.size for segment in segments[gone:]) - config.retention_bytes
    for number in range(gone, len(segments)):
        segment = segments[number]
        if ends[number] > high_watermark or (number == len(segments) - 1 and segment.size == 0):
            break
        too_old = config.retention_ms >= 0 and now_ms - segment.largest_timestamp() > config.retention_ms
        too_much = config.retention_bytes >= 0 and surplus >= segment.size
        if not too_old and not too_much:
            break
        surplus -= segment.size
        gone = number + 1
    return gone
