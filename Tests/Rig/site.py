"""An ordinary web site on the loopback, for clients that others wrote: pages, uploads, ranges, git."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import subprocess
import threading
from pathlib import Path

from Rig.waits import Why, pause


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: Site

    def log_message(self, *_) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    # Reading and answering

    def content(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = bytearray()
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return bytes(data)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, body: bytes, kind: str = "text/plain", status: int = 200, **fields: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def describe(self, body: bytes) -> None:
        what = {"method": self.command, "target": self.path, "headers": list(self.headers.items()), "length": len(body),
                "sha256": hashlib.sha256(body).hexdigest(), "framing": "chunked" if self.headers.get("Transfer-Encoding") else "length"}
        self.answer(json.dumps(what).encode(), "application/json")

    # Pages

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        with self.server.lock:
            self.server.seen.append(f"{self.command} {self.path}")
        if path.startswith("/git/"):
            return self.git()
        body = self.content()
        if path.startswith("/files/"):
            return self.file(path.removeprefix("/files/"))
        if path == "/page":
            return self.answer(PAGE, "text/html; charset=utf-8")
        if path == "/style.css":
            return self.answer(b"h1 { color: rgb(1, 2, 3) }", "text/css")
        if path == "/script.js":
            return self.answer(SCRIPT, "text/javascript")
        if path.startswith("/bytes/"):
            return self.answer(b"x" * int(path.rsplit("/", 1)[1]), "application/octet-stream")
        if path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for word in (b"one ", b"two ", b"three"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(word), word))
                self.wfile.flush()
                pause(0.02, Why.SLOW)
            self.wfile.write(b"0\r\n\r\n")
            return None
        if path == "/until-closed":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"ends with the connection")
            self.close_connection = True
            return None
        if path == "/redirect":
            return self.answer(b"", status=302, Location="/get")
        if path == "/teapot":
            return self.answer(b"short and stout", status=418)
        if path == "/none":
            return self.answer(b"", status=204)
        if path == "/cookies":
            self.send_response(200)
            self.send_header("Set-Cookie", "a=1")
            self.send_header("Set-Cookie", "b=2")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        return self.describe(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do_GET

    def file(self, name: str) -> None:
        file = (self.server.folder / name).resolve()
        if not file.is_file() or not file.is_relative_to(self.server.folder):
            return self.answer(b"not there", status=404)
        data = file.read_bytes()
        tag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
        if self.headers.get("If-None-Match") == tag:
            return self.answer(b"", status=304, ETag=tag)
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(match[1]), min(int(match[2] or len(data) - 1), len(data) - 1)
            if first >= len(data):
                return self.answer(b"", status=416, Content_Range=f"bytes */{len(data)}")
            return self.answer(data[first : last + 1], "application/octet-stream", 206,
                               Content_Range=f"bytes {first}-{last}/{len(data)}", Accept_Ranges="bytes", ETag=tag)
        return self.answer(data, "application/octet-stream", Accept_Ranges="bytes", ETag=tag, Last_Modified=self.date_time_string(file.stat().st_mtime))

    def git(self) -> None:
        """The smart protocol, by git's own CGI program (git-http-backend)."""
        path, _, query = self.path.partition("?")
        body = self.content()
        environment = {**os.environ, "GIT_PROJECT_ROOT": str(self.server.folder), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path.removeprefix("/git"),
                       "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                       "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                       "CONTENT_LENGTH": str(len(body)), "REMOTE_ADDR": "127.0.0.1", "REMOTE_USER": "tester"}
        output = subprocess.run(["git", "-c", "safe.directory=*", "-c", "http.receivepack=true", "http-backend"], input=body, capture_output=True, env=environment).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(fields.pop("Status", "200").split()[0])
        kind = fields.pop("Content-Type", "text/plain")
        fields.pop("Content-Length", None)
        self.answer(content, kind, status, **{name.replace("-", "_"): value for name, value in fields.items()})


PAGE = b"""<!doctype html><title>loading</title><link rel=stylesheet href=/style.css><h1 id=h>page</h1><div id=result>waiting</div><script src=/script.js></script>"""
SCRIPT = b"""
const wait = [
  fetch('/echo', { method: 'POST', body: 'x'.repeat(100000) }).then(r => r.json()).then(j => 'post:' + j.length),
  fetch('/chunked').then(r => r.text()).then(t => 'chunked:' + t.split(' ').length),
  fetch('/bytes/300000').then(r => r.arrayBuffer()).then(b => 'bytes:' + b.byteLength),
  fetch('/redirect').then(r => 'redirect:' + r.status),
];
Promise.all(wait).then(all => {
  const style = getComputedStyle(document.getElementById('h')).color;
  document.getElementById('result').textContent = ['done', ...all, style].join(' | ');
});
"""


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.seen, self.lock = folder.resolve(), [], threading.Lock()
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_) -> None:
        pass
