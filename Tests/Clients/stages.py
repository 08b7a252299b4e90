"""An origin server with a thread for each connection, and a gateway before it that also intercepts, as several trials need them."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading

from Rig.certificates import certificates
from Rig.processes import free_port

LISTENERS = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
  proxy:
    bind: "127.0.0.1:{proxy}"
    mode: forward
    forward: {{ connectPorts: {ports}, denyPrivate: false }}
    intercept: {{ hosts: ["*"], ca: {folder} }}
"""


class Origin:
    """Accepts connections, with TLS if there is a context. A subclass says what is spoken on one."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        self.tls = tls
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self.talk(connection)
        except (OSError, EOFError, ValueError):
            pass
        finally:
            connection.close()

    def talk(self, connection: socket.socket) -> None:
        raise NotImplementedError


class Stage:
    """A gateway with a listener `web`, and a listener `proxy` that intercepts. `config` goes on behind the listeners; `ports` may be connected to."""

    def __init__(self, t, config: str, ports: list[int], **values: object):
        self.folder, self.web, self.proxy = certificates().folder, free_port(), free_port()
        text = (LISTENERS + config).format(web=self.web, proxy=self.proxy, ports=ports, folder=self.folder, **values)
        self.process = t.place.gateway(t.options.binary, text, [self.web, self.proxy], workers=1)

    def through_proxy(self) -> list[str]:
        """The arguments of curl."""
        return ["-x", f"http://127.0.0.1:{self.proxy}"]

    def ask(self, *arguments: str) -> str:
        command = ["curl", "-sS", "--max-time", "20", "--cacert", str(self.folder / "ca.pem"), *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.stdout or f"exit {result.returncode}: {result.stderr}"
