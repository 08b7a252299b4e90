"""When the origin fails: 502, 503, 504 with problem+json and Proxy-Status (RFC 9209); what is tried once more, and what never is."""

from __future__ import annotations

import json
import threading
import time

from Rig.origins import OK, OriginConnection, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status, proxy_error

from .fields import answer
from .refused_requests import head, post

FAULTS = "nginx has no Proxy-Status"


def fault(name: str, start: bytes, status: int, errors: tuple[str, ...], script=None, *, within: float = 4.0) -> None:
    @case(name, nginx=FAULTS)
    def run(t: Trial) -> None:
        if script:
            t.origin(script)
        client = t.client(timeout=within + 2)
        began = time.monotonic()
        client.send(head(b"Content-Length: 0", start=start))
        response = client.read_response()
        expect_status(response, status)
        check(time.monotonic() - began < within, f"took {time.monotonic() - began:.1f} s")
        expect_same("Content-Type", response.get("Content-Type"), "application/problem+json")
        problem = json.loads(response.body)
        expect_same("status in the problem", problem.get("status"), status)
        check(problem.get("title"), "no title:", problem)
        check(len(response.body) < 1000, "not short:", response.body)
        check(proxy_error(response) in errors, f"expected error={errors}:", response.get("Proxy-Status"))
        for secret in (b"127.0.0.1", str(t.main.port).encode()):
            check(secret not in response.body, "the body tells an inner address:", response.body)
        client.send(head(start=b"GET /mock HTTP/1.1"))
        expect_same("the connection serves on", client.read_response().body, b"mocked")


def serve_then(*actions):
    def script(c: OriginConnection) -> None:
        c.serve()
        for action in actions:
            action(c)

    return script


def silence(c: OriginConnection) -> None:
    c.fill()


fault("RFC 9209 §2.3.7: connection refused is 502", b"POST /dead/ HTTP/1.1", 502, ("connection_refused",))
fault("RFC 9209 §2.3.10: connect timeout is 504", b"POST /full/ HTTP/1.1", 504, ("connection_timeout",))
fault("RFC 9209 §2.3.1: a name that does not resolve is 502", b"POST /nameless/ HTTP/1.1", 502, ("dns_error", "dns_timeout"), within=10)
fault("RFC 9209 §2.3: response timeout is 504", b"POST /hasty/ HTTP/1.1", 504, ("http_response_timeout", "connection_read_timeout"), serve_then(silence))
fault("RFC 9209 §2.3: closed before the response is 502", b"POST / HTTP/1.1", 502, ("connection_terminated", "http_response_incomplete"), serve_then())
fault("RFC 9209 §2.3: reset before the response is 502", b"POST / HTTP/1.1", 502, ("connection_terminated", "http_response_incomplete"), serve_then(OriginConnection.reset))
fault("RFC 9209 §2.3: closed in mid-head is 502", b"POST / HTTP/1.1", 502, ("http_response_incomplete", "connection_terminated"),
      lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nX-A")))
fault("RFC 9209 §2.3: a malformed response is 502", b"POST / HTTP/1.1", 502, ("http_protocol_error",), lambda c: (c.serve(), c.send(b"garbage\r\n\r\n"), c.read_rest()))
fault("timeouts: the total timeout is 504", b"POST /total/ HTTP/1.1", 504, ("http_response_timeout", "connection_timeout", "connection_read_timeout"), serve_then(silence))


@case("timeouts: a response head that arrives slowly is limited by the total timeout", nginx=FAULTS)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), [(c.send(b"x"), pause(0.1, Why.SLOW)) for _ in range(40)]))
    client = t.client()
    client.send(head(start=b"GET /total/ HTTP/1.1"))
    began = time.monotonic()
    response = client.read_response()
    check(not response.whole, "shown as complete")
    check(time.monotonic() - began < 2.5, "the total timeout of 700 ms did not end it")


@case("timeouts: the idle timeout in mid-content cuts the response")
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), c.fill()))
    client = t.client()
    client.send(head(start=b"GET /hasty/ HTTP/1.1"))
    response = client.read_response()
    check(not response.whole and response.body == b"abc", response)


@case("timeouts: after the head of a response only the idle timeout applies", nginx=FAULTS)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), pause(1, Why.SLOW), c.send(b"def"), c.fill()))
    response = t.ask(head(start=b"GET /slowContent/ HTTP/1.1"))
    check(response.whole, "the response timeout of 500 ms cut the content off:", response)
    client, began = t.client(), time.monotonic()
    client.send(head(start=b"GET /slowHead/ HTTP/1.1"))
    response = client.read_response()
    check(not response.whole and time.monotonic() - began < 0.95, "the idle timeout of 500 ms did not cut the content off:", response)


@case("RFC 6455 §4.1: after the handshake the idle timeout applies, not the timeout of the head", nginx=FAULTS)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.read_request_head(), c.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n"), pause(1, Why.SLOW), c.send(b"later"), c.fill()))
    client = t.client()
    client.send(head(b"Upgrade: echo", b"Connection: Upgrade", start=b"GET /slowContent/ HTTP/1.1"))
    expect_same("head", client.read_head().start, b"HTTP/1.1 101 Switching Protocols")
    check(eventually(lambda: client.fill() and bytes(client.buffer) == b"later", 3), "the tunnel was cut off")


def stalls(name: str, path: bytes, within: float) -> None:
    @case(f"RFC 9110 §15.5.9: content that stops arriving is the client's fault, 408, {name}", nginx=FAULTS)
    def run(t: Trial) -> None:
        client, began = t.client("tight", timeout=5), time.monotonic()
        client.send(head(b"Content-Length: 8", start=b"POST " + path + b" HTTP/1.1") + b"abc")
        response = client.read_response()
        expect_status(response, 408)
        check(time.monotonic() - began < within, f"took {time.monotonic() - began:.2f} s")


stalls("even if the response timeout of the origin server is shorter", b"/slowContent/", 1.5)
stalls("by the total timeout", b"/total/", 0.85)
stalls("even if the timeout of a try is shorter", b"/shortTriesUpload/", 1.5)


def ends(name: str, path: bytes, least: float, most: float) -> None:
    @case(f"timeouts: {name}", nginx=FAULTS)
    def run(t: Trial) -> None:
        t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), c.fill()))
        client, began = t.client(timeout=8), time.monotonic()
        client.send(head(start=b"GET " + path + b" HTTP/1.1"))
        response = client.read_response()
        took = time.monotonic() - began
        check(not response.whole if response.status == 200 else response.status == 504, response)
        check(least < took < most, f"took {took:.2f} s")


ends("timeout.connect replaces the service's", b"/shortConnect/", 0.35, 2)
ends("timeout.idle replaces the service's", b"/shortIdle/", 0.35, 2)
ends("retry.perTry ends a try without a connection, and each has its own time", b"/shortTries/", 0.75, 3)


@case("RFC 9110 §10.1.1: an origin server that sends neither 100 nor a final response is late, 504", nginx=FAULTS)
def _(t: Trial) -> None:
    for early in (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"):
        t.origin(lambda c, early=early: (c.fill(), c.send(early), c.fill()))
        client = t.client("tight")
        client.send(head(b"Content-Length: 8", b"Expect: 100-continue", start=b"POST /slowContent/ HTTP/1.1"))
        expect_status(client.read_response(), 504)


@case("RFC 9110 §10.1.1: a client that sends its content without 100, and then stops, is at fault, 408", nginx=FAULTS)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.fill(), c.fill(), c.fill()))
    client = t.client("tight", timeout=5)
    client.send(head(b"Content-Length: 200000", b"Expect: 100-continue", start=b"POST /slowContent/ HTTP/1.1"))
    pause(0.1, Why.SLOW)
    client.send(b"x" * 1000)
    expect_status(client.read_response(), 408)


@case("content that keeps coming outlives the idle timeout")
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"), [(pause(0.3, Why.SLOW), c.send(b"x")) for _ in range(8)], c.fill()))
    response = t.ask(head(start=b"GET /hasty/ HTTP/1.1"))
    check(response.whole, response)


@case("a slow upload outlives the response timeout: it counts from the end of the request", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Content-Length: 8", start=b"POST /hasty/ HTTP/1.1"))
    for _ in range(8):
        pause(0.2, Why.SLOW)
        client.send(b"x")
    expect_status(client.read_response(), 200)


# --- What is tried again: RFC 9110 §9.2.2


def reused(t: Trial, behave, request: bytes):
    """Warms a connection up; then `behave(connection)` meets `request` on it. Later connections answer properly."""

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(OK)
        if c.index == 0:
            c.serve()
            behave(c)
            return
        while True:
            c.serve()
            c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /warm HTTP/1.1"))
    expect_status(client.read_response(), 200)
    client.send(request)
    return client.read_response(request.split(b" ")[0].decode())


def close(c: OriginConnection) -> None:
    pass


NO_RETRY = "nginx retries by other rules"

for method in (b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"PUT", b"TRACE"):
    for how, behave in (("closed", close), ("reset", OriginConnection.reset)):

        @case(f"RFC 9110 §9.2.2: {method.decode()} is tried once more if a reused connection is {how} before any byte", nginx=NO_RETRY)
        def _(t: Trial, method: bytes = method, behave=behave) -> None:
            response = reused(t, behave, head(start=method + b" /again HTTP/1.1"))
            expect_status(response, 200)
            expect_same("deliveries", [request.target for request in t.main.requests].count("/again"), 2)


for method in (b"POST", b"PATCH", b"FOO"):
    for how, behave in (("closed", close), ("reset", OriginConnection.reset)):

        @case(f"RFC 9110 §9.2.2: {method.decode()} is never sent twice, even if a reused connection was {how}", nginx=NO_RETRY)
        def _(t: Trial, method: bytes = method, behave=behave) -> None:
            response = reused(t, behave, head(b"Content-Length: 5", start=method + b" /once HTTP/1.1") + b"hello")
            expect_status(response, 502)
            pause(0.1, Why.NOTHING)
            expect_same("deliveries", bytes(t.main.received()).count(method + b" /once"), 1)


@case("RFC 9110 §9.2.2: a PUT whose content is still buffered is tried again whole, or fails", nginx=NO_RETRY)
def _(t: Trial) -> None:
    response = reused(t, close, head(b"Content-Length: 5", start=b"PUT /again HTTP/1.1") + b"hello")
    expect_status(response, 200, 502)
    for request in t.main.requests[1:]:
        expect_same("content", request.body, b"hello")


@case("RFC 9110 §9.2.2: a large PUT is not tried again with half of its content", nginx=NO_RETRY)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(OK)
        if c.index == 0:
            c.read_request(with_content=False)
            c.read_exactly(1_000_000)
            return
        while True:
            c.serve()
            c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(head(start=b"GET /warm HTTP/1.1"))
    client.read_response()
    threading.Thread(target=client.send, args=(head(b"Content-Length: 8000000", start=b"PUT /again HTTP/1.1") + b"x" * 8_000_000,), daemon=True).start()
    expect_status(client.read_response(), 200, 502)
    check(all(len(request.body) in (0, 8_000_000) for request in t.main.requests), "half of the content")


@case("RFC 9112 §9.3.1: a reused connection that fails after a byte of the response is not tried again", nginx=NO_RETRY)
def _(t: Trial) -> None:
    response = reused(t, lambda c: c.send(b"H"), head(start=b"GET /once HTTP/1.1"))
    expect_status(response, 502)
    expect_same("deliveries", [request.target for request in t.main.requests].count("/once"), 1)


@case("RFC 9112 §9.3.1: a request is tried at most once more", nginx=NO_RETRY)
def _(t: Trial) -> None:
    t.origin(lambda c: c.serve())
    response = t.ask(head(start=b"GET /fails HTTP/1.1"))
    expect_status(response, 502)
    check(1 <= len(t.main.requests) <= 2, f"{len(t.main.requests)} deliveries")


@case("RFC 9112 §9.5: an idle connection that the origin closed is not used", nginx=None)
def _(t: Trial) -> None:
    t.origin(answering(OK, close=True))
    client = t.client()
    client.send(head())
    expect_status(client.read_response(), 200)
    check(eventually(lambda: t.main.used[0].at_end), "the end of the idle connection is not noticed")
    client.send(post(b"Content-Length: 5"))
    expect_status(client.read_response(), 200)
    expect_same("deliveries", len(t.main.requests), 2)


@case("a POST right after the origin closed an idle connection arrives, at most once", nginx=None)
def _(t: Trial) -> None:
    t.origin(answering(OK, close=True))
    client = t.client()
    for _ in range(20):
        client.send(post(b"Content-Length: 5"))
        response = client.read_response()
        expect_status(response, 200, 502)
    check(len(t.main.requests) <= 20, "a POST came twice")


@case("an endpoint that refuses connections is passed over, for every method", nginx="no such service")
def _(t: Trial) -> None:
    for method in (b"GET", b"POST", b"PATCH"):
        for _ in range(4):
            response = t.ask(head(b"Content-Length: 5", start=method + b" /half/x HTTP/1.1") + b"hello")
            expect_status(response, 200)
    expect_same("contents", {request.body for request in t.main.requests}, {b"hello"})
    expect_same("requests", len(t.main.requests), 12)


@case("endpoints receive requests in turn", nginx="no such service")
def _(t: Trial) -> None:
    second = t.origin(answering(OK), "second")
    client = t.client()
    for _ in range(10):
        client.send(head(start=b"GET /pair/ HTTP/1.1"))
        expect_status(client.read_response(), 200)
    check(3 <= len(t.main.requests) <= 7, f"{len(t.main.requests)} and {len(second.requests)}")


@case("an idempotent request goes to the other endpoint when the first closes without an answer", nginx="no such service")
def _(t: Trial) -> None:
    t.origin(lambda c: c.serve(), "second")
    for _ in range(6):
        expect_status(t.ask(head(start=b"GET /pair/ HTTP/1.1")), 200)


@case("a connection whose exchange was cut is not used again")
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50), c.read_rest()) if c.index == 0 else answering(OK)(c))
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    client.read_until(b"\r\n\r\n")
    client.read_exactly(50)
    client.close()
    check(eventually(lambda: t.main.used[0].at_end), "the connection stays open")
    expect_same("body", t.ask(head(start=b"GET /patient/ HTTP/1.1")).body, b"ok")


@case("an error response of the origin gets no Proxy-Status", nginx=None)
def _(t: Trial) -> None:
    t.origin(answering(answer(status=b"503 Busy", content=b"theirs")))
    response = t.ask(head())
    expect_same("response", (response.status, response.body), (503, b"theirs"))
    check(proxy_error(response) == "", response)
