"""The groups this broker coordinates, at work: commands are decided one at a time per group, what was decided is appended to
`__consumer_offsets`, and only then becomes true and is answered.

While a group's records are on their way to the log, further commands for it wait here in order. With records flushed to the
page cache the append is done when the call returns, and nothing ever waits.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from oncelog.broker.group_loading import load_shard
from oncelog.broker.logging import get_logger
from oncelog.cluster.topic import CONSUMER_OFFSETS
from oncelog.groups.commands import ExpireOffsets, ForgetTopic, TimedOut, Timer
from oncelog.groups.deadlines import Deadlines
from oncelog.groups.decide import Command, decide
from oncelog.groups.decision import Decision
from oncelog.groups.group import Group
from oncelog.groups.group_config import GroupConfig
from oncelog.groups.group_records import encode_record
from oncelog.groups.membership import decide_loaded, decide_unloaded
from oncelog.groups.shard import Shard
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.model.java_hash import coordinator_partition
from oncelog.model.producer_identity import NO_PRODUCER_ID
from oncelog.model.refused import Refused
from oncelog.records.builder import build_batch
from oncelog.waiting.later import Later, completed

if TYPE_CHECKING:
    from oncelog.broker.config import BrokerConfig
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition
    from oncelog.runtime.timers import TimerHandle

_log = get_logger(__name__)

#: How many groups are looked at for expired offsets before others get their turn.
_EXPIRED_IN_ONE_TURN = 200

#: What a client hears when the log did not take a group's record. Other codes reach it as they are.
_TOLD_OF_FAILED_APPEND = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

_Waiting: TypeAlias = Command | Later[Shard]


class GroupCoordinator:
    __slots__ = (
        "_node",
        "_config",
        "_shards",
        "_partition_count",
        "_in_flight",
        "_deadlines",
        "_timer",
        "_armed_for_ms",
        "_expiry_timer",
        "_closed",
    )

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._config = group_config(node.config)
        self._shards: dict[int, Shard] = {}
        self._partition_count: int = node.config.offsets_topic_num_partitions
        #: Groups whose records are being appended, with what has been asked of each meanwhile.
        self._in_flight: dict[str, deque[_Waiting]] = {}
        self._deadlines: Deadlines[tuple[str, Timer]] = Deadlines()
        self._timer: TimerHandle | None = None
        self._armed_for_ms = 0
        self._expiry_timer: TimerHandle | None = None
        self._closed = False

    # Starting and stopping

    def load(self) -> None:
        """Bring back every group from the log. Members are given a session's time to say that they are there."""
        partitions = self._node.partitions.of_topic(CONSUMER_OFFSETS)
        topic = self._node.cluster.topics.get(CONSUMER_OFFSETS)
        if topic is not None:
            self._partition_count = len(topic.partitions)
        for index, partition in partitions.items():
            shard = self._shards[index] = load_shard(partition.log)
            for group in list(shard.groups.values()):
                self._carry_out(shard, decide_loaded(group, self._config, self._node.clock.now_ms()))
        self._schedule_expiry()

    def close(self) -> None:
        """Whoever waits is sent to find the coordinator again; no timer runs on."""
        self._closed = True
        for shard in self._shards.values():
            for group in list(shard.groups.values()):
                self._carry_out(shard, decide_unloaded(group, self._config, self._node.clock.now_ms()))
        for timer in (self._timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()

    # Asking

    def run(self, command: Command) -> None:
        """Decide and carry out. Answers go to the commands' tokens, which are `Later`s."""
        queue = self._in_flight.get(command.group_id)
        if queue is None:
            self._decide(command)
        else:
            queue.append(command)

    def view(self, group_id: str) -> Later[Shard]:
        """What is known of a group, once everything decided before has become true."""
        queue = self._in_flight.get(group_id)
        if queue is None:
            return completed(self._shard_of(group_id))
        view: Later[Shard] = Later()
        queue.append(view)
        return view

    def groups(self) -> Iterator[Group]:
        for shard in self._shards.values():
            yield from shard.groups.values()

    def partition_of(self, group_id: str) -> int:
        return coordinator_partition(group_id, self._partition_count)

    # Being told

    def forget_topic(self, topic: str) -> None:
        """The topic was deleted, and with it what groups had committed for it."""
        for group in list(self.groups()):
            self.run(ForgetTopic(group.group_id, topic))

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker stands in this partition of `__consumer_offsets`: the offsets of its transaction count now, or never."""
        self._shard(partition).apply_marker(producer_id, committed=committed)

    # One decision

    def _shard(self, partition: int) -> Shard:
        shard = self._shards.get(partition)
        if shard is None:
            shard = self._shards[partition] = Shard()
        return shard

    def _shard_of(self, group_id: str) -> Shard:
        return self._shard(self.partition_of(group_id))

    def _decide(self, command: Command) -> None:
        if isinstance(command, TimedOut) and (command.group_id, command.timer) in self._deadlines:
            return  # it was put off while this waited its turn
        shard = self._shard_of(command.group_id)
        decision = decide(shard, command, self._config, self._node.clock.now_ms())
        if not decision.records:
            self._carry_out(shard, decision)
            return
        self._in_flight[command.group_id] = deque()
        self._append(decision).when_done(lambda appended: self._finish(shard, decision, appended))

    def _append(self, decision: Decision) -> "Later[Appended | Refused]":
        index = self.partition_of(decision.group_id)
        partition = self._node.partitions.get(CONSUMER_OFFSETS, index)
        if not isinstance(partition, Refused):
            return self._append_to(partition, decision)
        if CONSUMER_OFFSETS in self._node.cluster.topics:
            return completed(partition)

        def created(topic: object) -> "Later[Appended | Refused] | Refused":
            partition = self._node.partitions.get(CONSUMER_OFFSETS, index)
            if isinstance(topic, Refused) or isinstance(partition, Refused):
                return Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} could not be created")
            return self._append_to(partition, decision)

        return self._node.cluster.ensure_internal_topic(CONSUMER_OFFSETS).then(created)

    def _append_to(self, partition: "Partition", decision: Decision) -> "Later[Appended | Refused]":
        producer = decision.producer
        batch = build_batch(
            [encode_record(record) for record in decision.records],
            timestamp_ms=self._node.clock.now_ms(),
            producer_id=-1 if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            transactional=producer is not None,
        )
        return partition.append_internal(batch, self._node.config.offsets_commit_timeout_ms)

    def _finish(self, shard: Shard, decision: Decision, appended: "Appended | Refused") -> None:
        if self._closed:
            return  # whoever waited has been sent away
        if isinstance(appended, Refused):
            _log.warning("a group's record was not stored", group=decision.group_id, problem=appended.why)
            if decision.otherwise is not None:
                self._carry_out(shard, decision.otherwise(_TOLD_OF_FAILED_APPEND.get(appended.code, appended.code)))
        else:
            self._carry_out(shard, decision, appended.base_offset)
        self._go_on(shard, decision.group_id)

    def _carry_out(self, shard: Shard, decision: Decision, base_offset: int = -1) -> None:
        """In this order: whoever is answered, or asks again at once, sees what is true now."""
        if decision.group is not None:
            shard.groups[decision.group_id] = decision.group
        producer_id = NO_PRODUCER_ID if decision.producer is None else decision.producer.producer_id
        if base_offset >= 0:
            for record_offset, record in enumerate(decision.records, base_offset):
                shard.apply(record, record_offset, producer_id)
        if decision.timers:
            self._set_timers(decision.group_id, decision.timers)
        for token, reply in decision.replies:
            token.complete(reply)

    def _go_on(self, shard: Shard, group_id: str) -> None:
        """Nothing is in flight for the group any more: take up what was asked of it meanwhile."""
        queue = self._in_flight.pop(group_id)
        while queue:
            waiting = queue.popleft()
            if isinstance(waiting, Later):
                waiting.complete(shard)
            else:
                self._decide(waiting)
            newer = self._in_flight.get(group_id)
            if newer is not None:
                newer.extendleft(reversed(queue))
                return

    # Time

    def _set_timers(self, group_id: str, timers: dict[Timer, int | None]) -> None:
        now_ms = self._node.clock.monotonic_ms()
        deadlines = self._deadlines
        for timer, delay_ms in timers.items():
            if delay_ms is None:
                deadlines.cancel((group_id, timer))
            else:
                deadlines.set((group_id, timer), now_ms + delay_ms)
        self._arm()

    def _arm(self) -> None:
        at_ms = self._deadlines.look_again_ms
        if at_ms is None or self._closed or (self._timer is not None and self._armed_for_ms <= at_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for_ms = at_ms
        self._timer = self._node.timers.call_at(at_ms, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        for group_id, timer in self._deadlines.take_due(self._node.clock.monotonic_ms()):
            _log.debug("a group's timer ran out", group=group_id, timer=timer.kind.value, member=timer.member_id)
            self.run(TimedOut(group_id, timer))
        self._arm()

    def _schedule_expiry(self) -> None:
        if not self._closed:
            at_ms = self._node.clock.monotonic_ms() + self._node.config.offsets_retention_check_interval_ms
            self._expiry_timer = self._node.timers.call_at(at_ms, lambda: self._expire(self._groups_in_turns()))

    def _groups_in_turns(self) -> Iterator[list[str]]:
        names = [group.group_id for group in self.groups()]
        for first in range(0, len(names), _EXPIRED_IN_ONE_TURN):
            yield names[first : first + _EXPIRED_IN_ONE_TURN]

    def _expire(self, turns: Iterator[list[str]]) -> None:
        names = next(turns, None)
        if names is None or self._closed:
            self._schedule_expiry()
            return
        for group_id in names:
            self.run(ExpireOffsets(group_id))
        self._node.timers.call_soon(lambda: self._expire(turns))


def group_config(config: "BrokerConfig") -> GroupConfig:
    return GroupConfig(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
    )
