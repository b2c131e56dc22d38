"""The group APIs over a real connection, with the few fields a test wants to vary."""

from typing import Any

from oncelog.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from oncelog.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from oncelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from oncelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from oncelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from oncelog.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from oncelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from oncelog.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from oncelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from oncelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.integration.raw_connection import RawConnection
from tests.unit.groups.rehearsal import subscription


class GroupWire(RawConnection):
    def join_request(
        self,
        group_id: str,
        member_id: str = "",
        *,
        instance: str | None = None,
        offers: tuple[str, ...] = ("range",),
        topics: tuple[str, ...] = ("t",),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 3_000,
    ) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=subscription(*topics)) for name in offers],
        )

    def join(self, group_id: str, member_id: str = "", version: int = 9, **fields: Any) -> JoinGroupResponse:
        return self.call(self.join_request(group_id, member_id, **fields), version, JoinGroupResponse)

    def sync(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        version: int = 5,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=part)
                for each, part in (assignments or {}).items()
            ],
        )
        return self.call(request, version, SyncGroupResponse)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance: str | None = None) -> int:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.call(request, 4, HeartbeatResponse).error_code

    def leave(self, group_id: str, *members: tuple[str, str | None], version: int = 5) -> LeaveGroupResponse:
        identities = [MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members]
        alone = members[0][0] if members else ""
        request = LeaveGroupRequest(group_id=group_id, member_id=alone, members=identities)
        return self.call(request, version, LeaveGroupResponse)

    def commit(
        self,
        group_id: str,
        generation: int = -1,
        member_id: str = "",
        *,
        topic: str = "t",
        topic_id: bytes = bytes(16),
        partition: int = 0,
        offset: int = 5,
        metadata: str | None = "",
        version: int = 9,
        instance: str | None = None,
        retention_ms: int = -1,
    ) -> int:
        """The error of the one partition."""
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=0,
                committed_metadata=metadata,
            )
        ]
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=partitions)],
        )
        return self.call(request, version, OffsetCommitResponse).topics[0].partitions[0].error_code

    def fetch(
        self, group_id: str, topics: dict[str, list[int]] | None = None, *, version: int = 7, stable: bool = False
    ) -> OffsetFetchResponse:
        wanted = None
        if topics is not None:
            wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        request = OffsetFetchRequest(group_id=group_id, topics=wanted, require_stable=stable)
        return self.call(request, version, OffsetFetchResponse)

    def fetch_groups(
        self, groups: dict[str, dict[str | bytes, list[int]] | None], *, version: int = 8
    ) -> list[OffsetFetchResponseGroup]:
        """By topic name, or by topic id in version 10."""
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if topics is None
                    else [
                        OffsetFetchRequestTopics(name=key, partition_indexes=indexes)
                        if isinstance(key, str)
                        else OffsetFetchRequestTopics(topic_id=key, partition_indexes=indexes)
                        for key, indexes in topics.items()
                    ],
                )
                for group_id, topics in groups.items()
            ]
        )
        return self.call(request, version, OffsetFetchResponse).groups

    def offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """All offsets of a group."""
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in self.fetch(group_id).topics
            for partition in topic.partitions
        }

    def delete_offsets(self, group_id: str, topics: dict[str, list[int]]) -> OffsetDeleteResponse:
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
                )
                for name, indexes in topics.items()
            ],
        )
        return self.call(request, 0, OffsetDeleteResponse)

    def delete_groups(self, *group_ids: str) -> dict[str, int]:
        answer = self.call(DeleteGroupsRequest(groups_names=list(group_ids)), 2, DeleteGroupsResponse)
        return {result.group_id: result.error_code for result in answer.results}

    def describe(self, group_id: str, version: int = 5) -> DescribedGroup:
        return self.call(DescribeGroupsRequest(groups=[group_id]), version, DescribeGroupsResponse).groups[0]

    def list_groups(self, version: int = 5, **filters: list[str]) -> list[ListedGroup]:
        return self.call(ListGroupsRequest(**filters), version, ListGroupsResponse).groups

    # Stories

    def dynamic_member(self, group_id: str, **fields: Any) -> str:
        """An id of its own, not yet joined."""
        given = self.join(group_id, **fields)
        assert given.error_code == 79
        return given.member_id

    def stable_member(self, group_id: str, **fields: Any) -> str:
        """The one member of a stable group, in generation 1, with the assignment b"part"."""
        member_id = self.dynamic_member(group_id, **fields)
        joined = self.join(group_id, member_id, **fields)
        assert (joined.error_code, joined.generation_id) == (0, 1)
        assert self.sync(group_id, 1, member_id, {member_id: b"part"}).error_code == 0
        return member_id
