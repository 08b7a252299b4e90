"""Reload: SIGHUP and --watch. Changes, kept state, and invalid files."""

from __future__ import annotations

import json
import os
import signal
import threading

from Rig.origins import OK, OriginConnection
from Rig.processes import free_port
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, run
from .refused_requests import head


class Gateway:
    """A process with a file that the case changes."""

    def __init__(self, t: Trial, *, text: str = "", watch: bool = False, workers: int = 2):
        self.t, self.port, self.other = t, free_port(), free_port()
        self.folder = t.setup.place.subfolder("reload")
        self.file = self.folder / "httpware.yaml"
        self.file.write_text(self.fill(text or self.text()))
        command = [t.setup.binary, "run", "-c", str(self.file), "--workers", str(workers)]
        self.process = t.setup.place.command(command + (["--watch"] if watch else []), [self.port])
        t.at_end(self.process.stop)

    def fill(self, text: str) -> str:
        for name, value in (("PORT", self.port), ("OTHER", self.other), ("MAIN", self.t.main.port), ("FOLDER", self.folder)):
            text = text.replace(f"@{name}@", str(value))
        return text

    @staticmethod
    def text(*, listeners: str = "", services: str = "", chains: str = "", routes: str = "", web: str = "", api: str = "") -> str:
        return f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:@PORT@"{web} }}
{listeners}
services:
  api: {{ baseUrl: "http://127.0.0.1:@MAIN@"{api} }}
{services}
chains:
  said: {{ middlewares: [{{ mock: {{ body: "said" }} }}] }}
  turns: {{ middlewares: [{{ mock: {{ sequence: [{{ body: "1" }}, {{ body: "2" }}, {{ body: "3" }}, {{ body: "4" }}] }} }}] }}
{chains}
routes:
{routes}
  - {{ match: {{ path: /turns }}, chain: turns }}
  - {{ name: rest, service: api }}
"""

    def words(self) -> int:
        log = self.process.log
        return log.count("reloaded: ")  # "not reloaded: " too

    def write(self, text: str) -> None:
        self.file.write_text(self.fill(text))

    def reload(self, text: str | None = None, *, good: bool = True) -> str:
        """Writes the file, asks for a reload, and answers what the log then says."""
        before, start = self.words(), len(self.process.log)
        if text is not None:
            self.write(text)
        self.process.signal(signal.SIGHUP)
        return self.awaited(before, start, good)

    def awaited(self, before: int, start: int, good: bool = True) -> str:
        check(eventually(lambda: self.words() > before, 5), "no reload:", self.process.log[start:])
        said = self.process.log[start:]
        expect_same(f"reloaded, by the log {said!r}", "not reloaded: " not in said, good)
        return said

    def client(self, port: int | None = None, timeout: float = 5) -> Wire:
        client = connect(("127.0.0.1", port or self.port), timeout)
        self.t.clients.append(client)
        return client

    def get(self, path: str = "/", port: int | None = None, client: Wire | None = None) -> tuple[int, bytes]:
        client = client or self.client(port)
        client.send(head(start=f"GET {path} HTTP/1.1".encode()))
        response = client.read_response()
        return response.status, response.body

    def refuses(self, port: int) -> bool:
        try:
            connect(("127.0.0.1", port)).close()
            return False
        except OSError:
            return True


SAID = "  - { name: said, match: { path: /said }, chain: said }"


@case("reload: a route is added, changed and removed, and the connection stays", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    expect_same("before", g.get("/said", client=client), (200, b"ok"))
    check("routes.said added" in g.reload(g.text(routes=SAID)), g.process.log)
    expect_same("added", g.get("/said", client=client), (200, b"said"))
    check("routes.said changed" in g.reload(g.text(routes=SAID.replace("/said", "/told"))), g.process.log)
    expect_same("changed", [g.get(path, client=client)[1] for path in ("/said", "/told")], [b"ok", b"said"])
    check("routes.said removed" in g.reload(g.text()), g.process.log)
    expect_same("removed", g.get("/told", client=client), (200, b"ok"))


@case("reload: a reload without a change is reported as such", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    check("reloaded: no change" in g.reload(), g.process.log)
    check("reloaded: no change" in g.reload("# a comment\n" + g.text()), g.process.log)


@case("reload: a listener is added and removed, and others keep their connections", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    g.get(client=client)
    check(g.refuses(g.other), "the other port is taken")
    g.reload(g.text(listeners='  more: { bind: "127.0.0.1:@OTHER@" }'))
    expect_same("added", g.get(port=g.other), (200, b"ok"))
    idle, busy = g.client(g.other), g.client(g.other)
    g.get(client=idle)
    gate = threading.Event()
    t.origin(lambda c: (c.serve(), gate.wait(5), c.send(OK)))
    busy.send(head())
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    g.reload(g.text())
    check(eventually(lambda: g.refuses(g.other)), "a removed listener still accepts")
    check(idle.ends(2), "an idle connection of a removed listener stays open")
    gate.set()
    response = busy.read_response()
    expect_same("in flight", (response.status, response.body), (200, b"ok"))
    check("close" in response.options(), "no Connection: close:", response)
    expect_same("the other listener's connection", g.get("/turns", client=client), (200, b"1"))


@case("reload: a removed listener still serves the connections in its queue", nginx=NO)
def _(t: Trial) -> None:
    lost = 0
    g = Gateway(t)
    for _ in range(5):
        g.reload(g.text(listeners='  more: { bind: "127.0.0.1:@OTHER@" }'))
        # The loops are kept busy by what they read, so that connections pile up.
        clients = [g.client(g.other) for _ in range(60)]
        for client in clients:
            client.send(head(start=b"GET /turns HTTP/1.1"))
        g.reload(g.text())
        for client in clients:
            try:
                lost += client.read_response().status != 200
            except Exception:
                lost += 1
    expect_same("lost", lost, 0)


@case("reload: a listener's port changes", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    g.get(client=client)
    g.reload(g.text().replace("@PORT@", "@OTHER@"))
    expect_same("the new port", g.get(port=g.other), (200, b"ok"))
    check(eventually(lambda: g.refuses(g.port)), "the old port still accepts")
    check(client.ends(2), "the old port's idle connection stays open")


@case("reload: a listener gets another name and keeps its socket and connections", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    g.get(client=client)
    g.reload(g.text().replace("web:", "front:"))
    expect_same("after", g.get(client=client), (200, b"ok"))


@case("reload: changed limits of a listener apply to open connections", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    expect_same("before", g.get("/" + "a" * 500, client=client)[0], 200)
    g.reload(g.text(web=", limits: { requestTarget: 256B }"))
    expect_same("after", g.get("/" + "a" * 500, client=client)[0], 414)
    expect_same("a new one", g.get("/" + "a" * 500)[0], 414)


@case("reload: the chain and trustedProxies of a listener change", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    expect_same("before", g.get(client=client), (200, b"ok"))
    g.reload(g.text(web=", chain: said"))
    expect_same("after", g.get(client=client), (200, b"said"))
    chains = '  fwd: { middlewares: [forwarded] }'
    for trusted, expected in (("", "127.0.0.1"), (', trustedProxies: ["127.0.0.0/8"]', "9.9.9.9, 127.0.0.1")):
        t.origin()
        g.reload(g.text(web=", chain: fwd" + trusted, chains=chains))
        client.send(head(b"X-Forwarded-For: 9.9.9.9"))
        expect_status(client.read_response(), 200)
        expect_same("X-Forwarded-For", t.main.requests[-1].get("X-Forwarded-For"), expected)


@case("reload: a listener becomes a proxy on the same port", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client = g.client()
    g.get(client=client)
    g.reload(g.text(web=", mode: forward, forward: { denyPrivate: false }").replace("service: api", "service: passthrough"))
    check(client.ends(2), "a connection to the gateway stays, though it is a proxy now")
    expect_same("origin form", g.get()[0], 400)
    proxied = g.client()
    proxied.send(f"GET http://127.0.0.1:{t.main.port}/ HTTP/1.1\r\nHost: 127.0.0.1:{t.main.port}\r\n\r\n".encode())
    expect_same("absolute form", proxied.read_response().status, 200)


@case("reload: a unix socket is added and removed", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    path = str(g.folder / "s")
    g.reload(g.text(listeners='  local: { bind: "unix:@FOLDER@/s" }'))
    client = connect(path)
    t.clients.append(client)
    expect_same("added", g.get(client=client), (200, b"ok"))
    g.reload(g.text(listeners='  local: { bind: "unix:@FOLDER@/s", limits: { head: 32KiB } }'))
    expect_same("changed", g.get(client=client), (200, b"ok"))
    g.reload(g.text())
    check(eventually(lambda: not os.path.exists(path)), "the socket's file stays")
    check(client.ends(2), "its connection stays")


@case("reload: a port in use causes the whole reload to be refused", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    said = g.reload(g.text(routes=SAID, listeners='  first: { bind: "127.0.0.1:@OTHER@" }\n  taken: { bind: "127.0.0.1:@MAIN@" }'), good=False)
    check("httpware.yaml:5:" in said and "listeners.taken" in said, "does not say which:", said)
    expect_same("routes", g.get("/said"), (200, b"ok"))
    check(g.refuses(g.other), "a listener of the refused configuration is open")


@case("reload: the idle connections of a changed service are closed, others stay", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, workers=1)
    client = g.client()

    seen: list[int] = []

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            seen.append(c.index)
            c.send(OK)

    t.origin(script)
    g.get(client=client)
    g.reload(g.text(routes=SAID))
    g.get(client=client)
    expect_same("one connection, while the service is the same", seen, [0, 0])
    g.reload(g.text(api=", pool: { maxIdle: 5 }"))
    g.get(client=client)
    expect_same("another connection for another pool", seen, [0, 0, 1])
    check(eventually(lambda: closed(t, 0)), "the former pool's connection stays open")


def closed(t: Trial, index: int) -> bool:
    """Whether the gateway has closed the origin's connection: its script got the end."""
    return not t.main.threads[index].is_alive()


@case("reload: requests to a removed service finish, then its connection ends", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, workers=1)
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            gate.wait(5)
            c.send(b"world")

    t.origin(script)
    client = g.client()
    client.send(head())
    client.read_until(b"hello")
    text = g.text().replace("service: api", "chain: said").replace('  api: { baseUrl: "http://127.0.0.1:@MAIN@" }\n', "")
    check("services.api removed" in g.reload(text), g.process.log)
    expect_same("others", g.get(), (200, b"said"))
    gate.set()
    client.read_until(b"world")
    expect_same("the same connection, by the new routes", g.get(client=client), (200, b"said"))
    check(eventually(lambda: closed(t, 0)), "the connection to a service that is gone stays open")


@case("reload: a running exchange finishes on the chain that it began with", nginx=NO)
def _(t: Trial) -> None:
    marks = "  mark: {{ postwares: [{{ responseHeaders: {{ set: {{ X-Plan: {plan} }} }} }}] }}"
    g = Gateway(t, text=Gateway.text(web=", chain: mark", chains=marks.format(plan="old")))
    gate = threading.Event()
    t.origin(lambda c: (c.serve(), gate.wait(5), c.send(OK), c.serve(), c.send(OK)))
    client = g.client()
    client.send(head())
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    g.reload(g.text(web=", chain: mark", chains=marks.format(plan="new")))
    gate.set()
    expect_same("in flight", client.read_response().get("X-Plan"), "old")
    client.send(head())
    expect_same("the next", client.read_response().get("X-Plan"), "new")


@case("reload: a running upload continues", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin()
    client = g.client()
    client.send(head(b"Content-Length: 10", start=b"POST / HTTP/1.1") + b"hello")
    g.reload(g.text(routes=SAID))
    client.send(b"world")
    expect_same("upload", client.read_response().status, 200)
    expect_same("content", t.main.requests[0].body, b"helloworld")


@case("reload: a tunnel outlives its listener", nginx=NO)
def _(t: Trial) -> None:
    def echo(c: OriginConnection) -> None:
        while c.fill():
            c.send(c.take(len(c.buffer)))

    t.origin(echo)
    proxy = '  proxy: { bind: "127.0.0.1:@OTHER@", mode: forward, forward: { connectPorts: [@MAIN@], denyPrivate: false } }'
    g = Gateway(t, text=Gateway.text(listeners=proxy, routes="  - { listener: proxy, service: passthrough }"))
    tunnel = g.client(g.other)
    tunnel.send(f"CONNECT 127.0.0.1:{t.main.port} HTTP/1.1\r\nHost: 127.0.0.1:{t.main.port}\r\n\r\n".encode())
    expect_status(tunnel.read_response("CONNECT"), 200)
    tunnel.send(b"hello")
    expect_same("before", tunnel.read_exactly(5), b"hello")
    g.reload(g.text())
    check(eventually(lambda: g.refuses(g.other)), "the listener is still there")
    tunnel.send(b"world")
    expect_same("after", tunnel.read_exactly(5), b"world")


@case("reload: a ware keeps its state, unless its options change", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_same("before", [g.get("/turns")[1] for _ in range(2)], [b"1", b"2"])
    g.reload(g.text(routes=SAID, chains="  another: { middlewares: [requestId, use: turns] }", web=", chain: another"))
    expect_same("kept, in another chain too", g.get("/turns")[1], b"3")
    g.reload(g.text().replace("sequence: [", "sequence: [{ body: \"0\" }, "))
    expect_same("begun anew", g.get("/turns")[1], b"0")


@case("reload: an entry that moves keeps its state; its label identifies it", nginx=NO)
def _(t: Trial) -> None:
    def entry(before: str, label: str) -> str:
        return f"  lab: {{ middlewares: [{before}{{ mock: {{ sequence: [{{ body: a }}, {{ body: b }}, {{ body: c }}] }}, as: {label} }}] }}"

    route = "  - { match: { path: /lab }, chain: lab }"
    g = Gateway(t, text=Gateway.text(chains=entry("", "one"), routes=route))
    expect_same("before", g.get("/lab")[1], b"a")
    g.reload(g.text(chains=entry("requestId, ", "one"), routes=route))
    expect_same("moved", g.get("/lab")[1], b"b")
    g.reload(g.text(chains=entry("requestId, ", "two"), routes=route))
    expect_same("another label", g.get("/lab")[1], b"a")


@case("reload: the file of a ware's answer is read again", nginx=NO)
def _(t: Trial) -> None:
    chains, route = "  page: { middlewares: [{ mock: { file: @FOLDER@/page.txt } }] }", "  - { match: { path: /page }, chain: page }"
    folder = t.setup.place.subfolder("page")
    text = Gateway.text(chains=chains.replace("@FOLDER@", str(folder)), routes=route)
    (folder / "page.txt").write_text("first")
    g = Gateway(t, text=text)
    expect_same("before", g.get("/page")[1], b"first")
    (folder / "page.txt").write_text("second")
    g.reload()
    expect_same("after", g.get("/page")[1], b"second")


@case("reload: a secret is read again, and is not in the log", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("secret")
    (folder / "key").write_text("hush-1\n")
    g = Gateway(t, text=Gateway.text(api=f', headers: {{ X-Key: "${{file:{folder}/key}}" }}'))
    t.origin()
    g.get()
    (folder / "key").write_text("hush-2\n")
    g.reload()
    g.get()
    expect_same("keys", [request.get("X-Key") for request in t.main.requests], ["hush-1", "hush-2"])
    check("hush" not in g.process.log, g.process.log)


@case("reload: the log may change its level, format and output", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    g.write(g.text() + "log: { format: json, output: \"file:@FOLDER@/own.log\" }\n")
    g.process.signal(signal.SIGHUP)
    own = g.folder / "own.log"
    check(eventually(lambda: own.exists() and "reloaded" in own.read_text(), 5), g.process.log)
    line = json.loads(own.read_text().splitlines()[-1])
    expect_same("level", line["level"], "notice")
    g.reload(g.text())
    check(eventually(lambda: str(own) not in links(g), 3), "the log file stays open")


def links(g: Gateway) -> list[str]:
    """The targets of the program's descriptors, except of descriptors that close meanwhile."""
    found = []
    for fd in os.listdir(f"/proc/{g.process.pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{g.process.pid}/fd/{fd}"))
        except OSError:
            pass
    return found


@case("reload: an invalid file leaves the running configuration in force; each error is in the log with its place", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, text=Gateway.text(routes=SAID))
    client = g.client()
    said = g.reload(g.text(routes=SAID.replace("said", "sadi"), web=", limit: {}"), good=False)
    check("httpware.yaml:3:" in said and "limit" in said and "httpware.yaml:13:" in said and "sadi" in said, said)
    expect_same("still", g.get("/said", client=client), (200, b"said"))
    check("httpware.yaml:1:" in g.reload("version: 1\nroutes: [\n", good=False).replace("yaml:3:", "yaml:1:"), "no place")
    os.rename(g.file, str(g.file) + ".away")
    check("no such file" in g.reload(good=False), g.process.log)
    expect_same("still", g.get("/said", client=client), (200, b"said"))
    check("reloaded: no change" in g.reload(g.text(routes=SAID)), "good again")
    expect_same("still", g.get("/said", client=client), (200, b"said"))


@case("reload: SIGHUP opens log files again", nginx=NO)
def _(t: Trial) -> None:
    chains = '  logged: { postwares: [{ accessLog: { output: "file:@FOLDER@/a.log" } }] }'
    g = Gateway(t, text=Gateway.text(chains=chains, web=", chain: logged"))
    log = g.folder / "a.log"
    g.get("/one")
    check(eventually(lambda: log.exists() and "/one" in log.read_text(), 3), "no line")
    os.rename(log, str(log) + ".1")
    g.reload()
    g.get("/two")
    check(eventually(lambda: log.exists() and "/two" in log.read_text(), 3), "not opened again")


@case("reload: SIGTERM directly after SIGHUP drains", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    g.write(g.text(listeners='  more: { bind: "127.0.0.1:@OTHER@" }'))
    g.process.signal(signal.SIGHUP)
    g.process.signal(signal.SIGTERM)
    expect_same("exit", g.process.wait(5), 0)


@case("reload: many concurrent reloads end with the last file", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    for turn in range(30):
        g.write(g.text(routes=SAID.replace("/said", f"/said{turn}")))
        g.process.signal(signal.SIGHUP)
    check(eventually(lambda: g.get("/said29")[1] == b"said", 5), "the last file does not run")
    expect_same("the one before", g.get("/said28")[1], b"ok")


@case("run: --watch with a configuration from standard input is exit 64", nginx=NO)
def _(t: Trial) -> None:
    expect_same("--watch", run(t, "run", "-c", "-", "--watch", text="version: 1\n").returncode, 64)


# --watch


def watched(name: str, change) -> None:
    """`change(gateway, text)` brings the new text into the file, in one way or another."""

    @case(f"watch: {name} is noticed", nginx=NO)
    def _(t: Trial) -> None:
        g = Gateway(t, watch=True)
        for turn in range(3):
            before, start = g.words(), len(g.process.log)
            change(g, g.fill(g.text(routes=SAID.replace("/said", f"/said{turn}"))))
            g.awaited(before, start)
            expect_same("after", g.get(f"/said{turn}")[1], b"said")
        count = g.words()
        (g.folder / "beside").write_text("nothing to do with it")
        pause(0.5, Why.NOTHING)
        expect_same("reloads, after another file changed", g.words(), count)


def renamed(g: Gateway, text: str) -> None:
    (g.folder / ".new").write_text(text)
    os.rename(g.folder / ".new", g.file)


def like_vim(g: Gateway, text: str) -> None:
    os.rename(g.file, str(g.file) + "~")
    g.file.write_text(text)
    os.unlink(str(g.file) + "~")


def slowly(g: Gateway, text: str) -> None:
    with open(g.file, "w") as file:
        for start in range(0, len(text), 100):
            file.write(text[start : start + 100])
            file.flush()
            pause(0.02, Why.SLOW)


watched("a file written in place", lambda g, text: g.file.write_text(text))
watched("a file renamed over the old one", renamed)
watched("a file that an editor replaces after moving the old one away", like_vim)
watched("a file written slowly", slowly)


@case("watch: a file that is invalid only while it is written causes no error", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, watch=True)
    for turn in range(3):
        text = g.fill(g.text(routes=SAID.replace("/said", f"/said{turn}")))
        before, start = g.words(), len(g.process.log)
        # Closed half written, and again; and left open half written, while something else beside it makes the gateway look.
        for part in (len(text) // 3, len(text) // 2):
            g.file.write_text(text[:part])
            pause(0.1, Why.SLOW)
        with open(g.file, "w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            (g.folder / "beside").write_text("nothing to do with it")
            pause(0.15, Why.SLOW)
            file.write(text[len(text) // 2 :])
        said = g.awaited(before, start)
        check("error" not in said, said)
        expect_same("after", g.get(f"/said{turn}")[1], b"said")


@case("watch: a broken file is refused, and the next valid file is loaded", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, watch=True)
    before, start = g.words(), len(g.process.log)
    g.write(g.text(routes="  - { nonsense: 1 }"))
    check("httpware.yaml:13:" in g.awaited(before, start, good=False), g.process.log)
    expect_same("still", g.get(), (200, b"ok"))
    before, start = g.words(), len(g.process.log)
    g.write(g.text(routes=SAID))
    g.awaited(before, start)
    expect_same("after", g.get("/said")[1], b"said")


@case("watch: includes, secrets, files of wares, and new files of a pattern are watched", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("watched")
    (folder / "conf.d").mkdir()
    (folder / "key").write_text("hush-1")
    (folder / "page").write_text("page 1")
    part = f'version: 1\nchains: {{ page: {{ middlewares: [{{ mock: {{ file: {folder}/page }} }}] }} }}\n'
    (folder / "conf.d" / "a.yaml").write_text(part)
    text = f'include: ["{folder}/conf.d/*.yaml"]\n' + Gateway.text(
        api=f', headers: {{ X-Key: "${{file:{folder}/key}}" }}', routes="  - { match: { path: /page }, chain: page }")
    text = text.replace("version: 1\n", "", 1)
    g = Gateway(t, text="version: 1\n" + text, watch=True)
    t.origin()

    def changed(path: str, content: str) -> None:
        before, start = g.words(), len(g.process.log)
        (folder / path).write_text(content)
        g.awaited(before, start)

    g.get()
    changed("key", "hush-2")
    g.get()
    expect_same("keys", [request.get("X-Key") for request in t.main.requests], ["hush-1", "hush-2"])
    changed("page", "page 2")
    expect_same("page", g.get("/page")[1], b"page 2")
    changed("conf.d/b.yaml", "chains: { late: { middlewares: [{ mock: { body: late } }] } }\nroutes: [{ match: { path: /late }, chain: late }]\n")
    expect_same("a file that came to match", g.get("/late")[1], b"late")
    before, start = g.words(), len(g.process.log)
    os.unlink(folder / "conf.d" / "b.yaml")
    g.awaited(before, start)
    expect_same("a file that went", g.get("/late")[1], b"ok")


@case("watch: a symbolic link in the path that changes its folder is noticed", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    for name, said in (("first", "/one"), ("second", "/two")):
        (g.folder / name).mkdir()
        (g.folder / name / "httpware.yaml").write_text(g.fill(g.text(routes=SAID.replace("/said", said))).replace(str(g.port), str(g.other)))
    os.symlink("first", g.folder / "current")
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(g.folder / "current" / "httpware.yaml"), "--watch"], [g.other])
    t.at_end(process.stop)
    expect_same("first", g.get("/one", port=g.other)[1], b"said")
    os.symlink("second", g.folder / "next")
    os.rename(g.folder / "next", g.folder / "current")
    check(eventually(lambda: g.get("/two", port=g.other)[1] == b"said", 5), process.log)
    (g.folder / "second" / "httpware.yaml").write_text((g.folder / "first" / "httpware.yaml").read_text())
    check(eventually(lambda: g.get("/one", port=g.other)[1] == b"said", 5), process.log)


# diff


def differs(t: Trial, old: str, new: str, *arguments: str):
    folder = t.setup.place.subfolder("diff")
    (folder / "old.yaml").write_text(old)
    (folder / "new.yaml").write_text(new)
    return run(t, "diff", str(folder / "old.yaml"), str(folder / "new.yaml"), *arguments)


FILLED = Gateway.text().replace("@PORT@", "8080").replace("@MAIN@", "3000")


@case("diff: files without a difference are reported as equal", nginx=NO)
def _(t: Trial) -> None:
    result = differs(t, FILLED, "# moved down\n\n" + FILLED)
    expect_same("result", (result.returncode, result.stdout), (0, "no change\n"))


@case("diff: each change is printed with its place, its key and the state that is lost", nginx=NO)
def _(t: Trial) -> None:
    new = FILLED.replace("8080\"", "8081\", limits: { idleTimeout: 5s }").replace("body: \"2\"", "body: \"zwei\"").replace("3000", "3001")
    result = differs(t, FILLED, new)
    expect_same("exit", result.returncode, 0)
    for part in ("new.yaml:3:8: listeners.web: changed; opens another socket", 'bind: "127.0.0.1:8080" → "127.0.0.1:8081"',
                 "limits:", "new.yaml:6:8: services.api: changed", "new.yaml:10:", 'mock.sequence[1].body: "2" → "zwei"',
                 "old.yaml:10:", "chains.turns: mock: its state is lost"):
        check(part in result.stdout, f"{part!r} is not in:", result.stdout)
    found = json.loads(differs(t, FILLED, new, "--json").stdout)
    expect_same("what", [change["what"] for change in found["changes"]], ["listeners.web", "services.api", "chains.turns.middlewares.mock"])
    expect_same("lost", len(found["lost"]), 1)


@case("diff: an invalid file is exit 1, with its errors", nginx=NO)
def _(t: Trial) -> None:
    for old, new, name in ((FILLED, FILLED.replace("bind", "bindd"), "new.yaml:3:"), (FILLED.replace("bind", "bindd"), FILLED, "old.yaml:3:")):
        result = differs(t, old, new)
        expect_same("exit", result.returncode, 1)
        check(name in result.stderr, result.stderr)


@case("diff: secrets are masked", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("secrets")
    (folder / "one").write_text("hush-one")
    (folder / "two").write_text("hush-two")
    text = FILLED.replace('3000"', '3000", headers: { X-Key: "Bearer ${file:' + str(folder) + '/one}" }')
    for arguments in ((), ("--json",)):
        for new in (text.replace("/one", "/two"), FILLED):
            result = differs(t, text, new, *arguments)
            check("hush" not in result.stdout + result.stderr, result.stdout)
            check("services.api" in result.stdout and "the secret value" in result.stdout, result.stdout)
