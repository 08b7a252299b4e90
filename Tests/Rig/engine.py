"""A stand-in for a container engine: Docker's API on a Unix socket, with the containers that a test says, and with lies."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path


class Container:
    """A container as the engine lists it."""

    def __init__(self, name: str, port: int, labels: dict[str, str], *, made: int = 1, status: str = "Up 1 second", address: str = "127.0.0.1"):
        self.identity = name.encode().hex().ljust(12, "0")
        self.name, self.port, self.labels, self.made, self.status, self.address = name, port, labels, made, status, address

    def listed(self) -> dict:
        return {
            "Id": self.identity, "Names": ["/" + self.name], "Labels": self.labels, "State": "running", "Status": self.status, "Created": self.made,
            "Ports": [{"PrivatePort": self.port, "Type": "tcp"}], "NetworkSettings": {"Networks": {"web": {"IPAddress": self.address}}},
        }


class Engine:
    """Answers the list of containers and the stream of events. `lie` is sent in place of every answer to the list."""

    def __init__(self, path: Path):
        self.path, self.lock = path, threading.Lock()
        self.containers: list[Container] = []
        self.lie: bytes | None = None
        self.asked = 0
        # Whether events are refused, and the containers whose details cannot be asked for.
        self.refuses_events = False
        self.broken: set[str] = set()
        self.streams: list[socket.socket] = []
        self.connections: list[socket.socket] = []
        self.listener: socket.socket | None = None
        self.start()

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self) -> None:
        """The engine ends: its socket goes, and every connection."""
        if self.listener:
            self.listener.close()
        self.path.unlink(missing_ok=True)
        with self.lock:
            connections, self.connections, self.streams = self.connections, [], []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself
            connection.close()

    def use(self, *containers: Container) -> None:
        """From now on, these run; an event tells it."""
        self.containers = list(containers)
        self.tell({"Type": "container", "Action": "start", "Actor": {"ID": "ab"}})

    def tell(self, event: dict) -> None:
        self.send(json.dumps(event).encode() + b"\n")

    def send(self, content: bytes) -> None:
        """Sends bytes on every stream of events."""
        with self.lock:
            streams = list(self.streams)
        for stream in streams:
            try:
                stream.sendall(b"%x\r\n%s\r\n" % (len(content), content))
            except OSError:
                pass  # the gateway has closed it

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        held = b""
        try:
            while True:
                while b"\r\n\r\n" not in held:
                    if not (more := connection.recv(65536)):
                        return
                    held += more
                head, _, held = held.partition(b"\r\n\r\n")
                path = head.split(b" ")[1]
                if b"/events" in path and self.refuses_events:
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                    continue
                if path.count(b"/") > 3 and b"/containers/" in path:
                    is_broken = path.split(b"/")[3].decode() in self.broken
                    answer = b"500 Oh\r\nContent-Length: 0\r\n\r\n" if is_broken else b"200 OK\r\nContent-Length: 2\r\n\r\n{}"
                    connection.sendall(b"HTTP/1.1 " + answer)
                    continue
                if b"/events" in path:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                    with self.lock:
                        self.streams.append(connection)
                    continue
                self.asked += 1
                if self.lie is not None:
                    connection.sendall(self.lie)
                    continue
                content = json.dumps([container.listed() for container in self.containers]).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))
        except OSError:
            return
