"""Consumer groups that grow, shrink, crash and rejoin."""

import asyncio
import subprocess
import threading
import time
from collections.abc import Iterator

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer

from tests.integration.clients import BY_NAME, Message, with_kcat
from tests.integration.members import MemberProcess, members, settle, share_evenly
from tests.integration.topics import MakeTopic

PARTITIONS = 6
ASSIGNORS = ["range", "roundrobin", "cooperative-sticky"]


@pytest.fixture
def wide_topic(make_topic: MakeTopic) -> str:
    return make_topic(PARTITIONS)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_group_grows_and_shrinks(bootstrap: str, wide_topic: str, group: str, assignor: str) -> None:
    with members() as join:
        team = []
        for _ in range(3):
            team.append(join(bootstrap, group, [wide_topic], partition_assignment_strategy=assignor))
            settle(team, share_evenly(team, PARTITIONS))

        while len(team) > 1:
            team.pop(0).close()
            settle(team, share_evenly(team, PARTITIONS))


def test_more_members_than_partitions(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(2)
    with members() as join:
        team = [join(bootstrap, group, [topic]) for _ in range(4)]
        settle(team, share_evenly(team, 2))
        assert sorted(len(member.partitions) for member in team) == [0, 0, 1, 1]

        next(member for member in team if member.partitions).close()
        left = [member for member in team if not member.closed]
        settle(left, share_evenly(left, 2))


def test_cooperative_members_keep_what_they_have_when_another_joins(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], partition_assignment_strategy="cooperative-sticky")
        settle([first], share_evenly([first], PARTITIONS))
        second = join(bootstrap, group, [wide_topic], partition_assignment_strategy="cooperative-sticky")
        settle([first, second], share_evenly([first, second], PARTITIONS))

        revoked = [partitions for what, partitions in first.events if what == "revoked"]
        assert sum(len(partitions) for partitions in revoked) == PARTITIONS // 2
        assert frozenset().union(*revoked) == second.partitions


def test_eager_members_give_up_everything_when_another_joins(bootstrap: str, wide_topic: str, group: str) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], partition_assignment_strategy="range")
        settle([first], share_evenly([first], PARTITIONS))
        second = join(bootstrap, group, [wide_topic], partition_assignment_strategy="range")
        settle([first, second], share_evenly([first, second], PARTITIONS))

        assert ("revoked", frozenset(range(PARTITIONS))) in first.events


def test_a_member_without_a_common_assignor_is_refused(bootstrap: str, wide_topic: str, group: str) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], partition_assignment_strategy="range")
        settle([first], share_evenly([first], PARTITIONS))
        stranger = join(bootstrap, group, [wide_topic], partition_assignment_strategy="roundrobin")
        settle([first, stranger], lambda: bool(stranger.errors))

        assert stranger.errors[0].code() == confluent_kafka.KafkaError.INCONSISTENT_GROUP_PROTOCOL
        assert first.partitions == frozenset(range(PARTITIONS))


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_partitions_of_a_killed_member_move_on_and_come_back(
    bootstrap: str, wide_topic: str, group: str, assignor: str
) -> None:
    with members() as join:
        survivor = join(bootstrap, group, [wide_topic], partition_assignment_strategy=assignor)
        settle([survivor], share_evenly([survivor], PARTITIONS))
        for _ in range(2):
            victim = MemberProcess(bootstrap, group, wide_topic, partition_assignment_strategy=assignor)
            try:
                settle([survivor], lambda: len(survivor.partitions) == 3 and len(victim.partitions) == 3)  # noqa: B023
                assert not survivor.partitions & victim.partitions
                victim.kill()
                killed_at = time.monotonic()
                settle([survivor], share_evenly([survivor], PARTITIONS))
                # Not before its session has run out: until then it may be alive behind a slow network.
                assert time.monotonic() - killed_at > 1.0
            finally:
                victim.end()


def test_every_message_is_read_once_while_members_come_and_go(bootstrap: str, wide_topic: str, group: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for number in range(sent, sent + count):
            producer.produce(wide_topic, b"%d" % number, partition=number % PARTITIONS)
        sent += count
        assert producer.flush(20) == 0

    with members() as join:
        team = [join(bootstrap, group, [wide_topic])]
        everybody = list(team)

        def read() -> int:
            return sum(len(member.received) for member in everybody)

        send(120)
        settle(team, lambda: read() == sent)
        for _ in range(2):
            team.append(join(bootstrap, group, [wide_topic]))
            everybody.append(team[-1])
            send(60)
            settle(team, lambda: read() >= sent and share_evenly(team, PARTITIONS)())
        team.pop(0).close()
        send(120)
        settle(team, lambda: read() >= sent and share_evenly(team, PARTITIONS)())

        numbers = [int(message.value or b"") for member in everybody for message in member.received]
        assert sorted(numbers) == list(range(sent))


def test_a_new_partition_is_found_by_the_group(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(1)
    with members() as join:
        member = join(bootstrap, group, [topic], topic_metadata_refresh_interval_ms=200)
        settle([member], share_evenly([member], 1))
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        admin.create_partitions([confluent_kafka.admin.NewPartitions(topic, 3)])[topic].result(20)
        settle([member], share_evenly([member], 3))


def test_a_topic_that_matches_the_pattern_is_found_by_the_group(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    first = make_topic(prefix=f"pattern-{group}")
    with members() as join:
        member = join(bootstrap, group, [f"^pattern-{group}.*"], topic_metadata_refresh_interval_ms=200)
        settle([member], lambda: {at.topic for at in member.consumer.assignment()} == {first})
        second = make_topic(prefix=f"pattern-{group}")
        settle([member], lambda: {at.topic for at in member.consumer.assignment()} == {first, second})


class PollingThread:
    """kafka-python's consumer in a thread of its own: its poll may wait for the others to join."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.partitions: frozenset[int] = frozenset()
        self._consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            session_timeout_ms=3000,
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        )
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            self._consumer.poll(50)
            self.partitions = frozenset(at.partition for at in self._consumer.assignment())
        self._consumer.close()

    def close(self) -> None:
        self._end.set()
        self._thread.join()


@pytest.fixture
def polling_thread(bootstrap: str, group: str, wide_topic: str) -> Iterator[PollingThread]:
    thread = PollingThread(bootstrap, group, wide_topic)
    yield thread
    thread.close()


def test_members_of_three_libraries_share_one_group(
    bootstrap: str, wide_topic: str, group: str, polling_thread: PollingThread
) -> None:
    async def run() -> None:
        third = AIOKafkaConsumer(
            wide_topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            session_timeout_ms=3000,
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        )
        starting = asyncio.ensure_future(third.start())
        with members() as join:
            first = join(bootstrap, group, [wide_topic], partition_assignment_strategy="roundrobin,range")
            deadline = time.monotonic() + 40
            while True:
                assert time.monotonic() < deadline, (first.partitions, polling_thread.partitions)
                first.poll()
                await asyncio.sleep(0.02)
                if starting.done():
                    starting.result()
                    await third.getmany(timeout_ms=10)
                shares = [first.partitions, polling_thread.partitions, {at.partition for at in third.assignment()}]
                if [len(share) for share in shares] == [2, 2, 2]:
                    break
            assert frozenset().union(*shares) == frozenset(range(PARTITIONS))
        await third.stop()

    asyncio.run(run())


@with_kcat
def test_kcat_reads_as_a_group_member(bootstrap: str, wide_topic: str, group: str) -> None:
    for partition in range(PARTITIONS):
        BY_NAME["kcat"].produce(bootstrap, wide_topic, [Message(b"%d" % partition)], partition=partition)
    command = ["kcat", "-b", bootstrap, "-G", group, wide_topic, "-X", "auto.offset.reset=earliest", "-c", "6", "-q"]
    done = subprocess.run(command, capture_output=True, timeout=30, text=True)
    assert sorted(done.stdout.split()) == [str(partition) for partition in range(PARTITIONS)], done.stderr
