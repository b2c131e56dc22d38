"""Incremental fetch sessions (KIP-227): a wide consumer names its partitions once, and then only what changes.

The broker remembers per session what was asked for and what was last answered. A full fetch is always legal, so a session
may be dropped at any time; the client then hears FETCH_SESSION_ID_NOT_FOUND and names everything again.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
TOPIC_ID_SINCE = 13

#: A topic as the request names it (name or id) and a partition of it.
PartitionKey = tuple[str | bytes, int]


class Wanted:
    """One partition a fetch asks for, and what its session was last told of it."""

    __slots__ = ("topic", "asked", "told_high_watermark", "told_last_stable_offset", "told_log_start_offset")

    def __init__(self, topic: str | bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.asked = asked
        self.told_high_watermark = -1
        self.told_last_stable_offset = -1
        self.told_log_start_offset = -1

    def is_news(self, data: PartitionData) -> bool:
        """Whether an incremental answer must mention the partition; remembers what it is told."""
        changed = (
            bool(data.records)
            or data.error_code != 0
            or data.high_watermark != self.told_high_watermark
            or data.last_stable_offset != self.told_last_stable_offset
            or data.log_start_offset != self.told_log_start_offset
            or data.diverging_epoch is not None
        )
        # An error is told again until it is gone: the client may not have acted on the first one.
        if data.error_code == 0:
            self.told_high_watermark = data.high_watermark
            self.told_last_stable_offset = data.last_stable_offset
            self.told_log_start_offset = data.log_start_offset
        else:
            self.told_high_watermark = -1
        return changed


class FetchSession:
    __slots__ = ("session_id", "epoch", "by_topic_id", "wanted", "used_ms")

    def __init__(self, session_id: int, by_topic_id: bool, wanted: "dict[PartitionKey, Wanted]", now_ms: int) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.by_topic_id = by_topic_id
        self.wanted = wanted
        self.used_ms = now_ms

    def move_to_end(self, key: PartitionKey) -> None:
        """Who just got data stands behind the others next time, so that a busy partition starves nobody."""
        self.wanted[key] = self.wanted.pop(key)


class FetchContext:
    """What one fetch asks for, and how its answer is to be shaped."""

    __slots__ = ("session", "incremental", "wanted")

    def __init__(self, session: FetchSession | None, incremental: bool, wanted: "dict[PartitionKey, Wanted]") -> None:
        self.session = session
        self.incremental = incremental
        self.wanted = wanted

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.session_id


class FetchSessions:
    __slots__ = ("_slots", "_evict_after_ms", "_sessions", "_new_id")

    def __init__(self, slots: int, evict_after_ms: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._new_id = new_id

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext | Refused:
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            wanted = {(topic, asked.partition): Wanted(topic, asked) for topic, asked in named(request, version)}
            session = None
            if request.session_epoch == INITIAL_EPOCH and version >= 7 and wanted:
                session = self._open(wanted, version >= TOPIC_ID_SINCE, now_ms)
            return FetchContext(session, False, wanted)
        return self._continue(request, version, now_ms)

    def _continue(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext | Refused:
        session = self._sessions.get(request.session_id)
        if session is None:
            return Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "this fetch session is not known here any more")
        if session.epoch != request.session_epoch:
            return Refused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.session_id} expects epoch {session.epoch}, not {request.session_epoch}",
            )
        if session.by_topic_id != (version >= TOPIC_ID_SINCE):
            return Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session keeps to names or to ids")
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if session.by_topic_id else forgotten.topic
            for partition in forgotten.partitions:
                session.wanted.pop((topic, partition), None)
        for topic, asked in named(request, version):
            known = session.wanted.get((topic, asked.partition))
            if known is None:
                session.wanted[topic, asked.partition] = Wanted(topic, asked)
            else:
                known.asked = asked
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        if not session.wanted:
            del self._sessions[session.session_id]
            return FetchContext(None, False, {})
        return FetchContext(session, True, session.wanted)

    def _open(self, wanted: "dict[PartitionKey, Wanted]", by_topic_id: bool, now_ms: int) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            if not self._sessions:
                return None
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.used_ms < self._evict_after_ms:
                return None
            del self._sessions[oldest.session_id]
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, by_topic_id, wanted, now_ms)
        self._sessions[session_id] = session
        return session


def named(request: FetchRequest, version: int) -> Iterator[tuple[str | bytes, FetchPartition]]:
    for topic in request.topics:
        key: str | bytes = topic.topic_id if version >= TOPIC_ID_SINCE else topic.topic
        for asked in topic.partitions:
            yield key, asked
