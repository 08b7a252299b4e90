"""Persistence, pipelining, HTTP/1.0 clients, HEAD, interim responses (RFC 9112 §9, RFC 9110 §15.2)."""

from __future__ import annotations

import threading

from Rig.origins import OK, OriginConnection, answering, echo
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_closed, expect_open, expect_same, expect_status

from .fields import answer
from .refused_requests import OTHER, head, post


@case("RFC 9112 §9.3: a connection carries many requests, on both sides")
def _(t: Trial) -> None:
    client = t.client()
    for index in range(50):
        client.send(head(start=b"GET /%d HTTP/1.1" % index))
        expect_same("body", client.read_response().body, b"ok")
    expect_same("targets", [request.target for request in t.main.requests], [f"/{index}" for index in range(50)])
    expect_same("connections upstream", len(t.main.used), 1)


@case("RFC 9112 §9.3: Connection: close closes after the response")
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Connection: close"))
    response = client.read_response()
    expect_same("body", response.body, b"ok")
    expect_closed(client, response)


@case("RFC 9112 §9.3: connection options are case-insensitive, and may be in a list", nginx=OTHER)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Connection: foo, CLOSE"))
    response = client.read_response()
    expect_closed(client, response)


@case("RFC 9112 §9.6: requests pipelined behind Connection: close are ignored")
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Connection: close") + head(start=b"GET /second HTTP/1.1"))
    expect_closed(client, client.read_response())
    expect_same("targets", [request.target for request in t.main.requests], ["/"])


# --- Pipelining: RFC 9112 §9.3.2


@case("RFC 9112 §9.3.2: pipelined requests are answered in order")
def _(t: Trial) -> None:
    t.origin(lambda c: [c.send(answer(b"X-Target: " + c.serve().target.encode())) for _ in iter(int, 1)])
    client = t.client()
    client.send(b"".join(head(start=b"GET /%d HTTP/1.1" % index) for index in range(20)))
    expect_same("order", [client.read_response().get("X-Target") for _ in range(20)], [f"/{index}" for index in range(20)])
    expect_open(client)


@case("RFC 9112 §9.3.2: pipelined requests are parsed one byte at a time")
def _(t: Trial) -> None:
    client = t.client()
    raw = b"".join(head(start=b"GET /%d HTTP/1.1" % index) for index in range(3))
    for index in range(len(raw)):
        client.send(raw[index : index + 1])
        if index % 8 == 0:
            pause(0.0005, Why.SLOW)
    for _ in range(3):
        expect_same("body", client.read_response().body, b"ok")
    expect_same("targets", [request.target for request in t.main.requests], ["/0", "/1", "/2"])


@case("RFC 9112 §9.3.2: pipelined requests with content of all kinds are answered in order, with local answers between")
def _(t: Trial) -> None:
    t.origin(echo)
    client = t.client()
    client.send(
        post(b"Content-Length: 3", content=b"one") + head(start=b"GET /mock HTTP/1.1") + post(b"Transfer-Encoding: chunked", content=b"3\r\ntwo\r\n0\r\n\r\n")
        + head() + post(b"Content-Length: 0", content=b"") + head(start=b"GET /mock HTTP/1.1")
    )
    expect_same("bodies", [client.read_response().body for _ in range(6)], [b"one", b"mocked", b"two", b"", b"", b"mocked"])


@case("RFC 9112 §9.3.2: a slow first response delays the second", nginx=None)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            target = c.serve().target
            if target == "/slow":
                pause(0.3, Why.SLOW)
            c.send(answer(b"X-Target: " + target.encode()))

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /slow HTTP/1.1") + head(start=b"GET /mock HTTP/1.1"))
    check(client.is_silent(0.15), "an answer overtook the one before it")
    expect_same("first", client.read_response().get("X-Target"), "/slow")
    expect_same("second", client.read_response().body, b"mocked")


@case("RFC 9112 §9.3.2: a pipelined HEAD has no content, the next response is its own")
def _(t: Trial) -> None:
    t.origin(lambda c: [c.send(OK[:-2] if c.serve().method == "HEAD" else OK) for _ in iter(int, 1)])
    client = t.client()
    client.send(head(start=b"HEAD / HTTP/1.1") + head())
    expect_same("HEAD", client.read_response("HEAD").body, b"")
    expect_same("GET", client.read_response().body, b"ok")


@case("RFC 9112 §9.3.2: 2,000 pipelined requests are answered, in order, with bounded memory")
def _(t: Trial) -> None:
    client = t.client(timeout=10)
    sender = threading.Thread(target=client.send, args=(head(start=b"GET /mock HTTP/1.1") * 2000,))
    sender.start()
    for _ in range(2000):
        expect_same("body", client.read_response().body, b"mocked")
    sender.join()


@case("RFC 9112 §9.6: a client that half-closes after its request receives the response, or counts as gone")
def _(t: Trial) -> None:
    # A FIN does not tell one from the other: HAProxy answers, nginx and Envoy give up. Half an answer is wrong.
    client = t.client()
    client.send(head())
    client.end_sending()
    check(client.ends(), "stays open")
    if client.received:
        expect_same("body", client.read_response().body, b"ok")


@case("a client that leaves in mid-head leaves nothing behind")
def _(t: Trial) -> None:
    for cut in (1, 10, 20):
        client = t.client()
        client.send(head()[:cut])
        client.close()
    client = t.client()
    client.send(head())
    client.reset()
    expect_status(t.ask(head()), 200)


for kind, framing, part, seen in (("content", b"Content-Length: 10", b"12345", b"12345"),
                                  ("chunked content", b"Transfer-Encoding: chunked", b"5\r\nhello\r\n", b"hello")):

    @case(f"a client that leaves in mid-{kind}: the request is not complete upstream")
    def _(t: Trial, framing: bytes = framing, part: bytes = part, seen: bytes = seen) -> None:
        client = t.client()
        client.send(post(framing, content=part))
        check(eventually(lambda: seen in t.main.received()), "content does not stream")
        client.close()
        check(eventually(lambda: t.main.cut_off), "the connection upstream stays open")
        check(not t.main.requests, "the cut-off request was completed")


@case("RFC 9112 §6.3: content that a half-close cuts off stays incomplete")
def _(t: Trial) -> None:
    client = t.client()
    client.send(post(b"Content-Length: 10", content=b"12345"))
    client.end_sending()
    if client.ends() and client.received:
        expect_status(client.read_response(), 400)
    check(not t.main.requests, "the cut-off request was completed")


@case("a client that leaves while the origin works: the connection upstream is closed", nginx=None)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.fill()

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    check(eventually(lambda: t.main.requests), "nothing arrived")
    client.reset()
    check(eventually(lambda: t.main.used[0].at_end, 3), "the connection upstream stays open after the client left")


# --- HTTP/1.0 clients: RFC 9112 §9.3, C.2.2


@case("RFC 9112 §9.3: an HTTP/1.0 client receives its response, and the connection ends")
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    response = client.read_response()
    expect_same("body", response.body, b"ok")
    check("keep-alive" not in response.options(), response)
    check(client.ends(), "stays open")


@case("RFC 9112 §6.1: chunked content reaches an HTTP/1.0 client without chunks")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\n\r\n"))
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    response = client.read_response()
    check(not response.has("Transfer-Encoding"), response)
    expect_same("body", response.body, b"hello world")
    check(client.ends(), "stays open")


@case("RFC 9112 §6.1: chunked content reaches a keep-alive HTTP/1.0 client without chunks")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
    response = client.read_response()
    check(not response.has("Transfer-Encoding"), response)
    expect_same("body", response.body, b"hello")
    if response.framing == "close":
        check("keep-alive" not in response.options(), "keep-alive, with content that ends with the connection:", response)


@case("RFC 9112 §9.3: a connection of an HTTP/1.0 client that requests keep-alive is kept with Connection: keep-alive, or closed")
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\nHost: a.test\r\nConnection: Keep-Alive\r\n\r\n")
    response = client.read_response()
    expect_same("body", response.body, b"ok")
    if "keep-alive" in response.options():
        client.send(b"GET /second HTTP/1.0\r\nHost: a.test\r\n\r\n")
        expect_same("body", client.read_response().body, b"ok")
    check(client.ends(), "stays open without Connection: keep-alive")


@case("RFC 9112 §9.3: HTTP/1.0 with Connection: close closes")
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n")
    expect_same("body", client.read_response().body, b"ok")
    check(client.ends(), "stays open")


@case("RFC 9112 §6.3: content of an HTTP/1.0 request goes upstream")
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello")
    expect_status(client.read_response(), 200)
    expect_same("content", t.main.requests[0].body, b"hello")
    expect_same("version", t.main.requests[0].version, "HTTP/1.1")


@case("RFC 9110 §15.2: no interim response reaches an HTTP/1.0 client", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK))
    client = t.client()
    client.send(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    response = client.read_response()
    expect_same("interim", response.interim, [])
    expect_same("body", response.body, b"ok")


# --- Interim responses: RFC 9110 §15.2


@case("RFC 8297 §2: 103 is passed on, then the final response", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n" + OK))
    client = t.client()
    for _ in range(2):
        client.send(head())
        response = client.read_response()
        expect_same("interim", [(head.status, head.get("Link")) for head in response.interim], [(103, "</a.css>; rel=preload"), (103, "</b.css>")])
        expect_same("body", response.body, b"ok")


@case("RFC 8297 §2: 103 arrives before the final response", nginx=OTHER)
def _(t: Trial) -> None:
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        gate.wait(3)
        c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    interim = client.read_head()
    gate.set()
    check(b" 103 " in interim.start, interim)
    expect_same("body", client.read_response().body, b"ok")


@case("RFC 9110 §15.2: unknown interim responses are passed on, or dropped", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 199 What\r\nX-A: b\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK))
    response = t.ask(head())
    check({head.status for head in response.interim} <= {199, 102, 100}, response.interim)
    expect_same("body", response.body, b"ok")


@case("RFC 9112 §6.3: an interim response ends at the empty line, whatever length or coding it states", nginx=OTHER)
def _(t: Trial) -> None:
    for stated in (b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Content-Length: x"):
        t.origin(answering(b"HTTP/1.1 103 Early Hints\r\n" + stated + b"\r\nLink: </a>\r\n\r\n" + OK))
        response = t.ask(head())
        expect_same("interim", [(head.status, head.get("Link"), head.has("Content-Length"), head.has("Transfer-Encoding")) for head in response.interim], [(103, "</a>", False, False)])
        expect_same("body", response.body, b"ok")


@case("RFC 9110 §15.5.22: a 426 tells the client which protocol it requires", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n"))
    response = t.ask(head())
    expect_same("answer", (response.status, response.get("Upgrade")), (426, "websocket"))
    check("upgrade" in (response.get("Connection") or "").lower(), response)


@case("RFC 9110 §7.6.1: hop-by-hop fields of an interim response are removed", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 103 Early Hints\r\nConnection: X-Foo\r\nX-Foo: 1\r\nKeep-Alive: a\r\nLink: </a>\r\n\r\n" + OK))
    response = t.ask(head())
    for interim in response.interim:
        check(not interim.has("X-Foo") and not interim.has("Keep-Alive"), interim)
    expect_same("body", response.body, b"ok")


# --- Expect: 100-continue: RFC 9110 §10.1.1

EXPECTING = post(b"Content-Length: 5", b"Expect: 100-continue", content=b"")


@case("RFC 9110 §10.1.1: 100-continue goes from end to end", nginx="nginx answers 100 by itself")
def _(t: Trial) -> None:
    asked = threading.Event()

    def script(c: OriginConnection) -> None:
        request = c.read_request(with_content=False)
        check(request.get("Expect") == "100-continue", request)
        asked.set()
        c.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        c.read_content(request)
        c.origin.requests.append(request)
        c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(EXPECTING)
    interim = client.read_head()
    check(asked.is_set(), "100 was not asked from the origin")
    check(b" 100 " in interim.start, interim)
    client.send(b"hello")
    expect_same("body", client.read_response().body, b"ok")
    expect_same("content", t.main.requests[0].body, b"hello")


@case("RFC 9110 §10.1.1: a final answer instead of 100 reaches the client, which sends nothing", nginx="nginx answers 100 by itself")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.read_request(with_content=False)
        c.send(answer(status=b"417 Expectation Failed"))

    t.origin(script)
    client = t.client()
    client.send(EXPECTING)
    response = client.read_response()
    expect_status(response, 417)
    expect_same("interim", response.interim, [])
    check(b"hello" not in t.main.received(), "content was made up")


@case("RFC 9110 §10.1.1: a client that does not wait for 100 may send at once", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(EXPECTING + b"hello" + head(start=b"GET /next HTTP/1.1"))
    expect_status(client.read_response(), 200)
    expect_status(client.read_response(), 200)
    expect_same("requests", [(request.target, request.body) for request in t.main.requests], [("/", b"hello"), ("/next", b"")])


@case("RFC 9110 §10.1.1: 100-continue from an HTTP/1.0 client is ignored", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
    response = client.read_response()
    expect_same("interim", response.interim, [])
    expect_status(response, 200)
    check(not t.main.requests[0].has("Expect"), "Expect went upstream:", t.main.requests[0])


@case("RFC 9110 §10.1.1: an unknown expectation is refused with 417, or forwarded", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Expect: x-unknown")), 417, 200)


@case("RFC 9110 §10.1.1: a local answer to Expect comes without 100, and the connection stays usable or closes", nginx=OTHER)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Content-Length: 5", b"Expect: 100-continue", start=b"POST /mock HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 200)
    if "close" in response.options():
        check(client.ends(), "stays open after Connection: close")
    else:
        client.send(b"hello" + head(start=b"GET /mock HTTP/1.1"))  # the content is still owed
        expect_same("body", client.read_response().body, b"mocked")


# --- HEAD, 204, 304: RFC 9112 §6.3


@case("RFC 9112 §6.3: HEAD with Content-Length leaves the connections usable for the next request")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n", OK))
    client = t.client()
    client.send(head(start=b"HEAD / HTTP/1.1"))
    response = client.read_response("HEAD")
    expect_same("Content-Length", response.get("Content-Length"), "12345")
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")
    expect_same("connections", len(t.main.used), 1)


@case("RFC 9112 §6.3: HEAD with Transfer-Encoding: chunked has no content")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", OK))
    client = t.client()
    client.send(head(start=b"HEAD / HTTP/1.1"))
    client.read_response("HEAD")
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")


@case("RFC 9112 §6.3: HEAD without any framing keeps the connection")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 200 OK\r\n\r\n", OK))
    client = t.client()
    client.send(head(start=b"HEAD / HTTP/1.1"))
    response = client.read_response("HEAD")
    check(not response.has("Content-Length") and "close" not in response.options(), response)
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")


@case("RFC 9110 §9.3.2: HEAD to a local answer has no content")
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(start=b"HEAD /mock HTTP/1.1") + head(start=b"GET /mock HTTP/1.1"))
    response = client.read_response("HEAD")
    expect_status(response, 200)
    check(response.get("Content-Length") in (None, "6"), response)
    expect_same("body", client.read_response().body, b"mocked")


@case("RFC 9110 §9.3.2: HEAD to an error of the gateway has no content")
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(start=b"HEAD /dead/ HTTP/1.1") + head(start=b"GET /mock HTTP/1.1"))
    expect_status(client.read_response("HEAD"), 502)
    expect_same("body", client.read_response().body, b"mocked")


for status in (204, 304):

    @case(f"RFC 9112 §6.3: {status} has no content, whatever Content-Length says")
    def _(t: Trial, status: int = status) -> None:
        t.origin(answering(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n" % status, OK))
        client = t.client()
        client.send(head())
        response = client.read_response()
        expect_same("response", (response.status, response.get("ETag")), (status, '"a"'))
        client.send(head())
        expect_same("body", client.read_response().body, b"ok")

    @case(f"RFC 9112 §6.3: {status} with chunked has no content")
    def _(t: Trial, status: int = status) -> None:
        t.origin(answering(b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n" % status, OK))
        client = t.client()
        client.send(head())
        # RFC 9112 §6.1 forbids it on 204: refusing is right too
        response = client.read_response()
        expect_status(response, status, *((502,) if status == 204 else ()))
        client.send(head())
        expect_same("body", client.read_response().body, b"ok")


@case("RFC 9110 §8.6: Content-Length is removed from a 204 to the client", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"))
    response = t.ask(head())
    check(not response.has("Content-Length") and not response.has("Transfer-Encoding"), response)


@case("RFC 9110 §15.4.5: Content-Length of a 304 stays, or is dropped")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n"))
    check(t.ask(head()).get("Content-Length") in ("1234", None))
