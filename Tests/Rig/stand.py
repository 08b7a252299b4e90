"""A gateway between clients and origin servers that can be harmed, and ordinary traffic through it: what load and faults are tried on."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from Rig.processes import Process, Workplace, free_port
from Rig.waits import Why, pause
from Rig.wire import Malformed, Wire, WireClosed, WireTimeout, connect

ORIGIN = str(Path(__file__).with_name("origin_process.py"))


class Stand:
    """A place with origin servers, each a process. A subclass starts the gateway, on the port `web`. Made in a `with`, or ended by `close`."""

    gateway: Process

    def __init__(self, name: str, *, origins: int = 1, delay: float = 0):
        self.place, self.delay = Workplace(name), delay
        self.ids = self.place.folder / "ids"
        self.web = free_port()
        self.ports = [free_port() for _ in range(origins)]
        self.origins: dict[int, Process] = {}
        for port in self.ports:
            self.start_origin(port)

    def start_origin(self, port: int, *, reset_every: int = 0, delay: float | None = None, preexec: Callable[[], None] | None = None) -> None:
        """Starts an origin server, for the first time or again. It writes the identifier of each request to `ids`."""
        self.origins[port] = self.place.command([sys.executable, ORIGIN, "--port", str(port), "--log", str(self.ids), "--reset-every", str(reset_every),
                                                 "--delay", str(self.delay if delay is None else delay)], [port], preexec=preexec)

    def client(self, timeout: float = 20) -> Wire:
        return connect(("127.0.0.1", self.web), timeout)

    def arrivals(self) -> dict[str, int]:
        """How often each request arrived at an origin server, by its identifier."""
        found: dict[str, int] = {}
        for identifier in self.ids.read_text().split() if self.ids.exists() else []:
            found[identifier] = found.get(identifier, 0) + 1
        return found

    def close(self) -> None:
        for process in self.place.processes:  # a stopped process cannot end
            process.signal(signal.SIGCONT)
        self.place.close()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Traffic:
    """Ordinary clients on keep-alive connections, each request with an identifier; what failed is kept."""

    def __init__(self, stand: Stand, *, readers: int = 8, writers: int = 0, think: float = 0.0, reconnect: int = 0, path: str = "/"):
        self.stand, self.think, self.reconnect, self.path = stand, think, reconnect, path
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.succeeded = 0
        self.failures: list[tuple[str, str, str]] = []  # method, identifier, what
        self.slowest = 0.0
        self.durations: list[float] = []
        self.threads = [threading.Thread(target=self._run, args=("GET", f"g{index}")) for index in range(readers)]
        self.threads += [threading.Thread(target=self._run, args=("POST", f"p{index}")) for index in range(writers)]
        for thread in self.threads:
            thread.start()

    def _run(self, method: str, name: str) -> None:
        client, count = None, 0
        while not self.stop.is_set():
            count += 1
            identifier = f"{name}-{count}"
            began = time.monotonic()
            try:
                if client is None:
                    client = self.stand.client()
                content = b"hello" if method == "POST" else b""
                length = b"Content-Length: 5\r\n" if content else b""
                client.send(f"{method} {self.path} HTTP/1.1\r\nHost: a.test\r\nX-Id: {identifier}\r\n".encode() + length + b"\r\n" + content)
                response = client.read_response(method)
                problem = None
                if response.status != 200:
                    problem = f"status {response.status} {response.get('Proxy-Status') or ''}"
                elif not response.whole:
                    problem = "cut off"
                if problem or "close" in response.options() or (self.reconnect and count % self.reconnect == 0):
                    client.close()
                    client = None
            except (WireClosed, WireTimeout, Malformed, OSError) as error:
                began_response = bool(client and client.buffer)
                kind = "refused" if client is None else "no response" if not began_response else "cut off"
                problem = f"{kind}: {type(error).__name__} {error}"
                if client:
                    client.close()
                client = None
                if kind == "refused":
                    pause(0.01, Why.SLOW)
            took = time.monotonic() - began
            with self.lock:
                self.slowest = max(self.slowest, took)
                self.durations.append(took)
                if problem:
                    self.failures.append((method, identifier, problem))
                else:
                    self.succeeded += 1
            if self.think:
                pause(self.think * random.random(), Why.SLOW)
        if client:
            client.close()

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()
