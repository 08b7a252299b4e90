"""The local proxy by its commands: inspect and with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from Rig.certificates import certificates
from Rig.origins import answering
from Rig.processes import Process, free_port
from Rig.wire import Message
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, own_home, run, with_command
from .intercept import OK, Proxy
from .own_host import asked
from .tls import secure

# inspect


def inspecting(t: Trial, *arguments: str, environment: dict[str, str] | None = None, within: list[str] | None = None) -> tuple[Process, int, int]:
    """A running inspector, the port of its proxy and that of its admin listener."""
    process = t.setup.place.command([*(within or []), t.setup.binary, "inspect", *arguments], [],
                                    environment={**own_home(t), "SSL_CERT_FILE": str(certificates() / "ca.pem"), **(environment or {})})
    t.at_end(process.stop)
    check(eventually(lambda: "try: " in process.log, 10), process.log)
    return process, int(re.search(r"proxy on http://127\.0\.0\.1:(\d+)", process.log)[1]), int(re.search(r"inspector on http://127\.0\.0\.1:(\d+)/", process.log)[1])


@case("inspect: the command reads TLS, prints a line for each request, and serves the admin page and the certificate", nginx=NO)
def _(t: Trial) -> None:
    t.origin(secure(answering(OK)))
    process, port, admin = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    ca = Path(own_home(t)["HOME"]) / ".local/share/httpware/ca/ca.pem"
    check(f"--cacert {ca}" in process.log, process.log)
    if not shutil.which("curl"):
        raise Skip("no curl")
    curl = ["curl", "-sS", "--max-time", "10", "-x", f"http://127.0.0.1:{port}"]
    result = subprocess.run([*curl, "--cacert", str(ca), f"https://localhost:{t.main.port}/seen?x=1"], capture_output=True, text=True)
    expect_same("curl", (result.stdout, result.stderr), ("ok", ""))
    expect_same("upstream", t.main.requests[-1].target, "/seen?x=1")
    check(eventually(lambda: "/seen" in process.log, 5), "no line:", process.log)
    lines = [line for line in process.log.splitlines() if "/seen" in line]
    check(len(lines) == 1 and f"GET  localhost:{t.main.port}/seen?x=1  200" in lines[0], lines)
    check("CONNECT" not in process.log, "the opening of a tunnel has a line:", process.log)
    check(subprocess.run([*curl, f"https://localhost:{t.main.port}/"], capture_output=True).returncode != 0)
    check(eventually(lambda: "refused the certificate for localhost" in process.log, 5), "a client that does not trust it is not told:", process.log)
    page = subprocess.run(["curl", "-sS", f"http://127.0.0.1:{admin}/"], capture_output=True, text=True)
    check("<title>httpware</title>" in page.stdout, page)
    expect_status(asked(t, port, "/ca.pem"), 200)
    check(f"127.0.0.1:{port}" in asked(t, port, "/proxy.pac").body.decode(), "the port that the system chose is not in the PAC")


@case("inspect: ports in use are replaced by free ones, unless they are requested explicitly", nginx=NO)
def _(t: Trial) -> None:
    taken = []
    for port in (8888, 9900):
        try:
            taken.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            pass  # another program has it
    try:
        _, port, admin = inspecting(t)
        check(port != 8888 and admin != 9900, port, admin)
        result = run(t, "inspect", "--listen", f"127.0.0.1:{t.main.port}", "--admin", "127.0.0.1:0", environment=own_home(t))
        check(result.returncode == 3 and str(t.main.port) in result.stderr, result)
    finally:
        for each in taken:
            each.close()


@case("inspect: trace, rule and services find the proxy without --admin and without a configuration", nginx=NO)
def _(t: Trial) -> None:
    if os.geteuid() or not all(map(shutil.which, ("unshare", "nsenter", "ip"))) or Path("/etc/httpware/httpware.yaml").exists():
        raise Skip("needs root, for a network in which port 9900 is free, and no configuration of this machine")
    environment = {**own_home(t), "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}
    process, _, admin = inspecting(t, environment=environment, within=["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"])
    expect_same("admin", admin, 9900)
    empty, inside = t.setup.place.subfolder("empty"), ["nsenter", "-t", str(process.pid), "-n"]

    def ask(*command: str) -> subprocess.CompletedProcess:
        return subprocess.run([*inside, t.setup.binary, *command], cwd=empty, env={**os.environ, **environment}, capture_output=True, text=True, timeout=20)

    for command in (["trace"], ["rule", "ls", "--json"], ["services"]):
        result = ask(*command)
        expect_same(f"{command}: {result.stderr}", result.returncode, 0)
    # A configuration that is named, or is there, counts.
    check("does not exist" in ask("trace", "-c", "missing.yaml").stderr)
    (empty / "httpware.yaml").write_text("version: 1\nlisteners: { web: { bind: '127.0.0.1:1' } }\nroutes: []\n")
    check("no admin listener; add admin" in (result := ask("trace")).stderr, result)
    (empty / "httpware.yaml").unlink()
    # Another user's token is not read.
    result = subprocess.run([*inside, t.setup.binary, "trace"], cwd=empty, env={**os.environ, **environment, "HOME": str(empty)},
                            capture_output=True, text=True, timeout=20)
    check(result.returncode == 1 and "requires its token" in result.stderr, result)
    process.stop()
    result = run(t, "trace", "--admin", f"127.0.0.1:{free_port()}")
    check(result.returncode == 3 and "no admin listener answers" in result.stderr, result)


@case("inspect: --host, --except and --only choose the hosts; an invalid pattern is exit 1", nginx=NO)
def _(t: Trial) -> None:
    t.origin(secure(answering(OK)))
    if not shutil.which("curl"):
        raise Skip("no curl")
    origin, ca = str(certificates() / "ca.pem"), str(Path(own_home(t)["HOME"]) / ".local/share/httpware/ca/ca.pem")
    for options, trust in ((["--host", "other.test"], origin), (["--host", "localhost"], ca), (["--except", "localhost"], origin),
                           (["--only", "localhost"], ca)):
        process, port, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *options)
        result = subprocess.run(["curl", "-sS", "--max-time", "10", "-x", f"http://127.0.0.1:{port}", "--cacert", trust,
                                 f"https://localhost:{t.main.port}/"], capture_output=True, text=True)
        expect_same(f"{options}", (result.stdout, result.stderr), ("ok", ""))
        process.stop()
    _, port, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--only", "other.test")
    expect_status(asked(t, port, "/", host=f"localhost:{t.main.port}"), 403)
    expect_status(asked(t, port, "/"), 200)
    result = run(t, "inspect", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--host", "a b{c", environment=own_home(t))
    check(result.returncode == 1 and "host" in result.stderr, result)


@case("inspect and with: the first run makes the authority, and explains how to trust it", nginx=NO)
def _(t: Trial) -> None:
    home = t.setup.place.subfolder("new")
    environment = {"HOME": str(home), "XDG_DATA_HOME": ""}
    process, _, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", environment=environment)
    said = [line for line in process.log.splitlines() if "certificate authority" in line]
    check(len(said) == 1 and "httpware ca install" in said[0] and "httpware with" in said[0], said)
    check(os.stat(home / ".local/share/httpware/ca/ca.key").st_mode & 0o77 == 0, "others can read the key")
    result = with_command(t, "--", "true", environment=environment)
    expect_same("with", (result.returncode, result.stderr), (0, ""))


# with


@case("with: files of the environment exist while the command runs, and are removed afterwards", nginx=NO)
def _(t: Trial) -> None:
    code = ("import json, os; v = os.environ; names = [v['SSL_CERT_FILE'], v['DENO_CERT'], v['WGETRC'], v['APT_CONFIG']]; "
            "print(json.dumps([[n, open(n).read()] for n in names] + [[os.path.dirname(names[0]), oct(os.stat(os.path.dirname(names[0])).st_mode & 0o66)]]))")
    result = with_command(t, "--", sys.executable, "-c", code, environment={"SSL_CERT_FILE": str(certificates() / "other.pem")})
    bundle, own, _, _, (folder, rights) = json.loads(result.stdout)
    ca = (Path(own_home(t)["HOME"]) / ".local/share/httpware/ca/ca.pem").read_text()
    expect_same("authority", own[1], ca)
    for name, text in (("the user's", (certificates() / "other.pem").read_text()), ("ours", ca)):
        check("".join(text.split()) in "".join(bundle[1].split()), name, "is not in the bundle")
    expect_same("rights of others", rights, "0o0")
    check(not Path(folder).exists(), "the folder is left")
    # A command that a signal ends leaves no folder either.
    process = t.setup.place.command([t.setup.binary, "with", "--", "sh", "-c", 'echo "at $DENO_CERT"; exec sleep 20'], [],
                                    environment={**own_home(t), "DENO_CERT": ""})
    t.at_end(process.stop)
    check(eventually(lambda: "at /" in process.log, 10), process.log)
    process.signal(signal.SIGTERM)
    expect_same("exit", process.wait(10), 143)
    check(not Path(process.log.split("at ")[1].split()[0]).parent.exists(), "the folder is left after a signal")


@case("with: an unreadable file of certificates is reported", nginx=NO)
def _(t: Trial) -> None:
    result = with_command(t, "--", "true", environment={"REQUESTS_CA_BUNDLE": "/nowhere.pem"})
    check(result.returncode == 0 and "REQUESTS_CA_BUNDLE: /nowhere.pem" in result.stderr, result)


@case("with -c: a listener with intercept adds its authority; a listener without it leaves the variables unchanged", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    file = str(proxy.folder / "httpware.yaml")
    show = ["sh", "-c", 'cat "$DENO_CERT"; echo $http_proxy']
    # A gateway runs already, then none does.
    result = with_command(t, "-c", file, "--", *show)
    expect_same("result", result.stdout, proxy.ca.read_text() + f"http://127.0.0.1:{proxy.port}\n")
    proxy.process.stop()
    result = with_command(t, "-c", file, "--", *show)
    check(result.stdout.startswith(proxy.ca.read_text()) and f":{proxy.port}" not in result.stdout, result)
    Path(file).write_text(re.sub("intercept: .*", "", proxy.text))
    result = with_command(t, "-c", file, "--", "sh", "-c", "echo ${DENO_CERT-none} ${SSL_CERT_FILE-none}")
    check(result.stdout.startswith("none "), result)


@case("with: options that contradict each other are exit 64", nginx=NO)
def _(t: Trial) -> None:
    for arguments in (["-c", "x.yaml", "--tunnel", "--", "true"], ["-c", "x.yaml", "--only", "a.test", "--", "true"], ["http://a.test/", "--", "true"],
                      ["--browser", "lynx", "http://a.test/"]):
        expect_same(f"exit of {arguments}", with_command(t, *arguments).returncode, 64)


@case("with and inspect: other hosts are reached through the proxy of the environment, or a named proxy", nginx=NO)
def _(t: Trial) -> None:
    if not shutil.which("curl"):
        raise Skip("no curl")
    t.origin(answering(OK))
    proxy = f"http://127.0.0.1:{t.main.port}"
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    result = subprocess.run([t.setup.binary, "with", "--", "curl", "-sS", "-m", "5", "http://a.test/x"], capture_output=True, text=True, timeout=30,
                            env={**clean, **own_home(t), "http_proxy": proxy, "no_proxy": ""})
    expect_same("curl", (result.stdout, t.main.requests[-1].target), ("ok", "http://a.test/x"))
    _, port, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream-proxy", proxy)
    for option in ("-x", "--socks5-hostname"):
        result = subprocess.run(["curl", "-sS", "-m", "5", "--noproxy", "", option, f"127.0.0.1:{port}", "http://a.test/y"], capture_output=True, text=True, env=clean)
        expect_same(option, (result.stdout, t.main.requests[-1].target), ("ok", "http://a.test/y"))


@case("with and inspect: a name with a cloud's metadata address is 403: in clear text, in tunnels, and by SOCKS", nginx=NO)
def _(t: Trial) -> None:
    hosts = t.setup.place.subfolder("hosts") / "hosts"
    hosts.write_text("169.254.169.254 harmless.test\nfd00:ec2::254 harmless6.test\n127.0.0.1 local.test\n")
    if not shutil.which("curl"):
        raise Skip("no curl")
    ca = Path(own_home(t)["HOME"]) / ".local/share/httpware/ca/ca.pem"
    t.origin(answering(OK))
    own = ["unshare", "-m", "sh", "-c", f'mount --bind "{hosts}" /etc/hosts && exec "$@"', "sh"]
    if subprocess.run([*own, "true"], capture_output=True).returncode:
        raise Skip("only root can give a process a file of hosts of its own")
    _, port, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", within=own)

    def status(url: str, *options: str) -> str:
        options = options or ("-x", f"http://127.0.0.1:{port}")
        return subprocess.run(["curl", "-s", "--max-time", "10", "--cacert", str(ca), "-o", "/dev/null", "-w", "%{http_code}", *options, url],
                              capture_output=True, text=True).stdout

    expect_same("a local server", status(f"http://local.test:{t.main.port}/"), "200")
    for url in ("http://harmless.test/", "http://harmless6.test/", "https://harmless.test/", "https://harmless6.test/"):
        expect_same(url, status(url), "403")
    expect_same("SOCKS", status("https://harmless.test/", "--socks5-hostname", f"127.0.0.1:{port}"), "403")
    # The client names the address, and only the handshake a name.
    expect_same("an address", status("https://any.test/", "--socks5", f"127.0.0.1:{port}", "--resolve", "any.test:443:169.254.169.254"), "000")
    check("metadata" in asked(t, port, "/", host="harmless.test").body.decode(), "the page does not say why")
    result = subprocess.run([*own, t.setup.binary, "with", "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "https://harmless.test/"],
                            capture_output=True, text=True, timeout=20, env={**os.environ, **own_home(t)})
    expect_same("with", result.stdout, "403")


def token_of(process: Process) -> str:
    check(eventually(lambda: "?token=" in process.log, 10), process.log)
    return re.search(r"inspector on http://127\.0\.0\.1:\d+/\?token=([A-Za-z0-9]{32})\n", process.log)[1]


def admin_ask(t: Trial, port: int, method: str, target: str, *lines: str) -> Message:
    client = connect(("127.0.0.1", port), 10)
    t.clients.append(client)
    client.send("\r\n".join([f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", *lines, "Content-Length: 0", "", ""]).encode())
    return client.read_response(method)


@case("inspect: each start has a token, accepted by URL, session and Bearer; pages of other sites and ports are refused", nginx=NO)
def _(t: Trial) -> None:
    process, port, admin = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    token = token_of(process)
    expect_status(admin_ask(t, admin, "GET", "/v1/requests"), 401)
    opened = admin_ask(t, admin, "GET", f"/?token={token}")
    code = re.fullmatch(r"/#open=(\w{32})", opened.get("Location"))[1]
    expect_same("opened", (opened.status, opened.get("Set-Cookie"), code != token), (303, None, True))
    expect_status(admin_ask(t, admin, "GET", "/?token=" + "x" * 32), 403)
    begun = admin_ask(t, admin, "POST", "/v1/session", f"Authorization: Bearer {code}")
    session = json.loads(begun.body)["session"]
    check(session not in (code, token))
    expect_status(admin_ask(t, admin, "POST", "/v1/session", f"Authorization: Bearer {code}"), 401)
    for name in (f"httpware-admin-{admin}", "httpware-session", "token"):
        for value in (token, session):
            for lines in ([], ["Sec-Fetch-Site: same-origin"], ["Sec-Fetch-Site: none"]):
                expect_status(admin_ask(t, admin, "GET", "/v1/requests", f"Cookie: {name}={value}", *lines), 401)
    shown = f"Authorization: Bearer {session}"
    expect_status(admin_ask(t, admin, "GET", "/v1/requests", shown, "Sec-Fetch-Site: same-origin"), 200)
    expect_status(admin_ask(t, admin, "GET", "/v1/requests", f"Authorization: Bearer {token}"), 200)
    write = ("POST", "/v1/offline?value=false")
    for lines in (["Origin: http://evil.example"], [f"Origin: http://127.0.0.1:{port}"], ["Sec-Fetch-Site: cross-site"]):
        check(admin_ask(t, admin, *write, shown, *lines).status in (401, 403), lines)
    check(admin_ask(t, admin, *write, shown, f"Origin: http://127.0.0.1:{admin}", "Sec-Fetch-Site: same-origin").status not in (401, 403))
    asked(t, port, f"/?token={token}")
    expect_same("printed", process.log.count(token), 1)
    other, _, _ = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    check(token_of(other) != token, "two starts have one token")


@case("inspect: other commands find its token by the address, in a file of this user that is removed at its end", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("runtime")
    for variables, expected in (({"XDG_RUNTIME_DIR": str(folder)}, folder / "httpware"), ({"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": str(folder / "state")}, folder / "state/httpware"),
                                ({"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}, Path(own_home(t)["HOME"]) / ".local/state/httpware")):
        process, port, admin = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", environment=variables)
        file = expected / f"127.0.0.1:{admin}.token"
        expect_same("content", file.read_text(), token_of(process))
        expect_same("rights", (oct(os.stat(file).st_mode & 0o777), oct(os.stat(expected).st_mode & 0o777)), ("0o600", "0o700"))
        asked(t, port, "/ca.pem")
        for address in (f"127.0.0.1:{admin}", f"localhost:{admin}"):
            result = run(t, "trace", "--admin", address, environment={**own_home(t), **variables})
            check(result.returncode == 0 and "/ca.pem" in result.stdout, result)
        os.chmod(file, 0o644)
        check("requires its token" in run(t, "trace", "--admin", f"127.0.0.1:{admin}", environment={**own_home(t), **variables}).stderr, "a file that others read is used")
        os.chmod(file, 0o600)
        process.signal(signal.SIGTERM)
        expect_same("exit", process.wait(10), 0)
        expect_same("left", list(expected.iterdir()), [])


@case("with --inspect and proxy --inspect: the page is on a free port, and the command never receives the token", nginx=NO)
def _(t: Trial) -> None:
    runtime = {"XDG_RUNTIME_DIR": str(t.setup.place.subfolder("runtime"))}
    code = ("import json, os, sys, time, urllib.request; urllib.request.urlopen(sys.argv[1]).read(); "
            "print(json.dumps([dict(os.environ), open('/proc/self/cmdline').read()])); sys.stdout.flush(); time.sleep(20)")
    file = t.setup.place.subfolder("file") / "httpware.yaml"
    busy = free_port()
    file.write_text(f"""version: 1
listeners: {{ dev: {{ mode: forward, bind: "127.0.0.1:{t.main.port}", forward: {{ denyPrivate: false }} }} }}
routes: [{{ service: passthrough }}]
admin: {{ bind: "127.0.0.1:{busy}", token: "abcdefghijklmnopqrstuvwxyz" }}
""")
    for options in ([], ["-c", str(file)]):
        process = t.setup.place.command([t.setup.binary, "with", "--inspect", *options, "--", sys.executable, "-c", code, f"http://127.0.0.1:{t.main.port}/seen"], [],
                                        environment={**own_home(t), **runtime, "HTTP_PROXY": "", "http_proxy": "", "NO_PROXY": "", "no_proxy": ""})
        t.at_end(process.stop)
        token = token_of(process)
        admin = int(re.search(r"inspector on http://127\.0\.0\.1:(\d+)/", process.log)[1])
        check(admin != busy, "the port of the file")
        check(eventually(lambda: '[{"' in process.log, 10), process.log)
        check(token not in process.log.split('[{"')[1], "the command has the token")
        records = admin_ask(t, admin, "GET", "/v1/requests", f"Authorization: Bearer {token}")
        check(b"/seen" in records.body, records)
        result = run(t, "trace", "--admin", f"127.0.0.1:{admin}", environment={**own_home(t), **runtime})
        check("/seen" in result.stdout, result)
        process.signal(signal.SIGTERM)
        process.wait(10)
        expect_same("left", list(Path(runtime["XDG_RUNTIME_DIR"], "httpware").iterdir()), [])
    process = t.setup.place.command([t.setup.binary, "proxy", "--inspect", f"http://127.0.0.1:{t.main.port}", "--listen", "127.0.0.1:0"], [], environment={**own_home(t), **runtime})
    t.at_end(process.stop)
    token = token_of(process)
    admin = int(re.search(r"inspector on http://127\.0\.0\.1:(\d+)/", process.log)[1])
    expect_status(admin_ask(t, admin, "GET", "/v1/requests", f"Authorization: Bearer {token}"), 200)
    expect_status(admin_ask(t, admin, "GET", "/v1/requests"), 401)
