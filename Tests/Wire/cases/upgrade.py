"""Upgrade: bytes are relayed both ways after a 101 and not before (RFC 9110 §7.8)."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable

from gateways import OwnGateway
from Rig.origins import OK, OriginConnection, answering
from Rig.processes import free_port
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Trial, case, check, connect, eventually, expect_closed, expect_same, expect_status

from .fields import answer
from .refused_requests import OTHER, head, post

WEBSOCKET = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
OTHER_ROLE = "nginx does not relay an Upgrade unless configured"


def accept(key: str) -> str:
    """RFC 6455 §4.2.2."""
    return base64.b64encode(hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()


def switching(then):
    """Answers an Upgrade with 101, and continues with `then`."""

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(SWITCH)
        then(c)

    return script


def echo_bytes(c: OriginConnection) -> None:
    c.sock.sendall(c.take(len(c.buffer)))
    while c.fill():
        c.sock.sendall(c.take(len(c.buffer)))


@case("RFC 9110 §7.8: Upgrade and Connection: upgrade go upstream, and 101 comes back with its fields", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /chat HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 101)
    expect_same("fields", (response.get("Upgrade"), response.options(), response.get("Sec-WebSocket-Accept")),
                ("websocket", {"upgrade"}, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    request = t.main.requests[0]
    expect_same("upstream", (request.get("Upgrade"), request.options(), request.get("Sec-WebSocket-Key")),
                ("websocket", {"upgrade"}, "dGhlIHNhbXBsZSBub25jZQ=="))


@case("RFC 9110 §7.8: after 101 bytes are relayed both ways, unchanged", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /patient/ HTTP/1.1"))
    expect_status(client.read_response(), 101)
    for size in (1, 5, 70_000, 1_000_000):
        data = os.urandom(size)
        threading.Thread(target=client.send, args=(data,)).start()
        check(client.read_exactly(size) == data, "bytes differ")


@case("RFC 9110 §7.8: HTTP after 101 is relayed as bytes", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    noise = b"GET /smuggled HTTP/1.1\r\nHost : x\n\n\0\xff" + OK
    client.send(noise)
    expect_same("bytes", client.read_exactly(len(noise)), noise)


@case("RFC 9110 §7.8: the origin's bytes directly behind its 101 arrive", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(SWITCH + b"\x81\x05hello"), c.read_rest()))
    client = t.client()
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    expect_same("bytes", client.read_exactly(7), b"\x81\x05hello")


@case("RFC 9110 §7.8: bytes behind an Upgrade request wait for its 101, then are relayed", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    early: list[bytes] = []

    def script(c: OriginConnection) -> None:
        c.serve()
        pause(0.2, Why.SLOW)
        c.sock.setblocking(False)
        try:
            early.append(c.sock.recv(1000))
        except BlockingIOError:
            pass
        c.sock.settimeout(5)
        early.append(bytes(c.buffer))
        c.send(SWITCH)
        echo_bytes(c)

    t.origin(script)
    client = t.client()
    client.send(head(*WEBSOCKET) + b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n")
    expect_status(client.read_response(), 101)
    expect_same("relayed", client.read_exactly(40), b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"[:40])
    check(not any(early), "bytes were relayed before the 101:", early)


@case("RFC 9110 §7.8: bytes behind an Upgrade request that is not accepted are the next request", nginx=None)
def _(t: Trial) -> None:
    t.origin(answering(OK, answer(content=b"second")))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /first HTTP/1.1") + head(start=b"GET /second HTTP/1.1"))
    expect_same("first", client.read_response().body, b"ok")
    expect_same("second", client.read_response().body, b"second")
    expect_same("targets", [request.target for request in t.main.requests], ["/first", "/second"])


@case("RFC 9110 §7.8: a bad request behind an Upgrade that is not accepted is refused", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(*WEBSOCKET) + b"NONSENSE\r\n\r\n")
    expect_same("first", client.read_response().body, b"ok")
    response = client.read_response()
    expect_status(response, 400)
    expect_closed(client, response)


@case("RFC 9110 §15.5.22: 426 is passed on")
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Upgrade: TLS/1.0", b"Connection: Upgrade", status=b"426 Upgrade Required")))
    client = t.client()
    client.send(head())
    expect_status(client.read_response(), 426)
    client.send(head())
    expect_status(client.read_response(), 426)


@case("RFC 9110 §7.8: the origin's close ends the tunnel for the client", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(lambda c: c.send(b"bye")))
    client = t.client()
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    expect_same("bytes", client.read_exactly(3), b"bye")
    check(client.ends(), "stays open")


@case("RFC 9110 §7.8: the client's close ends the tunnel for the origin", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /patient/ HTTP/1.1"))
    expect_status(client.read_response(), 101)
    client.close()
    check(eventually(lambda: t.main.used[0].at_end), "stays open upstream")


@case("RFC 9110 §7.8: a half-close passes through the tunnel, and the other direction continues", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    def then(c: OriginConnection) -> None:
        data = c.read_rest()
        c.send(b"got " + data)

    t.origin(switching(then))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /patient/ HTTP/1.1"))
    expect_status(client.read_response(), 101)
    client.send(b"all")
    client.end_sending()
    expect_same("bytes", client.read_rest(), b"got all")


BUSY = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
routes: [{{ service: origin }}]
"""
MESSAGES = 50


def busy(t: Trial, then: Callable[[OriginConnection], object]) -> tuple[OwnGateway, Wire]:
    """A tunnel with as many small messages behind it as make it a busy one. The origin continues with `then`."""

    def script(c: OriginConnection) -> None:
        for _ in range(MESSAGES):
            c.send(c.read_exactly(3))
        then(c)

    t.origin(switching(script))
    gateway = OwnGateway(t, "busy", BUSY, main=t.main.port)
    client = connect(("127.0.0.1", gateway.web), 10)
    t.clients.append(client)
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    for number in range(MESSAGES):
        message = b"%03d" % number
        client.send(message)
        expect_same("message", client.read_exactly(3), message)
    return gateway, client


def at_once(gateway: OwnGateway, *steps: Callable[[], object]) -> None:
    """Does what the gateway then finds in one look at its sockets."""
    gateway.process.signal(signal.SIGSTOP)
    try:
        pause(0.02, Why.BEFORE)
        for step in steps:
            step()
        pause(0.02, Why.BEFORE)
    finally:
        gateway.process.signal(signal.SIGCONT)


@case("RFC 9110 §7.8: the last bytes of a busy tunnel and the end behind them arrive at once", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    gateway, client = busy(t, lambda c: c.send(b"got " + c.read_rest()))
    at_once(gateway, lambda: client.send(b"last"), client.end_sending)
    expect_same("bytes", client.read_rest(), b"got last")


@case("RFC 9110 §7.8: a busy tunnel ends if the client's last bytes and its reset arrive at once", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    gateway, client = busy(t, lambda c: c.read_rest())
    at_once(gateway, lambda: client.send(b"last"), client.reset)
    check(eventually(lambda: t.main.used[0].at_end, 3), "stays open upstream")
    expect_same("bytes", bytes(t.main.used[0].received[-4:]), b"last")


@case("RFC 9110 §7.8: a busy tunnel ends if the origin's last bytes and its reset arrive at once", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    go, done = threading.Event(), threading.Event()

    def then(c: OriginConnection) -> None:
        go.wait(10)
        c.send(b"last")
        c.reset()
        done.set()

    gateway, client = busy(t, then)
    at_once(gateway, go.set, lambda: done.wait(5))
    expect_same("bytes", client.read_exactly(4), b"last")
    check(client.ends(), "stays open downstream")


@case("RFC 9110 §7.8: a busy tunnel continues when its slow origin reads again", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    go, count, size = threading.Event(), 1500, 8000
    data = os.urandom(size)

    def then(c: OriginConnection) -> None:
        go.wait(10)
        check(all(c.read_exactly(size) == data for _ in range(count)), "bytes differ")
        c.send(b"all")
        echo_bytes(c)

    _, client = busy(t, then)
    sender = threading.Thread(target=lambda: [client.send(data) for _ in range(count)])
    sender.start()
    pause(0.5, Why.NOTHING)
    check(sender.is_alive(), "the gateway took everything")
    go.set()
    expect_same("the end", client.read_exactly(3), b"all")
    sender.join()
    for rest in (0, 0, 0.3, 0, 0.3):
        pause(rest, Why.SLOW)
        client.send(b"more")
        expect_same("message", client.read_exactly(4), b"more")


@case("RFC 9110 §7.8: an Upgrade that Connection does not name is ignored", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Upgrade: websocket")), 200)
    check(not t.main.requests[0].has("Upgrade"), t.main.requests[0])


@case("RFC 9110 §7.8: Upgrade from an HTTP/1.0 client is ignored", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET / HTTP/1.0"))
    expect_status(client.read_response(), 200)
    check(not t.main.requests[0].has("Upgrade"), t.main.requests[0])


for label, fields in [("alone", (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")),
                      ("upper case", (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: H2C", b"HTTP2-Settings: AAMAAABk")),
                      ("settings not named", (b"Connection: Upgrade", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")),
                      ("only settings", (b"HTTP2-Settings: AAMAAABk",)),
                      ("beside websocket", (b"Connection: Upgrade", b"Upgrade: websocket, h2c", b"HTTP2-Settings: AAMAAABk")),
                      ("first of two lines", (b"Connection: Upgrade", b"Upgrade: h2c", b"Upgrade: websocket"))]:

    @case(f"RFC 9113 §3.1: Upgrade: h2c and HTTP2-Settings are never passed on, {label}", nginx=OTHER)
    def _(t: Trial, fields=fields) -> None:
        client = t.client()
        client.send(head(*fields) + head(start=b"GET /next HTTP/1.1"))
        expect_status(client.read_response(), 200, 400)
        for request in t.main.requests:
            check("h2c" not in (request.get("Upgrade") or "").lower(), "h2c went upstream:", request)
            check(not request.has("HTTP2-Settings") and "http2-settings" not in request.options(), "HTTP2-Settings went upstream:", request)


@case("RFC 9110 §7.8: the content of an Upgrade precedes the tunnel, or the request is refused", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(post(*WEBSOCKET, b"Content-Length: 5", content=b"hello" + b"RAW"))
    response = client.read_response()
    expect_status(response, 101, 400, 501)
    if response.status == 101:
        expect_same("content", t.main.requests[0].body, b"hello")
        expect_same("relayed", client.read_exactly(3), b"RAW")


@case("RFC 9110 §15.2.2: a 101 for another protocol than the requested one is refused, or passed on unchanged", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
    expect_status(t.ask(head(*WEBSOCKET)), 502, 101)


@case("RFC 9110 §7.8: an upgrade that is refused with an error keeps the connection", nginx=None)
def _(t: Trial) -> None:
    t.origin(answering(answer(status=b"403 Forbidden", content=b"no"), OK))
    client = t.client()
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 403)
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")


@case("RFC 9110 §7.8: an idle tunnel outlasts the response timeout", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    t.origin(switching(echo_bytes))
    client = t.client()
    client.send(head(*WEBSOCKET, start=b"GET /patient/ HTTP/1.1"))
    expect_status(client.read_response(), 101)
    pause(1.5, Why.PASSES)
    client.send(b"still here")
    expect_same("bytes", client.read_exactly(10), b"still here")


@case("timeouts.tunnelIdle: a quiet WebSocket outlasts the idle time of requests, which applies when one side has ended", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    port = free_port()
    process = t.setup.place.gateway(t.setup.binary, f"""
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 300ms }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{t.main.port}", timeouts: {{ idle: 300ms, tunnelIdle: 2s }} }} }}
routes: [{{ service: origin }}]
""", [port])
    t.at_end(process.stop)

    def quiet(c: OriginConnection) -> None:
        c.sock.sendall(c.take(len(c.buffer)))
        while c.fill():
            c.sock.sendall(c.take(len(c.buffer)))
        pause(1.5, Why.SLOW)  # the client has ended, and this side does not

    t.origin(switching(quiet))
    client = connect(("127.0.0.1", port), 5)
    t.clients.append(client)
    client.send(head(*WEBSOCKET, start=b"GET /chat HTTP/1.1"))
    expect_status(client.read_response(), 101)
    pause(0.9, Why.PASSES)
    client.send(b"still here")
    expect_same("echo", client.read_exactly(10), b"still here")
    began = time.monotonic()
    expect_same("end", client.read_rest(), b"")
    check(1.8 <= time.monotonic() - began <= 3.5, "closed after", time.monotonic() - began)

    half = connect(("127.0.0.1", port), 5)
    t.clients.append(half)
    half.send(head(*WEBSOCKET, start=b"GET /chat HTTP/1.1"))
    expect_status(half.read_response(), 101)
    began = time.monotonic()
    half.end_sending()
    expect_same("end", half.read_rest(), b"")
    check(time.monotonic() - began <= 1.2, "waited", time.monotonic() - began)
