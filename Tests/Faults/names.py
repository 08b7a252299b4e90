"""Names: a server that fails, is silent, and is well again."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import tempfile
import threading

from Rig.processes import free_port
from Rig.results import line
from Rig.stand import Traffic
from Rig.waits import Why, pause

from .stand import Beside, FaultStand

ADDRESS = "127.0.0.77"


class NameServer:
    """Answers every name with one address for a second, or not (RFC 1035)."""

    def __init__(self, place: str = ADDRESS, address: str = "127.0.0.1"):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((place, 53))
        self.mode, self.asked, self.address = "well", 0, address
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                query, client = self.sock.recvfrom(512)
            except OSError:
                return
            self.asked += 1
            end = 12
            while query[end]:
                end += query[end] + 1
            question, kind = query[12 : end + 5], struct.unpack("!H", query[end + 1 : end + 3])[0]
            if self.mode == "silent":
                continue
            fails = self.mode == "fails"
            has_address = kind == 1 and not fails
            answer = query[:2] + struct.pack("!HHHHH", 0x8180 | (2 if fails else 0), 1, has_address, 0, 0) + question
            if has_address:
                answer += b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(self.address)
            try:
                self.sock.sendto(answer, client)
            except OSError:  # it was closed meanwhile
                return

    def close(self) -> None:
        self.sock.close()


def put(file: str, place: str) -> None:
    """A file in place of another, for this process and its children only."""
    system = ctypes.CDLL(None, use_errno=True)
    new_mounts, private, bound = 0x20000, 1 << 18 | 1 << 14, 1 << 12  # CLONE_NEWNS, MS_PRIVATE | MS_REC, MS_BIND
    for result in (system.unshare(new_mounts), system.mount(None, b"/", None, private, None), system.mount(file.encode(), place.encode(), None, bound, None)):
        if result:
            raise OSError(ctypes.get_errno(), "a mount namespace cannot be made")


class Named(FaultStand):
    """Origin servers that are named, and a resolver's file of its own: in a mount namespace."""

    def __init__(self, options):
        self.name = f"origin{free_port()}.test"
        with tempfile.NamedTemporaryFile("w", prefix="resolv.conf.") as file:
            file.write(f"nameserver {ADDRESS}\noptions timeout:1 attempts:1\n")
            file.flush()
            os.chmod(file.name, 0o644)
            super().__init__(options, origins=1, preexec=lambda: put(file.name, "/etc/resolv.conf"))

    def httpware_config(self, patience: str, logs: str) -> str:
        # No connection is kept: each request needs the name.
        return super().httpware_config(patience, logs).replace(f"http://127.0.0.1:{self.ports[0]}", f"http://{self.name}:{self.ports[0]}").replace(
            "pool: {", "pool: { maxIdle: 0,")

    def nginx_config(self, patience: str, logs: str) -> str:
        text = super().nginx_config(patience, logs)
        text = text.replace("location / { proxy_pass http://api;", f"location / {{ set $name {self.name}; proxy_pass http://$name:{self.ports[0]};")
        return text.replace("proxy_http_version", f"resolver {ADDRESS} valid=1s ipv6=off; resolver_timeout 1s; proxy_http_version")


def flapping(options) -> list[dict]:
    """The server of names fails, is silent and is well in turn; the origin server is well. An address that was found before is better than no address."""
    server = NameServer()
    try:
        with Named(options) as stand:
            beside = Beside(stand)
            calm = beside.during(options.seconds / 2)
            traffic = Traffic(stand, readers=6, think=0.02)
            pause(1, Why.MEASURED)
            well = len(traffic.failures)

            def harm() -> None:
                for turn in range(max(4, round(options.seconds))):
                    server.mode = ("fails", "silent", "well", "fails")[turn % 4]
                    pause(1, Why.PASSES)
                server.mode = "well"

            under = beside.during(0, harm)
            took = stand.recovery()
            failed = len(traffic.failures)
            pause(1, Why.MEASURED)
            traffic.end()
            after = len(traffic.failures) - failed
            return [line("names that cannot be found for a while", "no request fails while its origin server is well; recovery within 1 s",
                         {"requests": traffic.succeeded, "failed": failed - well, "example": traffic.failures[:2], "before": well, "after": after, "asked": server.asked,
                          "slowest ms": round(traffic.slowest * 1000), "recovery s": took},
                         not traffic.failures and took <= 1 and server.asked > 3 and traffic.succeeded > 50),
                    beside.verdict("names that cannot be found for a while", (calm, under))]
    finally:
        server.close()
