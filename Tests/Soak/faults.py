"""How each fault of a plan is made, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from Rig.waits import Why, eventually, pause

from .plan import AROUND, EXPLAINS, STARVED, WITHIN, Fault, Plan
from .stand import SoakStand

MAKERS: dict[str, Callable[[SoakStand, Fault], None]] = {}


def maker(name: str) -> Callable:
    def register(body: Callable[[SoakStand, Fault], None]) -> Callable[[SoakStand, Fault], None]:
        MAKERS[name] = body
        return body

    return register


def chosen(fault: Fault) -> str:
    return ("one", "two")[fault.choice % 2]


@maker("origin killed")
def _(stand: SoakStand, fault: Fault) -> None:
    origin = stand.origins[chosen(fault)]
    origin.signal(signal.SIGKILL)
    origin.wait(5)
    pause(fault.seconds, Why.PASSES)
    stand.start_origin(chosen(fault))


@maker("origin hangs")
def _(stand: SoakStand, fault: Fault) -> None:
    origin = stand.origins[chosen(fault)]
    origin.signal(signal.SIGSTOP)
    pause(fault.seconds, Why.PASSES)
    origin.signal(signal.SIGCONT)


@maker("proxy killed")
def _(stand: SoakStand, fault: Fault) -> None:
    """Its worker is killed with it: nginx does not wait for what is under way."""
    proxy = stand.proxies[chosen(fault)]
    for pid in children(proxy.pid):
        os.kill(pid, signal.SIGKILL)
    proxy.signal(signal.SIGTERM)
    proxy.wait(5)
    pause(fault.seconds, Why.PASSES)
    stand.start_proxy(chosen(fault))


@maker("proxy reloads")
def _(stand: SoakStand, fault: Fault) -> None:
    """Ends its connections in order, with GOAWAY."""
    stand.proxies[chosen(fault)].signal(signal.SIGHUP)
    pause(1, Why.PASSES)


@maker("address changes")
def _(stand: SoakStand, fault: Fault) -> None:
    """The name leads to another server, and the former one ends when every answer with its address is used up."""
    former, stand.address = stand.address, 1 - stand.address
    stand.start_named(stand.address)
    stand.names.address = stand.addresses[stand.address]
    pause(3 + fault.seconds, Why.PASSES)
    origin = stand.origins[f"named {former}"]
    origin.signal(signal.SIGKILL)
    origin.wait(5)


@maker("names fail")
def _(stand: SoakStand, fault: Fault) -> None:
    stand.names.mode = "fails"
    pause(fault.seconds, Why.PASSES)
    stand.names.mode = "well"


@maker("names silent")
def _(stand: SoakStand, fault: Fault) -> None:
    stand.names.mode = "silent"
    pause(fault.seconds, Why.PASSES)
    stand.names.mode = "well"


@maker("redis fails over")
def _(stand: SoakStand, fault: Fault) -> None:
    former = stand.redis_master()
    process = stand.redis.processes[former]
    process.signal(signal.SIGKILL)
    process.wait(5)

    def master() -> int | None:
        with contextlib.suppress(TimeoutError):
            return stand.redis_master()
        return None

    stand.redis.restart(former, eventually(master, 30, every=0.1))


@maker("redis restarts")
def _(stand: SoakStand, fault: Fault) -> None:
    """It is back before the sentinels notice, with what it wrote to its disk."""
    port = stand.redis_master()
    process = stand.redis.processes[port]
    process.signal(signal.SIGKILL)
    process.wait(5)
    stand.redis.restart(port, None)


@maker("redis hangs")
def _(stand: SoakStand, fault: Fault) -> None:
    process = stand.redis.processes[stand.redis_master()]
    process.signal(signal.SIGSTOP)
    pause(min(fault.seconds, 0.8), Why.PASSES)
    process.signal(signal.SIGCONT)


@maker("tokens fail")
def _(stand: SoakStand, fault: Fault) -> None:
    stand.tokens.mode = "fails"
    pause(fault.seconds, Why.PASSES)
    stand.tokens.mode = "well"


@maker("tokens down")
def _(stand: SoakStand, fault: Fault) -> None:
    stand.tokens.stop()
    pause(fault.seconds, Why.PASSES)
    stand.tokens.start()


@maker("stopped")
def _(stand: SoakStand, fault: Fault) -> None:
    pids = stand.processes()
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        pause(fault.seconds, Why.PASSES)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@maker("disk full")
def _(stand: SoakStand, fault: Fault) -> None:
    """Without a buffer, so that the last page is taken, too."""
    with open(stand.filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    pause(fault.seconds + 2, Why.PASSES)
    stand.filler.unlink()


@maker("clients leave")
def _(stand: SoakStand, fault: Fault) -> None:
    """A hundred clients ask for a large cacheable response, half of them for one alone, and leave in the middle."""
    socks = []
    for index in range(100):
        store = ("mem", "disk", "shared", "api")[index % 4]
        path = f"/{store}/{57 if index % 8 < 4 else 107}" if store != "api" else f"/api/300000?id=leaves{index}"
        sock = socket.create_connection(("127.0.0.1", stand.ports["web"]), 20)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: soak.test\r\nX-User: leaver\r\nAccept-Language: fr\r\n\r\n".encode())
        socks.append(sock)
    for index, sock in enumerate(socks):
        if index % 3:
            sock.recv(1000)
        if index % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()


@maker("idle clients")
def _(stand: SoakStand, fault: Fault) -> None:
    """Three hundred connections that say nothing, half a request, or do not read."""
    socks = []
    for index in range(300):
        sock = socket.create_connection(("127.0.0.1", stand.ports["web"]), 20)
        if index % 3 == 1:
            sock.sendall(b"POST /upload?id=idle HTTP/1.1\r\nHost: soak.test\r\nX-User: idle\r\nContent-Length: 100\r\n\r\nxxx")
        elif index % 3 == 2:
            sock.sendall(b"GET /api/200000?id=idle HTTP/1.1\r\nHost: soak.test\r\nX-User: idle\r\n\r\n")
        socks.append(sock)
    pause(fault.seconds, Why.PASSES)
    for sock in socks:
        sock.close()


@maker("upgrade")
def _(stand: SoakStand, fault: Fault) -> None:
    stand.upgrade()


assert set(MAKERS) == {*AROUND, *WITHIN, "upgrade"} >= set(EXPLAINS) - {STARVED}, "plan.py names every fault, and no other"


def children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(each) for each in file.read().split()]
    except OSError:
        return []


class Lane(threading.Thread):
    """Makes the faults of one lane, one after the other."""

    def __init__(self, stand: SoakStand, faults: list[Fault], began: float, over: threading.Event, complain: Callable[[str], None]):
        super().__init__(daemon=True)
        self.stand, self.faults, self.start_time, self.over, self.complain = stand, faults, began, over, complain

    def run(self) -> None:
        for fault in self.faults:
            if self.over.wait(max(0.0, self.start_time + fault.at - time.time())):
                return
            fault.began = time.time()
            try:
                MAKERS[fault.name](self.stand, fault)
            except Exception as problem:
                self.complain(f"the fault {fault.name!r} could not be made or ended: {type(problem).__name__} {problem}")
            fault.ended = time.time()


class Reloads(threading.Thread):
    """Another configuration all the while. Each is in force soon, unless the gateway was stopped or replaced meanwhile."""

    def __init__(self, stand: SoakStand, plan: Plan, faults: list[Fault], began: float, over: threading.Event, complain: Callable[[str], None]):
        super().__init__(daemon=True)
        self.stand, self.plan, self.faults, self.start_time, self.over, self.complain = stand, plan, faults, began, over, complain
        self.times: list[float] = []

    def run(self) -> None:
        if self.over.wait(self.plan.quiet):
            return
        while not self.over.wait(self.plan.reload_every):
            began, pid = time.time(), self.stand.pid
            try:
                revision = self.stand.reload()
            except ProcessLookupError:
                continue
            self.times.append(began)
            while not self.stand.takes(revision) and not self.over.is_set():
                if time.time() - began > 10:
                    disturbed = pid != self.stand.pid or any(fault.lane in ("within", "upgrade") and fault.covers(began, time.time()) for fault in self.faults)
                    if not disturbed:
                        self.complain(f"the configuration {revision} is not in force {time.time() - began:.1f} s after SIGHUP")
                    break
                self.over.wait(0.05)


__all__ = ["Lane", "Reloads"]
