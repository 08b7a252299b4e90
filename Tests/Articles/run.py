#!/usr/bin/env python3
"""The recipes of the documentation, *Run it* of Installing and the README's file, run as a reader would: files and commands as they stand there, on free ports.

    Tests/Articles/run.py --binary .build/debug/httpware [--only TEXT]

Each section of Recipes.md with a configuration needs a trial here. A trial writes the section's files to a folder of its own, runs the commands
above the file, checks it with `check --strict`, starts it, and runs the commands below it. Only addresses are changed: ports become free
ones, and hosts of other machines become servers of this script. Python 3.11, curl and openssl. Last: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Articles.servers import Application, Tokens  # noqa: E402
from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402
from Rig.waits import eventually  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ARTICLE = ROOT / "Sources/HttpGateway/HttpGateway.docc/Recipes.md"
COMMANDS = "Run it"
WATCHED = "A gateway that can be watched"
OTHERS = "Whole files of the other articles"
FENCE = re.compile(r"(?ms)^```(sh|yaml)\n(.*?)^```$")


class Failed(Exception):
    pass


def expect(condition: object, *shown: object) -> None:
    if not condition:
        raise Failed(" ".join(str(one)[-1200:] for one in shown))


def happens(condition: Callable[[], bool], patience: float = 10.0) -> None:
    expect(eventually(condition, patience, every=0.05), "did not happen in time")


class Section:
    """A recipe: its blocks in order, each a configuration or commands."""

    def __init__(self, text: str):
        self.title, _, self.text = text.partition("\n")
        self.blocks = [(match[1], match[2]) for match in FENCE.finditer(self.text)]
        self.files = [text for language, text in self.blocks if language == "yaml"]

    @classmethod
    def all(cls) -> dict[str, Section]:
        sections = [cls(text) for text in re.split(r"(?m)^## ", ARTICLE.read_text())[1:]]
        others = [ROOT / "README.md", ARTICLE.parent / "Installing.md", ARTICLE.parent / "Monitoring.md"]
        further = [section for path in others for section in map(cls, re.split(r"(?m)^## ", path.read_text()))]
        further = [section for section in further if section.title == COMMANDS or any(text.startswith("version: 1\n") for text in section.files)]
        # WritingAWare.md has a ware that is not part of the program.
        articles = [path for path in sorted(ARTICLE.parent.glob("*.md")) if path.name not in (ARTICLE.name, "WritingAWare.md")]
        rest = cls(f"{OTHERS}\n" + "".join(path.read_text() for path in articles))
        return {section.title: section for section in [*sections, *further, rest] if section.files or section.title == COMMANDS}


class Recipe:
    """One run of a section: a folder, the servers that stand for other machines, and the shell in which the reader types."""

    def __init__(self, section: Section, binary: str, place: Workplace, application: Application, tokens: Tokens):
        self.section, self.binary, self.place = section, binary, place
        self.application, self.tokens, self.next = application, tokens, Application()
        self.folder = place.subfolder("recipe")
        self.web, self.admin = free_port(), free_port()
        self.ports = {"8080": self.web, "9900": self.admin, "3000": application.port, "3001": self.next.port, "9091": application.port,
                      "8888": free_port(), "8899": free_port(), "8081": free_port(), "80": free_port(), "443": free_port(), "50051": free_port()}
        self.changes: list[tuple[str, str]] = [("admin: {}", f'admin: {{ bind: "127.0.0.1:{self.admin}", token: none }}'),
                                               ("https://login.example.com", tokens.url), ("https://api.example.com", application.url)]
        home = place.subfolder("home")
        self.environment = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "PATH": f"{Path(binary).parent}:{os.environ['PATH']}",
                            "SWIFT_BACKTRACE": "enable=no", "SSL_CERT_FILE": str(certificates() / "ca.pem"), "LC_ALL": "C"}
        (home / ".curlrc").write_text("no-progress-meter\n")

    def local(self, text: str) -> str:
        """With the addresses of this run."""
        for old, new in self.changes:
            text = text.replace(old, new)
        return re.sub(r"\b(127\.0\.0\.1|0\.0\.0\.0):(\d+)", lambda match: f"127.0.0.1:{self.ports.get(match[2], match[2])}", text)

    def type(self, commands: str, fails: bool = False) -> str:
        """The output of a shell for the commands. Variables that they export or set are there for the next ones."""
        script = f"set -a; [ ! -f .shell ] || . ./.shell; {{\n{self.local(commands)}\n}}; status=$?; export -p | grep -v ' PWD=\\| OLDPWD=' > .shell; exit $status"
        result = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)
        expect(fails or result.returncode == 0, "exit", result.returncode, commands, result.stdout, result.stderr)
        return result.stdout + result.stderr

    def variables(self) -> dict[str, str]:
        shell = self.folder / ".shell"
        if not shell.exists():
            return self.environment
        printed = subprocess.run(["bash", "-c", ". ./.shell; env -0"], cwd=self.folder, capture_output=True, timeout=10).stdout.decode()
        return {**self.environment, **dict(pair.split("=", 1) for pair in printed.split("\0") if "=" in pair)}

    def write(self, text: str, name: str = "httpware.yaml") -> None:
        (self.folder / name).write_text(self.local(text))
        result = subprocess.run([self.binary, "check", "--strict", name], cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=60)
        expect(result.returncode == 0, "check:", result.stdout, result.stderr)

    def start(self, *ports: int, name: str = "httpware.yaml") -> Process:
        # The admin listener opens last.
        has_admin = re.search("(?m)^admin:", (self.folder / name).read_text())
        return self.serve(f"httpware run {name} --workers 1", *ports or [self.web], *[self.admin] * bool(has_admin))

    def serve(self, command: str, *ports: int) -> Process:
        """Starts a command that runs until it is ended."""
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            return self.place.command(["bash", "-c", f"exec {self.local(command)}"], list(ports), environment=self.variables())
        finally:
            os.chdir(here)

    def run(self, *ports: int) -> str:
        """The usual recipe: commands, one file, commands. Returns what the last ones printed."""
        printed = ""
        for language, text in self.section.blocks:
            if language == "yaml":
                self.write(text)
                self.start(*ports)
            else:
                printed = self.type(text)
        return printed


TRIALS: dict[str, Callable[[Recipe], None]] = {}


def recipe(title: str) -> Callable:
    def register(run: Callable[[Recipe], None]) -> None:
        TRIALS[title] = run

    return register


def statuses(printed: str) -> list[int]:
    return [int(status) for status in re.findall(r"HTTP/[\d.]+ (\d{3}) ", printed)]


@recipe("An API with JSON Web Tokens")
def _(r: Recipe) -> None:
    r.environment["TOKEN"] = r.tokens.signed({"iss": r.tokens.url, "aud": "orders", "sub": "anna", "exp": int(time.time()) + 600})
    printed = r.run()
    expect(statuses(printed) == [401, 200], printed)
    expect(r.application.field("X-User") == "anna" and r.application.field("Authorization") is None, r.application.seen)


@recipe("Tokens for an upstream")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [200] and "ready" in printed, printed)
    expect(r.application.field("Authorization") == "Bearer a-token-of-the-gateway", r.application.seen)


@recipe("A cached site")
def _(r: Recipe) -> None:
    printed = r.run()
    lines = [line for line in printed.splitlines() if line.lower().startswith("cache-status")]
    expect(len(lines) == 2 and "fwd=uri-miss" in lines[0] and "hit" in lines[1] and f"{r.web}/" in printed.splitlines()[-1], printed)
    expect(len(r.application.seen) == 1, r.application.seen)


@recipe("A rate limit for each key")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [401, 200], printed)
    more = r.type('curl -s -o out -w "%{http_code} " -H "X-API-Key: $KEY" "http://127.0.0.1:8080/[1-400]"')
    expect(more.count("200") >= 50 and "429" in more, more)


@recipe("A canary")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [200] and "app-share=" in printed and "app-next" in printed, printed)
    r.type('for i in $(seq 200); do curl -s -o /dev/null http://127.0.0.1:8080/; done')
    expect(1 <= len(r.next.seen) <= 40 and len(r.application.seen) >= 160, len(r.next.seen), len(r.application.seen))
    before = len(r.next.seen), len(r.application.seen)
    r.type('for i in $(seq 20); do curl -s -o /dev/null -b jar -c jar http://127.0.0.1:8080/; done')
    gained = len(r.next.seen) - before[0], len(r.application.seen) - before[1]
    expect(sorted(gained) == [0, 20], "not sticky:", gained)


@recipe("Maintenance")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [503, 200] and "Retry-After:" in printed, printed)


@recipe("A copy of the traffic for a new version")
def _(r: Recipe) -> None:
    printed = r.run()
    expect("mirror" in printed and len(r.application.seen) == 100, printed, len(r.application.seen))
    expect(1 <= len(r.next.seen) <= 40, len(r.next.seen))


@recipe("A single-page app and its API")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [200, 200] and "<title>app</title>" in printed and "no-cache" in printed, printed)
    expect([path for path, _ in r.application.seen] == ["/api/orders"], r.application.seen)


@recipe("Logins by Authelia or oauth2-proxy")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [302] and "Location: https://login.example.com/" in printed, printed)
    printed = r.type('curl -i -H "Cookie: session=anna" http://127.0.0.1:8080/')
    expect(statuses(printed) == [200] and r.application.field("Remote-User") == "anna", printed, r.application.seen)


@recipe("WebSockets")
def _(r: Recipe) -> None:
    r.run()
    with socket.create_connection(("127.0.0.1", r.web), 5) as client:
        client.sendall(b"GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        answer = client.recv(4096)
        expect(answer.startswith(b"HTTP/1.1 101"), answer)
        client.sendall(b"\x81\x85\0\0\0\0hello")  # echoed by the application as it is
        expect(client.recv(100).endswith(b"hello"), "no echo")


@recipe("gRPC")
def _(r: Recipe) -> None:
    # A gateway that answers is the server: it understands HTTP/2 in clear text, and logs the version.
    folder = r.place.subfolder("greeter")
    (folder / "httpware.yaml").write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{r.ports['50051']}" }} }}
chains: {{ greeter: {{ middlewares: [{{ mock: {{ body: hello }} }}], postwares: [{{ accessLog: {{ output: "file:{folder}/log" }} }}] }} }}
routes: [{{ chain: greeter }}]
""")
    r.place.command([r.binary, "run", str(folder / "httpware.yaml")], [r.ports["50051"]])
    r.run()
    printed = r.type("curl -i --http2-prior-knowledge -H 'Content-Type: application/grpc' -H 'TE: trailers' -d '' http://127.0.0.1:8080/helloworld.Greeter/SayHello")
    expect(statuses(printed) == [200], printed)
    happens(lambda: (folder / "log").exists() and "HTTP/2" in (folder / "log").read_text())


@recipe("HTTPS with a certificate of Let's Encrypt")
def _(r: Recipe) -> None:
    # No authority answers here: the gateway shows its own certificate meanwhile, and says what it waits for.
    r.changes.append(("https://acme-staging-v02.api.letsencrypt.org/directory", f"http://127.0.0.1:{free_port()}/directory"))
    r.changes.append((", chain: toTls }\nservices", ", chain: toTls }\nservices"))
    [text] = r.section.files
    r.write(text)
    r.start(r.ports["443"], r.ports["80"])
    printed = r.type(r.section.blocks[-1][1], fails=True)
    expect("www.example.com" in printed, printed)
    printed = r.type("curl -i -H 'Host: www.example.com' 'http://127.0.0.1:80/a'; curl -ski -H 'Host: www.example.com' https://127.0.0.1:443/")
    expect(statuses(printed) == [308, 200] and "https://www.example.com/a" in printed, printed)


@recipe("A bucket for programs without AWS keys")
def _(r: Recipe) -> None:
    folder = Path(r.environment["HOME"]) / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text("[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = example-secret\n")
    r.changes.append(("https://example-bucket.s3.eu-central-1.amazonaws.com", r.application.url))
    printed = r.run()
    expect(200 in statuses(printed), printed)
    signed = r.application.field("Authorization") or ""
    expect(signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") and "/eu-central-1/s3/aws4_request" in signed, r.application.seen)


@recipe("A slow endpoint among good ones")
def _(r: Recipe) -> None:
    r.application.slow_once = 3.0
    printed = r.run()
    began = time.monotonic()
    more = r.type('for i in 1 2 3 4; do curl -s -o /dev/null -w "%{http_code} " http://127.0.0.1:8080/; done')
    expect(statuses(printed) == [200] and more.split() == ["200"] * 4, printed, more)
    expect(r.application.slow_once == 0 and time.monotonic() - began < 2.5, "the slow endpoint was waited for")


@recipe("A payment that is made once")
def _(r: Recipe) -> None:
    printed = r.run()
    expect(statuses(printed) == [200, 200] and printed.count("Idempotency-Replayed: true") == 1, printed)
    expect(len(r.application.seen) == 1, r.application.seen)


@recipe("Signed requests between two gateways")
def _(r: Recipe) -> None:
    (_, secret), (_, first), (_, second), (_, commands) = r.section.blocks
    r.type(secret)
    r.write(second, "second.yaml")
    r.start(r.ports["8081"], name="second.yaml")
    r.write(first)
    r.start()
    printed = r.type(commands)
    expect(statuses(printed) == [200, 401] and len(r.application.seen) == 1, printed)


@recipe("Behind a corporate proxy")
def _(r: Recipe) -> None:
    r.changes.append(("proxy.corp.example:3128", f"127.0.0.1:{r.application.port}"))
    printed = r.run(r.ports["8888"])
    expect(statuses(printed) == [200] and r.application.seen[-1][0] == "http://example.com/", printed, r.application.seen)


@recipe("Tests without the network")
def _(r: Recipe) -> None:
    (_, recording), (_, ask), (_, replaying), (_, ask_again) = r.section.blocks
    r.write(recording)
    process = r.start()
    first = r.type(ask)
    happens(lambda: (r.folder / "api.har").exists() and "/orders" in (r.folder / "api.har").read_text())  # written within two seconds
    process.stop()
    r.write(replaying)
    r.start()
    again = r.type(ask_again)
    expect(statuses(first) == [200] and statuses(again) == [200, 502] and len(r.application.seen) == 1, first, again)


@recipe("A sandbox for an agent")
def _(r: Recipe) -> None:
    application = Application(tls=True)
    r.changes = [("https://api.example.com", f"https://localhost:{application.port}"), ("api.example.com", "localhost"),
                 ("    mode: forward\n", f"    mode: forward\n    forward: {{ connectPorts: [443, {application.port}], denyPrivate: false }}\n")]
    (_, made), (_, file), (_, commands) = r.section.blocks
    r.type(made)
    r.write(file)
    lines = r.type(commands, fails=True).splitlines()
    expect(any(line.startswith("hwp_") for line in lines) and "change-me" not in " ".join(lines), lines)
    expect(application.field("Authorization") == "Bearer change-me", application.seen, lines)
    expect(any('"path"' in line and "hwp_" in line for line in lines), "not scrubbed:", lines)
    expect(any(line.endswith("403") for line in lines), lines)
    expect(not any("stopped" in line for line in lines), "the gateway's end is shown:", lines)


@recipe(OTHERS)
def _(r: Recipe) -> None:
    shutil.copytree(ROOT / "conf", r.folder / "conf")
    token = Path(r.environment["HOME"], ".config/gh/token")
    token.parent.mkdir(parents=True)
    token.write_text("a-token\n")
    r.type("httpware ca init")
    files = [text for text in r.section.files if text.startswith("version: 1\n")]
    expect(len(files) >= 15, len(files))
    for number, text in enumerate(files):
        r.write(text, f"{number}.yaml")


@recipe("A whole file")
def _(r: Recipe) -> None:
    r.run()
    printed = r.type("curl -si http://127.0.0.1:8080/api/orders")
    expect(statuses(printed) == [200], printed)
    printed = r.type(f"httpware trace --admin 127.0.0.1:{r.admin}")
    expect("/api/orders" in printed, printed)
    (r.folder / "httpware.yaml").write_text(r.section.files[0].replace("rate: 100", "rat: 100"))
    mistake = r.type("httpware check httpware.yaml", fails=True).splitlines()[0]
    expect(f"`{mistake}`" in r.section.text, mistake)


@recipe(COMMANDS)
def _(r: Recipe) -> None:
    commands = [line.partition(" #")[0].strip() for line in r.section.blocks[0][1].splitlines()]
    shutil.copytree(ROOT / "conf", r.folder / "conf")
    files, proxy = free_port(), r.ports["8081"]
    r.changes += [("http://example.com", r.application.url), ("connectPorts: [80, 443]", "connectPorts: [80, 443], denyPrivate: false"),
                  ("httpware trace", f"httpware trace --admin 127.0.0.1:{r.admin}"), ("8082", str(files)), (":8081", f":{proxy}")]
    r.write((ROOT / "conf/httpware.yaml").read_text(), "conf/httpware.yaml")
    r.start(r.web, r.ports["8888"], name="conf/httpware.yaml")
    shown = ("Hello from httpware", '"path": "/"', "GET  /hello  200", "route     hello", "ok: 2 listeners", "5 cases: 5 passed", "burst", "This page is a file")
    for command, text in zip(commands, shown):
        if command.startswith("httpware files"):
            r.serve(command, files)
            command = f"curl -s http://127.0.0.1:{files}/"
        # The cases are for the file as it is, without this run's addresses.
        command = command.replace("test -c conf", f"test -c {ROOT}/conf")
        expect(text in (printed := r.type(command)), command, printed)
    expect(len(commands) == len(shown) + 1 and commands[-1].startswith("httpware proxy"), commands)
    server = r.serve(commands[-1], proxy)
    expect("This page is a file" in r.type(f"curl -s http://127.0.0.1:{proxy}/"), server.log)
    happens(lambda: "GET  /  200" in server.log)


@recipe(WATCHED)
def _(r: Recipe) -> None:
    collector = Application()
    r.ports["4318"] = collector.port
    printed = r.run()
    expect('{listener="web",route="app",service="app",code="2xx"} 1' in printed, printed)
    happens(lambda: any(path == "/v1/traces" for path, _ in collector.seen))
    article = (ARTICLE.parent / "Monitoring.md").read_text()
    expect(printed.strip().replace(str(r.web), "8080") in article, printed)
    # The names of the article and of the dashboard, at a gateway that has all that they count.
    named = set(re.findall(r"\b(?:httpware|process)_[a-z_]+[a-z]\b", article + (ROOT / "docker/compose/dashboard.json").read_text()))
    full, broken, secure = free_port(), free_port(), free_port()
    folder = r.place.subfolder("full")
    (folder / "httpware.yaml").write_text(f"""version: 1
admin: {{ bind: "127.0.0.1:{full}", token: none }}
listeners:
  web: {{ bind: "127.0.0.1:{r.ports['8081']}" }}
  secure: {{ bind: "127.0.0.1:{secure}", tls: {{ cert: "{certificates() / 'a.pem'}", key: "{certificates() / 'a.key'}" }} }}
stores: {{ shared: {{ redis: {{ url: "redis://127.0.0.1:{broken}" }} }} }}
credentials: {{ key: {{ grant: static, value: a-value }} }}
services:
  app: {{ baseUrl: "{r.application.url}", healthCheck: {{ path: / }} }}
  away: {{ baseUrl: "http://127.0.0.1:{broken}" }}
chains:
  all:
    middlewares:
      - traceparent: {{ export: otlp, endpoint: "{collector.url}/v1/traces" }}
      - rateLimit: {{ rate: 100/s, burst: 100 }}
      - httpCache: {{ store: shared }}
      - circuitBreaker
      - tokenInject: {{ credential: key }}
    postwares: [metrics]
routes:
  - {{ match: {{ path: /away }}, service: away }}
  - {{ service: app, chain: all }}
""")
    r.place.command([r.binary, "run", str(folder / "httpware.yaml"), "--workers", "1"], [r.ports["8081"], full], environment=r.variables())
    r.type(f"curl -s -o /dev/null http://127.0.0.1:{r.ports['8081']}/ http://127.0.0.1:{r.ports['8081']}/away")

    def missing() -> set[str]:
        shown = set(re.findall(r"(?m)^# TYPE (\w+) ", r.type(f"curl -s http://127.0.0.1:{full}/metrics")))
        return {name for name in named if name not in shown and name.removesuffix("_bucket") not in shown}

    eventually(lambda: not missing(), 5)
    expect(len(named) >= 20 and not missing(), "no such metrics:", missing())


@recipe("Prometheus")
def _(r: Recipe) -> None:
    r.write(next(text for text in r.section.files if text.startswith("version: 1\n")))
    r.start()
    ask = "curl -s -o /dev/null -w '%{http_code} ' -H 'Host: gateway-1:9900' http://127.0.0.1:9900/metrics"
    printed = r.type(f"{ask} -H 'Authorization: Bearer 0123456789abcdef0123456789abcdef'; {ask}; {ask.replace('gateway-1:9900', 'localhost')}")
    expect(printed.split() == ["200", "403", "200"], printed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    binary = str(Path(options.binary).resolve())
    sections = Section.all()
    passed = failed = 0
    tokens, place = Tokens(), Workplace("articles")
    for title in [*sections, *(title for title in TRIALS if title not in sections)]:
        if options.only not in title:
            continue
        here = Workplace("recipe")
        try:
            expect(title in TRIALS, "this recipe has no trial")
            expect(title in sections, "the article has no such recipe")
            TRIALS[title](Recipe(sections[title], binary, here, Application(), tokens))
            passed += 1
            print(f"ok      {title}", flush=True)
        except Exception as problem:  # a mistake in a trial fails it, like any other
            failed += 1
            logs = " ".join(process.log[-600:] for process in here.processes)
            print(f"FAILED  {title}: {type(problem).__name__}: {problem} {logs}", flush=True)
        finally:
            here.close()
    place.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
