"""Requests that reach two endpoints, requests that must be carried out once, circuits of endpoints, and logs that go elsewhere."""

from __future__ import annotations

import socket
import threading
import time

from gateways import OwnGateway
from Rig.origins import OriginConnection, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, expect_same, expect_status

NO = "wares of httpware"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
stores: {{ answers: {{ disk: {{ path: "{place}/answers", maxSize: 16MiB }} }} }}
services:
  pair: {{ endpoints: ["http://127.0.0.1:{main}", "http://127.0.0.1:{second}"], balance: hash, hashKey: route }}
  one: {{ baseUrl: "http://127.0.0.1:{main}" }}
  backup: {{ baseUrl: "http://127.0.0.1:{second}" }}
chains:
  hedge: {{ middlewares: [{{ hedge: {{ after: 100ms, budget: 100% }} }}] }}
  once: {{ middlewares: [{{ idempotencyKey: {{ maxBody: 1KiB, lock: 1s }} }}] }}
  disk: {{ middlewares: [{{ idempotencyKey: {{ store: answers }} }}] }}
  circuits: {{ middlewares: [{{ circuitBreaker: {{ per: endpoint, minRequests: 2, openFor: 1h }} }}] }}
  diverting: {{ middlewares: [{{ circuitBreaker: {{ minRequests: 2, openFor: 1h, fallback: {{ service: backup }} }} }}] }}
  logging: {{ postwares: [{{ accessLog: {{ output: "udp:127.0.0.1:{log}", members: [method, target, status, response.header.X-Made] }} }}] }}
routes:
  - {{ match: {{ path: "/hedge/**" }}, service: pair, chain: hedge }}
  - {{ match: {{ path: "/once/**" }}, service: one, chain: once }}
  - {{ match: {{ path: "/disk/**" }}, service: one, chain: disk }}
  - {{ match: {{ path: "/circuits/**" }}, service: pair, chain: circuits }}
  - {{ match: {{ path: "/diverting/**" }}, service: one, chain: diverting }}
  - {{ match: {{ path: "/logging/**" }}, service: one, chain: logging }}
"""


def answer(status: int, body: bytes = b"", *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Gateway(OwnGateway):
    def __init__(self, t: Trial, workers: int = 1, log: int = 9):
        ports = t.setup.ports
        self.folder = t.setup.place.subfolder(f"attempts-{time.monotonic_ns()}")
        super().__init__(
            t, self.folder.name, CONFIG, workers=workers, main=ports["main"], second=ports["second"], log=log,
            place=self.folder)

    def order(self, path: str, key: str, content: bytes = b"order"):
        return self.ask(path, "POST", f"Idempotency-Key: {key}", content=content)


def slow(gate: threading.Event, response: bytes):
    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            gate.wait(10)
            connection.send(response)

    return script


@case("hedge: if an endpoint is late, another endpoint answers, and the late request is cancelled", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gate = threading.Event()
    t.origin(slow(gate, answer(200, b"main")))
    t.origin(slow(gate, answer(200, b"second")), "second")
    origins = t.setup.origins["main"], t.setup.origins["second"]
    client = gateway.send("/hedge/a")
    check(gateway.eventually(lambda: all(origin.requests for origin in origins)), "only one endpoint was asked")
    gate.set()
    expect_status(client.read_response("GET"), 200)
    check(gateway.eventually(lambda: sum(int(line.split()[-1]) for line in gateway.metrics() if line.startswith("httpware_hedges_total")) == 1), gateway.metrics())
    # A method that is not listed goes to one endpoint only.
    gate.clear()
    asked = sum(len(origin.requests) for origin in origins)
    client = gateway.send("/hedge/a", "POST", content=b"order")
    pause(0.4, Why.NOTHING)
    expect_same("asked", sum(len(origin.requests) for origin in origins), asked + 1)
    gate.set()
    expect_status(client.read_response("POST"), 200)


@case("hedge: an endpoint that resets, or answers 503, does not win", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for trouble in (answering(answer(503)), lambda c: (c.serve(), c.close())):
        for bad, good in (("main", "second"), ("second", "main")):
            gate = threading.Event()
            t.origin(slow(gate, answer(200, b"good")), good) if good != "main" else t.origin(slow(gate, answer(200, b"good")))
            t.origin(trouble, bad) if bad != "main" else t.origin(trouble)
            client = gateway.send("/hedge/b")
            pause(0.3, Why.BEFORE)
            gate.set()
            response = client.read_response("GET")
            # Trouble before another endpoint was asked is the answer, or is tried again by the gateway's own rule.
            check(response.status in (200, 502, 503), response)
            if t.setup.origins[good].requests:
                expect_same("body", response.body, b"good")


@case("draft-ietf-httpapi-idempotency-key-header-07: a repetition is answered from the store, another request is refused", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    origin = t.origin(answering(answer(201, b"made", b"X-Order: 7")))
    for path in ("/once/a", "/disk/a"):
        before = len(origin.requests)
        first = gateway.order(path, "k1")
        expect_same("first", (first.status, first.body, first.get("Idempotency-Replayed")), (201, b"made", None))
        for _ in range(4):
            again = gateway.order(path, "k1")
            expect_same(
                "again", (again.status, again.body, again.get("X-Order"), again.get("Idempotency-Replayed")),
                (201, b"made", "7", "true"))
        expect_status(gateway.order(path, "k1", b"other"), 422)
        expect_status(gateway.order(path, "k2"), 201)
        expect_same("asked", len(origin.requests), before + 2)
    expect_status(gateway.order("/once/a", "k3", b"x" * 1025), 413)
    check(gateway.metric('httpware_idempotent_requests_total{ware="idempotencyKey",result="mismatch"} 1')
          or any("httpware_idempotent_requests_total" in line for line in gateway.metrics()), gateway.metrics())


@case("idempotencyKey: while the first request runs a second one is refused, and the first continues if its client leaves", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gate = threading.Event()
    origin = t.origin(slow(gate, answer(201, b"made")))
    first = gateway.send("/once/b", "POST", "Idempotency-Key: k1", content=b"order")
    check(gateway.eventually(lambda: len(origin.requests) == 1), "not asked")
    second = gateway.order("/once/b", "k1")
    expect_same("second", (second.status, second.get("Retry-After")), (409, "1"))
    first.close()
    pause(0.2, Why.BEFORE)
    gate.set()
    check(gateway.eventually(lambda: gateway.order("/once/b", "k1").status == 201), "the work was not carried out")
    expect_same("asked", len(origin.requests), 1)


@case("idempotencyKey: a key whose request broke off stays taken until the time of lock has passed", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(lambda c: (c.serve(), c.close()))
    expect_status(gateway.order("/once/c", "k1"), 502)
    expect_status(gateway.order("/once/c", "k1"), 409)
    asked = len(origin.requests)
    origin = t.origin(answering(answer(200, b"made")))
    pause(1.1, Why.PASSES)
    expect_status(gateway.order("/once/c", "k1"), 200)
    expect_same("asked", (asked, len(origin.requests)), (1, 1))


@case("idempotencyKey: an endless response is cut off when its client has left", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    cut = threading.Event()

    def endless(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20_000):  # a gigabyte at most
            if not connection.send(b"c000\r\n" + b"y" * 0xc000 + b"\r\n"):
                return cut.set()

    t.origin(endless)
    client = gateway.send("/once/e", "POST", "Idempotency-Key: k1", content=b"order")
    check(client.read_until(b"yyyy"), "no response")
    client.close()
    check(cut.wait(5), "the gateway reads on")
    expect_status(gateway.order("/once/e", "k1"), 409)


@case("idempotencyKey: a response on disk is found after a restart", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(answering(answer(201, b"made")))
    expect_status(gateway.order("/disk/d", "k1"), 201)
    expect_same("again", gateway.order("/disk/d", "k1").get("Idempotency-Replayed"), "true")
    pause(0.5, Why.BEFORE)
    gateway.process.stop()
    gateway.process = t.setup.place.command(
        [t.setup.binary, "run", "-c", str(gateway.file), "--workers", "1"], [gateway.web, gateway.admin])
    t.at_end(gateway.process.stop)
    again = gateway.order("/disk/d", "k1")
    expect_same("again", (again.status, again.body, again.get("Idempotency-Replayed")), (201, b"made", "true"))
    expect_same("asked", len(origin.requests), 1)


@case("circuitBreaker: a failing endpoint is avoided, and another service replaces a failing service", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(500)))
    t.origin(answering(answer(200, b"second")), "second")
    main, second = t.setup.origins["main"], t.setup.origins["second"]
    # One key goes to one endpoint: whichever that is, the other one answers after it failed twice.
    statuses = [gateway.ask("/circuits/a").status for _ in range(8)]
    check(statuses[2:] == [200] * 6, statuses)
    check(len(main.requests) in (0, 2), len(main.requests))
    asked = len(second.requests)
    bodies = [gateway.ask("/diverting/a").body for _ in range(5)]
    expect_same("bodies", bodies[2:], [b"second"] * 3)
    expect_same("asked", len(second.requests), asked + 3)


@case("RFC 5424, RFC 5426: an access log is sent to another machine, with the chosen members", nginx=NO)
def _(t: Trial) -> None:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(10)
    t.at_end(receiver.close)
    gateway = Gateway(t, log=receiver.getsockname()[1])
    t.origin(answering(answer(200, b"", b"X-Made: here")))
    expect_status(gateway.ask("/logging/a?b=c"), 200)
    message = receiver.recv(65536)
    head, _, line = message.partition(b" - - ")
    check(head.startswith(b"<30>1 20"), message)
    expect_same("line", line, b'{"method":"GET","target":"/logging/a?b=c","status":200,"response.header.x-made":"here"}')
