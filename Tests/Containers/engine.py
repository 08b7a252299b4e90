"""The container engine of the trials: podman with runc, as root, under the name `docker` that readers type.

Its settings are in a file of its own: nothing of the machine's is changed. Networks that a trial makes are in a network namespace of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# The programs that are needed, and the Debian packages that have them.
NEEDED = {"podman": "podman", "runc": "runc", "skopeo": "skopeo", "debootstrap": "debootstrap", "iptables": "iptables", "patchelf": "patchelf"}
PLUGINS = {"/usr/lib/podman/netavark": "netavark", "/usr/lib/podman/aardvark-dns": "aardvark-dns"}
# runc, because crun refuses a machine whose control groups are of both versions; limits that a container may have; the network of Docker's kind.
SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
PATIENCE = 3600


class Failed(Exception):
    pass


def lacks() -> str:
    """The sentence about what is missing on this machine; empty if nothing is."""
    if os.geteuid() != 0:
        return "containers are tried as root: run it with sudo"
    missing = [package for program, package in NEEDED.items() if not shutil.which(program)]
    missing += [package for path, package in PLUGINS.items() if not Path(path).exists()]
    return f"missing: {', '.join(missing)}; as root: apt-get install {' '.join(missing)}" if missing else ""


class Engine:
    """Runs `docker` and other commands, as in a reader's shell."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="httpware-containers."))
        self.folder.chmod(0o755)
        (self.folder / "containers.conf").write_text(SETTINGS)
        programs = self.folder / "bin"
        programs.mkdir()
        self.environment = {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf"), "BUILDAH_ISOLATION": "chroot", "BUILDAH_FORMAT": "docker",
                            "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C"}
        self.program("docker", '[ "$1" = compose ] && { shift; exec podman-compose "$@"; }\nexec podman "$@"')
        self.inside: list[str] = []
        self.holder: subprocess.Popen | None = None

    def program(self, name: str, script: str) -> None:
        """Puts a program into the reader's PATH."""
        place = self.folder / "bin" / name
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)

    def network(self) -> None:
        """From now on, all is run in a network namespace of its own, with a loopback and nothing else."""
        if not self.holder:
            ready = "ip link set lo up && echo ready && exec cat"
            self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", ready], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self.holder.stdout
            self.holder.stdout.readline()
            self.inside = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]

    def run(self, *words: object, fails: bool = False, patience: float = PATIENCE, **options) -> subprocess.CompletedProcess:
        """The end of a command; it must end with 0 unless it may fail: then what it printed on standard error is in its output, too."""
        command = [*self.inside, *map(str, words)]
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience, **options)
        if fails:
            result.stdout += result.stderr
        elif result.returncode:
            raise Failed(f"{' '.join(map(str, words))[:300]}: exit {result.returncode}: {(result.stdout + result.stderr)[-4500:]}")
        return result

    def docker(self, *words: object, **options) -> str:
        return self.run("docker", *words, **options).stdout.strip()

    def type(self, script: str, folder: Path, **options) -> str:
        """The output of a reader's shell for the commands, each of which must succeed."""
        return self.run("bash", "-ec", script, cwd=folder, **options).stdout

    def inspect(self, name: str) -> dict:
        return json.loads(self.docker("inspect", name))[0]

    def has(self, image: str) -> bool:
        return self.run("podman", "image", "exists", image, fails=True).returncode == 0

    def ask(self, url: str, *options: str) -> str:
        """The answer to a request by curl, with its head; empty if there is none."""
        return self.run("curl", "--silent", "--include", "--noproxy", "*", "--max-time", "5", *options, url, fails=True).stdout

    def close(self) -> None:
        if self.holder:
            assert self.holder.stdin
            self.holder.stdin.close()
            self.holder.wait(10)
            self.holder = None
        shutil.rmtree(self.folder, ignore_errors=True)
