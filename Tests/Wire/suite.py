"""How a case is written: registered by a decorator, it gets a `Trial` and fails by an exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from Rig.origins import Origin, Script, ok
from Rig.waits import eventually
from Rig.wire import Malformed, Message, Wire, WireClosed, WireTimeout, connect


class Failure(Exception):
    pass


class Skip(Exception):
    pass


@dataclass
class Case:
    name: str
    run: Callable[["Trial"], None]
    nginx: str | None  # why nginx is not comparable here; None when it is
    alone: bool  # needs the machine for itself: measured times
    ware: str = ""


CASES: list[Case] = []


def case(name: str, *, nginx: str | None = None, alone: bool = False):
    """Registers a case. `nginx="reason"` keeps it from the comparison with nginx."""

    def register(run: Callable[["Trial"], None]):
        assert all(known.name != name for known in CASES), f"two cases are named {name!r}"
        CASES.append(Case(name, run, nginx, alone))
        return run

    return register


class Trial:
    """The tools of a case: the running setup, clients that are closed after it, and what to expect."""

    def __init__(self, setup):
        self.setup = setup
        self.gateway = setup.process
        self.origins: list[Origin] = []
        self.clients: list[Wire] = []
        self.closers: list[Callable[[], None]] = []
        for origin in setup.origins.values():  # nothing may arrive at an origin that the case does not use
            origin.begin(ok)

    @property
    def main(self) -> Origin:
        return self.setup.origins["main"]

    def origin(self, script: Script = ok, name: str = "main") -> Origin:
        origin = self.setup.origins[name]
        origin.begin(script)
        return origin

    def client(self, listener: str = "web", timeout: float = 5.0, source: str | None = None) -> Wire:
        client = connect(self.setup.addresses[listener], timeout, source)
        self.clients.append(client)
        return client

    def ask(self, request: bytes, *, method: str | None = None, listener: str = "web", bytewise: bool = False) -> Message:
        """One request on a connection of its own."""
        client = self.client(listener)
        client.feed(request, bytewise)
        return client.read_response(method or request.split(b" ", 1)[0].decode("latin-1"))

    def at_end(self, closer: Callable[[], None]) -> None:
        self.closers.append(closer)

    def finish(self) -> list[str]:
        """Closes everything; says what was wrong at the origins."""
        for client in self.clients:
            client.close()
        for closer in self.closers:
            closer()
        faults = []
        for name, origin in self.setup.origins.items():
            origin.end()
            faults += [f"{name}: {fault}" for fault in origin.faults]
        return faults


def check(condition: object, *what: object) -> None:
    if not condition:
        raise Failure(" ".join(str(part) for part in what))


def expect_status(response: Message, *statuses: int) -> None:
    check(response.status in statuses, f"expected {' or '.join(map(str, statuses))}, got {response!r}")


def expect_same(what: str, got: object, expected: object) -> None:
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def expect_closed(client: Wire, response: Message | None = None, within: float = 3.0) -> None:
    """The connection ends, and the response announced it (RFC 9112 §9.6)."""
    if response is not None and response.version == "HTTP/1.1":
        check("close" in response.options(), "the connection is about to close, but the response does not say so:", response)
    check(client.ends(within), f"the connection stays open for {within} s")
    check(not client.buffer, f"more came after the response: {bytes(client.buffer[:200])!r}")


def expect_open(client: Wire) -> None:
    check(client.is_silent(0.1), f"the connection was closed, or more came: {bytes(client.buffer[:200])!r}")


def proxy_error(response: Message) -> str:
    """The `error` of the last member of Proxy-Status (RFC 9209 §2)."""
    member = (response.get("Proxy-Status") or "").rsplit(",", 1)[-1]
    for parameter in member.split(";")[1:]:
        key, _, value = parameter.strip().partition("=")
        if key == "error":
            return value
    return ""


__all__ = ["CASES", "Case", "Failure", "Malformed", "Message", "Skip", "Trial", "Wire", "WireClosed", "WireTimeout",
           "case", "check", "connect", "eventually", "expect_closed", "expect_open", "expect_same", "expect_status", "proxy_error"]
