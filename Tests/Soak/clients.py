#!/usr/bin/env python3
"""The clients of the soak, in a process of their own: each checks that what it gets belongs to what it asked for.

    clients.py GROUP STAND     one of GROUPS; STAND is a JSON object with ports, certificate and seed

Prints a JSON line a second with the durations of what succeeded, and a line for each failure, until its input ends.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

import ssl  # noqa: E402

from Rig.waits import Why, pause  # noqa: E402
from Rig.wire import Malformed, Message, Wire, WireClosed, WireTimeout  # noqa: E402

from Soak import content  # noqa: E402

PATIENCE = 20.0
USERS = ("anna", "ben", "cleo", "dora")


class Failure(Exception):
    """An exchange that went wrong. Its text begins with one of the words that `plan.EXPLAINS` knows, or with `wrong`, which no fault explains."""


class Report:
    """Collects the outcomes of all threads."""

    def __init__(self):
        self.lock, self.durations, self.counts = threading.Lock(), {}, {}
        self.over = threading.Event()

    def done(self, kind: str, began: float) -> None:
        took = round((time.time() - began) * 1000, 2)
        with self.lock:
            self.durations.setdefault(kind, []).append(took)

    def count(self, name: str, more: int = 1) -> None:
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + more

    def failed(self, kind: str, began: float, what: object, request: str, response: object = None) -> None:
        line = {"failed": kind, "began": began, "ended": time.time(), "what": str(what)[:600], "request": request[:600], "response": repr(response)[:900] if response else ""}
        with self.lock:
            print(json.dumps(line), flush=True)

    def tell(self) -> None:
        with self.lock:
            line = {"second": time.time(), "durations": self.durations, "counts": self.counts}
            self.durations, self.counts = {}, {}
            print(json.dumps(line), flush=True)


class Place:
    """The gateway as a client sees it."""

    def __init__(self, text: str):
        told = json.loads(text)
        self.ports, self.token, self.seed = told["ports"], told["token"], told["seed"]
        self.context = ssl.create_default_context(cafile=told["ca"])
        self.http1 = ssl.create_default_context(cafile=told["ca"])
        self.context.set_alpn_protocols(["h2"])
        self.report, self.numbers = Report(), itertools.count(1)
        # The process of the clients is part of every identifier.
        self.mark = f"{os.getpid():x}"

    def wire(self, port: str = "web", context: ssl.SSLContext | None = None) -> Wire:
        sock = socket.create_connection(("127.0.0.1", self.ports[port]), PATIENCE)
        if context:
            sock = context.wrap_socket(sock, server_hostname="localhost")
        return Wire(sock, PATIENCE)

    def identifier(self) -> str:
        return f"i{self.mark}x{next(self.numbers):x}x"


def outcome(error: Exception) -> str:
    if isinstance(error, (WireClosed, ConnectionError)):
        return "closed"
    if isinstance(error, (WireTimeout, TimeoutError)):
        return "late"
    return "wrong bytes" if isinstance(error, Malformed) else "broken"


def expect(is_so: object, what: str) -> None:
    if not is_so:
        raise Failure(f"wrong {what}")


def belongs(body: bytes, **expected: object) -> dict:
    """The identity in content, which must be whole and as expected."""
    found = content.read(body)
    expect(found is not None, f"content: {len(body)} bytes that do not follow from their first line {body[:150]!r}")
    for name, value in expected.items():
        expect(found.get(name) == value, f"{name}: {found.get(name)!r} in place of {value!r}")
    return found


class Client:
    """One client: exchanges on one connection, which it makes again every `lives` exchanges."""

    kind, think, lives, port = "get", 0.04, 60, "web"

    def __init__(self, place: Place, index: int):
        self.place, self.report, self.index = place, place.report, index
        self.random = random.Random(f"{place.seed} {type(self).__name__} {index}")
        self.wire: Wire | None = None
        self.left, self.user = 0, USERS[index % len(USERS)]
        self.request, self.response = "", None
        self.label = self.kind

    def connected(self) -> Wire:
        if self.wire is None:
            self.wire, self.left = self.place.wire(self.port, self.context()), self.random.randrange(1, self.lives * 2)
        return self.wire

    def context(self) -> ssl.SSLContext | None:
        return self.place.http1 if self.port == "tls" else None

    def close(self) -> None:
        if self.wire:
            self.wire.close()
        self.wire = None

    def run(self) -> None:
        pause(self.random.random(), Why.SLOW)
        while not self.report.over.is_set():
            self.label, self.request, self.response = self.kind, "", None
            began = time.time()
            try:
                self.exchange(began)
                self.report.done(self.label, began)
            except Failure as problem:
                self.report.failed(self.label, began, problem, self.request, self.response)
                self.close()
            except (WireClosed, WireTimeout, Malformed, OSError) as error:
                self.report.failed(self.label, began, f"{outcome(error)}: {type(error).__name__} {error}", self.request, self.response)
                self.close()
            if self.report.over.wait(self.think * 2 * self.random.random()):
                break
        self.close()

    def send(self, method: str, path: str, *, body: bytes = b"", fields: str = "", chunked: bool = False) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: soak.test\r\nX-User: {self.user}\r\n{fields}"
        head += "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {len(body)}\r\n" if body else ""
        self.request = head
        data = body
        if chunked:
            step = max(1, len(body) // 3)
            data = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[at : at + step] for at in range(0, len(body), step))) + b"0\r\n\r\n"
        self.connected().send(head.encode() + b"\r\n" + data)

    def receive(self, method: str = "GET", statuses: tuple[int, ...] = (200,)) -> Message:
        response = self.response = self.connected().read_response(method)
        self.left -= 1
        if "close" in response.options() or self.left <= 0:
            self.close()
        elif self.wire:
            self.wire.received.clear()
        if response.status not in statuses:
            raise Failure(f"status {response.status} {response.get('Proxy-Status') or ''}")
        if not response.whole:
            raise Failure(f"cut off behind {len(response.body)} bytes")
        return response

    def exchange(self, began: float) -> None:
        identifier, length = self.place.identifier(), int(self.random.paretovariate(0.7) * 100) % 150_000
        path = f"/api/{length}"
        fields = self.random.choice(["", "", "X-Service: h2\r\n", "X-Service: named\r\n"])
        self.label = {"X-Service: h2\r\n": "h2 origin", "X-Service: named\r\n": "named"}.get(fields, self.kind)
        self.send("GET", f"{path}?id={identifier}", fields=fields)
        found = belongs(self.receive().body, id=identifier, user=self.user, path=path, method="GET", authorization="")
        allowed = {"h2 origin": ("control",), "named": ("named 0", "named 1")}.get(self.label, ("one", "two"))
        expect(found["origin"] in allowed, f"origin server: {found['origin']}")


class TlsClient(Client):
    kind, port, lives = "tls", "tls", 15


class Uploader(Client):
    """Uploads with PUT, which may be sent again, and with POST, which must be sent once."""

    kind, think, lives = "put", 0.2, 20

    def exchange(self, began: float) -> None:
        identifier, method = self.place.identifier(), self.random.choice(["PUT", "POST"])
        self.label = method.lower()
        body = self.random.randbytes(int(self.random.paretovariate(0.6) * 50) % 400_000)
        fields = "Expect: 100-continue\r\n" if self.random.random() < 0.2 else ""
        self.send(method, f"/upload?id={identifier}", body=body, fields=fields, chunked=self.random.random() < 0.5)
        belongs(self.receive(method).body, id=identifier, user=self.user, method=method, received=len(body), sha256=hashlib.sha256(body).hexdigest())


class SlowUploader(Uploader):
    """A POST whose content comes in pieces over a second."""

    think = 0.5

    def exchange(self, began: float) -> None:
        identifier, self.label, body = self.place.identifier(), "post", self.random.randbytes(50_000)
        self.request = head = f"POST /upload?id={identifier} HTTP/1.1\r\nHost: soak.test\r\nX-User: {self.user}\r\nContent-Length: {len(body)}\r\n"
        wire = self.connected()
        wire.send(head.encode() + b"\r\n")
        for at in range(0, len(body), 5000):
            if not wire.send(body[at : at + 5000]) or wire.is_readable(0.1):
                break
        belongs(self.receive("POST").body, id=identifier, user=self.user, method="POST", received=len(body), sha256=hashlib.sha256(body).hexdigest())


class CacheClient(Client):
    kind, think = "cache", 0.04

    def exchange(self, began: float) -> None:
        store = self.random.choice(["mem", "disk", "shared", "mem", "disk", "shared", "mine"])
        self.label = "mine" if store == "mine" else "cache"
        # Beyond the room of a store, so that entries are removed; a few that everybody asks for at once.
        number = self.random.randrange(4) if self.random.random() < 0.7 else self.random.randrange(400)
        path, language, part = f"/{store}/{number}", self.random.choice(["de", "de", "de", "en", "fr"]), ""
        if store != "mine" and self.random.random() < 0.1:
            first = self.random.randrange(200)
            part = f"Range: bytes={first}-{first + 50}\r\n"
        self.send("GET", path, fields=f"Accept-Language: {language}\r\n{part}")
        response = self.receive(statuses=(200, 206) if part else (200,))
        version = int(response.get("X-Version") or 0)
        whole = content.page(path, language, self.user if store == "mine" else "", version)
        expect(response.get("ETag") == content.entity_tag(whole), f"entity tag {response.get('ETag')} for version {version}, {language}, {self.user}")
        expected = whole[first : first + 51] if response.status == 206 else whole
        expect(response.body == expected, f"content: {response.body[:200]!r} in place of {expected[:200]!r}")
        # A version was made at the latest when the next one began. Ages are counted in whole seconds.
        too_old = began - (content.VERSION * (version + 1) + content.FRESH + 1.5)
        expect(too_old <= 0, f"age: {too_old:.1f} s older than any fresh response; {response.get('Cache-Status')} Age {response.get('Age')}")
        result = (response.get("Cache-Status") or "").partition(";")[2].strip().partition(";")[0].split("=")[0]
        self.report.count(f"cache {store} {result}")


class TokenClient(Client):
    kind, think = "own", 0.15

    def exchange(self, began: float) -> None:
        self.label = self.random.choice(["own", "rotating"])
        identifier = self.place.identifier()
        self.send("GET", f"/{self.label}/x?id={identifier}")
        belongs(self.receive().body, id=identifier, user=self.user, owner=self.label)


class LimitedClient(Client):
    """Asks for three times as much as it may have, ten a second and ten at once."""

    kind, think = "limit", 0.035

    def __init__(self, place: Place, index: int):
        super().__init__(place, index)
        self.user, self.passed = f"limited{index}", []

    def exchange(self, began: float) -> None:
        identifier = self.place.identifier()
        self.send("GET", f"/api/10?id={identifier}", fields="X-Limited: yes\r\n")
        response = self.receive(statuses=(200, 429))
        if response.status == 429:
            return expect(response.has("Retry-After"), "answer: 429 without Retry-After")
        belongs(response.body, id=identifier, user=self.user)
        # Requests that began and ended within five seconds were surely decided in them, however late their answers were.
        self.passed = [each for each in self.passed if each > time.time() - 5] + [began]
        if (count := len(self.passed)) > 5 * 10 + 10 + 1:
            self.passed.clear()
            raise Failure(f"passed {count} requests in 5 s, where 60 may")


class SlowClient(Client):
    """Content that comes over a second."""

    kind, think = "slow", 0.5

    def exchange(self, began: float) -> None:
        identifier, length = self.place.identifier(), self.random.randrange(100, 100_000)
        self.send("GET", f"/slow/{length}?id={identifier}")
        belongs(self.receive().body, id=identifier, user=self.user, path=f"/slow/{length}")


class BigClient(Client):
    """Megabytes, of which every other client leaves without the end."""

    kind, think, lives = "big", 0.3, 1

    def exchange(self, began: float) -> None:
        identifier, length = self.place.identifier(), self.random.randrange(500_000, 3_000_000)
        self.send("GET", f"/api/{length}?id={identifier}")
        if self.random.random() < 0.5:
            belongs(self.receive().body, id=identifier, user=self.user)
            return
        wire = self.connected()
        enough = self.random.randrange(length // 2)
        while len(wire.buffer) < enough and wire.fill():
            pause(0.01, Why.SLOW)
        if self.random.random() < 0.5:
            wire.reset()
        self.close()
        self.report.count("left")


class CacheLeaver(Client):
    """Asks for a large cacheable response together with others, and leaves; or alone, and comes again."""

    kind, think, lives = "leaver", 0.4, 1

    def exchange(self, began: float) -> None:
        store = self.random.choice(["mem", "disk", "shared"])
        self.send("GET", f"/{store}/{50 * self.random.randrange(6) + 7}", fields="Accept-Language: de\r\n")
        self.connected().is_readable(self.random.random() * 0.02)
        if self.random.random() < 0.5:
            self.connected().fill()
        self.close()
        self.report.count("left")


class EventClient(Client):
    kind, think, lives = "events", 0.5, 3

    def exchange(self, began: float) -> None:
        identifier, count = self.place.identifier(), self.random.randrange(5, 60)
        self.send("GET", f"/events/{count}?id={identifier}")
        events = self.receive().body.decode().split("\n\n")
        expect(len(events) == count + 2 and not events[-1], f"count: {len(events) - 1} events in place of {count + 1}")
        for number, event in enumerate(events[:-1]):
            first, _, data = event.partition("\ndata: ")
            found = json.loads(data)
            expect(first == f"id: {number}" and (found["number"], found["id"], found["user"]) == (number, identifier, self.user), f"event {number}: {event!r}")


class SocketClient(Client):
    """A WebSocket: each message comes back with the name of its origin server, the connection's identifier and the user."""

    kind, think, lives = "socket", 0.5, 1

    def context(self) -> ssl.SSLContext | None:
        self.port = self.random.choice(["web", "tls"])
        return super().context()

    def connected(self) -> Wire:
        if self.wire is None:
            context = self.context()
            self.wire = self.place.wire(self.port, context)
        return self.wire

    def exchange(self, began: float) -> None:
        identifier = self.place.identifier()
        self.request = head = (f"GET /socket?id={identifier} HTTP/1.1\r\nHost: soak.test\r\nX-User: {self.user}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
        wire = self.connected()
        wire.send(head.encode() + b"\r\n")
        response = self.response = wire.read_response("GET")
        if response.status != 101:
            raise Failure(f"status {response.status} {response.get('Proxy-Status') or ''}")
        for number in range(self.random.randrange(5, 80)):
            if self.report.over.is_set():
                break
            text = f"{number} " + self.random.choice(["x", "y" * 500, "z" * 20_000])
            wire.send(self.frame(1, text.encode()))
            opcode, data = self.message(wire)
            name, _, rest = data.decode().partition(" ")
            expect(opcode == 1 and name in ("one", "two") and rest == f"{identifier} {self.user} {text}", f"message {number}: {opcode} {data[:100]!r} of {len(data)} bytes")
            pause(0.2 * self.random.random(), Why.SLOW)
        wire.send(self.frame(8, b"\x03\xe8"))
        opcode, data = self.message(wire)
        expect(opcode == 8, f"end: {opcode} {data[:100]!r}")
        self.close()

    def frame(self, opcode: int, data: bytes) -> bytes:
        mask = self.random.randbytes(4)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big"))
        return head + mask + bytes(byte ^ mask[index & 3] for index, byte in enumerate(data))

    @staticmethod
    def message(wire: Wire) -> tuple[int, bytes]:
        first, size = wire.read_exactly(2)
        length = int.from_bytes(wire.read_exactly(2), "big") if size == 126 else size
        return first & 15, bytes(wire.read_exactly(length))


class Http2Client(Client):
    """Some requests at once on a connection of HTTP/2, by TLS or in clear text."""

    kind, think, lives = "h2", 0.2, 12

    def __init__(self, place: Place, index: int):
        super().__init__(place, index)
        from Rig import http2
        self.http2, self.two, self.stream = http2, None, 1
        self.port = "tls" if index % 3 else "web"

    def close(self) -> None:
        super().close()
        self.two = None

    def run(self) -> None:
        pause(self.random.random(), Why.SLOW)
        while not self.report.over.is_set():
            waiting = [(self.place.identifier(), self.random.choice(["api", "api", "api", "post"]), time.time()) for _ in range(self.random.randrange(1, 10))]
            # A stream that a GOAWAY or REFUSED_STREAM says was not acted on is sent again (RFC 9113 §8.7): as often as connections end.
            for _ in range(4):
                waiting = self.batch(waiting)
                if not waiting:
                    break
            for identifier, what, began in waiting:
                self.report.failed(self.kind, began, "closed: refused on four connections", f"{what} {identifier}")
            if self.report.over.wait(self.think * 2 * self.random.random()):
                break
        self.close()

    def batch(self, waiting: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
        """Sends all of them at once; the ones that may be sent again."""
        h, answered = self.http2, {}
        try:
            if self.two is None:
                wire = self.place.wire(self.port, self.place.context if self.port == "tls" else None)
                self.wire, self.two, self.stream, self.left = wire, h.Http2Wire(wire), 1, self.random.randrange(1, self.lives * 2)
        except OSError as error:
            for identifier, what, began in waiting:
                self.report.failed(self.kind, began, f"{outcome(error)}: connecting: {error}", f"{what} {identifier}")
            return []
        two = self.two
        streams = {}
        frames = []
        for each in waiting:
            identifier, what, _ = each
            length = self.random.randrange(30_000, 300_000) if self.random.random() < 0.03 else self.random.randrange(30_000)
            body = self.random.randbytes(length % 3000) if what == "post" else None
            path = f"/upload?id={identifier}" if what == "post" else f"/api/{length}?id={identifier}"
            fields = h.head("POST" if what == "post" else "GET", path, ("x-user", self.user), scheme="https" if self.port == "tls" else "http", authority="soak.test")
            frames.append(h.headers(self.stream, fields, end=body is None))
            if body is not None:
                frames.append(h.data(self.stream, body, end=True))
            streams[self.stream] = (each, length, body)
            self.stream += 2
        if self.random.random() < 0.15:  # a client that wants one of them no longer
            frames.append(h.headers(self.stream, h.head("GET", f"/api/{self.random.randrange(300_000)}?id=leaves", ("x-user", self.user), scheme="https" if self.port == "tls" else "http", authority="soak.test")))
            frames.append(h.reset(self.stream))
            self.stream += 2
            self.report.count("left")
        problem = None
        try:
            two.send(*frames)
            for stream in streams:
                two.read(stream, within=PATIENCE)
                answered[stream] = time.time()
        except (WireClosed, WireTimeout, Malformed, OSError) as error:
            problem = error
        again = []
        last = two.goaways[-1].last_stream_id if two.goaways else 1 << 31
        for stream, (each, length, body) in streams.items():
            identifier, what, began = each
            answer = two.answer(stream)
            kind = "post" if what == "post" else self.kind
            if stream > last or answer.reset == h.REFUSED:
                again.append(each)
            elif answer.ended and answer.status == 200:
                try:
                    if body is None:
                        belongs(answer.body, id=identifier, user=self.user, path=f"/api/{length}", authorization="")
                    else:
                        belongs(answer.body, id=identifier, user=self.user, received=len(body), sha256=hashlib.sha256(body).hexdigest())
                    self.report.done(self.kind, began)
                except Failure as wrong:
                    self.report.failed(kind, began, wrong, f"{what} {identifier}", answer)
            elif answer.ended:
                self.report.failed(kind, began, f"status {answer.status} {answer.get('proxy-status') or ''}", f"{what} {identifier} stream {stream} over {self.port}", answer)
            else:
                how = "cut off" if answer.status else outcome(problem) if problem else "closed"
                self.report.failed(kind, began, f"{how}: {problem!r}, reset {answer.reset}, goaways {two.goaways}", f"{what} {identifier} stream {stream} over {self.port}", answer)
        self.left -= 1
        if problem or two.goaways or self.left <= 0:
            self.close()
        else:
            two.frames.clear()
            two.answers.clear()
            two.wire.received.clear()
        return again


class DirectClient(Client):
    """The same without the gateway, to an origin server that is never harmed: what the machine itself takes."""

    kind, think, port = "direct", 0.1, "control"

    def exchange(self, began: float) -> None:
        identifier = self.place.identifier()
        self.send("GET", f"/api/1000?id={identifier}")
        belongs(self.receive().body, id=identifier, origin="control")


class Page(Client):
    """The inspector page as a program: both event streams, the lists, an archive, the metrics."""

    kind = "page"

    def __init__(self, place: Place, index: int):
        super().__init__(place, index)
        self.role = ("captures", "records", "lists")[index % 3]

    def run(self) -> None:
        while not self.report.over.is_set():
            began = time.time()
            connection = http.client.HTTPConnection("127.0.0.1", self.place.ports["admin"], timeout=PATIENCE)
            try:
                if self.role == "lists":
                    self.lists(connection)
                else:
                    self.stream(connection, "/v1/captures/events" if self.role == "captures" else "/v1/events")
                self.report.done("page", began)
            except Failure as problem:
                self.report.failed("page", began, problem, f"{self.role} {self.request}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.report.failed("page", began, f"{outcome(error)}: {type(error).__name__} {error}" if not isinstance(error, (http.client.HTTPException, ValueError))
                                   else f"cut off: {type(error).__name__} {error}", f"{self.role} {self.request}")
            finally:
                connection.close()
            self.report.over.wait(1)

    def get(self, connection: http.client.HTTPConnection, path: str, statuses: tuple[int, ...] = (200,)) -> http.client.HTTPResponse:
        self.request = path
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.place.token}"})
        response = connection.getresponse()
        if response.status not in statuses:
            raise Failure(f"status {response.status} {response.read(300)!r}")
        return response

    def lists(self, connection: http.client.HTTPConnection) -> None:
        rows = json.loads(self.get(connection, "/v1/captures?limit=50").read())["captures"]
        for row in rows[:3]:
            response = self.get(connection, f"/v1/captures/{row['id']}", (200, 404))
            found = json.loads(response.read())
            # It may have made room for another one meanwhile.
            expect(response.status == 404 or str(found.get("id", row["id"])) == str(row["id"]), f"capture {found.get('id')}")
        for path in ("/v1/services", "/v1/credentials", "/v1/cache", "/v1/requests?limit=200", "/v1/config", "/v1/captures?limit=100&filter=~m%20POST"):
            json.loads(self.get(connection, path).read())
        if self.random.random() < 0.1:
            json.loads(self.get(connection, "/v1/har?filter=~m%20PUT").read())
        expect(b"httpware_requests_total" in self.get(connection, "/metrics").read(), "metrics")
        for row in rows[:1]:
            connection.request("POST", f"/v1/captures/{row['id']}/comment", body=b'{"comment":"seen"}', headers={"Authorization": f"Bearer {self.place.token}", "Content-Type": "application/json"})
            connection.getresponse().read()

    def stream(self, connection: http.client.HTTPConnection, path: str) -> None:
        """Reads for some seconds; a longer one would keep a former process."""
        response, end = self.get(connection, path), time.time() + 15
        while time.time() < end and not self.report.over.is_set():
            line = response.readline()
            if not line:
                raise Failure("closed: the event stream ended")
            if line.startswith(b"data:"):
                json.loads(line[5:])
                self.report.count(f"page {self.role}")


GROUPS: dict[str, list[tuple[type[Client], int]]] = {
    "plain": [(Client, 3), (TlsClient, 2), (TokenClient, 2), (LimitedClient, 1), (DirectClient, 1)],
    "frames": [(Http2Client, 3), (Uploader, 2), (SlowUploader, 1), (CacheClient, 3)],
    "streams": [(EventClient, 3), (SocketClient, 3), (SlowClient, 2), (BigClient, 2), (CacheLeaver, 2), (Page, 3)],
}


def main(group: str, place: Place, ended: Callable[[], object]) -> None:
    threads = [threading.Thread(target=kind(place, index).run) for kind, count in GROUPS[group] for index in range(count)]
    for thread in threads:
        thread.start()

    def tell() -> None:
        while not place.report.over.wait(1):
            place.report.tell()

    teller = threading.Thread(target=tell)
    teller.start()
    ended()
    place.report.over.set()
    for thread in (*threads, teller):
        thread.join()
    place.report.tell()


if __name__ == "__main__":
    main(sys.argv[1], Place(sys.argv[2]), sys.stdin.read)
