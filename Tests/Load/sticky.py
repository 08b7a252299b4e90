#!/usr/bin/env python3
"""Users of an application that keeps its sessions in memory, over three origin servers: who stays logged in. One JSON line per result.

    Tests/Load/sticky.py --binary .build/release/httpware [--users 30]

`/login` sets a session cookie, `/me` answers 200 to a known session and 401 to any other. Then one server is ended. Exits 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import http.client
import http.server
import secrets
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services:
  app:
    endpoints: [{endpoints}]
    sticky: {{ cookie: app-server, key: "a secret of 20 bytes" }}
routes: [{{ service: app }}]
log: {{ level: critical }}
"""


class App(http.server.ThreadingHTTPServer):
    """One server of the application, with sessions of its own."""

    def __init__(self, port: int):
        self.sessions: set[str] = set()
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        cookies = dict(part.strip().partition("=")[::2] for part in self.headers.get("Cookie", "").split(";"))
        if self.path == "/login":
            session = secrets.token_hex(8)
            self.server.sessions.add(session)
            self.send_response(200)
            self.send_header("Set-Cookie", f"sid={session}; Path=/")
        else:
            self.send_response(200 if cookies.get("sid") in self.server.sessions else 401)
            if "app-server" in cookies:
                self.send_header("X-Leaked", "1")
        self.send_header("X-Server", str(self.server.server_port))
        # Else the threads of a server that has ended would serve on.
        self.send_header("Connection", "close")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_) -> None:
        pass


class User:
    def __init__(self, port: int):
        self.port, self.cookies, self.server = port, {}, ""

    def get(self, path: str) -> int:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        client.request("GET", path, headers={"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {})
        response = client.getresponse()
        response.read()
        for value in response.headers.get_all("Set-Cookie") or []:
            name, _, text = value.split(";")[0].partition("=")
            self.cookies[name] = text
        self.server = response.getheader("X-Server") or ""
        client.close()
        return 500 if response.getheader("X-Leaked") else response.status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--users", type=int, default=30)
    options = parser.parse_args()
    place, web = Workplace("sticky"), free_port()
    apps = {port: App(port) for port in (free_port(), free_port(), free_port())}
    results = []
    try:
        endpoints = ", ".join(f'"http://127.0.0.1:{port}"' for port in apps)
        place.gateway(str(Path(options.binary).resolve()), CONFIG.format(web=web, endpoints=endpoints), [web], 2)
        users = [User(web) for _ in range(options.users)]

        def stays(user: User) -> bool:
            """Twelve requests at once, and then some more."""
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                return all(status == 200 for status in pool.map(user.get, ["/me"] * 12)) and user.get("/me") == 200

        for user in users:
            user.get("/login")
        stay = sum(stays(user) for user in users)
        servers = {user.server for user in users}
        results.append(line("sticky", "every user stays logged in, and every server has users", {"users": len(users), "stay": stay, "servers": len(servers)},
                            stay == len(users) and len(servers) == 3))
        gone = int(users[0].server)
        apps.pop(gone).end()
        lost = [user for user in users if user.server == str(gone)]
        others = [user for user in users if user not in lost]
        stay = sum(stays(user) for user in others)
        again = sum(user.get("/me") == 401 and user.get("/login") == 200 and stays(user) for user in lost)
        results.append(line("one server ends", "its users log in once more and stay; no other user notices",
                            {"others": len(others), "stay": stay, "lost": len(lost), "logged in again": again}, stay == len(others) and again == len(lost)))
        return tell(iter(results))
    finally:
        place.close()
        for app in apps.values():
            app.end()


if __name__ == "__main__":
    sys.exit(main())
