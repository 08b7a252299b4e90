"""Files from a folder, over the wire: hostile paths and folders, files that change while they are sent, TLS and HTTP/2, the command."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

from Rig.certificates import certificates
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message, Wire
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, run

LARGE = 24 << 20
CONFIG = """version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
  safe: {{ bind: "127.0.0.1:{safe}", tls: {{ cert: "{cert}", key: "{key}" }} }}
chains:
  app: {{ middlewares: [{{ files: {{ root: "{root}", strip: /app, fallback: index.html }} }}], postwares: [accessLog] }}
  lists: {{ middlewares: [{{ files: {{ root: "{root}", strip: /lists, browse: true }} }}] }}
  packed: {{ middlewares: [{{ files: {{ root: "{root}", strip: /packed, precompressed: [] }} }}], postwares: [compress] }}
  site: {{ middlewares: [{{ files: {{ root: "{root}" }} }}], postwares: [accessLog] }}
routes:
  - {{ match: {{ path: ["/app", "/app/**"] }}, chain: app }}
  - {{ match: {{ path: ["/lists", "/lists/**"] }}, chain: lists }}
  - {{ match: {{ path: "/packed/**" }}, chain: packed }}
  - {{ chain: site }}
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Site:
    """A gateway, and the folder that it serves."""

    def __init__(self, t: Trial):
        self.t, self.web, self.safe = t, free_port(), free_port()
        self.outside = t.setup.place.subfolder("outside")
        (self.outside / "secret.txt").write_text("secret")
        self.root = t.setup.place.subfolder("site")
        (self.root / "index.html").write_text("<p>home")
        (self.root / "a.txt").write_text("0123456789")
        (self.root / ".env").write_text("SECRET=1")
        (self.root / "docs").mkdir()
        (self.root / "docs" / "index.html").write_text("<p>docs")
        (self.root / "empty").mkdir()
        self.large = os.urandom(1 << 20) * (LARGE >> 20)
        (self.root / "large").write_bytes(self.large)
        made = certificates()
        text = CONFIG.format(web=self.web, safe=self.safe, root=self.root, cert=made / "a.pem", key=made / "a.key")
        self.process: Process = t.setup.place.gateway(t.setup.binary, text, [self.web, self.safe])
        t.at_end(self.process.stop)

    def client(self, timeout: float = 15) -> Wire:
        client = connect(("127.0.0.1", self.web), timeout)
        self.t.clients.append(client)
        return client

    def ask(self, path: str, method: str = "GET", *fields: str) -> Message:
        client = self.client()
        client.send("\r\n".join([f"{method} {path} HTTP/1.1", "Host: site.test", *fields, "", ""]).encode("latin-1"))
        return client.read_response(method)

    def slow(self, path: str) -> socket.socket:
        """A client that has read the head and a little, with a small buffer."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        client.settimeout(15)
        client.connect(("127.0.0.1", self.web))
        self.t.at_end(client.close)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return client


def rest(client: socket.socket) -> bytes:
    """Everything until the end, or the reset, of the connection."""
    pieces = []
    try:
        while piece := client.recv(1 << 20):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


@case("files: pipelined requests for small and large files are answered on one connection", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    client = site.client()
    for path in ("/a.txt", "/large", "/a.txt", "/none", "/large"):
        client.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    expect_same("small", client.read_response().body, b"0123456789")
    expect_same("large", digest(client.read_response().body), digest(site.large))
    expect_same("behind it", client.read_response().body, b"0123456789")
    expect_status(client.read_response(), 404)
    expect_same("again", digest(client.read_response().body), digest(site.large))
    head = site.ask("/large", "HEAD")
    expect_same("HEAD", (head.get("Content-Length"), head.body), (str(LARGE), b""))
    line = lambda: [json.loads(line) for line in site.process.log.splitlines() if '"/large"' in line and '"GET"' in line]  # noqa: E731
    check(eventually(lambda: len(line()) == 2, 5), site.process.log[-800:])
    expect_same("logged", {entry["bytes"] for entry in line()}, {LARGE})


@case("files: a file outside the page cache is sent unchanged", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    for path in ("large", "a.txt"):
        descriptor = os.open(site.root / path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    expect_same("small", site.ask("/a.txt").body, b"0123456789")
    expect_same("large", digest(site.ask("/large").body), digest(site.large))
    part = site.ask("/large", "GET", f"Range: bytes={5 << 20}-{9 << 20}")
    expect_status(part, 206)
    expect_same("part", digest(part.body), digest(site.large[5 << 20:(9 << 20) + 1]))


@case("files: TLS and HTTP/2 carry the same bytes", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    ca = str(certificates() / "ca.pem")
    for version in ("--http1.1", "--http2"):
        for path in ("a.txt", "large", "a.txt"):
            done = subprocess.run(["curl", "-s", version, "--cacert", ca, f"https://localhost:{site.safe}/{path}"], capture_output=True, timeout=30, check=True)
            expect_same(f"{version} {path}", digest(done.stdout), digest((site.root / path).read_bytes()))
    done = subprocess.run(["curl", "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{site.web}/large"], capture_output=True, timeout=30, check=True)
    expect_same("h2c", digest(done.stdout), digest(site.large))


@case("RFC 9110 §15.3.7.2: several ranges of a large file are parts of one response, over each protocol", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    wanted = [(7 << 20, 9 << 20), (0, 99), (LARGE - 100, LARGE - 1)]
    asked = "bytes=" + ",".join(f"{first}-{last}" for first, last in wanted) + ",50-60"
    answers = [site.ask("/large", "GET", f"Range: {asked}")]
    expect_status(answers[0], 206)
    expect_same("fields", (answers[0].get("Content-Range"), answers[0].get("Content-Length")), (None, str(len(answers[0].body))))
    boundary = (answers[0].get("Content-Type") or "").removeprefix("multipart/byteranges; boundary=").encode()
    bodies = [(boundary, answers[0].body)]
    for version in ("--http1.1", "--http2"):
        command = ["curl", "-sD-", version, "--cacert", str(certificates() / "ca.pem"), "-r", asked.removeprefix("bytes="), f"https://localhost:{site.safe}/large"]
        head, _, body = subprocess.run(command, capture_output=True, timeout=30, check=True).stdout.partition(b"\r\n\r\n")
        bodies.append((head.lower().partition(b"boundary=")[2].split(b"\r")[0], body))
    for boundary, body in bodies:
        pieces = body.split(b"\r\n--" + boundary)
        expect_same("beginning and end", (pieces[0], pieces[-1], len(pieces)), (b"", b"--\r\n", len(wanted) + 2))
        for (first, last), piece in zip(wanted, pieces[1:-1]):
            head, _, part = piece.partition(b"\r\n\r\n")
            check(f"Content-Range: bytes {first}-{last}/{LARGE}".encode() in head, "the head of a part is", head)
            expect_same(f"part {first}-{last}", digest(part), digest(site.large[first:last + 1]))


@case("files: a path cannot lead out of the folder", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    (site.root / "out").symlink_to(site.outside)
    (site.root / "relative").symlink_to(f"../{site.outside.name}/secret.txt")
    (site.root / "loop").symlink_to("loop")
    (site.root / "proc").symlink_to("/proc/self/cwd")
    (site.root / "home.txt").symlink_to("docs/../a.txt")
    name = site.outside.name
    for path in (f"/../{name}/secret.txt", f"/%2e%2e/{name}/secret.txt", f"/docs/../../{name}/secret.txt", f"/..%2f{name}%2fsecret.txt",
                 f"/docs/..%5c..%5c{name}%5csecret.txt", f"/docs\\..\\..\\{name}\\secret.txt", "/a.txt%00.html", "/%00", "/out/secret.txt", "/out",
                 "/out/", "/relative", "/loop", "/proc/1/environ", "/proc", "//etc/passwd", f"/{site.outside}/secret.txt", "/.env", "/%2eenv",
                 "/docs/./../.env", "/" + "a" * 300, "/" + "a/" * 3000, "/%zz", "/docs%2findex.html", "/..;/..;/etc/passwd", "/empty/..%c0%af..%c0%afetc",
                 "/\xff\xfe"):
        response = site.ask(path)
        check(response.status in (400, 404), path, response)
        check(b"secret" not in response.body and b"SECRET" not in response.body, path, response.body)
        for route in ("/app", "/lists"):
            response = site.ask(route + path)
            check(b"secret" not in response.body and b"SECRET" not in response.body, route + path, response.body)
    expect_same("a link inside", site.ask("/home.txt").body, b"0123456789")


@case("files: pipes, sockets and devices are 404, and the writer of a pipe is not affected", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    os.mkfifo(site.root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(site.root / "socket"))
    t.at_end(listener.close)
    opened = threading.Event()

    def write() -> None:
        with open(site.root / "pipe", "wb"):
            opened.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    pause(0.1, Why.BEFORE)
    for path in ("/pipe", "/socket"):
        expect_status(site.ask(path), 404)
    check(not opened.is_set(), "the pipe was opened")
    with open(site.root / "pipe", "rb"):
        writer.join(5)


@case("files: a redirect to a folder stays on its host", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    (site.root / "evil.example").mkdir()
    for path, location in (("/docs", "./docs/"), ("/docs?x=//evil", "./docs/?x=//evil"), ("/app/docs", "./docs/"), ("/app", "./app/"),
                           ("/evil.example", "./evil.example/")):
        response = site.ask(path)
        expect_same(path, (response.status, response.get("Location")), (308, location))
    for path in ("//evil.example", "//evil.example/", "/%2fevil.example", "//evil.example/..", "/\\evil.example"):
        response = site.ask(path)
        check(response.status in (400, 404), path, response)
        check(not response.has("Location"), path, response.get("Location"))


@case("files: a file that becomes shorter while it is sent ends the connection, without invented bytes", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    for path in ("/large", "/app/large"):
        (site.root / "large").write_bytes(site.large)
        client = site.slow(path)
        start = client.recv(2000)
        check(b"Content-Length: %d\r\n" % LARGE in start, start)
        pause(0.2, Why.BEFORE)
        os.truncate(site.root / "large", 8192)
        received = start + rest(client)
        body = received.split(b"\r\n\r\n", 1)[1]
        check(len(body) < LARGE, "all of it came")
        # The bytes on their way are the file's own memory, which the kernel has zeroed.
        check(all(got in (sent, 0) for got, sent in zip(body, site.large)), "other bytes came")
    check(site.process.is_running)
    expect_same("afterwards", site.ask("/a.txt").body, b"0123456789")


@case("files: a file that is replaced or deleted while it is sent is sent unchanged; a growing file, up to its former end", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)

    def body(client: socket.socket) -> bytes:
        received = b""
        while b"\r\n\r\n" not in received:
            received += client.recv(4096)
        content = received.split(b"\r\n\r\n", 1)[1]
        while len(content) < LARGE:
            piece = client.recv(1 << 20)
            check(piece, "ended early", len(content))
            content += piece
        client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        check(client.recv(4096).startswith(b"HTTP/1.1 200 "))
        return content

    client = site.slow("/large")
    pause(0.2, Why.BEFORE)
    (site.root / "other").write_text("other")
    (site.root / "other").rename(site.root / "large")
    expect_same("replaced", digest(body(client)), digest(site.large))
    expect_same("the new one", site.ask("/large").body, b"other")
    (site.root / "grown").write_bytes(site.large)
    client = site.slow("/grown")
    pause(0.2, Why.BEFORE)
    with open(site.root / "grown", "ab") as file:
        file.write(b"x" * 1_000_000)
    expect_same("grown", digest(body(client)), digest(site.large))
    expect_same("its new length", site.ask("/grown", "HEAD").get("Content-Length"), str(LARGE + 1_000_000))
    (site.root / "gone").write_bytes(site.large)
    client = site.slow("/gone")
    pause(0.2, Why.BEFORE)
    (site.root / "gone").unlink()
    expect_same("deleted", digest(body(client)), digest(site.large))
    expect_status(site.ask("/gone"), 404)
    client.close()
    check(eventually(lambda: not any("(deleted)" in os.readlink(link) for link in Path(f"/proc/{site.process.pid}/fd").iterdir() if link.is_symlink()), 5),
          "deleted files stay open")


@case("files: a thousand clients that leave in the middle leave no descriptor open", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    site.ask("/large")
    before = site.process.descriptors()
    for number in range(1000):
        client = socket.create_connection(("127.0.0.1", site.web), 10)
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        if number % 3:
            client.recv(1 + number)
        client.close()
    check(eventually(lambda: site.process.descriptors() <= before + 2, 10), before, site.process.descriptors())


@case("files: a new file is found at once, a changed file within a second, and validators notice both", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    expect_status(site.ask("/new.txt"), 404)
    (site.root / "new.txt").write_text("one")
    first = site.ask("/new.txt")
    expect_same("new", first.body, b"one")
    tag = first.get("ETag")
    expect_same("304", site.ask("/new.txt", "GET", f"If-None-Match: {tag}").status, 304)
    (site.root / "next").write_text("two")
    (site.root / "next").rename(site.root / "new.txt")
    check(eventually(lambda: site.ask("/new.txt", "GET", f"If-None-Match: {tag}").body == b"two", 3), "still the old one")
    expect_same("412", site.ask("/new.txt", "GET", f"If-Match: {tag}").status, 412)
    expect_same("If-Range", site.ask("/new.txt", "GET", "Range: bytes=0-0", f"If-Range: {tag}").body, b"two")


@case("files: compressed siblings are sent to clients that accept them; compress compresses other files", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    text = b"let words = 'words words words';\n" * 200
    (site.root / "app.js").write_bytes(text)
    (site.root / "app.js.gz").write_bytes(gzip.compress(text))
    packed = site.ask("/app.js", "GET", "Accept-Encoding: gzip, br")
    expect_same("sibling", (packed.get("Content-Encoding"), packed.get("Vary"), gzip.decompress(packed.body)), ("gzip", "Accept-Encoding", text))
    plain = site.ask("/app.js")
    expect_same("plain", (plain.get("Content-Encoding"), plain.get("Vary"), plain.body), (None, "Accept-Encoding", text))
    streamed = site.ask("/packed/app.js", "GET", "Accept-Encoding: gzip")
    expect_same("by compress", (streamed.get("Content-Encoding"), gzip.decompress(streamed.body)), ("gzip", text))
    large = site.ask("/packed/large", "GET", "Accept-Encoding: gzip")
    expect_same("not text", (large.get("Content-Encoding"), digest(large.body)), (None, digest(site.large)))


@case("files: a single-page app has its page for every path, except hidden ones", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    for path in ("/app/users/7", "/app/empty/", "/app/none.js"):
        response = site.ask(path)
        expect_same(path, (response.status, response.body), (200, b"<p>home"))
    expect_status(site.ask("/app/.git/config"), 404)
    expect_same("a file", site.ask("/app/a.txt").body, b"0123456789")


@case("files: other methods are 405 with Allow", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        response = site.ask("/a.txt", method, "Content-Length: 0")
        expect_same(method, (response.status, response.get("Allow")), (405, "GET, HEAD"))


@case("files: a folder is listed if configured, with its names escaped", nginx=NO)
def _(t: Trial) -> None:
    site = Site(t)
    (site.root / "empty" / "<img src=x onerror=alert(1)>").write_text("x")
    (site.root / "empty" / "javascript:alert(1)").write_text("y")
    (site.root / "empty" / ".hidden").write_text("z")
    page = site.ask("/lists/empty/")
    expect_same("type", page.get("Content-Type"), "text/html; charset=utf-8")
    check(page.get("Content-Security-Policy").startswith("default-src 'none'"), page)
    check(b"<img" not in page.body and b'href="javascript' not in page.body and b"hidden" not in page.body, page.body)
    check(b'href="./%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E"' in page.body, page.body)
    expect_same("followed", site.ask("/lists/empty/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E").body, b"x")
    expect_status(site.ask("/empty/"), 404)


@case("check: files with an invalid root is an error with its place", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("none")
    text = 'version: 1\nlisteners: { web: { bind: "127.0.0.1:8080" } }\nchains: { a: { middlewares: [{ files: { root: site } }] } }\nroutes: [{ chain: a }]\n'
    (folder / "file.yaml").write_text(text)
    result = run(t, "check", "-c", str(folder / "file.yaml"))
    expect_same("exit", result.returncode, 1)
    check("file.yaml:3:" in result.stderr and f'"{folder}/site" cannot be opened: No such file or directory' in result.stderr, result.stderr)


@case("files DIR: a folder is served, with a line per request", nginx=NO)
def _(t: Trial) -> None:
    folder, port = t.setup.place.subfolder("served $HOME"), free_port()
    (folder / "a.txt").write_text("hello")
    process = t.setup.place.command([t.setup.binary, "files", str(folder), "--listen", f"127.0.0.1:{port}", "--browse"], [port])
    t.at_end(process.stop)
    client = connect(("127.0.0.1", port), 5)
    t.clients.append(client)
    client.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    expect_same("file", client.read_response().body, b"hello")
    check(b'href="./a.txt"' in client.read_response().body)
    check(eventually(lambda: "GET  /a.txt  200" in process.log, 5), "no line:", process.log)
    process.signal()
    expect_same("exit", process.wait(3), 0)


@case("files DIR: an invalid folder is exit 1 with a message; --help lists the options", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "files", "/nonexistent/folder")
    expect_same("exit", result.returncode, 1)
    check('"/nonexistent/folder" cannot be opened: No such file or directory' in result.stderr, result.stderr)
    text = run(t, "files", "--help").stdout
    for option in ("--listen", "--browse", "--hidden", "--fallback", "--inspect", "--json"):
        check(option in text, text)
