"""Services by the labels of real containers: start, stop, health, ten of them, another network, restarts under load, the engine away, compose."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from Containers import compose, image
from Containers.engine import Engine
from Rig.results import line
from Rig.waits import eventually

HERE = Path(__file__).resolve().parent
ARTICLE = HERE.parents[1] / "Sources/HttpGateway/HttpGateway.docc/FirstGateway.md"
APP = "httpware-trial-app"
# As the article names the image of a release.
RELEASE = "httpware:0.2.0"
HOST = "orders.test"
# A container serves that long after its start, in seconds, at most.
SOON = 0.3
DOCKERFILE = """FROM scratch
COPY app /app
EXPOSE 3000
USER 1000
ENTRYPOINT ["/app", "3000"]
"""
FILE = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:8080" }} }}
admin: {{ bind: "127.0.0.1:9900", token: none }}
discover: {{ docker: {{ socket: "unix:{socket}", network: {network} }}, keep: 5s }}
"""


class Stand:
    """The engine's API, a gateway, and containers, in a network namespace of their own."""

    def __init__(self, engine: Engine, binary: Path):
        self.engine, self.binary = engine, binary
        self.socket = engine.folder / "engine.sock"
        self.processes: list[subprocess.Popen] = []
        self.names: set[str] = set()
        self.tag = engine.folder.name.rpartition(".")[2].lower().replace("_", "")
        self.network = f"web{self.tag}"

    def start(self, *command: object, **options) -> subprocess.Popen:
        words = [*self.engine.inside, *map(str, command)]
        process = subprocess.Popen(words, env={**self.engine.environment, "SWIFT_BACKTRACE": "enable=no"}, **options)
        self.processes.append(process)
        return process

    def service(self) -> subprocess.Popen:
        process = self.start("podman", "system", "service", "--time=0", f"unix:{self.socket}", stderr=subprocess.DEVNULL)
        eventually(self.socket.exists, 10)
        return process

    def gateway(self) -> None:
        file = self.engine.folder / "gateway.yaml"
        file.write_text(FILE.format(socket=self.socket, network=self.network))
        self.log = open(self.engine.folder / "gateway.log", "w+b")
        self.start(self.binary, "run", "-c", file, stderr=self.log)
        eventually(lambda: self.engine.ask("http://127.0.0.1:9900/readyz"), 10)

    def run(self, name: str, *options: str, labels: dict[str, str] | None = None) -> None:
        self.names.add(name)
        words = {"httpware.route": f"{HOST}/api/**", "com.docker.compose.service": "orders", "com.docker.compose.project": "shop", **(labels or {})}
        written = [word for key, value in words.items() for word in ("--label", f"{key}={value}")]
        self.engine.docker("run", "--detach", "--name", f"{self.tag}-{name}", "--network", self.network, *options, *written, APP)

    def docker(self, verb: str, name: str, *words: str) -> None:
        self.engine.docker(verb, *words, f"{self.tag}-{name}")

    def ask(self, host: str = HOST) -> str:
        return self.engine.ask("http://127.0.0.1:8080/api/x", "--header", f"Host: {host}")

    def status(self, host: str = HOST) -> int:
        found = re.match(r"HTTP/1.1 (\d+)", self.ask(host))
        return int(found[1]) if found else 0

    def addresses(self) -> list[str]:
        body = self.engine.ask("http://127.0.0.1:9900/v1/services").partition("\n\n")[2]
        services = json.loads(body)["services"] if body else []
        return [address["address"] for service in services for endpoint in service["endpoints"] for address in endpoint["addresses"] if address["state"] != "draining"]

    def close(self) -> None:
        for name in self.names:
            self.engine.docker("rm", "--force", "--time", "0", f"{self.tag}-{name}", fails=True)
        self.engine.docker("network", "rm", self.network, fails=True)
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)


def app(engine: Engine) -> None:
    """The image of the program in the containers: a static program and nothing else."""
    folder = engine.folder / "app"
    folder.mkdir()
    engine.run("gcc", "-O2", "-Wall", "-Werror", "-static", "-pthread", "-o", folder / "app", HERE / "app.c")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    engine.docker("build", "--network", "host", "--tag", APP, folder)


def trial(engine: Engine, binary: Path, restarts: int) -> Iterator[dict]:
    app(engine)
    engine.network()
    stand = Stand(engine, binary)
    try:
        service = stand.service()
        engine.docker("network", "create", stand.network)
        stand.run("first")
        stand.gateway()
        yield line("discover: at the start", "200 for the first request", stand.status(), stand.status() == 200)
        yield from comings(stand)
        yield from lost(stand, restarts)
        service.terminate()
        service.wait(20)
        away = eventually(lambda: 'httpware_discover_up{source="docker"} 0' in engine.ask("http://127.0.0.1:9900/metrics"), 20)
        yield line("discover: the engine is away", "known services stay, and a metric says it", stand.status(), away and stand.status() == 200)
        stand.service()
        stand.run("again", labels={"httpware.route": "again.test", "httpware.name": "again"})
        yield line("discover: the engine is back", "a new container is found", stand.status("again.test"), eventually(lambda: stand.status("again.test") == 200, 20))
    finally:
        stand.close()
    yield from composed(engine, binary)


def comings(stand: Stand) -> Iterator[dict]:
    times = []
    for turn in range(5):
        stand.run(f"soon-{turn}", labels={"httpware.route": f"soon-{turn}.test", "httpware.name": f"soon-{turn}"})
        began = time.monotonic()
        eventually(lambda turn=turn: stand.status(f"soon-{turn}.test") == 200, 10, every=0.002)
        times.append(round(time.monotonic() - began, 3))
        stand.docker("rm", f"soon-{turn}", "--force", "--time", "0")
    yield line("discover: a container starts", f"serves within {SOON} s of the end of docker run, five times", times, max(times) <= SOON)
    stand.docker("stop", "first")
    gone = eventually(lambda: stand.status() == 503, 5, every=0.01)
    yield line("discover: the only container stops", "503, then 404", stand.status(), gone and eventually(lambda: stand.status() == 404, 20))
    stand.docker("start", "first")
    yield line("discover: it starts again", "200", stand.status(), eventually(lambda: stand.status() == 200, 5))
    for number in range(2, 11):
        stand.run(f"more-{number}")
    ten = eventually(lambda: len(stand.addresses()) == 10, 10)
    answered = {stand.ask().rpartition("\n\n")[2].split(" ")[0] for _ in range(20)}
    yield line("discover: ten containers", "10 endpoints, each is asked", [len(stand.addresses()), len(answered)], ten and len(answered) == 10)
    for number in range(2, 11):
        stand.docker("rm", f"more-{number}", "--force", "--time", "0")
    yield line("discover: back to one", "1 endpoint", stand.addresses(), eventually(lambda: len(stand.addresses()) == 1, 10))
    stand.engine.docker("network", "disconnect", stand.network, f"{stand.tag}-first")
    left = eventually(lambda: stand.status() == 503, 10)
    stand.engine.docker("network", "connect", stand.network, f"{stand.tag}-first")
    yield line("discover: out of the network, and in again", "503, then 200", stand.status(), left and eventually(lambda: stand.status() == 200, 10))
    stand.run("sick", "--health-cmd", '["/app", "check"]', "--health-interval", "disable", labels={"httpware.route": "sick.test", "httpware.name": "sick"})
    waits = eventually(lambda: stand.status("sick.test") == 503, 5)
    stand.engine.docker("healthcheck", "run", f"{stand.tag}-sick", fails=True)
    yield line("discover: a health check of the engine", "503 until it passes, then 200", stand.status("sick.test"), waits and eventually(lambda: stand.status("sick.test") == 200, 40))


def lost(stand: Stand, restarts: int) -> Iterator[dict]:
    """Restarts of three containers in turn, under load."""
    for name in ("one", "two"):
        stand.run(name)
    eventually(lambda: len(stand.addresses()) == 3, 10)
    load = stand.start(sys.executable, HERE / "steady.py", 8080, HOST, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for turn in range(restarts):
        stand.docker("restart", ("first", "one", "two")[turn % 3])
    said, _ = load.communicate()
    result = json.loads(said.splitlines()[-1])
    sent = sum(result["answers"].values())
    bad = sent - result["answers"].get("200", 0)
    yield line(f"discover: {restarts} restarts under load", "no request is lost", {"requests": sent, "lost": bad, "examples": result["examples"]}, bad == 0 and sent > 1000)


def composed(engine: Engine, binary: Path) -> Iterator[dict]:
    """The commands of *Your first gateway*, from an empty folder to an answer."""
    compose.install(engine)
    if not engine.has(image.IMAGE):
        image.build(engine, binary)
    engine.docker("tag", image.IMAGE, RELEASE)
    text = ARTICLE.read_text()
    commands = re.search(r"(?ms)^```sh\n(.*?)^```", text[text.index("## Services by their labels"):])
    assert commands
    folder, socket = engine.folder / "labelled", engine.folder / "compose.sock"
    folder.mkdir()
    words = [*engine.inside, "podman", "system", "service", "--time=0", f"unix:{socket}"]
    service = subprocess.Popen(words, env=engine.environment, stderr=subprocess.DEVNULL)
    try:
        eventually(socket.exists, 10)
        said = engine.type(commands[1].replace("/var/run/docker.sock:", f"{socket}:"), folder, patience=180)
        yield line("discover: compose from an empty folder", "the app answers", said[-300:], "HTTP/1.1 200" in said)
    finally:
        engine.type("docker compose down --timeout 5", folder, fails=True)
        service.terminate()
        service.wait(20)
