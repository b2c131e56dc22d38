"""What of a log can be compacted, whether it is worth it, and which segments become one.

Only whole segments are cleaned: never the one being written, nothing from the last stable offset on (a transaction that is still
open may yet be aborted), nothing younger than min.compaction.lag.ms. Clean is what earlier rounds have gone through; a round reads
the keys of the dirty rest and then writes both parts anew.
"""

from collections.abc import Sequence
from typing import NamedTuple

from oncelog.log.file_names import LOG
from oncelog.log.log_config import LONG_MAX, LogConfig
from oncelog.log.offset_index import LARGEST_RELATIVE_OFFSET
from oncelog.log.partition_log import PartitionLog
from oncelog.log.segment import Segment


class CleaningPlan(NamedTuple):
    segments: tuple[Segment, ...]
    """All that the round may write anew, from the oldest on."""
    first_dirty_offset: int
    """Below it, earlier rounds left one record of a key at most."""
    end_offset: int
    """Where the last of the segments ends."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Something dirty is older than max.compaction.lag.ms: clean whatever the ratio."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def worth_it(self, config: LogConfig) -> bool:
        return self.dirty_bytes > 0 and (self.overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio)


def plan_cleaning(log: PartitionLog, now_ms: int) -> CleaningPlan | None:
    """None if there is nothing that could be cleaned."""
    segments = log.segments
    if not log.config.compacts or len(segments) < 2:
        return None
    first_dirty_offset = max(log.cleaned_offset, log.log_start_offset)
    if first_dirty_offset > log.log_end_offset:
        first_dirty_offset = log.log_start_offset
    chosen: list[Segment] = []
    end_offset = clean_bytes = dirty_bytes = 0
    overdue = False
    for number in range(len(segments) - 1):
        segment = segments[number]
        if not segment.path(LOG).endswith(LOG):
            return None  # replacing its originals failed half way: the next start finishes that
        segment_end = segments[number + 1].base_offset
        if segment_end > log.last_stable_offset:
            break
        if segment_end > first_dirty_offset:
            if _too_young(segment, log.config, now_ms):
                break
            dirty_bytes += segment.size
            overdue = overdue or _too_old(segment, log.config, now_ms)
        else:
            clean_bytes += segment.size
        chosen.append(segment)
        end_offset = segment_end
    if end_offset <= first_dirty_offset:
        return None
    return CleaningPlan(tuple(chosen), first_dirty_offset, end_offset, clean_bytes, dirty_bytes, overdue)


def _too_young(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    lag_ms = config.min_compaction_lag_ms
    return lag_ms > 0 and segment.largest_timestamp() > now_ms - lag_ms


def _too_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    lag_ms = config.max_compaction_lag_ms
    if lag_ms >= LONG_MAX or not segment.size:
        return False
    first_timestamp = segment.header_at(0).max_timestamp
    return 0 < first_timestamp < now_ms - lag_ms


def group_segments(segments: Sequence[Segment], end_offset: int, segment_bytes: int) -> list[list[Segment]]:
    """Neighbours that together still fit into one segment become one: compaction would otherwise leave ever smaller files."""
    groups: list[list[Segment]] = []
    size = 0
    for number, segment in enumerate(segments):
        segment_end = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        size += segment.size
        if groups and size <= segment_bytes and segment_end - 1 - groups[-1][0].base_offset <= LARGEST_RELATIVE_OFFSET:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size
    return groups
