"""Thousands of messages with small faults, from a fixed seed. For all of them, the output is well-formed and belongs to its exchange.

The reader of the scripted origin is strict: a fault there is a request that has two readings.
"""

from __future__ import annotations

import random

from Rig.origins import OriginConnection
from Rig.wire import Malformed, WireClosed, WireTimeout
from suite import Failure, Trial, case, check

from .refused_requests import head, post

NGINX = "nginx repairs much"

REQUESTS = [
    head(b"X-A: b", b"Accept: */*"),
    post(b"Content-Length: 5"),
    post(b"Transfer-Encoding: chunked", content=b"5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"),
    post(b"Transfer-Encoding: chunked", b"Connection: X-A", b"X-A: b", content=b"A\r\n0123456789\r\n0\r\n\r\n"),
    head(b"Connection: close, X-A", b"X-A: b"),
    head(start=b"OPTIONS * HTTP/1.1"),
    head(b"Connection: Upgrade", b"Upgrade: websocket"),
    head(start=b"GET http://a.test:80/a/./b?c=%20 HTTP/1.1"),
    post(b"Content-Length: 40", content=b"GET /inner HTTP/1.1\r\nHost: evil.test\r\n\r\n\r\n"[:40]),
    b"GET / HTTP/1.0\r\n\r\n",
    post(b"Expect: 100-continue", b"Content-Length: 5"),
]
RESPONSES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-A\r\nX-A: b\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL",
]
PIECES = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"5", b"-", b"+", b"x", b"\x80", b"\xff", b"\x0b", b"\r\n ", b"\r\n\r\n", b"Content-Length: 3\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Connection: close\r\n", b"Host: b.test\r\n", b"chunked", b"0\r\n\r\n", b"HTTP/1.1", b"%2e%2e/", b"#", b"*"]


def mutated(generator: random.Random, message: bytes) -> bytes:
    data = bytearray(message)
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        at = generator.randrange(len(data) + 1)
        match generator.randrange(6):
            case 0:
                data[at:at] = generator.choice(PIECES)
            case 1:
                del data[at : at + generator.choice((1, 1, 2, 5))]
            case 2:
                data[at : at + 1] = bytes([generator.randrange(256)])
            case 3:
                data[at:at] = data[at : at + generator.randrange(1, 30)]
            case 4:
                lines = bytes(data).split(b"\r\n")
                lines.insert(generator.randrange(len(lines)), generator.choice(lines))
                data = bytearray(b"\r\n".join(lines))
            case 5:
                data = bytearray(bytes(data).replace(b"\r\n", generator.choice((b"\n", b"\r", b"\r\r\n", b"\r\n")), generator.choice((1, 2))))
    return bytes(data)


def naming(c: OriginConnection) -> None:
    while True:
        request = c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nX-Target: %s\r\nContent-Length: 2\r\n\r\n" % request.target.encode("latin-1") + (b"" if request.method == "HEAD" else b"ok"))


COUNT = 250

for seed in range(8):

    @case(f"RFC 9112 §11.2: {COUNT} requests with small faults, each before a valid one: every request upstream has one reading [seed {seed}]", nginx=NGINX)
    def _(t: Trial, seed: int = seed) -> None:
        generator = random.Random(seed)
        for index in range(COUNT):
            origin = t.main
            if index % 50 == 0:
                origin = t.origin(naming)
            known = len(origin.requests)
            raw = mutated(generator, generator.choice(REQUESTS))
            listener = generator.choice(("web", "web", "proxy"))
            canary = b"/canary-%d" % index
            target = canary if listener == "web" else b"http://127.0.0.1:%d" % t.main.port + canary
            client = t.client(listener, timeout=8)
            client.send(raw + head(start=b"GET " + target + b" HTTP/1.1"))
            client.end_sending()
            try:
                responses = []
                while client.buffer or not client.ends(8) or client.buffer:
                    responses.append(client.read_response())
                    if responses[-1].status == 101 or responses[-1].framing == "close":
                        break
            except (WireClosed, WireTimeout):
                pass
            except Malformed as malformed:
                if b"HEAD" not in raw:
                    raise Failure(f"seed {seed}.{index}: {malformed} after {raw!r}") from malformed
            client.close()
            t.clients.remove(client)
            check(not origin.faults, f"seed {seed}.{index}: {origin.faults} after {raw!r}")
            arrived = origin.requests[known:]
            named = [response.get("X-Target") for response in responses if response.has("X-Target")]
            check(len(named) <= len(arrived), f"seed {seed}.{index}: more answers than requests after {raw!r}")
            rest = iter(request.target for request in arrived)  # one that the client before left behind may still arrive
            check(all(name in rest for name in named), f"seed {seed}.{index}: answers {named} for {arrived} after {raw!r}")
            for position, response in enumerate(responses):
                if "close" in response.options():
                    check(position == len(responses) - 1, f"seed {seed}.{index}: it went on after Connection: close, after {raw!r}")

    @case(f"RFC 9112 §11.1: {COUNT} responses with small faults, each before a valid request: that request receives its own response [seed {seed}]", nginx=NGINX)
    def _(t: Trial, seed: int = seed) -> None:
        generator = random.Random(seed)
        raw = [b""]

        def script(c: OriginConnection) -> None:
            while True:
                request = c.serve()
                if request.target.startswith("/hasty/canary"):
                    c.send(b"HTTP/1.1 200 OK\r\nX-Target: %s\r\nContent-Length: 2\r\n\r\nok" % request.target.encode())
                    continue
                c.send(raw[0])
                if generator.random() < 0.9:
                    c.end_sending()
                    c.read_rest()
                    return

        for index in range(COUNT):
            if index % 50 == 0:
                t.origin(script)
            raw[0] = mutated(generator, generator.choice(RESPONSES))
            client = t.client(timeout=8)
            method = generator.choice((b"GET", b"POST", b"HEAD"))
            client.send(head(b"Content-Length: 0", start=method + b" /hasty/faulty HTTP/1.1"))
            try:
                first = client.read_response(method.decode())
            except Malformed as malformed:
                raise Failure(f"seed {seed}.{index}: {malformed} after {raw[0]!r}") from malformed
            except WireClosed:
                first = None
            if first is not None and first.whole and first.framing != "close" and "close" not in first.options() and first.status != 101:
                client.send(head(start=b"GET /hasty/canary-%d HTTP/1.1" % index))
                try:
                    second = client.read_response()
                except (Malformed, WireClosed) as problem:
                    raise Failure(f"seed {seed}.{index}: {problem} for the next request, after {raw[0]!r} and {first!r}") from problem
                check(second.get("X-Target") == f"/hasty/canary-{index}", f"seed {seed}.{index}: {second!r} after {raw[0]!r}")
            client.close()
            t.clients.remove(client)
            check(not t.main.faults, f"seed {seed}.{index}: {t.main.faults} after {raw[0]!r}")
