"""The course of the demo: orders in, a worker killed, the broker killed, everything out, everything compared."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException

from oncelog.cli.demo_processes import Child, DemoFailed, Processes
from oncelog.cli.demo_progress import Progress
from oncelog.cli.demo_records import OUTPUTS, Arrivals, OrderSender, create_topics, read_everything
from oncelog.cli.demo_verdict import Verdict, judge
from oncelog.client.brokers import Brokers
from oncelog.client.errors import ClientError
from oncelog.client.transaction_admin import TransactionAdmin
from oncelog.model.address import parse_address

#: A slow machine sends fewer orders rather than taking longer than this over it.
SENDING_SECONDS = 25.0
#: Not too far ahead of the workers, so that sending, working and killing happen at the same time.
MOST_UNDER_WAY = 2_000
WORKER_TO_KILL = "worker-2"
KILL_WORKER_AT = 1 / 3
KILL_BROKER_AT = 2 / 3
DOWN_SECONDS = 0.5
#: With nothing new for this long nothing more will come: the verdict says what is missing.
STALLED_SECONDS = 15.0
#: A worker that ends by itself is started again, as an operator's supervisor would, but not for ever.
MOST_RESTARTS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    #: From the first order to the last arrival.
    seconds: float
    #: Records of transactions that were aborted: in the log, and hidden.
    aborted_records: int
    #: Partitions that cannot be read to their end, because a transaction is open there.
    unreadable: list[str]
    #: Whom, in order.
    killed: list[str]

    @property
    def problems(self) -> list[str]:
        held_back = [f"a transaction is still open in {', '.join(self.unreadable)}"] if self.unreadable else []
        return [*self.verdict.problems, *held_back]


def tell(processes: Processes, orders: int, progress: Progress, check: Callable[[], None]) -> Outcome:
    """`check` is called in every wait, and may raise."""
    try:
        return _tell(processes, orders, progress, check)
    except (KafkaException, ClientError) as problem:
        raise DemoFailed(str(problem)) from problem


def _tell(processes: Processes, orders: int, progress: Progress, check: Callable[[], None]) -> Outcome:
    began = time.monotonic()
    processes.start_broker(check)
    progress.tell(f"broker on {processes.servers}, ready {(time.monotonic() - began) * 1000:.0f} ms after its start")
    create_topics(processes.servers)
    for worker in processes.workers.values():
        worker.spawn()
    work = _Work(processes, orders, progress, check)
    try:
        seconds = work.run()
        work.sender.finish()
    finally:
        work.arrivals.close()
    processes.stop_workers(check)
    progress.tell("all workers have ended; a new reader reads everything back")
    committed, unreadable = read_everything(processes.servers, "read_committed", check)
    written, _ = read_everything(processes.servers, "read_uncommitted", check)
    verdict = judge(work.sender.acknowledged, committed, OUTPUTS)
    return Outcome(verdict, seconds, len(written) - len(committed), unreadable, work.killed)


class _Work:
    """From the first order sent to the last arrived."""

    def __init__(self, processes: Processes, orders: int, progress: Progress, check: Callable[[], None]) -> None:
        self.killed: list[str] = []
        self.sender = OrderSender(processes.servers)
        self.arrivals = Arrivals(processes.servers)
        self._processes = processes
        self._orders = orders
        self._most_under_way = min(MOST_UNDER_WAY, orders // 10)
        self._progress = progress
        self._check = check
        self._restarts = 0

    def run(self) -> float:
        """Returns how long it took."""
        began = arrived_at = time.monotonic()
        arrived = 0
        while arrived < self._orders and time.monotonic() - arrived_at < STALLED_SECONDS:
            self._check()
            share_done = max(arrived / self._orders, (time.monotonic() - began) / SENDING_SECONDS)
            if share_done > 1 and self.sender.handed_over < self._orders:
                self._orders = self.sender.handed_over
                self._progress.tell(f"a slow machine: {self._orders:,} orders are enough")
            self.sender.send(min(self._orders, arrived + self._most_under_way) - self.sender.handed_over)
            self.arrivals.read(seconds=0.02)
            if self.arrivals.count > arrived:
                arrived, arrived_at = self.arrivals.count, time.monotonic()
            self._kill_who_is_due(share_done)
            self._start_again()
            self._progress.show(f"sent {len(self.sender.acknowledged):>7,}   arrived {arrived:>7,}")
        return arrived_at - began

    def _kill_who_is_due(self, share_done: float) -> None:
        broker, worker = self._processes.broker, self._processes.workers[WORKER_TO_KILL]
        if share_done > KILL_WORKER_AT and worker.name not in self.killed:
            where = _pause_in_transaction(worker, self._processes.servers)
            if where:
                self._kill(worker, f"with an open transaction in {', '.join(where)}")
            elif share_done > KILL_BROKER_AT:
                self._kill(worker, "wherever it was")
        elif share_done > KILL_BROKER_AT and broker.name not in self.killed:
            self._kill(broker, "under all of them")
            self._processes.start_broker(self._check)
            self._progress.tell("broker is back, on the same files")

    def _kill(self, child: Child, how: str) -> None:
        child.kill()
        self.killed.append(child.name)
        self._progress.tell(f"{child.name} (process {child.pid}) killed {how}")
        time.sleep(DOWN_SECONDS)

    def _start_again(self) -> None:
        """What a supervisor does: a worker that has ended is started again."""
        for worker in self._processes.workers.values():
            if worker.running:
                continue
            self._restarts += 1
            if self._restarts > MOST_RESTARTS:
                raise DemoFailed(f"{worker.name} ends again and again")
            why = "" if worker.exit_code == -signal.SIGKILL else f" after it ended with exit code {worker.exit_code}"
            worker.spawn()
            self._progress.tell(f"{worker.name} is back{why}")


def _pause_in_transaction(worker: Child, servers: str) -> list[str]:
    """Makes it stand still when it has written and not committed, and says where. If that does not come soon it runs on."""
    with Brokers([parse_address(servers)], "oncelog-demo") as brokers:
        view = brokers.view(OUTPUTS)
        admin = TransactionAdmin(brokers)
        for _ in range(20):
            worker.pause()
            in_the_log = admin.open_transactions(view, view.partitions).found
            # Asked second: what was open in the log may have been committed by now.
            transaction = admin.describe_transactions([worker.name]).get(worker.name)
            if transaction is not None and transaction.is_open:
                its = [str(found.partition) for found in in_the_log if found.producer_id == transaction.producer_id]
                if its:
                    return its
            worker.resume()
            time.sleep(random.uniform(0.001, 0.01))
    return []
