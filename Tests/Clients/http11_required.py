"""An origin server that takes some requests by HTTP/1.1 only, and says so by HTTP_1_1_REQUIRED. RFC 9113 §7."""

from __future__ import annotations

import ssl
import struct

from Clients.stages import Origin, Stage
from Clients.trials import client, expect
from Rig.certificates import certificates

CONFIG = """
services:
  reset: {{ baseUrl: "https://localhost:{reset}", tls: {{ ca: {folder}/ca.pem }} }}
  goaway: {{ baseUrl: "https://localhost:{goaway}", tls: {{ ca: {folder}/ca.pem }} }}
  passthrough: {{ tls: {{ ca: {folder}/ca.pem }} }}
routes:
  - {{ listener: web, match: {{ path: "/reset/**" }}, service: reset }}
  - {{ listener: web, match: {{ path: "/goaway/**" }}, service: goaway }}
  - {{ listener: proxy, service: passthrough }}
"""


class Http11Origin(Origin):
    """Resets each stream, or ends each connection of HTTP/2, with HTTP_1_1_REQUIRED. By HTTP/1.1 it says how much content came."""

    def __init__(self, way: str):
        self.way, self.streams, self.requests = way, 0, 0
        tls = certificates().server()
        tls.set_alpn_protocols(["h2", "http/1.1"])
        super().__init__(tls)

    def talk(self, connection: ssl.SSLSocket) -> None:
        self.serve_h2(connection) if connection.selected_alpn_protocol() == "h2" else self.serve_h1(connection)

    def serve_h2(self, connection: ssl.SSLSocket) -> None:
        stream = connection.makefile("rb")
        stream.read(24)
        connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        while head := stream.read(9):
            length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
            stream.read(length)
            if kind == 4 and not flags & 1:
                connection.sendall(bytes([0, 0, 0, 4, 1, 0, 0, 0, 0]))
            if kind == 1:
                self.streams += 1
                if self.way == "reset":
                    connection.sendall(bytes([0, 0, 4, 3, 0]) + head[5:9] + struct.pack(">I", 13))
                else:
                    connection.sendall(bytes([0, 0, 8, 7, 0, 0, 0, 0, 0]) + struct.pack(">II", 0, 13))

    def serve_h1(self, connection: ssl.SSLSocket) -> None:
        stream = connection.makefile("rb")
        while stream.readline():
            fields = {}
            while (line := stream.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                fields[name.lower()] = value.strip()
            count = int(fields.get(b"content-length", 0))
            stream.read(count)
            while b"chunked" in fields.get(b"transfer-encoding", b""):
                size = int(stream.readline(), 16)
                count += size
                stream.read(size + 2)
                if not size:
                    break
            self.requests += 1
            body = b"%d bytes by HTTP/1.1" % count
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class RequiredStage(Stage):
    def __init__(self, t):
        self.origins = {way: Http11Origin(way) for way in ("reset", "goaway")}
        ports = {way: origin.port for way, origin in self.origins.items()}
        super().__init__(t, CONFIG, list(ports.values()), **ports)


for way in ("reset", "goaway"):
    for place in ("reverse", "intercepted"):

        @client(f"HTTP_1_1_REQUIRED by {way}, {place}: the request is repeated over HTTP/1.1, and later requests use it too", smoke=True)
        def _(t, way: str = way, place: str = place) -> None:
            s = RequiredStage(t)
            origin = s.origins[way]
            more = () if place == "reverse" else s.through_proxy()
            url = f"http://127.0.0.1:{s.web}/{way}/x" if place == "reverse" else f"https://localhost:{origin.port}/x"
            # The method does not matter, and the content goes out again.
            expect((answer := s.ask(url, *more, "-d", "x" * 3000)) == "3000 bytes by HTTP/1.1", answer)
            expect(origin.streams == 1, "streams:", origin.streams)
            for _ in range(3):
                expect((answer := s.ask(url, *more)) == "0 bytes by HTTP/1.1", answer)
            expect(origin.streams == 1, "it is not remembered: streams:", origin.streams)
            # gRPC has no other version: its request goes out by HTTP/2 as before, and is refused in the form of gRPC.
            answer = s.ask(url, *more, "-d", "x", "-H", "Content-Type: application/grpc", "-o", "/dev/null", "-w", "%{http_code} %header{grpc-status}")
            expect(answer == "200 14" and origin.streams == 2, answer, origin.streams)
            expect(s.process.is_running, "it died:", s.process.log[-500:])
            s.process.stop()
