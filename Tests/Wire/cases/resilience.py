"""Resilience: retries, circuits, limits, timeouts, and CORS; with their state on the admin listener."""

from __future__ import annotations

import threading
import time

from gateways import OwnGateway
from Rig.origins import OriginConnection, answering
from suite import Trial, case, check, eventually, expect_same, expect_status

NO = "wares of httpware"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services:
  one: {{ baseUrl: "http://127.0.0.1:{main}" }}
  broken: {{ baseUrl: "http://127.0.0.1:{main}" }}
  shared: {{ baseUrl: "http://127.0.0.1:{main}" }}
  pair: {{ endpoints: [{{ url: "http://127.0.0.1:{main}" }}, {{ url: "http://127.0.0.1:{second}" }}] }}
chains:
  retry: {{ middlewares: [{{ retry: {{ backoff: 1ms..10ms, maxBody: 1KiB }} }}] }}
  budget: {{ middlewares: [{{ retry: {{ backoff: 1ms..1ms, budget: 0.5 }} }}] }}
  breaker: {{ middlewares: [{{ circuitBreaker: {{ minRequests: 4, openFor: 400ms, halfOpen: 1 }} }}] }}
  limit: {{ middlewares: [{{ rateLimit: {{ rate: 1/h, burst: 10, key: header.X-Key }}, as: keys }}] }}
  slots: {{ middlewares: [{{ concurrency: {{ max: 1 }} }}] }}
  queue: {{ middlewares: [{{ concurrency: {{ max: 1, queue: 2, queueTimeout: 5s, priority: header.X-Priority }} }}] }}
  timeout: {{ middlewares: [{{ timeout: {{ response: 300ms, status: 503 }} }}] }}
  cors: {{ middlewares: [{{ cors: {{ allowOrigins: ["https://app.test"], allowMethods: [PUT], allowHeaders: [X-A] }} }}] }}
  metrics: {{ middlewares: [{{ rateLimit: {{ rate: 1/h, burst: 2, key: route }} }}], postwares: [metrics] }}
routes:
  - {{ name: measured, match: {{ path: "/metrics/**" }}, service: one, chain: metrics }}
  - {{ match: {{ path: "/pair/**" }}, service: pair, chain: retry }}
  - {{ match: {{ path: "/one/**" }}, service: one, chain: retry }}
  - {{ match: {{ path: "/shared/again/**" }}, service: shared, chain: budget }}
  - {{ match: {{ path: "/shared/**" }}, service: shared }}
  - {{ match: {{ path: "/broken/**" }}, service: broken, chain: breaker }}
  - {{ match: {{ path: "/limit/**" }}, service: one, chain: limit }}
  - {{ match: {{ path: "/slots/**" }}, service: one, chain: slots }}
  - {{ match: {{ path: "/queue/**" }}, service: one, chain: queue }}
  - {{ match: {{ path: "/timeout/**" }}, service: one, chain: timeout }}
  - {{ match: {{ path: "/cors/**" }}, service: one, chain: cors }}
"""


def answer(status: int, body: bytes = b"", *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Gateway(OwnGateway):
    def __init__(self, t: Trial, workers: int = 1):
        ports = t.setup.ports
        super().__init__(t, "resilience", CONFIG, workers=workers, main=ports["main"], second=ports["second"])


@case("retry: a request that failed goes to another endpoint", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(503)))
    t.origin(answering(answer(200, b"second")), "second")
    for _ in range(6):
        expect_same("body", gateway.ask("/pair/a").body, b"second")
    second = t.setup.origins["second"]
    expect_same("answered", len(second.requests), 6)
    check(len(t.main.requests) >= 1, "the first endpoint was never asked")
    expect_same("retries", gateway.service("pair")["retries"], {"sent": len(t.main.requests), "denied": 0})
    check(gateway.metric(f'httpware_retries_total{{service="pair"}} {len(t.main.requests)}'), "no metric")


@case("RFC 9110 §9.2.2: content is sent twice with PUT, and once with POST", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(answering(answer(503), answer(200)))
    expect_status(gateway.ask("/one/", "PUT", content=b"order"), 200)
    expect_same("sent", [request.body for request in origin.requests], [b"order", b"order"])
    origin = t.origin(answering(answer(503), answer(200)))
    expect_status(gateway.ask("/one/", "POST", content=b"order"), 503)
    expect_same("sent", len(origin.requests), 1)


@case("retry: all requests of a service share one budget, on each route", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(200)))
    for _ in range(30):
        expect_status(gateway.ask("/shared/plain"), 200)
    origin = t.origin(answering(answer(503)))
    for _ in range(30):
        expect_status(gateway.ask("/shared/again/a"), 503)
    # Half of 60 may be sent again; a request counts once, however often it was sent.
    expect_same("retries", gateway.service("shared")["retries"], {"sent": 30, "denied": 0})
    expect_same("asked", len(origin.requests), 60)
    expect_status(gateway.ask("/shared/again/a"), 503)
    expect_same("denied", gateway.service("shared")["retries"], {"sent": 30, "denied": 1})


@case("retry: content over maxBody is never sent twice", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(answering(answer(503), answer(200)))
    expect_status(gateway.ask("/one/", "PUT", content=b"x" * 1025), 503)
    expect_same("sent", len(origin.requests), 1)


@case("retry: a connection that is reset before the response is retried", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)

    def script(c: OriginConnection) -> None:
        c.serve()
        if c.index == 0:
            c.reset()
        else:
            c.send(answer(200, b"again"))

    origin = t.origin(script)
    expect_same("body", gateway.ask("/one/", "PUT", content=b"x").body, b"again")
    expect_same("sent", len(origin.requests), 2)


@case("circuitBreaker: a failing endpoint is avoided, then tried, then used again", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(answering(answer(500)))
    for _ in range(4):
        expect_status(gateway.ask("/broken/"), 500)
    refused = gateway.ask("/broken/")
    expect_status(refused, 503)
    expect_same("Retry-After", refused.get("Retry-After"), "1")
    expect_same("asked", len(origin.requests), 4)
    circuit = gateway.service("broken")["circuit"]
    expect_same("circuit", (circuit["state"], circuit["opened"], circuit["refused"] >= 1), ("open", 1, True))
    check(gateway.metric('httpware_circuit_state{service="broken"} 2'), "no metric")
    t.origin(answering(answer(200)))
    check(eventually(lambda: gateway.ask("/broken/").status == 200), "it stays open")
    expect_same("state", gateway.service("broken")["circuit"]["state"], "closed")
    expect_same("no circuit", gateway.service("one")["circuit"], None)


@case("rateLimit: several loops share one limit, and each key has its own", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    statuses: list[int] = []
    fields = {"a": ("X-Key: a",), "b": ("X-Key: b",)}
    for key in ("a", "b"):
        answers = [gateway.ask("/limit/", "GET", *fields[key]) for _ in range(20)]
        statuses += [one.status for one in answers]
        expect_same("passed", [one.status for one in answers].count(200), 10)
        expect_same("policy", {one.get("RateLimit-Policy") for one in answers}, {'"header";q=10;w=36000'})
        expect_same("left", [one.get("RateLimit").split(";")[1] for one in answers[:10]], [f"r={9 - i}" for i in range(10)])
        refused = [one for one in answers if one.status == 429]
        check(all(3590 <= int(one.get("Retry-After")) <= 3600 for one in refused), refused[0])
    check(gateway.metric('httpware_rate_limited_total{ware="keys"} 20'), "no metric")


@case("concurrency: a slot becomes free when its client has left", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(lambda c: (c.serve(), c.fill()) if c.index == 0 else answering(answer(200))(c))
    first = gateway.send("/slots/")
    check(eventually(lambda: len(origin.requests) == 1), "nothing arrived")
    refused = gateway.ask("/slots/")
    expect_status(refused, 503)
    expect_same("Retry-After", refused.get("Retry-After"), "1")
    check(gateway.metric('httpware_concurrency_in_use{ware="concurrency"} 1'), "no metric")
    first.close()
    check(eventually(lambda: gateway.ask("/slots/").status == 200), "the slot is lost")


@case("concurrency: a slot becomes free before the client can notice the end of its exchange, over two loops", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    pause = threading.Event()

    def script(c: OriginConnection) -> None:
        while True:
            start = c.serve().start
            if b"/reset" in start:
                return c.reset()
            if b"/cut" in start:
                c.send(b"HTTP/1.1 200 X\r\nContent-Length: 20000\r\n\r\nok")
                pause.wait(0.002)
                return c.reset()
            if b"/never" in start:
                return c.fill()
            c.send(answer(200, b"x" * (200_000 if b"/large" in start else 2)))

    t.origin(script)
    for path in ("ok", "large", "reset", "cut"):
        for round in range(60):
            client = gateway.send(f"/slots/{path}")
            first = client.read_response()
            check(first.status in (200, 502), f"{path} in round {round}: {first}")
            second = gateway.ask("/slots/ok")
            check(second.status == 200, f"behind {path} in round {round}: {second}")
            client.close()
    # A client that resets its connection and asks again is not refused because of itself.
    for round in range(60):
        client = gateway.send("/slots/never")
        pause.wait(0.005)
        client.reset()
        response = gateway.ask("/slots/ok")
        check(response.status == 200, f"behind the client's own reset in round {round}: {response}")


@case("concurrency: waiting requests are served by priority, and a client that leaves frees its place", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gate = threading.Event()
    t.at_end(gate.set)

    def script(c: OriginConnection) -> None:
        while True:
            request = c.serve()
            if request.start.startswith(b"GET /queue/first"):
                gate.wait(10)
            c.send(answer(200))

    origin = t.origin(script)
    waiting = 'httpware_concurrency_waiting{ware="concurrency"} '
    first = gateway.send("/queue/first")
    check(eventually(lambda: len(origin.requests) == 1), "nothing arrived")
    low = gateway.send("/queue/low", "GET", "X-Priority: 1")
    check(gateway.metric(waiting + "1"), "it does not wait")
    gone = gateway.send("/queue/gone", "GET", "X-Priority: 9")
    check(gateway.metric(waiting + "2"), "it does not wait")
    expect_status(gateway.ask("/queue/over"), 503)
    gone.close()
    check(gateway.metric(waiting + "1"), "it waits on")
    high = gateway.send("/queue/high", "GET", "X-Priority: 5")
    check(gateway.metric(waiting + "2"), "it does not wait")
    gate.set()
    for client in (first, high, low):
        expect_status(client.read_response(), 200)
    paths = [request.start.split()[1] for request in origin.requests]
    expect_same("order", paths, [b"/queue/first", b"/queue/high", b"/queue/low"])


@case("timeout: the ware's limit and status replace the service's", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(lambda c: (c.serve(), c.fill()))
    began = time.monotonic()
    response = gateway.ask("/timeout/")
    expect_status(response, 503)
    check("http_response_timeout" in (response.get("Proxy-Status") or ""), response)
    check(0.25 < time.monotonic() - began < 3, "not within its time")


@case("Fetch standard: preflights are answered, pages of other origins receive no CORS fields", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    origin = t.origin(answering(answer(200, b"", b"Access-Control-Allow-Origin: *")))
    preflight = ("Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-a")
    allowed = gateway.ask("/cors/", "OPTIONS", "Origin: https://app.test", *preflight)
    expect_status(allowed, 204)
    expect_same("origin", allowed.get("Access-Control-Allow-Origin"), "https://app.test")
    expect_same("methods", allowed.get("Access-Control-Allow-Methods"), "PUT")
    refused = gateway.ask("/cors/", "OPTIONS", "Origin: https://evil.test", *preflight)
    expect_status(refused, 403)
    check(refused.get("Access-Control-Allow-Origin") is None, refused)
    expect_same("asked", len(origin.requests), 0)
    for page, said in (("https://app.test", "https://app.test"), ("https://evil.test", None)):
        response = gateway.ask("/cors/", "GET", f"Origin: {page}")
        expect_same(page, (response.status, response.get("Access-Control-Allow-Origin"), response.get("Vary")), (200, said, "Origin"))


@case("metrics: counters have route, method, class of status and ware as labels, and no value of a client", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    t.origin(answering(answer(200)))
    for method in ("GET", "BREW", "MAKE"):
        gateway.ask(f"/metrics/s3cret-{method}", method)
    place = 'listener="web",http_route="measured",service="one"'
    family = "http_server_request_duration_seconds"
    check(gateway.metric(f'{family}_count{{{place},http_request_method="GET",http_response_status_code="2xx"}} 1'), "no GET")
    check(gateway.metric(f'{family}_count{{{place},http_request_method="_OTHER",http_response_status_code="2xx"}} 1'), "no _OTHER")
    check(gateway.metric(f'{family}_count{{{place},http_request_method="_OTHER",http_response_status_code="4xx"}} 1'), "no 4xx")
    check(gateway.metric(f'{family}_bucket{{{place},http_request_method="GET",http_response_status_code="2xx",le="+Inf"}} 1'), "no bucket")
    place = 'listener="web",route="measured",service="one"'
    check(gateway.metric(f'httpware_ware_decisions_total{{{place},ware="rateLimit",decision="aborted"}} 1'), "no aborted")
    check(gateway.metric(f'httpware_ware_duration_seconds_count{{{place},ware="metrics"}} 3'), "no duration")
    text = gateway.ask("/metrics", port=gateway.admin).body
    check(b"s3cret" not in text and b"BREW" not in text, text)
