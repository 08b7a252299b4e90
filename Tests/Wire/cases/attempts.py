"""Requests that reach two endpoints, and requests that must be carried out once."""

from __future__ import annotations

import threading
import time

from gateways import OwnGateway
from Rig.origins import OriginConnection, answering
from suite import Trial, case, check, expect_same, expect_status

NO = "wares of httpware"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}" }}
services:
  pair: {{ endpoints: ["http://127.0.0.1:{main}", "http://127.0.0.1:{second}"], balance: hash, hashKey: route }}
chains:
  hedge: {{ middlewares: [{{ hedge: {{ after: 100ms, budget: 100% }} }}] }}
routes:
  - {{ match: {{ path: "/hedge/**" }}, service: pair, chain: hedge }}
"""


def answer(status: int, body: bytes = b"", *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Gateway(OwnGateway):
    def __init__(self, t: Trial, workers: int = 1):
        ports = t.setup.ports
        self.folder = t.setup.place.subfolder(f"attempts-{time.monotonic_ns()}")
        super().__init__(
            t, self.folder.name, CONFIG, workers=workers, main=ports["main"], second=ports["second"], place=self.folder)

    def order(self, path: str, key: str, content: bytes = b"order"):
        return self.ask(path, "POST", f"Idempotency-Key: {key}", content=content)


def slow(gate: threading.Event, response: bytes):
    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            gate.wait(10)
            connection.send(response)

    return script


@case("hedge: another endpoint answers for one that is late, and the late request is cancelled", nginx=NO)
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
    time.sleep(0.4)
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
            time.sleep(0.3)
            gate.set()
            response = client.read_response("GET")
            # Trouble before another endpoint was asked is the answer, or is tried again by the gateway's own rule.
            check(response.status in (200, 502, 503), response)
            if t.setup.origins[good].requests:
                expect_same("body", response.body, b"good")
