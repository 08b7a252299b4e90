"""HTTP/2 to origin servers: what goes out on it, and what its faults come to (RFC 9113)."""

from __future__ import annotations

import threading
import time

from Rig.origins import OriginConnection
from Rig.waits import Why, pause
from Rig.wire import WireClosed
from suite import Trial, check, eventually, expect_same, expect_status, proxy_error

from .http2 import MISSING, faults, http2, speak

if not MISSING:
    from .http2 import h


class Http2Origin:
    """Serves a connection from the program under test, frame by frame: `answer(self, stream, fields, body)` says what comes back."""

    def __init__(self, c: OriginConnection, answer, settings: bytes | None = None):
        self.c, self.answer = c, answer
        self.decoder = h.hpack.Decoder()
        self.requests: list[tuple[int, list, bytes, dict]] = []
        self.open: dict[int, list] = {}
        self.resets: dict[int, int] = {}
        self.windows: dict[int, int] = {}
        self.settings: dict[int, int] = {}
        self.goaways: list[int] = []
        self.c.send(settings if settings is not None else h.settings())

    def run(self) -> None:
        check(self.c.read_exactly(len(h.PREFACE)) == h.PREFACE, "no preface")
        block, ends = b"", False
        while True:
            first = self.c.read_exactly(9)
            size, kind, flags, stream = int.from_bytes(first[:3], "big"), first[3], first[4], int.from_bytes(first[5:], "big")
            payload = self.c.read_exactly(size)
            if kind in (1, 9):
                if kind == 1:
                    block, ends = b"", bool(flags & 1)
                    if flags & 0x20:
                        payload = payload[5:]
                block += payload
                if flags & 4:
                    fields = [(bytes(n).decode("latin-1"), bytes(v).decode("latin-1")) for n, v in self.decoder.decode(block, raw=True)]
                    if stream in self.open:
                        self.open[stream][2] = fields
                    else:
                        self.open[stream] = [fields, b"", []]
                    if ends:
                        self.done(stream)
                    elif (":method", "CONNECT") in fields:
                        self.opened(stream, fields)
            elif kind == 0:
                if (":method", "CONNECT") in self.open[stream][0]:
                    self.came(stream, payload, bool(flags & 1))
                    flags = 0
                self.open[stream][1] += payload
                if payload:
                    self.c.send(h.window(0, len(payload)) + (b"" if flags & 1 else h.window(stream, len(payload))))
                if flags & 1:
                    self.done(stream)
            elif kind == 3:
                self.resets[stream] = int.from_bytes(payload, "big")
            elif kind == 4 and not flags & 1:
                for place in range(0, size, 6):
                    self.settings[int.from_bytes(payload[place : place + 2], "big")] = int.from_bytes(payload[place + 2 : place + 6], "big")
                self.c.send(h.raw(4, 1, 0))
            elif kind == 6 and not flags & 1:
                self.c.send(h.ping(payload, ack=True))
            elif kind == 7:
                self.goaways.append(int.from_bytes(payload[4:8], "big"))
            elif kind == 8:
                self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")

    def opened(self, stream: int, fields: list) -> None:
        """A tunnel is asked for."""

    def came(self, stream: int, content: bytes, ends: bool) -> None:
        """Bytes came in a tunnel."""

    def done(self, stream: int) -> None:
        fields, body, trailers = self.open[stream]
        self.requests.append((stream, fields, body, dict(trailers)))
        self.answer(self, stream, fields, body)

    def reply(self, stream: int, status: int = 200, body: bytes = b"ok", *fields, trailers=None) -> None:
        self.c.send(h.headers(stream, [(":status", str(status)), *fields], end=not body and trailers is None))
        while len(body) > 16384:
            self.c.send(h.data(stream, body[:16384]))
            body = body[16384:]
        if body:
            self.c.send(h.data(stream, body, end=trailers is None))
        if trailers is not None:
            self.c.send(h.headers(stream, trailers))


def serving(answer=None, settings: bytes | None = None, kept: list | None = None):
    def script(c: OriginConnection) -> None:
        origin = Http2Origin(c, answer or (lambda o, stream, fields, body: o.reply(stream)), settings)
        if kept is not None:
            kept.append(origin)
        origin.run()

    return script


def get(path: str = "/h2/", *fields: bytes) -> bytes:
    return b"\r\n".join([b"GET %s HTTP/1.1" % path.encode(), b"Host: example.test", *fields, b"", b""])


@http2("RFC 9113 §3.3: a service with protocol h2 is reached over HTTP/2 without negotiation")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(kept=kept))
    response = t.ask(get("/h2/a?b=c", b"X-Client: Yes", b"Cookie: a=1; b=2", b"Connection: X-Hop", b"X-Hop: 1", b"TE: trailers", b"Authorization: Basic eDp5"))
    expect_status(response, 200)
    expect_same("answer", (response.body, response.get("Via")), (b"ok", "2 httpware"))
    stream, fields, body, _ = kept[0].requests[0]
    expect_same("pseudo-fields", fields[:4], [(":method", "GET"), (":scheme", "http"), (":authority", f"127.0.0.1:{t.main.port}"), (":path", "/h2/a?b=c")])
    expect_same("fields", dict(fields[4:]), {"x-client": "Yes", "cookie": "a=1; b=2", "via": "1.1 httpware", "authorization": "Basic eDp5", "te": "trailers"})
    expect_same("push", kept[0].settings.get(2), 0)


@http2("RFC 9110 §7.6.1: trailers that the client's Connection names do not reach an origin server of HTTP/2")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(kept=kept))
    response = t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"1\r\na\r\n0\r\nX-Hop: 1\r\nX-Sum: 7\r\nTE: a\r\n\r\n")
    expect_status(response, 200)
    expect_same("upstream", kept[0].requests[0][2:], (b"a", {"x-sum": "7"}))


@http2("RFC 9113 §8.1: HTTP/2 on both sides: fields, content and trailers pass in both directions")
def _(t: Trial) -> None:
    kept: list = []

    def answer(o, stream, fields, body):
        o.reply(stream, 200, body[::-1], ("x-origin", "yes"), trailers=[("x-sum", "7")])

    t.origin(serving(answer, kept=kept))
    wire = speak(t)
    wire.send(h.headers(1, h.head("POST", "/h2/", ("te", "trailers"), ("content-length", "7")), end=False), h.data(1, b"content"), h.headers(1, [("x-check", "1")]))
    answer = wire.read(1)
    expect_same("answer", (answer.status, answer.body, answer.get("x-origin"), answer.get("via"), answer.trailers), (200, b"tnetnoc", "yes", "2 httpware", {"x-sum": "7"}))
    _, fields, body, trailers = kept[0].requests[0]
    expect_same("upstream", (body, trailers, dict(fields).get("te"), dict(fields).get("content-length")), (b"content", {"x-check": "1"}, "trailers", "7"))


@http2("RFC 9113 §8.1: chunks from a client of HTTP/1.1 become DATA, and DATA without a length becomes chunks")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, body * 2, trailers=[("x-sum", "7")]), kept=kept))
    response = t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Check: 1\r\n\r\n")
    expect_same("answer", (response.framing, response.body, response.trailers), ("chunked", b"abcabc", [("x-sum", "7")]))
    expect_same("upstream", (kept[0].requests[0][2], kept[0].requests[0][3]), (b"abc", {"x-check": "1"}))
    check("transfer-encoding" not in dict(kept[0].requests[0][1]), kept[0].requests[0][1])


@http2("RFC 9113 §5.1.2: many requests share one connection")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, dict(fields)[":path"].encode()), kept=kept))
    wire = speak(t)
    wire.send(*(h.headers(2 * n + 1, h.head("GET", f"/h2/{n}")) for n in range(60)))
    for n in range(60):
        expect_same("answer", wire.read(2 * n + 1).body, f"/h2/{n}".encode())
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 9113 §5.1.2: a connection has at most as many streams as the origin server allows; the others use another connection")
def _(t: Trial) -> None:
    kept: list = []
    most = [0]

    def answer(o, stream, fields, body):
        most[0] = max(most[0], len(o.open) - sum(1 for _ in getattr(o, "closed", [])))
        pause(0.02, Why.SLOW)
        o.closed = getattr(o, "closed", []) + [stream]
        o.reply(stream)

    t.origin(serving(answer, h.settings(s3=2), kept))
    wire = speak(t)
    expect_same("status", wire.ask(1, h.head("GET", "/h2/")).status, 200)
    wire.send(*(h.headers(2 * n + 3, h.head("GET", f"/h2/{n}")) for n in range(10)))
    for n in range(10):
        expect_same("status", wire.read(2 * n + 3).status, 200)
    check(most[0] <= 2, f"{most[0]} streams at a time")


@http2("RFC 9113 §6.8: requests of each method above the last stream of a GOAWAY go to another connection")
def _(t: Trial) -> None:
    count = [0]

    def answer(o, stream, fields, body):
        count[0] += 1
        if count[0] == 1:
            o.c.send(h.raw(7, 0, 0, (0).to_bytes(4, "big") + (0).to_bytes(4, "big")))
        else:
            o.reply(stream)

    t.origin(serving(answer))
    response = t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
    expect_status(response, 200)
    expect_same("connections", len(t.main.used), 2)


@http2("RFC 9113 §6.8: a request below the last stream of a GOAWAY is answered; the next goes elsewhere")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        o.c.send(h.raw(7, 0, 0, stream.to_bytes(4, "big") + (0).to_bytes(4, "big")))
        o.reply(stream)

    t.origin(serving(answer))
    expect_status(t.ask(get()), 200)
    expect_status(t.ask(get()), 200)
    expect_same("connections", len(t.main.used), 2)


@http2("RFC 9113 §8.7: a refused stream is tried again for each method")
def _(t: Trial) -> None:
    count = [0]

    def answer(o, stream, fields, body):
        count[0] += 1
        if count[0] == 1:
            o.c.send(h.reset(stream, h.REFUSED))
        else:
            o.reply(stream)

    t.origin(serving(answer))
    expect_status(t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n"), 200)
    expect_same("requests", count[0], 2)


@http2("RFC 9113 §8.7: a refused request is sent again with its content, up to five times")
def _(t: Trial) -> None:
    for refusals, status in ((1, 200), (5, 200), (6, 502)):
        kept: list = []

        def answer(o, stream, fields, body, count=[refusals]):
            count[0] -= 1
            if count[0] >= 0:
                o.c.send(h.reset(stream, h.REFUSED))
            else:
                o.reply(stream, 200, body)

        t.origin(serving(answer, kept=kept))
        for framing, content in ((b"Content-Length: 3", b"abc"), (b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n")):
            answer.__defaults__[0][0] = refusals
            response = t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\n" + framing + b"\r\n\r\n" + content)
            expect_same("status", (refusals, response.status), (refusals, status))
            if status == 200:
                expect_same("content", response.body, b"abc")
        bodies = {request[2] for origin in kept for request in origin.requests}
        expect_same("content of all attempts", bodies, {b"abc"})


@http2("RFC 9113 §8.7: content of 64 KiB is sent again, content with one byte more is not")
def _(t: Trial) -> None:
    for size, status in ((65536, 200), (65537, 502)):
        count = [0]

        def answer(o, stream, fields, body):
            count[0] += 1
            if count[0] == 1:
                o.c.send(h.reset(stream, h.REFUSED))
            else:
                o.reply(stream, 200, str(len(body)).encode())

        t.origin(serving(answer))
        response = t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        expect_same("status", (size, response.status), (size, status))


@http2("RFC 9113 §3.4: one request is sent before the settings, the others wait for them")
def _(t: Trial) -> None:
    kept: list = []

    def script(c):
        origin = Http2Origin(c, lambda o, stream, fields, body: o.reply(stream), b"")
        kept.append(origin)
        pause(0.3, Why.SLOW)
        c.send(h.settings(s3=1))
        origin.run()

    t.origin(script)
    wire = speak(t)
    wire.send(*(h.headers(2 * n + 1, h.head("POST", f"/h2/{n}")) for n in range(6)))
    for n in range(6):
        expect_same("status", wire.read(2 * n + 1).status, 200)


@http2("RFC 9110 §10.1.1: an unanswered expectation is granted before the client stops waiting")
def _(t: Trial) -> None:
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, body)))
    client = t.client()
    began = time.monotonic()
    client.send(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    client.read_until(b"HTTP/1.1 100 Continue\r\n\r\n")
    check(time.monotonic() - began < 0.8, "100 comes late")
    client.send(b"abc")
    expect_same("content", client.read_response().body, b"abc")


@http2("RFC 9113 §5.4.2: a stream that is reset without an answer is 502, and the connection stays")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        if dict(fields)[":path"].endswith("bad"):
            o.c.send(h.reset(stream, h.INTERNAL))
        else:
            o.reply(stream)

    t.origin(serving(answer))
    response = t.ask(b"POST /h2/bad HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
    expect_status(response, 502)
    expect_same("fault", proxy_error(response), "connection_terminated")
    expect_status(t.ask(get()), 200)
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 9113 §5.4.2: a stream that is reset inside its content cuts off the response")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        o.c.send(h.headers(stream, [(":status", "200"), ("content-length", "10")], end=False) + h.data(stream, b"half"))
        pause(0.05, Why.SLOW)
        o.c.send(h.reset(stream, h.INTERNAL))

    t.origin(serving(answer))
    response = t.ask(get())
    check(not response.whole, response)


def malformed():
    def head(*fields):
        return [(":status", "200"), *fields]

    return [
        ("§8.3.2: a missing status", [("x-a", "1")]),
        ("§8.3.2: a status of two digits", [(":status", "20")]),
        ("§8.3.2: a status of letters", [(":status", "abc")]),
        ("§8.3.2: a status twice", [(":status", "200"), (":status", "200")]),
        ("§8.3: a pseudo-field of requests", head((":path", "/"))),
        ("§8.3: a pseudo-field behind a field", [("x-a", "1"), (":status", "200")]),
        ("§8.2.1: a field name with a capital letter", head(("X-A", "1"))),
        ("§8.2.1: a field value with CR and LF", head(("x-a", "1\r\nset-cookie: x=y"))),
        ("§8.2.1: a field value with NUL", head(("x-a", "\0"))),
        ("§8.2.2: transfer-encoding", head(("transfer-encoding", "chunked"))),
        ("§8.2.2: connection", head(("connection", "close"))),
        ("§8.6: 101", [(":status", "101"), ("upgrade", "websocket")]),
        ("§8.1.1: announced content that is missing", head(("content-length", "5"))),
        ("§8.1.1: two lengths", head(("content-length", "0"), ("content-length", "1"))),
        ("§8.1: an interim response that ends the stream", [(":status", "103")]),
    ]


if not MISSING:
    for section, fields in malformed():

        def refused(t: Trial, fields=fields) -> None:
            t.origin(serving(lambda o, stream, _, body: o.c.send(h.headers(stream, fields)) if dict(_)[":path"].endswith("bad") else o.reply(stream)))
            response = t.ask(b"POST /h2/bad HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
            expect_status(response, 502)
            expect_same("fault", proxy_error(response), "http_protocol_error")
            expect_status(t.ask(get()), 200)
            expect_same("connections", len(t.main.used), 1)

        http2(f"RFC 9113 {section} in a response is 502, and only its stream ends")(refused)


def frames():
    """The connection errors that an origin server can cause in place of an answer to stream 1."""
    p, fs, sc, c, calm = h.PROTOCOL, h.FRAME_SIZE, h.STREAM_CLOSED, h.COMPRESSION, h.CALM
    ok = [(":status", "200")]
    half = h.headers(1, ok, done=False)
    return [
        ("§4.2: a frame larger than SETTINGS_MAX_FRAME_SIZE", h.headers(1, ok, end=False) + h.data(1, bytes(16385)), [fs]),
        ("§4.3: a field block that cannot be decompressed", h.raw(1, 5, 1, b"\xbf\xff\x7f"), [c]),
        ("§4.3: a table size above the limit (RFC 7541 §6.3)", h.raw(1, 5, 1, b"\x3f\xe2\xff\x7f" + h.plain(ok)), [c]),
        ("§5.1: HEADERS on an idle stream", h.headers(7, ok), [p]),
        ("§5.1: DATA on an idle stream", h.data(7, b"x"), [p, sc]),
        ("§5.1: RST_STREAM on an idle stream", h.reset(7), [p]),
        ("§5.1.1: HEADERS on a stream with an even number", h.headers(2, ok), [p]),
        ("§6.1: DATA on stream 0", h.data(0, b"x"), [p]),
        ("§6.1: DATA whose padding is as long as it", h.headers(1, ok, end=False) + h.raw(0, 8, 1, b"\x05abcd"), [p]),
        ("§6.2: HEADERS on stream 0", h.headers(0, ok), [p]),
        ("§6.4: RST_STREAM on stream 0", h.reset(0), [p]),
        ("§6.4: RST_STREAM of another length than four", h.raw(3, 0, 1, bytes(3)), [fs]),
        ("§6.5.2: SETTINGS_ENABLE_PUSH from a server", h.settings(s2=1), [p]),
        ("§6.6: a push that was not allowed", h.raw(5, 4, 1, (2).to_bytes(4, "big") + h.plain(h.head())), [p]),
        ("§6.10: CONTINUATION without a field block", h.raw(9, 4, 1, h.plain(ok)), [p]),
        ("§6.10: CONTINUATION on another stream", half + h.raw(9, 4, 3), [p]),
        ("§10.5: CONTINUATION without end", half + h.raw(9, 0, 1) * 200, [calm]),
        ("§10.5: PING without end", h.ping() * 2_000, [calm]),
        ("§10.5: SETTINGS without end", h.settings(s4=65535) * 2_000, [calm]),
        ("§10.5: empty DATA without end", h.headers(1, ok, end=False) + h.data(1) * 2_000, [calm]),
        ("§10.5.1: a field with references without end", h.raw(1, 1, 1, h.plain(ok) + b"\x40\x03x-a\x7f" + bytes([0x80 | (3900 - 127) & 0x7F, (3900 - 127) >> 7]) + b"v" * 3900) + h.raw(9, 4, 1, b"\xbe" * 16_000), [calm]),
        *faults(),
        ("§5.5: an unknown frame inside a field block", half + h.raw(0xFA, 0, 1), [p]),
    ]


if not MISSING:
    for section, sent, codes in frames():

        def faulty(t: Trial, sent=sent, codes=codes) -> None:
            kept: list = []

            def answer(o, stream, fields, body):
                if dict(fields)[":path"].endswith("bad"):
                    o.c.send(sent)
                else:
                    o.reply(stream)

            t.origin(serving(answer, kept=kept))
            client = t.client()
            client.send(b"POST /h2/bad HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
            try:
                response = client.read_response("POST")
                check(response.status == 502 or not response.whole, response)
            except WireClosed:  # its head went out before
                pass
            check(eventually(lambda: kept[0].goaways, 3), "no GOAWAY")
            check(set(kept[0].goaways) & set(codes), f"expected GOAWAY {[h.NAMES[c] for c in codes]}, got {[h.NAMES[c] for c in kept[0].goaways]}")
            expect_status(t.ask(get()), 200)
            expect_same("connections", len(t.main.used), 2)

        http2(f"RFC 9113 {section} from an origin server ends its connection, without an answer")(faulty)


@http2("RFC 9113 §10.5.1: a response's head larger than the limit is 502, and only its stream ends")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        if dict(fields)[":path"].endswith("bad"):
            block = h.plain([(":status", "200"), *((f"x-{number}", "v" * 1000) for number in range(300))])
            pieces = [block[place : place + 16000] for place in range(0, len(block), 16000)]
            o.c.send(h.raw(1, 1, stream, pieces[0]) + b"".join(h.raw(9, 4 if place == len(pieces) - 1 else 0, stream, piece) for place, piece in enumerate(pieces) if place))
        else:
            o.reply(stream)

    t.origin(serving(answer))
    response = t.ask(b"POST /h2/bad HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
    expect_status(response, 502)
    expect_same("fault", proxy_error(response), "http_response_header_section_size")
    expect_status(t.ask(get()), 200)
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 9113 §8.2.1: white space around a response's values is removed, in its trailers too")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        o.c.send(h.headers(stream, [(":status", "200"), ("x-b", " v\t")], end=False) + h.data(stream, b"x") + h.headers(stream, [("x-sum", "fine ")], end=True))

    t.origin(serving(answer))
    client = t.client()
    client.send(get("/h2/a").replace(b"\r\n\r\n", b"\r\nTE: trailers\r\nConnection: TE\r\n\r\n"))
    response = client.read_response()
    expect_same("answer", (response.status, response.get("X-B"), response.body), (200, "v", b"x"))


if not MISSING:
    for section, trailers, ends in [("§8.1: a pseudo-field among trailers", [(":status", "200")], True), ("§8.1: trailers that do not end the stream", [("x-a", "b")], False),
                                    ("§8.2.1: a capital letter in a trailer", [("X-A", "b")], True), ("§8.2.1: CR and LF in a trailer", [("x-a", "b\r\nx: y")], True),
                                    ("§8.2.2: connection among trailers", [("connection", "close")], True)]:

        def spoilt(t: Trial, trailers=trailers, ends=ends) -> None:
            t.origin(serving(lambda o, stream, fields, body: o.c.send(h.headers(stream, [(":status", "200")], end=False) + h.data(stream, b"x") + h.headers(stream, trailers, end=ends))
                             if dict(fields)[":path"].endswith("bad") else o.reply(stream)))
            client = t.client()
            client.send(get("/h2/bad"))
            try:
                response = client.read_response()
                check(response.status == 502 or not response.whole, response)
            except WireClosed:
                pass
            expect_status(t.ask(get()), 200)
            expect_same("connections", len(t.main.used), 1)

        http2(f"RFC 9113 {section} of a response cuts it off, and only its stream ends")(spoilt)


@http2("RFC 9218 §5: the priority field is passed on in both directions, in both versions")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, b"ok", ("priority", "u=1")), kept=kept))
    wire = speak(t)
    expect_same("HTTP/2", wire.ask(1, h.head("GET", "/h2/", ("priority", "u=5, i"))).get("priority"), "u=1")
    expect_same("HTTP/1.1", t.ask(get("/h2/", b"Priority: u=3")).get("Priority"), "u=1")
    expect_same("upstream", [dict(fields).get("priority") for _, fields, _, _ in kept[0].requests], ["u=5, i", "u=3"])


def expect_broken(t: Trial) -> None:
    """No whole response comes: it breaks off, before its head went out or behind."""
    try:
        response = t.ask(get())
        check(not response.whole or response.status == 502, response)
    except WireClosed:
        pass


@http2("RFC 9113 §8.1.1: a response with more content than announced is cut off")
def _(t: Trial) -> None:
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, b"123456", ("content-length", "5"))))
    expect_broken(t)


@http2("RFC 9113 §8.1.1: a response with less content than announced is cut off")
def _(t: Trial) -> None:
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 200, b"1234", ("content-length", "5"))))
    expect_broken(t)


@http2("RFC 9113 §5.4.1: another protocol than HTTP/2 on a connection upstream is 502")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.read_exactly(24)
        c.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    t.origin(script)
    expect_status(t.ask(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n"), 502)


@http2("RFC 9113 §6.9: content and its client wait for the windows of the origin server")
def _(t: Trial) -> None:
    got = [0]

    def script(c: OriginConnection) -> None:
        c.send(h.settings())
        c.read_exactly(24)
        answered = False
        while True:
            first = c.read_exactly(9)
            size, kind, flags = int.from_bytes(first[:3], "big"), first[3], first[4]
            c.read_exactly(size)
            if kind == 0:
                got[0] += size
                if got[0] == 65535 and not answered:
                    answered = True
                    pause(0.5, Why.NOTHING)
                    check(got[0] == 65535, got[0])
                    c.send(h.window(0, 1 << 30) + h.window(1, 1 << 30))
                if flags & 1:
                    c.send(h.headers(1, [(":status", "200")]))
                    return

    t.origin(script)
    client = t.client()
    total = 8 << 20
    client.send(b"POST /h2/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: %d\r\n\r\n" % total)
    threading.Thread(target=client.send, args=(bytes(total),), daemon=True).start()
    expect_status(client.read_response("POST"), 200)
    expect_same("content", got[0], total)


@http2("RFC 9113 §6.9: content of a response of each size arrives whole")
def _(t: Trial) -> None:
    body = bytes(range(256)) * 12_000

    def answer(o, stream, fields, _):
        # In the windows that the gateway opens, as a server has to.
        o.c.send(h.headers(stream, [(":status", "200")], end=False))
        threading.Thread(target=push, args=(o, stream), daemon=True).start()

    def push(o, stream):
        sent = 0
        while sent < len(body):
            free = min(o.settings.get(4, 65535) + o.windows.get(stream, 0), 65535 + o.windows.get(0, 0)) - sent
            count = min(16384, free, len(body) - sent)
            if count <= 0:
                pause(0.002, Why.SLOW)
                continue
            o.c.send(h.data(stream, body[sent : sent + count], end=sent + count == len(body)))
            sent += count

    t.origin(serving(answer))
    check(t.ask(get()).body == body, "the content differs over HTTP/1.1")
    wire = speak(t)
    check(wire.ask(1, h.head("GET", "/h2/")).body == body, "the content differs over HTTP/2")


@http2("an origin server of HTTP/2 that does not answer is 504, and its connection serves others")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        if not dict(fields)[":path"].endswith("never"):
            o.reply(stream)

    kept: list = []
    t.origin(serving(answer, kept=kept))
    response = t.ask(get("/h2hasty/never"))
    expect_status(response, 504)
    check(eventually(lambda: kept[0].resets, 2), "the stream was not given up")
    expect_status(t.ask(get("/h2hasty/")), 200)
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 9110 §15.5.9: content that stops arriving is the client's fault, 408, not the origin server's")
def _(t: Trial) -> None:
    t.origin(serving(lambda o, stream, fields, body: None))
    client = t.client("tight")
    client.send(b"POST /h2slowContent/ HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nabc")
    expect_status(client.read_response(), 408)


@http2("a client that leaves cancels its stream upstream")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(lambda o, stream, fields, body: None, kept=kept))
    client = t.client()
    client.send(get())
    check(eventually(lambda: kept and kept[0].requests, 2), "no request arrived")
    client.close()
    check(eventually(lambda: kept[0].resets == {1: h.CANCEL}, 3), kept[0].resets)


@http2("HEAD and answers without content end with their head over HTTP/2 upstream")
def _(t: Trial) -> None:
    def answer(o, stream, fields, body):
        path = dict(fields)[":path"]
        if path.endswith("head"):
            o.reply(stream, 200, b"", ("content-length", "7"))
        else:
            o.reply(stream, int(path[-3:]), b"")

    t.origin(serving(answer))
    client = t.client()
    client.send(b"HEAD /h2/head HTTP/1.1\r\nHost: example.test\r\n\r\n")
    response = client.read_response("HEAD")
    expect_same("HEAD", (response.status, response.get("Content-Length")), (200, "7"))
    for status in (204, 304):
        client.send(get(f"/h2/{status}"))
        expect_same("status", client.read_response().status, status)


@http2("RFC 9110 §7.8: a request with an Upgrade to another protocol than WebSocket goes over HTTP/2 upstream without the Upgrade")
def _(t: Trial) -> None:
    kept: list = []
    t.origin(serving(lambda o, stream, fields, body: o.reply(stream, 426, b""), kept=kept))
    response = t.ask(get("/h2/", b"Connection: Upgrade", b"Upgrade: websocket"))
    expect_status(response, 426)
    check("upgrade" not in dict(kept[0].requests[0][1]), kept[0].requests[0])
