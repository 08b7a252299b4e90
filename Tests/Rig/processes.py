"""The processes under test: started in a folder of their own, watched, and ended by their own id."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from Rig.waits import accepts, eventually

_given: set[int] = set()


def free_port() -> int:
    """A port that is free now, below the range from which the kernel takes ports for clients."""
    while True:
        port = random.SystemRandom().randrange(18000, 32000)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


class DidNotStart(Exception):
    pass


class Process:
    """A server in the foreground; `log` is what it printed."""

    def __init__(self, command: list[str], ports: list[int], folder: Path, *, patience: float = 10.0, preexec=None,
                 environment: dict[str, str] | None = None, descriptors: Iterable[int] = ()):
        self.folder = folder
        self.output = open(folder / "output.log", "ab")
        proxies = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
        env = {name: value for name, value in os.environ.items() if name.lower() not in proxies}
        env |= {"SWIFT_BACKTRACE": "enable=no", **(environment or {})}
        self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
                                      env=env, preexec_fn=preexec, pass_fds=tuple(descriptors))
        self.pid = self.popen.pid
        deadline = time.monotonic() + patience
        for port in ports:
            is_there = eventually(lambda: self.popen.poll() is not None or accepts(port), deadline - time.monotonic())
            if self.popen.poll() is not None:
                raise DidNotStart(f"exit status {self.popen.returncode}: {self.log[-1500:]}")
            if not is_there:
                self.stop()
                raise DidNotStart(f"does not listen on {port} after {patience} s: {self.log[-1500:]}")

    @property
    def log(self) -> str:
        return (self.folder / "output.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def cpu_seconds(self) -> float:
        """CPU time of all threads, from the kernel's clock of the process."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def status(self, key: str) -> int:
        """A number of /proc/PID/status, such as VmRSS in KiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        return 0

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def signal(self, number: int = signal.SIGTERM) -> None:
        if self.is_running:
            self.popen.send_signal(number)

    def wait(self, timeout: float) -> int | None:
        """The exit status, or None when it still runs."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        if self.wait(0.3) is None:
            self.signal(signal.SIGTERM)  # the second one stops at once
        if self.wait(1.0) is None:
            self.signal(signal.SIGKILL)
            self.wait(5)
        self.output.close()


class Workplace:
    """A temporary folder, and the processes that were started from it."""

    def __init__(self, name: str):
        self.folder = Path(tempfile.mkdtemp(prefix=f"httpware-{name}."))
        os.chmod(self.folder, 0o755)
        self.processes: list[Process] = []
        self.count = 0

    def subfolder(self, name: str) -> Path:
        self.count += 1
        folder = self.folder / f"{name}{self.count}"
        folder.mkdir()
        folder.chmod(0o755)
        return folder

    def gateway(self, binary: str, config: str, ports: list[int], workers: int = 1, **more) -> Process:
        folder = self.subfolder("gateway")
        (folder / "httpware.yaml").write_text(config)
        return self._started(Process([binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", str(workers)],
                                     ports, folder, **more))

    def nginx(self, config: str, ports: list[int], *, wrap: Callable[[list[str]], list[str]] | None = None, **more) -> Process:
        folder = self.subfolder("nginx")
        (folder / "nginx.conf").write_text(config.replace("@FOLDER@", str(folder)))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        return self._started(Process(wrap(command) if wrap else command, ports, folder, **more))

    def command(self, command: list[str], ports: list[int], **more) -> Process:
        return self._started(Process(command, ports, self.subfolder("process"), **more))

    def _started(self, process: Process) -> Process:
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
