"""A forward proxy that reaches origin servers by another proxy: CONNECT, absolute-form, credentials, exceptions."""

from __future__ import annotations

import base64
import ssl
import subprocess
import threading

from Rig.certificates import certificates
from Rig.origins import OriginConnection, answering
from Rig.processes import free_port
from Rig.wire import Wire
from suite import Trial, case, check, connect, expect_same, expect_status

from .command import NO, checked
from .intercept import OK
from .refused_requests import head
from .tls import JoinedTls, secure


class Chained:
    """A gateway whose other proxy is scripted: `t.main` is that proxy."""

    def __init__(self, t: Trial, script, options: str = "", *, deny: str = "false", intercept: str = "", environment: dict[str, str] | None = None,
                 proxy: str | None = None):
        self.t, self.port = t, free_port()
        t.origin(script)
        folder = t.setup.place.subfolder("chained")
        proxy = proxy or f"url: 'http://anna:p%40ss@127.0.0.1:{t.main.port}'"
        if intercept:
            subprocess.run([t.setup.binary, "ca", "init", "--dir", str(folder / "ca")], capture_output=True, timeout=20, check=True)
        self.ca = folder / "ca" / "ca.pem"
        (folder / "httpware.yaml").write_text(f"""version: 1
listeners:
  dev:
    mode: forward
    bind: "127.0.0.1:{self.port}"
    {intercept}
    forward: {{ connectPorts: [443, 25, {t.setup.ports['second']}], denyPrivate: {deny}, upstreamProxy: {{ {proxy} {options} }} }}
routes: [{{ service: passthrough }}]
""")
        self.process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [self.port],
                                             environment={"SSL_CERT_FILE": str(certificates() / "ca.pem"), **(environment or {})})
        t.at_end(self.process.stop)

    def client(self) -> Wire:
        client = connect(("127.0.0.1", self.port), 10)
        self.t.clients.append(client)
        return client

    def tunnel(self, target: str = "a.test:443") -> tuple[Wire, object]:
        client = self.client()
        client.send(head(start=f"CONNECT {target} HTTP/1.1".encode(), host=f"Host: {target}\r\n".encode()))
        return client, client.read_response("CONNECT")

    def secured(self, client: Wire) -> Wire:
        """TLS with `a.test` in a tunnel."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(str(self.ca))
        inner = Wire(context.wrap_socket(client.sock, server_hostname="a.test"), 10)
        self.t.clients.append(inner)
        return inner

    def expect_absolute_form(self) -> None:
        """Requests without TLS go to the proxy in absolute form, with its credentials, on one connection."""
        for path in ("/x?y=z", "/"):
            expect_same("body", self.ask(f"http://a.test{path}").body, b"ok")
            request = self.t.main.requests[-1]
            expect_same("upstream", (request.target, request.get("Host"), request.get("Proxy-Authorization")),
                        (f"http://a.test{path}", "a.test", RIGHT))
        expect_same("connections", len(self.t.main.used), 1)

    def mail_tunnel(self) -> Wire:
        """A tunnel to a mail server; `expect_mail_tunnel` looks at how it was asked for."""
        client, response = self.tunnel("mail.test:25")
        expect_status(response, 200)
        return client

    def expect_mail_tunnel(self) -> None:
        request = self.t.main.requests[-1]
        expect_same("CONNECT", (request.start, request.get("Host"), request.get("Proxy-Authorization")),
                    (b"CONNECT mail.test:25 HTTP/1.1", "mail.test:25", RIGHT))

    def ask(self, url: str):
        client = self.client()
        authority = url.split("/")[2]
        client.send(head(start=f"GET {url} HTTP/1.1".encode(), host=f"Host: {authority}\r\n".encode()))
        return client.read_response()


RIGHT = "Basic " + base64.b64encode(b"anna:p@ss").decode()


def proxying(answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n", then=None, bytewise: bool = False):
    """A proxy that opens tunnels with these bytes, and is the host behind them."""

    def script(connection: OriginConnection) -> None:
        connection.requests.append(connection.read_request_head())
        connection.origin.requests.append(connection.requests[-1])
        connection.feed(answer, bytewise)
        if then:
            then(connection)

    return script


@case("upstreamProxy: a request without TLS goes to the proxy in absolute form, with its credentials", nginx=NO)
def _(t: Trial) -> None:
    Chained(t, answering(OK)).expect_absolute_form()


@case("upstreamProxy: a tunnel goes through a tunnel of the proxy's, and no byte is lost", nginx=NO)
def _(t: Trial) -> None:
    def mail(connection: OriginConnection) -> None:
        connection.fill()
        connection.send(b"250 " + bytes(connection.buffer))

    for bytewise in (False, True):
        for answer in (b"HTTP/1.1 200 OK\r\n\r\n220 mail\r\n", b"HTTP/1.0 200\r\nX-A: b\r\n\r\n220 mail\r\n", b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n220 mail\r\n"):
            if answer.startswith(b"HTTP/1.0 200\r"):
                answer = answer.replace(b"200\r", b"200 OK\r")
            chained = Chained(t, proxying(answer, mail, bytewise))
            client = chained.mail_tunnel()
            expect_same("greeting", client.read_until(b"\r\n"), b"220 mail\r\n")
            client.send(b"EHLO")
            expect_same("answer", client.read_exactly(8), b"250 EHLO")
            chained.expect_mail_tunnel()


@case("upstreamProxy: TLS inside a tunnel of the proxy's is verified against the host", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, proxying(then=secure(answering(OK))), intercept='intercept: { hosts: ["*"], ca: ca }')
    client, response = chained.tunnel()
    expect_status(response, 200)
    check(not t.main.requests, "the proxy was asked before the client has")
    inner = chained.secured(client)
    for _ in range(2):
        inner.send(head(host=b"Host: a.test\r\n"))
        expect_status(inner.read_response(), 200)
    expect_same("CONNECT", t.main.requests[0].start, b"CONNECT a.test:443 HTTP/1.1")
    expect_same("connections", len(t.main.used), 1)


@case("upstreamProxy: a refusal by the proxy is 502 for the client", nginx=NO)
def _(t: Trial) -> None:
    for answer in (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n", b"nonsense\r\n\r\n",
                   b"", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"):
        chained = Chained(t, proxying(answer))
        expect_status(chained.tunnel()[1], 502)


@case("RFC 9110 §9.3.6: only the status of an answer to CONNECT decides, and a refusal is named", nginx=NO)
def _(t: Trial) -> None:
    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n",
                   b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\n\n"):
        expect_status(Chained(t, proxying(answer)).tunnel()[1], 200)
    response = Chained(t, proxying(b"HTTP/1.1 407 No\r\n\r\n")).tunnel()[1]
    expect_status(response, 502)
    check(b"the upstream proxy refused: 407" in response.body, response.body)


@case("upstreamProxy: except, no_proxy and the environment choose the hosts", nginx=NO)
def _(t: Trial) -> None:
    second = t.origin(answering(OK), "second")
    direct = f"http://127.0.0.1:{second.port}/"
    Chained(t, answering(OK), ", except: [127.0.0.1]").ask(direct)
    expect_same("at the host", (len(second.requests), len(t.main.requests)), (1, 0))
    for value in ("*", "x.test,127.0.0.0/8", "127.0.0.1", f"127.0.0.1:{second.port}"):
        before = len(second.requests)
        chained = Chained(t, answering(OK), proxy="fromEnvironment: true",
                          environment={"http_proxy": f"127.0.0.1:{t.main.port}", "no_proxy": value})
        _ = chained.process  # the environment is read when the configuration is
        expect_status(chained.ask(direct), 200)
        expect_same(f"no_proxy={value}", len(second.requests), before + 1)
    chained = Chained(t, answering(OK), proxy="fromEnvironment: true",
                      environment={"http_proxy": f"http://127.0.0.1:{t.main.port}", "no_proxy": ".b.test"})
    expect_status(chained.ask("http://a.test/"), 200)
    expect_same("target", t.main.requests[-1].target, "http://a.test/")


@case("upstreamProxy: denyPrivate applies to addresses and known names; the proxy's own address is exempt", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, answering(OK), deny="true")
    expect_status(chained.ask("http://a.test/"), 200)
    for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1"):
        expect_status(chained.ask(f"http://{host}/"), 403)
        expect_status(chained.tunnel(f"{host}:443")[1], 403)
    expect_same("requests at the proxy", len(t.main.requests), 1)


@case("check: the password of upstreamProxy is masked, and its mistakes are named", nginx=NO)
def _(t: Trial) -> None:
    text = """version: 1
listeners: { dev: { mode: forward, bind: "127.0.0.1:8888", forward: { upstreamProxy: { url: "URL" } } } }
routes: [{ service: passthrough }]
"""
    for url in ("https://a:hunter@proxy.test:0", "http://a:hunter%zz@proxy.test", "http://proxy.test/path", "ftp://x"):
        result = checked(t, text.replace("URL", url))
        expect_same("exit", result.returncode, 1)
        check("http://proxy.corp:3128" in result.stderr and "hunter" not in result.stderr, result.stderr)
    authorities = f"{certificates() / 'ca.pem'}"
    expect_same("https", checked(t, text.replace("URL", "https://a:hunter@proxy.test:3129")).returncode, 0)
    expect_same("https, ca", checked(t, text.replace('"URL"', f'"https://proxy.test", ca: "{authorities}"')).returncode, 0)
    result = checked(t, text.replace('"URL"', f'"http://proxy.test", ca: "{authorities}"'))
    check("does not begin with https://" in result.stderr, result.stderr)
    result = checked(t, text.replace('"URL"', '"https://proxy.test", ca: missing.pem'))
    check("missing.pem" in result.stderr, result.stderr)
    result = checked(t, text.replace('url: "URL"', 'url: "http://p.test", fromEnvironment: true'))
    check("remove one of them" in result.stderr, result.stderr)


@case("upstreamProxy: a proxy that sends interim responses without end delays no other client", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.read_request_head()
        while connection.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100):
            pass

    chained = Chained(t, script, ", except: [127.0.0.1]")
    second = t.origin(answering(OK), "second")
    expect_status(chained.tunnel()[1], 502)
    expect_status(chained.ask(f"http://127.0.0.1:{second.port}/"), 200)


@case("upstreamProxy: a slow proxy opens an opaque tunnel, and its client's bytes wait in the kernel", nginx=NO)
def _(t: Trial) -> None:
    go = threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.requests.append(connection.read_request_head())
        go.wait(10)
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.read_rest()
        connection.origin.count = len(connection.received)
        connection.send(b"done")

    chained = Chained(t, script, intercept='intercept: { hosts: ["*"], ca: ca }')
    client, response = chained.tunnel()
    expect_status(response, 200)
    client.send(b"SSH-2.0-x\r\n")
    before = chained.process.status("VmRSS")
    client.sock.settimeout(0.7)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += client.sock.send(b"x" * 65536)
    except TimeoutError:
        pass
    check(chained.process.status("VmRSS") - before < 16 << 10, "grew to", chained.process.status("VmRSS"))
    go.set()
    client.sock.settimeout(10)
    client.end_sending()
    expect_same("answer", client.read_rest(), b"done")
    expect_same("bytes", t.main.count - len(b"SSH-2.0-x\r\n") >= sent, True)


@case("upstreamProxy: a tunnel to an address leads to that address through the other proxy, whatever the handshake names", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, proxying(then=secure(answering(OK))), intercept='intercept: { hosts: ["*"], ca: ca }', deny="true")
    client, response = chained.tunnel("93.184.216.34:443")
    expect_status(response, 200)
    inner = chained.secured(client)
    inner.send(head(host=b"Host: a.test\r\n"))
    expect_status(inner.read_response(), 200)
    expect_same("CONNECT", t.main.requests[0].start, b"CONNECT 93.184.216.34:443 HTTP/1.1")
    for host in ("127.1", "2130706433", "0x7f000001", "0177.0.0.1"):
        expect_status(chained.ask(f"http://{host}/"), 403)


def tls_url(t: Trial, ca: str = "ca") -> str:
    """The URL of a proxy that is reached by TLS, with credentials, and the authority that vouches for it."""
    return f"url: 'https://anna:p%40ss@127.0.0.1:{t.main.port}', ca: '{certificates() / (ca + '.pem')}'"


def strange() -> dict[str, str]:
    """An environment in which the system trusts another authority than the one of most certificates."""
    return {"SSL_CERT_FILE": str(certificates() / "other.pem")}


def secure_inside(script, name: str = "a"):
    """The script of a host under TLS, inside TLS with its proxy."""

    def wrapped(connection: OriginConnection) -> None:
        connection.sock = JoinedTls(connection.sock, certificates().server(name), server_side=True)
        script(connection)

    return wrapped


def echoing(connection: OriginConnection) -> None:
    if connection.buffer:
        connection.send(bytes(connection.buffer))
        connection.buffer.clear()
    while piece := connection.sock.recv(65536):
        connection.sock.sendall(piece)


def exchange_much(client: Wire, count: int) -> None:
    """Sends `size` bytes and reads them back at the same time."""
    data = bytes(range(256)) * (count // 256)
    sender = threading.Thread(target=lambda: client.sock.sendall(data))
    sender.start()
    check(client.read_exactly(len(data)) == data, "other bytes came back")
    sender.join(10)


@case("upstreamProxy: by TLS, a request without TLS goes to the proxy in absolute form, with its credentials", nginx=NO)
def _(t: Trial) -> None:
    Chained(t, secure(answering(OK)), proxy=tls_url(t), environment=strange()).expect_absolute_form()


@case("upstreamProxy: by TLS, a tunnel loses no byte, however its records are divided", nginx=NO)
def _(t: Trial) -> None:
    def greeting(connection: OriginConnection) -> None:
        connection.send(b"220 mail\r\n")
        echoing(connection)

    for bytewise in (False, True):
        for answer in (b"HTTP/1.1 200 OK\r\n\r\n220 more\r\n", b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n220 more\r\n"):
            chained = Chained(t, secure(proxying(answer, greeting, bytewise)), proxy=tls_url(t), environment=strange())
            client = chained.mail_tunnel()
            expect_same("greeting", client.read_exactly(20), b"220 more\r\n220 mail\r\n")
            exchange_much(client, 4 << 20)
            chained.expect_mail_tunnel()


@case("upstreamProxy: by TLS, TLS with a host is inside TLS with the proxy, and each certificate is verified", nginx=NO)
def _(t: Trial) -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + b"0123456789" * 500_000

    # The host's certificate is of an authority that the system trusts, the proxy's of the one that `ca` names.
    for host, proxy, status in (("stranger", "a", 200), ("a", "a", 502), ("stranger", "stranger", 502)):
        chained = Chained(t, secure(proxying(then=secure_inside(answering(large), host)), proxy), proxy=tls_url(t), environment=strange(),
                          intercept='intercept: { hosts: ["*"], ca: ca }')
        client, response = chained.tunnel()
        expect_status(response, 200)
        inner = chained.secured(client)
        for _ in range(2 if status == 200 else 1):
            inner.send(head(host=b"Host: a.test\r\n"))
            response = inner.read_response()
            expect_status(response, status)
            if status == 200:
                expect_same("body", len(response.body), 5_000_000)
        if status == 502:
            who = b"the proxy" if proxy == "stranger" else b"a.test"
            check(who in response.body and b"certificate" in response.body, response.body)
        if status == 200:
            starts = [request.start.split()[0] for request in t.main.requests]
            expect_same("requests on one connection", (starts, len(t.main.used)), ([b"CONNECT", b"GET", b"GET"], 1))
        check(proxy == "a" or not t.main.requests, "a proxy that is not trusted was asked")


@case("upstreamProxy: by TLS, a proxy without a valid certificate receives no byte of the request", nginx=NO)
def _(t: Trial) -> None:
    for name, ca in (("a", "other"), ("named", "ca"), ("expired", "ca")):
        chained = Chained(t, secure(answering(OK), name), proxy=tls_url(t, ca))
        response = chained.ask("http://a.test/")
        expect_status(response, 502)
        check(b"the proxy 127.0.0.1" in response.body, response.body)
        expect_status(chained.tunnel("mail.test:25")[1], 502)
        expect_same("requests", len(t.main.requests), 0)

    def plain(connection: OriginConnection) -> None:
        connection.fill()
        connection.origin.seen = bytes(connection.buffer)
        connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    chained = Chained(t, plain, proxy=tls_url(t))
    expect_status(chained.ask("http://a.test/"), 502)
    check(b"Authorization" not in t.main.seen and b"a.test" not in t.main.seen, t.main.seen)


@case("upstreamProxy: the environment may name a proxy under TLS", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, secure(answering(OK)), proxy="fromEnvironment: true",
                      environment={"http_proxy": f"https://127.0.0.1:{t.main.port}"})
    expect_status(chained.ask("http://a.test/"), 200)
    expect_same("target", t.main.requests[-1].target, "http://a.test/")
