"""A node with nothing but what the group coordinator needs: real logs on a real disk, time and appends in the test's hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oncelog.broker.config import load_config
from oncelog.broker.group_coordinator import GroupCoordinator
from oncelog.groups.commands import CommitOffsets, Heartbeat, Join, OffsetToCommit, Sync
from oncelog.groups.group import Protocol
from oncelog.groups.replies import HeartbeatReply, JoinReply, OffsetsReply, SyncReply
from oncelog.log.log_config import LogConfig
from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.runtime.disk import RealDisk
from oncelog.waiting.later import Later, completed

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 2


@dataclass
class StageTimer:
    at_ms: int
    run: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class StageTime:
    """Clock and timers in one."""

    ms: int = 1_000_000
    timers: list[StageTimer] = field(default_factory=list)
    soon: list[Callable[[], None]] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def call_at(self, at_ms: int, run: Callable[[], None]) -> StageTimer:
        self.timers.append(StageTimer(at_ms, run))
        return self.timers[-1]

    def call_soon(self, run: Callable[[], None]) -> None:
        self.soon.append(run)

    def pass_time(self, by_ms: int) -> None:
        until_ms = self.ms + by_ms
        while due := [timer for timer in self.timers if timer.at_ms <= until_ms]:
            first = min(due, key=lambda timer: timer.at_ms)
            self.timers.remove(first)
            self.ms = max(self.ms, first.at_ms)
            if not first.cancelled:
                first.run()
            while self.soon:
                self.soon.pop(0)()
        self.ms = until_ms

    @property
    def armed(self) -> list[StageTimer]:
        return [timer for timer in self.timers if not timer.cancelled]


@dataclass
class StagePartition:
    log: PartitionLog
    time: StageTime
    refuses: Refused | None = None
    #: Appends whose acknowledgement a test holds back.
    held: list[tuple[Later[Appended | Refused], Appended]] | None = None

    def append_internal(self, batch: bytes, timeout_ms: int = 0) -> Later[Appended | Refused]:
        if self.refuses is not None:
            return completed(self.refuses)
        appended = self.log.append_as_leader(batch, 0, self.time.ms, from_client=False)
        if isinstance(appended, Refused) or self.held is None:
            return completed(appended)
        later: Later[Appended | Refused] = Later()
        self.held.append((later, appended))
        return later


class Stage:
    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.time = StageTime()
        self.clock = self.timers = self.time
        self.settings = settings
        self.config = load_config({"offsets.topic.num.partitions": str(PARTITIONS), **settings})
        self.topics: dict[str, Any] = {}
        self.opened: dict[int, StagePartition] = {}
        self.cluster = self
        self.partitions = self
        self.groups = GroupCoordinator(self)  # type: ignore[arg-type]

    # As node.cluster and node.partitions

    def ensure_internal_topic(self, name: str) -> Later[Any]:
        self.open_logs()
        return completed(self.topics[name])

    def of_topic(self, topic: str) -> dict[int, StagePartition]:
        return self.opened if topic == OFFSETS_TOPIC else {}

    def get(self, topic: str, index: int) -> StagePartition | Refused:
        found = self.of_topic(topic).get(index)
        return found if found is not None else Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not here")

    # For tests

    def open_logs(self) -> None:
        disk = RealDisk(self.directory)
        self.topics[OFFSETS_TOPIC] = type("Topic", (), {"partitions": [None] * PARTITIONS})
        for index in range(PARTITIONS):
            position = TopicPartition(OFFSETS_TOPIC, index)
            log = PartitionLog.open(disk, str(position), position, LogConfig(), self.time.ms, clean_shutdown=False)
            self.opened[index] = StagePartition(log, self.time)

    def restarted(self) -> "Stage":
        """Another run on the same data."""
        for partition in self.opened.values():
            partition.log.close()
        again = Stage(self.directory, **self.settings)
        again.time.ms = self.time.ms
        again.open_logs()
        again.groups.load()
        return again

    def partition(self, group_id: str) -> StagePartition:
        return self.opened[self.groups.partition_of(group_id)]

    def hold_back(self, group_id: str) -> None:
        self.partition(group_id).held = []

    def acknowledge(self, group_id: str) -> None:
        partition = self.partition(group_id)
        held, partition.held = partition.held or [], None
        for later, appended in held:
            later.complete(appended)

    def join(self, group_id: str, member_id: str = "", fresh: str = "m-1") -> Later[JoinReply]:
        answer: Later[JoinReply] = Later()
        offered = (Protocol("range", b"\x00\x00\x00\x00\x00\x00"),)
        self.groups.run(
            Join(answer, group_id, member_id, fresh, None, "client", "/host", 10_000, 60_000, "consumer", offered)
        )
        return answer

    def sync(self, group_id: str, member_id: str, generation: int = 1) -> Later[SyncReply]:
        answer: Later[SyncReply] = Later()
        self.groups.run(Sync(answer, group_id, generation, member_id, None, None, None, {member_id: b"part"}))
        return answer

    def heartbeat(self, group_id: str, member_id: str, generation: int = 1) -> Later[HeartbeatReply]:
        answer: Later[HeartbeatReply] = Later()
        self.groups.run(Heartbeat(answer, group_id, generation, member_id, None))
        return answer

    def commit(
        self,
        group_id: str,
        offset: int,
        topic: str = "orders",
        *,
        member_id: str = "",
        generation: int = -1,
        producer: ProducerIdentity | None = None,
    ) -> Later[OffsetsReply]:
        answer: Later[OffsetsReply] = Later()
        offsets = (OffsetToCommit(TopicPartition(topic, 0), offset, 0, ""),)
        self.groups.run(CommitOffsets(answer, group_id, generation, member_id, None, offsets, producer=producer))
        return answer

    def committed(self, group_id: str, topic: str = "orders") -> int | None:
        found = self.groups.view(group_id).value.offset(group_id, TopicPartition(topic, 0))
        return None if found is None else found.offset

    def stable_member(self, group_id: str, member_id: str = "m-1") -> None:
        self.join(group_id, fresh=member_id)
        self.join(group_id, member_id)
        assert self.sync(group_id, member_id).value.assignment == b"part"
