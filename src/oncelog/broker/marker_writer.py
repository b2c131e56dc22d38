"""Writing transaction markers into the partitions this node leads (MISSION T10).

One control batch per (producer, partition). For `__consumer_offsets` the marker also decides over that producer's pending
offsets: the group coordinator publishes or drops them before the answer says that the marker is there.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from oncelog.broker.fail_points import reach
from oncelog.cluster.topic import CONSUMER_OFFSETS
from oncelog.log.partition_log import Appended
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.records.control import ControlRecord, ControlType
from oncelog.transactions.markers import Marker

if TYPE_CHECKING:
    from oncelog.broker.node import Node


def write_marker(
    node: "Node", marker: Marker, topic_partition: TopicPartition, done: Callable[[ErrorCode], None]
) -> None:
    """Append one marker; `done` hears the outcome once it is acknowledged and its offsets are decided."""
    found = node.partitions.get(topic_partition.topic, topic_partition.partition)
    if isinstance(found, Refused):
        done(found.code)
        return

    def appended(result: Appended | Refused) -> None:
        if isinstance(result, Refused):
            done(result.code)
            return
        if topic_partition.topic == CONSUMER_OFFSETS:
            node.groups.end_transaction(topic_partition.partition, marker.producer_id, committed=marker.committed)
        done(ErrorCode.NONE)

    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    found.append_end_marker(
        ProducerIdentity(marker.producer_id, marker.producer_epoch),
        ControlRecord(kind, marker.coordinator_epoch),
        marker.transaction_version,
        appended,
    )


#: The outcome per (producer id, partition).
Codes = dict[tuple[int, TopicPartition], ErrorCode]


def write_markers(node: "Node", markers: list[Marker], done: Callable[[Codes], None]) -> None:
    """Append the markers of one request; `done` hears all outcomes when the last is in."""
    codes: Codes = {}
    missing = sum(len(marker.partitions) for marker in markers)
    if not missing:
        done(codes)

    def note(key: tuple[int, TopicPartition], code: ErrorCode) -> None:
        nonlocal missing
        codes[key] = code
        missing -= 1
        if not missing:
            done(codes)

    for marker in markers:
        for number, partition in enumerate(marker.partitions):
            if number:
                reach("between markers")
            write_marker(node, marker, partition, partial(note, (marker.producer_id, partition)))
