#!/usr/bin/env python3
"""The wall of `httpware with --jail`: hostile programs, and ordinary ones that know no proxy.

    Tests/Jail/run.py --binary .build/release/httpware [--only attacks|programs|starts]

Run it as root and as a user without rights: `make jail` does both. Python 3.11, standard library only. Needs Linux with user namespaces; programs
that are not installed are left out. Prints JSON lines: name, goal, measured, pass.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import os
import pty
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from Rig.certificates import certificates
from Rig.processes import free_port
from Rig.results import line, tell
from Rig.trials import Trials
from Rig.waits import eventually

HERE = Path(__file__).resolve().parent
REFUSED, NOWHERE = "refused", ("refused", "silent", "EACCES", "EINVAL", "ENETUNREACH", "EPERM")
NO_RIGHT = ("EPERM", "EACCES", "EAFNOSUPPORT", "EINVAL", "refused")
trials = Trials()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each request with what it asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = self.server.files.get(self.path.partition("?")[0].replace("/./", "/"))  # type: ignore[attr-defined]
        if content is None and self.path.startswith("/debian/"):
            return self.send_error(404)
        text = content if content is not None else json.dumps({"target": self.path, "host": self.headers.get("Host"), "via": self.headers.get("Via")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_HEAD = do_POST = do_GET

    def log_message(self, *_) -> None:
        pass


class Listener:
    """A server on this machine's loopback whose connections a function serves."""

    def __init__(self, serve: Callable[[socket.socket], None], address: str = "127.0.0.1"):
        self.socket, self.count, self.serve = socket.create_server((address, 0), backlog=64), 0, serve
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.serve(connection)


def greet(connection: socket.socket) -> None:
    connection.settimeout(2)
    connection.sendall(b"hello\n")
    while some := connection.recv(1000):
        connection.sendall(b"echo:" + some)


class Place:
    """A folder with a file of the gateway, its authority, and servers on the loopback."""

    def __init__(self, binary: str):
        self.binary = str(Path(binary).resolve())
        self.folder = Path(tempfile.mkdtemp(prefix="httpware-jail."))
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.web.files = {}  # type: ignore[attr-defined]
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.exposed, self.opaque, self.secret = Listener(greet), Listener(greet), Listener(greet, "0.0.0.0")
        self.log = self.folder / "access.log"
        self.home = self.folder / "home"
        self.home.mkdir()
        (self.folder / "ca").mkdir()
        self.environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower() and not name.startswith(("XDG_", "NODE_", "JAVA_"))}
        self.environment |= {"HOME": str(self.home), "SWIFT_BACKTRACE": "enable=no", "LC_ALL": "C"}
        subprocess.run([self.binary, "ca", "init", "--dir", str(self.folder / "ca")], check=True, capture_output=True, env=self.environment)
        self.file = self.folder / "jail.yaml"
        self.write()

    def write(self, jail: str = "") -> None:
        self.file.write_text(f"""version: 1
listeners:
  agent:
    mode: forward
    bind: "127.0.0.1:1"
    intercept: {{ hosts: ["*"], ca: ca, allowOpaque: [opaque.test] }}
    jail: {{ {jail or f'ports: [80, 443, 9000], expose: [{self.exposed.port}]'} }}
    chain: agent
services:
  web: {{ endpoints: ["http://127.0.0.1:{self.web.server_port}"] }}
  opaque: {{ endpoints: ["http://127.0.0.1:{self.opaque.port}"] }}
chains:
  agent:
    middlewares: [{{ hostRule: {{ deny: [denied.test, dns.google] }} }}]
    postwares: [{{ accessLog: {{ output: "file:{self.log}" }} }}]
routes:
  - {{ match: {{ host: [a.test, b.test, "*.programs.test"] }}, service: web }}
  - {{ match: {{ host: opaque.test }}, service: opaque }}
  - {{ service: passthrough }}
""")

    def command(self, *command: str, options: tuple[str, ...] = ()) -> list[str]:
        return [self.binary, "with", "--jail", *(options or ("-c", str(self.file))), "--", *command]

    def run(self, *command: str, options: tuple[str, ...] = (), timeout: float = 120, environment: dict[str, str] | None = None,
            **more) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*command, options=options), capture_output=True, text=True, timeout=timeout, cwd=self.home,
                              env=self.environment | (environment or {}), **more)

    def close(self) -> None:
        self.web.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def place(options: argparse.Namespace) -> Iterator[Place]:
    made = Place(options.binary)
    try:
        yield made
    finally:
        made.close()


def own_address() -> str:
    """An address of this machine that is not the loopback's; the loopback's if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return "127.0.0.1"


# The right end of each attack, or several. `REFUSED`: the connection fails at once.
ENDS: dict[str, str | tuple[str, ...]] = {
    "UDP to every host of the network (mDNS)": NOWHERE,
    "UDP broadcast (DHCP)": NOWHERE,
    "DNS, a transfer of the zone": "no records",
    "DNS, the name of an address": "no name",
    "DNS, a name that is an address in disguise": "no name",
    "DNS, the canary of DNS over HTTPS": "no name",
    "HTTP as it should be": "200",
    "HTTPS as it should be": "200",
    "HTTPS without a name in the handshake": "200",
    "20,000 names, one of them in use": "200",
    "HTTPS to the metadata address": "403",
    "HTTP to the name of the host itself": ("403", "502", "refused"),
    # No address is given to such a name.
    "HTTP to a public address with Host: 127.1": ("403", "502"),
    "HTTP to a public address with Host: 0x7f000001": ("403", "502"),
    # 502: an address of the machine that is not private counts as any host's, and no server listens there on port 80.
    "HTTP to a public address with Host: the host's own address": ("403", "502"),
    "HTTP to one name with the Host of another": "421",
    "HTTP to one name with the address of another in the target": ("421", "400"),
    "HTTP with two Host lines": "400",
    "HTTP with the port of another service in Host": "421",
    "HTTP with a second request in the first": "400",
    "CONNECT without a tunnel": ("405", "421"),
    "CONNECT in a tunnel": ("405", "421"),
    "a handshake that names another host": ("closed", "refused"),
    "a request in TLS for another host": "421",
    "a handshake at a public address that names a host": "200",
    "the same, and then a request for another host": "421",
    "a handshake at a public address that names a denied host": "403",
    "a denied host": "403",
    "DNS over HTTPS": "403",
    "an address that stands for no name": REFUSED,
    "an address of the machine inside": REFUSED,
    "HTTP/2, a second host on the connection of the first": "421 2",
    "another protocol to a host that is not listed": ("closed", "refused"),
    "another protocol to a listed host": "passed",
    "another protocol to a listed host, another port": "passed",
    "another protocol to a public address": ("closed", "refused"),
    "a silent client of a host that is not listed": ("closed", "refused", "silent"),
    "a silent client of a listed host, which speaks first": "passed",
    "a broken handshake": ("closed", "refused", "answered"),
    "a port that is exposed": "passed",
    "a port that is exposed, over IPv6": "passed",
    "a port that is exposed, at another address": REFUSED,
    "a client that pins the host's certificate": "read",
    "io_uring, which makes sockets without the call": "ENOSYS",
    "typing into the terminal of the user's shell (TIOCSTI)": "EPERM",
    "typing into the console (TIOCLINUX)": "EPERM",
    "an abstract Unix socket of the host": REFUSED,
    "a network of its own, and then a connection": REFUSED,
    "a module for the kernel": ("EPERM", "ENOSYS"),
    "a socket of the gateway, by pidfd_getfd": NO_RIGHT,
    "a mark on packets": "EPERM",
    "descriptors that were inherited": "none",
    "the user is the same inside": "same",
    "the working folder is the same inside": "same",
    "no variable names a proxy": "[]",
    "HTTP after all attacks": "200",
}
# By the beginnings of names, for attacks of one kind.
KINDS: list[tuple[str, str | tuple[str, ...]]] = [
    ("TCP to ", REFUSED), ("UDP to ", REFUSED), ("DNS, records of type", "no records"), ("DNS, ", "synthetic"),
    ("HTTP to 127", REFUSED), ("HTTP to ::1", REFUSED), ("HTTPS to 127", REFUSED), ("HTTPS to ::1", REFUSED), ("HTTP to ::ffff", REFUSED),
    ("HTTP to a public address with Host", ("403", "400", "421")), ("HTTP to ", "403"),
    ("a raw socket", NO_RIGHT), ("a packet socket", NO_RIGHT), ("a socket", "EAFNOSUPPORT"), ("setns", NO_RIGHT), ("ptrace", NO_RIGHT), ("the memory", NO_RIGHT),
    ("the environment", NO_RIGHT), ("the descriptors", NO_RIGHT), ("the root folder", NO_RIGHT), ("ip ", REFUSED), ("nsenter", REFUSED), ("another user namespace", REFUSED),
]


def right_end(name: str) -> str | tuple[str, ...]:
    if name in ENDS:
        return ENDS[name]
    return next(ends for beginning, ends in KINDS if name.startswith(beginning))


@trials.add("attacks")
def attacks(options: argparse.Namespace) -> list[dict]:
    results = []
    with place(options) as where, socket.socket(socket.AF_UNIX) as abstract:
        name = f"httpware-jail-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        leaked = os.open(where.folder, os.O_RDONLY)
        outside = socket.create_connection(("127.0.0.1", where.secret.port))
        eventually(lambda: where.secret.count)
        before = where.secret.count
        facts = {"secret": where.secret.port, "exposed": where.exposed.port, "own": own_address(), "hostname": socket.gethostname(), "abstract": name,
                 "user": os.getuid(), "folder": str(where.home), "pinned": str(certificates() / "ca.pem")}
        result = where.run(sys.executable, str(HERE / "attacks.py"), json.dumps(facts), timeout=300, pass_fds=(leaked, outside.fileno()))
        os.close(leaked)
        outside.close()
        for text in result.stdout.splitlines():
            attack, end = json.loads(text)
            ends = right_end(attack)
            results.append(line(attack, " or ".join([ends] if isinstance(ends, str) else ends), end, end in ends if isinstance(ends, tuple) else end == ends))
        results.append(line("attacks", "at least 60, and the program ends by itself", f"{len(results)}, status {result.returncode} {result.stderr[-600:]}",
                            len(results) >= 60 and result.returncode == 0))
        results.append(line("the server on the host's loopback", "no connection", where.secret.count - before, where.secret.count == before))
        text = "the handshake names b.test, but the client connected to a.test"
        results.append(line(f"the gateway's log says: {text}", "once", result.stderr.count(text), result.stderr.count(text) == 1))
        records = [json.loads(text) for text in where.log.read_text().splitlines()]
        for target in ("a.test:443", "93.184.216.34:443"):
            found = {record["status"] for record in records if (record["method"], record["target"]) == ("CONNECT", target)}
            results.append(line(f"the access log has the refusal of a tunnel to {target}", "403", sorted(found), found == {403}))
    return results


# Starts and ends


@trials.add("starts")
def starts(options: argparse.Namespace) -> list[dict]:
    results = []

    def check(name: str, goal: str, measured: object, passed: object) -> None:
        results.append(line(name, goal, measured, passed))

    with place(options) as where:
        for status in (0, 1, 7, 255):
            check(f"exit status {status}", str(status), code := where.run("sh", "-c", f"exit {status}").returncode, code == status)
        check("a program that a signal ends", "143", code := where.run("sh", "-c", "kill -TERM $$").returncode, code == 143)
        result = where.run("/no/such/program")
        check("a program that does not exist", "127, one sentence", f"{result.returncode} {result.stderr.strip()}", result.returncode == 127 and "No such file" in result.stderr)
        (where.home / "data").write_text("x")
        check("a file that cannot be run", "126", code := where.run(str(where.home / "data")).returncode, code == 126)
        check("a program that PATH finds, with its arguments", "a b", text := where.run("echo", "a b").stdout.strip(), text == "a b")
        check("standard input", "x", text := where.run("cat", input="x").stdout, text == "x")
        signals(where, check)
        outlives(where, check)
        terminal(where, check)
        walls(where, check)
        errors(where, check)
        check("no namespace is left in the host's own: its loopback has its addresses only", "no 198.18.0.1", "198.18.0.1" in subprocess.run(
            ["cat", "/proc/net/fib_trie"], capture_output=True, text=True).stdout, "198.18.0.1" not in Path("/proc/net/fib_trie").read_text())
        times(where, check)
    return results


def signals(where: Place, check) -> None:
    script = "trap 'echo usr1; exit 3' USR1; trap 'echo term; exit 4' TERM; echo ready; while :; do read -t 1 x; done"
    for number, said, code in ((signal.SIGUSR1, "usr1", 3), (signal.SIGTERM, "term", 4)):
        process = subprocess.Popen(where.command("bash", "-c", script), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=where.environment, cwd=where.home)
        first = process.stdout.readline().strip()
        process.send_signal(number)
        rest = process.communicate(timeout=20)[0].strip()
        check(f"{number.name} is passed on", f"{said}, {code}", f"{first} {rest} {process.returncode}", first == "ready" and rest == said and process.returncode == code)


def outlives(where: Place, check) -> None:
    """A child that outlives the command has no way out any more."""
    said = where.folder / "said"
    script = f"""(read x < {where.folder}/go; {sys.executable} -c '
import socket
try: socket.create_connection(("93.184.216.34", 80), 5); print("connected")
except OSError as e: print(type(e).__name__)' > {said}.new; mv {said}.new {said}) > /dev/null 2>&1 < /dev/null &"""
    os.mkfifo(where.folder / "go")
    where.run("sh", "-c", script)
    (where.folder / "go").write_text("go\n")
    eventually(said.exists, 20)
    text = said.read_text().strip() if said.exists() else "nothing"
    check("a child that outlives the command", "ConnectionRefusedError", text, text == "ConnectionRefusedError")
    process = subprocess.Popen(where.command("sh", "-c", "echo $$; read x"), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=where.environment)
    inside = int(process.stdout.readline())
    process.kill()
    process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.kill(inside, signal.SIGKILL)
    check("a gateway that is killed", "its program had lived on behind the wall", inside, inside > 0)


def terminal(where: Place, check) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(where.home)
        os.execve(where.binary, where.command("sh", "-c", "test -t 0 && test -t 1 && stty size > /dev/null && echo is-$(($$ > 0))-terminal"), where.environment)
    output = b""
    with contextlib.suppress(OSError):
        while some := os.read(terminal, 1000):
            output += some
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    check("the terminal", "is-1-terminal", output.decode(errors="replace").strip()[-200:], b"is-1-terminal" in output and os.waitstatus_to_exitcode(status) == 0)


def walls(where: Place, check) -> None:
    """Runs without a file, and other settings of the file."""
    ask = [sys.executable, "-c", """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); s.settimeout(5); s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + sys.argv[3].encode() + b"\\r\\n\\r\\n")
    print(s.recv(100).decode(errors="replace").split("\\r\\n")[0])
except OSError as e: print(type(e).__name__)"""]

    def ends(*arguments: object, options: tuple[str, ...] = ()) -> str:
        return where.run(*ask, *map(str, arguments), options=options).stdout.strip()

    without = ("--show",)
    check("without a file: the host's loopback by a name", "403", end := ends("localhost.test", 80, "127.0.0.1", options=without), "421" in end or "403" in end)
    check("without a file: private addresses", "403", end := ends("10.0.0.1", 80, "10.0.0.1", options=without), "403" in end)
    check("without a file: the metadata address", "403", end := ends("169.254.169.254", 80, "169.254.169.254", options=without), "403" in end)
    check("without a file: --expose", "hello", end := ends("127.0.0.1", where.exposed.port, "x", options=("--expose", str(where.exposed.port))), end.startswith("hello"))
    check("without a file: a port that is not exposed", "ConnectionRefusedError", end := ends("127.0.0.1", where.exposed.port, "x", options=without), end == "ConnectionRefusedError")
    check("without a file: --only", "403", end := ends("b.test", 80, "b.test", options=("--only", "a.test")), "403" in end)
    where.write("ports: [8080], dns: refuse")
    check("ports: another one", "200", end := ends("93.184.216.34", 8080, "a.test:8080"), "200" in end)
    check("ports: 80 is not listed", "ConnectionRefusedError", end := ends("93.184.216.34", 80, "a.test"), end == "ConnectionRefusedError")
    check("dns: refuse", "gaierror", end := ends("a.test", 8080, "a.test:8080"), end == "gaierror")
    where.write()
    plain = [where.binary, "with", "-c", str(where.file), "--", *ask, "93.184.216.34", "22", "x"]
    end = subprocess.run(plain, capture_output=True, text=True, env=where.environment, timeout=30).stdout.strip()
    check("a file with jail has the wall without --jail", "ConnectionRefusedError", end, end == "ConnectionRefusedError")


def errors(where: Place, check) -> None:
    """Mistakes and machines that cannot do it: one sentence, and nothing half open."""
    for options in (("--jail", "--tunnel"), ("--jail", "--browser", "chromium", "http://a.test/"), ("--expose", "5432"), ("--jail", "--expose", "443"), ("--jail", "--expose", "53")):
        result = subprocess.run([where.binary, "with", *options, "--", "true"], capture_output=True, text=True, env=where.environment)
        check(f"with {' '.join(options)}", "refused", result.stderr.strip().splitlines()[:1], result.returncode == 64)
    for jail, part in (("ports: [53]", "port of DNS"), ("ports: []", "write the ports"), ("ports: [80, 80]", "twice"), ("expose: [443]", "is in ports, too"),
                       ("ports: [0]", "from 1 to 65535"), ("dns: maybe", "answer")):
        where.write(jail)
        result = where.run("true")
        check(f"jail: {jail}", part, result.stderr.strip()[-300:], result.returncode == 1 and part in result.stderr)
    where.write()

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))

    result = where.run("true", preexec_fn=few)
    check("a full table of descriptors", "one sentence", result.stderr.strip()[-300:], result.returncode != 0 and "escriptor" in result.stderr)
    if os.getuid() == 0:
        # In a user namespace of its own, so that the machine's setting stays.
        script = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
        result = subprocess.run(["unshare", "-Ur", "sh", "-c", script, "sh", *where.command("true")], capture_output=True, text=True, env=where.environment)
        check("no namespaces are left", "user.max_net_namespaces", result.stderr.strip()[-300:], result.returncode == 1 and "user.max_net_namespaces" in result.stderr)
        result = subprocess.run(["unshare", "-p", "-f", *where.command("true")], capture_output=True, text=True, env=where.environment)
        check("/proc of other processes", "one sentence", result.stderr.strip()[-300:], result.returncode == 1 and "with --jail: " in result.stderr)


def times(where: Place, check) -> None:
    """How much later a program starts behind the wall."""

    def took(command: list[str]) -> float:
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, env=where.environment, cwd=where.home)
        return (time.monotonic() - start) * 1000

    # The same file without the wall.
    other = where.folder / "plain.yaml"
    other.write_text("\n".join(text for text in where.file.read_text().replace("127.0.0.1:1", f"127.0.0.1:{free_port()}").splitlines() if "jail:" not in text))
    # In turns, and the quickest of each, because other programs of the machine slow both down.
    pairs = [(took([where.binary, "with", "-c", str(other), "--", "true"]), took(where.command("true"))) for _ in range(15)]
    without, walled = (min(times) for times in zip(*pairs))
    check("the start", "at most 20 ms later than with", f"{walled - without:.1f} ms ({walled:.0f} and {without:.0f})", walled - without <= 20)


# Programs


@trials.add("programs")
def programs(options: argparse.Namespace) -> list[dict]:
    results = []
    with place(options) as where:
        import programs as all_programs

        for name, run in all_programs.PROGRAMS.items():
            try:
                told = run(where)
            except all_programs.Skipped as reason:
                print(f"{name}: {reason}", file=sys.stderr)
                continue
            except Exception as problem:
                results.append(line(name, "goes through the wall", f"{type(problem).__name__}: {str(problem)[-800:]}", False))
                continue
            results.append(line(name, "goes through the wall", told, True))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=str(HERE.parents[1] / ".build/release/httpware"))
    parser.add_argument("--only", choices=trials.names)
    options = parser.parse_args()
    return tell(result for name in trials.names if options.only in (None, name) for result in trials.lines(name, options))


if __name__ == "__main__":
    sys.exit(main())
