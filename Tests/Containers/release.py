"""The image that `make dist` writes, loaded as a reader loads it; and the commands of the README, of *Your first gateway* and of *In a container* with it."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from Containers import compose, image
from Containers.engine import Engine, Failed
from Rig.results import line
from Rig.waits import eventually

ROOT = Path(__file__).resolve().parents[2]
ARTICLE = ROOT / "Sources/HttpGateway/HttpGateway.docc/FirstGateway.md"
CONTAINERS = ARTICLE.with_name("Containers.md")
FENCE = re.compile(r"(?ms)^```sh\n(.*?)^```$")
ANNOTATIONS = ("title", "description", "version", "revision", "licenses", "created")


def archive(dist: Path) -> Path:
    found = sorted(dist.glob("httpware-*-image.tar"))
    if not found:
        raise Failed(f"{dist} has no image: make dist writes it")
    return found[-1]


def trial(engine: Engine, dist: Path) -> Iterator[dict]:
    file = archive(dist)
    version = file.name.split("-")[1]
    yield from written(engine, file)
    engine.docker("rmi", "--force", f"httpware:{version}", fails=True)
    loaded = engine.docker("load", "--input", file)
    yield line("release: load", f"httpware:{version}", loaded, f"httpware:{version}" in loaded)
    engine.network()
    commit = engine.inspect(f"httpware:{version}")["Config"]["Labels"]["org.opencontainers.image.revision"]
    yield from image.trial(engine, f"httpware:{version}", "release", commit)
    if engine.has(image.IMAGE):
        one, other = (settings(engine, name) for name in (image.IMAGE, f"httpware:{version}"))
        yield line("release: settings", "those of the image that the engine builds", {"built": one, "release": other} if one != other else one, one == other)
    yield from typed(engine, dist, version)


def settings(engine: Engine, name: str) -> dict:
    seen = engine.inspect(name)["Config"]
    return {key: seen.get(key) for key in ("User", "Entrypoint", "Cmd", "ExposedPorts", "StopSignal")} | {"Env": sorted(seen["Env"])}


def written(engine: Engine, file: Path) -> Iterator[dict]:
    """The archive as another reader of the format sees it."""
    raw = json.loads(engine.run("skopeo", "inspect", "--raw", f"oci-archive:{file}").stdout)
    annotations = {name.rpartition(".")[2] for name in raw["annotations"]}
    yield line("release: annotations", ", ".join(ANNOTATIONS), raw["annotations"], annotations >= set(ANNOTATIONS))
    folder = engine.folder / "copied"
    copied = engine.run("skopeo", "copy", f"oci-archive:{file}", f"oci:{folder}:copy", fails=True)
    yield line("release: skopeo", "copies it, and every sum is right", copied.stdout[-300:], copied.returncode == 0)
    older = engine.run("skopeo", "inspect", "--config", f"docker-archive:{file}", fails=True)
    yield line("release: older engines", "find it by manifest.json", older.stdout[-200:], older.returncode == 0)
    with tarfile.open(file) as outer:
        layer = outer.extractfile("blobs/" + raw["layers"][0]["digest"].replace(":", "/"))
        assert layer
        with tarfile.open(fileobj=layer, mode="r:gz") as inner:
            bill = inner.extractfile("usr/share/doc/httpware/httpware.spdx.json")
            program = inner.extractfile("usr/bin/httpware")
            assert bill and program
            listed, sum = json.load(bill), hashlib.sha256(program.read()).hexdigest()
            owners = {(each.uid, each.gid) for each in inner}
    named = listed["packages"][0]["checksums"][0]["checksumValue"]
    yield line("release: its list", "SPDX of this program, in the image", {"version": listed["spdxVersion"], "packages": len(listed["packages"])}, named == sum)
    yield line("release: owners", "root alone", sorted(owners), owners == {(0, 0)})


def typed(engine: Engine, dist: Path, version: str) -> Iterator[dict]:
    """The reader's commands. Only the place of the archive differs."""
    compose.install(engine)
    folder = engine.folder / "reader"
    folder.mkdir()
    (folder / archive(dist).name).symlink_to(archive(dist))
    readme = (ROOT / "README.md").read_text()
    [commands] = [text for text in FENCE.findall(readme) if "docker load" in text]
    [(load, run)] = re.findall(r"(?m)^(docker load .*?) && (docker run .*?)(?: +#.*)?$", commands)
    engine.type(load, folder)
    with image.Origin(engine, 3000):
        name = engine.type(run.replace("docker run --rm", "docker run --rm --detach"), folder).split()[-1]
        try:
            came = eventually(lambda: "from the origin server" in engine.ask("http://127.0.0.1:8080/"))
            yield line("release: README", "docker load and docker run lead to an answer", run, came)
        finally:
            engine.docker("rm", "--force", "--time", "0", name, fails=True)
    empty = engine.folder / "empty"
    empty.mkdir()
    [commands] = [text for text in FENCE.findall(ARTICLE.read_text()) if "docker compose up" in text]
    try:
        printed = engine.type(commands, empty)
        count = len([row for row in re.sub(r"(?s)<<'end'\n.*?\nend\n", "\n", commands).splitlines() if row.strip()])
        yield line("release: from an empty folder", "three commands lead to an answer through compose", printed[-400:], count == 3 and " 200 OK" in printed and f"httpware:{version}" in commands)
    finally:
        engine.type("docker compose down --timeout 3", empty, fails=True)
    yield from article(engine, version)


def article(engine: Engine, version: str) -> Iterator[dict]:
    """The commands of *In a container*: a file of one's own, checked and mounted; the last requests by `docker exec`; compose."""
    text = CONTAINERS.read_text()
    blocks = re.findall(r"(?ms)^```(?:yaml|sh)\n(.*?)^```$", text)
    own, composed = (next(each for each in blocks if each.startswith(start)) for start in ("version: 1", "services:"))
    mounted = next(each for each in blocks if "httpware:0.2.0 check" in each).splitlines()
    trace = next(each for each in blocks if each.startswith("docker exec")).strip()
    up = next(each for each in blocks if each.startswith("docker compose"))
    folder = engine.folder / "own-file"
    folder.mkdir()
    (folder / "httpware.yaml").write_text(own)
    (folder / "compose.yaml").write_text(composed)
    checked = engine.type(mounted[0], folder)
    yield line("release: own file", "check accepts the file of the article", checked, "ok: 1 listener" in checked and f"httpware:{version}" in text)
    name = engine.type(mounted[1].replace("docker run --rm", "docker run --rm --detach -e APP_URL=http://127.0.0.1:9"), folder).split()[-1]
    try:
        came = eventually(lambda: "502 Bad Gateway" in engine.ask("http://127.0.0.1:8080/orders"))
        yield line("release: own file in force", "the gateway answers for an application that does not exist", mounted[1], came)
        shown = engine.type(trace.replace("NAME", name), folder, fails=True)
        yield line("release: trace", "docker exec shows the last requests", shown, "GET  /orders  502" in shown)
    finally:
        engine.docker("rm", "--force", "--time", "0", name, fails=True)
    try:
        printed = engine.type(up, folder)
        yield line("release: compose of the article", "leads to an answer", printed[-400:], " 200 OK" in printed)
    finally:
        engine.type("docker compose down --timeout 3", folder, fails=True)
