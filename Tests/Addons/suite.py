"""The cases of the suite, a gateway that speaks the callout protocol to a host, and texts to expect. Python 3.11, standard library only."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from Rig.waits import eventually

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "Sources/CAddonHost/Host/addon_host.py"
# The longest wait for an answer, and for the end of a process.
SECONDS = 20.0
FIELDS = [["Host", "example.com"], ["Accept", "*/*"]]
ANSWER_FIELDS = [["Content-Type", "text/plain"], ["Content-Length", "3"]]


class Failure(Exception):
    """A case did not see the result that it expects."""


@dataclass
class Case:
    name: str
    run: Callable[[Trial], None]


CASES: list[Case] = []


def case(name: str) -> Callable:
    """Registers a case."""

    def register(run: Callable[[Trial], None]) -> Callable:
        assert all(known.name != name for known in CASES), f"two cases are named {name!r}"
        CASES.append(Case(name, run))
        return run

    return register


def expect(actual: Any, expected: Any, of: str = "") -> None:
    if actual != expected:
        raise Failure(f"{of + ': ' if of else ''}expected {expected!r}, but got {actual!r}")


def expect_in(part: Any, whole: Any) -> None:
    if part not in whole:
        raise Failure(f"expected {part!r} in {whole!r}")


def load_host() -> Any:
    """The host as a module, for tests of its parts."""
    found = importlib.util.spec_from_file_location("addon_host", HOST)
    module = importlib.util.module_from_spec(found)
    sys.modules["addon_host"] = module
    found.loader.exec_module(module)
    module.offer_modules()
    return module


def content(value: str | bytes) -> dict[str, str]:
    return {"text": value} if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}


def request(url: str = "http://example.com/a?b=c", method: str = "GET", fields: list = FIELDS, body: str | bytes | None = None, **more: Any) -> dict:
    """The first half of an exchange."""
    message = {"version": 1, "half": "request", "id": "1", "route": "all", "service": "origin", "listener": "main", "client": "192.0.2.7", "exchange": "x1", **more}
    message["request"] = {"method": method, "url": url, "version": "HTTP/1.1", "fields": fields}
    if body is not None:
        message["request"]["content"] = content(body)
    return message


def response(status: int = 200, fields: list = ANSWER_FIELDS, body: str | bytes | None = None, url: str = "http://example.com/a?b=c", **more: Any) -> dict:
    """The second half of an exchange."""
    message = {**request(url, **more), "half": "response", "response": {"status": status, "fields": fields}}
    if body is not None:
        message["response"]["content"] = content(body)
    return message


class Wire:
    """A connection to a host."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    @staticmethod
    def posted(body: bytes, fields: bytes = b"") -> bytes:
        return b"POST / HTTP/1.1\r\nHost: addon\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (fields, len(body), body)

    def read(self) -> tuple[int, dict]:
        """The status and the JSON of the next answer. The status is 0 if the connection is closed."""
        line = self.file.readline()
        if not line:
            return 0, {}
        length = 0
        while field := self.file.readline().strip():
            name, _, value = field.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return int(line.split()[1]), json.loads(self.file.read(length))

    def ask(self, message: dict | bytes) -> tuple[int, dict]:
        self.send(self.posted(message if isinstance(message, bytes) else json.dumps(message).encode()))
        return self.read()

    def answer(self, message: dict) -> dict:
        status, answer = self.ask(message)
        expect(status, 200, f"the status of the answer {answer}")
        return answer


class Gateway(Wire):
    """Starts a host as the gateway does: with a listening socket as descriptor 3 and a pipe as standard input."""

    def __init__(self, folder: Path, addon: Path, environment: dict[str, str] = {}, output: str = "") -> None:
        self.path = tempfile.mktemp(dir=folder)
        self.folder, self.addon = folder, addon
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(128)
        standard_input, self.pipe = os.pipe()
        # Descriptor 3 may be the pipe's or the listener's own number: the shell puts the listener there.
        command = f'exec 3<&{listener.fileno()}; exec "$@" {output}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", sys.executable, "-B", str(HOST), str(addon)],
            stdin=standard_input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[listener.fileno()], text=True,
            env={**os.environ, "HTTPWARE_CALLOUT_FD": "3", **environment})
        os.close(standard_input)
        listener.close()
        self.out: list[str] = []
        self.err: list[str] = []
        self.readers = [threading.Thread(target=self._collect, args=each, daemon=True) for each in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()
        super().__init__(self.path)

    @staticmethod
    def _collect(stream: Any, lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))

    def hello(self, **options: Any) -> dict:
        return self.answer({"version": 1, "half": "hello", "options": options})

    def await_line(self, lines: list[str], part: str) -> None:
        """Waits until a line of the host contains a text."""
        if not eventually(lambda: any(part in line for line in lines), SECONDS):
            raise Failure(f"expected a line with {part!r}, but got {lines}")

    def end(self) -> int:
        """Ends the pipe, as a gateway that ends does. Returns the exit code of the host."""
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        return self.ended()

    def ended(self) -> int:
        try:
            code = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure("the host does not end") from None
        for reader in self.readers:
            reader.join(SECONDS)
        return code

    def stop(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        self.close()
        if self.process.poll() is None:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()


class Trial:
    """The tools of a case: files of addons, and hosts that are ended after it."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self.folder = Path(tempfile.mkdtemp(prefix="addons-"))
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, True)

    def file(self, text: str, name: str = "addon.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, text: str, /, environment: dict[str, str] = {}) -> Gateway:
        """A host with this addon, before its `hello`."""
        gateway = Gateway(self.folder, self.file(text), environment)
        self.stack.callback(gateway.stop)
        return gateway

    def run(self, text: str, /, **options: Any) -> Gateway:
        """A host with this addon, after its `hello`."""
        gateway = self.start(text)
        answer = gateway.hello(**options)
        if "error" in answer:
            raise Failure(f"the addon is refused: {answer['error']}")
        return gateway

    def wire(self, gateway: Gateway) -> Wire:
        """One more connection."""
        wire = Wire(gateway.path)
        self.stack.callback(wire.close)
        return wire

    def loaded(self, text: str, options: dict = {}) -> Any:
        """The addon in this process."""
        addon = self.host.Addon(str(self.file(text)))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            addon.read()
            addon.load(options)
        return addon

    def refused(self, text: str, options: dict = {}) -> list[str]:
        """The sentences with which an addon is refused; an empty list if it is not."""
        try:
            self.loaded(text, options)
        except self.host.Refused as fault:
            return fault.sentences
        return []


@contextlib.contextmanager
def trial(host: Any) -> Iterator[Trial]:
    tools = Trial(host)
    with tools.stack:
        yield tools
