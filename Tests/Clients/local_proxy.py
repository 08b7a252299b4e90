"""Programs that `httpware with` starts: each goes through the proxy and trusts it, by its own means. With a home and an authority of their own."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

from Clients.trials import Failed, Skipped, client, expect
from Rig.certificates import certificates


class With:
    """How a trial runs `httpware with`: the proxy trusts the origin server by the user's SSL_CERT_FILE."""

    def __init__(self, t):
        self.t = t
        self.home = t.place.subfolder("user")
        self.url = f"{t.secure}/get"

    def run(self, *command: str, options: tuple[str, ...] = (), environment: dict[str, str] | None = None, timeout: float = 60,
            fails: bool = False, program: str | None = None) -> tuple[str, str]:
        """The text that the command writes to standard output and to standard error."""
        if program is None and not shutil.which(command[0]):
            raise Skipped(f"{command[0]} is not installed")
        clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower() and not name.startswith(("XDG_", "NODE_", "JAVA_"))}
        result = subprocess.run(
            [self.t.options.binary, "with", "--show", *options, "--", *command], capture_output=True, text=True, timeout=timeout, cwd=self.home,
            env={**clean, "HOME": str(self.home), "LC_ALL": "C", "SWIFT_BACKTRACE": "enable=no", "SSL_CERT_FILE": str(certificates() / "ca.pem"), **(environment or {})})
        if result.returncode and not fails:
            raise Failed(f"{command[0]} exit {result.returncode}: {(result.stdout + result.stderr)[-2500:]}")
        return result.stdout, result.stderr

    def expect_read(self, output: str, errors: str, target: str = "/get", host: str | None = None) -> None:
        """The origin server saw a request that came through the proxy and the gateway before it, and the proxy has a line for it."""
        start = output.find("{")
        answer = json.loads(output[start: output.rindex("}") + 1])
        via = ", ".join(value for name, value in answer["headers"] if name.lower() == "via")
        expect(answer["target"] == target and via.count("httpware") == 2, "not read:", answer, errors[-300:])
        expect(f"{host or self.t.secure.removeprefix('https://')}{target}" in errors, "no line:", errors[-500:])


@client("with: curl trusts the proxy; the first run makes the authority, and reports it", smoke=True)
def _(t) -> None:
    w = With(t)
    output, errors = w.run("curl", "-sS", "--max-time", "20", w.url)
    w.expect_read(output, errors)
    expect("certificate authority" in errors, errors)
    folder = w.home / ".local/share/httpware/ca"
    expect(oct((folder / "ca.key").stat().st_mode & 0o777) == "0o600", "rights of the key")
    output, errors = w.run("curl", "-sS", "--max-time", "20", w.url)
    w.expect_read(output, errors)
    expect("certificate authority" not in errors, errors)


@client("with --tunnel: TLS is relayed without being read", smoke=True)
def _(t) -> None:
    w = With(t)
    output, errors = w.run("curl", "-sS", "--max-time", "20", "--cacert", str(certificates() / "ca.pem"), w.url, options=("--tunnel",))
    via = [value for name, value in json.loads(output)["headers"] if name == "Via"]
    expect(via and ", ".join(via).count("httpware") == 1 and "CONNECT" in errors, via, errors)
    expect(not (w.home / ".local").exists(), "an authority was made")


@client("with --only: other hosts are 403; metadata addresses always are", smoke=True)
def _(t) -> None:
    w = With(t)
    code = ("curl", "-s", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}")
    expect(w.run(*code, w.url, options=("--only", "localhost,other.test"))[0] == "200 200")
    expect(w.run(*code, w.url, options=("--only", "other.test"), fails=True)[0] == "000 403")
    for host in ("169.254.169.254", "[fd00:ec2::254]", "100.100.100.200"):
        expect(w.run(*code, f"http://{host}/latest/", fails=True)[0].startswith("403"), host)
        expect(w.run(*code, f"https://{host}/latest/", fails=True)[0] == "000 403", host)


@client("with: wget trusts the proxy, and the user's own wgetrc applies", smoke=True)
def _(t) -> None:
    w = With(t)
    (w.home / ".wgetrc").write_text("user_agent = from the wgetrc\nca_certificate = /nowhere.pem\n")
    output, errors = w.run("wget", "-qO-", w.url)
    w.expect_read(output, errors)
    expect("from the wgetrc" in output, output)
    expect("/nowhere.pem" in errors, errors)


@client("with: git clones over https", smoke=True)
def _(t) -> None:
    w = With(t)
    work, bare = t.place.subfolder("origin"), t.folder / f"{w.home.name}.git"
    for command in (["init", "-q", "."], ["-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first"],
                    ["clone", "-q", "--bare", ".", str(bare)]):
        t.run("git", *command, cwd=work)
    w.run("git", "clone", "-q", f"{t.secure}/git/{bare.name}", "cloned")
    expect("first" in t.run("git", "-C", str(w.home / "cloned"), "log", "--format=%s"))


@client("with: Python's ssl and urllib trust the proxy", smoke=True)
def _(t) -> None:
    w = With(t)
    code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
    w.expect_read(*w.run(sys.executable, "-c", code, w.url))


@client("with: Python's requests trusts the proxy, and the user's own bundle applies too")
def _(t) -> None:
    w = With(t)
    python = sys.executable
    if subprocess.run([python, "-c", "import requests"], capture_output=True).returncode:
        raise Skipped("requests is not installed")
    code = "import sys, requests; print(requests.get(sys.argv[1], timeout=10).text)"
    w.expect_read(*w.run(python, "-c", code, w.url))
    # The origin server's authority is known by the user's bundle for requests only: the proxy trusts it for that.
    system = next(path for path in ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt") if Path(path).exists())
    w.expect_read(*w.run(python, "-c", code, w.url, environment={"REQUESTS_CA_BUNDLE": str(certificates() / "ca.pem"), "SSL_CERT_FILE": system}))


NODE = """
const http = require('http'), https = require('https'), [kind, url] = process.argv.slice(-2);
const shown = response => { let text = ''; response.on('data', part => text += part); response.on('end', () => console.log(text)); };
const failed = error => { console.error(error); process.exit(1); };
const kinds = {
  get: () => (url.startsWith('https:') ? https : http).get(url, shown).on('error', failed),
  agent: () => (url.startsWith('https:') ? https : http).get(url, { agent: new (url.startsWith('https:') ? https : http).Agent({ keepAlive: false }) }, shown).on('error', failed),
  list: () => { const u = new URL(url); const r = (url.startsWith('https:') ? https : http).request({ host: u.hostname, port: u.port, path: u.pathname, headers: ['Host', u.host, 'X-List', '1'] }, shown); r.on('error', failed); r.end(); },
  post: () => { const r = (url.startsWith('https:') ? https : http).request(url, { method: 'POST', headers: { Expect: '100-continue' } }, shown); r.on('error', failed); r.on('continue', () => r.end('x'.repeat(100000))); },
  fetch: async () => { for (let i = 0; i < 3; i++) var r = await fetch(url, { headers: { 'X-Fetch': '1' } }); console.log(await r.text()); },
  fetchPost: async () => console.log(await (await fetch(url, { method: 'POST', body: 'x'.repeat(100000) })).text()),
};
Promise.resolve(kinds[kind]()).catch(failed);
"""

for kind in ("get", "agent", "list", "post", "fetch", "fetchPost"):
    @client(f"with: Node, {kind} trusts the proxy over https, and uses it for http", smoke=True)
    def _(t, kind: str = kind) -> None:
        w = With(t)
        (w.home / "client.cjs").write_text(NODE)
        w.expect_read(*w.run("node", "client.cjs", kind, w.url))
        output, errors = w.run("node", "client.cjs", kind, f"{t.web}/get")
        w.expect_read(output, errors, host=t.web)


@client("with: Node bypasses the proxy for hosts of NO_PROXY, keeps NODE_OPTIONS, and reports a refusal", smoke=True)
def _(t) -> None:
    w = With(t)
    (w.home / "client.cjs").write_text(NODE)
    for kind in ("get", "fetch"):
        output, errors = w.run("node", "client.cjs", kind, f"{t.web}/get", environment={"NO_PROXY": "example.com,127.0.0.1"})
        via = [value for name, value in json.loads(output)["headers"] if name == "Via"]
        expect(", ".join(via).count("httpware") == 1, via)
    output, _ = w.run("node", "-e", "console.log(process.title, process.env.NODE_OPTIONS)", environment={"NODE_OPTIONS": "--title=kept"})
    expect(output.startswith("kept --title=kept --require "), output)
    _, errors = w.run("node", "client.cjs", "get", w.url, options=("--only", "other.test"), fails=True)
    expect("403" in errors and "CONNECT" in errors, errors)


JAVA = """
import java.net.*; import java.net.http.*; import java.io.*;
public class Get { public static void main(String[] a) throws Exception {
  if (a[0].equals("old")) { System.out.println(new String(new URL(a[1]).openConnection().getInputStream().readAllBytes())); }
  else if (a[0].equals("new")) { System.out.println(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[1])).build(), HttpResponse.BodyHandlers.ofString()).body()); }
  else { var f = javax.net.ssl.TrustManagerFactory.getInstance(javax.net.ssl.TrustManagerFactory.getDefaultAlgorithm()); f.init((java.security.KeyStore) null);
    System.out.println(((javax.net.ssl.X509TrustManager) f.getTrustManagers()[0]).getAcceptedIssuers().length + " " + System.getProperty("kept")); } } }
"""


def java(t, w: With) -> None:
    if not shutil.which("java"):
        raise Skipped("java is not installed")
    (w.home / "Get.java").write_text(JAVA)


@contextlib.contextmanager
def serving(files: dict[str, bytes]) -> Iterator[str]:
    """The URL of a server under TLS that has these files, by their paths; a file may name the server as ORIGIN."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            text = (content or b"").replace(b"ORIGIN", url.encode())
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = certificates().server().wrap_socket(server.socket, server_side=True)
    url = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@client("with: pip downloads from an index over https")
def _(t) -> None:
    w, wheel = With(t), io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        made.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("thing-1.0.dist-info/RECORD", "")
    name = "thing-1.0-py3-none-any.whl"
    with serving({"/simple/thing/": f'<a href="/{name}">{name}</a>'.encode(), f"/{name}": wheel.getvalue()}) as url:
        _, errors = w.run(sys.executable, "-m", "pip", "--isolated", "download", "--no-cache-dir", "--disable-pip-version-check", "--index-url", f"{url}/simple/",
                          "-d", "got", "thing", program="pip")
    expect((w.home / "got" / name).read_bytes() == wheel.getvalue(), "the wheel")
    expect(f"{url.removeprefix('https://')}/simple/thing/" in errors and f"/{name}" in errors, "no line:", errors[-500:])


@client("with: cargo fetches from a sparse registry over https")
def _(t) -> None:
    w, crate = With(t), io.BytesIO()
    with tarfile.open(fileobj=crate, mode="w:gz") as made:
        for path, text in (("Cargo.toml", '[package]\nname = "thing"\nversion = "1.0.0"\n'), ("src/lib.rs", "")):
            entry = tarfile.TarInfo(f"thing-1.0.0/{path}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    line = {"name": "thing", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(crate.getvalue()).hexdigest(), "features": {}, "yanked": False}
    (w.home / "src").mkdir()
    (w.home / "src/lib.rs").touch()
    (w.home / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nthing = { version = "1", registry = "local" }\n')
    rustup = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    with serving({"/config.json": b'{"dl": "ORIGIN/dl/{crate}-{version}.crate"}', "/th/in/thing": json.dumps(line).encode() + b"\n",
                  "/dl/thing-1.0.0.crate": crate.getvalue()}) as url:
        _, errors = w.run("cargo", "fetch", environment={"CARGO_HOME": str(w.home / "cargo"), "RUSTUP_HOME": rustup, "CARGO_REGISTRIES_LOCAL_INDEX": f"sparse+{url}/"})
    for path in ("/config.json", "/th/in/thing", "/dl/thing-1.0.0.crate"):
        expect(f"{url.removeprefix('https://')}{path}" in errors, "no line:", path, errors[-800:])


@client("with: boto3 trusts the proxy by AWS_CA_BUNDLE")
def _(t) -> None:
    w, python = With(t), sys.executable
    if subprocess.run([python, "-c", "import boto3"], capture_output=True).returncode:
        raise Skipped("boto3 is not installed")
    code = ("import sys, boto3; from botocore.config import Config; "
            "s = boto3.client('s3', endpoint_url=sys.argv[1], region_name='x', aws_access_key_id='a', aws_secret_access_key='b', "
            "config=Config(s3={'addressing_style': 'path'}, retries={'max_attempts': 0})); "
            "print(s.get_object(Bucket='one', Key='two')['Body'].read().decode())")
    with serving({"/one/two": b"content"}) as url:
        output, errors = w.run(python, "-c", code, url)
    expect(output == "content\n" and f"{url.removeprefix('https://')}/one/two" in errors, output, errors[-500:])


@client("with: Java's old and new client trust the proxy", smoke=True)
def _(t) -> None:
    w = With(t)
    java(t, w)
    for kind in ("old", "new"):
        w.expect_read(*w.run("java", "Get.java", kind, w.url))
    output, errors = w.run("java", "Get.java", "old", f"{t.web}/get")
    w.expect_read(output, errors, host=t.web)


@client("with: Java keeps the JDK's roots, JAVA_TOOL_OPTIONS, and the store that these options name", smoke=True)
def _(t) -> None:
    w = With(t)
    java(t, w)
    clean = {"JAVA_TOOL_OPTIONS": "", "HOME": str(w.home)}
    own = int(t.run("java", str(w.home / "Get.java"), "count", "-", environment=clean).split()[0])
    output, _ = w.run("java", "Get.java", "count", "-", environment={"JAVA_TOOL_OPTIONS": "-Dkept=yes"})
    count, kept = output.split()
    expect(int(count) >= own + 2 and kept == "yes", f"{own} roots of the JDK, {output}")
    store = w.home / "own.p12"
    t.run("keytool", "-importcert", "-noprompt", "-storetype", "PKCS12", "-keystore", str(store), "-storepass", "secret1", "-alias", "own", "-file",
          str(certificates() / "other.pem"))
    output, errors = w.run("java", "Get.java", "count", "-",
                           environment={"JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword=secret1"})
    expect(int(output.split()[0]) == int(count) + 1, f"{count} before, {output} {errors}")


@client("with: Perl's LWP trusts the proxy")
def _(t) -> None:
    w = With(t)
    if not shutil.which("perl") or subprocess.run(["perl", "-MLWP::Protocol::https", "-e", "1"], capture_output=True).returncode:
        raise Skipped("LWP::Protocol::https is not installed")
    code = "my $r = LWP::UserAgent->new->get($ARGV[0]); die $r->status_line unless $r->is_success; print $r->content"
    w.expect_read(*w.run("perl", "-MLWP::UserAgent", "-e", code, w.url))


@client("with: apt-get trusts the proxy as the user _apt, and the user's APT_CONFIG applies")
def _(t) -> None:
    w = With(t)
    if not shutil.which("apt-get"):
        raise Skipped("this is not Debian")
    archive = t.folder / f"{w.home.name}-debian"
    archive.mkdir()
    (archive / "Packages").write_text("")
    root = w.home / "apt"
    for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/trusted.gpg.d", "etc/apt/sources.list.d", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial", "var/lib/dpkg"):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] {t.secure}/files/{archive.name} ./\n")
    # The user's own file says where everything is, so nothing works if it is lost.
    config = w.home / "apt.conf"
    config.write_text(f'Dir "{root}"; Dir::State::status "{root}/var/lib/dpkg/status"; Dir::Bin::methods "/usr/lib/apt/methods"; Acquire::Retries "0"; Acquire::Languages "none";\n')
    if os.getuid() == 0:
        w.home.chmod(0o755)
        shutil.chown(root / "var/lib/apt/lists/partial", "_apt")
    output, errors = w.run("apt-get", "update", environment={"APT_CONFIG": str(config)})
    expect(any("/Packages " in line and " 200 " in line for line in errors.splitlines()), output, errors)


@client("with: Ruby, Go and others take SSL_CERT_FILE: openssl s_client trusts the proxy by it", smoke=True)
def _(t) -> None:
    w = With(t)
    script = 'printf "GET /get HTTP/1.1\\r\\nHost: ${1#https://}\\r\\nConnection: close\\r\\n\\r\\n" | openssl s_client -quiet -verify_return_error -proxy "${HTTPS_PROXY#http://}" -connect "${1#https://}" -servername localhost'
    output, errors = w.run("sh", "-c", script, "sh", t.secure)
    w.expect_read(output, errors)


PAGE = "done | post:100000 | chunked:3 | bytes:300000 | redirect:200 | rgb(1, 2, 3)"


@client("with --browser chromium: a page loads over TLS in a temporary profile, which is removed afterwards")
def _(t) -> None:
    w = With(t)
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")) or not shutil.which("certutil"):
        raise Skipped("chromium or certutil is not installed")
    output, errors = w.run("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=15000", "--dump-dom",
                           options=("--browser", "chromium", f"{t.secure}/page"), timeout=120, program="")
    expect(PAGE in output, output[-600:], errors[-600:])
    expect(f"{t.secure.removeprefix('https://')}/page" in errors, errors[-600:])
    expect(not (w.home / ".pki").exists() and not (w.home / ".config/chromium").exists(), "the user's own folders were touched")


@client("with --browser firefox: a page loads over TLS in a temporary profile, which is removed afterwards")
def _(t) -> None:
    w = With(t)
    if not any(shutil.which(name) for name in ("firefox", "firefox-esr")) or not shutil.which("certutil"):
        raise Skipped("firefox or certutil is not installed")
    _, errors = w.run("--headless", "--screenshot", str(w.home / "page.png"), options=("--browser", "firefox", f"{t.secure}/page"), timeout=120, program="")
    # The page's script ran, and its requests were read.
    for path in ("/page", "/echo", "/bytes/300000"):
        expect(f"{t.secure.removeprefix('https://')}{path}  200" in errors, path, errors[-800:])
    expect((w.home / "page.png").stat().st_size > 1000, "no picture")
