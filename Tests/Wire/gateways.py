"""A gateway of a case's own, with an admin listener: asked with a connection for each request."""

from __future__ import annotations

import json
from collections.abc import Callable

from Rig.processes import Process, free_port
from Rig.wire import Message, Wire
from suite import Trial, connect, eventually


class OwnGateway:
    """Runs a configuration in which `{web}` and `{admin}` are the ports of its listeners."""

    def __init__(self, t: Trial, folder: str, config: str, *, workers: int = 1, patience: float = 20.0, **ports: int):
        place = t.setup.place
        self.t, self.patience, self.web, self.admin = t, patience, free_port(), free_port()
        self.file = file = place.subfolder(folder) / "httpware.yaml"
        file.write_text(config.format(web=self.web, admin=self.admin, **ports))
        self.process: Process = place.command(
            [t.setup.binary, "run", "-c", str(file), "--workers", str(workers)], [self.web, self.admin])
        t.at_end(self.process.stop)

    def send(self, path: str, method: str = "GET", *fields: str, content: bytes = b"", port: int | None = None) -> Wire:
        client = connect(("127.0.0.1", port or self.web), max(10.0, self.patience))
        self.t.clients.append(client)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port or self.web}", *fields, "Connection: close"]
        if content or method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(content)}")
        client.send("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        return client

    def ask(self, path: str, method: str = "GET", *fields: str, content: bytes = b"", port: int | None = None) -> Message:
        return self.send(path, method, *fields, content=content, port=port).read_response(method)

    def service(self, name: str) -> dict:
        services = json.loads(self.ask("/v1/services", port=self.admin).body)["services"]
        return next(service for service in services if service["name"] == name)

    def metrics(self) -> list[str]:
        return self.ask("/metrics", port=self.admin).body.decode().splitlines()

    def eventually(self, condition: Callable[[], object]) -> bool:
        return eventually(condition, self.patience)

    def metric(self, line: str) -> bool:
        """Whether the metrics have this line, within the time that they may lag."""
        return self.eventually(lambda: line in self.metrics())
