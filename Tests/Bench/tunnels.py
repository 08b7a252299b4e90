"""Messages back and forth through tunnels that are switched by `Upgrade`: what echo.c measures, built with gcc when it is first needed."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path


def build_echo(folder: Path) -> Path:
    program = folder / "echo"
    if not program.exists():
        subprocess.run(["gcc", "-O2", "-o", str(program), str(Path(__file__).parent / "echo.c")], check=True)
    return program


def echo(program: Path, listener: socket.socket, port: int, connections: int, size: int, seconds: float, cpu_seconds: Callable[[], float], preexec) -> float:
    """CPU seconds of a message's way to the server and back, through the proxy at `port`, which finds the server at `listener`."""
    with subprocess.Popen([str(program), str(listener.fileno()), str(port), str(connections), str(size), str(seconds)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=(listener.fileno(),), preexec_fn=preexec) as run:
        if run.stdout.readline() != "ready\n":
            raise RuntimeError("no tunnels")
        before = cpu_seconds()
        output, _ = run.communicate("\n")
        return (cpu_seconds() - before) / int(output)
