"""Operations: what a service manager passes and is told (sd_notify(3), sd_listen_fds(3)), and another process in the place of one that runs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from gateways import OwnGateway
from Rig.origins import OK, OriginConnection
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Trial, case, check, connect, eventually, expect_closed, expect_same, expect_status

from .command import NO
from .refused_requests import head


class Manager:
    """The socket of a service manager; `words` are the datagrams that came."""

    def __init__(self, t: Trial, address: str):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind("\0" + address[1:] if address[0] == "@" else address)
        self.sock.setblocking(False)
        self.words: list[dict[str, str]] = []
        t.at_end(self.sock.close)

    def hears(self, **wanted: str) -> bool:
        def came() -> bool:
            try:
                while True:
                    text = self.sock.recv(4096).decode()
                    self.words.append(dict(line.split("=", 1) for line in text.split("\n")))
            except BlockingIOError:
                return any(all(word.get(key) == value for key, value in wanted.items()) for word in self.words)

        return eventually(came, 5)


# The work of a service manager in the child, which alone knows its number: the sockets from 3 on, in this order, and nothing else.
LAUNCHER = """
import os, sys
end = sys.argv.index("--")
for index, descriptor in enumerate(sys.argv[1:end]):
    os.dup2(int(descriptor), 3 + index)
    os.close(int(descriptor))
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[end + 1], sys.argv[end + 1:])
"""


STOPPED = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}", limits: {{ idleTimeout: 1s, headTimeout: 1s, bodyMinRate: 20000/s }} }} }}
services:
  api: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ connect: 1s, response: 1s, idle: 1s }} }}
  h2: {{ baseUrl: "http://127.0.0.1:{main}", protocol: h2, timeouts: {{ connect: 1s, response: 1s, idle: 1s }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
routes: [{{ match: {{ path: "/h2/**" }}, service: h2 }}, {{ service: api }}]
"""


def stopped(gateway: OwnGateway, seconds: float, meanwhile: Callable[[], object]) -> None:
    """Stops the gateway for a while, in which something comes."""
    gateway.process.signal(signal.SIGSTOP)
    try:
        pause(0.2, Why.BEFORE)
        meanwhile()
        pause(seconds - 0.2, Why.PASSES)
    finally:
        gateway.process.signal(signal.SIGCONT)


@case("a process that was stopped reads the responses that arrived meanwhile, before it checks for late ones", nginx=NO, alone=True)
def _(t: Trial) -> None:
    # More sockets than the loop is notified about at a time.
    count, go = 120, threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        go.wait(20)
        c.send(OK)

    t.origin(script)
    gateway = OwnGateway(t, "stopped", STOPPED, main=t.main.port)
    clients = [gateway.send("/") for _ in range(count)]
    check(eventually(lambda: len(t.main.requests) == count, 5), f"{len(t.main.requests)} of {count} came")
    stopped(gateway, 2.5, go.set)
    statuses = [client.read_response().status for client in clients]
    expect_same("answers", {status: statuses.count(status) for status in set(statuses)}, {200: count})


@case("a process that was stopped accepts a request whose rest arrived meanwhile", nginx=NO, alone=True)
def _(t: Trial) -> None:
    t.origin()
    gateway = OwnGateway(t, "stopped", STOPPED, main=t.main.port)
    inHead, inContent = (connect(("127.0.0.1", gateway.web), 10) for _ in range(2))
    t.clients += [inHead, inContent]
    inHead.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
    inContent.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
    pause(0.3, Why.BEFORE)
    stopped(gateway, 2.5, lambda: (inHead.send(b"\r\n"), inContent.send(b"cd")))
    expect_status(inHead.read_response(), 200)
    expect_status(inContent.read_response(), 200)


@case("a process that was stopped measures the rate of content from its continuation", nginx=NO, alone=True)
def _(t: Trial) -> None:
    t.origin()
    gateway = OwnGateway(t, "stopped", STOPPED, main=t.main.port)
    client = connect(("127.0.0.1", gateway.web), 10)
    t.clients.append(client)
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n" + bytes(5000))
    pause(0.3, Why.BEFORE)
    stopped(gateway, 6, lambda: client.send(bytes(4000)))
    pause(0.3, Why.SLOW)
    client.send(bytes(1000))
    expect_status(client.read_response(), 200)


class Served:
    """A gateway as a service manager starts it: with sockets from descriptor 3 on, and variables."""

    def __init__(self, t: Trial, text: str, *, passed: list[socket.socket] | None = None, ports: list[int] | None = None,
                 names: str = "", binary: str = "", **variables: str):
        self.t, self.folder = t, t.setup.place.subfolder("operations")
        self.file = self.folder / "httpware.yaml"
        self.file.write_text(text)
        copies = [fcntl.fcntl(sock, fcntl.F_DUPFD_CLOEXEC, 100) for sock in passed or []]
        command = [sys.executable, "-c", LAUNCHER, *map(str, copies), "--"] if copies else []
        command += [binary or t.setup.binary, "run", "-c", str(self.file), "--workers", "2"]
        if copies:
            variables |= {"LISTEN_FDS": str(len(copies)), "LISTEN_FDNAMES": names}
        self.process = t.setup.place.command(command, ports or [], environment=variables, descriptors=copies)
        for copy in copies:
            os.close(copy)
        t.at_end(self.process.stop)


def listening(address: tuple[str, int] | str, family: int = socket.AF_INET) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    if family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(address)
    sock.listen(64)
    return sock


def text(port: int, more: str = "", listeners: str = "") -> str:
    return f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:{port}" }}
{listeners}
chains: {{ said: {{ middlewares: [{{ mock: {{ body: "said" }} }}] }} }}
routes: [{{ chain: said }}]
{more}"""


def said(t: Trial, address: tuple[str, int] | str) -> None:
    client = connect(address, 5)
    t.clients.append(client)
    client.send(head())
    response = client.read_response()
    expect_same("the response", (response.status, response.body), (200, b"said"))


def successor(process: Process) -> int:
    """Asks for another process in this one's place, and answers its number when it serves."""
    process.signal(signal.SIGUSR2)
    found: list[str] = []

    def told() -> bool:
        found[:] = re.findall(r"process (\d+) takes over; draining", process.log)
        return bool(found)

    check(eventually(told, 20), "nobody goes on:", process.log)
    return int(found[0])


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end(t: Trial, pid: int) -> None:
    def ends() -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if is_alive(pid):
                os.kill(pid, number)
                eventually(lambda: not is_alive(pid), 1)

    t.at_end(ends)


for abstract in (False, True):

    @case(f"operations: a service manager is notified about start, reload and end, on {'an abstract socket' if abstract else 'a path'}", nginx=NO)
    def _(t: Trial, abstract: bool = abstract) -> None:
        port = free_port()
        address = f"@httpware-{os.getpid()}-{port}" if abstract else str(t.setup.place.subfolder("notify") / "socket")
        manager = Manager(t, address)
        served = Served(t, text(port), ports=[port], NOTIFY_SOCKET=address)
        check(manager.hears(READY="1"), "it never got ready:", manager.words)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        served.process.signal(signal.SIGHUP)
        check(manager.hears(RELOADING="1"), "no reload:", manager.words)
        at = next(int(word["MONOTONIC_USEC"]) for word in manager.words if "RELOADING" in word)
        check(before <= at <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, "MONOTONIC_USEC is", at, "not from", before)
        check(eventually(lambda: manager.hears() and [word for word in manager.words if word.get("READY")][1:]), "not ready again:", manager.words)
        served.file.write_text("version: 2")
        served.process.signal(signal.SIGHUP)
        check(manager.hears(READY="1", STATUS="serving; the last reload failed"), "not ready after a bad file:", manager.words)
        served.process.signal(signal.SIGTERM)
        check(manager.hears(STOPPING="1"), "no end:", manager.words)
        expect_same("the exit status", served.process.wait(5), 0)


@case("operations: a service manager's watchdog is notified only by a process whose loops work", nginx=NO)
def _(t: Trial) -> None:
    port, place = free_port(), str(t.setup.place.subfolder("notify") / "socket")
    manager = Manager(t, place)
    Served(t, text(port), ports=[port], NOTIFY_SOCKET=place, WATCHDOG_USEC="200000")
    check(eventually(lambda: manager.hears() and sum("WATCHDOG" in word for word in manager.words) >= 3, 5), "silence:", manager.words)
    other, elsewhere = free_port(), str(t.setup.place.subfolder("notify") / "socket")
    manager = Manager(t, elsewhere)
    served = Served(t, text(other), ports=[other], NOTIFY_SOCKET=elsewhere, WATCHDOG_USEC="1000", WATCHDOG_PID="1")
    said(t, ("127.0.0.1", other))
    served.process.signal(signal.SIGTERM)
    check(manager.hears(STOPPING="1"), "no end:", manager.words)
    check(not any("WATCHDOG" in word for word in manager.words), "told although another process is watched:", manager.words)


@case("operations: a missing service manager is logged once for each message, and stops nothing", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    served = Served(t, text(port), ports=[port], NOTIFY_SOCKET=str(t.setup.place.folder / "nobody"))
    said(t, ("127.0.0.1", port))
    check(eventually(lambda: "READY=1 cannot be sent to the service manager" in served.process.log), served.process.log)


@case("operations: listeners use the passed sockets by address; other listeners bind their own", nginx=NO)
def _(t: Trial) -> None:
    own = free_port()
    path = str(t.setup.place.subfolder("passed") / "local.sock")
    web, local = listening(("127.0.0.1", 0)), listening(path, socket.AF_UNIX)
    port = web.getsockname()[1]
    # A client that connects before the program starts is still served.
    early = connect(("127.0.0.1", port), 10)
    t.clients.append(early)
    early.send(head())
    served = Served(t, text(port, listeners=f'  own: {{ bind: "127.0.0.1:{own}" }}\n  local: {{ bind: "unix:{path}" }}'),
                    passed=[local, web], ports=[own], names="local:web")
    expect_status(early.read_response(), 200)
    for address in (("127.0.0.1", port), path, ("127.0.0.1", own)):
        said(t, address)
    served.process.signal(signal.SIGTERM)
    expect_same("the exit status", served.process.wait(5), 0)
    check(os.path.exists(path), "the service manager's socket was removed")
    connect(("127.0.0.1", port), 1).close()  # it still listens


@case("operations: sockets of a service manager survive a reload that removes a listener and a reload that restores it", nginx=NO)
def _(t: Trial) -> None:
    own = free_port()
    web = listening(("127.0.0.1", 0))
    port = web.getsockname()[1]
    served = Served(t, text(own, listeners=f'  passed: {{ bind: "127.0.0.1:{port}" }}'), passed=[web], ports=[own])
    said(t, ("127.0.0.1", port))

    def reload(content: str, count: int) -> None:
        served.file.write_text(content)
        served.process.signal(signal.SIGHUP)
        check(eventually(lambda: served.process.log.count(" reloaded: ") == count, 5), served.process.log)

    reload(text(own), 1)
    client = connect(("127.0.0.1", port), 5)
    t.clients.append(client)
    client.send(head())
    reload(text(own, listeners=f'  passed: {{ bind: "127.0.0.1:{port}" }}'), 2)
    expect_status(client.read_response(), 200)


@case("operations: unusable sockets are an error with the fix", nginx=NO)
def _(t: Trial) -> None:
    own, spare = free_port(), listening(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    shared = [socket.socket() for _ in range(3)]
    for sock in shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", shared[0].getsockname()[1]))
        sock.listen(8)
    port = spare.getsockname()[1]
    for passed, content, names, said_why in (
            ([spare], text(own), "spare", f'no listener is bound to these passed sockets: 127.0.0.1:{port} (spare); write a listener with bind: "127.0.0.1:{port}"'),
            ([datagrams], text(own), "", "descriptor 3 that was passed is not a listening stream socket"),
            (shared, text(shared[0].getsockname()[1]), "", "3 sockets were passed for it, but 2 loops run; write --workers 3")):
        served = Served(t, content, passed=passed, names=names)
        expect_same("the exit status", served.process.wait(5), 3)
        check(said_why in served.process.log, "expected", repr(said_why), "got", served.process.log)
    for sock in [spare, datagrams, *shared]:
        sock.close()


@case("operations: sockets for another process are ignored", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    Served(t, text(port), ports=[port], LISTEN_PID="1", LISTEN_FDS="1")
    said(t, ("127.0.0.1", port))


@case("operations: a new process continues with all sockets; running requests finish, and the files stay", nginx=NO)
def _(t: Trial) -> None:
    web, own, admin = listening(("127.0.0.1", 0)), free_port(), free_port()
    port = web.getsockname()[1]
    place = t.setup.place.subfolder("upgrade")
    path, notify = str(place / "local.sock"), str(place / "notify")
    manager = Manager(t, notify)
    content = f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:{port}" }}
  own: {{ bind: "127.0.0.1:{own}" }}
  local: {{ bind: "unix:{path}" }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
chains: {{ said: {{ middlewares: [{{ mock: {{ body: "said" }} }}] }} }}
routes: [{{ match: {{ path: /slow }}, service: api }}, {{ chain: said }}]
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
"""
    served = Served(t, content, passed=[web], ports=[own], NOTIFY_SOCKET=notify, SECRET="kept")
    gate = threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.serve()
        gate.wait(20)
        connection.send(OK)

    t.origin(script)
    slow = connect(("127.0.0.1", port), 20)
    idle = connect(("127.0.0.1", port), 20)
    t.clients += [slow, idle]
    slow.send(head(start=b"GET /slow HTTP/1.1"))
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    pid = successor(served.process)
    end(t, pid)
    check(pid != served.process.pid and is_alive(pid), "no other process")
    check(manager.hears(MAINPID=str(pid), READY="1"), "the service manager was not told:", manager.words)
    idle.send(head())
    response = idle.read_response()
    expect_same("a connection that was open", (response.status, response.body), (200, b"said"))
    expect_closed(idle, response)
    for address in (("127.0.0.1", port), ("127.0.0.1", own), path):
        said(t, address)
    ready = connect(("127.0.0.1", admin), 5)
    t.clients.append(ready)
    ready.send(head(start=b"GET /readyz HTTP/1.1").replace(b"a.test", b"127.0.0.1"))
    expect_status(ready.read_response(), 200)
    gate.set()
    response = slow.read_response()
    expect_same("what was under way", (response.status, response.body), (200, b"ok"))
    expect_same("the exit status of the former", served.process.wait(5), 0)
    check(not any("STOPPING" in word for word in manager.words), "the service was said to stop:", manager.words)
    said(t, path)
    said(t, ("127.0.0.1", port))
    # The one that goes on can be followed in turn, and is told what it has no variable of any more.
    given = dict(text.split("=", 1) for text in Path(f"/proc/{pid}/environ").read_text().split("\0") if text)
    expect_same("what it was given", (given.get("SECRET"), given.get("NOTIFY_SOCKET"), [name for name in given if name.startswith(("LISTEN_", "WATCHDOG_"))]), ("kept", notify, []))
    os.kill(pid, signal.SIGUSR2)
    folder = served.process.folder
    check(eventually(lambda: (folder / "output.log").read_text().count("takes over; draining") == 2, 20), served.process.log)
    third = int(re.findall(r"process (\d+) takes over; draining", served.process.log)[1])
    end(t, third)
    check(manager.hears(MAINPID=str(third)), "the service manager was not told again:", manager.words)
    for address in (("127.0.0.1", port), ("127.0.0.1", own), path):
        said(t, address)


@case("operations: after an upgrade, the folder has captures of both processes, with distinct numbers", nginx=NO)
def _(t: Trial) -> None:
    port, admin, gate = free_port(), free_port(), threading.Event()
    place = t.setup.place.subfolder("upgrade")
    content = f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
routes: [{{ service: api }}]
admin: {{ bind: "127.0.0.1:{admin}", token: none, capture: {{ disk: {{ path: "{place}/captures" }} }} }}
"""
    served = Served(t, content, ports=[port])

    def script(connection: OriginConnection) -> None:
        if connection.serve().target == "/slow":
            gate.wait(20)
        connection.send(OK)

    def ask(target: str) -> Wire:
        client = connect(("127.0.0.1", port), 20)
        t.clients.append(client)
        client.send(head(b"Connection: close", start=f"GET {target} HTTP/1.1".encode()))
        return client

    def captured() -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/v1/captures", timeout=5) as answer:
            return {row["url"].rsplit("/", 1)[1]: int(row["id"]) for row in json.loads(answer.read())["captures"] if row["state"] == "ended"}

    t.origin(script)
    expect_status(ask("/first").read_response(), 200)
    slow = ask("/slow")
    check(eventually(lambda: len(t.main.requests) == 2), "the request did not arrive")
    end(t, successor(served.process))
    expect_status(ask("/second").read_response(), 200)
    check(eventually(lambda: set(captured()) == {"first", "second"}, 5), captured())
    gate.set()
    expect_status(slow.read_response(), 200)
    expect_same("the exit status of the former", served.process.wait(10), 0)
    check(eventually(lambda: set(captured()) == {"first", "second", "slow"}, 5), captured())
    numbers = captured()
    check(numbers["first"] < numbers["slow"] < numbers["second"], numbers)
    kept = b"".join(file.read_bytes() for file in (place / "captures").glob("*.rows"))
    check(eventually(lambda: b"/second" in b"".join(file.read_bytes() for file in (place / "captures").glob("*.rows")), 5), kept)


@case("operations: a program that does not start, or a file with errors, does not affect the running process", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    binary = t.setup.place.subfolder("program") / "httpware"
    binary.symlink_to(t.setup.binary)
    served = Served(t, text(port), ports=[port], binary=str(binary))
    content = served.file.read_text()
    for spoil, mend, reason in (
            (lambda: served.file.write_text("version: 1\nlisteners: 5\n"), lambda: served.file.write_text(content), "the new process ended with status 1"),
            (lambda: (binary.unlink(), binary.write_text("#!/bin/sh\nexit 7\n"), binary.chmod(0o755)), None, "the new process ended with status 7"),
            (lambda: (binary.unlink(), binary.write_text("no program"), binary.chmod(0o755)), None, "posix_spawn"),
            (lambda: binary.unlink(), None, "No such file or directory")):
        spoil()
        before = served.process.log.count("upgrade abandoned")
        served.process.signal(signal.SIGUSR2)
        check(eventually(lambda: served.process.log.count("upgrade abandoned") > before, 10), "nothing said:", served.process.log)
        check(f"{reason}" in served.process.log.rsplit("upgrade abandoned", 1)[1], "expected", reason, "got", served.process.log[-500:])
        said(t, ("127.0.0.1", port))
        if mend:
            mend()
    served.process.signal(signal.SIGHUP)
    check(eventually(lambda: "reloaded: no change" in served.process.log, 5), "no reload afterwards:", served.process.log)
    binary.symlink_to(t.setup.binary)
    end(t, successor(served.process))
    said(t, ("127.0.0.1", port))


@case("operations: until a new process serves, a reload is refused at once, and repeated later; SIGTERM ends both", nginx=NO)
def _(t: Trial) -> None:
    port, admin = free_port(), free_port()
    binary = t.setup.place.subfolder("program") / "httpware"
    binary.unlink(missing_ok=True)
    binary.symlink_to(t.setup.binary)
    served = Served(t, text(port, f'admin: {{ bind: "127.0.0.1:{admin}", token: none }}\n'), ports=[port, admin], binary=str(binary))
    process = served.process
    binary.unlink()
    binary.write_text("#!/bin/sh\nexec sleep 300\n")
    binary.chmod(0o755)

    def started(count: int) -> int:
        process.signal(signal.SIGUSR2)
        check(eventually(lambda: process.log.count("started the program again") == count, 5), "nothing is started:", process.log)
        pid = int(re.findall(r"started the program again, as process (\d+)", process.log)[-1])
        end(t, pid)
        return pid

    pid = started(1)
    client = connect(("127.0.0.1", admin), 5)
    t.clients.append(client)
    client.send(head(b"Content-Length: 0", start=b"POST /v1/reload HTTP/1.1").replace(b"a.test", b"127.0.0.1"))
    response = client.read_response("POST")
    expect_status(response, 409)
    check(b"process %d is starting" % pid in response.body, response.body)
    process.signal(signal.SIGHUP)
    check(eventually(lambda: process.log.count(f"not reloaded: process {pid} is starting") == 2, 5), "nothing said:", process.log)
    said(t, ("127.0.0.1", port))
    os.kill(pid, signal.SIGKILL)
    check(eventually(lambda: "reloaded: no change" in process.log, 5), "not made up for:", process.log)
    check("the new process ended with signal 9; this process keeps running" in process.log, process.log)
    pid = started(2)
    process.signal(signal.SIGTERM)
    expect_same("the exit status", process.wait(5), 0)
    check(not is_alive(pid), "the other process is left")
    check(f"upgrade abandoned: process {pid} was not ready yet, and has been ended" in process.log, process.log)
    expect_same("how often it stays", (process.log.count("stays in force"), process.log.count("keeps running")), (2, 1))
