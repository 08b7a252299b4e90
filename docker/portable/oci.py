"""The container image as an archive: an OCI image layout, written without an engine, that `docker load`, `podman load` and skopeo read.

Its settings are those of the Dockerfile's last stage. The archive also has the list `manifest.json`, by which engines before Docker 25 load it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shlex
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass
class Instruction:
    """An instruction of a Dockerfile, its lines joined."""
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


def instructions(file: Path) -> list[Instruction]:
    joined, found = "", []
    for text in file.read_text().splitlines():
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        joined += text.strip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        name, _, rest = joined.partition(" ")
        found.append(Instruction(name, rest.strip()))
        joined = ""
    return found


def settings(file: Path, arguments: dict[str, str]) -> dict:
    """The settings of the image that the Dockerfile's last stage makes. `arguments` are those of the build."""
    every = instructions(file)
    last = max(index for index, each in enumerate(every) if each.name == "FROM")
    if every[last].rest != "scratch":
        raise SystemExit(f"dist: the last stage of {file} is not from scratch")
    config: dict = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Labels": {}}
    known: dict[str, str] = {}
    for each in every[last + 1:]:
        rest = re.sub(r"\$(\w+)", lambda match: known[match[1]], each.rest)
        words = Instruction(each.name, rest).words if each.name != "HEALTHCHECK" else []
        match each.name:
            case "ARG":
                name, _, value = rest.partition("=")
                known[name] = arguments.get(name, value)
            case "LABEL":
                config["Labels"] |= dict(word.split("=", 1) for word in words)
            case "ENV":
                config["Env"] += words
            case "USER":
                config["User"] = rest
            case "EXPOSE":
                config["ExposedPorts"] = {f"{port}/tcp": {} for port in words}
            case "STOPSIGNAL":
                config["StopSignal"] = rest
            case "ENTRYPOINT":
                config["Entrypoint"] = words
            case "CMD":
                config["Cmd"] = words
            case "HEALTHCHECK":
                config["Healthcheck"] = health(rest)
            case "COPY":
                pass
            case unknown:
                raise SystemExit(f"dist: {file}: {unknown} is not known here")
    return config


def health(rest: str) -> dict:
    options, _, command = rest.partition("CMD ")
    times = {name: int(count) * SECONDS[unit] * 10**9 for name, count, unit in re.findall(r"--([\w-]+)=(\d+)([smh])", options)}
    return {"Test": ["CMD", *json.loads(command)], "Interval": times["interval"], "Timeout": times["timeout"], "StartPeriod": times["start-period"]}


@dataclass
class Layout:
    """The files of the archive, by their paths."""
    files: dict[str, bytes] = field(default_factory=dict)

    def blob(self, content: bytes, kind: str, **more: object) -> dict:
        """Adds content; returns what points to it."""
        sum = hashlib.sha256(content).hexdigest()
        self.files[f"blobs/sha256/{sum}"] = content
        return {"mediaType": kind, "digest": f"sha256:{sum}", "size": len(content), **more}

    def json(self, content: object, kind: str, **more: object) -> dict:
        return self.blob(json.dumps(content, separators=(",", ":")).encode(), kind, **more)


def layer(root: Path, epoch: int) -> bytes:
    """The files below a folder as a tar archive, all of them root's, with the time of the commit."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            info = tar.gettarinfo(path, str(path.relative_to(root)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = epoch
            with open(path, "rb") if info.isreg() else io.BytesIO() as content:
                tar.addfile(info, content)
    return output.getvalue()


def write_image(root: Path, target: Path, config: dict, labels: dict[str, str], name: str, architecture: str, epoch: int) -> None:
    """Writes an archive of one image: its root, its settings, and what OCI's annotations say of it. `name` has a tag."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    content = layer(root, epoch)
    layout = Layout({"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'})
    packed = layout.blob(gzip.compress(content, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    labels = {"org.opencontainers.image.created": created, **labels}
    settings = layout.json({
        "created": created, "architecture": architecture, "os": "linux", "config": config | {"Labels": config["Labels"] | labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
        "history": [{"created": created, "created_by": "docker/dist.py"}],
    }, "application/vnd.oci.image.config.v1+json")
    manifest = layout.json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": settings, "layers": [packed], "annotations": labels},
                           "application/vnd.oci.image.manifest.v1+json", platform={"architecture": architecture, "os": "linux"},
                           annotations={"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"docker.io/library/{name}"})
    layout.files["index.json"] = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}, indent=1).encode()
    layout.files["manifest.json"] = json.dumps([{"Config": path(settings), "RepoTags": [name], "Layers": [path(packed)]}]).encode()
    with tarfile.open(target, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for place in ("blobs", "blobs/sha256"):
            info = tarfile.TarInfo(place)
            info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, epoch
            tar.addfile(info)
        for place, bytes in sorted(layout.files.items()):
            info = tarfile.TarInfo(place)
            info.size, info.mode, info.mtime = len(bytes), 0o644, epoch
            tar.addfile(info, io.BytesIO(bytes))


def path(pointer: dict) -> str:
    return f"blobs/{pointer['digest'].replace(':', '/')}"
