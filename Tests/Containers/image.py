"""The image of docker/Dockerfile, built and run by an engine as a reader would."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from Containers import bases
from Containers.engine import Engine, Failed
from Rig.certificates import certificates
from Rig.results import line
from Rig.waits import eventually

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "httpware"
# To pull, and on the disk.
MOST_PACKED, MOST_BYTES = 60 * 1024 * 1024, 60 * 1024 * 1024
FILE = "/etc/httpware/httpware.yaml"
COMMIT = "0123456789ab"


def build(engine: Engine, prebuilt: Path | None) -> None:
    """The command of the README. `prebuilt` saves the compiler's minutes: a program that takes the place of the one that is compiled."""
    bases.swift(engine)
    command = ["docker", "build", "--pull=never", "--network", "host", "--build-arg", f"HTTPWARE_COMMIT={COMMIT}", "--tag", IMAGE]
    if not prebuilt:
        bases.tell("builds docker/Dockerfile; the compiler takes ten minutes")
        engine.run("nice", *command, "--file", ROOT / "docker/Dockerfile", ROOT)
        return
    context = engine.folder / "prebuilt"
    shutil.rmtree(context, ignore_errors=True)
    (context / "conf").mkdir(parents=True)
    shutil.copy(ROOT / "conf/sidecar.yaml", context / "conf")
    engine.run("strip", "-o", context / "program", prebuilt)
    text = (ROOT / "docker/Dockerfile").read_text()
    for instruction in ("COPY Package.swift ./", "RUN swift package resolve", "COPY Sources Sources", "COPY Tests Tests"):
        text = text.replace(f"\n{instruction}\n", "\n")
    text = re.sub(r"(?m)^RUN swift build .*$", "COPY program .build/release/httpware", text)
    engine.run(*command, "--file", "-", context, input=text)


def packed_size(engine: Engine, image: str) -> int:
    """The bytes that are pulled."""
    target = engine.folder / "packed.tar"
    target.unlink(missing_ok=True)
    engine.docker("save", "--format", "oci-archive", "--output", target, image)
    size = target.stat().st_size
    target.unlink()
    return size


def programs(engine: Engine, image: str) -> list[str]:
    """The files of an image that can be started, without the libraries."""
    target = engine.folder / "root.tar"
    name = engine.docker("create", "--pull=never", image)
    engine.docker("export", "--output", target, name)
    engine.docker("rm", name)
    with tarfile.open(target) as tar:
        found = [each.name for each in tar if each.isreg() and each.mode & 0o111 and ".so" not in each.name]
    target.unlink()
    return found


class Running:
    """A container in the background, removed at the end of the block."""

    def __init__(self, engine: Engine, *words: object):
        self.engine = engine
        self.name = engine.docker("run", "--pull=never", "--detach", *words)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_) -> None:
        self.engine.docker("rm", "--force", "--time", "0", self.name, fails=True)

    @property
    def log(self) -> str:
        return self.engine.docker("logs", self.name, fails=True)

    def requests(self) -> list[dict]:
        """The lines of its access log, which it writes a moment later."""
        return [json.loads(row) for row in self.log.splitlines() if row.startswith("{")]

    @property
    def status(self) -> int:
        return self.engine.inspect(self.name)["State"]["ExitCode"]

    def health(self) -> int:
        """The exit status of the health check. Podman takes none from an image of OCI's format, so its command is run there."""
        seen = self.engine.inspect(self.name)["Config"]
        command = ["healthcheck", "run", self.name] if seen.get("Healthcheck") else ["exec", self.name, "/usr/bin/httpware", "health", "-c", FILE]
        return self.engine.run("docker", *command, fails=True).returncode

    def ends(self) -> bool:
        return eventually(lambda: self.engine.inspect(self.name)["State"]["Status"] == "exited")


class Origin:
    """The origin server, in the network of the containers."""

    def __init__(self, engine: Engine, port: int, *identity: Path):
        command = [*engine.inside, sys.executable, str(Path(__file__).with_name("origin.py")), str(port), *map(str, identity)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        scheme = "https" if identity else "http"
        if not eventually(lambda: engine.ask(f"{scheme}://127.0.0.1:{port}/", "--insecure")):
            raise Failed("the origin server does not listen")

    def __enter__(self) -> Origin:
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(10)


def trial(engine: Engine, image: str = IMAGE, part: str = "image", commit: str = COMMIT) -> Iterator[dict]:
    """The size, the form and the behaviour of an image of the program."""
    seen = engine.inspect(image)
    packed, size = packed_size(engine, image), seen["Size"]
    yield line(f"{part}: size", f"at most {MOST_PACKED} bytes to pull, {MOST_BYTES} on the disk", {"pull": packed, "disk": size}, packed <= MOST_PACKED and size <= MOST_BYTES)
    layers = len(seen["RootFS"]["Layers"])
    yield line(f"{part}: layers", "one", layers, layers == 1)
    yield line(f"{part}: user", "not root", seen["Config"].get("User"), seen["Config"].get("User") == "10001:10001")
    found = programs(engine, image)
    yield line(f"{part}: programs", "httpware alone", found, [Path(name).name for name in found] == ["httpware"])
    shell = engine.run("docker", "run", "--rm", "--pull=never", "--entrypoint", "/bin/sh", image, "-c", "true", fails=True)
    yield line(f"{part}: shell", "the image has no shell", shell.returncode, shell.returncode == 127)
    labels = {name.rpartition(".")[2]: value for name, value in (seen["Config"].get("Labels") or {}).items() if name.startswith("org.opencontainers.image.")}
    yield line(f"{part}: labels", "title, licence and commit by OCI's names", labels, labels.get("title") == "httpware" and labels.get("licenses") == "Apache-2.0" and labels.get("revision") == commit)
    version = json.loads(engine.docker("run", "--rm", "--pull=never", image, "version", "--json", "--libraries"))
    yield line(f"{part}: libraries", "each has a version, and is in the image", version["loaded"],
               len(version["loaded"]) > 15 and all(each["version"] and each["path"].startswith("/lib") for each in version["loaded"]))
    yield from running(engine, image, part)
    yield from configured(engine, image, part)


def running(engine: Engine, image: str, part: str) -> Iterator[dict]:
    """With a root that cannot be written, no rights, and an origin server over TLS that is verified."""
    bundle = engine.folder / "bundle.pem"
    bundle.write_bytes(Path("/etc/ssl/certs/ca-certificates.crt").read_bytes() + (certificates() / "ca.pem").read_bytes())
    bundle.chmod(0o644)
    well = engine.run("docker", "run", "--rm", "--pull=never", "--entrypoint", "/usr/bin/httpware", image, "health", "-c", FILE, fails=True).returncode
    yield line(f"{part}: health of what does not run", "3", well, well == 3)
    locked = ["--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "host"]
    with Origin(engine, 3443, certificates() / "a.pem", certificates() / "a.key"), Running(
            engine, *locked, "--env", "APP_URL=https://127.0.0.1:3443", "--env", "HTTPWARE_BIND=127.0.0.1:8080", "--volume", f"{bundle}:/etc/ssl/certs/ca-certificates.crt:ro", image) as gateway:
        began = eventually(lambda: gateway.health() == 0)
        yield line(f"{part}: health", "0, by HEALTHCHECK's own command", gateway.health(), began)
        answer = engine.ask("http://127.0.0.1:8080/")
        yield line(f"{part}: answer", "the origin server's, over TLS that is verified, with a root that cannot be written", answer or gateway.log[-500:], answer.endswith("from the origin server"))
        process = engine.inspect(gateway.name)["State"]["Pid"]
        owner = re.search(r"(?m)^Uid:\t(.*)$", Path(f"/proc/{process}/status").read_text())[1].split()
        yield line(f"{part}: runs as", "10001", owner, set(owner) == {"10001"})
        eventually(gateway.requests)
        logged = gateway.requests()
        yield line(f"{part}: logs", "a line of JSON for the request", logged or gateway.log[-300:], [row["status"] for row in logged] == [200])
        slow = subprocess.Popen([*engine.inside, "curl", "--silent", "--noproxy", "*", "--max-time", "15", "http://127.0.0.1:8080/slow"], stdout=subprocess.PIPE, text=True)
        busy = eventually(lambda: re.search(r" 127\.0\.0\.1:3443 ", engine.run("ss", "-Htn", "state", "established").stdout))
        engine.docker("stop", "--time", "20", gateway.name)
        last = slow.communicate(timeout=20)[0]
        yield line(f"{part}: SIGTERM", "the request in progress is answered, then it ends with 0", {"answer": last, "status": gateway.status},
                   busy and last == "from the origin server" and gateway.status == 0)
        changed = engine.docker("diff", gateway.name, fails=True)
        yield line(f"{part}: changed files", "only those of the engine", changed, not [row for row in changed.splitlines() if not re.match(r"[AC] /(etc|proc|dev|sys|run)(/|$)", row)])


def configured(engine: Engine, image: str, part: str) -> Iterator[dict]:
    """With a file of one's own that is mounted, on a published port; and with a mistake in it."""
    right = """version: 1
admin: {}
listeners: { web: { bind: "0.0.0.0:8080", chain: hello } }
chains:
  hello: { middlewares: [{ mock: { body: "a file of one's own" } }] }
routes: [{ chain: hello }]
"""
    file = engine.folder / "own.yaml"
    file.write_text(right)
    file.chmod(0o644)
    published = ["--read-only", "--read-only-tmpfs=false", "--publish", "127.0.0.1:8088:8080", "--volume", f"{file}:{FILE}:ro"]
    with Running(engine, *published, image) as gateway:
        came = eventually(lambda: "a file of one's own" in engine.ask("http://127.0.0.1:8088/"))
        yield line(f"{part}: a file that is mounted", "it is used, on a published port", gateway.log[-300:], came)
    file.write_text(right.replace("body:", "bodi:"))
    with Running(engine, *published, image) as gateway:
        ended = gateway.ends()
        yield line(f"{part}: a mistake in the file", "exit 1; the log has the place and the fix", {"status": gateway.status, "log": gateway.log[-500:]},
                   ended and gateway.status == 1 and f'{FILE}:5:36: error: mock.bodi: unknown option; did you mean "body"?' in gateway.log)
