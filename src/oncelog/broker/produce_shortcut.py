"""A produce like an earlier one of its connection, without being decoded again.

A producer sends frame after frame to the same partitions: between two of them only the correlation id and the records differ.
So the bytes in front of the records are looked up whole, and lead to the partition; the answer is the earlier one with other
numbers in it. That is half of what a small produce costs. Whatever is not exactly alike takes the usual way through the handler,
and so does everything that does not simply succeed: then nothing has been written yet. A transactional batch may have added its
partition to the transaction by then; to be asked for that once more changes nothing.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any

from oncelog.access.authorizer import Operation, Resource, topic
from oncelog.broker.dispatch import Route
from oncelog.broker.transactional_produce import admit_one
from oncelog.model.refused import Refused
from oncelog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from oncelog.records.batch import is_transactional
from oncelog.records.validation import FIRST_PRODUCE_VERSION_WITH_ZSTD

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node
    from oncelog.broker.partition import Partition

_INT = Struct(">i")
_LONG = Struct(">q")
_NUMBERS = Struct(">qqq")
#: Where the client's id begins: behind api key, version and correlation id.
_AFTER_CORRELATION = 8
_CORRELATION_IN_REPLY = 4
#: Empty tagged fields of partition, topic and request, behind the records of a flexible produce.
_NO_TAGS = b"\0\0\0"
FLEXIBLE_SINCE = 9
#: Numbers that stand nowhere else in an answer: where they are found, the real ones go.
_BASE_OFFSET, _APPEND_TIME, _LOG_START = 0x7EA1B2C3D4E5F607, 0x7EA1B2C3D4E5F618, 0x7EA1B2C3D4E5F629


class ProduceShortcuts:
    """The frames one connection has sent and may send again, by what stands in front of their records."""

    __slots__ = ("_by_prefix", "_prefix_ends")

    MOST = 1024
    #: Topics with names of so many lengths may alternate before the memory begins anew.
    MOST_LENGTHS = 4

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[int, bytes], _Alike] = {}
        self._prefix_ends: list[int] = []

    def take(self, node: "Node", caller: "Caller", frame: memoryview, version: int) -> bytes | None:
        """The whole answer; None if the frame must take the usual way."""
        for end in self._prefix_ends:
            alike = self._by_prefix.get((version, frame[_AFTER_CORRELATION:end].tobytes()))
            if alike is not None:
                break
        else:
            return None
        if version < FLEXIBLE_SINCE:
            if len(frame) < end + 4 or _INT.unpack_from(frame, end)[0] != len(frame) - end - 4:
                return None
            records = frame[end + 4 :]
        else:
            size, start = _read_size(frame, end)
            if start + size + len(_NO_TAGS) != len(frame) or frame[start + size :] != _NO_TAGS:
                return None
            records = frame[start : start + size]
        return alike.append(node, caller, frame, records)

    def learn(self, node: "Node", route: Route, frame: memoryview, request: Any, answer: Any) -> None:
        """Remember a produce that went through, if others like it can be taken short."""
        if route.version < FIRST_PRODUCE_VERSION_WITH_ZSTD or type(answer) is not ProduceResponse:
            return  # older versions have rules for what is inside the records
        if request.acks == 0:
            return
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        data = request.topic_data[0].partition_data[0]
        partition = node.partitions.get(answer.responses[0].name, data.index)
        acknowledged = getattr(partition, "acknowledges_at_once", False)
        if answer.responses[0].partition_responses[0].error_code or not acknowledged or not node.quotas.unlimited:
            return
        tail = len(_NO_TAGS) if route.version >= FLEXIBLE_SINCE else 0
        start = len(frame) - tail - len(data.records)
        end = start - (_size_of_size(len(data.records)) if tail else 4)
        prefix = (route.version, bytes(frame[_AFTER_CORRELATION:end]))
        known_length = end in self._prefix_ends
        if len(self._by_prefix) >= self.MOST or (not known_length and len(self._prefix_ends) >= self.MOST_LENGTHS):
            self._by_prefix.clear()
            self._prefix_ends.clear()
            known_length = False
        if not known_length:
            self._prefix_ends.append(end)
        self._by_prefix[prefix] = _Alike(route, request, answer.responses[0], partition)  # type: ignore[arg-type]


class _Alike:
    """All produces of one connection to one partition."""

    __slots__ = (
        "_acks",
        "_transactional_id",
        "_version",
        "_partition",
        "_resource",
        "_pack",
        "_head",
        "_middle",
        "_end",
    )

    def __init__(self, route: Route, request: Any, topic_answer: TopicProduceResponse, partition: "Partition") -> None:
        self._acks: int = request.acks
        self._transactional_id: str | None = request.transactional_id
        self._version = route.version
        self._partition = partition
        self._resource: Resource = topic(topic_answer.name)
        index = topic_answer.partition_responses[0].index
        marked = PartitionProduceResponse(
            index=index, base_offset=_BASE_OFFSET, log_append_time_ms=_APPEND_TIME, log_start_offset=_LOG_START
        )
        topics = [
            TopicProduceResponse(name=topic_answer.name, topic_id=topic_answer.topic_id, partition_responses=[marked])
        ]
        (reply,) = route.encode(ProduceResponse(responses=topics), bytearray(route.response_header.pack(0, 0)))
        _INT.pack_into(reply, 0, len(reply) - _INT.size)
        reply = bytes(reply)
        # From v5 on, and none older comes here, the three numbers stand side by side.
        numbers_at = reply.index(_NUMBERS.pack(_BASE_OFFSET, _APPEND_TIME, _LOG_START))
        self._head = reply[:_CORRELATION_IN_REPLY]
        self._middle = reply[_CORRELATION_IN_REPLY + 4 : numbers_at]
        self._end = reply[numbers_at + _NUMBERS.size :]
        self._pack = Struct(f">4s4s{len(self._middle)}sqqq{len(self._end)}s").pack

    def append(self, node: "Node", caller: "Caller", frame: memoryview, records: memoryview) -> bytes | None:
        if not node.access.may(caller.principal, Operation.WRITE, self._resource):
            return None
        if is_transactional(records) and not admit_one(
            node, caller, self._transactional_id, self._partition, records, self._version
        ):
            return None
        appended = self._partition.append(records, node.clock.now_ms(), acks=self._acks)
        if isinstance(appended, Refused):
            return None
        base_offset, _, append_time, log_start, _ = appended
        return self._pack(
            self._head, frame[4:8].tobytes(), self._middle, base_offset, append_time, log_start, self._end
        )


def _read_size(frame: memoryview, position: int) -> tuple[int, int]:
    """The size of the records and where they begin: an unsigned varint, one more than the size. -1 if there is none."""
    value = shift = 0
    while position < len(frame) and shift < 35:
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, position
        shift += 7
    return -1, position


def _size_of_size(size: int) -> int:
    return max(1, ((size + 1).bit_length() + 6) // 7)
