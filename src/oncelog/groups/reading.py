"""Reading a group's offsets (OffsetFetch).

A consumer that takes part in exactly-once processing must not start from an offset that an open transaction is about to
replace: with `require_stable` it is told UNSTABLE_OFFSET_COMMIT and asks again (KIP-447).
"""

from collections.abc import Iterable
from typing import NamedTuple

from oncelog.groups.group_records import CommittedOffset
from oncelog.groups.shard import Shard
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition

NO_OFFSET = CommittedOffset(-1)


class FetchedOffset(NamedTuple):
    topic_partition: TopicPartition
    committed: CommittedOffset
    error: ErrorCode = ErrorCode.NONE


def read_offsets(
    shard: Shard, group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
) -> list[FetchedOffset]:
    """Of these partitions; of all the group has offsets for if None."""
    standing = shard.offsets(group_id)
    fetched = []
    for position in standing if partitions is None else partitions:
        if require_stable and shard.pending.has(group_id, position):
            fetched.append(FetchedOffset(position, NO_OFFSET, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif position in standing:
            fetched.append(FetchedOffset(position, standing[position].committed))
        else:
            fetched.append(FetchedOffset(position, NO_OFFSET))
    return fetched
