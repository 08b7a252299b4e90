"""docker/compose.yaml by podman-compose: the gateways, Redis, the origin server and Prometheus, each by the name that the file gives it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from Containers import bases
from Containers.engine import Engine
from Rig.packages import provide
from Rig.results import line
from Rig.waits import eventually

ROOT = Path(__file__).resolve().parents[2]
# Grafana's image cannot be made here. The services on which these depend come up with them.
SERVICES = ["gateway-1", "gateway-2", "prometheus"]
# The limits of the file may be more than this machine's.
LIMITS = "services:\n" + "".join(f"  {name}: {{ ulimits: {{ nofile: 1024, nproc: 1000 }} }}\n" for name in SERVICES[:2])


def install(engine: Engine) -> None:
    """Puts `docker compose` into the reader's shell."""
    provide("podman-compose==1.6.0")
    import podman_compose

    place = Path(podman_compose.__file__).resolve()
    engine.program("podman-compose", f'PYTHONPATH="{place.parent}" exec "{sys.executable}" "{place}" "$@"')


class Composition:
    """A copy of docker/, and the commands at the head of its compose.yaml."""

    def __init__(self, engine: Engine, name: str):
        self.engine, self.folder = engine, engine.folder / name
        shutil.copytree(ROOT / "docker", self.folder / "docker", ignore=shutil.ignore_patterns("admin-token", "__pycache__"))
        (self.folder / "limits.yaml").write_text(LIMITS)

    def type(self, command: str, fails: bool = False) -> str:
        return self.engine.type(f"docker compose -f docker/compose.yaml -f limits.yaml {command} 2>&1", self.folder, fails=fails, patience=180)

    def token(self) -> None:
        commands = (self.folder / "docker/compose.yaml").read_text()
        [command] = [text[1:].strip() for text in commands.splitlines() if text.startswith("#   openssl")]
        self.engine.type(command, self.folder)

    def down(self) -> None:
        self.type("down --timeout 5", fails=True)


def trial(engine: Engine) -> Iterator[dict]:
    install(engine)
    made = bases.stands(engine)
    engine.network()
    composition = Composition(engine, "composed")
    try:
        printed = composition.type(f"up --detach {' '.join(SERVICES)}", fails=True)
        yield line("compose: without the token", "the missing file is named", [row for row in printed.splitlines() if "admin-token" in row][:2], "admin-token" in printed)
        composition.down()
        composition.token()
        composition.type(f"up --detach {' '.join(SERVICES)}")
        answers = []
        for port in (8081, 8082):
            eventually(lambda port=port: " 200 " in engine.ask(f"http://127.0.0.1:{port}/").partition("\n")[0], 30)
            answers.append(engine.ask(f"http://127.0.0.1:{port}/"))
        yield line("compose: answers", f"both gateways, with {', '.join(made)}", answers, all(" 200 " in answer and "from the origin server at" in answer for answer in answers))
        yield line("compose: a shared cache", "a response that one gateway stored is a hit of the other", pair(engine, "/a"), eventually(lambda: shared(*pair(engine, "/b"))))
        came = eventually(lambda: scraped(engine) == ["up", "up"], 30)
        yield line("compose: Prometheus", "scrapes both gateways with the token", scraped(engine), came)
        healths = [engine.run("docker", "healthcheck", "run", f"httpware_{name}_1", fails=True).returncode for name in SERVICES[:2]]
        yield line("compose: health", "0 for both", healths, healths == [0, 0])
        composition.type("stop gateway-1")
        answer = engine.ask("http://127.0.0.1:8082/")
        state = engine.inspect("httpware_gateway-1_1")["State"]
        yield line("compose: one is stopped", "it ends with 0, the other answers", {"status": state["ExitCode"], "answer": answer[:100]}, state["ExitCode"] == 0 and " 200 " in answer)
        composition.down()
        left = engine.docker("ps", "--all", "--quiet", "--filter", "name=^httpware_")
        yield line("compose: down", "nothing is left", left, not left)
    finally:
        composition.down()
    yield from mistaken(engine)


def pair(engine: Engine, path: str) -> list[str]:
    """The answers of both gateways for one URL, one after the other."""
    return [engine.ask(f"http://127.0.0.1:{port}{path}", "--header", "Host: www.example.com") for port in (8081, 8082)]


def shared(first: str, second: str) -> bool:
    """Whether the second gateway answers with the response that the first has stored."""
    return "fwd=uri-miss" in first and "Cache-Status: httpware; hit" in second and first.splitlines()[-1] == second.splitlines()[-1]


def scraped(engine: Engine) -> list[str]:
    body = engine.ask("http://127.0.0.1:9090/api/v1/targets").rpartition("\n")[2]
    return [target["health"] for target in json.loads(body)["data"]["activeTargets"]] if body.startswith("{") else []


def mistaken(engine: Engine) -> Iterator[dict]:
    """A mistake in the file that is mounted."""
    composition = Composition(engine, "mistaken")
    composition.token()
    file = composition.folder / "docker/compose/gateway.yaml"
    text = file.read_text()
    file.write_text(text.replace("connect: 1s", "conect: 1s"))
    number = next(index for index, row in enumerate(file.read_text().splitlines(), 1) if "conect" in row)
    try:
        composition.type("up --detach gateway-1")
        wanted = f"/etc/httpware/httpware.yaml:{number}:"
        said = eventually(lambda: wanted in composition.type("logs gateway-1", fails=True))
        log = composition.type("logs gateway-1", fails=True)
        yield line("compose: a mistake in the gateway's file", "its log has place, reason and fix", log[-400:], said and 'did you mean "connect"' in log)
    finally:
        composition.down()
