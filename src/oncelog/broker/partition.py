"""A partition this node leads: its log, what its replicas have, and who waits for it.

Every append goes through here, from clients and from the broker itself, so the rules for "acknowledged" stand in one place:
an append is acknowledged once the high watermark has passed it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.model.bytes_like import BytesLike
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.control import ControlRecord
from oncelog.replication.leader import LeaderView
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.group_commit import GroupCommit
    from oncelog.broker.waiting_room import WaitingRoom
    from oncelog.runtime.clock import Clock


#: How long an append of the broker's own may take until its replicas, or its disk, have it.
ACKNOWLEDGED_WITHIN_MS = 30_000

Done = Callable[[Appended | Refused], None]


class Partition:
    __slots__ = (
        "topic_partition",
        "log",
        "leader_epoch",
        "closed",
        "_node_id",
        "_replicas",
        "_clock",
        "_room",
        "_group_commit",
    )

    def __init__(
        self,
        log: PartitionLog,
        leader_epoch: int,
        node_id: int,
        in_sync: Sequence[int],
        clock: "Clock",
        room: "WaitingRoom",
        group_commit: "GroupCommit | None",
    ) -> None:
        self.topic_partition: TopicPartition = log.topic_partition
        self.log = log
        self.leader_epoch = leader_epoch
        #: Why nothing is taken any more: a flush failed, so that what the disk holds is unknown until a restart looks;
        #: or the topic is gone.
        self.closed: Refused | None = None
        self._node_id = node_id
        self._replicas = LeaderView(node_id, in_sync)
        self._clock = clock
        self._room = room
        self._group_commit = group_commit
        # What a restart found in the log is what this replica has: nobody else can know better on one node.
        self.safe_up_to(log.log_end_offset)

    @property
    def in_sync(self) -> tuple[int, ...]:
        return self._replicas.in_sync

    @property
    def acknowledges_at_once(self) -> bool:
        """Whether an append is acknowledged when it returns: nobody else and no disk has to be waited for."""
        return self._group_commit is None and len(self._replicas.in_sync) == 1

    def append(self, records: BytesLike, now_ms: int, *, acks: int = -1) -> Appended | Refused:
        """Append what a client sent. It is acknowledged once `is_acknowledged` says so."""
        refused = self._refuse(acks)
        if refused is not None:
            return refused
        return self._took(self.log.append_as_leader(records, self.leader_epoch, now_ms))

    def append_internal(self, batch: bytes, timeout_ms: int = ACKNOWLEDGED_WITHIN_MS) -> "Later[Appended | Refused]":
        """Append a batch the broker itself made; the answer comes once it is acknowledged."""
        answer: Later[Appended | Refused] = Later()
        appended = self._refuse(-1) or self._took(
            self.log.append_as_leader(batch, self.leader_epoch, self._clock.now_ms(), from_client=False)
        )
        self._when_acknowledged(appended, answer.complete, timeout_ms)
        return answer

    def append_record(self, key: bytes, value: bytes | None, done: Done) -> None:
        """Append one record of the broker's own; `done` hears of it once it is acknowledged, often before this returns."""
        appended = self._refuse(-1) or self._took(
            self.log.append_record(key, value, self.leader_epoch, self._clock.now_ms())
        )
        self._when_acknowledged(appended, done)

    def append_end_marker(
        self, producer: ProducerIdentity, marker: ControlRecord, transaction_version: int, done: Done
    ) -> None:
        """End a producer's transaction here; `done` hears of it once the marker is acknowledged."""
        appended = self._refuse(-1) or self._took(
            self.log.append_end_marker(producer, marker, self.leader_epoch, self._clock.now_ms(), transaction_version)
        )
        self._when_acknowledged(appended, done)

    def _refuse(self, acks: int) -> Refused | None:
        if self.closed is not None:
            return self.closed
        if acks == -1:
            return self._replicas.enough_in_sync(self.log.config.min_insync_replicas)
        return None

    def _took(self, appended: Appended | Refused) -> Appended | Refused:
        """See to it that what was appended becomes acknowledged."""
        if isinstance(appended, Refused):
            return appended
        if self._group_commit is None:
            self.safe_up_to(self.log.log_end_offset)
        elif appended.last_offset >= self.log.high_watermark:
            self._group_commit.request(self)
        return appended

    def _when_acknowledged(
        self, appended: Appended | Refused, done: Done, timeout_ms: int = ACKNOWLEDGED_WITHIN_MS
    ) -> None:
        if isinstance(appended, Refused) or self.log.high_watermark > appended.last_offset:
            done(appended)
        else:
            self._room.watch(UntilAcknowledged(self, appended, done), (self.topic_partition,), timeout_ms)

    def is_acknowledged(self, required_offset: int) -> bool:
        return self.log.high_watermark >= required_offset

    def safe_up_to(self, offset: int) -> None:
        """This replica holds everything below `offset` as safely as its flush policy promises."""
        if self.log.advance_high_watermark(self._replicas.progress(self._node_id, offset)):
            self._room.touch(self.topic_partition)

    def close(self, why: Refused) -> None:
        """Take nothing more; who waits for an acknowledgement hears why."""
        self.closed = why
        self._room.touch(self.topic_partition)

    def check_epoch(self, current_leader_epoch: int) -> Refused | None:
        """A client that knows a leader epoch says so; it must be ours (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return None
        if current_leader_epoch < self.leader_epoch:
            return Refused(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"leader epoch {current_leader_epoch} is over, {self.leader_epoch} is current: refresh the metadata",
            )
        return Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch {current_leader_epoch} has not reached this broker, which is at {self.leader_epoch}",
        )


class UntilAcknowledged:
    """One append of the broker's own that waits for the high watermark."""

    __slots__ = ("_partition", "_appended", "_done")

    def __init__(self, partition: Partition, appended: Appended, done: Done) -> None:
        self._partition = partition
        self._appended = appended
        self._done = done

    def try_complete(self) -> bool:
        if self._partition.is_acknowledged(self._appended.last_offset + 1):
            self._done(self._appended)
            return True
        if self._partition.closed is not None:
            self._done(self._partition.closed)
            return True
        return False

    def expire(self) -> None:
        self._done(Refused(ErrorCode.REQUEST_TIMED_OUT, f"{self._partition.topic_partition}: not acknowledged in time"))
