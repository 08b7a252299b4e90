#!/usr/bin/env python3
"""Real clients, written by others, through a running gateway. Python 3.11, standard library only.

    Tests/Clients/run.py --binary .build/release/httpware [--only TEXT]
    Tests/Clients/run.py --smoke        # only what needs no installation
    Tests/Clients/run.py --only 'early answer' --tries 100

A line per trial, `client NAME ok` or `client NAME FAILED: reason`; then `N passed, N failed`. Clients that are not
installed are skipped; Python packages go into a virtual environment in a temporary folder.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

import Clients.callouts  # noqa: E402, F401
import Clients.connection_login  # noqa: E402, F401
import Clients.http11_required  # noqa: E402, F401
import Clients.local_proxy  # noqa: E402, F401
import Clients.tls  # noqa: E402, F401
from Clients.trials import TRIALS, Failed, Skipped, client, expect  # noqa: E402
from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.site import Site  # noqa: E402

CONFIG = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
  secure: {{ bind: "127.0.0.1:{secure}", tls: {{ cert: {certificates}/a.pem, key: {certificates}/a.key }} }}
  local: {{ bind: "unix:{local}" }}
  proxy:
    bind: "127.0.0.1:{proxy}"
    mode: forward
    forward: {{ connectPorts: [443, {site}, {socket}], denyPrivate: false }}
services:
  site: {{ baseUrl: "http://127.0.0.1:{site}" }}
  socket: {{ baseUrl: "http://127.0.0.1:{socket}" }}
  grpc: {{ baseUrl: "http://127.0.0.1:{grpc}", protocol: h2 }}
chains:
  hello: {{ middlewares: [{{ mock: {{ status: 200, body: "hello" }} }}] }}
  limited: {{ middlewares: [{{ bodyLimit: {{ max: 1KiB }} }}] }}
routes:
  - {{ name: hello, listener: web, match: {{ path: /hello }}, chain: hello }}
  - {{ name: limited, listener: [web, secure], match: {{ path: /limited }}, service: site, chain: limited }}
  - {{ name: socket, listener: web, match: {{ path: /socket }}, service: socket }}
  - {{ name: grpc, listener: web, match: {{ path: "/test.Greeter/*" }}, service: grpc }}
  - {{ name: web, listener: web, service: site }}
  - {{ name: secureHello, listener: secure, match: {{ path: /hello }}, chain: hello }}
  - {{ name: secureSocket, listener: secure, match: {{ path: /socket }}, service: socket }}
  - {{ name: secureGrpc, listener: secure, match: {{ path: "/test.Greeter/*" }}, service: grpc }}
  - {{ name: secure, listener: secure, service: site }}
  - {{ name: local, listener: local, service: site }}
  - {{ name: proxy, listener: proxy, service: passthrough }}
"""


class Trial:
    """Where everything is, and how to run a client."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.place = Workplace("clients")
        self.folder = self.place.subfolder("site")
        self.home = self.place.subfolder("home")
        self.data = bytes(range(256)) * 20000  # 5 MB
        (self.folder / "data.bin").write_bytes(self.data)
        self.site = Site(self.folder)
        self.ports = {"site": self.site.port, "web": free_port(), "secure": free_port(), "proxy": free_port(), "socket": free_port(), "grpc": free_port()}
        self.local = str(self.place.folder / "local.sock")
        self.gateway = self.place.gateway(options.binary, CONFIG.format(**self.ports, local=self.local, certificates=certificates().folder),
                                          [self.ports["web"], self.ports["secure"], self.ports["proxy"]], workers=2)
        self.web = f"http://127.0.0.1:{self.ports['web']}"
        self.secure = f"https://localhost:{self.ports['secure']}"
        self.proxy = f"http://127.0.0.1:{self.ports['proxy']}"
        self.origin = f"http://127.0.0.1:{self.ports['site']}"

    def run(self, *command: str, stdin: bytes = b"", environment: dict[str, str] | None = None, timeout: float = 60, fails: bool = False,
            cwd: Path | None = None) -> str:
        if not shutil.which(command[0]):
            raise Skipped(f"{command[0]} is not installed")
        clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        result = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, cwd=cwd or self.home,
                                env={**clean, "HOME": str(self.home), "LC_ALL": "C", **(environment or {})})
        if result.returncode and not fails:
            raise Failed(f"{command[0]} exit {result.returncode}: {(result.stderr or result.stdout)[-500:].decode(errors='replace')}")
        return result.stdout.decode("latin-1")

    def close(self) -> None:
        self.place.close()
        self.site.shutdown()


def field(answer: dict, name: str) -> str | None:
    values = [value for key, value in answer["headers"] if key.lower() == name.lower()]
    return ", ".join(values) if values else None


# --- curl

CURL = ("curl", "--silent", "--show-error", "--max-time", "20")


@client("curl GET: the answers of the mock and of the origin arrive", smoke=True)
def _(t: Trial) -> None:
    expect(t.run(*CURL, f"{t.web}/hello") == "hello")
    answer = json.loads(t.run(*CURL, f"{t.web}/get?x=1"))
    expect(answer["target"] == "/get?x=1" and "1.1 " in field(answer, "Via"), answer)


@client("curl -I: HEAD has the fields of GET", smoke=True)
def _(t: Trial) -> None:
    output = t.run(*CURL, "-I", f"{t.web}/bytes/1234")
    expect("200" in output and "content-length: 1234" in output.lower(), output)


@client("curl: several URLs share one connection", smoke=True)
def _(t: Trial) -> None:
    output = t.run(*CURL, "-o", "/dev/null", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects}", f"{t.web}/bytes/10", f"{t.web}/chunked", f"{t.web}/hello")
    expect(output == "100", "connections:", output)


@client("curl --http1.0: content arrives without chunks, and up to the end of the connection", smoke=True)
def _(t: Trial) -> None:
    expect(t.run(*CURL, "--http1.0", f"{t.web}/chunked") == "one two three")
    expect(t.run(*CURL, "--http1.0", f"{t.web}/until-closed") == "ends with the connection")


@client("curl -d: a form goes upstream", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-d", "a=b&c=d", f"{t.web}/echo"))
    expect((answer["method"], answer["length"]) == ("POST", 7), answer)


@client("curl -T -: a chunked upload from a pipe goes upstream", smoke=True)
def _(t: Trial) -> None:
    for extra in ((), ("-x", t.proxy)):
        base = t.origin if extra else t.web
        answer = json.loads(t.run(*CURL, *extra, "-T", "-", f"{base}/echo", stdin=t.data))
        expect(answer["sha256"] == hashlib.sha256(t.data).hexdigest() and answer["framing"] == "chunked", answer)


@client("curl -T FILE: an upload with Expect: 100-continue goes upstream without a wait", smoke=True)
def _(t: Trial) -> None:
    began = time.monotonic()
    answer = json.loads(t.run(*CURL, "--expect100-timeout", "5", "-H", "Expect: 100-continue", "-T", str(t.folder / "data.bin"), f"{t.web}/echo"))
    expect(answer["sha256"] == hashlib.sha256(t.data).hexdigest(), answer)
    expect(time.monotonic() - began < 4, "100 did not come: curl waited for its timeout")


@client("curl -F: multipart content goes upstream", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-F", f"file=@{t.folder}/data.bin", f"{t.web}/echo"))
    expect(answer["length"] > len(t.data), answer)


@client("curl -H 'Connection: X-Foo': the named field is removed, other fields are kept", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-H", "Connection: X-Foo", "-H", "X-Foo: 1", "-H", "X-Bar: 2", f"{t.web}/get"))
    expect(field(answer, "X-Foo") is None and field(answer, "X-Bar") == "2", answer)


@client("curl -H 'Connection: close': the connection ends after the response", smoke=True)
def _(t: Trial) -> None:
    output = t.run(*CURL, "-i", "-H", "Connection: close", f"{t.web}/hello")
    expect("connection: close" in output.lower(), output)


@client("curl --http2: the client falls back to HTTP/1.1, and h2c is not passed on", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "--http2", f"{t.web}/get"))
    expect(field(answer, "Upgrade") is None and field(answer, "HTTP2-Settings") is None, answer)


@client("curl --tr-encoding: TE never goes upstream with a coding", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "--tr-encoding", f"{t.web}/get"))
    expect(field(answer, "TE") in (None, "trailers"), answer)


@client("curl -r and -C -: ranges pass", smoke=True)
def _(t: Trial) -> None:
    expect(t.run(*CURL, "-r", "256-259", f"{t.web}/files/data.bin").encode("latin-1") == bytes(range(4)))


@client("curl --limit-rate: a large download arrives whole", smoke=True)
def _(t: Trial) -> None:
    t.run(*CURL, "--limit-rate", "10M", "-o", "limited.bin", f"{t.web}/files/data.bin")
    expect((t.home / "limited.bin").read_bytes() == t.data, "differs")


@client("curl -L: redirects are followed; 204, 304 and 418 arrive", smoke=True)
def _(t: Trial) -> None:
    expect(json.loads(t.run(*CURL, "-L", f"{t.web}/redirect"))["target"] == "/get")
    for path, code in (("/none", "204"), ("/teapot", "418")):
        expect(t.run(*CURL, "-o", "/dev/null", "-w", "%{http_code}", f"{t.web}{path}") == code, path)
    t.run(*CURL, "--etag-save", "etag", "-o", "etagged.bin", f"{t.web}/files/data.bin")
    expect(t.run(*CURL, "--etag-compare", "etag", "-o", "etagged2.bin", "-w", "%{http_code}", f"{t.web}/files/data.bin") == "304")


@client("curl -x: the forward proxy serves absolute-form", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-x", t.proxy, f"{t.origin}/get"))
    expect(answer["target"] == "/get" and field(answer, "Proxy-Connection") is None, answer)
    expect(t.run(*CURL, "-x", t.proxy, f"{t.origin}/chunked") == "one two three")


@client("curl -x: a host name is resolved", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-x", t.proxy, f"http://localhost:{t.site.port}/get"))
    expect(field(answer, "Host") == f"localhost:{t.site.port}", answer)


@client("curl -x -p: a CONNECT tunnel opens", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-x", t.proxy, "-p", f"{t.origin}/get"))
    expect(field(answer, "Via") is None, "the tunnel was touched:", answer)
    t.run(*CURL, "-x", t.proxy, "-p", "-o", "tunnel.bin", f"{t.origin}/files/data.bin")
    expect((t.home / "tunnel.bin").read_bytes() == t.data, "differs")


@client("curl -x -p: a port that is not allowed is 403", smoke=True)
def _(t: Trial) -> None:
    expect(t.run(*CURL, "-x", t.proxy, "-p", "-w", "%{http_connect}", "http://127.0.0.1:25/", fails=True).endswith("403"))


@client("curl -x --proxy-user: the credentials are not passed on", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run(*CURL, "-x", t.proxy, "--proxy-user", "a:b", "-u", "c:d", f"{t.origin}/get"))
    expect(field(answer, "Proxy-Authorization") is None and field(answer, "Authorization"), answer)


@client("curl -x --http1.0: the forward proxy serves HTTP/1.0", smoke=True)
def _(t: Trial) -> None:
    expect(t.run(*CURL, "-x", t.proxy, "--http1.0", f"{t.origin}/chunked") == "one two three")


@client("curl --unix-socket: a Unix socket is served", smoke=True)
def _(t: Trial) -> None:
    expect(json.loads(t.run(*CURL, "--unix-socket", t.local, "http://localhost/get"))["target"] == "/get")


@client("curl --path-as-is: unusual targets are answered", smoke=True)
def _(t: Trial) -> None:
    expect(json.loads(t.run(*CURL, "--path-as-is", f"{t.web}/a/./b/../c?x=/../"))["target"] == "/a/c?x=/../")
    expect(t.run(*CURL, "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", f"{t.web}/../x") == "400")
    expect(json.loads(t.run(*CURL, "-g", f"{t.web}/a%20b/%E4?q=[1]"))["target"] == "/a%20b/%E4?q=[1]")


@client("curl --parallel: 50 transfers succeed", smoke=True)
def _(t: Trial) -> None:
    output = t.run(*CURL, "--parallel", "--parallel-max", "20", "-w", "%{http_code} %{size_download}\n", "-o", "p_#1", f"{t.web}/bytes/[10000-10049]")
    lines = output.split("\n")[:-1]
    expect(len(lines) == 50 and all(line.startswith("200 100") for line in lines), output)


# --- Python


@client("python http.client: keep-alive and a chunked upload succeed", smoke=True)
def _(t: Trial) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", t.ports["web"], timeout=10)
    for _ in range(5):
        connection.request("GET", "/get")
        json.loads(connection.getresponse().read())
    connection.request("POST", "/echo", body=iter([b"a" * 1000, b"b" * 1000]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    expect(json.loads(connection.getresponse().read())["length"] == 2000)
    connection.request("HEAD", "/bytes/5")
    response = connection.getresponse()
    expect(response.read() == b"" and response.getheader("Content-Length") == "5")
    connection.request("GET", "/hello")
    expect(connection.getresponse().read() == b"hello")
    connection.close()


@client("python http.client: set_tunnel opens a CONNECT tunnel", smoke=True)
def _(t: Trial) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", t.ports["proxy"], timeout=10)
    connection.set_tunnel("127.0.0.1", t.site.port)
    for _ in range(2):
        connection.request("GET", "/get")
        expect(json.loads(connection.getresponse().read())["target"] == "/get")
    connection.close()


@client("python urllib: http_proxy leads through the proxy", smoke=True)
def _(t: Trial) -> None:
    code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
    expect(json.loads(t.run(sys.executable, "-c", code, f"{t.origin}/get", environment={"http_proxy": t.proxy}))["target"] == "/get")


def python_with(t: Trial, *packages: str) -> str:
    """A Python that has the packages, in a virtual environment."""
    environment = t.place.folder / "venv"
    python = str(environment / "bin" / "python")
    if not environment.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
    result = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise Skipped(f"pip could not install {' '.join(packages)}: {result.stderr[-200:]}")
    return python


REQUESTS = """
import io, requests, sys
web, proxy, origin, path = sys.argv[1:]
s = requests.Session(); s.trust_env = False
assert s.get(web + "/hello", timeout=10).text == "hello"
for _ in range(10):
    assert s.get(web + "/get", timeout=10).json()["target"] == "/get"
data = open(path, "rb").read()
assert s.post(web + "/echo", data=data, timeout=10).json()["length"] == len(data)
def pieces():
    for i in range(0, len(data), 70000): yield data[i:i+70000]
r = s.post(web + "/echo", data=pieces(), timeout=10).json()
assert r["length"] == len(data) and r["framing"] == "chunked", r
assert s.post(web + "/echo", files={"f": io.BytesIO(data)}, timeout=10).json()["length"] > len(data)
assert s.get(web + "/redirect", timeout=10).json()["target"] == "/get"
assert s.get(web + "/files/data.bin", timeout=10).content == data
with s.get(web + "/files/data.bin", stream=True, timeout=10) as r:
    assert next(r.iter_content(1000)) == data[:1000]      # left in the middle
assert s.head(web + "/bytes/7", timeout=10).headers["Content-Length"] == "7"
assert s.cookies.get_dict() == {} and s.get(web + "/cookies", timeout=10).cookies.get_dict() == {"a": "1", "b": "2"}
s.proxies = {"http": proxy}
assert s.get(origin + "/get", timeout=10).json()["target"] == "/get"
assert s.post(origin + "/echo", data=pieces(), timeout=10).json()["length"] == len(data)
print("done")
"""


@client("python requests: sessions, uploads, streams and proxies succeed")
def _(t: Trial) -> None:
    python = python_with(t, "requests")
    expect("done" in t.run(python, "-c", REQUESTS, t.web, t.proxy, t.origin, str(t.folder / "data.bin")))


HTTPX = """
import asyncio, httpx, sys
web, proxy, origin = sys.argv[1:]
async def main():
    async with httpx.AsyncClient(trust_env=False, timeout=10) as c:
        answers = await asyncio.gather(*(c.get(f"{web}/bytes/{n}") for n in range(1, 60)))
        assert [len(a.content) for a in answers] == list(range(1, 60))
    async with httpx.AsyncClient(trust_env=False, timeout=10, proxy=proxy) as c:
        assert (await c.get(origin + "/chunked")).text == "one two three"
asyncio.run(main())
print("done")
"""


@client("python httpx: 60 concurrent requests succeed, directly and through the proxy")
def _(t: Trial) -> None:
    python = python_with(t, "httpx")
    expect("done" in t.run(python, "-c", HTTPX, t.web, t.proxy, t.origin))


# --- wget


@client("wget: a download succeeds, and -c continues one", smoke=True)
def _(t: Trial) -> None:
    (t.home / "data.bin").write_bytes(t.data[:1_000_000])
    t.run("wget", "-q", "-c", f"{t.web}/files/data.bin")
    expect((t.home / "data.bin").read_bytes() == t.data, "differs")
    expect(t.run("wget", "-q", "-O", "-", f"{t.web}/chunked") == "one two three")


@client("wget --post-file: the file goes upstream", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run("wget", "-q", "-O", "-", f"--post-file={t.folder}/data.bin", f"{t.web}/echo"))
    expect(answer["sha256"] == hashlib.sha256(t.data).hexdigest(), answer)


@client("wget: http_proxy leads through the proxy", smoke=True)
def _(t: Trial) -> None:
    answer = json.loads(t.run("wget", "-q", "-O", "-", f"{t.origin}/get", environment={"http_proxy": t.proxy}))
    expect("1.1 " in (field(answer, "Via") or ""), answer)


# --- git


def repository(t: Trial) -> Path:
    bare = t.folder / "project.git"
    if bare.exists():
        return bare
    work = t.home / "work"
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    t.run("git", "init", "-q", "-b", "main", str(work))
    for index in range(30):
        (work / f"file{index}").write_bytes(os.urandom(60_000))
        t.run("git", "-C", str(work), "add", "-A")
        t.run("git", "-C", str(work), *identity, "commit", "-q", "-m", f"change {index}")
    t.run("git", "clone", "-q", "--bare", str(work), str(bare))
    t.run("git", "-C", str(bare), "config", "http.receivepack", "true")
    t.run("git", "-C", str(bare), "update-server-info")
    return bare


def cloned(t: Trial, name: str, url: str, *options: str) -> Path:
    repository(t)
    t.run("git", *options, "clone", "-q", url, name)
    expect(len(list((t.home / name).glob("file*"))) == 30, "files are missing")
    t.run("git", "-C", name, "fsck", "--strict")
    return t.home / name


@client("git clone: the smart protocol passes the reverse proxy", smoke=True)
def _(t: Trial) -> None:
    cloned(t, "smart-reverse", f"{t.web}/git/project.git")


@client("git clone: the smart protocol passes the forward proxy", smoke=True)
def _(t: Trial) -> None:
    cloned(t, "smart-forward", f"{t.origin}/git/project.git", "-c", f"http.proxy={t.proxy}")


@client("git clone: the dumb protocol passes the reverse proxy", smoke=True)
def _(t: Trial) -> None:
    cloned(t, "dumb-reverse", f"{t.web}/files/project.git")


@client("git clone: the dumb protocol passes the forward proxy", smoke=True)
def _(t: Trial) -> None:
    cloned(t, "dumb-forward", f"{t.origin}/files/project.git", "-c", f"http.proxy={t.proxy}")


@client("git push: a chunked upload passes the reverse proxy, and a fetch returns it", smoke=True)
def _(t: Trial) -> None:
    work = cloned(t, "pushing", f"{t.web}/git/project.git")
    (work / "large").write_bytes(os.urandom(3_000_000))
    t.run("git", "-C", str(work), "add", "-A")
    t.run("git", "-C", str(work), "-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "large")
    t.run("git", "-C", str(work), "-c", "http.postBuffer=100000", "push", "-q", "origin", "HEAD:refs/heads/pushed")
    t.run("git", "-C", str(work), "fetch", "-q", "origin")
    expect("pushed" in t.run("git", "-C", str(t.folder / "project.git"), "branch"))


# --- apt-get


@client("apt-get: update and download pass the forward proxy")
def _(t: Trial) -> None:
    if not shutil.which("dpkg-deb") or not shutil.which("apt-get"):
        raise Skipped("this is not Debian")
    package = t.home / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text("Package: httpware-test\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <test@example.com>\nDescription: a test\n")
    (package / "content").write_bytes(os.urandom(2_000_000))
    archive = t.folder / "debian"
    (archive / "pool").mkdir(parents=True)
    deb = archive / "pool" / "httpware-test_1.0_all.deb"
    t.run("dpkg-deb", "--build", str(package), str(deb))
    data = deb.read_bytes()
    (archive / "Packages").write_text(
        "Package: httpware-test\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <test@example.com>\nFilename: ./pool/httpware-test_1.0_all.deb\n"
        f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\nDescription: a test\n\n")
    root = t.home / "apt"
    for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/trusted.gpg.d", "etc/apt/sources.list.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg"):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] http://localhost:{t.site.port}/files/debian ./\n")
    options = ("-o", f"Dir={root}", "-o", f"Dir::State::status={root}/var/lib/dpkg/status", "-o", f"Acquire::http::Proxy={t.proxy}/", "-o", "APT::Sandbox::User=root",
               "-o", "Acquire::Retries=0", "-o", "Dir::Bin::methods=/usr/lib/apt/methods")
    environment = {"APT_CONFIG": "/dev/null"}
    t.site.seen.clear()
    t.run("apt-get", *options, "update", environment=environment)
    t.run("apt-get", *options, "download", "httpware-test", environment=environment)
    expect((t.home / deb.name).read_bytes() == data, "differs")
    t.run("apt-get", *options, "update", environment=environment)  # once more: conditional requests
    expect(any("Packages" in line for line in t.site.seen), t.site.seen)


# --- WebSocket

SOCKET_SERVER = """
import asyncio, sys, websockets
async def serve(socket):
    async for message in socket: await socket.send(message)
async def main():
    async with websockets.serve(serve, "127.0.0.1", int(sys.argv[1]), max_size=None): await asyncio.sleep(120)
asyncio.run(main())
"""
SOCKET_CLIENT = """
import asyncio, os, sys, websockets
async def one(url, size, count):
    async with websockets.connect(url, max_size=None, open_timeout=10, **OPTIONS) as socket:
        for _ in range(count):
            data = os.urandom(size)
            await socket.send(data); assert await asyncio.wait_for(socket.recv(), 10) == data
            await socket.send("text \\u00e4"); assert await asyncio.wait_for(socket.recv(), 10) == "text \\u00e4"
        pong = await socket.ping(); await asyncio.wait_for(pong, 10)
async def main():
    await one(sys.argv[1], 10, 50); await one(sys.argv[1], 2_000_000, 3)
    await asyncio.gather(*(one(sys.argv[1], 1000, 10) for _ in range(20)))
asyncio.run(main())
print("done")
"""


def socket_server(t: Trial) -> str:
    python = python_with(t, "websockets", "websocket-client")
    if not any(process.folder.name.startswith("process") for process in t.place.processes if process.is_running and process is not t.gateway):
        t.place.command([python, "-c", SOCKET_SERVER, str(t.ports["socket"])], [t.ports["socket"]])
    return python


@client("websockets: messages pass the reverse proxy")
def _(t: Trial) -> None:
    python = socket_server(t)
    expect("done" in t.run(python, "-c", SOCKET_CLIENT.replace("OPTIONS", "{'proxy': None}"), t.web.replace("http", "ws") + "/socket"))


@client("websockets: messages pass a CONNECT tunnel of the forward proxy")
def _(t: Trial) -> None:
    python = socket_server(t)
    expect("done" in t.run(python, "-c", SOCKET_CLIENT.replace("OPTIONS", f"{{'proxy': '{t.proxy}'}}"), f"ws://127.0.0.1:{t.ports['socket']}/"))


@client("websocket-client: messages pass the reverse and the forward proxy")
def _(t: Trial) -> None:
    python = socket_server(t)
    code = """
import sys, websocket
web, origin, proxy = sys.argv[1:]
for url, options in ((web, {"http_no_proxy": ["*"]}), (origin, {"http_proxy_host": "127.0.0.1", "http_proxy_port": int(proxy), "proxy_type": "http"})):
    s = websocket.create_connection(url, timeout=10, **options)
    for size in (1, 1000, 300000):
        s.send("x" * size); assert len(s.recv()) == size
    s.ping(); s.close()
print("done")
"""
    expect("done" in t.run(python, "-c", code, t.web.replace("http", "ws") + "/socket", f"ws://127.0.0.1:{t.ports['socket']}/", str(t.ports["proxy"])))


# --- Browsers and load tools


@client("chromium, headless: pages load through the forward proxy")
def _(t: Trial) -> None:
    program = next((name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), "chromium")
    t.site.seen.clear()
    output = t.run(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={t.home}/chromium",
                   f"--proxy-server={t.proxy}", "--proxy-bypass-list=<-loopback>", "--virtual-time-budget=15000", "--dump-dom", f"{t.origin}/page", timeout=120)
    expect("done | post:100000 | chunked:3 | bytes:300000 | redirect:200 | rgb(1, 2, 3)" in output, output[-600:])


@client("chromium, headless: pages load from the reverse proxy")
def _(t: Trial) -> None:
    program = next((name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), "chromium")
    output = t.run(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={t.home}/chromium2", "--no-proxy-server",
                   "--virtual-time-budget=15000", "--dump-dom", f"{t.web}/page", timeout=120)
    expect("done | post:100000 | chunked:3 | bytes:300000 | redirect:200 | rgb(1, 2, 3)" in output, output[-600:])


@client("chromium, headless, over TLS: its network log shows h2 for the page and all its resources")
def _(t: Trial) -> None:
    program = next((name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), "chromium")
    key = subprocess.run(["openssl", "x509", "-in", str(certificates() / "a.pem"), "-noout", "-pubkey"], capture_output=True, check=True).stdout
    raw = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, capture_output=True, check=True).stdout
    known = base64.b64encode(hashlib.sha256(raw).digest()).decode()
    log = t.home / "netlog.json"
    output = t.run(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={t.home}/chromium3", "--no-proxy-server",
                   f"--ignore-certificate-errors-spki-list={known}", f"--log-net-log={log}", "--virtual-time-budget=15000", "--dump-dom", f"{t.secure}/page", timeout=120)
    expect("done | post:100000 | chunked:3 | bytes:300000 | redirect:200 | rgb(1, 2, 3)" in output, output[-600:])
    text = log.read_text(errors="replace")
    try:
        net = json.loads(text)
    except json.JSONDecodeError:  # it was ended before it had written the last line
        net = json.loads(text.rstrip().rstrip(",") + "]}")
    number = net["constants"]["logEventTypes"]["HTTP2_SESSION_RECV_HEADERS"]
    heads = [event["params"]["headers"] for event in net["events"] if event["type"] == number and "headers" in event.get("params", {})]
    expect(len(heads) >= 6 and sum(":status: 200" in head for head in heads) >= 5, f"{len(heads)} heads over HTTP/2: {heads}"[:800])
    sessions = net["constants"]["logEventTypes"]["HTTP2_SESSION_INITIALIZED"]
    expect(any(event["type"] == sessions for event in net["events"]), "no session of HTTP/2")
    expect('"next_proto":"h2"' in text or '"negotiated_protocol":"h2"' in text or '"protocol":"h2"' in text, "ALPN did not come to h2")


@client("wrk: 64 connections for 2 s without an error")
def _(t: Trial) -> None:
    output = t.run("wrk", "-t1", "-c64", "-d2s", f"{t.web}/hello")
    expect("Requests/sec" in output and "Non-2xx" not in output and "Socket errors" not in output, output)


@client("ab: HTTP/1.0 is served with and without keep-alive")
def _(t: Trial) -> None:
    for extra in ((), ("-k",)):
        output = t.run("ab", "-q", "-n", "500", "-c", "10", *extra, f"{t.web}/hello")
        expect("Complete requests:      500" in output and "Failed requests:        0" in output and "Non-2xx" not in output, output)


@client("h2load: all requests over HTTP/1.1 succeed")
def _(t: Trial) -> None:
    output = t.run("h2load", "--h1", "-n", "2000", "-c", "20", "-m", "1", f"{t.web}/hello")
    expect("2000 succeeded" in output, output)


H2LOAD = 100_000


for where in ("clear text", "TLS"):
    @client(f"h2load over HTTP/2 in {where}: 100,000 requests succeed on 100 connections with 32 streams each")
    def _(t: Trial, where: str = where) -> None:
        base = t.secure if where == "TLS" else t.web
        output = t.run("h2load", "-n", str(H2LOAD), "-c", "100", "-m", "32", f"{base}/hello", timeout=180)
        expect(f"{H2LOAD} succeeded, 0 failed, 0 errored" in output and "Application protocol: h2" in output, output)


@client("h2load: uploads over HTTP/2 succeed")
def _(t: Trial) -> None:
    output = t.run("h2load", "-n", "50", "-c", "5", "-m", "5", "-d", str(t.folder / "data.bin"), f"{t.web}/echo", timeout=120)
    expect("50 succeeded, 0 failed" in output, output)


@client("nghttp: a page and content pass, with and without continuation")
def _(t: Trial) -> None:
    output = t.run("nghttp", "-nv", "--continuation", f"{t.web}/hello", f"{t.web}/files/data.bin")
    expect(output.count(":status: 200") == 2 and "END_STREAM" in output, output[-500:])
    expect("expect: 100" not in t.run("nghttp", "-v", "-d", str(t.folder / "data.bin"), f"{t.web}/echo"), "no answer")


@client("curl --http2-prior-knowledge: GET, an upload, HEAD and a file succeed", smoke=True)
def _(t: Trial) -> None:
    curl = (*CURL, "--http2-prior-knowledge")
    if "HTTP2" not in t.run("curl", "--version"):
        raise Skipped("this curl has no HTTP/2")
    expect(t.run(*curl, "-w", "%{http_version}", f"{t.web}/hello") == "hello2")
    expect(json.loads(t.run(*curl, "--data-binary", f"@{t.folder / 'data.bin'}", f"{t.web}/echo"))["length"] == len(t.data))
    expect("200" in t.run(*curl, "-I", f"{t.web}/bytes/1234"))
    expect(t.run(*curl, f"{t.web}/files/data.bin").encode("latin-1") == t.data, "the file differs")


@client("curl --http2 under TLS: GET, an upload, HEAD, a file, and 50 concurrent requests on one connection succeed", smoke=True)
def _(t: Trial) -> None:
    curl = (*CURL, "--http2", "--cacert", str(certificates() / "ca.pem"))
    if "HTTP2" not in t.run("curl", "--version"):
        raise Skipped("this curl has no HTTP/2")
    expect(t.run(*curl, "-w", "%{http_version}", f"{t.secure}/hello") == "hello2")
    expect(json.loads(t.run(*curl, "--data-binary", f"@{t.folder / 'data.bin'}", f"{t.secure}/echo"))["length"] == len(t.data))
    expect("200" in t.run(*curl, "-I", f"{t.secure}/bytes/1234"))
    expect(t.run(*curl, f"{t.secure}/files/data.bin").encode("latin-1") == t.data, "the file differs")
    output = t.run(*curl, "--parallel", "--parallel-max", "50", "-w", "%{http_code} %{http_version}\n", "-o", "s_#1", f"{t.secure}/bytes/[10000-10049]")
    expect(output == "200 2\n" * 50, output)


EARLY = {"the length announced": ("--data-binary", "@FILE"), "the length unknown": ("--upload-file", "-", "--request", "POST")}

for label, upload in EARLY.items():

    @client(f"curl --http2: an early answer to a large upload has its status, {label}", smoke=True)
    def _(t: Trial, upload: tuple[str, ...] = upload) -> None:
        if "HTTP2" not in t.run("curl", "--version"):
            raise Skipped("this curl has no HTTP/2")
        sides = [(t.web, ("--http2-prior-knowledge",)), (t.secure, ("--http2", "--cacert", str(certificates() / "ca.pem")))]
        lost = []
        for size in (256 << 10, 1 << 20, 10 << 20):
            file = t.home / "upload.bin"
            file.write_bytes(bytes(size))
            for address, version in sides:
                for path, status in (("limited", "413"), ("hello", "200")):
                    for _ in range(t.options.tries):
                        began = time.monotonic()
                        command = [*CURL, *version, "-o", os.devnull, "-w", "%{http_code}", "-H", "Expect:", *upload, f"{address}/{path}"]
                        output = t.run(*[word.replace("FILE", str(file)) for word in command], stdin=file.read_bytes() if "-" in upload else b"", fails=True)
                        took = time.monotonic() - began
                        if output != status or took > 10:
                            lost.append(f"{address}/{path} {size} bytes: {output!r} after {took:.1f} s")
        expect(not lost, f"{len(lost)} lost:", lost[:3])


@client("nghttp under TLS: a page and content pass")
def _(t: Trial) -> None:
    output = t.run("nghttp", "-nv", f"{t.secure}/hello", f"{t.secure}/files/data.bin")
    expect(output.count(":status: 200") == 2 and "The negotiated protocol: h2" in output, output[-500:])


@client("python httpx[http2]: 60 concurrent requests succeed, in clear text and under TLS")
def _(t: Trial) -> None:
    python = python_with(t, "httpx[http2]")
    code = """
import asyncio, httpx, ssl, sys
async def main():
    async with httpx.AsyncClient(http1=False, http2=True, trust_env=False, timeout=20, verify=ssl.create_default_context(cafile=sys.argv[2])) as c:
        answers = await asyncio.gather(*(c.get(f"{sys.argv[1]}/get?{n}") for n in range(60)))
        assert all(a.http_version == "HTTP/2" and a.json()["target"] == f"/get?{n}" for n, a in enumerate(answers))
        answer = await c.post(sys.argv[1] + "/echo", content=b"x" * 3_000_000)
        assert answer.json()["length"] == 3_000_000
        assert len((await c.get(sys.argv[1] + "/bytes/3000000")).content) == 3_000_000
asyncio.run(main())
"""
    for base in (t.web, t.secure):
        t.run(python, "-c", code, base, str(certificates() / "ca.pem"))


GRPC = """
import sys, threading, time
from concurrent import futures
import grpc
web, port, authority = sys.argv[1:]

class Greeter(grpc.GenericRpcHandler):
    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        return {"Unary": grpc.unary_unary_rpc_method_handler(self.unary), "Down": grpc.unary_stream_rpc_method_handler(self.down),
                "Up": grpc.stream_unary_rpc_method_handler(self.up), "Both": grpc.stream_stream_rpc_method_handler(self.both),
                "Fail": grpc.unary_unary_rpc_method_handler(self.fail), "Never": grpc.unary_unary_rpc_method_handler(self.never)}.get(name)
    def unary(self, request, context):
        context.send_initial_metadata((("x-early", "1"),)); context.set_trailing_metadata((("x-late", "2"),))
        return request[::-1]
    def down(self, request, context):
        for number in range(int(request)): yield str(number).encode() * 1000
    def up(self, requests, context): return str(sum(len(request) for request in requests)).encode()
    def both(self, requests, context):
        for request in requests: yield request.upper()
    def fail(self, request, context): context.abort(grpc.StatusCode.NOT_FOUND, "no such thing: \u00e4")
    def never(self, request, context):
        ended = threading.Event(); context.add_callback(ended.set); ended.wait(10); left.set(); return b""

left = threading.Event()
server = grpc.server(futures.ThreadPoolExecutor(8)); server.add_generic_rpc_handlers((Greeter(),))
assert server.add_insecure_port(f"127.0.0.1:{port}") == int(port); server.start()
options = (("grpc.enable_http_proxy", 0),)
if authority: channel = grpc.secure_channel(web.removeprefix("https://"), grpc.ssl_channel_credentials(open(authority, "rb").read()), options=options)
else: channel = grpc.insecure_channel(web.removeprefix("http://"), options=options)
path = "/test.Greeter/"
unary, down, up, both = channel.unary_unary(path + "Unary"), channel.unary_stream(path + "Down"), channel.stream_unary(path + "Up"), channel.stream_stream(path + "Both")
for number in range(50):
    answer, call = unary.with_call(b"abc%d" % number, timeout=10)
    assert answer == (b"abc%d" % number)[::-1]
    assert dict(call.initial_metadata())["x-early"] == "1" and dict(call.trailing_metadata())["x-late"] == "2"
answer = unary(b"x" * 3_000_000, timeout=20); assert len(answer) == 3_000_000
assert [len(piece) for piece in down(b"500", timeout=20)] == [1000 * len(str(n)) for n in range(500)]
assert up((b"x" * 10_000 for _ in range(300)), timeout=20) == b"3000000"
def turns():  # each message waits for the answer to the one before
    for number in range(20):
        assert answered.wait(5); answered.clear(); yield b"turn%d" % number
answered = threading.Event(); answered.set(); seen = []
for piece in both(turns(), timeout=20): seen.append(piece); answered.set()
assert seen == [b"TURN%d" % number for number in range(20)], seen
try: channel.unary_unary(path + "Fail")(b"", timeout=10); raise SystemExit("no error")
except grpc.RpcError as error: assert error.code() == grpc.StatusCode.NOT_FOUND and error.details() == "no such thing: \u00e4", error
try: channel.unary_unary(path + "Missing")(b"", timeout=10); raise SystemExit("no error")
except grpc.RpcError as error: assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
try: channel.unary_unary(path + "Never")(b"", timeout=0.5); raise SystemExit("no error")
except grpc.RpcError as error: assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
assert left.wait(5), "the server was not told that the client left"
left.clear(); call = channel.unary_unary(path + "Never").future(b"", timeout=10); time.sleep(0.2); assert call.cancel()
assert left.wait(5), "the server was not told that the call was cancelled"
stream = down(b"100000", timeout=20); assert next(stream) == b"0" * 1000; stream.cancel()
try: list(stream); raise SystemExit("no error")
except grpc.RpcError as error: assert error.code() == grpc.StatusCode.CANCELLED, error
with futures.ThreadPoolExecutor(20) as pool:
    assert list(pool.map(lambda n: unary(b"%d" % n, timeout=20), range(400))) == [(b"%d" % n)[::-1] for n in range(400)]
server.stop(0)
"""


for where in ("clear text", "TLS"):
    @client(f"gRPC (Python's grpcio, both ends) in {where}: unary calls, streams in each direction, trailers, status, deadline and cancel succeed")
    def _(t: Trial, where: str = where) -> None:
        base, authority = (t.secure, str(certificates() / "ca.pem")) if where == "TLS" else (t.web, "")
        t.run(python_with(t, "grpcio"), "-c", GRPC, base, str(t.ports["grpc"]), authority, timeout=90)


@client("the gateway still serves", smoke=True)
def _(t: Trial) -> None:
    expect(t.gateway.is_running, "it died:", t.gateway.log[-500:])
    expect(t.gateway.descriptors() < 200, f"{t.gateway.descriptors()} descriptors are open")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--smoke", action="store_true", help="only clients that need no installation")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--tries", type=int, default=3, help="of each upload that is answered early; 100 for a measurement")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if not shutil.which(options.binary):
        print(f"clients: {options.binary} is not there; build it first", file=sys.stderr)
        return 1
    passed = failed = skipped = 0
    trial = Trial(options)
    try:
        for name, smoke, run in TRIALS:
            if options.only not in name or (options.smoke and not smoke):
                continue
            try:
                run(trial)
                passed += 1
                print(f"client {name} ok", flush=True)
            except Skipped as reason:
                skipped += 1
                print(f"client {name} skipped: {reason}", flush=True)
            except Exception as problem:
                failed += 1
                print(f"client {name} FAILED: {type(problem).__name__ if not isinstance(problem, Failed) else ''} {problem}", flush=True)
    finally:
        trial.close()
    if skipped:
        print(f"({skipped} skipped)")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
