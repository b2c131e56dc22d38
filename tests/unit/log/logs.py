"""Logs on a real disk in a temporary directory, and batches to fill them with."""

from collections.abc import Iterable, Iterator
from typing import Any

from oncelog.log.log_config import LogConfig
from oncelog.log.partition_log import Appended, PartitionLog
from oncelog.log.reading import Read
from oncelog.log.storage import Disk
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.builder import build_batch
from oncelog.records.control import end_transaction_marker
from oncelog.records.record import Record, read_all_records

NOW = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
DIRECTORY = "orders-0"


def open_log(
    disk: Disk,
    *,
    clean: bool = False,
    now_ms: int = NOW,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    **config: Any,
) -> PartitionLog:
    """Small segments and dense indexes unless told otherwise: what is rare in a large log happens often here."""
    settings: dict[str, Any] = {"segment_bytes": 1000, "index_interval_bytes": 100} | config
    return PartitionLog.open(
        disk,
        DIRECTORY,
        ORDERS,
        LogConfig(**settings),
        now_ms,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    )


def batch(*values: bytes, timestamp_ms: int = NOW, **fields: Any) -> bytearray:
    """One batch with a record per value."""
    return bytearray(build_batch([(None, value) for value in values], timestamp_ms=timestamp_ms, **fields))


def append(log: PartitionLog, *values: bytes, leader_epoch: int = 0, acknowledge: bool = True, **fields: Any) -> int:
    """Append one batch and let it be acknowledged. Its base offset."""
    appended = log.append_as_leader(memoryview(batch(*values, **fields)), leader_epoch, NOW)
    assert isinstance(appended, Appended), appended
    if acknowledge:
        log.advance_high_watermark(log.log_end_offset)
    return appended.base_offset


def produce(
    log: PartitionLog, sequence: int, *values: bytes, producer_id: int = 7, epoch: int = 0, **fields: Any
) -> Any:
    """What an idempotent producer's batch is answered with."""
    data = batch(*(values or (b"x",)), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)
    answer = log.append_as_leader(memoryview(data), 0, NOW)
    log.advance_high_watermark(log.log_end_offset)
    return answer


def end(log: PartitionLog, *, producer_id: int = 7, epoch: int = 0, commit: bool, coordinator_epoch: int = 0) -> Any:
    """What a transaction's marker is answered with."""
    marker = end_transaction_marker(producer_id, epoch, commit, coordinator_epoch, NOW)
    answer = log.append_as_leader(marker, 0, NOW, from_client=False)
    log.advance_high_watermark(log.log_end_offset)
    return answer


def refusal(answer: object) -> ErrorCode | None:
    return answer.code if isinstance(answer, Refused) else None


def records(log: PartitionLog, from_offset: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    """Every record from an offset to the end, read as a consumer reads: where one read stops the next goes on."""
    return [record for read in reads(log, from_offset, max_bytes) for record in read_all_records(read.records)]


def reads(log: PartitionLog, from_offset: int | None = None, max_bytes: int = 1 << 20) -> Iterator[Read]:
    offset = log.log_start_offset if from_offset is None else from_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes, log.log_end_offset, True)
        assert isinstance(read, Read), read
        assert read.next_offset > offset
        yield read
        offset = read.next_offset


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in records(log)]


def fill(log: PartitionLog, count: int, size: int = 40) -> list[bytes]:
    """Append that many batches of one record each; what they hold."""
    contents = [b"%06d" % number + b"." * size for number in range(log.log_end_offset, log.log_end_offset + count)]
    for content in contents:
        append(log, content)
    return contents


def offsets(found: Iterable[Record]) -> list[int]:
    return [record.offset for record in found]
