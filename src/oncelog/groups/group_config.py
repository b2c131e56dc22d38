"""What a broker's configuration says about groups, with Kafka's defaults (and one of ours: no initial delay)."""

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class GroupConfig:
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    #: Kafka waits 3 s for more members before the first rebalance of an empty group; a test or one box should not.
    initial_rebalance_delay_ms: int = 0
    #: A new member has no way to say that it lives while its join is parked, so the join itself is given up after this long.
    new_member_join_timeout_ms: int = 5 * 60 * 1000
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * _DAY_MS
