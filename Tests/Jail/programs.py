"""Ordinary programs behind the wall: none knows a proxy, and each reaches the origin server through the gateway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from run import Place

PROGRAMS: dict[str, Callable[[Place], str]] = {}


class Skipped(Exception):
    """The program is not installed."""


class Failed(Exception):
    pass


def program(name: str, tool: str):
    """Registers a trial, which is left out if the tool is not installed."""

    def register(run: Callable[[Place], str]):
        def trial(where: Place) -> str:
            if not shutil.which(tool):
                raise Skipped(f"{tool} is not installed")
            return run(where)

        PROGRAMS[name] = trial
        return run

    return register


def out(where: Place, *command: str, **more) -> str:
    result = where.run(*command, **more)
    if result.returncode:
        raise Failed(f"status {result.returncode}: {(result.stdout + result.stderr)[-1500:]}")
    return result.stdout


def seen(where: Place, output: str, host: str, target: str = "/get") -> str:
    """The origin server saw the request, through the gateway, which logged the host."""
    answer = json.loads(output[output.index("{"): output.rindex("}") + 1])
    if answer["target"] != target or "httpware" not in (answer["via"] or "") or host not in where.log.read_text():
        raise Failed(f"not through the gateway: {answer}")
    return f"{host}{target} by HTTP/{answer['via'].split()[0]}"


@program("curl", "curl")
def _(where: Place) -> str:
    return seen(where, out(where, "curl", "-sS", "--max-time", "20", "https://curl.programs.test/get"), "curl.programs.test")


@program("curl, HTTP without TLS", "curl")
def _(where: Place) -> str:
    return seen(where, out(where, "curl", "-sS", "--max-time", "20", "http://plain.programs.test/get"), "plain.programs.test")


for version in ("4", "6"):
    @program(f"curl, IPv{version} only", "curl")
    def _(where: Place, version: str = version) -> str:
        return seen(where, out(where, "curl", f"-{version}", "-sS", "--max-time", "20", "https://curl.programs.test/get"), "curl.programs.test")


@program("curl, which would take HTTP/3", "curl")
def _(where: Place) -> str:
    if "HTTP3" not in subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout:
        raise Skipped("this curl does not speak HTTP/3")
    return seen(where, out(where, "curl", "--http3", "-sS", "--max-time", "20", "https://curl.programs.test/get"), "curl.programs.test")


@program("curl, with a proxy in its own file", "curl")
def _(where: Place) -> str:
    (where.home / ".curlrc").write_text('proxy = "http://127.0.0.1:3128"\n')
    try:
        return seen(where, out(where, "curl", "-sS", "--max-time", "20", "https://curl.programs.test/get", environment={"https_proxy": "http://127.0.0.1:3128"}), "curl.programs.test")
    finally:
        (where.home / ".curlrc").unlink()


@program("wget", "wget")
def _(where: Place) -> str:
    return seen(where, out(where, "wget", "-qO-", "https://wget.programs.test/get"), "wget.programs.test")


@program("git clone", "git")
def _(where: Place) -> str:
    work, bare = where.folder / "work", where.folder / "repo.git"
    work.mkdir()
    for command in (["init", "-q", "."], ["-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first"],
                    ["clone", "-q", "--bare", ".", str(bare)], ["--git-dir", str(bare), "update-server-info"]):
        subprocess.run(["git", *command], cwd=work, check=True, capture_output=True, env=where.environment)
    for file in bare.rglob("*"):
        if file.is_file():
            where.web.files[f"/{bare.name}/{file.relative_to(bare)}"] = file.read_bytes()
    out(where, "git", "clone", "-q", f"https://git.programs.test/{bare.name}", "cloned")
    return subprocess.run(["git", "-C", str(where.home / "cloned"), "log", "--format=%s"], capture_output=True, text=True, check=True, env=where.environment).stdout.strip()


def wheel() -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("jailed/__init__.py", "")
        archive.writestr("jailed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: jailed\nVersion: 1.0\n")
        archive.writestr("jailed-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("jailed-1.0.dist-info/RECORD", "")
    return content.getvalue()


@program("pip download", sys.executable)
def _(where: Place) -> str:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        raise Skipped("pip is not installed")
    where.web.files["/simple/jailed/"] = b'<a href="/files/jailed-1.0-py3-none-any.whl">jailed-1.0-py3-none-any.whl</a>'
    where.web.files["/files/jailed-1.0-py3-none-any.whl"] = wheel()
    out(where, sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "--index-url", "https://pip.programs.test/simple/", "jailed")
    return next(file.name for file in where.home.glob("jailed*.whl"))


@program("npm view", "npm")
def _(where: Place) -> str:
    package = {"name": "jailed", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "jailed", "version": "1.0.0", "dist": {"tarball": "https://npm.programs.test/x.tgz"}}}}
    where.web.files["/jailed"] = json.dumps(package).encode()
    text = out(where, "npm", "view", "--registry", "https://npm.programs.test/", "jailed", "version").strip()
    if text != "1.0.0":
        raise Failed(text)
    return text


NODE = {"fetch": "fetch(url).then(r => r.text()).then(console.log)",
        "https": "require('https').get(url, r => { let t = ''; r.on('data', d => t += d); r.on('end', () => console.log(t)); })"}
for kind, code in NODE.items():
    @program(f"Node, {kind}", "node")
    def _(where: Place, code: str = code) -> str:
        return seen(where, out(where, "node", "-e", f"const url = 'https://node.programs.test/get'; {code}"), "node.programs.test")


@program("Python, urllib", sys.executable)
def _(where: Place) -> str:
    code = "import urllib.request; print(urllib.request.urlopen('https://python.programs.test/get', timeout=20).read().decode())"
    return seen(where, out(where, sys.executable, "-c", code), "python.programs.test")


@program("Python, asyncio", sys.executable)
def _(where: Place) -> str:
    code = """
import asyncio
async def main():
    r, w = await asyncio.open_connection('python.programs.test', 443, ssl=True)
    w.write(b'GET /get HTTP/1.1\\r\\nHost: python.programs.test\\r\\nConnection: close\\r\\n\\r\\n')
    print((await r.read()).decode())
asyncio.run(main())"""
    return seen(where, out(where, sys.executable, "-c", code), "python.programs.test")


@program("Python, aiohttp", sys.executable)
def _(where: Place) -> str:
    if subprocess.run([sys.executable, "-c", "import aiohttp"], capture_output=True).returncode:
        raise Skipped("aiohttp is not installed")
    code = """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as s, s.get('https://python.programs.test/get') as r: print(await r.text())
asyncio.run(main())"""
    return seen(where, out(where, sys.executable, "-c", code), "python.programs.test")


JAVA = """
import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
  System.out.println(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body()); } }
"""


@program("Java, HttpClient", "java")
def _(where: Place) -> str:
    (where.home / "Get.java").write_text(JAVA)
    return seen(where, out(where, "java", "Get.java", "https://java.programs.test/get"), "java.programs.test")


GO = """
package main
import ("fmt"; "io"; "net/http"; "os")
func main() { r, err := http.Get(os.Args[1]); if err != nil { fmt.Println(err); os.Exit(1) }; b, _ := io.ReadAll(r.Body); fmt.Println(string(b)) }
"""


@program("Go, a static program", "go")
def _(where: Place) -> str:
    (where.folder / "get.go").write_text(GO)
    subprocess.run(["go", "build", "-o", str(where.folder / "get"), "get.go"], cwd=where.folder, check=True, capture_output=True, timeout=400,
                   env={**where.environment, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "GOCACHE": os.environ.get("GOCACHE", str(where.folder / "go"))})
    return seen(where, out(where, str(where.folder / "get"), "https://go.programs.test/get"), "go.programs.test")


@program("Perl, HTTP::Tiny", "perl")
def _(where: Place) -> str:
    if subprocess.run(["perl", "-MIO::Socket::SSL", "-MHTTP::Tiny", "-e", "1"], capture_output=True).returncode:
        raise Skipped("IO::Socket::SSL is not installed")
    code = "use HTTP::Tiny; my $r = HTTP::Tiny->new(verify_SSL => 1)->get('https://perl.programs.test/get'); print $r->{content}; exit !$r->{success}"
    return seen(where, out(where, "perl", "-e", code), "perl.programs.test")


@program("apt-get update", "apt-get")
def _(where: Place) -> str:
    state = where.folder / "apt"
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (state / name).mkdir(parents=True)
    where.web.files["/debian/Packages"] = b""
    (state / "etc/sources.list").write_text("deb [trusted=yes] https://apt.programs.test/debian/ ./\n")
    options = {"Dir::State": state, "Dir::State::lists": state / "lists", "Dir::Cache": state / "cache", "Dir::Etc::sourcelist": state / "etc/sources.list",
               "Dir::Etc::sourceparts": "-", "APT::Sandbox::User": "root" if os.getuid() == 0 else "", "Acquire::Languages": "none", "Acquire::Check-Valid-Until": "false"}
    before = where.log.read_text().count("apt.programs.test") if where.log.exists() else 0
    text = out(where, "apt-get", "update", "-q", *[part for name, value in options.items() for part in ("-o", f"{name}={value}")])
    requests = where.log.read_text().count("apt.programs.test") - before
    if requests == 0 or "Get:" not in text:
        raise Failed(text)
    return f"{requests} requests"


@program("Chromium", "chromium")
def _(where: Place) -> str:
    where.web.files["/page/"] = b"<p id=x>before</p><script>document.getElementById('x').textContent = 'read by ' + location.host</script>"
    # Without TLS: Chromium trusts only the authorities in its user's own database.
    text = out(where, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={where.folder}/profile",
               "--dump-dom", "http://chromium.programs.test/page/", timeout=120)
    if "read by chromium.programs.test" not in text:
        raise Failed(text[-500:])
    return "a page with a script"
