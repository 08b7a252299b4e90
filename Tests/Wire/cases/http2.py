"""HTTP/2 from clients: frames, streams, and what their messages may be (RFC 9113), through to an origin server of HTTP/1.1.

Where the RFC leaves open which of several errors is given, each of them will do.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time

from Rig.origins import OK, OriginConnection, answering
from Rig.waits import Why, pause
from Rig.wire import WireClosed
from suite import Skip, Trial, case, check, eventually, expect_same

from .command import open_client, started
from .upgrade import SWITCH, accept

try:
    from Rig import http2 as h

    MISSING = ""
except Exception as problem:  # no network, no package index
    MISSING = str(problem)

ROLE = "nginx 1.22 does not speak HTTP/2 by prior knowledge beside HTTP/1.1"
BIG = 1 << 20


def http2(name: str, *, alone: bool = False):
    """Registers a case about HTTP/2."""

    def register(run):
        def guarded(t: Trial) -> None:
            if MISSING:
                raise Skip(f"the packages are missing: {MISSING}")
            run(t)

        return case(name, nginx=ROLE, alone=alone)(guarded)

    return register


def speak(t: Trial, listener: str = "web", **more) -> "h.Http2Wire":
    return h.Http2Wire(t.client(listener), **more)


def expect_goaway(wire, *codes: int) -> None:
    """The connection ends, with one of these codes."""
    code = wire.end()
    check(code in codes, f"expected GOAWAY {' or '.join(h.NAMES[c] for c in codes)}, got {code if code is None else h.NAMES[code]}")


def expect_reset(wire, stream: int, *codes: int) -> None:
    """The stream ends with one of these codes, and the connection goes on."""
    answer = wire.read(stream)
    check(answer.reset in codes, f"expected a reset with {' or '.join(h.NAMES[c] for c in codes)}, got {answer!r}")
    check(wire.alive(), "the connection ended, too")


def nothing_upstream(t: Trial) -> None:
    check(not t.main.received(), f"the origin server received {t.main.received()[:200]!r}")


@http2("RFC 9113 §8.2.2: spellings of the framing fields with _ do not go upstream, other names with _ do")
def _(t: Trial) -> None:
    wire = speak(t)
    fields = h.head("POST", "/", ("content_length", "3"), ("transfer_encoding", "chunked"), ("x_user", "a"))
    expect_same("status", wire.ask(1, fields, b"hello").status, 200)
    request = t.main.requests[0]
    check(not request.has("content_length") and not request.has("transfer_encoding"), request)
    expect_same("others", (request.get("x_user"), request.body), ("a", b"hello"))


@http2("gRPC: a refusal by the gateway is one head with 200, grpc-status and grpc-message, and ends the stream")
def _(t: Trial) -> None:
    wire = speak(t)
    for stream, (path, code, text) in enumerate((("/dead/a", "14", "the server behind this host cannot be reached"), ("/barred/a", "7", ""), ("/dead/b", "14", ""))):
        fields = h.head("POST", path, ("content-type", "application/grpc+proto"), ("te", "trailers"))
        answer = wire.ask(2 * stream + 1, fields, b"\0\0\0\0\0")
        check(len(answer.finals) == 1 and answer.ended and not answer.body, answer)
        expect_same("head", (answer.status, answer.get("content-type"), answer.get("grpc-status")), (200, "application/grpc", code))
        check(text in (answer.get("grpc-message") or ""), answer)
    # A client that still sends: the response ends its stream, and the connection goes on.
    wire.send(h.headers(7, h.head("POST", "/barred/b", ("content-type", "application/grpc"), ("te", "trailers")), end=False))
    expect_same("open stream", wire.read(7).get("grpc-status"), "7")
    check(wire.alive(), "the connection ended")
    web = wire.ask(9, h.head("POST", "/barred/c", ("content-type", "application/grpc-web")), b"\0\0\0\0\0")
    expect_same("gRPC-Web", (web.status, web.get("grpc-status")), (403, None))


# --- Connection errors: name, frames behind the preface, error codes

def faults():
    """The connection errors that either side can cause: section and name, the bytes, the codes of which GOAWAY has one."""
    p, fs, fc = h.PROTOCOL, h.FRAME_SIZE, h.FLOW_CONTROL
    return [
        ("§6.5: SETTINGS on a stream", h.raw(4, 0, 1), [p]),
        ("§6.5: SETTINGS whose length is not a multiple of six bytes", h.raw(4, 0, 0, bytes(7)), [fs]),
        ("§6.5: an acknowledgement of SETTINGS with content", h.raw(4, 1, 0, bytes(6)), [fs]),
        ("§6.5.2: SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1", h.settings(s4=1 << 31), [fc]),
        ("§6.5.2: SETTINGS_MAX_FRAME_SIZE below 16,384", h.settings(s5=16383), [p]),
        ("§6.5.2: SETTINGS_MAX_FRAME_SIZE above 2^24-1", h.settings(s5=1 << 24), [p]),
        ("§6.7: PING on a stream", h.raw(6, 0, 1, bytes(8)), [p]),
        ("§6.7: PING of another length than eight", h.raw(6, 0, 0, bytes(6)), [fs]),
        ("§6.8: GOAWAY on a stream", h.raw(7, 0, 1, bytes(8)), [p]),
        ("§6.9: WINDOW_UPDATE of another length than four", h.raw(8, 0, 0, bytes(3)), [fs]),
        ("§6.9: an increment of 0 on the connection", h.window(0, 0), [p]),
        ("§6.9.1: a window of the connection above 2^31-1", h.window(0, 0x7FFFFFFF), [fc]),
    ]


def frames():
    """The connection errors that a client can cause."""
    p, fs, sc, c = h.PROTOCOL, h.FRAME_SIZE, h.STREAM_CLOSED, h.COMPRESSION
    get = h.headers(1, h.head())
    start = h.headers(1, h.head("POST"), end=False)
    half = h.headers(1, h.head(), done=False)
    return [
        ("§4.2: a DATA frame larger than SETTINGS_MAX_FRAME_SIZE", start + h.data(1, bytes(16385)), [fs]),
        ("§4.2: a HEADERS frame larger than SETTINGS_MAX_FRAME_SIZE", h.raw(1, 5, 1, bytes(16385)), [fs]),
        ("§4.2: a SETTINGS frame larger than SETTINGS_MAX_FRAME_SIZE", h.raw(4, 0, 0, bytes(16386)), [fs]),
        ("§4.3: a field block that cannot be decompressed", h.raw(1, 5, 1, b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff"), [c]),
        ("§4.3: an index beyond the tables", h.raw(1, 5, 1, b"\xbf\xff\x7f"), [c]),
        ("§4.3: a table size above the limit (RFC 7541 §6.3)", h.raw(1, 5, 1, b"\x3f\xe2\xff\x7f" + h.plain(h.head())), [c]),
        ("§4.3: a Huffman code with EOS in it (RFC 7541 §5.2)", h.raw(1, 5, 1, h.plain(h.head()) + b"\x10\x01a\x84\xff\xff\xff\xff"), [c]),
        ("§4.3: an integer that is too large (RFC 7541 §5.1)", h.raw(1, 5, 1, b"\x10\x7f\xff\xff\xff\xff\xff\xff\x0f"), [c]),
        ("§5.1: DATA on an idle stream", h.data(1, b"x"), [p, sc]),
        ("§5.1: RST_STREAM on an idle stream", h.reset(1), [p]),
        ("§5.1: WINDOW_UPDATE on an idle stream", h.window(1, 1), [p]),
        ("§5.1: CONTINUATION on an idle stream", h.raw(9, 4, 1, b""), [p]),
        ("§5.1: HEADERS on a stream that the client has ended", get + h.headers(1, h.head()), [sc, p]),
        ("§5.1.1: a client's stream with an even number", h.headers(2, h.head()), [p]),
        ("§5.1.1: a stream with a lower number than one before", h.headers(5, h.head()) + h.headers(3, h.head()), [p, sc]),
        ("§6.1: DATA on stream 0", h.raw(0, 1, 0, b"x"), [p]),
        ("§6.1: DATA whose padding is as long as it", start + h.raw(0, 0x8, 1, b"\x05abcd"), [p]),
        ("§6.1: padded DATA without a byte", start + h.raw(0, 0x8, 1, b""), [p, fs]),
        ("§6.2: HEADERS on stream 0", h.raw(1, 5, 0, h.plain(h.head())), [p]),
        ("§6.2: HEADERS whose padding is as long as it", h.raw(1, 0xD, 1, b"\xff" + h.plain(h.head())), [p]),
        ("§6.2: HEADERS on another stream inside a field block", half + h.headers(3, h.head()), [p]),
        ("§6.2: DATA inside a field block", half + h.data(1, b"x"), [p]),
        ("§6.3: PRIORITY on stream 0", h.raw(2, 0, 0, bytes(5)), [p]),
        ("§6.4: RST_STREAM on stream 0", h.raw(3, 0, 0, bytes(4)), [p]),
        ("§6.4: RST_STREAM of another length than four", get + h.raw(3, 0, 1, bytes(3)), [fs]),
        ("§6.5.2: SETTINGS_ENABLE_PUSH that is neither 0 nor 1", h.settings(s2=2), [p]),
        ("§6.6: PUSH_PROMISE from a client", get + h.raw(5, 4, 1, (2).to_bytes(4, "big")), [p]),
        ("§6.10: CONTINUATION without a field block", h.raw(9, 4, 1, h.plain(h.head())), [p]),
        ("§6.10: CONTINUATION behind a field block that has ended", get + h.raw(9, 4, 1, b""), [p]),
        ("§6.10: CONTINUATION on another stream", half + h.raw(9, 4, 3, b""), [p]),
        ("§6.10: CONTINUATION on stream 0", half + h.raw(9, 4, 0, b""), [p]),
        ("RFC 8441 §3: SETTINGS_ENABLE_CONNECT_PROTOCOL that is neither 0 nor 1", h.settings(s8=2), [p]),
        *faults(),
        ("§5.5: an unknown frame inside a field block", half + h.raw(0xFA, 0, 1), [p]),
    ]


def quiet(c: OriginConnection) -> None:
    """Takes requests and does not answer."""
    while True:
        c.serve()


if not MISSING:
    for section, sent, codes in frames():
        def broken(t: Trial, sent=sent, codes=codes) -> None:
            t.origin(quiet)
            wire = speak(t)
            wire.send(sent)
            expect_goaway(wire, *codes)

        prefix = "" if section.startswith("RFC") else "RFC 9113 "
        http2(f"{prefix}{section} ends the connection")(broken)


# --- Stream errors of messages: name, fields

def malformed():
    def get(*more, method="GET", path="/", scheme="http", authority="example.test"):
        return h.head(method, path, *more, scheme=scheme, authority=authority)

    return [
        ("§8.2.1: a field name with a capital letter", get(("X-A", "1"))),
        ("§8.2.1: a field name with a space", get(("x a", "1"))),
        ("§8.2.1: a field name with a colon", get(("x:a", "1"))),
        ("§8.2.1: a field name above ASCII", get((b"x\xe4", "1"))),
        ("§8.2.1: a field name with a control character", get((b"x\r\ny", "1"))),
        ("§8.2.1: an empty field name", get(("", "1"))),
        ("§8.2.1: a field value with a line feed", get(("x-a", "1\nx-b: 2"))),
        ("§8.2.1: a field value with CR and LF", get(("x-a", "1\r\nx-b: 2"))),
        ("§8.2.1: a field value with NUL", get(("x-a", "1\0"))),
        ("§8.2.1: a field value with another control character", get(("x-a", "1\x01"))),
        ("§8.2.1: a field value with DEL", get(("x-a", "a\x7fb"))),
        ("§8.2.1: a field value that begins with a space", get(("x-a", " 1"))),
        ("§8.2.1: a field value that ends with a tab", get(("x-a", "1\t"))),
        ("§8.2.2: connection", get(("connection", "close"))),
        ("§8.2.2: keep-alive", get(("keep-alive", "timeout=5"))),
        ("§8.2.2: proxy-connection", get(("proxy-connection", "close"))),
        ("§8.2.2: transfer-encoding", get(("transfer-encoding", "chunked"))),
        ("§8.2.2: upgrade", get(("upgrade", "websocket"))),
        ("§8.2.2: te with something other than trailers", get(("te", "gzip"))),
        ("§8.2.2: te with trailers and something else", get(("te", "trailers, deflate"))),
        ("§8.3: an unknown pseudo-field", [*get(), (":unknown", "1")]),
        ("§8.3: a pseudo-field of responses", [*get(), (":status", "200")]),
        ("§8.3: a pseudo-field behind a field", [("x-a", "1"), *get()]),
        ("§8.3: a pseudo-field twice", [*get(), (":path", "/other")]),
        ("§8.3: a pseudo-field with a capital letter", [(":Method", "GET"), *get()[1:]]),
        ("§8.3.1: a missing method", get()[1:]),
        ("§8.3.1: a missing scheme", [field for field in get() if field[0] != ":scheme"]),
        ("§8.3.1: a missing path", get()[:3]),
        ("§8.3.1: an empty path", get(path="")),
        ("§8.3.1: a path without a slash", get(path="index.html")),
        ("§8.3.1: a path that is a URI", get(path="http://example.test/")),
        ("§8.3.1: a path with a space", get(path="/a b")),
        ("§8.3.1: a path with a fragment", get(path="/a#b")),
        ("§8.3.1: * without OPTIONS", get(path="*")),
        ("§8.3.1: a method that is not a token", get(method="GE T")),
        ("§8.3.1: an empty method", get(method="")),
        ("§8.3.1: a method that hides a request line", get(method="GET / HTTP/1.1\r\nx: ")),
        ("§8.3.1: neither :authority nor host", [field for field in get() if field[0] != ":authority"]),
        ("§8.3.1: an empty :authority", get(authority="")),
        ("§8.3.1: :authority with user information", get(authority="user@example.test")),
        ("§8.3.1: :authority with a path", get(authority="example.test/x")),
        ("§8.3.1: :authority and host that disagree", get(("host", "other.test"))),
        ("§8.3.1: :authority and host that differ in the port", get(("host", "example.test:81"))),
        ("§8.3.1: host twice", get(("host", "example.test"), ("host", "example.test"))),
        ("§8.5: CONNECT with a path", [(":method", "CONNECT"), (":authority", "example.test:443"), (":path", "/")]),
        ("§8.5: CONNECT with a scheme", [(":method", "CONNECT"), (":authority", "example.test:443"), (":scheme", "http")]),
        ("§8.5: CONNECT without an authority", [(":method", "CONNECT")]),
        ("§8.5: CONNECT without a port", [(":method", "CONNECT"), (":authority", "example.test")]),
        ("§8.1.1: announced content that is missing", get(("content-length", "5"))),
        ("§8.1.1: a content-length that is not a number", get(("content-length", "5x"))),
        ("§8.1.1: two different lengths", get(("content-length", "0"), ("content-length", "5"))),
        ("§8.1.1: a negative length", get(("content-length", "-0"))),
        ("RFC 8441 §4: :protocol without CONNECT", [*get(), (":protocol", "websocket")]),
    ]


if not MISSING:
    for section, fields in malformed():

        def refused(t: Trial, fields=fields) -> None:
            t.origin()
            wire = speak(t)
            wire.send(h.headers(1, fields))
            expect_reset(wire, 1, h.PROTOCOL)
            nothing_upstream(t)
            expect_same("a request behind it", wire.ask(3, h.head()).status, 200)

        prefix = "" if section.startswith("RFC") else "RFC 9113 "
        http2(f"{prefix}{section}: the stream is reset, and nothing goes upstream")(refused)


# --- The connection

@http2("RFC 9113 §3.4: the first frame of the server is SETTINGS, with its limits")
def _(t: Trial) -> None:
    wire = speak(t)
    first = wire.step()
    check(type(first).__name__ == "SettingsFrame" and "ACK" not in first.flags, first)
    expect_same("streams, head, CONNECT", (wire.settings.get(3), wire.settings.get(6), wire.settings.get(8)), (100, 65536, 1))


@http2("RFC 9113 §3.4: the preface and a request are parsed byte by byte")
def _(t: Trial) -> None:
    t.origin()
    client = t.client()
    for byte in h.PREFACE + h.settings() + h.headers(1, h.head()):
        client.send(bytes([byte]))
        pause(0.0003, Why.SLOW)
    wire = h.Http2Wire(client, first=b"")
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §3.4: a preface that is wrong after its first line ends the connection")
def _(t: Trial) -> None:
    wire = speak(t, first=b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + h.settings())
    check(wire.end() in (None, h.PROTOCOL), "a GOAWAY with another code")
    nothing_upstream(t)


@http2("RFC 9113 §3.4: a first frame that is not SETTINGS ends the connection")
def _(t: Trial) -> None:
    wire = speak(t, first=h.PREFACE + h.ping())
    expect_goaway(wire, h.PROTOCOL)


@http2("RFC 9113 §3.4: a preface behind a request of HTTP/1.1 is refused")
def _(t: Trial) -> None:
    t.origin()
    client = t.client()
    client.send(b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n")
    expect_same("status", client.read_response().status, 200)
    client.send(h.PREFACE)
    check(client.read_response().status in (400, 505), "not refused")


@http2("RFC 9113 §3.4: a client that sends only its preface is disconnected")
def _(t: Trial) -> None:
    client = t.client("tight")
    client.send(h.PREFACE)
    began = time.monotonic()
    client.read_rest()
    check(0.3 < time.monotonic() - began < 3, f"closed after {time.monotonic() - began:.1f} s")


@http2("RFC 9113 §4.1: frames of unknown types and unknown flags are ignored")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.raw(0xFA, 0xFF, 0, b"whatever"), h.raw(0xFB, 0, 7, b"x"), h.ping()[:4] + b"\xfe" + h.ping()[5:])
    expect_same("status", wire.ask(1, h.head()).status, 200)


@http2("RFC 9113 §4.1: the reserved bit of a stream's number is ignored")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.raw(1, 5, 1 | 1 << 31, h.plain(h.head())))
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §4.2: a frame of 16,384 bytes is accepted")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("POST"), bytes(16384)).status, 200)
    expect_same("content", len(t.main.requests[0].body), 16384)


@http2("RFC 9113 §4.3: a field block in many frames is read as one")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    block = h.plain(h.head("GET", "/", ("x-long", "y" * 1000)))
    parts = [block[index : index + 40] for index in range(0, len(block), 40)]
    wire.send(h.raw(1, 1, 1, parts[0]), *(h.raw(9, 0, 1, part) for part in parts[1:-1]), h.raw(9, 4, 1, parts[-1]))
    expect_same("status", wire.read(1).status, 200)
    expect_same("field", t.main.requests[0].get("x-long"), "y" * 1000)


@http2("RFC 9113 §4.3: compressed fields are decoded correctly over many requests")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    encoder = h.hpack.Encoder()
    for number in range(20):
        block = encoder.encode(h.head("GET", f"/{number}", ("x-same", "always"), ("x-number", str(number))))
        wire.send(h.raw(1, 5, 2 * number + 1, block))
        expect_same("status", wire.read(2 * number + 1).status, 200)
    expect_same("fields", [(r.target, r.get("x-same"), r.get("x-number")) for r in t.main.requests], [(f"/{n}", "always", str(n)) for n in range(20)])


@http2("RFC 9113 §4.3: a client without a table for compression receives fields without references to it (RFC 7541 §4.2)")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t, first=h.PREFACE + h.settings(s1=0))
    wire.decoder.max_allowed_table_size = 0
    for stream in (1, 3, 5):
        expect_same("status", wire.ask(stream, h.head()).status, 200)


@http2("RFC 9113 §5.1: DATA on a stream that the client has ended is an error of STREAM_CLOSED")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    wire.send(h.headers(1, h.head()), h.data(1, b"x"))
    answer = None
    try:
        answer = wire.read(1)
    except WireClosed:
        pass
    check(answer is not None and answer.reset == h.STREAM_CLOSED or wire.goaway and wire.goaway.error_code == h.STREAM_CLOSED, answer)


@http2("RFC 9113 §5.1: frames behind a reset by the client are ignored")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST"), end=False), h.reset(1), h.window(1, 100), h.raw(2, 0, 1, bytes(4) + b"\x10"))
    check(wire.alive(), "the connection ended")
    expect_same("status", wire.ask(3, h.head()).status, 200)


@http2("RFC 9113 §5.1.2: a stream above the limit is refused, and never goes upstream")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    check(wire.alive(), "no answer")
    wire.send(*(h.headers(2 * number + 1, h.head()) for number in range(100)))
    check(wire.alive(), "a hundred streams are too many")
    check(eventually(lambda: len(t.main.requests) == 100, 5), f"{len(t.main.requests)} requests arrived")
    wire.send(h.headers(201, h.head("GET", "/above")))
    try:
        check(wire.read(201).reset in (h.PROTOCOL, h.REFUSED), "not refused")
    except WireClosed:
        check(wire.goaway and wire.goaway.error_code == h.PROTOCOL, wire.goaway)
    check(all(request.target != "/above" for request in t.main.requests), "it went upstream")


@http2("RFC 9113 §5.3: PRIORITY frames are ignored, also for streams that do not exist")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.raw(2, 0, 9, (3).to_bytes(4, "big") + b"\x10"), h.raw(2, 0, 11, (9 | 1 << 31).to_bytes(4, "big") + b"\xff"))
    expect_same("status", wire.ask(1, h.head()).status, 200)


@http2("RFC 9113 §5.3: HEADERS with a priority are accepted")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.raw(1, 0x25, 1, bytes(4) + b"\x10" + h.plain(h.head())))
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9218 §5: the priority field goes upstream unchanged")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("GET", "/", ("priority", "u=1, i"))).status, 200)
    expect_same("field", t.main.requests[0].get("priority"), "u=1, i")


@http2("RFC 9113 §6.1: padding is removed from content")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST"), end=False), h.raw(0, 9, 1, b"\x04data" + bytes(4)))
    expect_same("status", wire.read(1).status, 200)
    expect_same("content", t.main.requests[0].body, b"data")


@http2("RFC 9113 §6.2: HEADERS may be padded")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.raw(1, 0xD, 1, b"\x0a" + h.plain(h.head()) + bytes(10)))
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §6.3: PRIORITY of another length than five is an error of FRAME_SIZE")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.raw(2, 0, 1, bytes(4)))
    try:
        check(wire.read(1).reset == h.FRAME_SIZE, "not refused")
    except WireClosed:
        check(wire.goaway and wire.goaway.error_code == h.FRAME_SIZE, wire.goaway)


@http2("RFC 9113 §6.4: a request that the client resets is cancelled upstream")
def _(t: Trial) -> None:
    ended = []

    def script(c: OriginConnection) -> None:
        c.read_request()
        ended.append(c.ends(3))

    t.origin(script)
    wire = speak(t)
    wire.send(h.headers(1, h.head("GET", "/patient/")))
    check(eventually(lambda: t.main.used, 2), "no request arrived")
    pause(0.1, Why.BEFORE)
    wire.send(h.reset(1))
    check(eventually(lambda: ended, 4) and ended[0], "the connection upstream stays open")


@http2("RFC 9113 §6.5: SETTINGS are acknowledged, and unknown settings are ignored")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.settings(s99=1, s65000=7))
    wire.until(lambda w: w.acks == 2)
    check(wire.alive(), "the connection ended")


@http2("RFC 9113 §6.7: a PING is answered with its own content, and its acknowledgement is not answered")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.ping(b"answered", ack=True), h.ping(b"question"))
    wire.until(lambda w: w.pongs)
    expect_same("answers", wire.pongs, [b"question"])


@http2("RFC 9113 §6.8: a client's GOAWAY lets its requests finish")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head()), h.raw(7, 0, 0, bytes(8)))
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §6.9: an increment of 0 on a stream resets it")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    wire.send(h.headers(1, h.head()), h.window(1, 0))
    try:
        check(wire.read(1).reset == h.PROTOCOL, "not reset")
    except WireClosed:
        check(wire.goaway and wire.goaway.error_code == h.PROTOCOL, wire.goaway)


@http2("RFC 9113 §6.9.1: a window of a stream above 2^31-1 resets it")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    wire.send(h.headers(1, h.head()), h.window(1, 0x7FFFFFFF))
    expect_reset(wire, 1, h.FLOW_CONTROL)


@http2("RFC 9113 §6.9.1: more content than the window of a stream is an error of FLOW_CONTROL")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/full/"), end=False), *(h.data(1, bytes(16384)) for _ in range(24)))
    try:
        check(wire.read(1).reset == h.FLOW_CONTROL, wire.answer(1))
    except WireClosed:
        check(wire.goaway and wire.goaway.error_code == h.FLOW_CONTROL, wire.goaway)


def length(count: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count + b"x" * count


@http2("RFC 9113 §6.9.1: content waits for the window of its stream, then continues")
def _(t: Trial) -> None:
    t.origin(answering(length(100)))
    wire = speak(t, first=h.PREFACE + h.settings(s4=10), opens=False)
    wire.send(h.headers(1, h.head()))
    wire.until(lambda w: len(w.answer(1).body) == 10)
    check(wire.alive() and len(wire.answer(1).body) == 10, "more than the window came")
    wire.send(h.window(1, 50))
    wire.until(lambda w: len(w.answer(1).body) == 60)
    check(wire.alive() and not wire.answer(1).ended, "more than the window came")
    wire.send(h.window(1, 50))
    expect_same("content", wire.read(1).body, b"x" * 100)


@http2("RFC 9113 §6.9.1: content waits for the window of the connection, over all streams")
def _(t: Trial) -> None:
    t.origin(answering(length(50_000)))
    wire = speak(t, first=h.PREFACE + h.settings(s4=BIG), opens=False)
    wire.send(h.headers(1, h.head()), h.headers(3, h.head()))
    wire.until(lambda w: len(w.answer(1).body) + len(w.answer(3).body) == 65535)
    check(wire.alive() and len(wire.answer(1).body) + len(wire.answer(3).body) == 65535, "more than the window came")
    wire.send(h.window(0, BIG))
    expect_same("content", (len(wire.read(1).body), len(wire.read(3).body)), (50_000, 50_000))


@http2("RFC 9113 §6.9.2: SETTINGS change the windows of open streams")
def _(t: Trial) -> None:
    t.origin(answering(length(100)))
    wire = speak(t, first=h.PREFACE + h.settings(s4=0), opens=False)
    wire.send(h.headers(1, h.head()))
    wire.until(lambda w: w.answer(1).heads)
    check(wire.alive() and not wire.answer(1).body, "content came without a window")
    wire.send(h.settings(s4=100))
    expect_same("content", wire.read(1).body, b"x" * 100)


@http2("RFC 9113 §6.9: a client's windows open as the origin server reads its content")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.until(lambda w: 4 in w.settings)
    room, total = {1: wire.settings[4], 0: 65535}, 2_000_000
    wire.send(h.headers(1, h.head("POST", "/patient/", ("content-length", str(total))), end=False))
    sent = 0
    while sent < total:
        free = min(room[1] + wire.updates.get(1, 0), room[0] + wire.updates.get(0, 0)) - sent
        if free <= 0:
            wire.step()
            continue
        count = min(16384, free, total - sent)
        wire.send(h.data(1, bytes(count), end=sent + count == total))
        sent += count
    expect_same("status", wire.read(1).status, 200)
    expect_same("content", len(t.main.requests[0].body), total)


# --- Messages

@http2("RFC 9113 §8.1: a request goes upstream over HTTP/1.1, and its response comes back")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-Origin: yes\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\r\nok"))
    wire = speak(t)
    answer = wire.ask(1, h.head("GET", "/preserving/a?b=c", ("x-client", "yes"), ("accept", "*/*")))
    expect_same("answer", (answer.status, answer.body, answer.get("x-origin"), answer.get("content-length"), answer.get("via")), (200, b"ok", "yes", "2", "1.1 httpware"))
    check(answer.get("x-hop") is None and answer.get("keep-alive") is None, answer)
    request = t.main.requests[0]
    expect_same("request", (request.start, request.get("Host"), request.get("x-client"), request.get("Via"), request.framing),
                (b"GET /preserving/a?b=c HTTP/1.1", "example.test", "yes", "2 httpware", "none"))


@http2("RFC 9113 §8.1: content with a length goes upstream with it, content without a length is chunked")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("POST", "/", ("content-length", "5")), b"hello").status, 200)
    expect_same("status", wire.ask(3, h.head("POST"), b"hello").status, 200)
    expect_same("upstream", [(r.framing, r.body) for r in t.main.requests], [("length", b"hello"), ("chunked", b"hello")])


@http2("RFC 9113 §8.1: many concurrent streams each receive their own answer")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            target = c.serve().target.encode()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(target), target))

    t.origin(script)
    wire = speak(t)
    wire.send(*(h.headers(2 * number + 1, h.head("GET", f"/{number}")) for number in range(50)))
    for number in range(50):
        expect_same("answer", wire.read(2 * number + 1).body, f"/{number}".encode())


@http2("RFC 9113 §5.1: if clients reset some of their streams, each other stream receives its own answer")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            request = c.serve()
            own = (request.target.encode() + b" " + request.body) * 50
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Own: %s\r\n\r\n%s" % (len(own), request.target.encode(), own))

    t.origin(script)
    wire = speak(t)
    for turn in range(20):
        streams = range(60 * turn + 1, 60 * turn + 61, 2)
        kept = [stream for stream in streams if stream // 2 % 3 != turn % 3]
        wire.send(*(h.headers(stream, h.head("POST", f"/{stream}", ("x-own", str(stream))), end=False) for stream in streams))
        wire.send(*(h.data(stream, b"of %d" % stream, end=stream % 5 > 0) for stream in streams))
        wire.send(*(h.reset(stream) for stream in streams if stream not in kept))
        wire.send(*(h.data(stream, b"", end=True) for stream in kept if stream % 5 == 0))
        for stream in kept:
            answer = wire.read(stream)
            expect_same("answer", (answer.status, answer.get("x-own"), answer.body), (200, f"/{stream}", b"/%d of %d" % (stream, stream) * 50))


@http2("RFC 9113 §8.1: a slow answer does not delay others")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            if c.serve().target == "/patient/slow":
                pause(0.5, Why.SLOW)
            c.send(OK)

    t.origin(script)
    wire = speak(t)
    wire.send(h.headers(1, h.head("GET", "/patient/slow")), h.headers(3, h.head("GET", "/patient/fast")))
    expect_same("status", wire.read(3).status, 200)
    check(not wire.answer(1).heads, "the slow one came first")
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §8.1: trailers of a request go upstream behind chunks")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST"), end=False), h.data(1, b"content"), h.headers(1, [("x-sum", "7"), ("host", "evil.test")]))
    expect_same("status", wire.read(1).status, 200)
    request = t.main.requests[0]
    expect_same("content and trailers", (request.body, request.trailers), (b"content", [("x-sum", "7")]))


@http2("RFC 9113 §8.1: trailers of a response end the stream")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 3\r\n\r\n"))
    wire = speak(t)
    answer = wire.ask(1, h.head("GET", "/", ("te", "trailers")))
    expect_same("answer", (answer.status, answer.body, answer.trailers, answer.ended_by), (200, b"abc", {"x-sum": "3"}, "HEADERS"))
    expect_same("upstream", t.main.requests[0].get("TE"), "trailers")


@http2("RFC 9110 §7.6.1: trailers that the origin server's Connection names do not reach a client of HTTP/2")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\n\r\n3\r\nabc\r\n0\r\nX-Hop: 1\r\nX-Sum: 3\r\nKeep-Alive: a\r\n\r\n"))
    answer = speak(t).ask(1, h.head("GET", "/", ("te", "trailers")))
    expect_same("answer", (answer.body, answer.trailers), (b"abc", {"x-sum": "3"}))


@http2("RFC 9113 §8.1: a second head that does not end the stream resets it")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST"), end=False), h.data(1, b"x"), h.headers(1, [("x-a", "1")], end=False))
    expect_reset(wire, 1, h.PROTOCOL)
    check(not t.main.requests, "a whole request went upstream")


@http2("RFC 9113 §8.1: a pseudo-field among trailers resets the stream")
def _(t: Trial) -> None:
    t.origin(quiet)
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST"), end=False), h.headers(1, [(":path", "/other")]))
    expect_reset(wire, 1, h.PROTOCOL)
    check(not t.main.requests, "a whole request went upstream")


@http2("RFC 9113 §8.1: an answer before the end of the request is whole, and a reset asks the client to stop")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/mock"), end=False))
    answer = wire.read(1)
    expect_same("answer", (answer.status, answer.body, answer.ended), (200, b"mocked", True))
    wire.until(lambda w: w.answer(1).reset is not None)
    expect_same("reset", wire.answer(1).reset, h.NO_ERROR)
    wire.send(h.data(1, bytes(1000), end=True))
    expect_same("status", wire.ask(3, h.head("GET", "/mock")).status, 200)


def refused(t: Trial, size: int = 1000, **more) -> "h.Http2Wire":
    """A client whose upload was refused before its end."""
    t.origin()
    wire = speak(t, **more)
    wire.send(h.headers(1, h.head("POST", "/limited/"), end=False), h.data(1, bytes(size)))
    answer = wire.read(1)
    expect_same("answer", (answer.status, answer.ended, answer.reset), (413, True, None))
    return wire


@http2("RFC 9113 §8.1: the reset behind an early answer waits for the acknowledgement of a PING, for curl would discard the answer")
def _(t: Trial) -> None:
    wire = refused(t)
    wire.until(lambda w: w.answer(1).reset is not None, 0.9)
    kinds = [type(frame).__name__ for frame in wire.frames]
    check(kinds.index("PingFrame") < kinds.index("RstStreamFrame"), kinds)
    expect_same("reset", wire.answer(1).reset, h.NO_ERROR)
    check(wire.alive(), "the connection ended, too")


@http2("RFC 9113 §8.1: without that acknowledgement the reset comes after a second")
def _(t: Trial) -> None:
    began = time.monotonic()
    wire = refused(t, acknowledges=False)
    wire.until(lambda w: w.answer(1).reset is not None)
    check(0.8 < time.monotonic() - began < 4, f"after {time.monotonic() - began:.2f} s")
    check(wire.alive(), "the connection ended, too")


@http2("RFC 9113 §8.1: no window is opened for an upload that was refused")
def _(t: Trial) -> None:
    wire = refused(t, acknowledges=False)
    before = wire.updates.get(1, 0)
    wire.send(*(h.data(1, bytes(8_000)) for _ in range(15)))
    wire.until(lambda w: w.answer(1).reset is not None)
    expect_same("more of the window", wire.updates.get(1, 0), before)
    check(wire.updates.get(0, 0) > 0 or wire.alive(), "the connection ended, too")


@http2("RFC 9113 §8.1: a short upload whose answer is an early success is read to its end, without a reset")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/mock", ("content-length", "600000")), end=False))
    answer = wire.read(1)
    expect_same("answer", (answer.status, answer.body, answer.get("content-length")), (200, b"mocked", None))
    left, room = 600_000, 65_535
    while left:
        wire.until(lambda w: w.settings.get(4) is not None)
        room = wire.settings[4] + wire.updates.get(1, 0) - (600_000 - left)
        if room <= 0:
            wire.step()
            continue
        piece = min(left, room, 16_000)
        left -= piece
        wire.send(h.data(1, bytes(piece), end=not left))
    check(wire.alive(), "the connection ended")
    expect_same("reset", wire.answer(1).reset, None)


@http2("RFC 9113 §8.1: Debian's curl shows the status of an early answer to a large upload")
def _(t: Trial) -> None:
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    t.origin()
    file = t.setup.place.subfolder("upload") / "content"
    for path, status, exits in (("/limited/", "413", (0,)), ("/mock", "200", (0, 92)), ("/nowhere/../barred/a", "403", (0,))):
        for size in (100_000, 1_000_000, 10 << 20):
            file.write_bytes(bytes(size))
            for _ in range(3):
                began = time.monotonic()
                result = subprocess.run(
                    ["curl", "--silent", "--http2-prior-knowledge", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}",
                     "--header", "Expect:", "--data-binary", f"@{file}", "http://%s:%s%s" % (*t.setup.addresses["web"], path)],
                    capture_output=True, text=True, timeout=30)
                took = time.monotonic() - began
                check(took < 4, f"{size} bytes to {path} took {took:.1f} s")
                check(result.stdout == status and result.returncode in exits, f"{size} bytes to {path}: {result.stdout}, exit {result.returncode}")


@http2("RFC 9113 §8.1: interim responses come before the final one")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + OK))
    wire = speak(t)
    answer = wire.ask(1, h.head())
    expect_same("answer", (answer.interim, answer.status, answer.body), ([103], 200, b"ok"))


@http2("RFC 9110 §10.1.1: a client of HTTP/2 that waits for 100 receives it")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        request = c.read_request_head()
        check(request.get("Expect") == "100-continue", request)
        c.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        c.read_until(b"0\r\n\r\n")
        c.send(OK)

    t.origin(script)
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/", ("expect", "100-continue")), end=False))
    wire.until(lambda w: w.answer(1).heads)
    expect_same("interim", wire.answer(1).interim, [100])
    wire.send(h.data(1, b"content", end=True))
    expect_same("status", wire.read(1).status, 200)


@http2("RFC 9113 §8.1: answers without content end with their head")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
                       b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    wire = speak(t)
    for stream, method, status, stated in ((1, "HEAD", 200, "7"), (3, "GET", 204, None), (5, "GET", 304, None), (7, "GET", 200, "0")):
        answer = wire.ask(stream, h.head(method))
        expect_same("answer", (answer.status, answer.body, answer.ended_by, answer.get("content-length")), (status, b"", "HEADERS", stated))


@http2("RFC 9113 §8.1: an answer that is cut off upstream is cut off for the client")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", close=True))
    wire = speak(t)
    answer = wire.ask(1, h.head())
    check(not answer.ended and answer.reset == h.INTERNAL, answer)
    check(wire.alive(), "the connection ended, too")


@http2("RFC 9113 §8.1.1: content longer than announced resets the stream, and the request stays incomplete upstream")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/", ("content-length", "5")), end=False), h.data(1, b"123"), h.data(1, b"456789", end=True))
    expect_reset(wire, 1, h.PROTOCOL)
    pause(0.1, Why.NOTHING)
    check(not t.main.requests, t.main.requests)


@http2("RFC 9113 §8.1.1: content shorter than announced resets the stream, and the request stays incomplete upstream")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/", ("content-length", "5")), end=False), h.data(1, b"123", end=True))
    expect_reset(wire, 1, h.PROTOCOL)
    pause(0.1, Why.NOTHING)
    check(not t.main.requests, t.main.requests)


@http2("RFC 9113 §8.1.1: trailers before the end of the announced content reset the stream")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/", ("content-length", "5")), end=False), h.data(1, b"123"), h.headers(1, [("x-a", "1")]))
    expect_reset(wire, 1, h.PROTOCOL)
    pause(0.1, Why.NOTHING)
    check(not t.main.requests, t.main.requests)


@http2("RFC 9113 §8.1.1: content of length 0 may end with a frame of its own")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("POST", "/", ("content-length", "0")), b"").status, 200)
    expect_same("upstream", (t.main.requests[0].framing, t.main.requests[0].body), ("length", b""))


@http2("RFC 9113 §8.2: chunks in DATA stay content")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    smuggled = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    expect_same("status", wire.ask(1, h.head("POST"), smuggled).status, 200)
    expect_same("upstream", [(r.target, r.body) for r in t.main.requests], [("/", smuggled)])


@http2("RFC 9113 §8.2.2: te with trailers is accepted")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("GET", "/", ("te", "trailers"))).status, 200)


@http2("RFC 9113 §8.2.3: the parts of a cookie are joined to one line upstream")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("GET", "/", ("cookie", "a=1"), ("cookie", "b=2"), ("x-a", "1"), ("cookie", "c=3"))).status, 200)
    expect_same("cookies", t.main.requests[0].all("Cookie"), ["a=1; b=2; c=3"])


@http2("RFC 9113 §8.3.1: equal host and :authority become one Host upstream")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("GET", "/preserving/", ("host", "EXAMPLE.test"))).status, 200)
    expect_same("upstream", t.main.requests[0].all("Host"), ["example.test"])


@http2("RFC 9113 §8.3.1: host without :authority is the authority")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    fields = [field for field in h.head("GET", "/preserving/", ("host", "alone.test")) if field[0] != ":authority"]
    expect_same("status", wire.ask(1, fields).status, 200)
    expect_same("upstream", t.main.requests[0].all("Host"), ["alone.test"])


@http2("RFC 9113 §8.3.1: OPTIONS * goes upstream unchanged")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("OPTIONS", "*")).status, 200)
    expect_same("upstream", t.main.requests[0].start, b"OPTIONS * HTTP/1.1")


@http2("RFC 9112 §3.2: a path that leads above the root is 400, as in HTTP/1.1")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    for stream, path in ((1, "/../x"), (3, "/a/%2e%2e/b"), (5, "/%zz"), (7, "/%00")):
        expect_same(path, wire.ask(stream, h.head("GET", path)).status, 400)
    nothing_upstream(t)


@http2("RFC 9113 §8.3.1: a path longer than the limit is 414, a head larger than the limit 431")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t, "narrow")
    expect_same("path", wire.ask(1, h.head("GET", "/" + "a" * 1100)).status, 414)
    expect_same("head", wire.ask(3, h.head("GET", "/", ("x-long", "a" * 5000))).status, 431)
    expect_same("lines", wire.ask(5, h.head("GET", "/", *((f"x-{n}", "1") for n in range(30)))).status, 431)
    nothing_upstream(t)
    expect_same("a request behind them", wire.ask(7, h.head()).status, 200)


@http2("RFC 9113 §8.5: CONNECT opens a tunnel over DATA, both ways")
def _(t: Trial) -> None:
    t.origin(lambda c: [c.sock.sendall(c.take(len(c.buffer))) for _ in iter(c.fill, False)])
    wire = speak(t, "proxy")
    wire.send(h.headers(1, [(":method", "CONNECT"), (":authority", f"127.0.0.1:{t.main.port}")], end=False))
    wire.until(lambda w: w.answer(1).heads)
    expect_same("status", wire.answer(1).status, 200)
    check(wire.answer(1).get("content-length") is None and not wire.answer(1).ended, wire.answer(1))
    wire.send(h.data(1, b"first"))
    wire.until(lambda w: w.answer(1).body == b"first")
    wire.send(h.data(1, b" second", end=True))
    answer = wire.read(1)
    expect_same("bytes", (answer.body, answer.ended), (b"first second", True))


@http2("RFC 9113 §8.5: CONNECT to a port that is not allowed is 403, and 405 on a reverse listener")
def _(t: Trial) -> None:
    wire = speak(t, "proxy")
    expect_same("proxy", wire.ask(1, [(":method", "CONNECT"), (":authority", "127.0.0.1:1")]).status, 403)
    wire = speak(t)
    expect_same("gateway", wire.ask(1, [(":method", "CONNECT"), (":authority", "127.0.0.1:443")]).status, 405)


@http2("RFC 9113 §8.5: a tunnel and requests share a connection to a proxy")
def _(t: Trial) -> None:
    t.origin()
    second = t.origin(lambda c: [c.sock.sendall(c.take(len(c.buffer))) for _ in iter(c.fill, False)], "second")
    wire = speak(t, "proxy")
    wire.send(h.headers(1, [(":method", "CONNECT"), (":authority", f"127.0.0.1:{second.port}")], end=False))
    answer = wire.ask(3, h.head("GET", "/a?b", authority=f"127.0.0.1:{t.main.port}"))
    expect_same("answer", (answer.status, answer.body), (200, b"ok"))
    expect_same("upstream", (t.main.requests[0].start, t.main.requests[0].get("Host")), (b"GET /a?b HTTP/1.1", f"127.0.0.1:{t.main.port}"))
    wire.send(h.data(1, b"x"))
    wire.until(lambda w: w.answer(1).body == b"x")


@http2("RFC 9113 §6.8: a drain is announced, lets sent requests finish, and then ends the connection")
def _(t: Trial) -> None:
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            gate.wait(5)
            c.send(OK)

    t.origin(script)
    process, port = started(t)
    wire, idle = h.Http2Wire(open_client(t, port)), h.Http2Wire(open_client(t, port))
    wire.send(h.headers(1, h.head()))
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    process.signal()
    wire.until(lambda w: w.goaways)
    expect_same("announced", (wire.goaway.last_stream_id, wire.goaway.error_code), (0x7FFFFFFF, h.NO_ERROR))
    wire.send(h.headers(3, h.head()))  # it crossed the announcement
    wire.until(lambda w: len(w.goaways) == 2)
    expect_same("meant", (wire.goaway.last_stream_id, wire.goaway.error_code), (3, h.NO_ERROR))
    gate.set()
    for stream in (1, 3):
        expect_same("status", wire.read(stream).status, 200)
    expect_same("the end", (wire.end(), idle.end()), (h.NO_ERROR, h.NO_ERROR))
    wire.wire.close()
    idle.wire.close()
    expect_same("exit", process.wait(4), 0)


# --- RFC 8441

def extended(path: str = "/patient/chat", protocol: str = "websocket") -> list:
    return h.head("CONNECT", path, (":protocol", protocol), ("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat"), ("origin", "http://example.test"))


@http2("RFC 8441 §5: a WebSocket over HTTP/2 becomes a WebSocket over HTTP/1.1 upstream, with bytes in both directions")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        key = c.serve().get("Sec-WebSocket-Key")
        c.send(SWITCH.replace(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", accept(key).encode() + b"\r\nSec-WebSocket-Protocol: chat") + b"hello")
        while c.fill():
            c.sock.sendall(c.take(len(c.buffer)))

    t.origin(script)
    wire = speak(t)
    wire.send(h.headers(1, extended(), end=False), h.data(1, b"early "))
    wire.until(lambda w: w.answer(1).body == b"helloearly ")
    answer = wire.answer(1)
    expect_same("answer", (answer.status, answer.get("sec-websocket-protocol"), answer.get("sec-websocket-accept"), answer.get("upgrade")), (200, "chat", None, None))
    request = t.main.requests[0]
    expect_same("upstream", (request.start, request.get("Upgrade"), request.options(), request.get("Sec-WebSocket-Version"), len(request.get("Sec-WebSocket-Key") or "")),
                (b"GET /patient/chat HTTP/1.1", "websocket", {"upgrade"}, "13", 24))
    wire.send(h.data(1, bytes(100_000)[:16384]))
    wire.until(lambda w: len(w.answer(1).body) == 11 + 16384)
    wire.send(h.data(1, b"", end=True))
    check(wire.read(1).ended, "the end did not come back")


@http2("RFC 8441 §5: an origin server that does not switch causes 502, or its own refusal")
def _(t: Trial) -> None:
    t.origin(answering(OK, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"))
    wire = speak(t)
    wire.send(h.headers(1, extended(), end=False))
    check(wire.read(1).status == 502, wire.answer(1))
    wire.send(h.headers(3, extended(), end=False))
    answer = wire.read(3)
    expect_same("answer", (answer.status, answer.body), (403, b"no"))


@http2("RFC 8441 §4: an unknown protocol is 501")
def _(t: Trial) -> None:
    wire = speak(t)
    wire.send(h.headers(1, extended(protocol="connect-udp"), end=False))
    expect_same("status", wire.read(1).status, 501)
    nothing_upstream(t)


# --- What arrives at once

@http2("a client that reads slowly slows its own stream upstream, and no other stream")
def _(t: Trial) -> None:
    progress = [0]

    def script(c: OriginConnection) -> None:
        request = c.serve()
        if request.target != "/patient/big":
            return c.send(OK)
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20))
        while progress[0] < 64 << 20:
            if not c.send(bytes(1 << 20)):
                return
            progress[0] += 1 << 20

    t.origin(script)
    wire = speak(t, opens=False)
    wire.send(h.headers(1, h.head("GET", "/patient/big")))
    wire.until(lambda w: w.answer(1).body)
    pause(1, Why.NOTHING)
    check(progress[0] < 40 << 20, f"{progress[0] >> 20} MiB left the origin server for a client with a window of 64 KiB")
    check(t.gateway.status("VmRSS") < 200_000, f"{t.gateway.status('VmRSS')} KiB")
    wire.send(h.window(0, BIG))
    wire.send(h.headers(3, h.head("GET", "/patient/small")))
    expect_same("status", wire.read(3).status, 200)
