"""What a broker does unasked: retention, rolling, compaction, and forgetting idle producers.

Compaction is long work cut into small steps: the job is a generator, and between two turns of it the loop serves whoever
waits; only what waits for the device goes to a thread. So it needs no lock, and runs the same in a simulator.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oncelog.broker.logging import get_logger

if TYPE_CHECKING:
    from oncelog.broker.node import Node
    from oncelog.log.cleaner_reader import Step
    from oncelog.runtime.timers import TimerHandle

_log = get_logger(__name__)

#: How long one turn of a long job may hold the loop, and how long the loop then has for others at least.
TURN_MS = 2
PAUSE_MS = 2


class Background:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._stopped = False
        self._timers: dict[str, TimerHandle] = {}
        self._cleaning: Iterator[Step] | None = None

    def start(self) -> None:
        config = self._node.config
        self._every("retention", config.log_retention_check_interval_ms, self._apply_retention)
        self._every(
            "checkpoints", config.log_flush_offset_checkpoint_interval_ms, self._node.partitions.flush_rolled_segments
        )
        self._every("producers", config.producer_id_expiration_check_interval_ms, self._expire_producers)
        self._every(
            "transaction timeouts",
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self._abort_timed_out_transactions,
        )
        self._every(
            "transactional ids",
            config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._expire_transactional_ids,
        )
        if config.log_cleaner_enable:
            self._every("cleaner", config.log_cleaner_backoff_ms, self._start_cleaning)

    def stop(self) -> None:
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()

    def _every(self, name: str, interval_ms: int, run: Callable[[], None]) -> None:
        def again() -> None:
            if self._stopped:
                return
            try:
                run()
            except Exception:
                _log.exception("background work failed; it is tried again", work=name)
            self._every(name, interval_ms, run)

        self._timers[name] = self._node.timers.call_at(self._node.clock.monotonic_ms() + interval_ms, again)

    def _apply_retention(self) -> None:
        now_ms = self._node.clock.now_ms()
        for partition in list(self._node.partitions):
            partition.log.roll_if_due(now_ms)
            removed = partition.log.apply_retention(now_ms)
            if removed:
                _log.info("retention removed segments", partition=str(partition.topic_partition), segments=removed)

    def _expire_producers(self) -> None:
        now_ms = self._node.clock.now_ms()
        for partition in list(self._node.partitions):
            partition.log.expire_producers(now_ms)

    def _abort_timed_out_transactions(self) -> None:
        if self._node.has_transactions:
            self._node.transactions.abort_timed_out()

    def _expire_transactional_ids(self) -> None:
        expired = self._node.transactions.expire_idle() if self._node.has_transactions else 0
        if expired:
            _log.info("idle transactional ids forgotten", count=expired)

    def _start_cleaning(self) -> None:
        if self._cleaning is None:
            self._cleaning = self._clean_all()
            self._continue_cleaning()

    def _clean_all(self) -> "Iterator[Step]":
        from oncelog.log.cleaner import clean, needs_cleaning  # not before it is used: starting is quicker without

        for partition in list(self._node.partitions):
            try:
                if needs_cleaning(partition.log, self._node.clock.now_ms()):
                    yield from clean(partition.log, self._node.clock.now_ms())
            except Exception:
                _log.exception("compaction failed; it is tried again", partition=str(partition.topic_partition))
            yield None

    def _continue_cleaning(self) -> None:
        job = self._cleaning
        if job is None or self._stopped:
            return
        clock, timers = self._node.clock, self._node.timers
        until_ms = clock.monotonic_ms() + TURN_MS
        for step in job:
            if step is not None:
                timers.in_thread(step.run).when_done(lambda _: self._continue_cleaning())
                return
            if clock.monotonic_ms() >= until_ms:
                self._timers["cleaning"] = timers.call_at(clock.monotonic_ms() + PAUSE_MS, self._continue_cleaning)
                return
        self._cleaning = None
