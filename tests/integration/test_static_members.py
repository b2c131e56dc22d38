"""Static members (KIP-345): a known instance that comes back in time gets its partitions without disturbing anybody."""

import time

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.members import MemberProcess, members, settle, share_evenly
from tests.integration.topics import MakeTopic

PARTITIONS = 4
# Long enough for a restart to happen within it.
PATIENT = {"session_timeout_ms": 6000}


@pytest.fixture
def wide_topic(make_topic: MakeTopic) -> str:
    return make_topic(PARTITIONS)


def instances(admin: AdminClient, group: str) -> dict[str | None, str]:
    description = admin.describe_consumer_groups([group])[group].result(20)
    return {member.group_instance_id: member.member_id for member in description.members}


def test_a_restarted_instance_gets_its_partitions_back_without_a_rebalance(
    bootstrap: str, wide_topic: str, group: str, admin: AdminClient
) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], group_instance_id="one", **PATIENT)
        second = join(bootstrap, group, [wide_topic], group_instance_id="two", **PATIENT)
        settle([first, second], share_evenly([first, second], PARTITIONS))
        before = second.partitions
        settled = list(first.events)
        member_id = instances(admin, group)["two"]

        second.close()
        again = join(bootstrap, group, [wide_topic], group_instance_id="two", **PATIENT)
        settle([first, again], share_evenly([first, again], PARTITIONS))

        assert again.partitions == before
        assert first.events == settled
        assert set(instances(admin, group)) == {"one", "two"}
        assert instances(admin, group)["two"] != member_id


def test_a_killed_instance_is_waited_for_and_then_given_up(bootstrap: str, wide_topic: str, group: str) -> None:
    with members() as join:
        survivor = join(bootstrap, group, [wide_topic], group_instance_id="survivor")
        settle([survivor], share_evenly([survivor], PARTITIONS))
        victim = MemberProcess(bootstrap, group, wide_topic, group_instance_id="victim")
        try:
            settle([survivor], lambda: len(survivor.partitions) == 2 and len(victim.partitions) == 2)
            settled = list(survivor.events)
            victim.kill()
            killed_at = time.monotonic()
            settle([survivor], lambda: len(survivor.partitions) == PARTITIONS)
            assert time.monotonic() - killed_at > 1.0
            assert survivor.events != settled
        finally:
            victim.end()


def test_a_second_process_with_the_same_instance_fences_the_first(bootstrap: str, wide_topic: str, group: str) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], group_instance_id="one")
        settle([first], share_evenly([first], PARTITIONS))
        second = join(bootstrap, group, [wide_topic], group_instance_id="one")
        settle([first, second], lambda: bool(first.errors) and len(second.partitions) == PARTITIONS)

        assert any(error.code() == confluent_kafka.KafkaError._FATAL for error in first.errors) or any(
            error.code() == confluent_kafka.KafkaError.FENCED_INSTANCE_ID for error in first.errors
        ), first.errors


def test_an_instance_can_be_removed_by_the_administrator(
    bootstrap: str, wide_topic: str, group: str, admin: AdminClient
) -> None:
    with members() as join:
        first = join(bootstrap, group, [wide_topic], group_instance_id="one", **PATIENT)
        gone = join(bootstrap, group, [wide_topic], group_instance_id="gone", **PATIENT)
        settle([first, gone], share_evenly([first, gone], PARTITIONS))
        # Closing a static member does not leave the group: its place is kept for the session timeout.
        gone.close()
        settle([first], lambda: True)
        assert set(instances(admin, group)) == {"one", "gone"}

        python = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            python.remove_group_members(group, [kafka.admin.MemberToRemove(group_instance_id="gone")])
        finally:
            python.close()
        settle([first], share_evenly([first], PARTITIONS), timeout_s=4)
        assert set(instances(admin, group)) == {"one"}
