"""The Dockerfile of a package that `httpware init ware` writes, built by an engine; git in the build reads this repository in place of its URL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from Clients.own_gateway import URL, published
from Containers import bases
from Containers.engine import Engine
from Containers.image import Origin, Running
from Rig.results import line
from Rig.waits import eventually

IMAGE = "my-gateway"
REPOSITORY = "/opt/httpware.git"


def trial(engine: Engine, binary: Path) -> Iterator[dict]:
    bases.swift(engine)
    package, repository = engine.folder / "package", engine.folder / "repository"
    subprocess.run([binary, "init", "ware", "methodRule", "--in", package], check=True, capture_output=True)
    published(repository)
    text = f"FROM {bases.SWIFT}\nCOPY --from=repository . {REPOSITORY}\nRUN git config --system --add url.{REPOSITORY}.insteadOf {URL}\n"
    base = "localhost/swift-with-httpware"
    bases.build(engine, base, text, "--build-context", f"repository={repository}", also=str(repository))
    written = (package / "Dockerfile").read_text()
    # Its commands stay as they are; only the first image has the repository, too.
    file = written.replace("FROM swift:6.3-bookworm", f"FROM {base}")
    bases.tell("builds the Dockerfile of the package; the compiler takes ten minutes")
    engine.run("nice", "docker", "build", "--pull=never", "--network", "host", "--tag", IMAGE, "--file", "-", package, input=file)
    seen = engine.inspect(IMAGE)
    yield line("own: user", "not root", seen["Config"].get("User"), seen["Config"].get("User") == "10001:10001")
    version = engine.docker("run", "--rm", "--pull=never", IMAGE, "version", "--json")
    yield line("own: version", "the program's name", version, '"my-gateway"' in version)
    engine.network()
    with Origin(engine, 3000), Running(engine, "--read-only", "--network", "host", "--env", "APP_URL=http://127.0.0.1:3000", "--env", "HTTPWARE_BIND=127.0.0.1:8080", IMAGE) as gateway:
        came = eventually(lambda: "from the origin server" in engine.ask("http://127.0.0.1:8080/"))
        yield line("own: answer", "the origin server's", gateway.log[-300:], came)
        well = gateway.health()
        yield line("own: health", "0", well, well == 0)
        engine.docker("stop", "--time", "20", gateway.name)
        yield line("own: SIGTERM", "ends with 0", gateway.status, gateway.status == 0)
