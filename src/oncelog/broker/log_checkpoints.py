"""How far each log is flushed, acknowledged, deleted and compacted, as the data directory remembers it (Kafka's checkpoint files).

They save work and keep promises at the next start: recovery reads only what was not flushed, the high watermark does not start
at nothing, compaction goes on where it was, and records that were deleted by DeleteRecords stay deleted although their segment is
still there.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from oncelog.broker.logging import get_logger
from oncelog.log.checkpoints import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CorruptCheckpoint,
    read_offsets,
    write_offsets,
)
from oncelog.log.storage import Disk
from oncelog.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from oncelog.broker.partition import Partition

_log = get_logger(__name__)


class Checkpointed(NamedTuple):
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    cleaned_offset: int = 0


NOTHING_CHECKPOINTED = Checkpointed()


class LogCheckpoints:
    __slots__ = ("_disk", "_recovery_points", "_log_starts", "_high_watermarks", "_cleaned_offsets")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
        self._log_starts = self._read(LOG_START_CHECKPOINT)
        self._high_watermarks = self._read(HIGH_WATERMARK_CHECKPOINT)
        self._cleaned_offsets = self._read(CLEANER_CHECKPOINT)

    def of(self, topic_partition: TopicPartition) -> Checkpointed:
        """What the last run left for a log that is opened now. Only once: a topic made anew under an old name starts afresh."""
        return Checkpointed(
            self._recovery_points.pop(topic_partition, 0),
            self._log_starts.pop(topic_partition, 0),
            self._high_watermarks.pop(topic_partition, 0),
            self._cleaned_offsets.pop(topic_partition, 0),
        )

    def write(self, partitions: Iterable["Partition"]) -> None:
        """Put down how things stand now. Raises StorageFailed; what stood there before then still holds."""
        logs = {partition.topic_partition: partition.log for partition in partitions}
        self._write(RECOVERY_POINT_CHECKPOINT, {key: log.flushed_offset for key, log in logs.items()})
        self._write(
            LOG_START_CHECKPOINT, {key: log.log_start_offset for key, log in logs.items() if log.log_start_offset}
        )
        self._write(HIGH_WATERMARK_CHECKPOINT, {key: log.high_watermark for key, log in logs.items()})
        self._write(CLEANER_CHECKPOINT, {key: log.cleaned_offset for key, log in logs.items() if log.config.compacts})

    def _read(self, name: str) -> dict[TopicPartition, int]:
        if not self._disk.exists(name):
            return {}
        try:
            return read_offsets(self._disk.read_file(name))
        except CorruptCheckpoint as problem:
            # Nothing is lost without it: recovery reads more than it would have needed to.
            _log.warning("a checkpoint file is unusable and left out", file=name, problem=str(problem))
            return {}

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        self._disk.write_file(name, write_offsets(offsets))
