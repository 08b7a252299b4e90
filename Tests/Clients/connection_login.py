"""Clients that authenticate their connection (NTLM), through listeners of each kind, to an origin server that knows users by connection.

The origin server believes the name in any NTLM message of type 3; what is tested is who else counts as that user.
"""

from __future__ import annotations

import base64
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

from Clients.stages import Origin, Stage
from Clients.trials import Skipped, client, expect
from Rig.certificates import certificates

CONFIG = """
services:
  origin: {{ baseUrl: "http://127.0.0.1:{origin}" }}
  passthrough: {{ tls: {{ ca: {folder}/ca.pem }} }}
chains:
  shared: {{ middlewares: [coalesce, {{ httpCache: {{}} }}] }}
routes:
  - {{ listener: web, match: {{ path: "/shared/**" }}, service: origin, chain: shared }}
  - {{ listener: web, service: origin }}
  - {{ listener: proxy, service: passthrough }}
"""
CHALLENGE = b"NTLMSSP\0" + struct.pack("<IHHII8s8sHHI", 2, 0, 0, 48, 0x00008201, b"01234567", b"", 0, 0, 48)


class ConnectionOrigin(Origin):
    """Answers who the user of the connection is, and the connection's number."""

    count, lock = 0, threading.Lock()

    def talk(self, connection: socket.socket) -> None:
        with self.lock:
            self.count += 1
            number = self.count
        user, challenged, buffer = "", False, b""
        while True:
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            fields = {name.lower(): value for name, value in lines.items()}
            length = int(fields.get(b"content-length", 0))
            while len(buffer) < length:
                buffer += connection.recv(65536)
            buffer = buffer[length:]
            given = fields.get(b"authorization", b"")
            path = head.split(b" ")[1]
            if given.lower().startswith(b"ntlm "):
                message = base64.b64decode(given[5:])
                if message[8] == 1:
                    challenged = True
                    connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM " + base64.b64encode(CHALLENGE)
                                       + b"\r\nContent-Length: 0\r\n\r\n")
                    continue
                count, _, offset = struct.unpack_from("<HHI", message, 36)
                user = message[offset:offset + count].decode("utf-16-le" if message[60] & 1 else "latin-1") if challenged else ""
            if not user and not path.endswith(b"open"):
                body, start = b"nobody", b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\", NTLM\r\n"
            else:
                body = f"{user or 'nobody'} on {number}".encode()
                start = b"HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\n"
            connection.sendall(start + b"Content-Length: %d\r\n\r\n" % len(body) + body)


class LoginStage(Stage):
    def __init__(self, t):
        self.plain, self.secure = ConnectionOrigin(), ConnectionOrigin(certificates().server())
        super().__init__(t, CONFIG, [self.secure.port], origin=self.plain.port)

    def ways(self) -> dict[str, list[str]]:
        """How curl reaches the origin server: the arguments, with the URL's start last."""
        proxy = self.through_proxy()
        return {
            "reverse": [f"http://127.0.0.1:{self.web}"],
            "forward": [*proxy, f"http://127.0.0.1:{self.plain.port}"],
            "intercepted": [*proxy, "--http1.1", f"https://localhost:{self.secure.port}"],
        }

    def ask(self, way: list[str], path: str, *arguments: str) -> str:
        return super().ask(*arguments, *way[:-1], way[-1] + path)


def stage(t) -> LoginStage:
    if "NTLM" not in t.run("curl", "--version"):
        raise Skipped("this curl does not know NTLM")
    if not hasattr(t, "connection_login"):
        t.connection_login = LoginStage(t)
    expect(t.connection_login.process.is_running, "it died:", t.connection_login.process.log[-500:])
    return t.connection_login


for way in ("reverse", "forward", "intercepted"):

    @client(f"curl --ntlm, {way}: another client is never served as the user", smoke=True)
    def _(t, way: str = way) -> None:
        s = stage(t)
        place = s.ways()[way]
        for _ in range(5):
            answer = s.ask(place, "/a", "--ntlm", "-u", "carol:pw")
            expect(answer.startswith("carol on "), answer)
            for _ in range(3):
                expect((answer := s.ask(place, "/secret")) == "nobody", "a stranger got", answer)

    @client(f"curl --ntlm, {way}: eight clients at once are each authenticated as themselves", smoke=True)
    def _(t, way: str = way) -> None:
        s = stage(t)
        place = s.ways()[way]
        with ThreadPoolExecutor(24) as pool:
            for _ in range(3):
                users = [f"user{number}" for number in range(8)]
                mine = [pool.submit(s.ask, place, f"/{user}", "--ntlm", "-u", f"{user}:pw") for user in users]
                others = [pool.submit(s.ask, place, "/secret") for _ in range(16)]
                answers = [job.result() for job in mine]
                expect(all(answer.startswith(f"{user} on ") for user, answer in zip(users, answers)), answers)
                expect({job.result() for job in others} == {"nobody"}, [job.result() for job in others])

    @client(f"curl --ntlm, {way}: later requests of the same connection need no credentials", smoke=True)
    def _(t, way: str = way) -> None:
        s = stage(t)
        place = s.ways()[way]
        answer = s.ask([*place[:-1], place[-1] + "/1", place[-1]], "/2", "--ntlm", "-u", "dave:pw", "-w", "\n")
        lines = answer.split()
        expect(lines[0] == "dave" and lines[3] == "dave" and lines[2] == lines[5], answer)


@client("a client of HTTP/2 has an authenticated connection of its own", smoke=True)
def _(t) -> None:
    s = stage(t)
    place = s.ways()["reverse"]
    token = base64.b64encode(b"NTLMSSP\0" + struct.pack("<I", 1) + bytes(20)).decode()
    urls = [place[-1] + f"/{number}open" for number in range(3)]
    answer = s.ask([*urls, place[-1]], "/open", "--http2-prior-knowledge", "-H", f"Authorization: NTLM {token}", "-o", "/dev/null", "-w", "%{http_code}\n")
    expect("401" in answer, answer)
    for _ in range(3):
        expect(s.ask(place, "/secret") == "nobody")


@client("responses on an authenticated connection are neither stored nor shared", smoke=True)
def _(t) -> None:
    s = stage(t)
    place = s.ways()["reverse"]
    for number in range(3):
        answer = s.ask(place, f"/shared/{number}", "--ntlm", "-u", "erin:pw")
        expect(answer.startswith("erin on "), answer)
        expect((answer := s.ask(place, f"/shared/{number}")) == "nobody", "a stranger got", answer)
    answer = s.ask([place[-1] + "/shared/x", place[-1]], "/shared/page-open", "--ntlm", "-u", "erin:pw", "-w", "\n")
    expect(answer.count("erin on ") == 2, answer)
    expect((answer := s.ask(place, "/shared/page-open")).startswith("nobody on "), "a stranger got", answer)
