"""Services that are found: containers by Docker's API, and a folder of service files."""

from __future__ import annotations

import json
import os
import time

from gateways import OwnGateway
from Rig.certificates import certificates
from Rig.engine import Container, Engine
from Rig.waits import Why, pause
from suite import Message, Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, run

# The time from an event to the first request that the container serves, in seconds; ten times it on a busy machine.
SOON = 3.0


class Found:
    """A gateway that asks an engine of the case's own, and has a folder of service files."""

    def __init__(self, t: Trial, *, keep: str = "60s", containers: tuple[Container, ...] = ()):
        self.t = t
        self.folder = t.setup.place.subfolder("discover")
        self.services = self.folder / "services.d"
        self.services.mkdir(exist_ok=True)
        for file in self.services.iterdir():
            file.unlink()
        self.engine = Engine(self.folder / "engine.sock")
        self.engine.containers = list(containers)
        t.at_end(self.engine.stop)
        self.gateway = OwnGateway(
            t, "discover",
            f"""version: 1
listeners: {{{{ web: {{{{ bind: "127.0.0.1:{{web}}" }}}} }}}}
admin: {{{{ bind: "127.0.0.1:{{admin}}", token: none }}}}
discover: {{{{ docker: {{{{ socket: "unix:{self.engine.path}" }}}}, folder: "{self.services}", keep: {keep} }}}}
""", workers=2)

    def ask(self, host: str, path: str = "/") -> Message:
        client = connect(("127.0.0.1", self.gateway.web), 10.0)
        self.t.clients.append(client)
        client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return client.read_response("GET")

    def answers(self, host: str, status: int, within: float = 10.0) -> None:
        last = 0

        def is_there() -> bool:
            nonlocal last
            last = self.ask(host).status
            return last == status

        check(eventually(is_there, within), f"{host} is answered with {last}, not {status}, after {within} s:", self.gateway.process.log[-2000:])

    def write(self, name: str, text: str) -> None:
        """Writes a service file as tools should: under another name, then renamed."""
        draft = self.services / f".{name}.tmp"
        draft.write_text(text)
        os.rename(draft, self.services / name)

    def discovery(self) -> dict:
        return json.loads(self.gateway.ask("/v1/services", port=self.gateway.admin).body)["discovery"]

    def problems(self) -> list[str]:
        return [f"{each['place']}: {each['message']}" for each in self.discovery()["found"]["problems"]]


def container(t: Trial, name: str, *, made: int = 1, status: str = "Up 1 second", **labels: str) -> Container:
    """A container whose program is the suite's origin server."""
    return Container(name, t.main.port, {f"httpware.{key}": value for key, value in labels.items()}, made=made, status=status)


@case("discover: a container that runs at the start is served at once", nginx=NO)
def at_the_start(t: Trial) -> None:
    found = Found(t, containers=(container(t, "a", route="a.test"),))
    response = found.ask("a.test", "/x")
    expect_status(response, 200)
    expect_same("the host that arrives", t.main.requests[-1].get("Host"), "a.test")
    expect_status(found.ask("b.test"), 404)


@case("discover: a container serves soon after it starts, and its service answers 503 when it has stopped", nginx=NO)
def comes_and_goes(t: Trial) -> None:
    found = Found(t, keep="2s")
    found.engine.use(container(t, "a", route="a.test"))
    began = time.monotonic()
    found.answers("a.test", 200)
    check(time.monotonic() - began < SOON, f"it served only after {time.monotonic() - began:.2f} s")
    found.engine.use()
    found.answers("a.test", 503)
    check("destination_unavailable" in (found.ask("a.test").get("Proxy-Status") or ""), "Proxy-Status says another reason")
    found.answers("a.test", 404)
    check(found.gateway.metric('httpware_discover_up{source="docker"} 1'), "the metric says that the engine does not answer")


@case("discover: a container that was told to stop takes no more requests, and one whose check fails takes no request", nginx=NO)
def stopping(t: Trial) -> None:
    found = Found(t, containers=(container(t, "a", route="a.test"),))
    found.answers("a.test", 200)
    found.engine.tell({"Type": "container", "Action": "kill", "Actor": {"ID": found.engine.containers[0].identity, "Attributes": {"signal": "15"}}})
    found.answers("a.test", 503)
    found.engine.use(container(t, "b", route="b.test", status="Up 1 second (health: starting)"))
    found.answers("b.test", 503)
    found.engine.use(container(t, "b", route="b.test", status="Up 1 second (healthy)"))
    found.answers("b.test", 200)
    found.engine.use(container(t, "b", route="b.test", status="Up 1 second (unhealthy)"))
    found.answers("b.test", 503)


@case("discover: limits keep their state while other containers come and go", nginx=NO)
def state_stays(t: Trial) -> None:
    limited = container(t, "a", route="a.test", wares="[{ rateLimit: { rate: 2/h, burst: 2 } }]")
    found = Found(t, containers=(limited,))
    expect_status(found.ask("a.test"), 200)
    found.engine.use(limited, container(t, "b", route="b.test"))
    found.answers("b.test", 200)
    expect_status(found.ask("a.test"), 200)
    found.engine.use(limited)
    expect_status(found.ask("a.test"), 429)


@case("discover: a mistake in a label is named with its place, and only that container is left out", nginx=NO)
def mistake(t: Trial) -> None:
    found = Found(t)
    found.engine.use(container(t, "bad", route="bad.test", wares="[{ rateLimit: { rat: 1/s } }]"), container(t, "good", route="good.test"))
    found.answers("good.test", 200)
    expect_status(found.ask("bad.test"), 404)
    expect_same("the problems", found.problems(), ['container bad, label httpware.wares:1:17: rateLimit.rat: unknown option; did you mean "rate"?'])
    check(eventually(lambda: "container bad, label httpware.wares:1:17" in found.gateway.process.log, 10.0), "the log does not say it")


@case("discover: while the engine is away, known services stay, and the report says since when", nginx=NO)
def engine_away(t: Trial) -> None:
    found = Found(t, keep="1s", containers=(container(t, "a", route="a.test"),))
    found.answers("a.test", 200)
    found.engine.stop()
    check(found.gateway.metric('httpware_discover_up{source="docker"} 0'), "the metric says that the engine answers")
    source = next(each for each in found.discovery()["sources"] if each["source"] == "docker")
    check(source["failure"] and not source["answers"] and source["since"], "the report does not say it:", source)
    pause(1.5, Why.PASSES)
    expect_status(found.ask("a.test"), 200)
    found.engine.containers = [container(t, "b", route="b.test")]
    found.engine.start()
    found.answers("b.test", 200)
    found.answers("a.test", 404)


LIES = {
    "no JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[{{{{",
    "an object": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "ten megabytes": b"HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n[" + b" " * 10485759,
    "no end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
    "deep": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100000,
    "an error": b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
    "no HTTP": b"hello\r\n\r\n",
    "members of other types": b"HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n" + b'[1,null,"x",{"Id":{}},{"Id":"ab","Ports":7}]'[:43],
}


@case("discover: an engine that lies costs nothing more than its own update", nginx=NO)
def lies(t: Trial) -> None:
    found = Found(t, containers=(container(t, "a", route="a.test"),))
    found.answers("a.test", 200)
    for name, lie in LIES.items():
        before, found.engine.lie = found.engine.asked, lie
        found.engine.tell({"Type": "container", "Action": "start"})
        check(eventually(lambda before=before: found.engine.asked > before, 10.0), f"{name}: the engine is not asked")
        expect_status(found.ask("a.test"), 200)
    found.engine.lie = None
    # Events that never end, are not JSON, or come by the thousand.
    found.engine.send(b"x" * 1_000_000)
    found.engine.send(b"\n{]}\n\x00\xff\n" + b'{"Action":"start"}\n' * 5000)
    before = found.engine.asked
    found.engine.use(container(t, "b", route="b.test"), found.engine.containers[0])
    found.answers("b.test", 200, within=20.0)
    check(found.engine.asked - before < 200, f"the engine was asked {found.engine.asked - before} times for one burst of events")
    expect_status(found.ask("a.test"), 200)


@case("discover: a folder of service files, read when one is renamed into it", nginx=NO)
def folder(t: Trial) -> None:
    found = Found(t, keep="1s")
    found.write("a.yaml", f"endpoints: [127.0.0.1:{t.main.port}]\nroute: a.test\n")
    began = time.monotonic()
    found.answers("a.test", 200)
    check(time.monotonic() - began < SOON, f"it served only after {time.monotonic() - began:.2f} s")
    found.write("b.yml", "endpoints: [127.0.0.1:1]\nroute: b.test\nwares: [{ respond: {} }]\n")
    check(eventually(found.problems, 10.0), "the mistake is not reported")
    expect_same("the problems", found.problems(), [
        f'{found.services}/b.yml:3:11: wares: "respond" is not a ware that a label can have; write it in a chain of the configuration, and name the chain'])
    found.write("b.yml", f"endpoints: [127.0.0.1:{t.main.port}]\nroute: b.test\n")
    found.answers("b.test", 200)
    (found.services / "a.yaml").unlink()
    found.answers("a.test", 404)
    expect_status(found.ask("b.test"), 200)


@case("discover: a reload keeps what was found, and a file without discover drops it", nginx=NO)
def reload(t: Trial) -> None:
    found = Found(t, containers=(container(t, "a", route="a.test"),))
    found.answers("a.test", 200)
    text = found.gateway.file.read_text()
    answer = found.gateway.ask("/v1/reload", "POST", port=found.gateway.admin)
    expect_status(answer, 200)
    expect_status(found.ask("a.test"), 200)
    found.gateway.file.write_text("\n".join(line for line in text.splitlines() if not line.startswith("discover")) + "\nroutes: [{ chain: x }]\nchains: { x: { middlewares: [{ mock: { status: 418 } }] } }\n")
    expect_status(found.gateway.ask("/v1/reload", "POST", port=found.gateway.admin), 200)
    expect_status(found.ask("a.test"), 418)
    found.gateway.file.write_text(text)
    expect_status(found.gateway.ask("/v1/reload", "POST", port=found.gateway.admin), 200)
    found.answers("a.test", 200)


@case("discover: the command says what is found, and why a container is not used", nginx=NO)
def command(t: Trial) -> None:
    found = Found(t)
    found.engine.containers = [container(t, "a", route="a.test"), container(t, "b", route="b.test", status="Up (unhealthy)"),
                               container(t, "c", route="c.test", wares="[files]"), Container("d", 1, {})]
    result = run(t, "discover", "--docker", f"unix:{found.engine.path}")
    expect_same("the exit status", result.returncode, 0)
    for line in ("container a", "not used: its health check fails", 'not used: wares: "files" is not a ware that a label can have', "not used: has no label"):
        check(line in result.stdout, f"{line!r} is missing in", result.stdout)
    result = run(t, "discover", "--docker", "unix:/nowhere.sock")
    expect_same("the exit status without an engine", result.returncode, 3)


@case("discover: a process that holds the socket writes service files for a gateway without it", nginx=NO)
def writes_files(t: Trial) -> None:
    found = Found(t, keep="1s")
    found.engine.stop()
    other = Engine(found.folder / "other.sock")
    t.at_end(other.stop)
    (found.services / "mine.yaml").write_text(f"endpoints: [127.0.0.1:{t.main.port}]\nroute: mine.test\n")
    writer = t.setup.place.command([t.setup.binary, "discover", "--docker", f"unix:{other.path}", "--write", str(found.services)], [])
    t.at_end(writer.stop)
    other.containers = [container(t, "a", route="a.test", wares="[{ responseHeaders: { set: { X-A: b } } }]")]
    check(eventually(lambda: other.streams, 10.0), "the process follows no events")
    other.use(*other.containers)
    found.answers("a.test", 200)
    expect_same("the field of its ware", found.ask("a.test").get("X-A"), "b")
    expect_status(found.ask("mine.test"), 200)
    writer.stop()
    expect_status(found.ask("a.test"), 200)


@case("discover: without events, the list is still asked, and not all the time", nginx=NO)
def no_events(t: Trial) -> None:
    found = Found(t)
    found.engine.stop()
    found.engine.refuses_events = True
    found.engine.start()
    found.engine.containers = [container(t, "a", route="a.test")]
    found.answers("a.test", 200, within=20.0)
    before = found.engine.asked
    pause(3.0, Why.MEASURED)
    check(found.engine.asked - before < 10, f"the engine was asked {found.engine.asked - before} times in 3 s")
    log = found.gateway.process.log
    check(log.count("cannot be asked") < 4, "the log repeats itself:", log[-1500:])


@case("discover: a container whose details cannot be asked for does not hold up the others", nginx=NO)
def broken_details(t: Trial) -> None:
    bad = container(t, "bad", route="bad.test")
    found = Found(t, containers=(bad,))
    found.engine.broken = {Container("other", 1, {}).identity, bad.identity}
    found.engine.use(bad, container(t, "other", route="other.test"), container(t, "good", route="good.test"))
    found.answers("good.test", 200)
    found.answers("other.test", 200)


@case("discover: a container that restarts within milliseconds serves again at once", nginx=NO)
def quick_restart(t: Trial) -> None:
    one = container(t, "a", route="a.test")
    found = Found(t, containers=(one,))
    found.answers("a.test", 200)
    for action in ("kill", "die", "stop", "start", "restart"):
        found.engine.tell({"Type": "container", "Action": action, "Actor": {"ID": one.identity, "Attributes": {"signal": "15"}}})
    pause(0.5, Why.NOTHING)
    found.answers("a.test", 200, within=3.0)


@case("discover: a pipe, a large file and a folder that goes away hold nothing up", nginx=NO)
def odd_folder(t: Trial) -> None:
    found = Found(t)
    os.mkfifo(found.services / "pipe.yaml")
    (found.services / "large.yaml").write_text("#" * 100_000)
    found.write("a.yaml", f"endpoints: [127.0.0.1:{t.main.port}]\nroute: a.test\n")
    found.answers("a.test", 200)
    began = time.monotonic()
    expect_status(found.ask("a.test"), 200)
    check(time.monotonic() - began < 1.0, "a request waits for the pipe")
    check(eventually(lambda: len(found.problems()) == 2, 10.0), "the pipe and the large file are not told:", found.problems())
    os.rename(found.services, found.folder / "away")
    check(found.gateway.metric('httpware_discover_up{source="folder"} 0'), "the missing folder is not told")
    expect_status(found.ask("a.test"), 200)
    os.rename(found.folder / "away", found.services)
    check(found.gateway.metric('httpware_discover_up{source="folder"} 1'), "the folder is back, and not told")
    expect_status(found.ask("a.test"), 200)


@case("discover: services that cannot be used while a file has errors are tried again", nginx=NO)
def tried_again(t: Trial) -> None:
    found = Found(t)
    made = certificates()
    key, cert = found.folder / "web.key", found.folder / "web.pem"
    cert.write_bytes((made / "a.pem").read_bytes())
    key.write_bytes((made / "a.key").read_bytes())
    key.chmod(0o600)
    text = found.gateway.file.read_text().replace("listeners: { ", f'listeners: {{ more: {{ bind: "127.0.0.1:0", tls: {{ cert: "{cert}", key: "{key}" }} }}, ')
    found.gateway.file.write_text(text)
    expect_status(found.gateway.ask("/v1/reload", "POST", port=found.gateway.admin), 200)
    cert.write_text("broken")
    found.engine.use(container(t, "a", route="a.test"))
    check(eventually(lambda: "cannot be used yet" in found.gateway.process.log, 10.0), "the broken file is not told")
    expect_status(found.ask("a.test"), 404)
    cert.write_bytes((made / "a.pem").read_bytes())
    found.answers("a.test", 200, within=15.0)
