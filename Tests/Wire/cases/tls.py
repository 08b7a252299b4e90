"""TLS on both sides: versions, names, certificates, tickets, bad handshakes; origin servers that are verified."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable

from gateways import OwnGateway
from Rig.certificates import certificates
from Rig.origins import OK, OriginConnection, Script, answering, echo, ok
from Rig.processes import free_port
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Message, Skip, Trial, WireClosed, case, check, eventually, expect_same, expect_status, proxy_error

from .command import NO, checked, run
from .refused_requests import head
from .reload import Gateway

GET = head()


def secure(script: Script, name: str = "a", context: ssl.SSLContext | None = None) -> Script:
    """An origin server's script under TLS."""

    def wrapped(connection: OriginConnection) -> None:
        try:
            connection.sock = (context or certificates().server(name)).wrap_socket(connection.sock, server_side=True)
        except (ssl.SSLError, OSError) as error:
            raise WireClosed(f"no handshake: {error}") from error
        script(connection)

    return wrapped


class JoinedTls:
    """TLS on a socket; the last that the handshake has to say leaves in one piece with what is sent first."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool = False, name: str | None = None):
        self.sock, self.incoming, self.outgoing = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server_side, server_hostname=name)
        self.patiently(self.tls.do_handshake)

    def patiently(self, call: Callable):
        while True:
            try:
                return call()
            except ssl.SSLWantReadError:
                if said := self.outgoing.read():
                    self.sock.sendall(said)
                if not (data := self.sock.recv(65536)):
                    return b""
                self.incoming.write(data)

    def sendall(self, data: bytes) -> None:
        self.tls.write(data)
        self.sock.sendall(self.outgoing.read())

    def recv(self, count: int) -> bytes:
        return self.patiently(lambda: self.tls.read(count))

    def __getattr__(self, name: str):
        return getattr(self.sock, name)


class TlsGateway(Gateway):
    """A gateway that speaks TLS on @PORT@, before an origin server; the names of files are those of the certificates."""

    def __init__(self, t: Trial, tls: str = "cert: a.pem, key: a.key", *, url: str = "http://127.0.0.1:@MAIN@", service: str = "",
                 listener: str = "", more: str = "", routes: str = "- { service: api }", chains: str = "", workers: int = 1, files: str = ""):
        self.files = files or str(certificates().folder)
        for name in ("cert", "key", "ocsp", "clientCa"):
            tls = tls.replace(f"{name}: ", f"{name}: {self.files}/")
        for name in ("ca", "cert", "key"):
            service = service.replace(f"{name}: ", f"{name}: {self.files}/")
        super().__init__(t, text=f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:@PORT@", tls: {{ {tls} }} {listener} }}
{more}
services:
  api: {{ baseUrl: "{url}", timeouts: {{ connect: 2s, response: 2s, idle: 5s }} {service} }}
chains: {{ {chains} }}
routes:
  {routes}
""", workers=workers)

    def raw(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), 5)
        self.t.at_end(sock.close)
        return sock

    def connect(self, name: str | None = "a.test", context: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None) -> Wire:
        context = context or certificates().client()
        context.check_hostname = name is not None
        sock = context.wrap_socket(self.raw(), server_hostname=name, session=session, suppress_ragged_eofs=False)
        client = Wire(sock)
        self.t.clients.append(client)
        return client

    def ask(self, request: bytes = GET, client: Wire | None = None, method: str = "GET") -> Message:
        client = client or self.connect()
        client.send(request)
        return client.read_response(method)

    def refuses(self, context: ssl.SSLContext, name: str | None = "a.test") -> str:
        """The reason for a missing exchange: under TLS 1.3 a client receives a refusal after its handshake."""
        try:
            client = self.connect(name, context)
            client.sock.sendall(GET)
            answer = client.sock.recv(1000)
            check(not answer, "it was served:", answer)
            return "closed"
        except OSError as error:
            return str(error)


def pump(client: Wire, data: bytes, is_all: Callable[[bytearray], bool], within: float = 20) -> bytearray:
    """Sends and receives at once, in one thread: OpenSSL allows no more for a connection."""
    view, got, end = memoryview(data), bytearray(client.take(len(client.buffer))), time.monotonic() + within
    client.sock.setblocking(False)
    while not is_all(got) and time.monotonic() < end:
        moved = False
        try:
            view = view[client.sock.send(view[:16384]):] if view else view
            moved = bool(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            while len(chunk := client.sock.recv(65536)):
                got += chunk
                moved = True
            break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        if not moved:
            poll = select.poll()
            poll.register(client.sock, select.POLLIN | (select.POLLOUT if view else 0))
            poll.poll(10)
    client.sock.settimeout(client.timeout)
    return got


# --- versions, names, protocols

for label, version in [("1.2", ssl.TLSVersion.TLSv1_2), ("1.3", ssl.TLSVersion.TLSv1_3)]:

    @case(f"TLS {label}: a GET and a POST share one connection", nginx=NO)
    def _(t: Trial, version: ssl.TLSVersion = version) -> None:
        gateway = TlsGateway(t)
        t.origin(echo)
        context = certificates().client()
        context.minimum_version = context.maximum_version = version
        client = gateway.connect(context=context)
        expect_same("version", client.sock.version(), "TLSv1." + version.name[-1])
        for size in (0, 5, 16384, 16385, 100_000):
            body = os.urandom(size)
            response = gateway.ask(head(b"Content-Length: %d" % size, start=b"POST / HTTP/1.1") + body, client, "POST")
            expect_same("content", response.body, body)


@case("TLS: 1.1 is refused, and 1.2 if the listener requires 1.3", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, 'cert: a.pem, key: a.key, minVersion: "1.3"')
    for version in ("-tls1_1", "-tls1_2"):
        result = subprocess.run(["openssl", "s_client", version, "-cipher", "ALL:@SECLEVEL=0", "-connect", f"127.0.0.1:{gateway.port}"],
                                input=b"", capture_output=True, timeout=10)
        check(b"protocol version" in result.stderr, result.stderr[-300:])
    expect_status(gateway.ask(), 200)


@case("TLS: the certificate is chosen by the requested name", nginx=NO)
def _(t: Trial) -> None:
    folder = certificates().folder
    names = ", ".join(f"{{ cert: {name}.pem, key: {name}.key }}" for name in ("named", "a", "wild"))
    gateway = TlsGateway(t, f"certificates: [{names}]")
    for name, expected in [("a.test", "a"), ("x.b.test", "wild"), ("origin.test", "named"), ("unknown.test", "named"), (None, "named")]:
        context = certificates().client()
        context.check_hostname = False
        with context.wrap_socket(gateway.raw(), server_hostname=name) as sock:
            shown = ssl.DER_cert_to_PEM_cert(sock.getpeercert(True))
        expect_same(f"certificate for {name}", shown.strip() in (folder / f"{expected}.pem").read_text(), True)


@case("TLS: the client's ciphers choose between an EC and an RSA certificate", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, "certificates: [{ cert: a.pem, key: a.key }, { cert: rsa.pem, key: rsa.key }]")
    for kind, name in [("ECDSA", "a"), ("RSA", "rsa")]:
        context = certificates().client()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(f"ECDHE-{kind}-AES128-GCM-SHA256")
        client = gateway.connect(context=context)
        expect_same("common name", dict(part[0] for part in client.sock.getpeercert()["subject"])["commonName"], name)


@case("RFC 7301: http/1.1 is negotiated; a client with other protocols only is refused; a client without ALPN is served", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    client = gateway.connect(context=certificates().client(alpn=["spdy/3", "http/1.1"]))
    expect_same("ALPN", client.sock.selected_alpn_protocol(), "http/1.1")
    expect_status(gateway.ask(client=client), 200)
    check("no application protocol" in gateway.refuses(certificates().client(alpn=["spdy/3"])).lower())
    client = gateway.connect()
    expect_same("ALPN", client.sock.selected_alpn_protocol(), None)
    expect_status(gateway.ask(client=client), 200)


@case("TLS: weak ciphers are refused, and the server's order decides", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    for cipher in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "AES128-GCM-SHA256"):
        context = certificates().client()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(cipher + ":@SECLEVEL=0")
        check("handshake failure" in gateway.refuses(context).lower(), cipher)
    context = certificates().client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256")
    expect_same("cipher", gateway.connect(context=context).sock.cipher()[0], "ECDHE-ECDSA-AES128-GCM-SHA256")


@case("RFC 6066 §8: a stapled OCSP response is sent to clients that request it", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, "certificates: [{ cert: a.pem, key: a.key, ocsp: a.ocsp }, { cert: wild.pem, key: wild.key }]")
    for name, expected in [("a.test", b"Cert Status: good"), ("x.b.test", b"OCSP response: no response sent")]:
        result = subprocess.run(["openssl", "s_client", "-status", "-servername", name, "-connect", f"127.0.0.1:{gateway.port}"],
                                input=b"", capture_output=True, timeout=10)
        check(expected in result.stdout, result.stdout[:500])


# --- clients' certificates

SAYING = "said: { middlewares: [{ requestHeaders: { set: { X-Subject: '{tls.subject}', X-San: '{tls.san}' } } }] }"


@case("TLS: a client's certificate is required, verified, and passed on upstream", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, "cert: a.pem, key: a.key, clientCa: ca.pem", routes="- { service: api, chain: said }", chains=SAYING)
    client = gateway.connect(context=certificates().client(identity="anna"))
    expect_status(gateway.ask(head(b"X-Subject: CN=root"), client), 200)
    expect_same("subject", t.main.requests[0].all("X-Subject"), ["CN=anna,O=Example"])
    expect_same("names", t.main.requests[0].all("X-San"), ["email:anna@a.test,URI:spiffe://a.test/anna"])
    check("certificate required" in gateway.refuses(certificates().client()).lower())
    check("unknown ca" in gateway.refuses(certificates().client(identity="stranger")).lower())
    expect_same("requests", len(t.main.requests), 1)


@case("TLS: a client's certificate may be requested without being required", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, "cert: a.pem, key: a.key, clientCa: ca.pem, clientCert: request",
                         routes="- { service: api, chain: said }", chains=SAYING)
    expect_status(gateway.ask(), 200)
    expect_same("subject", t.main.requests[0].get("X-Subject") or "", "")
    check("unknown ca" in gateway.refuses(certificates().client(identity="stranger")).lower())


@case("RFC 9111 §3.5: a response to a client with a certificate is never sent to a client with another one", nginx=NO)
def _(t: Trial) -> None:
    made = certificates()
    if not (made / "bert.pem").exists():
        made.leaf("bert", "email:bert@a.test", subject="/O=Example/CN=bert")
    gateway = TlsGateway(
        t, "cert: a.pem, key: a.key, clientCa: ca.pem",
        routes="- { service: api, chain: shared, match: { path: /shared/** } }\n  - { service: api, chain: private }",
        chains="shared: { middlewares: [httpCache] }, private: { middlewares: [{ httpCache: { mode: private } }] }")

    t.origin(answering(*(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\n%d" % number for number in range(1, 9))))

    def ask(path: bytes, identity: str) -> bytes:
        return gateway.ask(head(start=b"GET %s HTTP/1.1" % path), gateway.connect(context=made.client(identity=identity))).body

    expect_same("private", [ask(b"/private", who) for who in ("anna", "bert", "anna", "bert")], [b"1", b"2", b"1", b"2"])
    expect_same("shared", [ask(b"/shared/", who) for who in ("anna", "bert", "anna")], [b"3", b"4", b"5"])


@case("TLS: a name in a certificate cannot become another field, another name, or an oversized value", nginx=NO)
def _(t: Trial) -> None:
    def general(tag: int, text: bytes) -> bytes:
        return bytes([0x80 | tag, len(text)]) + text

    made = certificates()
    if not (made / "evil.pem").exists():
        names = general(2, b"a.test\0.evil") + general(6, b"x:y\r\nX-Evil: 2,DNS:root") + general(1, "ü@x %".encode())
        made.leaf("evil", "DER:" + (bytes([0x30, len(names)]) + names).hex(":"), subject="/O=Ex\r\nX-Evil: 1,CN\\=root/CN=j\u00fcrgen \"\\+<;")
        made.leaf("huge", "DNS:huge.test", subject="".join(f"/OU={index:060}" for index in range(600)) + "/CN=huge")
    gateway = TlsGateway(t, "cert: a.pem, key: a.key, clientCa: ca.pem", routes="- { service: api, chain: said }", chains=SAYING)
    expect_status(gateway.ask(client=gateway.connect(context=made.client(identity="evil"))), 200)
    request = t.main.requests[0]
    expect_same("fields", request.all("X-Evil"), [])
    subject, names = request.get("X-Subject"), request.get("X-San")
    check("\\0D\\0AX-Evil: 1\\,CN=root" in subject and all(0x20 <= ord(each) < 0x7f for each in subject), subject)
    expect_same("names", names, "DNS:a.test%00.evil,URI:x:y%0D%0AX-Evil:%202%2CDNS:root,email:%C3%BC@x%20%25")
    expect_status(gateway.ask(client=gateway.connect(context=made.client(identity="huge"))), 200)
    subject = t.main.requests[1].get("X-Subject")
    check(subject.startswith("CN=huge,OU=") and subject.count("OU=") == 600, len(subject), subject[:100])


# --- bad handshakes

for label, data in [("plain HTTP", GET), ("garbage", b"\x00" * 200), ("a record that is too long", b"\x16\x03\x01\xff\xff" + b"a" * 100),
                    ("an alert", b"\x15\x03\x01\x00\x02\x02\x28"), ("a hello that is cut", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")]:

    @case(f"TLS: {label} in place of a handshake ends only its connection", nginx=NO)
    def _(t: Trial, data: bytes = data) -> None:
        gateway = TlsGateway(t)
        other = gateway.connect()
        client = Wire(gateway.raw())
        client.send(data)
        check(client.ends(2) or client.buffer, "it stays open")
        is_http = data == GET  # it could not read an alert
        check(is_http or not client.buffer or client.buffer[0] == 0x15, "no alert:", bytes(client.buffer))
        check(not is_http or client.buffer.startswith(b"HTTP/1.1 400 Bad Request\r\n"), "no answer:", bytes(client.buffer))
        expect_status(gateway.ask(client=other), 200)


@case("TLS: a handshake that takes too long is cut off", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, "cert: a.pem, key: a.key, handshakeTimeout: 300ms")
    silent, slow = Wire(gateway.raw()), Wire(gateway.raw())
    start = time.monotonic()
    for byte in b"\x16\x03\x01\x02\x00":
        slow.send(bytes([byte]))
        pause(0.05, Why.SLOW)
    check(silent.ends(2) and slow.ends(2), "it stays open")
    check(0.2 < time.monotonic() - start < 1.5, time.monotonic() - start)
    client = gateway.connect()
    pause(0.4, Why.PASSES)
    expect_status(gateway.ask(client=client), 200)


@case("TLS: a hello may arrive byte by byte, and a client may leave within the handshake", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = certificates().client().wrap_bio(incoming, outgoing, server_hostname="a.test")
    sock = Wire(gateway.raw())
    for _ in range(10):
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.dribble(outgoing.read())
            sock.fill()
            incoming.write(sock.take(len(sock.buffer)))
    sock.send(outgoing.read())
    tls.write(GET)
    sock.dribble(outgoing.read())
    sock.fill()
    for _ in range(20):
        hello = Wire(gateway.raw())
        hello.send(b"\x16\x03\x01\x02\x00\x01")
        hello.close()
    expect_status(gateway.ask(), 200)


# --- sessions

for label, version in [("1.2", ssl.TLSVersion.TLSv1_2), ("1.3", ssl.TLSVersion.TLSv1_3)]:

    @case(f"TLS {label}: a session is resumed on any loop, and after a reload", nginx=NO)
    def _(t: Trial, version: ssl.TLSVersion = version) -> None:
        gateway = TlsGateway(t, workers=2)
        context = certificates().client()
        context.minimum_version = context.maximum_version = version
        client = gateway.connect(context=context)
        expect_status(gateway.ask(client=client), 200)
        session = client.sock.session
        for turn in range(20):
            if turn == 10:
                gateway.reload(gateway.file.read_text().replace("idle: 5s", "idle: 6s"))
            client = gateway.connect(context=context, session=session)
            check(client.sock.session_reused, f"connection {turn} begins anew")
            expect_status(gateway.ask(client=client), 200)


# --- messages under TLS

@case("TLS: several requests in one record, and a request in a record for each byte, are answered", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    client = gateway.connect()
    client.send(GET * 20)
    for _ in range(20):
        expect_status(client.read_response(), 200)
    for index in range(len(GET)):
        client.send(GET[index:index + 1])
    expect_status(client.read_response(), 200)


@case("TLS: 16 MiB pass in each direction at once, on several connections", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=", tls: { ca: ca.pem }", workers=2)
    body = os.urandom(1 << 20) * 16

    def reflect(connection: OriginConnection) -> None:
        request = connection.read_request(with_content=False)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n" % request.get("Content-Length").encode())
        for _ in range(256):
            connection.send(connection.read_exactly(len(body) // 256))

    t.origin(secure(reflect))
    problems: list[str] = []

    def exchange() -> None:
        request = head(b"Content-Length: %d" % len(body), start=b"POST / HTTP/1.1") + body
        got = pump(gateway.connect(), request, lambda got: len(got) >= len(body) + got.find(b"\r\n\r\n") + 4)
        if not got.startswith(b"HTTP/1.1 200") or not got.endswith(body):
            problems.append(f"{len(got)} bytes, {bytes(got[:200])!r}")

    threads = [threading.Thread(target=exchange) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    check(not problems and not any(thread.is_alive() for thread in threads), problems)


@case("TLS: a client that reads slowly receives all content, and memory stays bounded", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=", tls: { ca: ca.pem }")
    size = 32 << 20

    def large(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(32):
            connection.send(b"x" * (1 << 20))

    t.origin(secure(large))
    before = gateway.process.status("VmRSS")
    client = gateway.connect()
    client.send(GET)
    pause(0.7, Why.NOTHING)
    check(gateway.process.status("VmRSS") - before < 12_000, "KiB more:", gateway.process.status("VmRSS") - before)
    expect_same("length", len(client.read_response().body), size)


@case("TLS: content that ends with the connection ends with close_notify", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    t.origin(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
    client = gateway.connect()
    client.sock.sendall(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    answer = b""
    while data := client.sock.recv(1000):  # an end without close_notify raises
        answer += data
    check(answer.endswith(b"\r\n\r\nhello"), answer)


@case("RFC 8446 §6.1: a response that is cut off ends without close_notify", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)

    def cut(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        connection.reset()

    t.origin(cut)
    client = gateway.connect()
    client.sock.sendall(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    try:
        while client.sock.recv(1000):
            pass
        check(False, "it ends as if it were whole")
    except OSError:
        pass


@case("TLS: an idle connection is closed with close_notify; a drain lets exchanges finish", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, listener=", limits: { idleTimeout: 300ms }")
    client = gateway.connect()
    expect_status(gateway.ask(client=client), 200)
    expect_same("end", client.sock.recv(100), b"")

    def late(connection: OriginConnection) -> None:
        connection.serve()
        pause(0.4, Why.SLOW)
        connection.send(OK)

    t.origin(late)
    client = gateway.connect()
    client.send(GET)
    pause(0.1, Why.BEFORE)
    gateway.process.signal(signal.SIGTERM)
    response = client.read_response()
    expect_status(response, 200)
    check("close" in response.options(), response)
    expect_same("exit", gateway.process.wait(3), 0)


@case("TLS: a tunnel after 101, with TLS on both sides, ends in both directions", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=", tls: { ca: ca.pem }")

    def reflect(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        while connection.fill():
            connection.send(connection.take(len(connection.buffer)))

    t.origin(secure(reflect))
    client = gateway.connect()
    client.send(head(b"Connection: Upgrade", b"Upgrade: echo"))
    expect_same("head", client.read_head().start, b"HTTP/1.1 101 Switching Protocols")
    for size in (1, 100, 70_000, 300_000):
        data = os.urandom(size)
        check(pump(client, data, lambda got: len(got) >= size) == data, f"{size} bytes come back otherwise")
    client.close()
    check(eventually(lambda: t.main.connections[-1].at_end), "the origin server's side stays open")


@case("TLS: a forward listener under TLS accepts CONNECT", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, listener=', mode: forward, forward: { connectPorts: [@MAIN@], denyPrivate: false }',
                         routes="- { service: passthrough }\n  - { service: api }")
    client = gateway.connect()
    client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (t.main.port, t.main.port))
    expect_status(client.read_response("CONNECT"), 200)
    client.send(GET)
    expect_same("body", client.read_response().body, b"ok")


@case("TLS: wares know that the client's connection is encrypted", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t, routes="- { service: api, chain: told }", chains="told: { middlewares: [{ forwarded: { style: both } }] }")
    expect_status(gateway.ask(), 200)
    expect_same("X-Forwarded-Proto", t.main.requests[0].all("X-Forwarded-Proto"), ["https"])
    check("proto=https" in t.main.requests[0].get("Forwarded"), t.main.requests[0])


# --- HTTP/2 by ALPN (RFC 7301, RFC 9113 §3.2), downstream and upstream

@case("RFC 9113 §3.2: HTTP/2 is negotiated by ALPN, unless the listener's alpn omits it", nginx=NO)
def _(t: Trial) -> None:
    for alpn, agreed in (("", "h2"), (", alpn: [http/1.1]", "http/1.1"), (", alpn: [http/1.1, h2]", "http/1.1")):
        gateway = TlsGateway(t, f"cert: a.pem, key: a.key{alpn}")
        context = certificates().client()
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = context.wrap_socket(gateway.raw(), server_hostname="a.test")
        expect_same(f"agreed with {alpn!r}", sock.selected_alpn_protocol(), agreed)
        if agreed == "h2":
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
            expect_same("a SETTINGS frame", sock.recv(9)[3:5], b"\x04\0")


@case("RFC 9113 §3.2: HTTP/2 under TLS to clients and to the origin server carries content in both directions", nginx=NO)
def _(t: Trial) -> None:
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    t.origin(echo)
    inner = TlsGateway(t)
    outer = TlsGateway(t, url=f"https://127.0.0.1:{inner.port}", service=", protocol: h2, tls: { ca: ca.pem, serverName: a.test }")
    file = t.setup.place.subfolder("h2") / "file"
    file.write_bytes(os.urandom(3_000_000))
    result = subprocess.run(["curl", "-sS", "--fail", "--max-time", "10", "--http2", "--cacert", str(certificates() / "ca.pem"), "--noproxy", "",
                             "--resolve", f"a.test:{outer.port}:127.0.0.1", "-w", "%{http_version}", "--data-binary", f"@{file}",
                             f"https://a.test:{outer.port}/"], capture_output=True)
    check(result.returncode == 0, result.stderr)
    check(result.stdout[:-1] == file.read_bytes() and result.stdout[-1:] == b"2", "content or version differ", len(result.stdout))
    check("2 httpware" in (t.main.requests[0].get("Via") or ""), "the hop between was not HTTP/2:", t.main.requests[0])


@case("RFC 7301 §3.2: an origin server that does not agree to HTTP/2 is 502", nginx=NO)
def _(t: Trial) -> None:
    inner = TlsGateway(t, "cert: a.pem, key: a.key, alpn: [http/1.1]")
    outer = TlsGateway(t, url=f"https://127.0.0.1:{inner.port}", service=", protocol: h2, tls: { ca: ca.pem, serverName: a.test }")
    client = outer.connect()
    client.send(head())
    response = client.read_response()
    expect_status(response, 502)
    check("tls_" in (response.get("Proxy-Status") or ""), response)


# --- clients that others wrote

@case("TLS: curl is served in both versions, with and without content, and through a proxy under TLS", nginx=NO)
def _(t: Trial) -> None:
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    gateway = TlsGateway(t, more='  proxy: { bind: "127.0.0.1:@OTHER@", mode: forward, forward: { denyPrivate: false },'
                         f' tls: {{ cert: {certificates() / "a.pem"}, key: {certificates() / "a.key"} }} }}',
                         routes="- { listener: web, service: api }\n  - { listener: proxy, service: passthrough }")
    t.origin(echo)
    file = t.setup.place.subfolder("curl") / "file"
    file.write_bytes(os.urandom(300_000))

    def curl(*arguments: str) -> bytes:
        result = subprocess.run(["curl", "-sS", "--fail", "--max-time", "10", "--cacert", str(certificates() / "ca.pem"), "--noproxy", "",
                                 "--resolve", f"a.test:{gateway.port}:127.0.0.1", *arguments], capture_output=True)
        check(result.returncode == 0, arguments, result.stderr)
        return result.stdout

    url = f"https://a.test:{gateway.port}/"
    for version in (["--tlsv1.3"], ["--tls-max", "1.2"], ["--http1.0"], ["--http2"]):
        expect_same(f"curl {version}", curl(*version, "--data-binary", f"@{file}", url), file.read_bytes())
    expect_same("two on one connection", curl("-w", "%{num_connects} %{http_version} ", url, url, "-o", "/dev/null", "-o", "/dev/null"), b"1 2 0 2 ")
    expect_same("without HTTP/2", curl("--http1.1", "-w", "%{http_version}", url, "-o", "/dev/null"), b"1.1")
    expect_same("exit without the authority", subprocess.run(["curl", "-sS", "--max-time", "5", url.replace("a.test", "127.0.0.1")], capture_output=True).returncode, 60)
    proxied = curl("-x", f"https://127.0.0.1:{gateway.other}", "--proxy-cacert", str(certificates() / "ca.pem"), "--data", "hello",
                   f"http://127.0.0.1:{t.main.port}/")
    expect_same("through the proxy", proxied, b"hello")


@case("TLS: openssl s_client resumes sessions in both versions, and ends properly", nginx=NO)
def _(t: Trial) -> None:
    gateway = TlsGateway(t)
    file = t.setup.place.subfolder("session") / "session"

    def s_client(*arguments: str) -> str:
        return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port}", "-servername", "a.test", "-CAfile",
                               str(certificates() / "ca.pem"), "-verify_return_error", "-ign_eof", *arguments], capture_output=True, timeout=10,
                              input=b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").stdout.decode(errors="replace")

    for version in ("-tls1_2", "-tls1_3"):
        said = s_client(version, "-sess_out", str(file))
        for word in ("Verify return code: 0 (ok)", "HTTP/1.1 200 OK", "\nNew, ", "Compression: NONE"):
            check(word in said, f"{word!r} is not in:", said)
        check("\nReused, " in s_client(version, "-sess_in", str(file)), "it begins anew")
    check("Secure Renegotiation IS supported" in s_client("-tls1_2"))
    for weak in (["-tls1_2", "-cipher", "DHE-RSA-AES256-SHA"], ["-tls1_2", "-cipher", "AES256-GCM-SHA384"], ["-tls1_3", "-groups", "secp521r1"]):
        check("HTTP/1.1 200" not in s_client(*weak), weak)


# --- origin servers under TLS

def https(t: Trial, script: Script, tls: str = "ca: ca.pem", url: str = "https://127.0.0.1:@MAIN@", **more) -> TlsGateway:
    t.origin(script)
    return TlsGateway(t, url=url, service=f", tls: {{ {tls} }}" if tls else "", **more)


def expect_fault(response: Message, status: int, fault: str) -> None:
    expect_status(response, status)
    expect_same("fault", proxy_error(response), fault)
    expect_same("type", response.get("Content-Type"), "application/problem+json")


for label, name, tls, url in [
        ("a certificate for another name", "named", "ca: ca.pem", "https://127.0.0.1:@MAIN@"),
        ("a certificate for an address in place of a name", "stranger", "ca: other.pem", "https://localhost:@MAIN@"),
        ("an expired certificate", "expired", "ca: ca.pem", "https://127.0.0.1:@MAIN@"),
        ("a self-signed certificate", "self", "ca: ca.pem", "https://127.0.0.1:@MAIN@"),
        ("a certificate of an unknown authority", "stranger", "ca: ca.pem", "https://127.0.0.1:@MAIN@"),
        ("a certificate that the system does not trust", "a", "", "https://127.0.0.1:@MAIN@"),
        ("a certificate that is not for serverName", "a", "ca: ca.pem, serverName: other.test", "https://127.0.0.1:@MAIN@")]:

    @case(f"https upstream: {label} is 502", nginx=NO)
    def _(t: Trial, name: str = name, tls: str = tls, url: str = url) -> None:
        gateway = https(t, secure(ok, name), tls, url)
        expect_fault(gateway.ask(), 502, "tls_certificate_error")
        expect_same("requests", len(t.main.requests), 0)


@case("https upstream: the certificate is verified by address, by name, and by serverName, which the origin server receives", nginx=NO)
def _(t: Trial) -> None:
    seen: list = []

    def watching(context: ssl.SSLContext) -> ssl.SSLContext:
        context.sni_callback = lambda sock, name, _: seen.append(name)
        context.set_alpn_protocols(["http/1.1"])
        return context

    for url, tls, name, asked in [("https://127.0.0.1:@MAIN@", "ca: ca.pem", "a", None), ("https://localhost:@MAIN@", "ca: ca.pem", "a", "localhost"),
                                  ("https://127.0.0.1:@MAIN@", "ca: ca.pem, serverName: origin.test", "named", "origin.test")]:
        seen.clear()
        gateway = https(t, secure(ok, context=watching(certificates().server(name))), tls, url)
        expect_status(gateway.ask(), 200)
        expect_same("SNI", seen, [asked])
        expect_same("Host", t.main.requests[0].get("Host"), url.removeprefix("https://").replace("@MAIN@", str(t.main.port)))
        sock = t.main.used[0].sock
        expect_same("protocol", (sock.version(), sock.selected_alpn_protocol()), ("TLSv1.3", "http/1.1"))
        gateway.process.stop()


@case("https upstream: insecureSkipVerify accepts each certificate, and causes a warning at the start and in check", nginx=NO)
def _(t: Trial) -> None:
    gateway = https(t, secure(ok, "self"), "insecureSkipVerify: true")
    expect_status(gateway.ask(), 200)
    check("insecureSkipVerify" in gateway.process.log and "warning" in gateway.process.log, gateway.process.log)
    result = run(t, "check", "-c", str(gateway.file))
    expect_same("exit", result.returncode, 0)
    check("warning: services.api.tls.insecureSkipVerify" in result.stderr, result.stderr)


@case("https upstream: the client certificate is sent", nginx=NO)
def _(t: Trial) -> None:
    context = certificates().server()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates() / "ca.pem")
    gateway = https(t, secure(ok, context=context), "ca: ca.pem, cert: anna.pem, key: anna.key")
    expect_status(gateway.ask(), 200)
    subject = dict(part[0] for part in t.main.used[0].sock.getpeercert()["subject"])
    expect_same("subject", subject["commonName"], "anna")


for label, version in [("1.2", ssl.TLSVersion.TLSv1_2), ("1.3", ssl.TLSVersion.TLSv1_3)]:

    @case(f"https upstream: an origin server that requires a certificate refuses, TLS {label}", nginx=NO)
    def _(t: Trial, version: ssl.TLSVersion = version) -> None:
        context = certificates().server()
        context.maximum_version = version
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates() / "ca.pem")
        gateway = https(t, secure(ok, context=context))
        expect_fault(gateway.ask(), 502, "tls_alert_received")


def silent(connection: OriginConnection) -> None:
    connection.fill()
    pause(4, Why.SLOW)


def leaving(_: OriginConnection) -> None:
    pass


for label, script, status, fault in [("speaks no TLS", answering(OK), 502, "tls_protocol_error"), ("sends nothing", silent, 504, "connection_timeout"),
                                     ("leaves", leaving, 502, "connection_terminated")]:

    @case(f"https upstream: an origin server that {label} in place of a handshake is {status}", nginx=NO)
    def _(t: Trial, script: Script = script, status: int = status, fault: str = fault) -> None:
        def quietly(connection: OriginConnection) -> None:
            connection.fill()
            connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n") if script is not silent and script is not leaving else script(connection)

        gateway = https(t, quietly)
        expect_fault(gateway.ask(), status, fault)


@case("https upstream: connections are reused, and new connections resume sessions", nginx=NO)
def _(t: Trial) -> None:
    context = certificates().server()
    gateway = https(t, secure(ok, context=context))
    client = gateway.connect()
    for _ in range(5):
        expect_status(gateway.ask(client=client), 200)
    expect_same("connections", len(t.main.used), 1)

    reused: list[bool] = []

    def once(connection: OriginConnection) -> None:
        connection.serve()
        reused.append(connection.sock.session_reused)
        connection.send(OK)

    t.origin(secure(once, context=context))
    for _ in range(4):
        expect_status(gateway.ask(client=client), 200)
    expect_same("sessions reused", reused, [True] * 4)


@case("https upstream: an idle connection that the origin server closed is not used", nginx=NO)
def _(t: Trial) -> None:
    def once(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(OK)
        connection.sock = connection.sock.unwrap()

    gateway = https(t, secure(once))
    client = gateway.connect()
    for _ in range(5):
        response = gateway.ask(head(b"Content-Length: 1", start=b"POST / HTTP/1.1") + b"x", client, "POST")
        expect_status(response, 200)
        pause(0.02, Why.SLOW)


for label, is_clean in [("with close_notify is whole", True), ("without close_notify is cut off", False)]:

    @case(f"RFC 8446 §6.1: content that ends with the connection {label}", nginx=NO)
    def _(t: Trial, is_clean: bool = is_clean) -> None:
        def ending(connection: OriginConnection) -> None:
            connection.serve()
            connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
            if is_clean:
                connection.sock = connection.sock.unwrap()

        gateway = https(t, secure(ending))
        client = gateway.connect()
        client.send(GET)
        response = client.read_response()
        expect_same("whole", (response.whole, response.body), (is_clean, b"hello"))


@case("https upstream: a length that is complete needs no close_notify", nginx=NO)
def _(t: Trial) -> None:
    def ending(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(OK)

    gateway = https(t, secure(ending))
    for _ in range(3):
        expect_status(gateway.ask(), 200)


@case("https upstream: the next endpoint is tried if the certificate of one is not trusted", nginx=NO)
def _(t: Trial) -> None:
    t.origin(secure(ok, "self"), "second")
    gateway = TlsGateway(t, url=f"https://127.0.0.1:{t.setup.origins['second'].port}", service=", tls: { ca: ca.pem }")
    text = gateway.file.read_text().replace("baseUrl: ", "endpoints: [").replace(
        f"{t.setup.origins['second'].port}\"", f"{t.setup.origins['second'].port}\", \"https://127.0.0.1:{t.main.port}\"]")
    t.origin(secure(ok))
    gateway.reload(text)
    for _ in range(4):
        expect_status(gateway.ask(), 200)


@case("https origins are reached through a forward listener, by the system's trusted certificates", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("forward")
    port = free_port()
    (folder / "httpware.yaml").write_text(f"""version: 1
listeners: {{ proxy: {{ bind: "127.0.0.1:{port}", mode: forward, forward: {{ denyPrivate: false }} }} }}
routes: [{{ service: passthrough }}]
""")
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [port],
                                    environment={"SSL_CERT_FILE": str(certificates() / "ca.pem")})
    t.at_end(process.stop)
    client = Wire(socket.create_connection(("127.0.0.1", port), 5))
    t.clients.append(client)
    for name, status in [("a", 200), ("stranger", 502)]:
        t.origin(secure(ok, name))
        client.send(b"GET https://127.0.0.1:%d/x HTTP/1.1\r\nHost: ignored\r\n\r\n" % t.main.port)
        response = client.read_response()
        expect_status(response, status)
        if status == 200:
            expect_same("request", (t.main.requests[0].target, t.main.requests[0].get("Host")), ("/x", f"127.0.0.1:{t.main.port}"))
        else:
            expect_same("fault", proxy_error(response), "tls_certificate_error")
    t.origin(ok)  # clear text on the same port is another connection, and another pool
    client.send(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: ignored\r\n\r\n" % t.main.port)
    expect_status(client.read_response(), 200)


# --- files

@case("TLS: certificates are read again on a reload, and invalid ones are refused", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("certificates")
    (folder / "a.pem").write_bytes((certificates() / "a.pem").read_bytes())
    (folder / "a.key").write_bytes((certificates() / "a.key").read_bytes())
    gateway = TlsGateway(t, files=str(folder))

    def shown() -> bytes:
        return gateway.connect().sock.getpeercert(True)

    first, old = shown(), gateway.connect()
    (folder / "a.pem").write_bytes((certificates() / "a2.pem").read_bytes())
    said = gateway.reload(good=False)
    check(f"{folder}/a.key: is not the key of the certificate in {folder}/a.pem" in said, said)
    expect_same("certificate after a bad reload", shown() == first, True)
    (folder / "a.key").write_bytes((certificates() / "a2.key").read_bytes())
    check("listeners.web changed" in gateway.reload(), gateway.process.log)
    expect_same("certificate after a reload", shown() == first, False)
    expect_status(gateway.ask(client=old), 200)


@case("TLS: a service's trusted certificates are read again on a reload", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("certificates")
    for name in ("a.pem", "a.key"):
        (folder / name).write_bytes((certificates() / name).read_bytes())
    (folder / "ca.pem").write_bytes((certificates() / "other.pem").read_bytes())
    t.origin(secure(ok))
    gateway = TlsGateway(t, url="https://127.0.0.1:@MAIN@", service=", tls: { ca: ca.pem }", files=str(folder))
    expect_status(gateway.ask(), 502)
    (folder / "ca.pem").write_bytes((certificates() / "ca.pem").read_bytes())
    check("services.api changed" in gateway.reload(), gateway.process.log)
    expect_status(gateway.ask(), 200)


@case("TLS: the system's trusted certificates are read again on a reload, if they have changed", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("system")
    roots, port = folder / "roots.pem", free_port()
    roots.write_bytes((certificates() / "other.pem").read_bytes())
    (folder / "httpware.yaml").write_text(f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:{port}" }}
  proxy: {{ bind: "127.0.0.1:{(proxy := free_port())}", mode: forward, forward: {{ denyPrivate: false }} }}
services: {{ api: {{ baseUrl: "https://127.0.0.1:{t.main.port}" }} }}
routes: [{{ listener: web, service: api }}, {{ listener: proxy, service: passthrough }}]
""")
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [port, proxy],
                                    environment={"SSL_CERT_FILE": str(roots)})
    t.at_end(process.stop)
    t.origin(secure(ok))

    def statuses() -> list[int]:
        found = []
        for where, target in ((port, b"/"), (proxy, b"https://127.0.0.1:%d/" % t.main.port)):
            client = Wire(socket.create_connection(("127.0.0.1", where), 5))
            t.clients.append(client)
            client.send(b"GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n" % target)
            found.append(client.read_response().status)
        return found

    def reloaded() -> None:
        before = process.log.count("reloaded: ")
        process.signal(signal.SIGHUP)
        check(eventually(lambda: process.log.count("reloaded: ") > before, 5), "no reload:", process.log)

    expect_same("before", statuses(), [502, 502])
    roots.write_bytes((certificates() / "ca.pem").read_bytes())
    expect_same("until a reload", statuses(), [502, 502])
    reloaded()
    expect_same("after the reload", statuses(), [200, 200])
    roots.write_text("nothing\n")  # what holds no certificate changes nothing
    reloaded()
    expect_same("with a broken file", statuses(), [200, 200])


def wrong(label: str, web: str, api: str, *words: str) -> None:
    @case(f"check: TLS: {label} is refused", nginx=NO)
    def _(t: Trial) -> None:
        folder = certificates().folder
        text = f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:8080"{web.replace('@', f'{folder}/')} }} }}
services: {{ api: {{ baseUrl: "http{'s' if 'tls' in api and 'plain' not in label else ''}://127.0.0.1:3000"{api.replace('@', f'{folder}/')} }} }}
routes: [{{ service: api }}]
"""
        result = checked(t, text)
        expect_same("exit", result.returncode, 1)
        for word in words:
            check(word.replace("@", f"{folder}/") in result.stderr, f"{word!r} is not in:", result.stderr)


wrong("a certificate that does not exist", ", tls: { cert: @none.pem, key: @a.key }", "", "file.yaml:2:", "listeners.web.tls.cert", "@none.pem: no such file")
wrong("a key of another certificate", ", tls: { cert: @a.pem, key: @wild.key }", "", "tls.key: @wild.key: is not the key of the certificate in @a.pem; use")
wrong("an encrypted key", ", tls: { cert: @a.pem, key: @locked.key }", "", "file.yaml:2:", "tls.key: @locked.key: the key is encrypted; use a key without")
wrong("a certificate in DER", ", tls: { cert: @a.der, key: @a.key }", "", "file.yaml:2:", "tls.cert: @a.der: contains no certificate in PEM; it looks like DER, which openssl x509")
wrong("an empty certificate", ", tls: { cert: @empty.pem, key: @a.key }", "", "file.yaml:2:", "tls.cert: @empty.pem: contains no certificate in PEM; the file is empty")
wrong("an empty key", ", tls: { cert: @a.pem, key: @empty.pem }", "", "tls.key: @empty.pem: contains no private key in PEM; the file is empty")
wrong("a directory", ", tls: { cert: @directory, key: @a.key }", "", "file.yaml:2:", "tls.cert: @directory: is a directory")
wrong("a request in place of a certificate", ", tls: { cert: @expired.csr, key: @expired.key }", "", "tls.cert: @expired.csr: contains no certificate in PEM")
wrong("authorities in DER", ", tls: { cert: @a.pem, key: @a.key, clientCa: @a.der }", "", "tls.clientCa: @a.der: contains no certificate in PEM; it looks like DER")
wrong("a certificate in place of a key", ", tls: { cert: @a.pem, key: @a.pem }", "", "@a.pem: contains no private key in PEM")
wrong("tls without a certificate", ", tls: {}", "", "listeners.web.tls", "needs cert, certificates, acme or internal")
wrong("a certificate without a key", ", tls: { cert: @a.pem }", "", "listeners.web.tls.cert", "has no effect without key")
wrong("clientCert without clientCa", ", tls: { cert: @a.pem, key: @a.key, clientCert: require }", "", "has no effect without clientCa")
wrong("an unknown version", ", tls: { cert: @a.pem, key: @a.key, minVersion: '1.1' }", "", "minVersion", "1.1")
wrong("an invalid OCSP response", ", tls: { certificates: [{ cert: @a.pem, key: @a.key, ocsp: @a.pem }] }", "", "@a.pem: is not a successful OCSP response")
wrong("a key in place of authorities", "", ", tls: { ca: @a.key }", "services.api.tls", "@a.key: contains no certificate in PEM")
wrong("tls for plain endpoints", "", ", tls: { ca: @ca.pem }", "services.api.tls", "no endpoint is https")
wrong("insecureSkipVerify beside ca", "", ", tls: { ca: @ca.pem, insecureSkipVerify: true }", "has no effect with insecureSkipVerify: true")


@case("check: TLS: a key that every user of the machine can read is a warning", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("open")
    (folder / "a.key").write_bytes((certificates() / "a.key").read_bytes())
    for mode, warns in ((0o644, True), (0o604, True), (0o640, False), (0o600, False)):
        (folder / "a.key").chmod(mode)
        result = checked(t, f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:8080", tls: {{ cert: {certificates().folder}/a.pem, key: {folder}/a.key }} }} }}
services: {{ api: {{ baseUrl: "https://example.com" }} }}
routes: [{{ service: api }}]
""")
        expect_same("exit", result.returncode, 0)
        expect_same(f"a warning at {mode:o}", f"warning: listeners.web.tls.key: {folder}/a.key: every user" in result.stderr, warns)


@case("check: TLS: an expired certificate is a warning", nginx=NO)
def _(t: Trial) -> None:
    folder = certificates().folder
    result = checked(t, f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:8080", tls: {{ cert: {folder}/expired.pem, key: {folder}/expired.key }} }} }}
services: {{ api: {{ baseUrl: "https://example.com" }} }}
routes: [{{ service: api }}]
""")
    expect_same("exit", result.returncode, 0)
    check("the certificate has expired" in result.stderr, result.stderr)


@case("TLS: a listener makes certificates for local names by itself, and refuses other names", nginx=NO)
def local_names(t: Trial) -> None:
    folder = t.setup.place.subfolder("internal")
    expect_same("ca init", run(t, "ca", "init", "--dir", str(folder / "ca")).returncode, 0)
    made = certificates()
    gateway = OwnGateway(t, "internal", f"""version: 1
listeners:
  web: {{{{ bind: "127.0.0.1:{{web}}", tls: {{{{ internal: {{{{ ca: "{folder / 'ca'}" }}}}, certificates: [{{{{ cert: "{made / 'a.pem'}", key: "{made / 'a.key'}" }}}}] }}}} }}}}
  plain: {{{{ bind: "127.0.0.1:{{admin}}", tls: {{{{ internal: {{{{ ca: "{folder / 'ca'}", names: [box.lan] }}}} }}}} }}}}
chains: {{{{ c: {{{{ middlewares: [{{{{ mock: {{{{ body: local }}}} }}}}] }}}} }}}}
routes: [{{{{ chain: c }}}}]
""")
    context = ssl.create_default_context(cafile=str(folder / "ca" / "ca.pem"))

    def names(port: int, name: str) -> list[str]:
        with socket.create_connection(("127.0.0.1", port), 5) as sock, context.wrap_socket(sock, server_hostname=name) as session:
            certificate = session.getpeercert()
            assert certificate
            return [str(value) for _, value in certificate["subjectAltName"]]

    for name in ("app.localhost", "a.b.test", "x.home.arpa"):
        expect_same(f"the names for {name}", names(gateway.web, name), [name])
    expect_same("the names for an address", names(gateway.admin, "127.0.0.1"), ["127.0.0.1"])
    expect_same("a name of the option", names(gateway.admin, "box.lan"), ["box.lan"])
    for port, name in ((gateway.web, "example.com"), (gateway.admin, "app.localhost")):
        try:
            names(port, name)
        except ssl.SSLError as error:
            check("unrecognized" in str(error).lower().replace("_", " "), f"{name} is refused by another alert:", error)
        else:
            check(False, f"{name} got a certificate")


@case("TLS: without an authority, `tls: internal` says how to make one, and a wrong word is named", nginx=NO)
def local_names_without_authority(t: Trial) -> None:
    text = """version: 1
listeners: { web: { bind: "127.0.0.1:1", tls: WORD } }
chains: { c: { middlewares: [{ mock: {} }] } }
routes: [{ chain: c }]
"""
    environment = {"XDG_DATA_HOME": "/nonexistent"}
    result = checked(t, text.replace("WORD", "internal"), environment=environment)
    check("there is no certificate authority in /nonexistent/httpware/ca; make one with httpware ca init" in result.stderr, result.stderr)
    result = checked(t, text.replace("WORD", "internl"), environment=environment)
    check('"internl" is not internal, nor a map of options; did you mean "internal"?' in result.stderr, result.stderr)
