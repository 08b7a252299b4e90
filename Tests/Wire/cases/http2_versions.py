"""Which version of HTTP an origin server is spoken to in (RFC 7301, RFC 9113 §3), and WebSockets to it in either (RFC 8441)."""

from __future__ import annotations

import ssl
import threading

from Rig.certificates import certificates
from Rig.origins import OriginConnection, ok
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Trial, check, eventually, expect_same, expect_status, proxy_error

from .http2 import MISSING, extended, http2, speak
from .http2_upstream import Http2Origin
from .refused_requests import head
from .tls import JoinedTls, TlsGateway, secure
from .upgrade import SWITCH, WEBSOCKET, accept, echo_bytes

if not MISSING:
    from .http2 import h


class ChoosingOrigin:
    """Under TLS, speaks what it chooses by ALPN of what it is offered, and tells the version in each answer."""

    def __init__(self, *protocols: str, meanwhile=None, settings: bytes | None = None):
        self.context = certificates().server()
        if protocols:
            self.context.set_alpn_protocols(list(protocols))
        self.meanwhile = meanwhile or (lambda: None)
        self.settings = settings
        self.spoken: list[str | None] = []

    def __call__(self, connection: OriginConnection) -> None:
        secure(self.serve, context=self.context)(connection)

    def serve(self, c: OriginConnection) -> None:
        agreed = c.sock.selected_alpn_protocol()
        self.spoken.append(agreed)
        if agreed == "h2":
            Http2Origin(c, lambda o, stream, fields, body: o.reply(stream, 200, b"h2"), self.settings).run()
        while True:
            request = c.serve()
            if request.get("Upgrade"):
                c.send(SWITCH)
                return echo_bytes(c)
            self.meanwhile()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh1")


def before(t: Trial, origin: ChoosingOrigin, service: str = "") -> TlsGateway:
    t.origin(origin)
    return TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=f", tls: {{ ca: ca.pem }} {service}")


def at_once(gateway: TlsGateway, count: int, method: bytes = b"GET") -> list[bytes]:
    """The answers to `count` requests, each of a client of its own."""
    clients = [gateway.connect() for _ in range(count)]
    for client in clients:
        client.send(head(start=method + b" / HTTP/1.1"))
    return [client.read_response(method.decode()).body for client in clients]


@http2("RFC 7301 §3.2: with protocol auto an origin server that chooses h2 is reached over HTTP/2, on one connection from the first request")
def _(t: Trial) -> None:
    gateway = before(t, origin := ChoosingOrigin("h2", "http/1.1"))
    expect_same("answers", at_once(gateway, 30), [b"h2"] * 30)
    expect_same("and again", at_once(gateway, 30), [b"h2"] * 30)
    expect_same("connections", origin.spoken, ["h2"])


for label, protocols in [("chooses http/1.1", ["http/1.1"]), ("has no ALPN", [])]:

    @http2(f"RFC 7301 §3.2: with protocol auto an origin server that {label} is reached over HTTP/1.1, on many connections at once")
    def _(t: Trial, protocols: list[str] = protocols) -> None:
        together = threading.Barrier(20)
        gateway = before(t, origin := ChoosingOrigin(*protocols, meanwhile=lambda: together.wait(4)))
        # Requests are answered only when all have arrived: one after the other they would never be.
        expect_same("answers", at_once(gateway, 20), [b"h1"] * 20)
        expect_same("connections", len(origin.spoken), 20)
        together.reset()
        expect_same("and again", at_once(gateway, 20), [b"h1"] * 20)
        expect_same("connections", len(origin.spoken), 20)


@http2("RFC 7301 §3.2: with protocol auto an origin server may choose another version after a restart")
def _(t: Trial) -> None:
    gateway = before(t, ChoosingOrigin("h2", "http/1.1"))
    expect_same("first", at_once(gateway, 3), [b"h2"] * 3)
    for protocols, body in [(["http/1.1"], b"h1"), (["h2"], b"h2"), ([], b"h1"), (["h2", "http/1.1"], b"h2")]:
        t.origin(ChoosingOrigin(*protocols))
        for method in (b"GET", b"DELETE"):
            expect_same(f"{protocols} {method}", at_once(gateway, 10, method), [body] * 10)


@http2("RFC 7301 §3.2: an origin server without an agreement is 502 for all waiting requests, and the next request tries again")
def _(t: Trial) -> None:
    gateway = before(t, lambda c: c.fill())
    clients = [gateway.connect() for _ in range(5)]
    for client in clients:
        client.send(head())
    for client in clients:
        expect_status(client.read_response(), 502)
    t.origin(ChoosingOrigin("h2"))
    expect_same("then", at_once(gateway, 3), [b"h2"] * 3)


@http2("RFC 9110 §7.8: with protocol auto an Upgrade goes over HTTP/1.1, and other requests over HTTP/2")
def _(t: Trial) -> None:
    gateway = before(t, origin := ChoosingOrigin("h2", "http/1.1"))
    for _ in range(2):
        client = gateway.connect()
        client.send(head(*WEBSOCKET))
        expect_status(client.read_response(), 101)
        client.send(b"hello")
        expect_same("bytes", client.read_exactly(5), b"hello")
        expect_same("else", at_once(gateway, 3), [b"h2"] * 3)
    expect_same("connections", sorted(origin.spoken), ["h2", "http/1.1", "http/1.1"])


@http2("maxPerEndpoint counts the connections of both versions")
def _(t: Trial) -> None:
    gateway = before(t, origin := ChoosingOrigin("http/1.1", meanwhile=lambda: pause(0.02, Why.SLOW)), ", pool: { maxPerEndpoint: 2 }")
    expect_same("answers", at_once(gateway, 12), [b"h1"] * 12)
    check(len(origin.spoken) <= 2, origin.spoken)


# --- Which versions a listener speaks

PREFACE_ANSWERS = (400, 505)


@http2("RFC 9113 §3.3: under TLS only ALPN leads to HTTP/2: its preface is refused after http/1.1, and without ALPN")
def _(t: Trial) -> None:
    t.origin(ok)
    for tls, offer in [("alpn: [http/1.1]", ["http/1.1"]), ("alpn: [http/1.1]", ["h2", "http/1.1"]), ("alpn: [http/1.1]", []),
                       ("alpn: [h2, http/1.1]", ["http/1.1"]), ("alpn: [h2, http/1.1]", [])]:
        gateway = TlsGateway(t, f"cert: a.pem, key: a.key, {tls}")
        client = gateway.connect(context=certificates().client(alpn=offer) if offer else None)
        client.send(h.PREFACE + h.settings() + h.headers(1, h.head()))
        expect_status(client.read_response(), *PREFACE_ANSWERS)
        check(not t.main.requests, f"{tls}, {offer}: it went upstream")
        expect_status(gateway.ask(client=gateway.connect()), 200)
        t.origin(ok)


@http2("http2: false: a listener in clear text refuses the preface, a listener under TLS does not agree to h2")
def _(t: Trial) -> None:
    t.origin(ok)
    gateway = TlsGateway(t, listener=", http2: false", more='  clear: { bind: "127.0.0.1:@OTHER@", http2: false }')
    clear = gateway.client(gateway.other)
    clear.send(h.PREFACE + h.settings() + h.headers(1, h.head()))
    expect_status(clear.read_response(), *PREFACE_ANSWERS)
    secure = gateway.connect(context=certificates().client(alpn=["h2", "http/1.1"]))
    expect_same("ALPN", secure.sock.selected_alpn_protocol(), "http/1.1")
    secure.send(h.PREFACE + h.settings() + h.headers(1, h.head()))
    expect_status(secure.read_response(), *PREFACE_ANSWERS)
    check(not t.main.requests, "it went upstream")
    clear = gateway.client(gateway.other)
    clear.send(head())
    expect_status(clear.read_response(), 200)
    expect_status(gateway.ask(client=gateway.connect(context=certificates().client(alpn=["http/1.1"]))), 200)


# --- RFC 8441, with HTTP/2 to the origin server

class SocketOrigin(Http2Origin):
    """Takes WebSockets on `/h2/chat` and sends back what comes; its settings come late."""

    def __init__(self, c: OriginConnection, settings: bytes, seen: list, late: float = 0.1):
        self.seen = seen
        pause(late, Why.SLOW)
        super().__init__(c, self.answered, settings)

    def answered(self, _, stream: int, fields: list, body: bytes) -> None:
        self.reply(stream, 200, b"plain")

    def opened(self, stream: int, fields: list) -> None:
        self.seen.append(fields)
        path = dict(fields)[":path"]
        if path.endswith("no"):
            self.reply(stream, 403, b"no")
        else:
            self.c.send(h.headers(stream, [(":status", "200"), ("sec-websocket-protocol", "chat"), ("content-length", "3")], end=False) + h.data(stream, b"hello"))

    def came(self, stream: int, content: bytes, ends: bool) -> None:
        if content == b"reset":
            self.c.send(h.reset(stream, h.INTERNAL))
        else:
            self.c.send(h.data(stream, content, end=ends))


def sockets(t: Trial, takes: bool = True) -> list:
    seen: list = []
    t.origin(lambda c: SocketOrigin(c, h.settings(s8=1) if takes else h.settings(), seen).run())
    return seen


@http2("RFC 8441 §5: a WebSocket over HTTP/1.1 becomes a CONNECT over HTTP/2 upstream, as soon as its settings allow it")
def _(t: Trial) -> None:
    seen = sockets(t)
    client = t.client()
    client.send(head(*WEBSOCKET, b"Sec-WebSocket-Protocol: chat", start=b"GET /h2/chat?a=b HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 101)
    expect_same("fields", (response.get("Upgrade"), response.options(), response.get("Sec-WebSocket-Accept"), response.get("Sec-WebSocket-Protocol"), response.get("Content-Length")),
                ("websocket", {"upgrade"}, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "chat", None))
    fields = dict(seen[0])
    expect_same("upstream", [fields.get(name) for name in (":method", ":protocol", ":scheme", ":path", "sec-websocket-version", "sec-websocket-key", "upgrade", "connection", "content-length")],
                ["CONNECT", "websocket", "http", "/h2/chat?a=b", "13", None, None, None, None])
    expect_same("bytes", client.read_exactly(5), b"hello")
    for size in (1, 1000, 300_000):
        content = bytes(range(256)) * (size // 256 + 1)
        threading.Thread(target=client.send, args=(content,), daemon=True).start()
        check(client.read_exactly(len(content)) == content, "bytes differ")
    client.end_sending()
    check(client.ends(3), "the end did not come back")
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 8441 §5: a WebSocket passes over HTTP/2 on both sides")
def _(t: Trial) -> None:
    seen = sockets(t)
    wire = speak(t)
    wire.send(h.headers(1, extended("/h2/chat"), end=False), h.data(1, b"early "))
    wire.until(lambda w: w.answer(1).body == b"helloearly ")
    answer = wire.answer(1)
    expect_same("answer", (answer.status, answer.get("sec-websocket-protocol"), answer.get("sec-websocket-accept"), answer.get("upgrade")), (200, "chat", None, None))
    expect_same("upstream", (dict(seen[0])[":protocol"], dict(seen[0]).get("sec-websocket-key")), ("websocket", None))
    wire.send(h.data(1, b"more", end=True))
    check(wire.read(1).ended, "the end did not come back")
    wire.send(h.headers(3, extended("/h2/chat"), end=False), h.data(3, b"reset"))
    check(wire.read(3).reset is not None or wire.answer(3).ended, wire.answer(3))
    check(wire.alive(), "the connection ended, too")


@http2("RFC 9113 §3.4: settings in one piece with the end of the origin server's handshake are read at once")
def _(t: Trial) -> None:
    context = certificates().server()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])

    def script(c: OriginConnection) -> None:
        c.sock = JoinedTls(c.sock, context, server_side=True)
        SocketOrigin(c, h.settings(s8=1), [], late=0).run()

    t.origin(script)
    gateway = TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=", protocol: h2, tls: { ca: ca.pem }")
    client = gateway.connect()
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    expect_same("bytes", client.read_exactly(5), b"hello")


@http2("RFC 9113 §3.4: a request in one piece with the end of the client's handshake is read at once")
def _(t: Trial) -> None:
    t.origin(ok)
    gateway = TlsGateway(t)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = certificates().client(alpn=["h2"])
        context.minimum_version = context.maximum_version = version
        wire = Wire(JoinedTls(gateway.raw(), context, name="a.test"))
        wire.send(h.PREFACE + h.settings() + h.headers(1, h.head()))
        check(eventually(lambda: t.main.requests, 2), f"{version}: the request waits for more")
        t.origin(ok)


@http2("RFC 8441 §5: if the origin server refuses a WebSocket, its answer is passed on over HTTP/1.1 and HTTP/2")
def _(t: Trial) -> None:
    sockets(t)
    response = t.ask(head(*WEBSOCKET, start=b"GET /h2/no HTTP/1.1"))
    expect_same("HTTP/1.1", (response.status, response.body), (403, b"no"))
    wire = speak(t)
    wire.send(h.headers(1, extended("/h2/no"), end=False))
    expect_same("HTTP/2", (wire.read(1).status, wire.answer(1).body), (403, b"no"))
    expect_same("else", wire.ask(3, h.head("GET", "/h2/")).body, b"plain")
    expect_same("connections", len(t.main.used), 1)


@http2("RFC 8441 §3: without SETTINGS_ENABLE_CONNECT_PROTOCOL a WebSocket is 502, and the connection stays open")
def _(t: Trial) -> None:
    seen = sockets(t, takes=False)
    client = t.client()
    for _ in range(2):
        client.send(head(*WEBSOCKET, start=b"GET /h2/chat HTTP/1.1"))
        response = client.read_response()
        expect_same("answer", (response.status, proxy_error(response)), (502, "http_upgrade_failed"))
    client.send(head(start=b"GET /h2/ HTTP/1.1"))
    expect_same("else", client.read_response().body, b"plain")
    expect_same("upstream", (seen, len(t.main.used)), ([], 1))


@http2("RFC 8441 §5: a WebSocket that waits for settings is 502 when the connection ends, and is forgotten when its client leaves")
def _(t: Trial) -> None:
    def ending(c: OriginConnection) -> None:
        c.read_exactly(24)
        pause(0.3, Why.SLOW)

    t.origin(ending)
    leaving = t.client()
    leaving.send(head(*WEBSOCKET, start=b"GET /h2/chat HTTP/1.1"))
    check(eventually(lambda: t.main.used, 2), "no connection")
    leaving.close()
    response = t.ask(head(*WEBSOCKET, start=b"GET /h2/chat HTTP/1.1"))
    expect_status(response, 502)


@http2("RFC 6455 §4.1: the gateway verifies the answer to the key of a WebSocket over HTTP/2, since its client cannot")
def _(t: Trial) -> None:
    answers = ["Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "", None]

    def script(c: OriginConnection) -> None:
        request = c.serve()
        line = answers.pop(0)
        if line is None:
            line = f"Sec-WebSocket-Accept: {accept(request.get('Sec-WebSocket-Key'))}\r\n"
        c.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + line.encode() + b"\r\nhello")
        c.read_rest()

    t.origin(script)
    wire = speak(t)
    for stream in (1, 3):
        wire.send(h.headers(stream, extended(), end=False))
        answer = wire.read(stream)
        check(answer.status == 502 and b"hello" not in answer.body, answer)
        check("http_upgrade_failed" in (answer.get("proxy-status") or ""), answer)
    wire.send(h.headers(5, extended(), end=False))
    wire.until(lambda w: w.answer(5).body == b"hello")
    expect_same("status", wire.answer(5).status, 200)
