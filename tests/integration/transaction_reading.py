"""Reading what transactions left behind: fetches with bounds and aborted lists, committed offsets, the filter of a consumer.

The filter is written down here once more on purpose: it is what the broker's answers have to be good for.
"""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from oncelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from oncelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from oncelog.records.batch import BatchHeader, batches
from oncelog.records.control import ControlType, read_control_record
from oncelog.records.record import read_records
from tests.integration.raw_connection import RawConnection

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FETCH_VERSION = 12
LATEST = -1


@dataclass(frozen=True, slots=True)
class Batch:
    header: BatchHeader
    values: list[bytes]
    #: None for data.
    marker: ControlType | None


@dataclass(frozen=True, slots=True)
class Fetched:
    code: ErrorCode
    high_watermark: int
    last_stable_offset: int
    #: (producer id, first offset) of each aborted transaction; None under read_uncommitted.
    aborted: list[tuple[int, int]] | None
    batches: list[Batch]

    def delivered(self) -> list[bytes]:
        """What a consumer hands out of this answer (MISSION X3)."""
        waiting = sorted(self.aborted or [], key=lambda transaction: transaction[1])
        aborted: set[int] = set()
        values: list[bytes] = []
        for batch in self.batches:
            header = batch.header
            while waiting and waiting[0][1] <= header.last_offset:
                aborted.add(waiting.pop(0)[0])
            if batch.marker is not None:
                if batch.marker is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                values += batch.values
        return values

    @property
    def next_offset(self) -> int:
        return self.batches[-1].header.next_offset


def fetch_request(
    partition: TopicPartition,
    offset: int = 0,
    isolation: int = READ_COMMITTED,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 26,
) -> FetchRequest:
    wanted = FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 30,
        isolation_level=isolation,
        topics=[FetchTopic(topic=partition.topic, partitions=[wanted])],
    )


def read_answer(answer: FetchResponse) -> Fetched:
    (data,) = answer.responses[0].partitions
    records = bytes(data.records or b"")
    found = []
    for position, header in batches(records):
        marker = read_control_record(records, position).type if header.is_control else None
        values = [] if header.is_control else [record.value or b"" for record in read_records(records, position)]
        found.append(Batch(header, values, marker))
    aborted = data.aborted_transactions
    return Fetched(
        ErrorCode(data.error_code),
        data.high_watermark,
        data.last_stable_offset,
        None if aborted is None else [(transaction.producer_id, transaction.first_offset) for transaction in aborted],
        found,
    )


def fetch(
    connection: RawConnection,
    partition: TopicPartition,
    offset: int = 0,
    isolation: int = READ_COMMITTED,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 26,
) -> Fetched:
    asked = fetch_request(
        partition, offset, isolation, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes
    )
    return read_answer(connection.call(asked, FETCH_VERSION, FetchResponse))


def read_partition(
    connection: RawConnection,
    partition: TopicPartition,
    isolation: int = READ_COMMITTED,
    *,
    offset: int = 0,
    max_bytes: int = 1 << 26,
) -> list[bytes]:
    """All a consumer gets of the partition as it is now."""
    values: list[bytes] = []
    while True:
        fetched = fetch(connection, partition, offset, isolation, max_bytes=max_bytes)
        assert fetched.code is ErrorCode.NONE, fetched.code
        if not fetched.batches:
            return values
        values += fetched.delivered()
        offset = fetched.next_offset


def end_offset(connection: RawConnection, partition: TopicPartition, isolation: int) -> int:
    asked = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=partition.topic,
                partitions=[ListOffsetsPartition(partition_index=partition.partition, timestamp=LATEST)],
            )
        ],
    )
    (found,) = connection.call(asked, 5, ListOffsetsResponse).topics[0].partitions
    assert found.error_code == 0, found.error_code
    return found.offset


def committed_offset(
    connection: RawConnection, group: str, partition: TopicPartition, *, require_stable: bool = True
) -> int | ErrorCode:
    """The group's offset, -1 if it has none, or why it is not told."""
    asked = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])],
            )
        ],
        require_stable=require_stable,
    )
    (answer,) = connection.call(asked, 8, OffsetFetchResponse).groups
    if answer.error_code:
        return ErrorCode(answer.error_code)
    (found,) = answer.topics[0].partitions
    return ErrorCode(found.error_code) if found.error_code else found.committed_offset


def wait_until_stable(connection: RawConnection, *partitions: TopicPartition, within_s: float = 10.0) -> None:
    """No transaction holds readers back: the last stable offset has reached the high watermark."""
    deadline = time.monotonic() + within_s
    for partition in partitions:
        while True:
            fetched = fetch(connection, partition)
            if fetched.code is ErrorCode.NONE and fetched.last_stable_offset == fetched.high_watermark:
                break
            assert time.monotonic() < deadline, (
                f"{partition}: the last stable offset stays at {fetched.last_stable_offset}, "
                f"the high watermark is {fetched.high_watermark}"
            )
            time.sleep(0.01)


def stored_bytes(directory: Path) -> bytes:
    """What a partition's segments hold. Compaction may take a file away between two looks."""
    found = []
    for file in sorted(directory.glob("*.log")):
        with contextlib.suppress(FileNotFoundError):
            found.append(file.read_bytes())
    return b"".join(found)
