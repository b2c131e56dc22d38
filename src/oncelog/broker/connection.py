"""One client connection: frames in, answers out, in order.

Bytes are received into one buffer and parsed in place. Most of the time that is the server's shared scratch buffer, so an idle
connection owns nothing; only a connection in the middle of a frame has a buffer of its own, and that grows with what was
received, never with what a frame announces.

Always: answers leave in the order of their requests, though they may be ready in any order. A connection that has too much
unanswered or unsent is not read from until it has less: its memory is bounded whatever the client does.
"""

import asyncio
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from oncelog.broker.caller import Caller
from oncelog.broker.dispatch import Route, route
from oncelog.broker.logging import get_logger
from oncelog.broker.produce_shortcut import ProduceShortcuts
from oncelog.broker.replies import NO_REPLY, CloseConnection
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.frames import decode_request_header, encode_response
from oncelog.protocol.malformed import Malformed
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.server import Broker
    from oncelog.model.bytes_like import BytesLike

_log = get_logger(__name__)

_SIZE = struct.Struct(">i")
_API_VERSION_AND_CORRELATION = struct.Struct(">hhi")

#: Requests of one connection that may wait for their answer at once. Clients keep five in flight, some a few more.
MAX_UNANSWERED = 64
#: A buffer up to this size is kept for the next large frame; the server drops it when the connection falls idle.
LARGEST_KEPT_BUFFER = 4 << 20
#: Answers up to this size may wait for others and leave with them in one piece; larger ones leave at once, as they are.
SMALL_ANSWER = 4 << 10
#: What is handled before other connections get their turn. The loop goes on reading from one socket, up to 32 times, as long as
#: each read fills the buffer; with large frames that would be many milliseconds in which nobody else is heard.
BYTES_PER_TURN = 128 << 10


class _Slot:
    """A request whose answer is not there yet, or not its turn yet."""

    __slots__ = ("frames",)

    def __init__(self) -> None:
        self.frames: list[BytesLike] | None = None


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "caller",
        "spoke",
        "used_ms",
        "_server",
        "_node",
        "_transport",
        "_buffer",
        "_view",
        "_start",
        "_end",
        "_unanswered",
        "_writing_paused",
        "_muted",
        "_held",
        "_produces",
        "_reading",
        "_closing",
        "_parsing",
        "_outgoing",
    )

    def __init__(self, server: "Broker") -> None:
        self._server = server
        self._node = server.node
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.caller = Caller("", 0, "PLAINTEXT")
        #: Whether anything came since the server last looked, and when it last saw that something had.
        self.spoke = True
        self.used_ms = 0
        #: The connection's own buffer; None while it shares the server's scratch.
        self._buffer: bytearray | None = None
        self._view: memoryview = server.scratch
        self._start = 0
        self._end = 0
        self._unanswered: deque[_Slot] = deque()
        self._writing_paused = False
        self._muted = False
        #: A fetch waits: what the client sends after it stays unread until it is answered. Each waiting fetch may come back
        #: with megabytes, and however many a client lines up, only one of its answers is in memory at a time.
        self._held = False
        self._produces: ProduceShortcuts | None = None
        self._reading = True
        self._closing = False
        self._parsing = False
        self._outgoing: list[BytesLike] = []

    # Coming and going

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.caller = Caller(peer[0] if peer else "", self._server.next_connection_id(), "PLAINTEXT")
        self.used_ms = self._node.clock.monotonic_ms()
        refused = self._server.admit(self)
        if refused is not None:
            _log.warning("connection refused", host=self.caller.host, why=refused)
            self._closing = True
            self._transport.abort()

    def connection_lost(self, problem: Exception | None) -> None:
        self._closing = True
        self._unanswered.clear()
        self._buffer = None
        self._view = self._server.scratch
        self._start = self._end = 0
        self._server.dismiss(self)

    def eof_received(self) -> bool:
        # A client may close its sending side and still wait for what it asked: answer that, then close.
        if not self._unanswered:
            return False
        self._reading = False
        self._closing_after_answers()
        return True

    def close(self, why: str) -> None:
        if not self._closing:
            self._closing = True
            if self._outgoing:
                self._flush()
            _log.info("connection closed", host=self.caller.host, client_id=self.caller.client_id, why=why)
            self._transport.close()

    def drop_idle_buffer(self) -> None:
        if self._buffer is not None and self._start == self._end:
            self._share_scratch()

    # Receiving

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._buffer is None:
            return self._view
        if self._end == len(self._buffer):
            self._grow()
        return self._view[self._end :]

    def buffer_updated(self, received: int) -> None:
        self._end += received
        self._parse()

    def _parse(self) -> None:
        """Handle every whole frame that is there, as long as this connection may go on."""
        if self._parsing:
            return
        self._parsing = True
        view, start, end = self._view, self._start, self._end
        turn_ends_at = start + BYTES_PER_TURN
        while end - start >= 4 and not self._closing:
            (size,) = _SIZE.unpack_from(view, start)
            if size < 8 or size > self._server.max_frame_bytes:
                self._refuse_size(size)
                break
            next_start = start + 4 + size
            if next_start > end:
                break
            if not self._may_go_on():
                self._stop_reading()
                break
            if start >= turn_ends_at:
                break
            self._handle(view[start + 4 : next_start])
            start = next_start
        self._parsing = False
        if self._outgoing:
            self._flush()
        if self._closing:
            return
        self._start = start
        self._keep_rest()
        if start >= turn_ends_at and self._reading:
            self._stop_reading()
            self._node.timers.call_soon(self._go_on)

    def _refuse_size(self, size: int) -> None:
        if size < 8:
            why = f"a frame of {size} bytes is no Kafka request: is the client speaking another protocol (TLS, HTTP)?"
        else:
            why = f"a frame of {size} bytes is over socket.request.max.bytes={self._server.max_frame_bytes}"
        self.close(why)

    def _keep_rest(self) -> None:
        """Leave the shared scratch empty; move a partial frame to where it can grow."""
        start, end = self._start, self._end
        if start == end:
            self._start = self._end = 0
            if self._buffer is not None and len(self._buffer) > LARGEST_KEPT_BUFFER:
                self._share_scratch()
            return
        if self._buffer is None:
            rest = end - start
            self._own_buffer(max(4096, 2 * rest))
            return
        if start and (end == len(self._buffer) or end - start < 4096):
            rest = end - start
            self._view[:rest] = self._view[start:end]
            self._start, self._end = 0, rest

    def _grow(self) -> None:
        """Room for more of the frame at hand: as much as has come already, so memory follows what was received."""
        received = self._end - self._start
        wanted = 2 * received
        if received >= 4:
            frame = 4 + _SIZE.unpack_from(self._view, self._start)[0]
            if frame > received:
                wanted = min(wanted, frame)
        self._own_buffer(max(4096, wanted))

    def _own_buffer(self, size: int) -> None:
        # A new one, not a resized one: slices of the old may still be held by what is being handled.
        buffer = bytearray(size)
        view = memoryview(buffer)
        rest = self._end - self._start
        view[:rest] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, rest

    def _share_scratch(self) -> None:
        self._buffer = None
        self._view = self._server.scratch
        self._start = self._end = 0

    # Handling

    def _handle(self, frame: memoryview) -> None:
        self.spoke = True
        api_key, version, correlation_id = _API_VERSION_AND_CORRELATION.unpack_from(frame, 0)
        if api_key == 0 and self._produces is not None and self._produce_again(frame, version):
            return
        found = route(api_key, version)
        if found is None:
            self._refuse_version(api_key, version, correlation_id)
            return
        try:
            header, body_offset = decode_request_header(frame)
            self.caller.client_id = header.client_id or ""
            request = found.decode(frame, body_offset)
            answer = found.handle(self._node, self.caller, request, version)
            if api_key == 0:
                self._learn_produce(found, frame, request, answer)
        except Malformed as problem:
            self.close(f"a malformed {found.api_key.name} request: {problem}")
            return
        except Exception:
            _log.exception("a handler failed", api=found.api_key.name, version=version)
            answer = self._bug_answer(found)
        if type(answer) is not Later:
            self._answer(found, correlation_id, answer, len(frame), None)
        elif answer.done:
            self._answer(found, correlation_id, answer.value, len(frame), None)
        else:
            slot = _Slot()
            self._unanswered.append(slot)
            self._held = api_key == ApiKey.FETCH
            size = len(frame)
            answer.when_done(lambda value: self._answer_later(found, correlation_id, value, size, slot))

    def _produce_again(self, frame: memoryview, version: int) -> bool:
        """Take a produce like an earlier one the short way; whether it could."""
        reply = cast(ProduceShortcuts, self._produces).take(self._node, self.caller, frame, version)
        if reply is None:
            return False
        self._send_in_order([reply], None)
        return True

    def _learn_produce(self, found: Route, frame: memoryview, request: Any, answer: Any) -> None:
        if self._produces is None:
            self._produces = ProduceShortcuts()
        self._produces.learn(self._node, found, frame, request, answer)

    def _refuse_version(self, api_key: int, version: int, correlation_id: int) -> None:
        if api_key == ApiKey.API_VERSIONS:
            from oncelog.broker.handlers.api_versions import unsupported_version_reply

            self._send_in_order(encode_response(correlation_id, unsupported_version_reply(), 0), None)
        else:
            self.close(f"API {api_key} version {version} is not served here")

    def _bug_answer(self, found: Route) -> Any:
        """What a bug looks like to the client: UNKNOWN_SERVER_ERROR where the answer has a place for it, else the end."""
        try:
            return found.response_class(error_code=-1)
        except TypeError:
            return CloseConnection("the broker failed on a request whose answer has no place to say so")

    # Answering

    def _answer_later(self, found: Route, correlation_id: int, answer: Any, request_bytes: int, slot: _Slot) -> None:
        if not self._closing:
            self._held = self._held and found.api_key != ApiKey.FETCH
            self._answer(found, correlation_id, answer, request_bytes, slot)
            if not self._reading and not self._parsing:
                self._node.timers.call_soon(self._go_on)

    def _answer(self, found: Route, correlation_id: int, answer: Any, request_bytes: int, slot: _Slot | None) -> None:
        if answer is NO_REPLY:
            self._send_in_order([], slot)
            return
        if type(answer) is CloseConnection:
            self.close(answer.why)
            return
        caller = self.caller
        throttle_ms = self._node.quotas.throttle_ms(caller.principal, caller.client_id, found.api_key, request_bytes)
        if throttle_ms:
            answer.throttle_time_ms = throttle_ms
            self._mute(throttle_ms)
        try:
            frames = found.encode(answer, bytearray(found.response_header.pack(0, correlation_id)))
        except Exception:
            _log.exception("an answer could not be encoded", api=found.api_key.name, version=found.version)
            self.close("the broker failed to encode its answer")
            return
        size = len(frames[0]) if len(frames) == 1 else sum(map(len, frames))
        _SIZE.pack_into(cast(bytearray, frames[0]), 0, size - _SIZE.size)
        self._send_in_order(frames, slot)

    def _send_in_order(self, frames: "list[BytesLike]", slot: _Slot | None) -> None:
        unanswered = self._unanswered
        if slot is None:
            if not unanswered:
                self._write(frames)
                return
            slot = _Slot()
            unanswered.append(slot)
        slot.frames = frames
        while unanswered and unanswered[0].frames is not None:
            self._write(cast("list[BytesLike]", unanswered.popleft().frames))

    def _write(self, frames: "list[BytesLike]") -> None:
        if self._parsing:
            # Every write is a call into the kernel: the small answers to all that came in one read leave in one.
            self._outgoing += frames
            if len(frames) > 1 or (frames and len(frames[0]) > SMALL_ANSWER):
                self._flush()
        elif len(frames) > 1:
            self._transport.writelines(frames)
        elif frames:
            self._transport.write(frames[0])

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if len(outgoing) == 1:
            self._transport.write(outgoing[0])
        elif max(map(len, outgoing)) <= SMALL_ANSWER:
            self._transport.write(b"".join(outgoing))
        else:
            self._transport.writelines(outgoing)

    # Holding back

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        if not self._reading:
            self._node.timers.call_soon(self._go_on)

    def _mute(self, throttle_ms: int) -> None:
        self._muted = True
        self._stop_reading()
        self._node.timers.call_at(self._node.clock.monotonic_ms() + throttle_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted = False
        self._go_on()

    def _may_go_on(self) -> bool:
        return not (self._writing_paused or self._muted or self._held or len(self._unanswered) >= MAX_UNANSWERED)

    def _stop_reading(self) -> None:
        if self._reading and not self._closing:
            self._reading = False
            self._transport.pause_reading()

    def _go_on(self) -> None:
        if self._closing or self._reading:
            return
        if not self._may_go_on():
            return
        self._reading = True
        self._transport.resume_reading()
        self._parse()

    def _closing_after_answers(self) -> None:
        if not self._unanswered:
            self.close("the client has no more to say")
        else:
            self._node.timers.call_at(self._node.clock.monotonic_ms() + 50, self._closing_after_answers)
