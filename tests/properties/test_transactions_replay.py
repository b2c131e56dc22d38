"""Any history of a transactional id: what is stored says it all, and nobody is told two outcomes."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from oncelog.model.producer_identity import NO_PRODUCER_EPOCH, ProducerIdentity
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.adding import AddPartitions, decide_add
from oncelog.transactions.decision import AbortFirst, Decision, NeedProducerId, Wait
from oncelog.transactions.ending import End, complete, decide_end, fence
from oncelog.transactions.initialising import Initialise, decide_initialise
from oncelog.transactions.states import State
from oncelog.transactions.transaction import Transaction
from oncelog.transactions.transaction_records import decode_value, encode_value

ID = "billing"
PARTITIONS = [TopicPartition("orders", index) for index in range(3)]


class Coordinator:
    """The rules with a list for a log: what the shell does, without anything to wait for."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.known: Transaction | None = None
        self.log: list[bytes] = []
        self.next_producer_id = 100
        #: (producer id, epoch) of every identity that was given out, in order.
        self.given: list[ProducerIdentity] = []
        self.markers: list[tuple[ProducerIdentity, bool]] = []

    def store(self, transaction: Transaction) -> None:
        self.log.append(encode_value(transaction))
        self.known = transaction

    def finish(self) -> None:
        if self.known is not None and self.known.is_prepared:
            self.markers.append((self.known.identity, self.known.commits))
            self.store(complete(self.known, self.now_ms))

    def run(self, command):
        self.now_ms += 1
        while True:
            match command:
                case Initialise():
                    conclusion = decide_initialise(self.known, command, 900_000, self.now_ms)
                case AddPartitions():
                    conclusion = decide_add(self.known, command, self.now_ms)
                case _:
                    conclusion = decide_end(self.known, command, self.now_ms)
            match conclusion:
                case NeedProducerId():
                    command = command._replace(new_producer_id=self.next_producer_id)
                    self.next_producer_id += 1
                case Wait():
                    self.finish()
                case AbortFirst(prepared):
                    self.store(prepared)
                    self.finish()
                case Decision(_, transaction):
                    if transaction is not None:
                        self.store(transaction)
                    return conclusion
                case _:
                    return conclusion

    def restart(self) -> None:
        """Forget everything but the log, and go on with what was prepared."""
        self.known = decode_value(ID, self.log[-1]) if self.log else None
        self.finish()


identities = st.integers(0, 5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("initialise"), st.sampled_from([0, 2]), st.none() | identities),
        st.tuples(st.just("add"), identities, st.sampled_from(PARTITIONS), st.sampled_from([0, 2])),
        st.tuples(st.just("end"), identities, st.booleans(), st.sampled_from([0, 2])),
        st.tuples(st.just("markers")),
        st.tuples(st.just("timeout")),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


def somebody(coordinator: Coordinator, age: int) -> ProducerIdentity:
    """The identity given out `age` times ago; a made-up one if there is none."""
    return coordinator.given[-1 - age] if age < len(coordinator.given) else ProducerIdentity(1, age)


def take(coordinator: Coordinator, step) -> None:
    match step:
        case ("initialise", version, age):
            expected = None if age is None else somebody(coordinator, age)
            answer = coordinator.run(Initialise(ID, 60_000, expected, client_version=version))
            if isinstance(answer, Decision) and answer.transaction is not None:
                fresh = answer.reply
                assert fresh not in coordinator.given, "an identity is given out once"
                for old in coordinator.given:
                    assert fresh.producer_id != old.producer_id or fresh.producer_epoch > old.producer_epoch
                coordinator.given.append(fresh)
        case ("add", age, partition, version):
            coordinator.run(AddPartitions(ID, somebody(coordinator, age), frozenset({partition}), version))
        case ("end", age, committed, version):
            before = coordinator.known
            answer = coordinator.run(End(ID, somebody(coordinator, age), committed, version))
            if isinstance(answer, Decision) and answer.transaction is not None:
                assert before is not None
                if version == 2:
                    coordinator.given.append(answer.reply)
        case ("markers",):
            coordinator.finish()
        case ("timeout",):
            if coordinator.known is not None and coordinator.known.state is State.ONGOING:
                coordinator.store(fence(coordinator.known, coordinator.now_ms))
        case ("restart",):
            coordinator.restart()


@given(steps)
@settings(max_examples=300)
def test_replay_rebuilds_the_live_state(history):
    coordinator = Coordinator()
    for step in history:
        take(coordinator, step)
        if coordinator.known is not None:
            # The epoch before the last is for telling repeats, and is not stored (as in Kafka).
            live = coordinator.known._replace(last_producer_epoch=NO_PRODUCER_EPOCH)
            assert decode_value(ID, coordinator.log[-1]) == live


@given(steps)
@settings(max_examples=300)
def test_every_stored_step_is_in_the_table_and_an_outcome_never_changes(history):
    coordinator = Coordinator()
    for step in history:
        take(coordinator, step)
    stored = [decode_value(ID, value) for value in coordinator.log]
    for before, after in pairwise(stored):
        if before.is_prepared:
            assert after.commits is before.commits
            assert after.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    outcomes = [commits for _, commits in coordinator.markers]
    assert outcomes == [after.commits for before, after in pairwise(stored) if before.is_prepared]


@given(steps)
@settings(max_examples=300)
def test_only_the_latest_identity_can_change_anything(history):
    coordinator = Coordinator()
    for step in history:
        take(coordinator, step)
    for old in coordinator.given[:-1]:
        for command in (
            AddPartitions(ID, old, frozenset(PARTITIONS)),
            End(ID, old, True, 0),
            End(ID, old, False, 2),
        ):
            count = len(coordinator.log)
            state = coordinator.known
            coordinator.run(command)
            grown = len(coordinator.log) - count
            # Finishing what was already prepared is all that an old identity may set off.
            assert grown == (1 if state is not None and state.is_prepared and coordinator.known != state else 0)
