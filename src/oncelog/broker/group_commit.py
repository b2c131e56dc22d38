"""Group commit (flush.policy=group-commit): one fdatasync acknowledges every append that came before it.

While one round of flushing runs in a worker thread, the appends that arrive gather for the next: the busier the broker, the
more of them share a flush. The loop never waits for the disk.
"""

from typing import TYPE_CHECKING

from oncelog.broker.logging import get_logger
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused

if TYPE_CHECKING:
    from oncelog.broker.partition import Partition
    from oncelog.log.flushing import FlushTask
    from oncelog.runtime.timers import Timers

_log = get_logger(__name__)


class GroupCommit:
    __slots__ = ("_timers", "_asked", "_running")

    def __init__(self, timers: "Timers") -> None:
        self._timers = timers
        self._asked: dict[Partition, None] = {}
        self._running = False

    def request(self, partition: "Partition") -> None:
        self._asked[partition] = None
        if not self._running:
            self._running = True
            # Not now: what else arrives in this turn of the loop shares the flush.
            self._timers.call_soon(self._start_round)

    def _start_round(self) -> None:
        asked, self._asked = self._asked, {}
        tasks = [(partition, task) for partition in asked if (task := partition.log.unflushed()) is not None]
        if not tasks:
            self._running = False
            return
        self._timers.in_thread(lambda: [run_flush(task) for _, task in tasks]).when_done(
            lambda results: self._finish_round(tasks, results)
        )

    def _finish_round(
        self, tasks: "list[tuple[Partition, FlushTask]]", results: "list[Exception | None] | BaseException"
    ) -> None:
        if isinstance(results, BaseException):
            results = [Exception(str(results))] * len(tasks)
        for (partition, task), problem in zip(tasks, results, strict=True):
            if problem is None:
                task.done()
                partition.safe_up_to(partition.log.flushed_offset)
            else:
                _log.error("flush failed", partition=str(partition.topic_partition), problem=str(problem))
                why = f"{partition.topic_partition}: flushing to disk failed: {problem}"
                partition.close(Refused(ErrorCode.KAFKA_STORAGE_ERROR, why))
        if self._asked:
            self._start_round()
        else:
            self._running = False


def run_flush(task: "FlushTask") -> Exception | None:
    """In a worker thread: flush, and say what went wrong."""
    try:
        task.run()
    except Exception as problem:  # one partition's disk trouble must not take the others' answers with it
        return problem
    return None
