"""The host at which a proxy that reads tunnels answers by itself: the page that hands out the authority's certificate."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl

from Rig.processes import free_port
from Rig.wire import Message
from suite import Trial, case, check, connect, expect_same, expect_status

from .command import NO, run
from .intercept import Proxy
from .refused_requests import head


def asked(t: Trial, port: int, path: str, method: str = "GET", host: str = "httpware.proxy") -> Message:
    client = connect(("127.0.0.1", port), 10)
    t.clients.append(client)
    client.send(head(start=f"{method} http://{host}{path} HTTP/1.1".encode(), host=f"Host: {host}\r\n".encode()))
    return client.read_response(method)


@case("httpware.proxy: the page explains and offers the certificate, and loads nothing from other hosts", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    answer = asked(t, proxy.port, "/")
    expect_same("page", (answer.status, answer.get("Content-Type")), (200, "text/html; charset=utf-8"))
    text = answer.body.decode()
    style = re.search("<style>(.*?)</style>", text, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    check(f"style-src 'sha256-{digest}'" in answer.get("Content-Security-Policy"), answer.get("Content-Security-Policy"))
    check("default-src 'none'" in answer.get("Content-Security-Policy") and "<script" not in text and "src=" not in text, text)
    der = ssl.PEM_cert_to_DER_cert(proxy.ca.read_text())
    check(":".join(f"{byte:02X}" for byte in hashlib.sha256(der).digest()) in text, "no fingerprint:", text)
    for link in re.findall('href="(/[^"]*)"', text):
        expect_same(link, asked(t, proxy.port, link).status, 200)
    for path, kind, content in (("/ca.pem", "application/x-pem-file", proxy.ca.read_bytes()), ("/ca.der", "application/pkix-cert", der),
                                ("/ca.crt", "application/x-x509-ca-cert", der), ("/ca.crt?again", "application/x-x509-ca-cert", der)):
        answer = asked(t, proxy.port, path)
        expect_same(path, (answer.status, answer.get("Content-Type"), answer.body), (200, kind, content))
    answer = asked(t, proxy.port, "/proxy.pac")
    expect_same("PAC", answer.get("Content-Type"), "application/x-ns-proxy-autoconfig")
    check(f'"PROXY 127.0.0.1:{proxy.port}"' in answer.body.decode(), answer.body)
    expect_same("upstream", t.main.requests, [])


@case("httpware.proxy: HEAD, other paths, other methods and other spellings of the host are answered", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    answer = asked(t, proxy.port, "/", "HEAD")
    expect_same("HEAD", (answer.status, answer.body), (200, b""))
    expect_same("other path", asked(t, proxy.port, "/ca.key").status, 404)
    expect_same("other method", asked(t, proxy.port, "/", "POST").status, 405)
    for host in ("HTTPWARE.Proxy", "httpware.proxy.", "httpware.proxy:80"):
        expect_same(host, asked(t, proxy.port, "/ca.pem", host=host).status, 200)
    for host in ("httpware.proxy:81", "a.httpware.proxy", "httpware.proxx"):
        check(asked(t, proxy.port, "/ca.pem", host=host).status != 200, host)


@case("httpware.proxy: the page is served inside a tunnel, too", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    proxy.process.stop()
    file = proxy.folder / "httpware.yaml"
    file.write_text(file.read_text().replace("connectPorts: [", "connectPorts: [80, 443, "))
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(file), "--workers", "1"], [proxy.port])
    t.at_end(process.stop)
    client, answer = proxy.connect("httpware.proxy", 80)
    expect_status(answer, 200)
    client.send(proxy.get(b"/ca.pem", host="httpware.proxy"))
    expect_same("certificate", client.read_response().body, proxy.ca.read_bytes())


@case("httpware.proxy: the listener's chain runs first, and its log has a line", nginx=NO)
def _(t: Trial) -> None:
    users = t.setup.place.subfolder("users") / "users.htpasswd"
    users.write_text("anna:$2b$04$qpyjXKh/tlE2Rv3eJLOywufhgQtvPPmQrfpnSdDI0WyoxM0HeYVry\n")  # myPassword
    proxy = Proxy(t, tls=False, chain=f"{{ basicAuth: {{ usersFile: '{users}' }} }}, {{ mock: {{ status: 418 }} }}")
    expect_status(asked(t, proxy.port, "/ca.pem"), 407)
    client = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(client)
    client.send(head(b"Proxy-Authorization: Basic " + base64.b64encode(b"anna:myPassword"), start=b"GET http://httpware.proxy/ca.pem HTTP/1.1",
                     host=b"Host: httpware.proxy\r\n"))
    expect_status(client.read_response(), 200)
    check('"responder":"gateway"' in proxy.lines(2)[1], proxy.lines(2))


@case("httpware.proxy: a listener without intercept passes the request on", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    folder = t.setup.place.subfolder("plain")
    (folder / "httpware.yaml").write_text(f"""version: 1
listeners: {{ out: {{ bind: "127.0.0.1:{port}", mode: forward, forward: {{ denyPrivate: false }} }} }}
services: {{ other: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
routes: [{{ match: {{ host: httpware.proxy }}, service: other }}]
""")
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml")], [port])
    t.at_end(process.stop)
    expect_same("body", asked(t, port, "/ca.pem").body, b"ok")
    expect_same("upstream", t.main.requests[-1].target, "/ca.pem")


@case("explain: the proxy's own host is explained", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    result = run(t, "explain", "-c", str(proxy.folder / "httpware.yaml"), "GET", "http://httpware.proxy/")
    check(result.returncode == 0 and "200" in result.stdout and "passthrough" not in result.stdout, result)
