#!/usr/bin/env python3
"""The cost of intercepted TLS beside our own reverse gateway with TLS on both sides, and beside mitmproxy. Standard library, nginx, wrk,
h2load, socat, openssl; mitmproxy where --mitmdump names the program (PyPI `mitmproxy`, in a venv).

    Tests/Bench/intercept.py --binary .build/release/httpware [--mitmdump VENV/bin/mitmdump] [--rounds 3] [--seconds 3] [--only requests,tunnels]

The program under test runs with one worker on the first CPU; load, origin server and relays share the second. They take turns, round by
round. The figure is the CPU time of the program's process divided by what the load tool completed.

    requests   GET 1 KiB, 32 connections, HTTP/1.1 and HTTP/2: reverse TLS→TLS, intercepted, mitmdump. A relay makes the CONNECT.
    tunnels    new connections, one after the other, without a request: a full TLS handshake with the reverse gateway; an intercepted tunnel
    firstbyte  the first byte of 10 MiB: through an opaque tunnel, and intercepted
    names      resident memory while 2,000 hosts are asked for
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402

ORIGIN = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; tcp_nopush off; keepalive_requests 1000000; keepalive_timeout 600s;
  server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {cert}; ssl_certificate_key {key}; http2_max_requests 100000000; root {files}; }}
}}
"""
HTTPWARE = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{reverse}", tls: {{ cert: "{cert}", key: "{key}" }} }}
  read: {{ bind: "127.0.0.1:{read}", mode: forward, forward: {{ connectPorts: [{origin}], denyPrivate: false }}, intercept: {{ hosts: ["*"], ca: "{ca}" }} }}
  opaque: {{ bind: "127.0.0.1:{opaque}", mode: forward, forward: {{ connectPorts: [{origin}], denyPrivate: false }} }}
services: {{ origin: {{ baseUrl: "https://localhost:{origin}" }} }}
routes: [{{ listener: web, service: origin }}, {{ service: passthrough }}]
log: {{ level: error }}
{more}
"""


class Bench:
    def __init__(self, options: argparse.Namespace, more: str = ""):
        self.options = options
        self.place = Workplace("intercept")
        cpus = sorted(os.sched_getaffinity(0))
        self.own = lambda: os.sched_setaffinity(0, {cpus[0]})
        self.load = lambda: os.sched_setaffinity(0, {cpus[min(1, len(cpus) - 1)]})
        keys = certificates()
        cert, key = keys / "a.pem", keys / "a.key"
        files = self.place.subfolder("files")
        (files / "1k").write_bytes(b"x" * 1024)
        (files / "10m").write_bytes(b"x" * (10 << 20))
        self.origin = free_port()
        self.place.nginx(ORIGIN.format(port=self.origin, files=files, cert=cert, key=key, folder=files), [self.origin], preexec=self.load)
        self.ca = files / "ca"
        subprocess.run([options.binary, "ca", "init", "--dir", str(self.ca)], check=True, capture_output=True)
        self.reverse, self.read, self.opaque = free_port(), free_port(), free_port()
        text = HTTPWARE.format(reverse=self.reverse, read=self.read, opaque=self.opaque, origin=self.origin, cert=cert, key=key, ca=self.ca, more=more)
        self.ours = self.place.gateway(options.binary, text, [self.reverse, self.read, self.opaque], 1, preexec=self.own,
                                       environment={"SSL_CERT_FILE": str(keys / "ca.pem")})
        self.peers: dict[str, tuple[Process, int]] = {
            "reverse TLS→TLS": (self.ours, self.relay(f"TCP:127.0.0.1:{self.reverse}")),
            "intercepted": (self.ours, self.relay_by(self.read)),
        }
        if options.mitmdump:
            port = free_port()
            peer = self.place.command(
                [options.mitmdump, "-q", "--listen-host", "127.0.0.1", "--listen-port", str(port), "--set", f"confdir={files / 'mitm'}",
                 "--set", "ssl_insecure=true"], [port], patience=30, preexec=self.own)
            self.peers["mitmdump"] = (peer, self.relay_by(port))

    def relay(self, target: str) -> int:
        port = free_port()
        self.place.command(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,backlog=128,nodelay", target + ",nodelay"], [port], preexec=self.load)
        return port

    def relay_by(self, proxy: int) -> int:
        return self.relay(f"PROXY:127.0.0.1:localhost:{self.origin},proxyport={proxy}")

    # requests

    def requests(self) -> None:
        for version in ("HTTP/1.1", "HTTP/2"):
            figures: dict[str, list[float]] = {name: [] for name in self.peers}
            for name in self.peers:
                self.turn(name, version, 1)
            for round in range(self.options.rounds):
                names = list(self.peers)
                for name in names[round % len(names):] + names[:round % len(names)]:
                    figures[name].append(self.turn(name, version, self.options.seconds))
            report(f"µs of CPU per request, {version}, 1 KiB, 32 connections", figures)

    def turn(self, name: str, version: str, seconds: float) -> float:
        process, port = self.peers[name]
        authority = f"localhost:{self.origin}"
        before = process.cpu_seconds()
        if version == "HTTP/1.1":
            command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "-H", f"Host: {authority}", f"https://localhost:{port}/1k"]
        else:
            command = ["h2load", "-t1", "-c32", "-m1", "-D", str(seconds), "-H", f":authority: {authority}", f"https://localhost:{port}/1k"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=self.load).stdout
        spent = process.cpu_seconds() - before
        if version == "HTTP/1.1":
            done = int(re.search(r"(\d+) requests in", output)[1])
            failed = "Non-2xx" in output or "Socket errors" in output
        else:
            done = int(re.search(r"(\d+) succeeded", output)[1])
            failed = int(re.search(r"(\d+) 2xx", output)[1]) < done
        if failed or not done:
            raise RuntimeError(f"{name}, {version}: {output}")
        return spent * 1e6 / done

    # tunnels

    def context(self, trust: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(trust)
        return context

    def connection(self, port: int, context: ssl.SSLContext, host: str = "") -> ssl.SSLSocket:
        sock = socket.create_connection(("127.0.0.1", port), 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if host:
            target = f"{host}:{self.origin}"
            sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            answer = sock.recv(4096)
            if b" 200 " not in answer:
                raise RuntimeError(repr(answer))
        return context.wrap_socket(sock, server_hostname=host or "localhost")

    def tunnels(self) -> None:
        ways = {
            "reverse, full handshake": (self.ours, self.reverse, self.context(certificates() / "ca.pem"), ""),
            "intercepted, known host": (self.ours, self.read, self.context(self.ca / "ca.pem"), "localhost"),
            "intercepted, new host": (self.ours, self.read, self.context(self.ca / "ca.pem"), "n{}.test"),
        }
        if "mitmdump" in self.peers:
            process, port = self.peers["mitmdump"]
            own = int(re.search(r":(\d+),?", " ".join(process.popen.args).replace("--listen-port ", ":"))[1])
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            ways["mitmdump, known host"] = (process, own, context, "localhost")
        figures: dict[str, list[float]] = {name: [] for name in ways}
        number = 0
        for _ in range(self.options.rounds):
            for name, (process, port, context, host) in ways.items():
                count = 50 if "mitmdump" in name else 500
                before = process.cpu_seconds()
                for _ in range(count):
                    number += 1
                    self.connection(port, context, host.format(number)).close()
                figures[name].append((process.cpu_seconds() - before) * 1e6 / count)
        report("µs of CPU per new connection", figures)

    # firstbyte

    def firstbyte(self) -> None:
        ways = {
            "opaque": (self.opaque, self.context(certificates() / "ca.pem")),
            "intercepted": (self.read, self.context(self.ca / "ca.pem")),
        }
        figures: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(10 * self.options.rounds):
            for name, (port, context) in ways.items():
                sock = self.connection(port, context, "localhost")
                began = time.monotonic()
                sock.sendall(f"GET /10m HTTP/1.1\r\nHost: localhost:{self.origin}\r\nConnection: close\r\n\r\n".encode())
                received = b""
                while b"\r\n\r\nx" not in received:
                    received += sock.recv(65536)
                figures[name].append((time.monotonic() - began) * 1e6)
                while sock.recv(1 << 20):
                    pass
                sock.close()
        report("µs to the first byte of 10 MiB", figures)

    # names

    def names(self) -> None:
        context = self.context(self.ca / "ca.pem")
        print("\nresident memory in KiB while hosts are asked for")
        for number in range(2001):
            if number % 500 == 0:
                print(f"  {number:5} names  {self.ours.status('VmRSS'):7}")
            self.connection(self.read, context, f"name{number}.test").close()


def report(title: str, figures: dict[str, list[float]]) -> None:
    print(f"\n{title}")
    base = statistics.median(next(iter(figures.values())))
    for name, values in figures.items():
        middle = statistics.median(values)
        spread = (max(values) - min(values)) / middle if middle else 0
        print(f"  {name:26} {middle:9.1f}  ×{middle / base:.2f}  ±{spread:.0%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--mitmdump", help="the program of mitmproxy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="requests,tunnels,firstbyte,names")
    options = parser.parse_args()
    print(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {options.rounds} rounds of {options.seconds} s")
    bench = Bench(options)
    try:
        for name in options.only.split(","):
            getattr(bench, name)()
    finally:
        bench.place.close()


if __name__ == "__main__":
    main()
