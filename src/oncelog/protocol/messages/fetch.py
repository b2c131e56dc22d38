"""Fetch (1): read record batches, as a consumer or as a follower."""

from typing import Annotated

from oncelog.protocol.schema import (
    NO_ID,
    i8,
    i16,
    i32,
    i64,
    record_bytes,
    request,
    response,
    since,
    struct,
    tagged,
    until,
    uuid,
)


@struct
class ReplicaState:
    replica_id: i32 = -1
    replica_epoch: i64 = -1


@struct
class FetchPartition:
    partition: i32 = 0
    # KIP-320: fences a client or a leader with stale metadata.
    current_leader_epoch: Annotated[i32, since(9)] = -1
    fetch_offset: i64 = 0
    # KIP-595: the epoch of the last batch the reader has; the leader answers where the two logs part.
    last_fetched_epoch: Annotated[i32, since(12)] = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    partition_max_bytes: i32 = 0
    # KIP-853: the log directory the follower keeps it in.
    replica_directory_id: Annotated[uuid, tagged(0, since=17)] = NO_ID
    # KIP-1166: the follower's own, so that the leader can answer when it has a newer one.
    high_watermark: Annotated[i64, tagged(1, since=18)] = 2**63 - 1


@struct
class FetchTopic:
    topic: Annotated[str, until(12)] = ""
    # KIP-516: topics go by id from here on.
    topic_id: Annotated[uuid, since(13)] = NO_ID
    partitions: list[FetchPartition] = []


@struct
class ForgottenTopic:
    topic: Annotated[str, until(12)] = ""
    # KIP-516: topics go by id from here on.
    topic_id: Annotated[uuid, since(13)] = NO_ID
    partitions: list[i32] = []


@request(key=1, versions=(4, 18), flexible_since=12)
class FetchRequest:
    """Sessions (v7+, KIP-227): an incremental fetch names only the partitions that changed."""

    cluster_id: Annotated[str | None, tagged(0, since=12)] = None
    # -1: a consumer.
    replica_id: Annotated[i32, until(14)] = -1
    # KIP-903: a follower also says which of its lives is asking.
    replica_state: Annotated[ReplicaState | None, tagged(1, since=15)] = None
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 2**31 - 1
    isolation_level: i8 = 0
    session_id: Annotated[i32, since(7)] = 0
    # 0 opens a session, each fetch in it counts up, and -1 is a fetch without one (or the last of one).
    session_epoch: Annotated[i32, since(7)] = -1
    topics: list[FetchTopic] = []
    # What to drop from the session.
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    # KIP-392: lets a consumer read from a replica near by.
    rack_id: Annotated[str, since(11)] = ""


@struct
class EpochEndOffset:
    epoch: i32 = -1
    end_offset: i64 = -1


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class SnapshotId:
    end_offset: i64 = -1
    epoch: i32 = -1


@struct
class AbortedTransaction:
    producer_id: i64 = 0
    first_offset: i64 = 0


@struct
class PartitionData:
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0
    last_stable_offset: i64 = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    # KIP-595: where the reader's log leaves the leader's; it truncates there.
    diverging_epoch: Annotated[EpochEndOffset | None, tagged(0, since=12)] = None
    # KIP-951: where to go instead.
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(1, since=12)] = None
    snapshot_id: Annotated[SnapshotId | None, tagged(2, since=12)] = None
    # Null under read_uncommitted; else the aborted transactions that reach into these records.
    aborted_transactions: list[AbortedTransaction] | None = []
    # KIP-392: -1, or the replica to read from instead.
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: record_bytes = None


@struct
class FetchableTopicResponse:
    topic: Annotated[str, until(12)] = ""
    # KIP-516: topics go by id from here on.
    topic_id: Annotated[uuid, since(13)] = NO_ID
    partitions: list[PartitionData] = []


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@response(to=FetchRequest)
class FetchResponse:
    throttle_time_ms: i32 = 0
    # About the session as a whole.
    error_code: Annotated[i16, since(7)] = 0
    session_id: Annotated[i32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    # KIP-951: addresses of the leaders named above.
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=16)] = []
