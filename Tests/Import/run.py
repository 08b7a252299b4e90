#!/usr/bin/env python3
"""Configurations of other gateways and what `httpware import` makes of them: the same requests to both, the answers compared. One JSON line a file.

    Tests/Import/run.py --binary .build/release/httpware [--only NAME] [--show]

A file in `Files/PEER` has its requests in `NAME.requests`: a line is `METHOD HOST PATH`, with `| Name: value` for each further field; a host that begins
with `https://` is asked by TLS. Lines that begin with `#` are comments, except `# compare: FIELD, …`, which names fields of responses to compare, `# seen:
FIELD, …` for fields that origin servers get, and `# differs: TEXT`, which says why the next request is answered differently, and has to be.

In files, @HTTP@, @TLS@ and @MORE@ are ports of the gateway, @A@ to @D@ those of origin servers, and @FOLDER@ a folder with files. Compared are the status, `Location`, the
fields that are named, which origin server answered, with which target and host, and the content of files. A peer that is not installed is skipped.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import http.client
import http.server
import json
import re
import shutil
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Rig.processes import DidNotStart, Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402

HERE = Path(__file__).resolve().parent
USERS = HERE.parents[1] / "conf/wares/users.htpasswd"
PEERS = {"nginx": (".conf", "/usr/sbin/nginx"), "haproxy": (".cfg", "/usr/sbin/haproxy")}
LEAST = 20


class Origin(http.server.ThreadingHTTPServer):
    """An origin server that answers with its name and what it saw."""

    daemon_threads = True

    def __init__(self, name: str):
        self.name = name
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """A peer that ends its connections is not a mistake."""

    @property
    def port(self) -> int:
        return self.server_address[1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        fields = {name.lower(): value for name, value in self.headers.items()}
        path = urlsplit(self.path).path
        status = int(found[1]) if (found := re.search(r"/status/(\d{3})$", path)) else 200
        if path.endswith("/auth-check"):
            status = 200 if "let-me-in" in self.headers.get("Cookie", "") else 401
        seen = {"origin": self.server.name, "method": self.command, "target": self.path, "host": self.headers.get("Host"), "fields": fields,
                "length": len(content)}
        body = json.dumps(seen).encode()
        if path.endswith("/large.json"):
            body = json.dumps(seen | {"padding": "x" * 4000}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Powered-By", "Origin/1")
        self.send_header("X-Origin", self.server.name)
        self.send_header("X-User", fields.get("remote-user", "anna") if path.endswith("/auth-check") else "none")
        if path.endswith("/moved"):
            self.send_header("Location", f"http://{self.headers.get('Host')}/elsewhere")
        if path.endswith("/cookie"):
            self.send_header("Set-Cookie", "session=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


class Request:
    def __init__(self, text: str, differs: str | None):
        first, *fields = [part.strip() for part in text.split(" | ")]
        self.method, host, self.path = first.split(" ", 2)
        self.is_tls = host.startswith("https://")
        self.host = host.removeprefix("https://").removeprefix("http://")
        self.fields = [tuple(part.strip() for part in field.split(":", 1)) for field in fields]
        self.text, self.differs = text, differs

    def send(self, ports: dict[str, int], compared: list[str], seen: list[str]) -> dict:
        """The answer, as far as it is compared."""
        port = ports["TLS" if self.is_tls else "HTTP"]
        for name, value in self.fields:
            if name == "@Port":
                port = ports[value]
        if self.is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.putrequest(self.method, self.path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", self.host)
            body = b""
            for name, value in self.fields:
                if name == "@Body":
                    body = b"x" * int(value)
                elif name == "@User":
                    connection.putheader("Authorization", "Basic " + base64.b64encode(value.encode()).decode())
                elif not name.startswith("@"):
                    connection.putheader(name, value)
            if body or self.method in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(body)))
            try:
                connection.endheaders(body or None)
            except (ConnectionResetError, BrokenPipeError):
                pass
            answer = connection.getresponse()
            content = answer.read()
        except (ConnectionResetError, http.client.RemoteDisconnected, BrokenPipeError):
            return {"status": "closed"}
        except TimeoutError:
            return {"status": "no answer"}
        finally:
            connection.close()
        result: dict = {"status": answer.status}
        if location := answer.getheader("Location"):
            scheme = "https" if self.is_tls else "http"
            whole = urljoin(f"{scheme}://{self.host}{self.path}", location)
            for each in ports.values():
                whole = whole.replace(f":{each}", "")
            result["location"] = whole
        for name in compared:
            result[name.lower()] = ", ".join(value.strip() for value in answer.headers.get_all(name, []))
        if answer.getheader("Content-Encoding") == "gzip" and content:
            content = gzip.decompress(content)
        if answer.getheader("X-Origin"):
            result["origin"] = answer.getheader("X-Origin")
            if self.method != "HEAD" and content:
                told = json.loads(content)
                host = told["host"] or ""
                for each in ports.values():
                    host = host.replace(f":{each}", "")
                result |= {"method": told["method"], "target": told["target"], "host": host, "length": told["length"]}
                for name in seen:
                    result[f"seen {name.lower()}"] = told["fields"].get(name.lower())
        elif answer.status == 200:
            result["content"] = content.decode(errors="replace")[:200]
        return result


def read(path: Path) -> tuple[list[Request], list[str], list[str]]:
    """The requests of a file, the fields to compare, and the fields that origin servers see."""
    requests, compared, seen, differs = [], [], [], None
    for text in path.read_text().splitlines():
        if text.startswith("# compare:"):
            compared += [name.strip() for name in text.removeprefix("# compare:").split(",")]
        elif text.startswith("# seen:"):
            seen += [name.strip() for name in text.removeprefix("# seen:").split(",")]
        elif text.startswith("# differs:"):
            differs = text.removeprefix("# differs:").strip()
        elif text and not text.startswith("#"):
            requests.append(Request(text, differs))
            differs = None
    return requests, compared, seen


def site(folder: Path) -> None:
    """The files that configurations serve."""
    for name, text in {"index.html": "home", "about.html": "about", "404.html": "our 404", "50x.html": "our 50x", "css/site.css": "b { color: red }" * 100,
                       "img/logo.svg": "<svg/>", "docs/index.html": "docs", "docs/guide.html": "guide", "app/index.html": "the app", "deep/a/b.txt": "b"}.items():
        (folder / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "site" / name).write_text(text + "\n")
    shutil.copy(USERS, folder / "users.htpasswd")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=example.test", "-keyout", folder / "site.key",
                    "-out", folder / "site.pem", "-addext", "subjectAltName=DNS:example.test,DNS:*.example.test"], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "site.pem").read_text() + (folder / "site.key").read_text())
    (folder / "site.key").chmod(0o600)
    for path in folder.rglob("*"):
        if path.suffix != ".key":
            path.chmod(0o755 if path.is_dir() else 0o644)


def rendered(text: str, ports: dict[str, int], origins: list[Origin], folder: Path) -> str:
    for name, port in ports.items():
        text = text.replace(f"@{name}@", str(port))
    for origin in origins:
        text = text.replace(f"@{origin.name.upper()}@", str(origin.port))
    return text.replace("@FOLDER@", str(folder))


def trial(peer: str, path: Path, binary: str, place: Workplace, origins: list[Origin], folder: Path, show: bool) -> dict:
    name = f"{peer}: {path.stem}"
    goal = f"at least {LEAST} requests, all answered alike"
    requests, compared, seen = read(path.with_suffix(".requests"))
    text = path.read_text()
    theirs, ours = ({key: free_port() for key in ("HTTP", "TLS", "MORE")} for _ in range(2))
    listening = lambda ports: [port for key, port in ports.items() if f"@{key}@" in text]  # noqa: E731
    work = place.subfolder(path.stem)
    (work / "ours").mkdir()
    config = work / path.name
    config.write_text(rendered(text, theirs, origins, folder))
    source = work / "ours" / path.name
    source.write_text(rendered(text, ours, origins, folder))
    for extra in path.parent.glob(f"{path.stem}.*.inc"):
        (work / extra.name).write_text(rendered(extra.read_text(), theirs, origins, folder))
        (work / "ours" / extra.name).write_text(rendered(extra.read_text(), ours, origins, folder))
    imported = work / "ours" / "httpware.yaml"
    done = subprocess.run([binary, "import", peer, source, "-o", imported], capture_output=True, text=True, timeout=60)
    if done.returncode:
        return line(name, goal, {"import": done.stderr[-1500:], "exit status": done.returncode}, False)
    if peer == "nginx":
        command = [PEERS[peer][1], "-p", str(work), "-c", str(config), "-e", str(work / "error.log"), "-g", "daemon off;"]
    else:
        command = [PEERS[peer][1], "-db", "-f", str(config)]
    try:
        server = place.command(command, listening(theirs), patience=60)
        gateway = place.command([binary, "run", "-c", str(imported), "--workers", "1"], listening(ours), patience=60)
    except DidNotStart as error:
        return line(name, goal, str(error), False)
    different, counts = [], {"requests": len(requests), "alike": 0, "statuses": {}}
    for request in requests:
        expected, got = request.send(theirs, compared, seen), request.send(ours, compared, seen)
        statuses = counts["statuses"]
        statuses[expected["status"]] = statuses.get(expected["status"], 0) + 1
        if (expected == got) == (request.differs is None):
            counts["alike"] += request.differs is None
        else:
            parts = {key: (expected.get(key), got.get(key)) for key in expected.keys() | got.keys() if expected.get(key) != got.get(key)}
            different.append({"request": request.text, "peer, httpware": parts or "alike, though it should differ"})
    server.stop()
    gateway.stop()
    if show:
        print(imported.read_text(), file=sys.stderr)
    counts |= {"said to differ": sum(request.differs is not None for request in requests), "summary": done.stderr.splitlines()[0]}
    if different:
        counts["different"] = different
    return line(name, goal, counts, not different and len(requests) >= LEAST and len(counts["statuses"]) > 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    binary = str(Path(options.binary).resolve())
    origins = [Origin(name) for name in "abcd"]
    place = Workplace("import")
    results = []
    try:
        folder = place.subfolder("files")
        site(folder)
        for peer, (suffix, program) in PEERS.items():
            if not Path(program).exists():
                print(f"{peer} is not installed: its files are skipped", file=sys.stderr)
                continue
            for path in sorted((HERE / "Files" / peer).glob(f"*{suffix}")):
                if options.only in f"{peer}/{path.stem}":
                    results.append(trial(peer, path, binary, place, origins, folder, options.show))
                    print(json.dumps(results[-1]["pass"]), path.stem, file=sys.stderr)
        return tell(results)
    finally:
        place.close()
        for origin in origins:
            origin.shutdown()


if __name__ == "__main__":
    sys.exit(main())
