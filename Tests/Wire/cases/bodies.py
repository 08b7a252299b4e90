"""Wares that edit content, or send it elsewhere, over the wire: pieces, pauses, codings, ends that come early, and services that hang."""

from __future__ import annotations

import gzip
import time

from gateways import OwnGateway
from Rig.origins import OriginConnection, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status

NO = "a ware of httpware"

CONFIG = """version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
services:
  app: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ response: 5s, idle: 2s }} }}
  shadow: {{ baseUrl: "http://127.0.0.1:{second}" }}
chains:
  whole: {{ postwares: [{{ rewriteBody: {{ rules: [{{ find: internal, replace: public }}], maxBody: 64KiB }} }}] }}
  strict: {{ postwares: [{{ rewriteBody: {{ rules: [{{ find: internal, replace: public }}], maxBody: 64KiB, onFailure: refuse }} }}] }}
  stream: {{ postwares: [{{ rewriteBody: {{ rules: [{{ find: internal, replace: public }}], stream: true }} }}] }}
  up: {{ middlewares: [{{ rewriteRequestBody: {{ rules: [{{ find: public, replace: internal }}], maxBody: 64KiB }} }}] }}
  upstream: {{ middlewares: [{{ rewriteRequestBody: {{ rules: [{{ find: public, replace: internal }}], stream: true }} }}] }}
  json: {{ postwares: [{{ jsonTransform: {{ remove: [/secret] }} }}] }}
  mirror: {{ middlewares: [{{ mirror: {{ service: shadow, maxInFlight: 3, maxBody: 64KiB, compare: {{}} }} }}] }}
routes:
  - {{ match: {{ path: "/whole/**" }}, service: app, chain: whole }}
  - {{ match: {{ path: "/strict/**" }}, service: app, chain: strict }}
  - {{ match: {{ path: "/stream/**" }}, service: app, chain: stream }}
  - {{ match: {{ path: "/up/**" }}, service: app, chain: up }}
  - {{ match: {{ path: "/upstream/**" }}, service: app, chain: upstream }}
  - {{ match: {{ path: "/json/**" }}, service: app, chain: json }}
  - {{ match: {{ path: "/mirror/**" }}, service: app, chain: mirror }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
"""

TEXT = b"an internal link, another internal one\n"
REWRITTEN = b"an public link, another public one\n"


def gateway(t: Trial) -> OwnGateway:
    return OwnGateway(t, "bodies", CONFIG, main=t.setup.ports["main"], second=t.setup.ports["second"])


def head(*fields: bytes, status: bytes = b"200 OK", kind: bytes = b"text/plain") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, b"Content-Type: " + kind, *fields]) + b"\r\n\r\n"


def page(body: bytes, *fields: bytes, kind: bytes = b"text/plain") -> bytes:
    return head(b"Content-Length: %d" % len(body), *fields, kind=kind) + body


def chunks(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


for chain in ("whole", "stream"):

    @case(f"rewriteBody, {chain}: a text is replaced across chunks of one byte with pauses", nginx=NO)
    def _(t: Trial, chain: str = chain) -> None:
        def script(c: OriginConnection) -> None:
            c.serve()
            c.send(head(b"Transfer-Encoding: chunked"))
            raw = chunks(TEXT, 1)
            for at in range(0, len(raw), 40):
                c.send(raw[at : at + 40])
                pause(0.03, Why.SLOW)

        t.origin(script)
        response = gateway(t).ask(f"/{chain}/")
        expect_same("body", response.body, REWRITTEN)
        if chain == "whole":
            expect_same("length", response.get("Content-Length"), str(len(REWRITTEN)))

    @case(f"rewriteBody, {chain}: gzip with Content-Length is rewritten, and HEAD is consistent with it", nginx=NO)
    def _(t: Trial, chain: str = chain) -> None:
        t.origin(answering(page(gzip.compress(TEXT), b"Content-Encoding: gzip", b'ETag: "a"')))
        own = gateway(t)
        response = own.ask(f"/{chain}/")
        expect_same("coding", response.get("Content-Encoding"), "gzip")
        expect_same("body", gzip.decompress(response.body), REWRITTEN)
        expect_same("ETag", response.get("ETag"), 'W/"a"')
        t.origin(answering(head(b"Content-Length: 1000", b"Content-Encoding: gzip", b'ETag: "a"')))
        response = own.ask(f"/{chain}/", "HEAD")
        expect_same("ETag", response.get("ETag"), 'W/"a"')
        expect_same("length", response.get("Content-Length"), None)

    @case(f"rewriteBody, {chain}: a response that is cut off is never completed", nginx=NO)
    def _(t: Trial, chain: str = chain) -> None:
        def script(c: OriginConnection) -> None:
            c.serve()
            c.send(head(b"Content-Length: 1000") + TEXT)
            c.close()

        t.origin(script)
        own = gateway(t)
        client = own.send(f"/{chain}/")
        response = client.read_response()
        if chain == "whole":
            expect_status(response, 502)
        else:
            check(not response.whole, "it is complete")


@case("rewriteBody: content over maxBody passes unchanged while it arrives, or is refused", nginx=NO)
def _(t: Trial) -> None:
    large = TEXT * 10_000
    for framed in (page(large), head(b"Transfer-Encoding: chunked") + chunks(large, 5000)):
        t.origin(answering(framed, framed))
        own = gateway(t)
        check(own.ask("/whole/").body == large, "it is changed")
        expect_status(own.ask("/strict/"), 502)


@case("rewriteBody: a compression bomb is not decoded, and memory stays bounded", nginx=NO)
def _(t: Trial) -> None:
    bomb = gzip.compress(bytes(40 << 20))
    t.origin(answering(*[page(bomb, b"Content-Encoding: gzip")] * 20))
    own = gateway(t)
    own.ask("/whole/")
    before = own.process.status("VmRSS")
    for _ in range(10):
        check(own.ask("/whole/").body == bomb, "it is changed")
    grown = own.process.status("VmRSS") - before
    check(grown < 20_000, f"it grew by {grown} KiB")


for chain in ("up", "upstream"):

    @case(f"rewriteRequestBody, {chain}: a text is replaced across chunks with a pause", nginx=NO)
    def _(t: Trial, chain: str = chain) -> None:
        own = gateway(t)
        expect = ["Expect: 100-continue"] if chain == "up" else []
        client = own.send(f"/{chain}/", "GET", "Content-Type: text/plain", "Transfer-Encoding: chunked", *expect)
        if expect:  # the gateway wants the content before the origin server receives the request
            check(client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 "), "the client waits")
        client.send(b"5\r\na pub\r\n")
        pause(0.2, Why.SLOW)
        client.send(b"6\r\nlic st\r\n0\r\n\r\n")
        expect_status(client.read_response(), 200)
        expect_same("content", t.main.requests[-1].body, b"a internal st")


@case("rewriteRequestBody: content over maxBody goes upstream while it arrives", nginx=NO)
def _(t: Trial) -> None:
    own = gateway(t)
    large = b"public " * 20_000
    client = own.send("/up/", "GET", "Content-Type: text/plain", "Transfer-Encoding: chunked")
    client.send(b"%x\r\n%s\r\n" % (len(large), large))
    check(eventually(lambda: b"public public" in t.main.received()), "it waits for all of it")
    client.send(b"0\r\n\r\n")
    expect_status(client.read_response(), 200)
    check(t.main.requests[-1].body == large, "it is changed")


@case("jsonTransform: JSON in pieces keeps its numbers, and other content passes", nginx=NO)
def _(t: Trial) -> None:
    kind = b"application/json"
    text = b'{"n": 12345678901234567890.10, "secret": "x", "m":1E2}'
    t.origin(answering(
        head(b"Transfer-Encoding: chunked", kind=kind) + chunks(text, 3), page(b"{" * 1000, kind=kind), page(b"", kind=kind)))
    own = gateway(t)
    expect_same("body", own.ask("/json/").body, b'{"n":12345678901234567890.10,"m":1E2}')
    expect_same("broken", own.ask("/json/").body, b"{" * 1000)
    expect_same("empty", own.ask("/json/").body, b"")


@case("mirror: services that hang, break off or send without end delay no client", nginx=NO)
def _(t: Trial) -> None:
    def endless(c: OriginConnection) -> None:
        c.serve()
        c.send(head(b"Transfer-Encoding: chunked"))
        while c.send(b"8000\r\n" + bytes(0x8000) + b"\r\n"):
            pass

    for script in (lambda c: (c.serve(), c.fill()), endless, lambda c: (c.serve(), c.reset())):
        t.origin(script, "second")
        own = gateway(t)
        t.origin(answering(*[page(TEXT)] * 20))
        began = time.monotonic()
        for _ in range(10):
            expect_same("body", own.ask("/mirror/", "POST", content=TEXT).body, TEXT)
        check(time.monotonic() - began < 4, "it waits")
        check(own.ask("/v1/requests", port=own.admin).status == 200, "the admin listener is gone")


@case("mirror: the record names the differences of the copy's answer, and metrics count them", nginx=NO)
def _(t: Trial) -> None:
    kind = b"application/json"
    t.origin(answering(page(b'{"a": 1, "b": 2}', kind=kind)))
    t.origin(answering(page(b'{"b": 2, "a": 3}', kind=kind)), "second")
    own = gateway(t)
    expect_status(own.ask("/mirror/x?y=z", "PUT", "X-One: 1", content=TEXT), 200)
    check(own.metric('httpware_mirror_differences_total{ware="mirror"} 1'), own.metrics())
    check(own.metric('httpware_mirror_requests_total{ware="mirror",result="answered"} 1'), "no metric")
    copy = t.setup.origins["second"].requests[-1]
    expect_same("copy", (copy.start, copy.body, copy.get("X-One")), (b"PUT /mirror/x?y=z HTTP/1.1", TEXT, "1"))
    check(b"the copy differs in /a" in own.ask("/v1/requests", port=own.admin).body, "no record")
