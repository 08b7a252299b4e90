"""Origin servers are untrusted too: bad responses become 502, and nothing of theirs reaches another request."""

from __future__ import annotations

import json
import threading
import time

from Rig.origins import OK, OriginConnection, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status, proxy_error

from .fields import answer
from .refused_requests import LENIENT, OTHER, head

EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"


def bad_gateway(name: str, response: bytes, *statuses: int, close: bool = False, nginx: str | None = None) -> None:
    """The response becomes a 502 with Proxy-Status; the next request gets its own answer."""
    for how in ("whole", "bytewise"):

        @case(f"{name} in a response is 502 [{how}]", nginx=nginx)
        def run(t: Trial, how: str = how) -> None:
            sent = [False]

            def script(c: OriginConnection) -> None:
                while True:
                    c.serve()
                    if sent[0]:
                        c.send(OK)
                        continue
                    sent[0] = True
                    c.feed(response, how == "bytewise")
                    if close:
                        return

            t.origin(script)
            client = t.client()
            # POST: a refused response is a response, so the request is not sent again.
            client.send(head(b"Content-Length: 0", start=b"POST / HTTP/1.1"))
            answer = client.read_response()
            expect_status(answer, *(statuses or (502,)))
            if t.setup.peer == "httpware":
                check(answer.has("Proxy-Status"), "no Proxy-Status:", answer)
                problem = json.loads(answer.body)
                expect_same("status in the problem", problem.get("status"), answer.status)
            expect_same("requests at the origin", len(t.main.requests), 1)
            client.send(head())
            expect_same("the next response", client.read_response().body, b"ok")
            expect_same("connections upstream", len(t.main.used), 2)


def lines(*fields: bytes, status: bytes = b"HTTP/1.1 200 OK", content: bytes = b"ok") -> bytes:
    return status + b"\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + content


LENGTH = b"Content-Length: 2"

for label, status in [
    ("two digits", b"HTTP/1.1 20 OK"), ("four digits", b"HTTP/1.1 2000 OK"), ("no digits", b"HTTP/1.1 abc OK"), ("no status", b"HTTP/1.1"),
    ("signed", b"HTTP/1.1 +20 OK"), ("negative", b"HTTP/1.1 -20 OK"), ("other protocol", b"HTTQ/1.1 200 OK"), ("lower case", b"http/1.1 200 OK"),
    ("ICY", b"ICY 200 OK"), ("two spaces", b"HTTP/1.1  200 OK"), ("tab", b"HTTP/1.1\t200 OK"), ("leading space", b" HTTP/1.1 200 OK"),
    ("version 2.0", b"HTTP/2.0 200 OK"), ("version 0.9", b"HTTP/0.9 200 OK"), ("version without minor", b"HTTP/1 200 OK"), ("status 000", b"HTTP/1.1 000 No"),
    ("status 099", b"HTTP/1.1 099 No"), ("NUL in the reason", b"HTTP/1.1 200 O\0K"), ("control in the reason", b"HTTP/1.1 200 O\1K"),
    ("bare CR in the reason", b"HTTP/1.1 200 O\rK"), ("hex status", b"HTTP/1.1 0x8 OK"), ("junk after the status", b"HTTP/1.1 200OK"), ("garbage", b"garbage"),
]:
    bad_gateway(f"RFC 9112 §4: an invalid status line ({label})", lines(LENGTH, status=status), nginx=OTHER)
bad_gateway("RFC 9112 §4: an empty line before the status line", b"\r\n" + OK, nginx=OTHER)
bad_gateway("RFC 9112 §2.2: a bare LF after the status line", b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok", nginx=LENIENT)
bad_gateway("RFC 9112 §2.2: a bare LF everywhere", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", nginx=LENIENT)
bad_gateway("RFC 9112 §2.2: a bare CR in a value", lines(LENGTH, b"X-A: b\rc"), nginx=LENIENT)
# RFC 9112 §5.1 lets a proxy remove this whitespace; refusing is what the project chose. Both are safe.
bad_gateway("RFC 9112 §5.1: a space before the colon", lines(b"X-A : b", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9112 §5.1: a space before the colon of Content-Length", lines(b"Content-Length : 2"), nginx=LENIENT)
bad_gateway("RFC 9112 §5.2: an obs-fold", lines(b"X-A: b", b" c", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9112 §2.2: a leading space on the first field line", lines(b" X-A: b", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9110 §5.1: an empty field name", lines(b": b", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9110 §5.1: a field name that is not a token", lines(b"X A: b", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9112 §5: a field line without a colon", lines(b"X-A", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9110 §5.5: NUL in a value", lines(b"X-A: b\0c", LENGTH), nginx=LENIENT)
bad_gateway("RFC 9110 §5.5: a control character in a value", lines(b"X-A: b\x1bc", LENGTH), nginx=LENIENT)

for label, value in [("plus", b"+2"), ("minus", b"-2"), ("hex", b"0x2"), ("empty", b""), ("word", b"two"), ("different list", b"2, 3"), ("2^64", b"18446744073709551616"),
                     ("2^63", b"9223372036854775808"), ("space inside", b"2 2"), ("fraction", b"2.0")]:
    bad_gateway(f"RFC 9112 §6.3: an invalid Content-Length ({label})", lines(b"Content-Length: " + value), nginx=OTHER)
bad_gateway("RFC 9112 §6.3: a Content-Length repeated with different values", lines(LENGTH, b"Content-Length: 3"), nginx=OTHER)
bad_gateway("RFC 9112 §6.3: Transfer-Encoding before Content-Length", lines(b"Transfer-Encoding: chunked", LENGTH, content=b"2\r\nok\r\n0\r\n\r\n"), nginx=OTHER)
bad_gateway("RFC 9112 §6.3: Content-Length before Transfer-Encoding", lines(LENGTH, b"Transfer-Encoding: chunked", content=b"2\r\nok\r\n0\r\n\r\n"), nginx=OTHER)
for label, value in [("gzip before chunked", b"gzip, chunked"), ("chunked twice", b"chunked, chunked"), ("chunked not last", b"chunked, gzip"), ("identity", b"identity"),
                     ("unknown", b"x-y"), ("empty", b""), ("parameter", b"chunked;a=b"), ("VT", b"\x0bchunked")]:
    bad_gateway(f"RFC 9112 §6.1: an invalid Transfer-Encoding ({label})", lines(b"Transfer-Encoding: " + value, content=b"2\r\nok\r\n0\r\n\r\n"), close=True, nginx=OTHER)
bad_gateway("RFC 9112 §6.1: chunked in two lines", lines(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", content=b"2\r\nok\r\n0\r\n\r\n"), nginx=OTHER)
bad_gateway("RFC 9112 §6.1: Transfer-Encoding from an HTTP/1.0 origin", lines(b"Transfer-Encoding: chunked", status=b"HTTP/1.0 200 OK", content=b"2\r\nok\r\n0\r\n\r\n"),
            close=True, nginx=OTHER)

bad_gateway("RFC 9110 §15.2.2: 101 without an Upgrade", b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", nginx=OTHER)
bad_gateway("RFC 9112 §8: a close in mid-head", b"HTTP/1.1 200 OK\r\nContent-Le", close=True)
bad_gateway("RFC 9112 §8: a close after one byte", b"H", close=True)
bad_gateway("a close after an interim response", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", close=True, nginx=OTHER)
bad_gateway("an invalid final head after a valid interim head", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + lines(b"X-A : b", LENGTH), nginx=OTHER)
bad_gateway("an invalid interim head", b"HTTP/1.1 103 Early Hints\r\nX-A : b\r\n\r\n" + OK, nginx=OTHER)
bad_gateway("a head with 10,000 field lines", lines(*[b"A:b"] * 10_000, LENGTH), nginx=OTHER)


@case("a response head of 1 MB is refused with 502")
def _(t: Trial) -> None:
    t.origin(answering(lines(b"X-A: " + b"a" * 1_000_000, LENGTH), OK))
    client = t.client()
    client.send(head())
    expect_status(client.read_response(), 502)
    expect_status(t.ask(head()), 200)


for label, raw in [("list", b"Content-Length: 2, 2"), ("lines", b"Content-Length: 2\r\nContent-Length: 2")]:

    @case(f"RFC 9110 §8.6: the same Content-Length twice in a response ({label}) is refused, or sent on once", nginx=OTHER)
    def _(t: Trial, raw: bytes = raw) -> None:
        t.origin(answering(b"HTTP/1.1 200 OK\r\n" + raw + b"\r\n\r\nok"))
        response = t.ask(head())
        expect_status(response, 200, 502)
        if response.status == 200:
            expect_same("response", (response.all("Content-Length"), response.body), (["2"], b"ok"))


for label, status, reason in [("empty reason", b"HTTP/1.1 200 ", 200), ("no space, no reason", b"HTTP/1.1 200", 200), ("obs-text in the reason", b"HTTP/1.1 200 \xe4", 200),
                              ("status 600", b"HTTP/1.1 600 X", 600), ("status 999", b"HTTP/1.1 999 X", 999), ("version 1.2", b"HTTP/1.2 200 OK", 200)]:

    @case(f"RFC 9112 §4: an unusual status line ({label}) is passed on, or refused", nginx=OTHER)
    def _(t: Trial, status: bytes = status, reason: int = reason) -> None:
        t.origin(answering(lines(LENGTH, status=status)))
        expect_status(t.ask(head()), reason, 502)


# --- Chunks that are wrong after the head went out: the response is cut, never completed

for label, chunks in [("signed size", b"+2\r\nok\r\n0\r\n\r\n"), ("size with 0x", b"0x2\r\nok\r\n0\r\n\r\n"), ("no size", b"\r\nok\r\n0\r\n\r\n"),
                      ("size of 2^64", b"10000000000000000\r\nok\r\n0\r\n\r\n"), ("size of 2^64 + 2", b"10000000000000002\r\nok\r\n0\r\n\r\n"),
                      ("space before the size", b" 2\r\nok\r\n0\r\n\r\n"), ("bare LF after the size", b"2\nok\r\n0\r\n\r\n"), ("bare LF after the data", b"2\r\nok\n0\r\n\r\n"),
                      ("data too long", b"2\r\nokay\r\n0\r\n\r\n"), ("data too short", b"3\r\nok\r\n0\r\n\r\n"), ("bare LF at the end", b"2\r\nok\r\n0\r\n\n\r\n"),
                      ("bad trailer", b"2\r\nok\r\n0\r\nX-A : b\r\n\r\n"), ("trailer with obs-fold", b"2\r\nok\r\n0\r\nX-A: b\r\n c\r\n\r\n"),
                      ("NUL in an extension", b"2;\0\r\nok\r\n0\r\n\r\n")]:
    for how in ("whole", "bytewise"):

        @case(f"RFC 9112 §7.1: an invalid chunked response ({label}) is 502, or cut off [{how}]", nginx=LENIENT)
        def _(t: Trial, chunks: bytes = chunks, how: str = how) -> None:
            t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), c.feed(chunks, how == "bytewise"), c.read_rest()))
            client = t.client()
            client.send(head())
            response = client.read_response()
            check(response.status == 502 or not response.whole, "shown as complete:", response)
            check(eventually(lambda: t.main.used[0].at_end), "the connection upstream stays open")


# --- Bytes after the end of a response

for label, first in [("fixed length", OK), ("chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
                     ("no content", b"HTTP/1.1 204 No Content\r\n\r\n"), ("not modified", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
                     ("zero length", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]:
    for when in ("in the same write", "later"):

        @case(f"RFC 9112 §9.2: bytes after a response ({label}) {when} are never the next response")
        def _(t: Trial, first: bytes = first, when: str = when) -> None:
            def script(c: OriginConnection) -> None:
                c.serve()
                if c.index == 0:
                    if when == "later":
                        c.send(first)
                        pause(0.05, Why.SLOW)
                        c.send(EVIL)
                    else:
                        c.send(first + EVIL)
                    c.serve()  # the next request must not come here
                    c.send(EVIL)
                while True:
                    c.send(OK)
                    c.serve()

            t.origin(script)
            client = t.client()
            client.send(head())
            check(b"EVIL" not in client.read_response().body)
            pause(0.1 if when == "later" else 0, Why.SLOW)
            client.send(head())
            expect_same("the next response", client.read_response().body, b"ok")
            check(b"EVIL" not in bytes(client.received), "it reached the client")


@case("RFC 9112 §9.2: content after a HEAD response is never the next response")
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EVIL) + EVIL if c.index == 0 else OK), c.serve(), c.send(OK)))
    client = t.client()
    client.send(head(start=b"HEAD / HTTP/1.1"))
    client.read_response("HEAD")
    client.send(head())
    expect_same("the next response", client.read_response().body, b"ok")


@case("RFC 9112 §9.2: a next response that is sent too early does not answer the second pipelined request")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(OK + EVIL if c.index == 0 else OK)
        while True:
            c.serve()
            c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(head() + head() + head())
    expect_same("bodies", [client.read_response().body for _ in range(3)], [b"ok"] * 3)


@case("RFC 9112 §9.2: a response without a request, on an idle connection, ends that connection")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(OK)
        if c.index == 0:
            pause(0.1, Why.SLOW)
            c.send(EVIL)
            c.read_rest()
            return
        while True:
            c.serve()
            c.send(OK)

    t.origin(script)
    client = t.client()
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")
    check(eventually(lambda: t.main.used[0].at_end), "the connection stays in the pool")
    client.send(head())
    expect_same("body", client.read_response().body, b"ok")


@case("RFC 9112 §9.2: bytes before any request was sent are not its response")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        if c.index == 0:
            c.send(EVIL)
        c.serve()
        c.send(OK)
        c.serve()

    t.origin(script)
    client = t.client()
    client.send(head())
    response = client.read_response()
    # A fresh connection cannot tell a very early response from a fast one: 200 with EVIL only if it came after the request began.
    expect_status(response, 200, 502)


# --- Floods and dribbles


@case("RFC 9110 §15.2: a flood of interim responses ends, with the final response or 502", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), [c.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100) for _ in range(500)], c.send(OK), c.read_rest()))
    client = t.client(timeout=10)
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 200, 502)
    expect_status(t.ask(head(start=b"GET /mock HTTP/1.1")), 200)


@case("RFC 9110 §15.2: endless interim responses hold a request for a limited time", nginx=OTHER)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline and c.send(b"HTTP/1.1 103 Early Hints\r\n\r\n"):
            pause(0.01, Why.SLOW)

    t.origin(script)
    client = t.client(timeout=6)
    client.send(head(start=b"GET /hasty/ HTTP/1.1"))  # its response timeout is one second; an interim response is not a final one
    expect_status(client.read_response(), 502, 504)


@case("a response head that dribbles without end times out", nginx=OTHER)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nX-A: ")
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline and c.send(b"a"):
            pause(0.05, Why.SLOW)

    t.origin(script)
    client = t.client(timeout=6)
    client.send(head(start=b"GET /hasty/ HTTP/1.1"))
    expect_status(client.read_response(), 502, 504)


@case("two concurrent clients each receive their own response")
def _(t: Trial) -> None:
    t.origin(lambda c: [c.send(answer(b"X-Target: " + c.serve().target.encode())) for _ in iter(int, 1)])
    wrong: list[str] = []

    def run(name: int) -> None:
        client = t.client()
        for index in range(100):
            target = f"/{name}/{index}"
            client.send(head(start=b"GET " + target.encode() + b" HTTP/1.1"))
            got = client.read_response().get("X-Target")
            if got != target:
                wrong.append(f"{got} for {target}")

    threads = [threading.Thread(target=run, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, wrong[:5])


__all__ = ["proxy_error"]
