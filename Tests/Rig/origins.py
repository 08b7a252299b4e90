"""Scripted origin servers: a case says, byte for byte, what the origin does; what arrives there is kept."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from .wire import Malformed, Message, Wire, WireClosed, WireTimeout

Script = Callable[["OriginConnection"], None]


class OriginConnection(Wire):
    """A connection from the program under test."""

    def __init__(self, sock: socket.socket, origin: Origin):
        super().__init__(sock, timeout=15.0)
        self.origin, self.place = origin, -1
        self.requests: list[Message] = []

    @property
    def index(self) -> int:
        """Counts the connections of a case from 0, as their scripts ask: one that the program made in store, and does not
        use, has none."""
        with self.origin.lock:
            if self.place < 0:
                self.place = self.origin.places
                self.origin.places += 1
        return self.place

    def serve(self) -> Message:
        """Reads a whole request and keeps it; raises WireClosed when none comes or it is cut off."""
        request = self.read_request()
        if not request.whole:
            self.origin.cut_off.append(request)
            raise WireClosed("the request was cut off")
        self.requests.append(request)
        self.origin.requests.append(request)
        return request


class Origin:
    """Listens on a port of the loopback for its whole life; each case brings its script."""

    def __init__(self, host: str = "127.0.0.1", backlog: int = 128, port: int = 0):
        self.listener = socket.create_server((host, port), backlog=backlog)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.script: Script | None = None
        self.connections: list[OriginConnection] = []
        self.threads: list[threading.Thread] = []
        self.requests: list[Message] = []  # whole ones, in order of arrival
        self.cut_off: list[Message] = []
        self.faults: list[str] = []
        self.places = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, script: Script) -> None:
        """From here on the script serves; connections that an earlier one served are ended."""
        self.end()  # one that comes between is closed, not left to the script before
        with self.lock:
            self.script, self.connections, self.threads = script, [], []
            self.requests, self.cut_off, self.faults, self.places = [], [], [], 0

    def end(self) -> None:
        """Ends all connections and waits until the other side has closed them too, so that none outlives its case."""
        with self.lock:
            self.script = None
            connections, threads = self.connections, self.threads
        self._pass_over()
        for connection in connections:
            connection.end_sending()
        for thread in threads:
            thread.join(1.5)
        for connection in connections:
            connection.close()

    def _pass_over(self) -> None:
        """Connections that wait to be accepted are closed without a script: the last of them is ours."""
        try:
            with socket.create_connection(self.listener.getsockname()[:2], 1) as last:
                last.recv(1)
        except OSError:
            pass  # no server listens any more

    def close(self) -> None:
        self.listener.close()

    def kill(self) -> None:
        """The server is gone: new connections are refused from now on, and open ones end."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.end()

    @property
    def used(self) -> list[OriginConnection]:
        """The connections on which something came."""
        with self.lock:
            return [connection for connection in self.connections if connection.received]

    def received(self) -> bytes:
        with self.lock:
            return b"".join(bytes(connection.received) for connection in self.connections)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                if self.script is None:
                    sock.close()
                    continue
                connection = OriginConnection(sock, self)
                thread = threading.Thread(target=self._run, args=(self.script, connection), daemon=True)
                self.connections.append(connection)
                self.threads.append(thread)
                thread.start()

    def _run(self, script: Script, connection: OriginConnection) -> None:
        try:
            script(connection)
        except (WireClosed, WireTimeout):
            pass
        except Malformed as malformed:
            self.faults.append(f"the origin received: {malformed}")
        except OSError:
            pass
        except Exception as error:  # a mistake in a script fails its case
            self.faults.append(f"{type(error).__name__} in the origin's script: {error}")
        connection.end_sending()
        try:
            while connection.fill():  # until the other side closes: nothing that it sends is missed
                pass
        except WireTimeout:
            pass
        connection.close()


def answering(*responses: bytes, bytewise: bool = False, close: bool = False) -> Script:
    """Answers the requests, of all connections in turn, with these bytes; the last ones again and again."""
    served = [0]
    lock = threading.Lock()

    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            with lock:
                response = responses[min(served[0], len(responses) - 1)]
                served[0] += 1
            connection.feed(response, bytewise)
            if close:
                return

    return script


def echo(connection: OriginConnection) -> None:
    """Sends the content of each request back, chunked."""
    while True:
        body = connection.serve().body
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if body:
            connection.send(b"%x\r\n%s\r\n" % (len(body), body))
        connection.send(b"0\r\n\r\n")


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ok = answering(OK)
