"""A group's position in one partition, as `__consumer_offsets` keeps it."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i32, i64, since, stored, tagged, until, uuid


@stored(versions=(0, 1))
class OffsetCommitKey:
    """The version in front of a key tells its kind: 0 and 1 are offsets, 2 is a group."""

    group: str = ""
    topic: str = ""
    partition: i32 = 0


@stored(versions=(0, 4), flexible_since=4)
class OffsetCommitValue:
    """v1 alone has an expiry of its own: for clients that still set a retention time."""

    offset: i64 = 0
    leader_epoch: Annotated[i32, since(3)] = -1
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: Annotated[i64, since(1), until(1)] = -1
    topic_id: Annotated[uuid, tagged(0, since=4)] = NO_ID
