"""Content in both directions: framing, chunks, trailers, streaming, early answers (RFC 9112 §6, §7)."""

from __future__ import annotations

import hashlib
import threading

from Rig.origins import OK, OriginConnection, answering, echo
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_closed, expect_open, expect_same, expect_status

from .fields import answer
from .refused_requests import OTHER, head, post

SIZES = (0, 1, 2, 4095, 4096, 16383, 16384, 65535, 65536, 65537, 1_000_000)


def pattern(size: int) -> bytes:
    return (b"0123456789abcdef\r\n" * (size // 18 + 1))[:size]


def chunked(data: bytes, size: int, trailer: bytes = b"") -> bytes:
    pieces = [data[index : index + size] for index in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


# --- Requests

for size in SIZES:

    @case(f"RFC 9112 §6.2: {size} bytes of fixed length go up and come back")
    def _(t: Trial, size: int = size) -> None:
        t.origin(echo)
        client = t.client(timeout=10)
        data = pattern(size)
        threading.Thread(target=client.send, args=(post(b"Content-Length: %d" % size, content=data),)).start()
        check(client.read_response().body == data, "content differs")
        request = t.main.requests[0]
        check(request.body == data, "content differs upstream")
        expect_same("framing upstream", (request.framing, request.get("Content-Length")), ("length", str(size)))
        expect_open(client)

    @case(f"RFC 9112 §7.1: {size} chunked bytes go up and come back")
    def _(t: Trial, size: int = size) -> None:
        t.origin(echo)
        client = t.client(timeout=10)
        data = pattern(size)
        raw = head(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + chunked(data, 1000)
        threading.Thread(target=client.send, args=(raw,)).start()
        check(client.read_response().body == data, "content differs")
        check(t.main.requests[0].body == data, "content differs upstream")
        expect_open(client)


@case("RFC 9112 §7.1: chunked content is parsed one byte at a time")
def _(t: Trial) -> None:
    t.origin(echo)
    client = t.client()
    client.feed(head(b"Transfer-Encoding: chunked", start=b"POST /patient/ HTTP/1.1"), True)
    raw = chunked(b"hello, world", 5)
    for index in range(len(raw)):
        client.sock.sendall(raw[index : index + 1])
    expect_same("body", client.read_response().body, b"hello, world")


@case("RFC 9112 §7.1: sizes are accepted in upper and lower case and with leading zeros; extensions are dropped")
def _(t: Trial) -> None:
    t.origin(echo)
    for bytewise in (False, True):
        client = t.client()
        raw = head(b"Transfer-Encoding: CHUNKED", start=b"POST / HTTP/1.1")
        client.send(raw)
        client.feed(b"00000A\r\n0123456789\r\na;x\r\n0123456789\r\n1;a=b;c=\"d;e\"\r\nX\r\n000;last\r\n\r\n", bytewise)
        expect_same("body", client.read_response().body, b"01234567890123456789X")
        check(b"c=\"d" not in t.main.received(), "a chunk extension went upstream")


@case("RFC 9112 §7.1.1: whitespace around the semicolon of an extension (BWS) is accepted, or refused")
def _(t: Trial) -> None:
    t.origin(echo)
    client = t.client()
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + b"5 ; a = b\r\nhello\r\n0\r\n\r\n")
    response = client.read_response()
    expect_status(response, 200, 400)
    if response.status == 200:
        expect_same("body", response.body, b"hello")


@case("RFC 9112 §6: a GET and a DELETE may have content")
def _(t: Trial) -> None:
    client = t.client()
    for method in (b"GET", b"DELETE", b"OPTIONS", b"FOO"):
        client.send(head(b"Content-Length: 5", start=method + b" / HTTP/1.1") + b"hello")
        expect_status(client.read_response(), 200)
        expect_same("content", t.main.requests[-1].body, b"hello")


@case("RFC 9110 §8.6: a POST without content has Content-Length: 0 upstream, or no length", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(start=b"POST / HTTP/1.1")), 200)
    check(t.main.requests[0].all("Content-Length") in (["0"], []), t.main.requests[0])
    expect_same("framing", t.main.requests[0].body, b"")


@case("RFC 9112 §6: a GET without content gets no framing upstream")
def _(t: Trial) -> None:
    expect_status(t.ask(head()), 200)
    expect_same("framing", t.main.requests[0].framing, "none")


@case("content streams upstream before it is complete")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        request = c.read_request(with_content=False)
        c.read_until(b"first")
        c.send(b"HTTP/1.1 103 Early Hints\r\nX-Seen: first\r\n\r\n")
        c.read_until(b"second")
        c.send(OK)
        c.origin.requests.append(request)

    t.origin(script)
    client = t.client()
    client.send(post(b"Content-Length: 11", content=b"first"))
    check(eventually(lambda: b"first" in t.main.received()), "the first part does not go up before the second")
    client.send(b"second")
    expect_status(client.read_response(), 200)


@case("content streams downstream before it is complete")
def _(t: Trial) -> None:
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst")
        gate.wait(3)
        c.send(b"second")

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    client.read_until(b"\r\n\r\n")
    expect_same("first part", client.read_exactly(5), b"first")
    gate.set()
    expect_same("second part", client.read_exactly(6), b"second")


@case("a single chunk is sent downstream before the next arrives (server-sent events)")
def _(t: Trial) -> None:
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        gate.wait(3)
        c.send(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    check(eventually(lambda: b"data: 1\n\n" in bytes(client.received) or not client.fill()), "the first event does not arrive")
    gate.set()
    expect_same("body", client.read_response().body, b"data: 1\n\ndata: 2\n\n")


# --- Trailers: RFC 9110 §6.5, RFC 9112 §7.1.2


@case("RFC 9112 §7.1.2: request trailers go upstream", nginx="nginx drops trailers")
def _(t: Trial) -> None:
    for bytewise in (False, True):
        client = t.client()
        client.send(head(b"Transfer-Encoding: chunked", b"Trailer: X-Sum", start=b"POST /patient/ HTTP/1.1"))
        client.feed(chunked(b"hello", 5, b"X-Sum: 42\r\nX-Other: a\r\n"), bytewise)
        expect_status(client.read_response(), 200)
        expect_same("trailers", t.main.requests[-1].trailers, [("X-Sum", "42"), ("X-Other", "a")])
        expect_open(client)


@case("RFC 9112 §7.1.2: response trailers go downstream", nginx="nginx drops trailers")
def _(t: Trial) -> None:
    for bytewise in (False, True):
        t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n", bytewise=bytewise))
        # RFC 9110 §6.5.1: may need TE: trailers from the client
        response = t.ask(head(b"TE: trailers", b"Connection: TE"))
        expect_same("content", (response.body, response.trailers), (b"hello", [("X-Sum", "42")]))
        t.main.end()


NAMED = ("X-Hop", "x-hop, ETag", "close, X-HOP,Link")

for named in NAMED:

    @case(f"RFC 9110 §7.6.1: trailers that Connection names are dropped in both directions: {named}", nginx="nginx drops trailers")
    def _(t: Trial, named: str = named) -> None:
        section = b"X-Hop: 1\r\nX-Sum: 42\r\nETag: 2\r\nLink: 3\r\n"
        names = [name.strip().lower() for name in named.split(",")]
        left = [pair for pair in [("X-Hop", "1"), ("X-Sum", "42"), ("ETag", "2"), ("Link", "3")] if pair[0].lower() not in names]
        for bytewise in (False, True):
            line = b"Connection: " + named.encode()
            answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + line + b"\r\n\r\n5\r\nhello\r\n0\r\n" + section + b"\r\n"
            t.origin(answering(answer, bytewise=bytewise))
            client = t.client()
            client.send(head(b"Transfer-Encoding: chunked", line, b"TE: trailers", b"Connection: TE", start=b"POST /patient/ HTTP/1.1"))
            client.feed(chunked(b"hello", 5, section), bytewise)
            response = client.read_response()
            expect_same("upstream", (t.main.requests[-1].body, t.main.requests[-1].trailers), (b"hello", left))
            expect_same("downstream", (response.body, response.trailers), (b"hello", left))


FORBIDDEN = ("Transfer-Encoding: chunked", "Content-Length: 5", "Host: evil.test", "Trailer: X", "Connection: close", "Authorization: Bearer x",
             "Proxy-Authorization: Basic x", "Cookie: a=b", "TE: gzip", "Upgrade: x", "Expect: 100-continue", "Max-Forwards: 1", "X-Forwarded-For: 1.2.3.4",
             "Forwarded: for=1.2.3.4", "Keep-Alive: a")

for line in FORBIDDEN:

    @case(f"RFC 9110 §6.5.1: the request trailer {line.split(':')[0]} is dropped, or the request refused", nginx="nginx drops trailers")
    def _(t: Trial, line: str = line) -> None:
        client = t.client()
        client.send(head(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + chunked(b"hello", 5, line.encode() + b"\r\nX-Sum: 42\r\n"))
        response = client.read_response()
        expect_status(response, 200, 400)
        if response.status == 200:
            request = t.main.requests[0]
            expect_same("trailers", request.trailers, [("X-Sum", "42")])
            check(line.split(": ")[1] not in (request.get(line.split(":")[0]) or "") or line.startswith(("Transfer", "Host")), "merged into the head:", request)


for line in ("Transfer-Encoding: chunked", "Content-Length: 5", "Connection: close", "Set-Cookie: a=b", "Keep-Alive: a", "Proxy-Authenticate: Basic"):

    @case(f"RFC 9110 §6.5.1: the response trailer {line.split(':')[0]} is dropped, or the response cut off", nginx="nginx drops trailers")
    def _(t: Trial, line: str = line) -> None:
        t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + line.encode() + b"\r\nX-Sum: 42\r\n\r\n"))
        response = t.ask(head(b"TE: trailers", b"Connection: TE"))
        if line.startswith("Set-Cookie"):  # credentials are the client's business here: either
            check(dict(response.trailers).get("X-Sum") == "42" or not response.whole, response, response.trailers)
        else:
            check(response.trailers == [("X-Sum", "42")] or not response.whole, response, response.trailers)


@case("a trailer section over the limits is refused", nginx="nginx drops trailers")
def _(t: Trial) -> None:
    client = t.client("tight")
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + b"5\r\nhello\r\n0\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n")
    if client.ends(3) and client.received:
        expect_status(client.read_response(), 400, 413, 431)
    check(not t.main.requests, "the request was completed upstream")


# --- Responses

for size in SIZES:

    @case(f"RFC 9112 §6.3: {size} bytes that end with the connection of an HTTP/1.1 origin are complete")
    def _(t: Trial, size: int = size) -> None:
        data = pattern(size)
        t.origin(answering(b"HTTP/1.1 200 OK\r\n\r\n" + data, close=True))
        client = t.client(timeout=10)
        client.send(head())
        response = client.read_response()
        check(response.body == data and response.whole, "content differs", response)
        if response.framing != "close":
            client.send(head(start=b"GET /mock HTTP/1.1"))
            expect_same("body", client.read_response().body, b"mocked")


@case("RFC 9112 §6.3: a close-delimited response of an HTTP/1.0 origin is complete")
def _(t: Trial) -> None:
    for bytewise in (False, True):
        t.origin(answering(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", close=True, bytewise=bytewise))
        response = t.ask(head())
        expect_same("response", (response.version, response.body, response.whole), ("HTTP/1.1", b"hello", True))
        t.main.end()


@case("RFC 9112 §9.3: the connection of an HTTP/1.0 origin with Content-Length is not reused")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    client = t.client()
    for _ in range(2):
        client.send(head())
        expect_same("body", client.read_response().body, b"ok")
    expect_same("connections", len(t.main.used), 2)


@case("RFC 9112 §9.3: responses of an HTTP/1.0 origin with keep-alive are passed on")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"))
    client = t.client()
    for _ in range(3):
        client.send(head())
        response = client.read_response()
        expect_same("body", response.body, b"ok")
    check(1 <= len(t.main.used) <= 3)


@case("RFC 9112 §7.1: a chunked response may have sizes in many forms", nginx=None)
def _(t: Trial) -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\n"
    for bytewise in (False, True):
        t.origin(answering(raw, bytewise=bytewise))
        client = t.client()
        client.send(head())
        expect_same("body", client.read_response().body, b"hello0123456789!")
        expect_open(client)
        t.main.end()


@case("every part of a response is parsed one byte at a time")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello", bytewise=True))
    client = t.client()
    for _ in range(3):
        client.send(head())
        expect_same("body", client.read_response().body, b"hello")
    expect_same("connections", len(t.main.used), 1)


for label, raw in [("fixed length", b"Content-Length: 100\r\n\r\nonly this"), ("chunked in a chunk", b"Transfer-Encoding: chunked\r\n\r\n64\r\nonly this"),
                   ("chunked between chunks", b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n"),
                   ("chunked before the last CRLF", b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n0\r\n"),
                   ("chunked in the trailers", b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n0\r\nX-A: b\r\n"),
                   ("chunked in a size", b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n1")]:
    for version in (b"1.1", b"1.0"):

        @case(f"RFC 9112 §8: a response cut off is never shown as complete, {label}, to HTTP/{version.decode()}",
              nginx=OTHER if version == b"1.0" or "trailers" in label or "CRLF" in label else None)
        def _(t: Trial, raw: bytes = raw, version: bytes = version) -> None:
            t.origin(answering(b"HTTP/1.1 200 OK\r\n" + raw, close=True))
            client = t.client()
            client.send(head(start=b"GET / HTTP/" + version))
            response = client.read_response()
            if version == b"1.0" and response.framing == "close":
                check(client.was_reset or not response.whole, "content that ends with the connection ended cleanly")
            else:
                check(response.status == 502 or not response.whole, "shown as complete:", response)
            check(client.ends(), "the connection stays open after a cut-off response") if response.status != 502 else None


def reset_after(t: Trial, sent: bytes):
    """The client's connection and its response, whose origin server sends this much and resets."""

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(sent)
        pause(0.1, Why.BEFORE)
        c.reset()

    t.origin(script)
    client = t.client()
    client.send(head())
    return client, client.read_response()


@case("RFC 9112 §8: an origin that resets in mid-content cuts the response")
def _(t: Trial) -> None:
    client, response = reset_after(t, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    check(not response.whole, "shown as complete:", response)
    check(client.ends(), "stays open")


@case("RFC 9112 §8: an HTTP/1.0 close-delimited response that ends by reset is not complete")
def _(t: Trial) -> None:
    client, response = reset_after(t, b"HTTP/1.0 200 OK\r\n\r\nhello")
    check(not response.whole or client.was_reset, "shown as complete:", response)


# --- Early final responses: RFC 9112 §9.5, RFC 9110 §15


@case("RFC 9112 §9.5: an early final response of an origin that closes stops the upload", nginx=OTHER)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.read_request(with_content=False)
        c.send(answer(b"Connection: close", status=b"413 Content Too Large"))

    t.origin(script)
    client = t.client(timeout=8)
    client.send(post(b"Content-Length: 50000000", content=b"x" * 1000))
    response = client.read_response()
    expect_status(response, 413)
    # the rest cannot be taken back: the connection ends, or all of it is swallowed
    check("close" in response.options() or client.is_silent(0.05), response)


@case("RFC 9112 §9.5: an early final response in mid-upload reaches a client that keeps sending")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.read_request(with_content=False)
        c.read_exactly(100_000)
        c.send(answer(b"Connection: close", status=b"413 Content Too Large"))

    t.origin(script)
    client = t.client(timeout=8)
    threading.Thread(target=lambda: client.send(post(b"Content-Length: 30000000", content=b"x" * 2_000_000)), daemon=True).start()
    expect_status(client.read_response(), 413)


@case("RFC 9112 §9.5: after an early final response the connection upstream is not reused in mid-request")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        if c.index == 0:
            c.read_request(with_content=False)
            c.send(answer(status=b"401 Unauthorized", content=b"no"))
            c.fill()
            c.read_rest()
            return
        while True:
            c.serve()
            c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(post(b"Content-Length: 100000", content=b"x" * 10))
    expect_status(client.read_response(), 401)
    other = t.client()
    other.send(head(start=b"GET /other HTTP/1.1"))
    expect_same("body", other.read_response().body, b"ok")
    check(b"/other" not in bytes(t.main.used[0].received), "a request went into the content of another")


@case("RFC 9112 §9.5: an early final response is delivered while the upload continues to its end", nginx=OTHER)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            request = c.read_request(with_content=False)
            c.send(OK)
            c.read_content(request)

    t.origin(script)
    client = t.client()
    client.send(post(b"Content-Length: 10", content=b"12345"))
    response = client.read_response()
    expect_same("body", response.body, b"ok")
    if "close" not in response.options():
        client.send(b"67890" + head(start=b"GET /mock HTTP/1.1"))
        expect_same("body", client.read_response().body, b"mocked")


@case("RFC 9112 §9.3: unread content is never parsed as the next request")
def _(t: Trial) -> None:
    client = t.client()
    inner = head(start=b"GET /inner HTTP/1.1")
    client.send(head(b"Content-Length: %d" % len(inner), start=b"POST /mock HTTP/1.1") + inner + head(start=b"GET /outer HTTP/1.1"))
    response = client.read_response()
    expect_same("body", response.body, b"mocked")
    if "close" in response.options():
        expect_closed(client)
    else:
        expect_same("body", client.read_response().body, b"ok")
        expect_same("targets", [request.target for request in t.main.requests], ["/outer"])
    check(b"/inner" not in t.main.received(), "content was read as a request")


@case("10 MiB are sent in each direction at the same time", nginx="nginx may stall when both directions are busy")
def _(t: Trial) -> None:
    size, piece = 10 << 20, 65536
    data = pattern(piece)

    def script(c: OriginConnection) -> None:
        request = c.read_request(with_content=False)

        def send() -> None:
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // piece - 1):
                c.send(data)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        c.read_content(request)
        c.origin.requests.append(request)
        sender.join()
        c.send(data)  # last, for a response that is complete early may stop the upload

    t.origin(script)
    client = t.client(timeout=15)

    def send() -> None:
        client.send(head(b"Content-Length: %d" % size, start=b"POST /patient/ HTTP/1.1"))
        for _ in range(size // piece):
            client.send(data)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    response = client.read_response()
    digest = hashlib.sha256(data * (size // piece)).digest()
    check(hashlib.sha256(response.body).digest() == digest, "content down differs", len(response.body))
    check(eventually(lambda: t.main.requests, 10), "the upload did not end")
    check(hashlib.sha256(t.main.requests[0].body).digest() == digest, "content up differs")
