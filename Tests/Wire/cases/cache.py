"""Stored responses over the wire, in memory and on disk: what is cut off, slow, huge or asked for by many at once. RFC 9111."""

from __future__ import annotations

import itertools
import threading
import time

from Rig.origins import OriginConnection, Script, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status

from .refused_requests import head

COUNT = itertools.count(1)
NO_CACHE = "it does not cache here"


PLACES = {"memory": "/cached", "disk": "/kept"}


def both(name: str):
    """Registers a case for each store."""

    def register(body) -> None:
        for store in PLACES:

            @case(f"{name} ({store})", nginx=NO_CACHE)
            def _(t: Trial, store: str = store) -> None:
                t.store = store
                if store == "disk":
                    open_disk(t)
                body(t)

    return register


def open_disk(t: Trial) -> None:
    """A disk's file is opened by the first request: until then nothing is stored."""
    t.origin(answering(fresh(b"open")))
    check(eventually(lambda: status(t.ask(get("/kept/open"))).startswith("httpware; hit"), 5), "the disk is not opened")


def path(t: Trial) -> str:
    """A path that no other case requests: stored responses outlive a case."""
    return f"{PLACES[t.store]}/{next(COUNT)}-{time.monotonic_ns()}"


def wait_until_stored(t: Trial, where: str) -> None:
    """A response on its way to a disk is found a little later, without a request to the origin."""
    # A disk that is busy with what others wrote takes its time.
    check(eventually(lambda: t.ask(get(where, b"Cache-Control: only-if-cached, max-stale")).status != 504, 60), "it is not stored")


def get(where: str, *fields: bytes, method: str = "GET") -> bytes:
    return head(*fields, start=f"{method} {where} HTTP/1.1".encode())


def fresh(body: bytes, *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Cache-Control: max-age=600", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def status(response) -> str:
    return response.get("Cache-Status") or ""


@both("RFC 9111 §4: a stored response answers the next request, on another connection too")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"one", b"ETag: \"a\"", b"X-A: 1"), fresh(b"two")))
    where = path(t)
    expect_same("first", t.ask(get(where)).body, b"one")
    wait_until_stored(t, where)
    for _ in range(3):
        again = t.ask(get(where))
        expect_same("again", (again.body, again.get("X-A")), (b"one", "1"))
        check(int(again.get("Age")) <= 5, again)
        check(status(again).startswith("httpware; hit; ttl="), status(again))
    expect_same("requests upstream", len(origin.requests), 1)


@both("RFC 9111 §4: HEAD is answered from the stored response to GET, with its length and without content")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"12345")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    response = t.ask(get(where, method="HEAD"))
    expect_same("length and body", (response.get("Content-Length"), response.body), ("5", b""))
    expect_same("requests upstream", len(origin.requests), 1)


@both("RFC 9111 §4.3.2: a conditional client is answered 304 from the store, without content")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"12345", b"ETag: \"a\"")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    client = t.client()
    for _ in range(2):
        client.send(get(where, b"If-None-Match: \"a\""))
        response = client.read_response("GET")
        expect_same("status, tag, body", (response.status, response.get("ETag"), response.body), (304, '"a"', b""))
    expect_same("requests upstream", len(origin.requests), 1)


@both("RFC 9111 §4, RFC 9110 §14.2: large content from the store is unchanged, whole, in parts, and for a waiting client")
def _(t: Trial) -> None:
    body = b"".join(b"%07d\n" % number for number in range(100_000))
    origin = t.origin(answering(fresh(body, b"ETag: \"a\"")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    client = t.client()
    client.send(get(where) + get(where) + get(where, b"Range: bytes=70000-270000") + get(where, method="HEAD") + get(where))
    for part in (body, body, body[70000:270001], b"", body):
        response = client.read_response("HEAD" if not part else "GET")
        check(response.body == part, f"{len(response.body)} bytes, {response.status}, not the {len(part)} that were stored")
    several = t.ask(get(where, b"Range: bytes=8-15, 799992-799999"))
    check(several.status in (200, 206), f"{several.status}")  # from a disk it is answered whole
    check(b"0000001\n" in several.body and b"0099999\n" in several.body, "both parts are there")
    expect_same("requests upstream", len(origin.requests), 1)


for name, cut in {
    "content shorter than its length": b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 10\r\n\r\n12345",
    "chunks without a last chunk": b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    "a broken chunk": b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\nx",
}.items():

    @both(f"RFC 9111 §3.3: an incomplete response is never stored as complete: {name}")
    def _(t: Trial, cut: bytes = cut) -> None:
        origin = t.origin(answering(cut, close=True))
        where = path(t)
        client = t.client()
        client.send(get(where))
        client.read_until(b"12345")
        check(client.ends(3), "the client's connection stays open")
        origin.begin(answering(fresh(b"whole")))
        expect_same("next", t.ask(get(where)).body, b"whole")
        wait_until_stored(t, where)
        expect_same("after that", t.ask(get(where)).body, b"whole")
        expect_same("requests upstream", len(origin.requests), 1)


@both("RFC 9111 §3: 1xx are passed on and never stored")
def _(t: Trial) -> None:
    t.origin(answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + fresh(b"one")))
    where = path(t)
    client = t.client()
    client.send(get(where))
    check(b"103" in client.read_until(b"\r\n\r\n"), "no 103")
    expect_same("final", client.read_response("GET").body, b"one")
    wait_until_stored(t, where)
    client.send(get(where))
    again = client.read_response("GET")
    expect_same("again", (again.status, again.get("Link")), (200, None))


@both("RFC 9111 §3.1: fields for one hop are not stored")
def _(t: Trial) -> None:
    t.origin(answering(fresh(b"one", b"Connection: X-Hop", b"X-Hop: 1", b"Keep-Alive: timeout=5", b"X-End: 1")))
    where = path(t)
    for turn in range(2):
        response = t.ask(get(where))
        if turn == 0:
            wait_until_stored(t, where)
        expect_same("fields", (response.get("X-Hop"), response.get("Keep-Alive"), response.get("X-End")), (None, None, "1"))


@both("RFC 9111 §4.4: an unsafe request invalidates the stored response")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"one"), fresh(b"posted"), fresh(b"two")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    t.ask(get(where, b"Content-Length: 0", method="POST"))
    expect_same("next", t.ask(get(where)).body, b"two")
    expect_same("requests upstream", len(origin.requests), 3)


@both("RFC 9110 §14: ranges are answered from the store")
def _(t: Trial) -> None:
    t.origin(answering(fresh(bytes(range(48, 58)) * 20, b"ETag: \"a\"")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    part = t.ask(get(where, b"Range: bytes=2-4"))
    expect_same("part", (part.status, part.get("Content-Range"), part.body), (206, "bytes 2-4/200", b"234"))
    near = t.ask(get(where, b"Range: bytes=0-0,9-9"))
    expect_same("near", (near.status, near.get("Content-Range"), near.body), (206, "bytes 0-9/200", b"0123456789"))
    parts = t.ask(get(where, b"Range: bytes=0-0,199-199"))
    # Several parts at once are made of what is at hand. RFC 9110 §14.2: "A server MAY ignore the Range header field."
    expect_status(parts, 206 if t.store == "memory" else 200)
    check(t.store == "disk" or parts.body.count(b"Content-Range: bytes ") == 2 and parts.body.endswith(b"--\r\n"), parts)
    expect_status(t.ask(get(where, b"Range: bytes=200-")), 416)


@both("an endless response is passed on, and its buffer is bounded")
def _(t: Trial) -> None:
    over = threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + bytes(65536) + b"\r\n"
        while not over.is_set():
            c.send(piece)

    t.at_end(over.set)
    t.origin(script)
    client = t.client()
    client.send(get(path(t)))
    before = t.gateway.status("VmRSS")
    taken = 0
    while taken < 64 << 20:
        piece = client.sock.recv(1 << 20)
        check(piece, "the connection ended")
        taken += len(piece)
    grown = t.gateway.status("VmRSS") - before
    check(grown < 16_000, f"{grown} KiB more for 64 MiB of which 1 MiB may be stored")


def slow(body: bytes, begins: threading.Event, goes_on: threading.Event) -> Script:
    """Sends the head and the first byte at once, and the rest when it is told to."""

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            begins.set()
            c.send(fresh(body)[: -len(body) + 1])
            goes_on.wait(10)
            c.send(body[1:])

    return script


@both("RFC 9111 §4: concurrent requests for one slow response cause one request upstream, and each client receives it")
def _(t: Trial) -> None:
    body = b"0123456789" * 5000
    begins, goes_on = threading.Event(), threading.Event()
    origin = t.origin(slow(body, begins, goes_on))
    where = path(t)
    clients = [t.client() for _ in range(100)]
    for client in clients:
        client.send(get(where))
    check(begins.wait(3), "no request arrived")
    for client in clients:  # what has come so far goes to all
        client.read_until(b"\r\n\r\n0")
    goes_on.set()
    for client in clients:
        client.read_until(body[-20:])
    expect_same("requests upstream", len(origin.requests), 1)
    wait_until_stored(t, where)
    check(status(t.ask(get(where))).startswith("httpware; hit"), "it was not stored")


@both("RFC 9111 §4: a client that leaves, or does not read, does not delay other clients of the same response")
def _(t: Trial) -> None:
    body = b"0123456789" * 80_000
    for leaves in (True, False):
        begins, goes_on = threading.Event(), threading.Event()
        origin = t.origin(slow(body, begins, goes_on))
        where = path(t)
        first = t.client()
        first.send(get(where))
        check(begins.wait(3), "no request arrived")
        second = t.client()
        second.send(get(where))
        second.read_until(b"\r\n\r\n0")
        if leaves:
            first.close()
        goes_on.set()
        second.read_until(body[-200:])
        expect_same("requests upstream", len(origin.requests), 1)


@both("if the origin closes on the leading request, one of the waiting requests is sent instead")
def _(t: Trial) -> None:
    began, goes_on = threading.Event(), threading.Event()
    served = [0]

    def script(c: OriginConnection) -> None:
        c.serve()
        served[0] += 1
        began.set()
        goes_on.wait(10)
        if served[0] == 1:
            c.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\ndown")
            return
        c.send(fresh(b"up"))

    origin = t.origin(script)
    where = path(t)
    first = t.client()
    first.send(get(where))
    check(began.wait(3), "no request arrived")
    others = [t.client() for _ in range(10)]
    for client in others:
        client.send(get(where))
    pause(0.2, Why.BEFORE)  # so that they wait; one that comes later is answered from the store
    goes_on.set()
    expect_status(first.read_response("GET"), 503)
    for client in others:
        expect_same("another's", client.read_response("GET").body, b"up")
    expect_same("requests upstream", len(origin.requests), 2)


@both("RFC 5861 §3: a stale response is sent at once, and validated in the background")
def _(t: Trial) -> None:
    stale = fresh(b"old", b"ETag: \"a\"").replace(b"max-age=600", b"max-age=1, stale-while-revalidate=60")
    origin = t.origin(answering(stale, fresh(b"new")))
    where = path(t)
    t.ask(get(where))
    wait_until_stored(t, where)
    check(eventually(lambda: t.ask(get(where)).body == b"new", 6), "it was never validated")
    # A validated response is found on a disk a little later; until then it is validated again.
    check(len(origin.requests) == 2 or t.store == "disk" and len(origin.requests) > 2, f"{len(origin.requests)} requests upstream")
    expect_same("asked about", origin.requests[1].get("If-None-Match"), '"a"')


@both("RFC 9111 §3.5: a response to one user is never sent to another")
def _(t: Trial) -> None:
    served = itertools.count()

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            c.send(fresh(b"%d" % next(served)))

    t.origin(script)
    where = path(t)
    bodies = [t.ask(get(where, b"Authorization: Bearer %d" % number)).body for number in (1, 2, 1)]
    expect_same("bodies", len(set(bodies)), 3)


def missing(body: bytes = b"none") -> bytes:
    return fresh(body).replace(b"200 OK", b"404 Not Found")


def asked(where: str, host: bytes = b"a.test", *fields: bytes) -> bytes:
    return head(*fields, start=f"GET {where} HTTP/1.1".encode(), host=b"Host: " + host + b"\r\n")


@case("RFC 3986 §6.2.2: a miss goes upstream in the normal form, so that a strict origin's 404 for another form is not stored under it", nginx=NO_CACHE)
def _(t: Trial) -> None:
    def strict(c: OriginConnection) -> None:
        while True:
            request = c.serve()
            normal = "%61" not in request.target and request.get("Host") == "a.test"
            c.send(fresh(b"page") if normal else missing())

    origin = t.origin(strict)
    name = f"/preservingCached/p-{time.monotonic_ns()}"
    first = t.ask(asked(name.replace("/p-", "/%70-").replace("Cached", "C%61ched") + "?q=%62&r=1", b"A.Test.:80"))
    expect_same("first", (first.status, first.body), (200, b"page"))
    expect_same("upstream", (origin.requests[0].target, origin.requests[0].all("Host")), (f"{name}?q=%62&r=1", ["a.test"]))
    again = t.ask(asked(name + "?q=%62&r=1"))
    check(status(again).startswith("httpware; hit") and again.body == b"page", again)
    expect_same("requests upstream", len(origin.requests), 1)


@case("RFC 9110 §7.7: a path that is part of the key as received goes upstream as received", nginx=NO_CACHE)
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"one"), fresh(b"two")))
    name = f"/signed/%70-{time.monotonic_ns()}%2f"
    for _ in range(2):
        expect_same("encoded", t.ask(asked(name, b"A.Test")).body, b"one")
    expect_same("plain", t.ask(asked(name.replace("%70", "p"))).body, b"two")
    upstream = [(request.target, request.get("Host")) for request in origin.requests]
    expect_same("upstream", upstream, [(name, "a.test"), (name.replace("%70", "p"), "a.test")])


@case("RFC 9110 §7.7: without a store the target and the Host go upstream as received", nginx=NO_CACHE)
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"one")))
    name = f"/coalesced/%70-{time.monotonic_ns()}%2f"
    t.ask(asked(name, b"A.Test"))
    expect_same("upstream", (origin.requests[0].target, origin.requests[0].get("Host")), (name, "A.Test"))


@both("RFC 9111 §4.1: Vary distinguishes values that are not UTF-8")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"u", b"Vary: X-Name"), fresh(b"a", b"Vary: X-Name")))
    where = path(t)
    for value, body in ((b"M\xfcller", b"u"), (b"M\xe4ller", b"a")):
        name = b"X-Name: " + value
        expect_same("first", t.ask(get(where, name)).body, body)
        stored = get(where, name, b"Cache-Control: only-if-cached")
        check(eventually(lambda: t.ask(stored).status == 200, 20), "it is not stored")
    expect_same("requests upstream", len(origin.requests), 2)


@both("RFC 9111 §7.3: a response that sets a cookie is stored without it")
def _(t: Trial) -> None:
    origin = t.origin(answering(fresh(b"one", b"Set-Cookie: a=b")))
    where = path(t)
    expect_same("first", t.ask(get(where)).get("Set-Cookie"), "a=b")
    wait_until_stored(t, where)
    again = t.ask(get(where))
    expect_same("again", (again.body, again.get("Set-Cookie")), (b"one", None))
    expect_same("requests upstream", len(origin.requests), 1)


def part(first: int, body: bytes, length: int, *fields: bytes) -> bytes:
    """A 206 of those bytes."""
    line = b"Content-Range: bytes %d-%d/%d" % (first, first + len(body) - 1, length)
    return fresh(body, line, *fields).replace(b"200 OK", b"206 Partial Content")


@both("RFC 9111 §3.4: an incomplete stored response is completed by a request for the rest, in chunks too")
def _(t: Trial) -> None:
    body = b"".join(b"%07d\n" % number for number in range(25_000))
    tag = b"ETag: \"a\""
    for chunked in (False, True):
        rest = part(100_000, body[100_000:], len(body), tag)
        if chunked:
            lines, _, content = rest.partition(b"\r\n\r\n")
            lines = lines.replace(b"Content-Length: %d" % len(content), b"Transfer-Encoding: chunked")
            rest = lines + b"\r\n\r\n%x\r\n" % len(content) + content + b"\r\n0\r\n\r\n"
        origin = t.origin(answering(part(0, body[:100_000], len(body), tag), rest))
        where = path(t)
        expect_status(t.ask(get(where, b"Range: bytes=0-99999")), 206)
        ranged = get(where, b"Range: bytes=5-6", b"Cache-Control: only-if-cached")
        check(eventually(lambda: t.ask(ranged).status == 206, 20), "the part is not stored")
        whole = t.ask(get(where))
        expect_same("whole", (whole.status, whole.get("Content-Length"), whole.body == body), (200, str(len(body)), True))
        upstream = origin.requests[1]
        expect_same("asked for", (upstream.get("Range"), upstream.get("If-Range")), ("bytes=100000-", '"a"'))
        wait_until_stored(t, where)
        again = t.ask(get(where))
        check(status(again).startswith("httpware; hit") and again.body == body, f"{len(again.body)} bytes, {status(again)}")
        expect_same("requests upstream", len(origin.requests), 2)


@both("RFC 9111 §3.4: parts without matching strong validators are not combined")
def _(t: Trial) -> None:
    origin = t.origin(answering(part(0, b"01234", 10), part(5, b"vwxyz", 10), fresh(b"qrstuvwxyz")))
    where = path(t)
    expect_status(t.ask(get(where, b"Range: bytes=0-4")), 206)
    ranged = get(where, b"Range: bytes=0-1", b"Cache-Control: only-if-cached")
    check(eventually(lambda: t.ask(ranged).status == 206, 20), "the part is not stored")
    whole = t.ask(get(where))
    expect_same("whole", (whole.status, whole.body), (200, b"qrstuvwxyz"))
    expect_same("asked for", [request.get("Range") for request in origin.requests], ["bytes=0-4", "bytes=5-", None])


@both("RFC 9111 §3.3: a rest that is cut off leaves the response incomplete")
def _(t: Trial) -> None:
    tag = b"ETag: \"a\""
    served = itertools.count()

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            turn = next(served)
            if turn == 1:
                c.send(part(5, b"56789", 10, tag)[:-2])
                return c.close()
            c.send(part(0, b"01234", 10, tag) if turn == 0 else fresh(b"0123456789", tag))

    t.origin(script)
    where = path(t)
    expect_status(t.ask(get(where, b"Range: bytes=0-4")), 206)
    ranged = get(where, b"Range: bytes=0-1", b"Cache-Control: only-if-cached")
    check(eventually(lambda: t.ask(ranged).status == 206, 20), "the part is not stored")
    client = t.client()
    client.send(get(where))
    client.read_until(b"01234567")
    check(client.ends(3), "the client's connection stays open")
    expect_status(t.ask(get(where, b"Cache-Control: only-if-cached")), 504)
