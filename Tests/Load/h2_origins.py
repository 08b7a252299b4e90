#!/usr/bin/env python3
"""Requests with content, while an nginx that speaks HTTP/2 ends its connections: one JSON line per result. Python 3.11.

    Tests/Load/h2_origins.py --binary .build/release/httpware [--only NAME] [--requests 24000]

nginx ends a connection of HTTP/2 with GOAWAY after `keepalive_requests` requests, and does not process what was sent beyond it. Such requests
go out again, so no client sees any of this. Needs nginx; gRPC's own client and server (grpcio) are installed by pip, outside of the repository.
"""

from __future__ import annotations

import argparse
import importlib
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.certificates import certificates  # noqa: E402
from Rig.packages import provide  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402
from Rig.trials import Trials  # noqa: E402

NGINX = """
daemon off; worker_processes 1; pid @FOLDER@/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path @FOLDER@/body; proxy_temp_path @FOLDER@/proxy; fastcgi_temp_path @FOLDER@/f; uwsgi_temp_path @FOLDER@/u;
  scgi_temp_path @FOLDER@/s; keepalive_requests {most}; {more}
  server {{
    listen 127.0.0.1:{port} {tls} http2;
    ssl_certificate {folder}/a.pem; ssl_certificate_key {folder}/a.key;
    location / {{ {location} }}
  }}
}}
"""
CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ app: {{ {service} }} }}
routes: [{{ service: app }}]
log: {{ level: error }}
"""
RESULTS = Trials()


class Count:
    """The outcomes of the requests of many clients."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent = self.failed = 0
        self.first = ""

    def add(self, sent: int, failures: list[str]) -> None:
        with self.lock:
            self.sent += sent
            self.failed += len(failures)
            self.first = self.first or (failures[0] if failures else "")


def talk(port: int, request: bytes, count: int, counted: Count) -> None:
    """Sends requests one after another on a kept connection."""
    failures: list[str] = []
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = b""
        for _ in range(count):
            client.sendall(request)
            while b"\r\n\r\n" not in buffer:
                data = client.recv(65536)
                if not data:
                    failures.append("the gateway closed the connection")
                    return counted.add(count, failures)
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            length = next((int(part[15:]) for part in head.lower().split(b"\r\n") if part.startswith(b"content-length:")), 0)
            while len(buffer) < length:
                buffer += client.recv(65536)
            body, buffer = buffer[:length], buffer[length:]
            if not head.startswith(b"HTTP/1.1 200"):
                failures.append((head.split(b"\r\n")[0] + b" " + body).decode("latin-1")[:200])
    counted.add(count, failures)


def post(size: int, more: bytes = b"") -> bytes:
    return b"POST /x HTTP/1.1\r\nHost: a.test\r\n" + more + b"Content-Length: %d\r\n\r\n" % size + b"x" * size


def call(port: int, clients: int, count: int, counted: Count) -> None:
    """Calls on one connection of gRPC's own client, `clients` at a time."""
    grpc = importlib.import_module("grpc")
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0))) as channel:
        method = channel.unary_unary("/test.Echo/Say")

        def one(number: int) -> str:
            try:
                return "" if method(b"%d" % number * 60, timeout=30) == b"%d" % number * 60 else "another answer"
            except grpc.RpcError as error:
                return f"{error.code()} {error.details()}"

        with ThreadPoolExecutor(clients) as pool:
            counted.add(count, [failure for failure in pool.map(one, range(count)) if failure])


def echo_server(port: int):
    """A server of gRPC that answers with the message of the call."""
    grpc = importlib.import_module("grpc")

    class Echo(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((Echo(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def run(options: argparse.Namespace, name: str, most: int, request: bytes | None, *, requests: int, clients: int, tls: bool = True, more: str = "",
        workers: int = 1) -> dict:
    """Without a request, gRPC's own client calls its server behind nginx."""
    folder = certificates().folder
    server, location = None, 'return 200 "ok";'
    if request is None:
        provide("grpcio==1.85.3")
        behind = free_port()
        server, location = echo_server(behind), f"grpc_pass grpc://127.0.0.1:{behind};"
    web, port = free_port(), free_port()
    place = Workplace("h2-origins")
    try:
        place.nginx(NGINX.format(most=most, more=more, port=port, tls="ssl" if tls else "", folder=folder, location=location), [port])
        service = f'baseUrl: "https://127.0.0.1:{port}", tls: {{ ca: {folder}/ca.pem }}' if tls else f'baseUrl: "http://127.0.0.1:{port}", protocol: h2'
        gateway = place.gateway(options.binary, CONFIG.format(web=web, service=service), [web], workers=workers)
        counted = Count()
        if request is None:
            threads = [threading.Thread(target=call, args=(web, clients, requests // clients * clients, counted))]
        else:
            threads = [threading.Thread(target=talk, args=(web, request, requests // clients, counted)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        measured = f"{counted.failed} of {counted.sent} failed" + (f": {counted.first}" if counted.first else "")
        return line(name, "0 fail", measured, counted.failed == 0 and counted.sent == requests // clients * clients and gateway.is_running)
    finally:
        place.close()
        if server:
            server.stop(0)


for most in (1000, 5, 1):

    @RESULTS.add(f"posts, keepalive_requests {most}")
    def _(options: argparse.Namespace, most: int = most) -> list[dict]:
        name = f"POST of 300 bytes, TLS, keepalive_requests {most}"
        return [run(options, f"{name}, {clients} clients", most, post(300), requests=options.requests, clients=clients) for clients in (4, 24)]

    @RESULTS.add(f"gRPC, keepalive_requests {most}")
    def _(options: argparse.Namespace, most: int = most) -> list[dict]:
        request = post(300, b"Content-Type: application/grpc\r\nTE: trailers\r\n")
        return [run(options, f"gRPC as HTTP/1.1, TLS, keepalive_requests {most}, 16 clients", most, request, requests=options.requests // 4, clients=16),
                run(options, f"gRPC's own client, TLS, keepalive_requests {most}, 16 calls at once", most, None, requests=options.requests // 4, clients=16)]


@RESULTS.add("posts, clear text")
def _(options: argparse.Namespace) -> list[dict]:
    return [run(options, "POST of 2,000 bytes, clear text, 24 clients", 1000, post(2000), requests=options.requests, clients=24, tls=False)]


@RESULTS.add("posts, one stream")
def _(options: argparse.Namespace) -> list[dict]:
    """The origin server takes one request at a time on a connection, and says so in its settings."""
    return [run(options, f"{kind}, http2_max_concurrent_streams 1, 24 clients", 1000, request, requests=options.requests // 10, clients=24,
                more="http2_max_concurrent_streams 1;")
            for kind, request in (("POST of 20 bytes", post(20)), ("GET", b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--only", metavar="NAME", default="")
    parser.add_argument("--requests", type=int, default=24_000)
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return tell(each for name in RESULTS.names if options.only in name for each in RESULTS.lines(name, options))


if __name__ == "__main__":
    sys.exit(main())
