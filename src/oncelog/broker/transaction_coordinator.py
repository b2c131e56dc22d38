"""The transaction coordinator of this node: decide, store, apply, and see the markers out.

One decision in flight per transactional id: what arrives meanwhile waits in the id's lane, in order. So does the first request
of the next transaction while the markers of the last are still out: that takes well under a millisecond, where sending the
client away with CONCURRENT_TRANSACTIONS costs it a back-off of 20 to 100 ms.

Always: a reply leaves after its record is acknowledged in `__transaction_state`; markers leave after their Prepare is; the next
transaction begins after Complete is.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from oncelog.broker.fail_points import reach
from oncelog.broker.logging import get_logger
from oncelog.broker.marker_writer import Codes, write_markers
from oncelog.broker.transaction_loading import load_transactions
from oncelog.cluster.topic import TRANSACTION_STATE
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.model.java_hash import coordinator_partition
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.adding import AddPartitions, decide_add, decide_verify
from oncelog.transactions.decision import AbortFirst, Conclusion, Decision, NeedProducerId, Wait
from oncelog.transactions.ending import End, complete, decide_end, fence
from oncelog.transactions.initialising import Initialise, decide_initialise
from oncelog.transactions.markers import GONE, Gone, Marker, MarkerSender
from oncelog.transactions.states import AT_REST, State
from oncelog.transactions.transaction import Transaction
from oncelog.transactions.transaction_records import encode_key, encode_value
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.waiting.purgatory import Ticket

_log = get_logger(__name__)

#: How long a request waits for the one before it. Below what clients wait for an answer (30 s), so that they hear why.
PATIENCE_MS = 15_000
RETRY_MS = 100

Command = Initialise | AddPartitions | End
Answer = ProducerIdentity | Refused


class _Asked:
    """One command in a lane, with the client's answer."""

    __slots__ = ("command", "caller", "answer", "ticket", "_lane")

    def __init__(self, command: Command, caller: "Caller", lane: "_Lane") -> None:
        self.command = command
        self.caller = caller
        self.answer: Later[Answer] = Later()
        self.ticket: Ticket | None = None
        self._lane = lane

    def try_complete(self) -> bool:
        return self.answer.done

    def expire(self) -> None:
        if self not in self._lane.waiting:
            return  # its turn has come, and what it asked for is being stored: the answer comes with that
        self._lane.waiting.remove(self)
        self.answer.complete(
            Refused(
                ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction of this id is still being finished: try again"
            )
        )


class _Lane:
    """What is under way for one transactional id, and who waits for it."""

    __slots__ = ("busy", "emptying", "waiting")

    def __init__(self) -> None:
        #: A record is being stored, or markers are out.
        self.busy = False
        #: Who waits is being served, further up the stack.
        self.emptying = False
        self.waiting: deque[_Asked] = deque()


class _Home(NamedTuple):
    """Where an id's records go, and under which key: the same for all of them."""

    partition: int
    key: bytes


class TransactionCoordinator:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._transactions: dict[str, Transaction] = {}
        #: Those with an open transaction: all that the timeout must look at.
        self._open: dict[str, None] = {}
        self._lanes: dict[str, _Lane] = {}
        self._homes: dict[str, _Home] = {}
        #: Who last changed each; for people, so not stored.
        self._callers: dict[str, Caller] = {}
        self._markers = MarkerSender(self._leader_of)
        self._partitions = node.config.transaction_state_log_num_partitions

    # Starting

    def load(self) -> None:
        """Bring back every transactional id from the log, and go on with what was prepared (MISSION T6)."""
        partitions = self._node.partitions.of_topic(TRANSACTION_STATE)
        topic = self._node.cluster.topic(TRANSACTION_STATE)
        if topic is not None:
            self._partitions = len(topic.partitions)
        for partition in partitions.values():
            for transaction in load_transactions(partition.log).values():
                self.apply(transaction)
        for transaction in list(self._transactions.values()):
            if transaction.is_prepared:
                self._lanes.setdefault(transaction.transactional_id, _Lane()).busy = True
                self._send_markers(transaction)

    # What others ask

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def partition_of(self, transactional_id: str) -> int:
        return coordinator_partition(transactional_id, self._partitions)

    def partitions_without_marker(self, transactional_id: str) -> frozenset[TopicPartition]:
        return self._markers.partitions_left(transactional_id)

    def last_caller(self, transactional_id: str) -> "Caller | None":
        """Whose request changed the transaction last; None if that was before this broker started."""
        return self._callers.get(transactional_id)

    def run(self, command: Command, caller: "Caller") -> "Later[Answer]":
        """Carry out a command in its turn; the answer may go to the client as it is."""
        lane = self._lanes.get(command.transactional_id)
        if lane is None:
            lane = self._lanes[command.transactional_id] = _Lane()
        asked = _Asked(command, caller, lane)
        if lane.busy or lane.waiting:
            self._wait(lane, asked)
        else:
            self._carry_out(lane, asked)
        return asked.answer

    def verify(self, transactional_id: str, producer: ProducerIdentity, partition: TopicPartition) -> Refused | None:
        return decide_verify(self._transactions.get(transactional_id), transactional_id, producer, partition)

    # One command

    def _wait(self, lane: _Lane, asked: _Asked, *, first: bool = False) -> None:
        if first:
            lane.waiting.appendleft(asked)
        else:
            lane.waiting.append(asked)
        if asked.ticket is None:
            asked.ticket = self._node.room.watch(asked, (), PATIENCE_MS)

    def _carry_out(self, lane: _Lane, asked: _Asked) -> None:
        conclusion = self._decide(asked.command)
        match conclusion:
            case Decision(reply, None):
                self._reply(lane, asked, reply)
            case Decision(reply, Transaction() as transaction):
                lane.busy = True
                self._store(transaction, lambda problem: self._stored(lane, asked, transaction, problem or reply))
            case Refused():
                self._reply(lane, asked, conclusion)
            case AbortFirst(prepared):
                lane.busy = True
                self._wait(lane, asked, first=True)
                self._store(prepared, lambda problem: self._fenced(lane, prepared, problem))
            case Wait():
                self._wait(lane, asked, first=True)
            case NeedProducerId():
                lane.busy = True
                self._node.cluster.next_producer_id().when_done(lambda drawn: self._drawn(lane, asked, drawn))

    def _decide(self, command: Command) -> Conclusion:
        known = self._transactions.get(command.transactional_id)
        now_ms = self._node.clock.now_ms()
        match command:
            case AddPartitions():
                return decide_add(known, command, now_ms)
            case End():
                return decide_end(known, command, now_ms)
            case Initialise():
                return decide_initialise(known, command, self._node.config.transaction_max_timeout_ms, now_ms)

    def _drawn(self, lane: _Lane, asked: _Asked, drawn: int | Refused) -> None:
        lane.busy = False
        if isinstance(drawn, Refused) or isinstance(asked.command, AddPartitions):
            why = drawn.why if isinstance(drawn, Refused) else "adding partitions takes no producer id"
            self._reply(lane, asked, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, why))
        else:
            asked.command = asked.command._replace(new_producer_id=drawn)
            self._carry_out(lane, asked)

    def _reply(self, lane: _Lane, asked: _Asked, reply: Answer) -> None:
        if asked.ticket is not None:
            self._node.room.forget(asked.ticket)
        asked.answer.complete(reply)
        self._next(lane, asked.command.transactional_id)

    def _next(self, lane: _Lane, transactional_id: str) -> None:
        if lane.busy or lane.emptying:
            return
        if lane.waiting and not self._served_waiting(lane):
            return
        if self._lanes.get(transactional_id) is lane:
            del self._lanes[transactional_id]

    def _served_waiting(self, lane: _Lane) -> bool:
        """Carry out what waits until something must be waited for again. True if nothing is left.

        In a loop: however many wait, an answer that makes way for the next is not a deeper call.
        """
        lane.emptying = True
        try:
            while lane.waiting and not lane.busy:
                asked = lane.waiting.popleft()
                self._carry_out(lane, asked)
                if lane.waiting and lane.waiting[0] is asked:
                    break
        finally:
            lane.emptying = False
        return not lane.busy and not lane.waiting

    # Storing

    def _store(self, transaction: Transaction, done: Callable[[Refused | None], None]) -> None:
        """Append the transaction to the log. `done` hears None once it is acknowledged and has taken the old one's place."""
        transactional_id = transaction.transactional_id
        reach("transaction before store", transaction.state)

        def applied(result: Appended | Refused) -> None:
            if isinstance(result, Refused):
                done(Refused(_client_code(result.code), result.why))
                return
            reach("transaction after store", transaction.state)
            self.apply(transaction)
            done(None)

        home = self._home_of(transactional_id)
        partition = self._node.partitions.get(TRANSACTION_STATE, home.partition)
        if isinstance(partition, Refused):
            applied(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not coordinate that transactional id"))
        else:
            partition.append_record(home.key, encode_value(transaction), applied)

    def _home_of(self, transactional_id: str) -> "_Home":
        home = self._homes.get(transactional_id)
        if home is None:
            home = _Home(self.partition_of(transactional_id), encode_key(transactional_id))
            self._homes[transactional_id] = home
        return home

    def apply(self, transaction: Transaction) -> None:
        self._transactions[transaction.transactional_id] = transaction
        if transaction.state is State.ONGOING:
            self._open[transaction.transactional_id] = None
        else:
            self._open.pop(transaction.transactional_id, None)

    def _stored(self, lane: _Lane, asked: _Asked, transaction: Transaction, reply: Answer) -> None:
        if asked.ticket is not None:
            self._node.room.forget(asked.ticket)
        if not isinstance(reply, Refused):
            self._callers[transaction.transactional_id] = asked.caller
        asked.answer.complete(reply)
        if transaction.is_prepared and not isinstance(reply, Refused):
            self._send_markers(transaction)
        else:
            lane.busy = False
            self._next(lane, transaction.transactional_id)

    def _fenced(self, lane: _Lane, prepared: Transaction, problem: Refused | None) -> None:
        if problem is None:
            self._send_markers(prepared)
            return
        lane.busy = False
        if lane.waiting:
            self._reply(lane, lane.waiting.popleft(), problem)
        else:
            self._next(lane, prepared.transactional_id)

    # Markers

    def _leader_of(self, topic_partition: TopicPartition) -> int | Gone | None:
        topic = self._node.cluster.topic(topic_partition.topic)
        if topic is None or topic_partition.partition >= len(topic.partitions):
            return GONE
        leader = topic.partitions[topic_partition.partition].leader
        return leader if leader >= 0 else None

    def _send_markers(self, prepared: Transaction) -> None:
        reach("transaction before markers", prepared.state)
        home = self._home_of(prepared.transactional_id)
        coordinator = self._node.partitions.get(TRANSACTION_STATE, home.partition)
        coordinator_epoch = 0 if isinstance(coordinator, Refused) else coordinator.leader_epoch
        if self._markers.send(prepared, coordinator_epoch):
            self._complete(prepared)
        else:
            self._drain()

    def _drain(self) -> None:
        # On one node every leader is this node, and its markers take the way without a network.
        markers = self._markers.take(self._node.node_id)
        if markers:
            write_markers(self._node, markers, lambda codes: self._answered(markers, codes))

    def _answered(self, markers: list[Marker], codes: Codes) -> None:
        outcome = self._markers.answered(markers, lambda marker, partition: codes[marker.producer_id, partition])
        for transactional_id, topic_partition, code in outcome.bugs:
            _log.error(
                "a marker was refused", transactional_id=transactional_id, partition=str(topic_partition), code=code
            )
        for transactional_id in outcome.cancelled:
            _log.warning("markers cancelled: another epoch took over", transactional_id=transactional_id)
        for prepared in outcome.finished:
            self._complete(prepared)
        if self._markers.destinations or self._markers.waits_for_leaders:
            self._later(self._try_markers_again)

    def _try_markers_again(self) -> None:
        for prepared in self._markers.look_for_leaders():
            self._complete(prepared)
        self._drain()

    def _complete(self, prepared: Transaction) -> None:
        reach("transaction after markers", prepared.state)
        finished = complete(prepared, self._node.clock.now_ms())

        def stored(problem: Refused | None) -> None:
            if problem is not None:
                # The outcome stands in the log already: only saying that it is through is missing (T9).
                self._later(lambda: self._complete(prepared))
                return
            lane = self._lanes.get(prepared.transactional_id)
            if lane is not None:
                lane.busy = False
                self._next(lane, prepared.transactional_id)

        self._store(finished, stored)

    def _later(self, run: Callable[[], None]) -> None:
        self._node.timers.call_at(self._node.clock.monotonic_ms() + RETRY_MS, run)

    # Timeouts

    def abort_timed_out(self) -> int:
        """Abort every transaction over its timeout, under an epoch that shuts its producer out (MISSION I10)."""
        now_ms = self._node.clock.now_ms()
        late = [self._transactions[name] for name in self._open if self._transactions[name].is_over_its_timeout(now_ms)]
        aborted = 0
        for transaction in late:
            lane = self._lanes.setdefault(transaction.transactional_id, _Lane())
            if lane.busy:
                continue  # its client is just ending it, or adding to it: the next look decides
            lane.busy = True
            aborted += 1
            _log.notice(
                "transaction timed out",
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                timeout_ms=transaction.timeout_ms,
            )
            prepared = fence(transaction, now_ms)
            self._store(prepared, partial(self._fenced_by_timeout, lane, prepared))
        return aborted

    def _fenced_by_timeout(self, lane: _Lane, prepared: Transaction, problem: Refused | None) -> None:
        if problem is None:
            self._send_markers(prepared)
        else:
            lane.busy = False
            self._next(lane, prepared.transactional_id)

    def expire_idle(self) -> int:
        """Forget ids nobody has used for transactional.id.expiration.ms, by a tombstone each (MISSION I12)."""
        before_ms = self._node.clock.now_ms() - self._node.config.transactional_id_expiration_ms
        expired = [
            transaction
            for transaction in self._transactions.values()
            if transaction.last_update_ms <= before_ms
            and transaction.state in AT_REST
            and transaction.transactional_id not in self._lanes
        ]
        for transaction in expired:
            self._forget(transaction)
        return len(expired)

    def _forget(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        home = self._home_of(transactional_id)
        partition = self._node.partitions.get(TRANSACTION_STATE, home.partition)
        if isinstance(partition, Refused):
            return
        lane = self._lanes[transactional_id] = _Lane()
        lane.busy = True

        def forgotten(result: Appended | Refused) -> None:
            if isinstance(result, Appended):
                del self._transactions[transactional_id], self._homes[transactional_id]
                self._callers.pop(transactional_id, None)
            lane.busy = False
            self._next(lane, transactional_id)

        partition.append_record(home.key, None, forgotten)


def _client_code(code: ErrorCode) -> ErrorCode:
    """What the client of a failed append hears: something it retries, here or at the next coordinator."""
    match code:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION | ErrorCode.NOT_ENOUGH_REPLICAS | ErrorCode.REQUEST_TIMED_OUT:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR:
            return ErrorCode.NOT_COORDINATOR
        case _:
            return ErrorCode.UNKNOWN_SERVER_ERROR
