"""Compressed responses, as clients see them on the wire, and as curl reads them."""

from __future__ import annotations

import gzip
import json
import subprocess
import threading
import zlib

from Rig.origins import OriginConnection, answering
from Rig.processes import free_port
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .fields import answer

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
chains:
  plain: {{ postwares: [compress, accessLog] }}
  events: {{ postwares: [{{ compress: {{ types: [text/event-stream] }} }}] }}
  cached: {{ middlewares: [httpCache], postwares: [compress] }}
routes:
  - {{ match: {{ path: "/cached/**" }}, service: origin, chain: cached }}
  - {{ match: {{ path: "/events/**" }}, service: origin, chain: events }}
  - {{ service: origin, chain: plain }}
"""
NO = "another module, with fields of its own"
TEXT = b"".join(b'{"id": %d, "name": "item %d", "tags": ["a", "b"]},\n' % (n, n % 97) for n in range(20_000))
JSON = b"Content-Type: application/json"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


class Gateway:
    def __init__(self, t: Trial):
        self.t, self.web = t, free_port()
        self.process = t.setup.place.gateway(t.setup.binary, CONFIG.format(web=self.web, main=t.setup.ports["main"]), [self.web])
        t.at_end(self.process.stop)

    def send(self, path: str, method: str = "GET", *fields: str):
        client = connect(("127.0.0.1", self.web), 10.0)
        self.t.clients.append(client)
        client.send("\r\n".join([f"{method} {path} HTTP/1.1", "Host: site.test", *fields, "", ""]).encode())
        return client

    def ask(self, path: str, method: str = "GET", *fields: str) -> Message:
        return self.send(path, method, *fields).read_response(method)


@case("compress: compressed content decodes to the origin's content, by zlib and by curl", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(JSON, b'ETag: "1"', content=TEXT)))
    response = gateway.ask("/a", "GET", "Accept-Encoding: gzip")
    expect_status(response, 200)
    expect_same("coding", response.get("Content-Encoding"), "gzip")
    expect_same("content", gzip.decompress(response.body) == TEXT, True)
    check(len(response.body) < len(TEXT) // 5, len(response.body))
    expect_same("fields", [response.get(name) for name in ("Vary", "ETag", "Content-Length")], ["Accept-Encoding", 'W/"1"', None])
    url = f"http://127.0.0.1:{gateway.web}/curl"
    for coding in ("gzip", "br", "zstd"):
        for version in ("--http1.1", "--http1.0"):
            done = subprocess.run(
                ["curl", "-s", version, "--compressed", "-H", f"Accept-Encoding: {coding}", "-D", "/dev/stderr", url],
                capture_output=True, timeout=20, check=True)
            check(f"content-encoding: {coding}\r\n".encode() in done.stderr.lower(), done.stderr)
            expect_same(f"{coding} {version}", done.stdout == TEXT, True)
    plain = gateway.ask("/a")
    expect_same("plain", plain.body == TEXT and plain.get("Content-Encoding") is None, True)


@case("compress: logs and counters have the sizes after and before compression", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(JSON, content=TEXT)))
    sent = len(gateway.ask("/logged", "GET", "Accept-Encoding: gzip").body)
    check(0 < sent < len(TEXT) // 5, sent)

    def line() -> dict | None:
        lines = [line for line in gateway.process.log.splitlines() if line.startswith("{") and "/logged" in line]
        return json.loads(lines[0]) if lines else None

    check(eventually(line, 5), gateway.process.log[-500:])
    expect_same("bytes", (line()["bytes"], line().get("unfilteredBytes")), (sent, len(TEXT)))


@case("RFC 9110 §9.3.2: HEAD has the fields of GET, also for compressed content", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(JSON, b'ETag: "1"', b"Accept-Ranges: bytes", content=TEXT)))
    get = gateway.ask("/a", "GET", "Accept-Encoding: gzip")
    t.origin(lambda c: (c.serve(), c.send(answer(JSON, b'ETag: "1"', b"Accept-Ranges: bytes", content=TEXT)[:-len(TEXT)])))
    head = gateway.ask("/a", "HEAD", "Accept-Encoding: gzip")
    for name in ("Content-Encoding", "Vary", "ETag", "Accept-Ranges", "Content-Length", "Content-Type"):
        expect_same(name, head.get(name), get.get(name))
    expect_same("content", head.body, b"")


@case("compress: bytes are sent while the origin server pauses, and events at once", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for path, kind in (("/slow", b"application/json"), ("/events/", b"text/event-stream")):
        go = threading.Event()

        def script(c: OriginConnection) -> None:
            c.serve()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind)
            for number in range(3):
                c.send(chunk(b"data: %d\n\n" % number))
                go.wait(10)
                go.clear()
            c.send(b"0\r\n\r\n")

        t.origin(script)
        client = gateway.send(path, "GET", "Accept-Encoding: gzip")
        head = client.read_until(b"\r\n\r\n")
        check(b"content-encoding: gzip" in head.lower(), head)
        reader, got = zlib.decompressobj(31), b""
        for number in range(3):
            # The rest comes only when this has been read.
            while f"data: {number}\n\n".encode() not in got:
                piece = client.read_exactly(int(client.read_until(b"\r\n"), 16) + 2)
                check(len(piece) > 2, got)
                got += reader.decompress(piece[:-2])
            check(f"data: {number}\n\n".encode() in got, got)
            go.set()


@case("compress: a cache stores the content unchanged, and answers each client in its coding", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(answer(JSON, b"Cache-Control: max-age=600", b'ETag: "1"', content=TEXT)))
    for fields, coding in (((), None), (("Accept-Encoding: gzip",), "gzip"), (("Accept-Encoding: br",), "br"), ((), None)):
        response = gateway.ask("/cached/a", "GET", *fields)
        expect_same("coding", response.get("Content-Encoding"), coding)
        body = gzip.decompress(response.body) if coding == "gzip" else response.body
        check(coding == "br" or body == TEXT, len(body))
    expect_same("asked", len(t.main.requests), 1)
    validated = gateway.ask("/cached/a", "GET", "Accept-Encoding: gzip", 'If-None-Match: W/"1"')
    expect_status(validated, 304)
    expect_same("fields", [validated.get(name) for name in ("ETag", "Vary", "Content-Encoding")], ['W/"1"', "Accept-Encoding", None])
    part = gateway.ask("/cached/a", "GET", "Accept-Encoding: gzip", "Range: bytes=0-9")
    expect_same("part", (part.status, part.body, part.get("Content-Encoding")), (206, TEXT[:10], None))


@case("compress: a response that is cut off stays incomplete", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(answer(JSON, content=TEXT)[:-1000])
        c.close()

    t.origin(script)
    client = gateway.send("/cut", "GET", "Accept-Encoding: gzip")
    data = client.read_rest()
    check(data.startswith(b"HTTP/1.1 200") and not data.endswith(b"0\r\n\r\n"), data[-20:])


@case("RFC 9530 §2: a digest in trailers of compressed content is removed, other trailers stay", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    head = b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    t.origin(answering(head + chunk(TEXT) + b"0\r\nContent-Digest: sha-256=:AAAA:\r\nX-Last: 1\r\n\r\n"))
    for fields, expected in [(["Accept-Encoding: gzip"], [("X-Last", "1")]), ([], [("Content-Digest", "sha-256=:AAAA:"), ("X-Last", "1")])]:
        response = gateway.ask("/a", "GET", "TE: trailers", *fields)
        expect_same("content", gzip.decompress(response.body) if fields else response.body, TEXT)
        expect_same("trailers", response.trailers, expected)
