"""Content so large that it goes from socket to socket without passing through the process: it ends where it should."""

from __future__ import annotations

import hashlib
import os
import threading

from Rig.origins import OK, OriginConnection
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status

from .fields import answer
from .refused_requests import OTHER, head, post
from .upgrade import OTHER_ROLE, WEBSOCKET, switching

SIZE = 20 << 20
PIECE = os.urandom(1 << 20)


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def sending(size: int, behind: bytes = b"", length: int | None = None):
    """Sends content of `size` bytes, and perhaps bytes behind it."""

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (length or size))
        left = size
        while left and c.send(PIECE[:left]):
            left -= min(left, len(PIECE))
        c.send(behind)

    return script


@case("RFC 9112 §6.2: 20 MiB reach a reader that starts late, and the pipelined next response follows")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        sending(SIZE)(c)
        c.serve()
        c.send(OK)

    t.origin(script)
    client = t.client(timeout=15)
    client.send(head(start=b"GET /large HTTP/1.1") + head(start=b"GET /next HTTP/1.1"))
    pause(0.3, Why.SLOW)
    response = client.read_response()
    check(digest(response.body) == digest(PIECE * 20), "content differs", len(response.body))
    expect_same("next", client.read_response().body, b"ok")


@case("RFC 9112 §6.3: bytes behind 20 MiB of content are never a response")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        if c.index == 0:
            return sending(SIZE, behind=answer(content=b"smuggled"))(c)
        c.serve()
        c.send(OK)

    t.origin(script)
    client = t.client(timeout=15)
    client.send(head(start=b"GET /large HTTP/1.1"))
    response = client.read_response()
    check(digest(response.body) == digest(PIECE * 20), "content differs", len(response.body))
    client.send(head(start=b"GET /next HTTP/1.1"))
    expect_same("next", client.read_response().body, b"ok")


@case("RFC 9112 §8: 20 MiB cut off after 10 are not shown as complete")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        sending(SIZE // 2, length=SIZE)(c)
        c.close()

    t.origin(script)
    client = t.client(timeout=15)
    client.send(head())
    response = client.read_response()
    check(not response.whole, "shown as complete", len(response.body))
    check(response.body == (PIECE * 10)[: len(response.body)], "content differs")
    check(client.ends(), "stays open")


@case("RFC 9112 §8: a client that leaves in the middle of 20 MiB ends the connection upstream")
def _(t: Trial) -> None:
    ended: list[bool] = []

    def script(c: OriginConnection) -> None:
        sending(SIZE * 10)(c)
        ended.append(c.ends(10))

    t.origin(script)
    client = t.client(timeout=15)
    client.send(head())
    client.read_exactly(1 << 20)
    client.reset()
    check(eventually(lambda: ended and ended[0], 10), "the origin still sends")


@case("RFC 9112 §6.2: 20 MiB reach an origin that starts to read late", nginx=None)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        request = c.read_request(with_content=False)
        pause(0.3, Why.SLOW)
        c.read_content(request)
        c.origin.requests.append(request)
        c.send(OK)
        c.serve()
        c.send(OK)

    t.origin(script)
    client = t.client(timeout=15)

    def send() -> None:
        client.send(head(b"Content-Length: %d" % SIZE, start=b"POST /patient/ HTTP/1.1"))
        for _ in range(20):
            client.send(PIECE)
        client.send(head(start=b"GET /next HTTP/1.1"))

    threading.Thread(target=send, daemon=True).start()
    expect_same("body", client.read_response().body, b"ok")
    expect_same("next", client.read_response().body, b"ok")
    check(digest(t.main.requests[0].body) == digest(PIECE * 20), "content differs upstream")


@case("RFC 9112 §9.5: an early final response in the middle of 20 MiB reaches the client")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.read_request(with_content=False)
        c.read_exactly(2 << 20)
        c.send(answer(b"Connection: close", status=b"413 Content Too Large"))

    t.origin(script)
    client = t.client(timeout=15)
    data = PIECE * 8
    threading.Thread(target=lambda: client.send(post(b"Content-Length: %d" % SIZE, content=data)), daemon=True).start()
    expect_status(client.read_response(), 413)


@case("RFC 9112 §8: if a client leaves in mid-upload, the origin never receives a whole request", nginx=OTHER)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        request = c.read_request(with_content=False)
        c.read_content(request)
        c.origin.requests.append(request)

    t.origin(script)
    client = t.client(timeout=15)
    client.send(post(b"Content-Length: %d" % SIZE, content=PIECE * 3))
    client.close()
    check(eventually(lambda: t.main.requests, 10), "the connection upstream stays open")
    check(not t.main.requests[0].whole, "shown as complete")


@case("RFC 9110 §7.8: 20 MiB pass a tunnel in each direction at once, and the half-close follows", nginx=OTHER_ROLE)
def _(t: Trial) -> None:
    got: list[bytes] = []

    def then(c: OriginConnection) -> None:
        sender = threading.Thread(target=lambda: c.send(PIECE * 20), daemon=True)
        sender.start()
        got.append(digest(c.read_exactly(SIZE)))
        got.append(c.read_rest())
        sender.join()
        c.send(b"the end")
        c.end_sending()

    t.origin(switching(then))
    client = t.client(timeout=15)
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)

    def send() -> None:
        client.send(PIECE * 20)
        client.end_sending()

    threading.Thread(target=send, daemon=True).start()
    pause(0.3, Why.SLOW)
    check(digest(client.read_exactly(SIZE)) == digest(PIECE * 20), "content down differs")
    expect_same("rest", client.read_rest(), b"the end")
    check(got == [digest(PIECE * 20), b""], "content up differs")


@case("RFC 9112 §9.3: bytes that a client does not read wait in the sockets, not in the gateway, also when it read quickly before")
def _(t: Trial) -> None:
    sent = [0]

    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (256 << 20))
        while sent[0] < 256 << 20 and c.send(PIECE):
            sent[0] += len(PIECE)

    t.origin(script)
    before = t.gateway.status("VmRSS")
    clients = []
    for _ in range(3):
        sent[0] = 0
        client = t.client(timeout=15)
        clients.append(client)
        client.send(head(start=b"GET /large HTTP/1.1"))
        read = 0
        while read < 40 << 20:
            read += len(client.sock.recv(1 << 20))
        counts = [sent[0]]
        check(eventually(lambda counts=counts: counts.append(sent[0]) or len(counts) > 30 and counts[-1] == counts[-30], 10, 0.02), "the origin server goes on sending", counts[-1])
        # The system's buffers take tens of MiB: the process itself must not grow.
        check(t.gateway.status("VmRSS") - before < 8_000, f"{t.gateway.status('VmRSS') - before} KiB more for {(sent[0] - read) >> 20} MiB ahead")
    for client in clients:
        client.close()
