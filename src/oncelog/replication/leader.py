"""The leader's view of its replicas: how far each has the log safely, and what follows for the high watermark (MISSION P2, P4).

Always: the high watermark never goes back, and never passes what every in-sync replica has. The leader is one of the
replicas and counts with what its own flush policy calls safe: with the page cache that is its log end, with group commit
only what an fdatasync has covered. So "acknowledged" means one thing everywhere: below the high watermark.
"""

from collections.abc import Iterable

from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused


class LeaderView:
    __slots__ = ("leader_id", "_safe_offsets", "_in_sync")

    def __init__(self, leader_id: int, in_sync: Iterable[int]) -> None:
        self.leader_id = leader_id
        self._in_sync = tuple(in_sync)
        if leader_id not in self._in_sync:
            raise ValueError(f"leader {leader_id} is not in its own in-sync set {self._in_sync}")
        self._safe_offsets = dict.fromkeys(self._in_sync, 0)

    @property
    def in_sync(self) -> tuple[int, ...]:
        return self._in_sync

    def progress(self, replica_id: int, safe_offset: int) -> int:
        """Note how far a replica is (end offsets are exclusive); returns the high watermark that follows."""
        safe_offsets = self._safe_offsets
        safe_offsets[replica_id] = safe_offset
        if len(self._in_sync) == 1:
            return safe_offsets[self.leader_id]
        return min(safe_offsets[replica] for replica in self._in_sync)

    def enough_in_sync(self, min_insync_replicas: int) -> Refused | None:
        """Whether acks=-1 may be taken at all: asked before the append, so that a refused batch leaves no trace."""
        if len(self._in_sync) >= min_insync_replicas:
            return None
        return Refused(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{len(self._in_sync)} in-sync replicas, min.insync.replicas asks for {min_insync_replicas}",
        )
