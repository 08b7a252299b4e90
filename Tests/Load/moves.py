#!/usr/bin/env python3
"""Names whose servers move: for how long requests fail, or reach the wrong server. One JSON line per result.

    Tests/Load/moves.py --binary .build/release/httpware [--only move|check|swap|servers|stores]

A name server on 127.0.0.78 answers with a TTL of 600 s, as that of Docker does. The gateway runs in a mount namespace with a resolv.conf of its own, so this needs root.
The trials `stores` need redis-server.
Exits 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Faults.names import put  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402
from Rig.waits import Why, eventually, pause  # noqa: E402

TTL = 600
CONFIG = """version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
  proxy: {{ bind: "127.0.0.1:{proxy}", mode: forward, forward: {{ denyPrivate: false }} }}
services:
  a: {{ baseUrl: "http://a.moves.test:{port}"{check} }}
  b: {{ baseUrl: "http://b.moves.test:{port}" }}
{stores}
routes:
  - {{ listener: web, match: {{ path: /a }}, service: a{chain} }}
  - {{ listener: web, match: {{ path: /b }}, service: b }}
  - {{ listener: proxy, service: passthrough }}
resolver: {{ maxTtl: {most}s }}
log: {{ level: critical }}
"""


class Names:
    """Answers questions for A with the address of the name."""

    def __init__(self, address: str, table: dict[str, str]):
        self.table, self.asked = table, 0
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, 53))
        self.sock.settimeout(0.05)
        self.is_open = True
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while self.is_open:
            try:
                query, client = self.sock.recvfrom(512)
            except TimeoutError:
                continue
            self.asked += 1
            end, labels = 12, []
            while query[end]:
                labels.append(query[end + 1 : end + 1 + query[end]].decode())
                end += query[end] + 1
            address = self.table.get(".".join(labels).lower()) if query[end + 2] == 1 else None
            answer = query[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(address), 0, 0) + query[12 : end + 5]
            if address:
                answer += b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, TTL, 4) + socket.inet_aton(address)
            self.sock.sendto(answer, client)

    def close(self) -> None:
        """The address is free afterwards: a thread that still receives would keep the socket."""
        self.is_open = False
        self.thread.join()
        self.sock.close()


class Origin:
    """Answers every request with its letter, and keeps connections."""

    def __init__(self, letter: str, address: str, port: int):
        self.letter, self.open = letter.encode(), []
        self.listener = socket.create_server((address, port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(client)
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client: socket.socket) -> None:
        try:
            while client.recv(65536):
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + self.letter)
        except OSError:
            pass

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for client in self.open:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            client.close()


class Place:
    """The name server, the gateway, and a port for origin servers."""

    def __init__(self, binary: str, *, check: bool = False, most: int = 30, stores: str = "", hosts: bool = False):
        self.web, self.proxy, self.port = free_port(), free_port(), free_port()
        self.table = {"a.moves.test": "127.0.0.2", "b.moves.test": "127.0.0.3"}
        self.names = Names("127.0.0.78", self.table)
        self.place = Workplace("moves")
        self.file = tempfile.NamedTemporaryFile("w", prefix="resolv.conf.")
        os.chmod(self.file.name, 0o644)
        self.use("127.0.0.78")
        self.hosts = tempfile.NamedTemporaryFile("w", prefix="hosts.")
        os.chmod(self.hosts.name, 0o644)
        config = CONFIG.format(web=self.web, proxy=self.proxy, port=self.port, most=most, stores=stores, chain=", chain: counted" if stores else "",
                               check=", healthCheck: { path: /, interval: 1s, timeout: 500ms }" if check else "")
        file, host_file = self.file.name, self.hosts.name

        def prepare() -> None:
            put(file, "/etc/resolv.conf")
            if hosts:
                put(host_file, "/etc/hosts")

        self.gateway = self.place.gateway(binary, config, [self.web], 2, preexec=prepare)

    def name(self, name: str, address: str) -> None:
        """Writes the hosts file with this name alone."""
        self.hosts.seek(0)
        self.hosts.truncate()
        self.hosts.write(f"{address} {name}\n")
        self.hosts.flush()

    def use(self, server: str) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.file.write(f"nameserver {server}\noptions timeout:1 attempts:1\n")
        self.file.flush()

    def get(self, path: str) -> str:
        client = http.client.HTTPConnection("127.0.0.1", self.web, timeout=20)
        try:
            client.request("GET", path)
            response = client.getresponse()
            return response.read().decode() if response.status == 200 else str(response.status)
        except OSError as error:
            return f"{error}"
        finally:
            client.close()

    def until(self, path: str, letter: str, most: float) -> tuple[float, int]:
        """Asks until ten answers in a row are right. Returns the time of the last wrong answer, and how many were wrong."""
        began, last, wrong, right = time.monotonic(), 0.0, 0, 0
        while right < 10 and time.monotonic() - began < most:
            if self.get(path) == letter:
                right += 1
            else:
                right, wrong, last = 0, wrong + 1, time.monotonic() - began
            pause(0.02, Why.MEASURED)
        return (last, wrong) if right == 10 else (most, wrong)

    def close(self) -> None:
        self.place.close()
        self.names.close()
        self.file.close()
        self.hosts.close()


def move(options, check: bool = False) -> list[dict]:
    """A container is made again at another address."""
    place = Place(options.binary, check=check)
    try:
        first = Origin("a", "127.0.0.2", place.port)
        for _ in range(20):
            place.get("/a")
        pause(1.5, Why.PASSES)
        second = Origin("a", "127.0.0.4", place.port)
        first.close()
        place.table["a.moves.test"] = "127.0.0.4"
        last, wrong = place.until("/a", "a", 60)
        second.close()
        name = "check" if check else "move"
        return [line(name, "at most 2 s of failures after a server has moved, with a TTL of 600 s", {"s": round(last, 2), "failed": wrong, "lookups": place.names.asked}, last <= 2)]
    finally:
        place.close()


def swap(options) -> list[dict]:
    """Two containers get each other's address, and their connections stay."""
    place = Place(options.binary, most=5)
    try:
        origins = [Origin("a", "127.0.0.2", place.port), Origin("b", "127.0.0.3", place.port)]
        for _ in range(20):
            place.get("/a"), place.get("/b")
        place.table["a.moves.test"], place.table["b.moves.test"] = "127.0.0.3", "127.0.0.2"
        # Each name now has the other server's address.
        last, wrong = max(place.until("/a", "b", 20), place.until("/b", "a", 20))
        for origin in origins:
            origin.close()
        return [line("swap", "a service receives the other's requests for at most maxTtl (5 s, and 1 s to notice)", {"s": round(last, 2), "wrong": wrong}, last <= 6)]
    finally:
        place.close()


def servers(options) -> list[dict]:
    """The file of name servers changes, and the former server is gone."""
    place = Place(options.binary)
    other = Names("127.0.0.79", {f"n{number}.moves.test": "127.0.0.2" for number in range(1000)})
    try:
        origin = Origin("a", "127.0.0.2", place.port)
        place.names.close()
        place.use("127.0.0.79")
        began, number, status = time.monotonic(), 0, 0
        while status != 200 and time.monotonic() - began < 30:
            number += 1
            client = http.client.HTTPConnection("127.0.0.1", place.proxy, timeout=20)
            client.request("GET", f"http://n{number}.moves.test:{place.port}/")
            status = client.getresponse().status
            client.close()
        took = time.monotonic() - began
        origin.close()
        return [line("servers", "new names are found within 2 s of a change of resolv.conf", {"s": round(took, 2), "asked": number}, status == 200 and took <= 2)]
    finally:
        other.close()
        place.close()


STORES = """stores: {{ shared: {{ redis: {{ url: "redis://redis.moves.test:{port}" }} }} }}
chains: {{ counted: {{ middlewares: [{{ rateLimit: {{ rate: 100000/s, store: shared }} }}] }} }}"""


def stores(options) -> list[dict]:
    """A Redis server is made again at another address: known to the name server, or to the hosts file; or it stays, and only its name moves."""
    if not shutil.which("redis-server"):
        print("moves: the trials of stores need redis-server (Debian: redis-server); left out")
        return []
    results = []
    for kind, most in (("name server", 6), ("hosts file", 6), ("reload", 6), ("name alone", 7)):
        port = free_port()
        place = Place(options.binary, most=5, stores=STORES.format(port=port), hosts=kind == "hosts file")
        try:
            origin = Origin("a", "127.0.0.2", place.port)
            place.table["redis.moves.test"] = "127.0.0.5"
            place.name("redis.moves.test", "127.0.0.5")
            start = lambda address: place.place.command(["redis-server", "--bind", address, "--port", str(port), "--save", "", "--protected-mode", "no"], [])  # noqa: E731
            first = start("127.0.0.5")
            reached(place, "127.0.0.5", port, 20)
            second = start("127.0.0.6")
            place.table["redis.moves.test"] = "127.0.0.6"
            place.name("redis.moves.test", "127.0.0.6")
            if kind == "reload":
                place.gateway.signal(signal.SIGHUP)
            elif kind != "name alone":
                first.signal(signal.SIGKILL)
            took = reached(place, "127.0.0.6", port, 40)
            origin.close()
            second.signal(signal.SIGKILL)
            goal = f"the store is used at its new address within {most} s ({kind})"
            results.append(line(f"stores, {kind}", goal, {"s": round(took, 2)}, took <= most))
        finally:
            place.close()
    return results


def reached(place: Place, address: str, port: int, most: float) -> float:
    """Sends requests until the Redis server there has been used. Returns the time, in seconds."""
    began = time.monotonic()

    def is_used() -> bool:
        place.get("/a")
        try:
            with socket.create_connection((address, port), 1) as client:
                client.sendall(b"DBSIZE\r\n")
                return client.recv(64) not in (b":0\r\n", b"")
        except OSError:
            return False

    eventually(is_used, most, every=0.02)
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    trials = {"move": move, "check": lambda options: move(options, check=True), "swap": swap, "servers": servers, "stores": stores}
    parser.add_argument("--only", default="", help="|".join(trials))
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return tell(each for name, trial in trials.items() if options.only in name for each in trial(options))


if __name__ == "__main__":
    sys.exit(main())
