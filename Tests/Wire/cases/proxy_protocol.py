"""The PROXY protocol, in and out: `doc/proxy-protocol.txt` of HAProxy's sources."""

from __future__ import annotations

import shutil
import socket
import time

from Rig.certificates import certificates
from Rig.origins import OK, OriginConnection, answering
from Rig.processes import free_port
from Rig.wire import Message, Wire, WireClosed
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO
from .tls import secure

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LINE = b"PROXY TCP4 203.0.113.9 198.51.100.7 40123 443\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"


def binary(block: bytes, command: int = 0x21, family: int = 0x11) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(block).to_bytes(2, "big") + block


ADDRESSES = socket.inet_aton("203.0.113.9") + socket.inet_aton("198.51.100.7") + (40123).to_bytes(2, "big") + (443).to_bytes(2, "big")
SIX = socket.inet_pton(socket.AF_INET6, "2001:db8::9") + socket.inet_pton(socket.AF_INET6, "2001:db8::7") + b"\x9c\xbb\x01\xbb"


class Gateway:
    """Believes 127.0.0.1; with `out`, it tells the origin server who its client is."""

    def __init__(self, t: Trial, script=None, *, out: str = "", tls: bool = False, service: str = "", chain: str = "", origin: int = 0):
        self.t, self.port = t, free_port()
        t.origin(script or answering(OK))
        folder = t.setup.place.subfolder("proxy-protocol")
        place = certificates()
        listener = f", tls: {{ cert: {place / 'a.pem'}, key: {place / 'a.key'}, handshakeTimeout: 1s }}" if tls else ""
        scheme = "https" if "ca:" in service else "http"
        (folder / "httpware.yaml").write_text(f"""version: 1
log: {{ level: debug }}
listeners:
  web: {{ bind: "127.0.0.1:{self.port}", proxyProtocol: {{ from: 127.0.0.1 }}{listener} }}
services:
  app: {{ baseUrl: "{scheme}://127.0.0.1:{origin or t.main.port}"{f', proxyProtocol: {out}' if out else ''}{service} }}
chains: {{ all: {{ middlewares: [{chain or 'forwarded'}] }} }}
routes: [{{ service: app, chain: all }}]
""")
        self.process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [self.port])
        t.at_end(self.process.stop)

    def client(self, source: str | None = None) -> Wire:
        client = connect(("127.0.0.1", self.port), 10, source)
        self.t.clients.append(client)
        return client

    def ask(self, header: bytes, source: str | None = None, bytewise: bool = False) -> Message:
        client = self.client(source)
        client.feed(header + GET, bytewise)
        return client.read_response()


def forwarded(t: Trial) -> str | None:
    return t.main.requests[-1].get("X-Forwarded-For")


@case("the PROXY protocol: the client that the header names is the peer", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for header, client in [
        (LINE, "203.0.113.9"),
        (b"PROXY TCP6 2001:db8::9 2001:db8::7 40123 443\r\n", "2001:db8::9"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        (binary(ADDRESSES), "203.0.113.9"),
        (binary(SIX, family=0x21), "2001:db8::9"),
        (binary(ADDRESSES + b"\xea\0\x03abc"), "203.0.113.9"),
        (binary(b"", command=0x20, family=0), "127.0.0.1"),
        (binary(ADDRESSES, command=0x20), "127.0.0.1"),
    ]:
        for bytewise in (False, True):
            expect_status(gateway.ask(header, bytewise=bytewise), 200)
            expect_same("X-Forwarded-For", forwarded(t), client)


@case("the PROXY protocol: rules about addresses apply to the client", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, chain="{ ipRule: { deny: 203.0.113.0/24 } }")
    expect_status(gateway.ask(LINE), 403)
    expect_status(gateway.ask(LINE.replace(b"203.0.113.9", b"192.0.2.1")), 200)


@case("the PROXY protocol: a connection keeps its client for each request", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    client = gateway.client()
    client.send(binary(ADDRESSES) + GET + GET)
    for _ in range(2):
        expect_status(client.read_response(), 200)
        expect_same("X-Forwarded-For", forwarded(t), "203.0.113.9")
    # A header is only what comes first.
    client.send(LINE + GET)
    expect_status(client.read_response(), 400)


@case("the PROXY protocol: a peer without the required header is disconnected", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for first in [GET, b"\x16\x03\x01\x02\x00", b"PROXY TCP4 nonsense\r\n", binary(ADDRESSES[:-1]), binary(ADDRESSES, command=0x11),
                  SIGNATURE + b"\x21\x11\xff\xff", b"PROXY " + b"x" * 300, binary(ADDRESSES + b"\x03\0\x04\0\0\0\0")]:
        client = gateway.client()
        client.send(first)
        try:
            check(client.read_rest() == b"", f"an answer to {first[:20]!r}")
        except (WireClosed, ConnectionError):
            pass
    expect_same("requests at the origin", len(t.main.requests), 0)
    check(eventually(lambda: "no header of the PROXY protocol" in gateway.process.log), "the log says nothing")
    expect_status(gateway.ask(LINE), 200)


@case("the PROXY protocol: a header from another peer is never used", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for header in (LINE, binary(ADDRESSES)):
        expect_status(gateway.ask(header, source="127.0.0.2"), 400)
    expect_same("requests at the origin", len(t.main.requests), 0)
    expect_status(gateway.ask(b"", source="127.0.0.2"), 200)
    expect_same("X-Forwarded-For", forwarded(t), "127.0.0.2")


@case("the PROXY protocol: the header must precede TLS, and arrive in time", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, tls=True)
    for header in (LINE, binary(SIX, family=0x21)):
        client = gateway.client()
        client.send(header)
        client.sock = certificates().client().wrap_socket(client.sock, server_hostname="a.test")
        client.send(GET)
        expect_status(client.read_response(), 200)
    expect_same("X-Forwarded-For", forwarded(t), "2001:db8::9")
    client = gateway.client()
    client.send(LINE[:20])
    start = time.monotonic()
    try:
        client.read_rest()
    except (WireClosed, ConnectionError):
        pass
    check(0.5 < time.monotonic() - start < 4, "half a header is waited for too long, or too short")


@case("the PROXY protocol: a peer that sends half a header, or no byte, affects no other client", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for first in (b"", b"PRO", SIGNATURE[:5], binary(ADDRESSES)[:17]):
        client = gateway.client()
        if first:
            client.send(first)
        client.sock.shutdown(socket.SHUT_WR)
        try:
            expect_same("bytes", client.read_rest(), b"")
        except (WireClosed, ConnectionError):
            pass
    expect_status(gateway.ask(LINE), 200)


def telling(connection: OriginConnection, headers: list[bytes]) -> None:
    """An origin server that receives the address of its client."""
    first = connection.read_exactly(6)
    if first == b"PROXY ":
        while not first.endswith(b"\r\n"):
            first += connection.read_exactly(1)
    else:
        first += connection.read_exactly(10)
        first += connection.read_exactly(int.from_bytes(first[14:16], "big"))
    headers.append(first)
    answering(OK)(connection)


@case("the PROXY protocol: an origin server receives the client's address, with one client per connection", nginx=NO)
def _(t: Trial) -> None:
    for version, expected in [("v1", b"PROXY TCP4 203.0.113.9 127.0.0.1 40123 %d\r\n"), ("v2", None)]:
        headers: list[bytes] = []
        gateway = Gateway(t, lambda connection: telling(connection, headers), out=version)
        one, other = gateway.client(), gateway.client("127.0.0.3")
        one.send(LINE)
        for _ in range(3):
            one.send(GET)
            expect_status(one.read_response(), 200)
        other.send(GET)
        expect_status(other.read_response(), 200)
        one.send(GET)
        expect_status(one.read_response(), 200)
        expect_same("connections", len(headers), 2)
        port = other.sock.getsockname()[1]
        if expected:
            expect_same("headers", headers, [expected % gateway.port, b"PROXY TCP4 127.0.0.3 127.0.0.1 %d %d\r\n" % (port, gateway.port)])
        else:
            local = socket.inet_aton("127.0.0.1")
            expect_same("headers", headers, [
                binary(socket.inet_aton("203.0.113.9") + local + (40123).to_bytes(2, "big") + gateway.port.to_bytes(2, "big")),
                binary(socket.inet_aton("127.0.0.3") + local + port.to_bytes(2, "big") + gateway.port.to_bytes(2, "big"))])


@case("the PROXY protocol: the header is sent before TLS with the origin server", nginx=NO)
def _(t: Trial) -> None:
    headers: list[bytes] = []

    def script(connection: OriginConnection) -> None:
        line = b""
        while not line.endswith(b"\r\n"):
            line += connection.sock.recv(1)  # what follows is for TLS
        headers.append(line)
        secure(answering(OK))(connection)

    gateway = Gateway(t, script, out="v1", service=f", tls: {{ ca: {certificates() / 'ca.pem'}, serverName: a.test }}")
    expect_status(gateway.ask(LINE), 200)
    expect_same("headers", headers, [b"PROXY TCP4 203.0.113.9 127.0.0.1 40123 %d\r\n" % gateway.port])


@case("the PROXY protocol: health checks send a header without a client", nginx=NO)
def _(t: Trial) -> None:
    headers: list[bytes] = []
    Gateway(t, lambda connection: telling(connection, headers), out="v2", service=", healthCheck: { path: /, interval: 100ms }")
    check(eventually(lambda: len(headers) > 1), "no health check")
    expect_same("header", set(headers), {binary(b"", command=0x20, family=0)})


@case("the PROXY protocol: the header of HAProxy in TCP mode is read", nginx=NO)
def _(t: Trial) -> None:
    haproxy = program("haproxy")
    for options in ("send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c"):
        gateway = Gateway(t)
        port = free_port()
        folder = t.setup.place.subfolder("haproxy")
        (folder / "haproxy.cfg").write_text(f"""defaults
  mode tcp
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen front
  bind 127.0.0.1:{port}
  server gateway 127.0.0.1:{gateway.port} {options}
""")
        process = t.setup.place.command([haproxy, "-db", "-f", str(folder / "haproxy.cfg")], [port])
        t.at_end(process.stop)
        client = connect(("127.0.0.1", port), 10, "127.0.0.4")
        t.clients.append(client)
        client.send(GET)
        expect_status(client.read_response(), 200)
        expect_same(f"X-Forwarded-For behind {options}", forwarded(t), "127.0.0.4")


@case("the PROXY protocol: nginx reads the header of the gateway", nginx=NO)
def _(t: Trial) -> None:
    nginx = program("nginx")
    port = free_port()
    folder = t.setup.place.subfolder("nginx-behind")
    (folder / "nginx.conf").write_text(f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{ access_log off; server {{ listen 127.0.0.1:{port} proxy_protocol; return 200 "$proxy_protocol_addr $proxy_protocol_port"; }} }}
""")
    process = t.setup.place.command([nginx, "-c", str(folder / "nginx.conf"), "-p", str(folder)], [port])
    t.at_end(process.stop)
    for version in ("v1", "v2"):
        answer = Gateway(t, out=version, origin=port).ask(LINE)
        expect_same(f"what nginx knows by {version}", (answer.status, answer.body), (200, b"203.0.113.9 40123"))


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if not found:
        raise Skip(f"{name} is not installed")
    return found
