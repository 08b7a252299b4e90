"""The built-in service of forward listeners, with settings from the file: its trusted certificates, its timeouts, its connections."""

from __future__ import annotations

import json
import signal

from Rig import http2 as h
from Rig.certificates import certificates
from Rig.origins import OriginConnection
from Rig.waits import Why, pause
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, run
from .http2_versions import ChoosingOrigin
from .intercept import Proxy


def trusting(name: str) -> str:
    return f", passthrough: {{ tls: {{ ca: '{certificates() / name}' }} }}"


def absolute(proxy: Proxy) -> Message:
    """The answer to a request whose target is an https URL, without a tunnel."""
    client = connect(("127.0.0.1", proxy.port), 10)
    proxy.t.clients.append(client)
    client.send(proxy.get(b"https://localhost:%d/a" % proxy.origin))
    return client.read_response()


def inside(proxy: Proxy) -> Message:
    client = proxy.secured(alpn=["http/1.1"])
    client.send(proxy.get())
    return client.read_response()


@case("passthrough: tls.ca is trusted in place of the system's roots, with and without tunnels, over HTTP/1.1 and HTTP/2", nginx=NO)
def _(t: Trial) -> None:
    origin = ChoosingOrigin("h2", "http/1.1")
    proxy = Proxy(t, origin, tls=False, services=trusting("ca.pem"), roots="other.pem")
    expect_same("absolute", (absolute(proxy).status, origin.spoken), (200, ["http/1.1"]))
    client = h.Http2Wire(proxy.secured(alpn=["h2"]))
    answer = client.ask(1, h.head("GET", "/a", scheme="https", authority=f"localhost:{proxy.origin}"))
    expect_same("inside", (answer.status, answer.body, origin.spoken[1:]), (200, b"h2", ["h2"]))


@case("passthrough: a host with another signature than that of tls.ca is 502, even if the system trusts it", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, ChoosingOrigin(), tls=False, services=trusting("other.pem"))
    for answer in (absolute(proxy), inside(proxy)):
        expect_status(answer, 502)


@case("passthrough: a reload applies another tls.ca, the changed content of its file, and its absence", nginx=NO)
def _(t: Trial) -> None:
    roots = t.setup.place.subfolder("roots") / "roots.pem"
    roots.write_bytes((certificates() / "other.pem").read_bytes())
    entry = f", passthrough: {{ tls: {{ ca: '{roots}' }} }}"
    proxy = Proxy(t, ChoosingOrigin(), tls=False, services=entry)

    def reload() -> None:
        before = proxy.process.log.count("reloaded: ")
        proxy.process.signal(signal.SIGHUP)
        check(eventually(lambda: proxy.process.log.count("reloaded: ") > before, 5), proxy.process.log)

    expect_status(absolute(proxy), 502)
    roots.write_bytes((certificates() / "ca.pem").read_bytes())
    reload()
    check(eventually(lambda: absolute(proxy).status == 200, 3), "the file's new content is not trusted")
    expect_status(inside(proxy), 200)
    proxy.file.write_text(proxy.text.replace(str(roots), str(certificates() / "other.pem")))
    reload()
    check(eventually(lambda: absolute(proxy).status == 502, 3), "the former file is still trusted")
    expect_status(inside(proxy), 502)
    proxy.file.write_text(proxy.text.replace(entry, ""))
    reload()
    check(eventually(lambda: absolute(proxy).status == 200, 3), "the system's roots are not trusted again")


@case("passthrough: timeouts.response and pool.maxIdle are those of the file", nginx=NO)
def _(t: Trial) -> None:
    def late(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            if request.target.endswith("/late"):
                pause(3, Why.SLOW)
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    proxy = Proxy(t, late, tls=False, services=", passthrough: { timeouts: { response: 300ms }, pool: { maxIdle: 0 } }")
    client = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(client)
    for path, status in ((b"/a", 200), (b"/b", 200), (b"/late", 504)):
        client.send(proxy.get(b"http://localhost:%d%s" % (proxy.origin, path)))
        expect_status(client.read_response(), status)
    expect_same("connections", len(t.main.connections), 3)


@case("passthrough: check, diff and explain include its settings", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("files")
    text = """version: 1
listeners: { dev: { mode: forward, bind: "127.0.0.1:0" } }
services: { passthrough: { timeouts: { response: %s } } }
routes: [{ service: passthrough }]
"""
    old, new = folder / "old.yaml", folder / "new.yaml"
    old.write_text(text % "20s")
    new.write_text(text % "40s")
    result = run(t, "check", "-c", str(old))
    expect_same("check", (result.returncode, result.stderr), (0, ""))
    result = run(t, "diff", str(old), str(new))
    check("services.passthrough: changed" in result.stdout and 'timeouts.response: "20s" → "40s"' in result.stdout, result)
    result = run(t, "explain", "GET", "-c", str(old), "http://example.com/")
    check("passthrough" in result.stdout and f"{old}:3" in result.stdout, result)
    schema = json.loads(run(t, "schema").stdout)
    own = schema["properties"]["services"]["properties"]["passthrough"]
    expect_same("schema", (sorted(own["properties"]), own["additionalProperties"], sorted(own["properties"]["tls"]["properties"])),
                (["limits", "pool", "timeouts", "tls"], False, ["ca"]))
