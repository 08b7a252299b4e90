"""A client of HTTP/2 that sends whatever frames it is told to, and keeps all that comes (RFC 9113).

The frames are hyperframe's, the compression of fields hpack's: both from PyPI.
"""

from __future__ import annotations

import time

from .packages import provide
from .wire import Malformed, Wire, WireClosed, WireTimeout

provide("h2==4.4.1", "hpack==4.2.0", "hyperframe==6.1.0")

import hpack  # noqa: E402
from hyperframe.frame import (  # noqa: E402
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_ERROR, PROTOCOL, INTERNAL, FLOW_CONTROL, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE, REFUSED, CANCEL, COMPRESSION, CONNECT, CALM = range(12)
NAMES = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
         "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM"]

Fields = list[tuple[str | bytes, str | bytes]]


class Answer:
    """The frames that arrived on one stream."""

    def __init__(self):
        self.heads: list[Fields] = []
        self.body, self.ended, self.reset = b"", False, None
        self.ended_by = ""

    @property
    def finals(self) -> list[Fields]:
        return [head for head in self.heads if not dict(head).get(b":status", b"").startswith(b"1")]

    @property
    def interim(self) -> list[int]:
        return [int(dict(head)[b":status"]) for head in self.heads if dict(head).get(b":status", b"").startswith(b"1")]

    @property
    def status(self) -> int:
        return int(dict(self.finals[0])[b":status"]) if self.finals else 0

    def get(self, name: str) -> str | None:
        values = [value.decode("latin-1") for key, value in (self.finals[0] if self.finals else []) if key == name.encode()]
        return ", ".join(values) if values else None

    @property
    def trailers(self) -> dict[str, str]:
        return {key.decode(): value.decode("latin-1") for key, value in (self.finals[1] if len(self.finals) > 1 else [])}

    def __repr__(self) -> str:
        reset = "" if self.reset is None else f" reset {NAMES[self.reset] if self.reset < 12 else self.reset}"
        return f"{self.heads!r} body[{len(self.body)}]={self.body[:100]!r}{' ended' if self.ended else ''}{reset}"


def raw(kind: int, flags: int, stream: int, payload: bytes = b"", length: int | None = None) -> bytes:
    """A frame of exactly these bytes, whatever they mean."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def plain(fields: Fields) -> bytes:
    """Fields without compression: every one a literal that is never indexed, so that anything can be said."""
    block = b""
    for name, value in fields:
        block += b"\x10"
        for text in (name, value):
            text = text.encode("latin-1") if isinstance(text, str) else text
            if len(text) < 127:
                block += bytes([len(text)])
            else:
                rest, block = len(text) - 127, block + b"\x7f"
                while rest >= 128:
                    rest, block = rest >> 7, block + bytes([rest & 0x7F | 0x80])
                block += bytes([rest])
            block += text
    return block


def head(method: str = "GET", path: str = "/", *more: tuple[str | bytes, str | bytes], scheme: str = "http", authority: str = "example.test") -> Fields:
    return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]


def headers(stream: int, fields: Fields, *, end: bool = True, done: bool = True, flags: int = 0) -> bytes:
    return raw(1, (1 if end else 0) | (4 if done else 0) | flags, stream, plain(fields))


def data(stream: int, content: bytes = b"", *, end: bool = False) -> bytes:
    return raw(0, 1 if end else 0, stream, content)


def settings(**values: int) -> bytes:
    """By the number of each: `s4=10` is SETTINGS_INITIAL_WINDOW_SIZE."""
    return raw(4, 0, 0, b"".join(int(key[1:]).to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in values.items()))


def window(stream: int, more: int) -> bytes:
    return raw(8, 0, stream, more.to_bytes(4, "big"))


def ping(content: bytes = b"12345678", *, ack: bool = False) -> bytes:
    return raw(6, 1 if ack else 0, 0, content)


def reset(stream: int, code: int = CANCEL) -> bytes:
    return raw(3, 0, stream, code.to_bytes(4, "big"))


class Http2Wire:
    """A connection of HTTP/2. Windows are opened by hand, except by `read`, which opens them as far as it has read."""

    def __init__(self, wire: Wire, first: bytes | None = None, *, opens: bool = True, acknowledges: bool = True):
        self.wire, self.opens, self.acknowledges = wire, opens, acknowledges
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 24
        self.answers: dict[int, Answer] = {}
        self.frames: list[Frame] = []
        self.goaway: GoAwayFrame | None = None
        self.goaways: list[GoAwayFrame] = []
        self.settings: dict[int, int] = {}
        self.block, self.block_stream, self.block_ends = b"", 0, False
        self.pongs: list[bytes] = []
        self.updates: dict[int, int] = {}
        self.acks = 0
        self.wire.send(PREFACE + settings() if first is None else first)

    def send(self, *frames: bytes | Frame) -> bool:
        return self.wire.send(b"".join(frame if isinstance(frame, bytes) else frame.serialize() for frame in frames))

    def answer(self, stream: int) -> Answer:
        return self.answers.setdefault(stream, Answer())

    def step(self) -> Frame:
        """Takes one frame."""
        first = self.wire.read_exactly(9)
        frame, length = Frame.parse_frame_header(memoryview(first))
        payload = self.wire.read_exactly(length)
        frame.parse_body(memoryview(payload))
        self.frames.append(frame)
        if self.block_stream and not isinstance(frame, ContinuationFrame):
            raise Malformed(f"{frame!r} inside a header block")
        if isinstance(frame, HeadersFrame):
            self.block, self.block_stream, self.block_ends = frame.data, frame.stream_id, "END_STREAM" in frame.flags
            self._head_done(frame)
        elif isinstance(frame, ContinuationFrame):
            self.block += frame.data
            self._head_done(frame)
        elif isinstance(frame, DataFrame):
            answer = self.answer(frame.stream_id)
            if not answer.finals or answer.ended:
                raise Malformed(f"{frame!r} where none may be")
            answer.body += frame.data
            if self.opens and frame.flow_controlled_length:
                self.send(window(0, frame.flow_controlled_length))
                if "END_STREAM" not in frame.flags:
                    self.send(window(frame.stream_id, frame.flow_controlled_length))
            if "END_STREAM" in frame.flags:
                answer.ended, answer.ended_by = True, "DATA"
        elif isinstance(frame, RstStreamFrame):
            self.answer(frame.stream_id).reset = frame.error_code
        elif isinstance(frame, GoAwayFrame):
            self.goaway = frame
            self.goaways.append(frame)
        elif isinstance(frame, SettingsFrame):
            if "ACK" in frame.flags:
                self.acks += 1
            else:
                self.settings |= {int(key): value for key, value in frame.settings.items()}
                self.send(raw(4, 1, 0))
        elif isinstance(frame, PingFrame):
            if "ACK" in frame.flags:
                self.pongs.append(frame.opaque_data)
            elif self.acknowledges:
                self.send(ping(frame.opaque_data, ack=True))
        elif isinstance(frame, WindowUpdateFrame):
            self.updates[frame.stream_id] = self.updates.get(frame.stream_id, 0) + frame.window_increment
        elif isinstance(frame, PushPromiseFrame):
            raise Malformed("a push that nobody asked for")
        return frame

    def _head_done(self, frame: Frame) -> None:
        if "END_HEADERS" not in frame.flags:
            return
        fields = [(bytes(name), bytes(value)) for name, value in self.decoder.decode(self.block, raw=True)]
        for name, _ in fields:
            if name.lower() != name:
                raise Malformed(f"field name {name!r}")
            if name in (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"):
                raise Malformed(f"{name!r} in a message of HTTP/2")
        answer = self.answer(self.block_stream)
        if answer.ended:
            raise Malformed("a head behind the end")
        if answer.finals and not self.block_ends:
            raise Malformed("trailers that do not end the stream")
        answer.heads.append(fields)
        if self.block_ends:
            answer.ended, answer.ended_by = True, "HEADERS"
        self.block, self.block_stream = b"", 0

    def read(self, stream: int, within: float = 5.0) -> Answer:
        """Until the stream ends, or the connection."""
        deadline = time.monotonic() + within
        answer = self.answer(stream)
        while not answer.ended and answer.reset is None:
            if time.monotonic() > deadline:
                raise WireTimeout(f"stream {stream} is not over after {within} s: {answer!r}")
            self.step()
        return answer

    def ask(self, stream: int, fields: Fields, content: bytes | None = None) -> Answer:
        self.send(headers(stream, fields, end=content is None))
        if content is not None:
            self.send(data(stream, content, end=True))
        return self.read(stream)

    def until(self, condition, within: float = 5.0) -> None:
        deadline = time.monotonic() + within
        while not condition(self):
            if time.monotonic() > deadline:
                raise WireTimeout("what was waited for did not come")
            self.step()

    def alive(self) -> bool:
        """Whether the connection answers a PING."""
        content = int(time.monotonic_ns()).to_bytes(8, "big")
        self.send(ping(content))
        try:
            self.until(lambda wire: content in wire.pongs)
            return True
        except WireClosed:
            return False

    def end(self) -> int | None:
        """Reads until the other side closes; the error code of its GOAWAY, if there was one."""
        try:
            while True:
                self.step()
        except WireClosed:
            return self.goaway.error_code if self.goaway else None


__all__ = ["Answer", "CALM", "CANCEL", "COMPRESSION", "CONNECT", "ExtensionFrame", "FLOW_CONTROL", "FRAME_SIZE", "Http2Wire", "INTERNAL", "NAMES",
           "NO_ERROR", "PREFACE", "PROTOCOL", "PriorityFrame", "REFUSED", "STREAM_CLOSED", "data", "head", "headers", "hpack", "ping", "plain",
           "raw", "reset", "settings", "window"]
