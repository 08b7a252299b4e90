#!/usr/bin/env python3
"""Configurations of Caddy and Traefik in the peer and, imported, in httpware: the same requests must get the same answers.

    Tests/Import/proxies.py --binary .build/release/httpware [--peers FOLDER] [NAME…]

FOLDER has the programs `caddy` and `traefik`; without it they are looked for in PATH, and what is not there is skipped and said so.
Compared are the status, `Location`, the fields in FIELDS, and what the origin server saw, or else the content. Python 3.11,
standard library only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urljoin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from Rig.processes import DidNotStart, Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402
from Rig.waits import eventually  # noqa: E402

# The response fields that must be alike.
FIELDS = ("Location", "X-Frame-Options", "X-Answer", "X-Order", "X-Common", "X-Shared", "X-Down", "X-Default", "X-Late", "X-Answered",
          "X-Content-Type-Options", "Access-Control-Allow-Origin", "Cache-Control", "Content-Encoding", "X-Origin")
# The request fields that the origin server must have seen alike.
SEEN = ("Host", "X-From", "X-Secret", "X-Added", "X-Remove", "X-Snippet", "X-Team", "X-Path", "X-Replaced-Path", "X-Forwarded-Prefix",
        "X-Forwarded-Proto", "X-Forwarded-Host", "Authorization")
BOB = "Authorization=Basic Ym9iOnNlY3JldA=="
WRONG = "Authorization=Basic Ym9iOndyb25n"


def each(methods: str, host: str, *paths: str) -> list[str]:
    return [f"{method} {path} Host={host}" for method in methods.split() for path in paths]


# The requests for each file: method, path, fields; a field @N is content of N bytes.
REQUESTS = {
    "site.caddyfile": [
        *each("GET POST", "a.test", "/", "/api/x", "/api/", "/api", "/API/y", "/apix", "/old", "/old/a?b=c", "/once", "/static/page.html"),
        *each("GET", "www.a.test", "/", "/api/users?id=7", "/static/", "/static/none.txt", "/static/sub"),
        "GET / Host=a.test:80", "HEAD /api/x Host=a.test", "DELETE /other Host=a.test", "GET /a%20b Host=a.test",
        "GET /api/a%2Fb Host=a.test", "GET /text Host=a.test Accept-Encoding=gzip",
    ],
    "matchers.caddyfile": [
        *each("GET POST PUT", "m.test", "/", "/beta", "/order/1", "/v1/x", "/inner/a"),
        *each("GET", "m.test", "/a.png", "/A.PNG", "/dir/b.jpg", "/c.gif", "/inner", "/v/x", "/xv2/", "/V3/y"),
        "GET /beta X-Tester=1 Host=m.test", "GET /betamax X-Tester=0 Host=m.test", "GET /other X-Tester=1 Host=m.test",
        "GET /?debug=1 Host=m.test", "GET /?debug Host=m.test", "GET /?debugger=1 Host=m.test",
        "POST / X-Remove=1 Host=m.test", "DELETE /order/2 Host=m.test",
    ],
    "files.caddyfile": [
        *each("GET HEAD", "f.test", "/", "/page.html", "/none", "/sub/", "/assets/a.txt", "/private/x.txt", "/.secret"),
        *each("POST", "f.test", "/page.html"),
        f"GET /private/x.txt Host=f.test {BOB}", f"GET /private/none Host=f.test {BOB}", f"GET /private/x.txt Host=f.test {WRONG}",
        f"GET /Private/x.txt Host=f.test {WRONG}", "GET /private Host=f.test",
        *each("GET", "app.test", "/", "/api/x", "/deep/link", "/page.html", "/assets/a.txt", "/api"),
        "POST /api/x Host=app.test",
    ],
    "rewrites.caddyfile": [
        *each("GET", "r.test", "/home", "/a.php", "/a.php?x=1", "/b", "/php", "/a.php/b", "/Home", "/home/x"),
        *each("GET POST", "p.test", "/", "/x", "/x?y=1", "/a/b/"),
        *each("GET HEAD POST PUT", "q.test", "/", "/y"),
        *each("GET", "one.wild.test", "/", "/x"), *each("GET POST", "two.wild.test", "/"),
    ],
    "limits.caddyfile": [
        *each("GET OPTIONS", "l.test", "/health", "/health/", "/json", "/a/x", "/b/x", "/a", "/teapot", "/none"),
        "POST /a/x Host=l.test @5", "POST /a/x Host=l.test @50", "PUT /b/x Host=l.test @10",
        *each("GET POST", "unknown.test", "/", "/health"), "GET /HEALTH Host=l.test", "GET /A/x Host=l.test",
    ],
    "snippets.caddyfile": [
        *each("GET POST", "s1.test", "/", "/shared", "/shared/x", "/.env", "/wp-admin/x", "/wp-admin"),
        *each("GET PUT", "s2.test", "/", "/.env", "/x?y=z"),
        *each("GET", "s3.test", "/only/x", "/only/", "/ONLY/x"),
    ],
    "routers.traefik.yaml": [
        *each("GET POST", "t.test", "/", "/api", "/api/x", "/apix", "/api/exact", "/api/exact/"),
        *each("GET", "u.test", "/x", "/x/y", "/xy", "/x/not", "/", "/?mode=b", "/?mode=a", "/x?mode=b"),
        "GET / X-Go=1 Host=u.test", "GET /x/not X-Go=1 Host=u.test", "GET / X-Go=2 Host=u.test",
        *each("GET", "one.shape.test", "/1", "/12", "/a", "/1a"), *each("GET", "a.b.shape.test", "/1"), "GET /1 Host=TWO.shape.test",
        *each("GET", "any.test", "/local", "/Local", "/none"), "GET / X-Remove=1 Host=t.test",
    ],
    "access.traefik.toml": [
        *each("GET", "o.test", "/", "/users", "/users/1", "/inner", "/outer", "/outer/x", "/Outer"),
        f"GET /users/12 Host=o.test {BOB}", f"GET /users/ab Host=o.test {BOB}", f"GET /users/1 Host=o.test {WRONG}", f"GET /usersx Host=o.test {WRONG}",
        *each("GET POST HEAD", "secure.test", "/", "/a?b=c"), *each("GET POST", "moved.test", "/", "/a/b?c=d"),
        "POST / Host=small.test @5", "POST / Host=small.test @6", "GET / Host=small.test", "GET / Host=none.test",
    ],
    "old.traefik.yaml": [
        *each("GET", "v.test", "/p", "/p/1", "/q", "/r", "/?a=1", "/?b=2", "/?a=2", "/?a=1&b=2"), *each("POST", "w.test", "/p", "/q/x", "/z"),
        *each("GET", "one.named.test", "/item/1", "/item/x", "/item/", "/item/12/x"), *each("GET", "a1.named.test", "/item/1"),
        "GET / X-Kind=a Host=h.test", "GET / X-Kind=bb Host=h.test", "GET / X-Kind=c Host=h.test", "GET / Host=h.test",
    ],
    "shares.traefik.yaml": [
        *each("GET PUT", "c.test", "/", "/x"), *each("GET POST DELETE", "d.test", "/", "/y?z=1"), *each("GET", "e.test", "/", "/m"),
        "GET / Host=c.test Origin=https://app.test", "GET / Host=c.test Origin=https://evil.test",
        "GET /text Host=c.test Accept-Encoding=gzip", "GET /text Host=d.test Accept-Encoding=gzip",
        *each("HEAD", "c.test", "/"), *each("GET", "e.test", "/a", "/b", "/c"), "GET / Host=n.test",
    ],
}
# Answers that differ, each with its reason: file, request, what differs.
KNOWN = {
    ("shares.traefik.yaml", "GET / Host=n.test"): "a router whose middleware is missing is 404 there and 503 here",
    ("files.caddyfile", "GET /private Host=f.test"): "a folder without an index is 404 there; here it is redirected to its slash first, then 404",
}


class Origin(BaseHTTPRequestHandler):
    """Answers with what it saw, as JSON."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = {name: self.headers.get_all(name) for name in SEEN if name in self.headers}
        body = json.dumps({"origin": self.server.name, "method": self.command, "path": self.path, "seen": seen, "content": len(content)}).encode()
        if self.path.startswith("/text"):
            body += b" " * 4000
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Origin", self.server.name)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, *_: object) -> None:
        pass


def origin(name: str) -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    server.name = name
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def send(port: int, request: str) -> dict:
    method, path, _ = request.split(" ", 2)
    headers, content = [], b""
    for field in request[len(method) + len(path) + 2:].replace(" Host=", "\nHost=").replace(" X-", "\nX-").replace(" Auth", "\nAuth").replace(
            " Accept", "\nAccept").replace(" Origin", "\nOrigin").replace(" @", "\n@").split("\n"):
        if field.startswith("@"):
            content = b"x" * int(field[1:])
        elif field:
            headers.append(tuple(field.split("=", 1)))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if content or method in ("POST", "PUT"):
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content or None)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return {"status": "no response"}
    finally:
        connection.close()
    answer: dict = {"status": response.status}
    # Errors of the gateway itself have fields of its own.
    if response.status < 400 or response.headers.get("X-Origin"):
        answer |= {name: value for name in FIELDS if (value := response.headers.get(name)) is not None}
    if response.headers.get("X-Origin") and not response.headers.get("Content-Encoding") and body:
        seen = json.loads(body)
        # Each gateway has a port of its own.
        for name, values in seen["seen"].items():
            seen["seen"][name] = [(value.lower() if "Host" in name else value).replace(str(port), "PORT") for value in values]
        answer["seen"] = seen
    elif response.status < 400 and not response.headers.get("Content-Encoding") and not 300 <= response.status < 400:
        answer["content"] = body.decode(errors="replace")
    if "Location" in answer:
        answer["Location"] = urljoin(path, answer["Location"]).replace(f":{port}", ":PORT")
    return answer


def site(folder: Path) -> Path:
    for name, text in {"index.html": "<p>home</p>\n", "page.html": "<p>page</p>\n", "sub/index.html": "<p>sub</p>\n", "assets/a.txt": "a\n",
                       "private/x.txt": "x\n", ".secret": "s\n"}.items():
        path = folder / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "site"


def run(name: str, binary: str, peer: str, place: Workplace) -> list[dict]:
    folder = place.subfolder(name.split(".")[0])
    a, b = origin("a"), origin("b")
    ports = [free_port(), free_port()]
    root = site(folder)
    paths = []
    for port in ports:
        paths.append(folder / f"{port}-{name}")
        text = (HERE / "Files" / name).read_text()
        for mark, value in {"PORT": port, "A": a, "B": b, "SITE": root, "SELF": paths[-1]}.items():
            text = text.replace(f"@{mark}@", str(value))
        paths[-1].write_text(text)
    kind = "caddy" if name.endswith(".caddyfile") else "traefik"
    command = [peer, "run", "--config", str(paths[0]), "--adapter", "caddyfile"] if kind == "caddy" else [peer, f"--configFile={paths[0]}"]
    yaml = folder / "httpware.yaml"
    made = subprocess.run([binary, "import", kind, str(paths[1]), "-o", str(yaml)], capture_output=True, text=True)
    if made.returncode:
        return [line(f"{name}: import", "exit status 0", made.stderr[-2000:], False)]
    try:
        theirs = place.command(command, [ports[0]], environment={"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)})
        ours = place.command([binary, "run", "-c", str(yaml)], [ports[1]])
    except DidNotStart as fault:
        return [line(f"{name}: start", "both listen", str(fault), False)]
    results, count = [], 0
    # Traefik takes its file a moment after it listens.
    if kind == "traefik":
        eventually(lambda: any(send(ports[0], request)["status"] == 200 for request in REQUESTS[name][:3]))
    for request in REQUESTS[name]:
        wanted, got = send(ports[0], request), send(ports[1], request)
        count += 1
        if wanted != got and (name, request) not in KNOWN:
            results.append(line(f"{name}: {request}", json.dumps(wanted), json.dumps(got), False))
    results.append(line(f"{name}: answers", "alike, at least 20", count, count >= 20 and not results))
    ours.stop()
    theirs.stop()
    return results


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--peers", default="")
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    place = Workplace("import")
    results: list[dict] = []
    try:
        for name in options.names or sorted(REQUESTS):
            kind = "caddy" if name.endswith(".caddyfile") else "traefik"
            peer = str(Path(options.peers) / kind) if options.peers else shutil.which(kind)
            if not peer or not Path(peer).exists():
                print(f"{name}: skipped, {kind} is not installed", file=sys.stderr)
                continue
            results += run(name, str(Path(options.binary).resolve()), peer, place)
    finally:
        place.close()
    return tell(results)


if __name__ == "__main__":
    sys.exit(main())
