"""How a partition's log behaves: a topic's configuration as values, with Kafka's names and defaults.

Who reads texts, knows the broker-wide defaults and refuses bad values is the broker's configuration; here is only what came of it.
"""

from dataclasses import dataclass
from enum import Enum

from oncelog.records.batch import TimestampType
from oncelog.records.compression import Compression

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NO_LIMIT = -1
LONG_MAX = 2**63 - 1
MIB = 1 << 20


class CleanupPolicy(Enum):
    DELETE = "delete"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class LogConfig:
    segment_bytes: int = 1024 * MIB
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * MIB
    index_interval_bytes: int = 4096
    retention_bytes: int = NO_LIMIT
    retention_ms: int = 7 * DAY_MS
    max_message_bytes: int = MIB + 12
    cleanup_policy: frozenset[CleanupPolicy] = frozenset({CleanupPolicy.DELETE})
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    #: None is "producer": batches stay as the producer compressed them.
    compression_type: Compression | None = None
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    #: Broker-wide in Kafka (producer.id.expiration.ms), but it is the log that forgets a producer.
    producer_id_expiration_ms: int = DAY_MS

    @property
    def compacts(self) -> bool:
        return CleanupPolicy.COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return CleanupPolicy.DELETE in self.cleanup_policy
