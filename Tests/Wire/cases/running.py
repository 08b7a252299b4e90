"""Commands for a running gateway: status, reload and stop. The hints for mistyped commands, and the forms of a file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from gateways import OwnGateway
from Rig.origins import OK, OriginConnection, answering
from suite import Trial, case, check, eventually, expect_same, expect_status

from .command import GOOD, NO, run

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
routes: [{{ service: api }}]
"""


def silent(connection: OriginConnection) -> None:
    """Takes a request and never answers."""
    connection.serve()
    connection.ends(30)


class Running(OwnGateway):
    def __init__(self, t: Trial, config: str = CONFIG):
        super().__init__(t, "running", config, main=t.setup.ports["main"])

    def command(self, *arguments: str) -> subprocess.CompletedProcess:
        return run(self.t, *arguments, "--admin", f"127.0.0.1:{self.admin}", timeout=30)

    def has_ended(self) -> bool:
        return self.process.popen.poll() is not None


@case("status: the addresses, the process and the last reload, as lines and as JSON", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    shown = gateway.command("status")
    expect_same("exit", (shown.returncode, shown.stderr), (0, ""))
    check(f"ready, process {gateway.process.popen.pid}" in shown.stdout and f"web: 127.0.0.1:{gateway.web}, reverse" in shown.stdout, shown.stdout)
    known = json.loads(gateway.command("status", "--json").stdout)
    expect_same("JSON", (known["phase"], known["process"], known["routes"], known["services"]), ("ready", gateway.process.popen.pid, 1, ["api"]))
    expect_same("nobody there", run(t, "status", "--admin", "127.0.0.1:1").returncode, 3)


@case("reload: changes are counted, and errors are shown with their places and leave the configuration as it was", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    text = gateway.file.read_text()
    expect_same("none", gateway.command("reload").stdout, "in force, without a change\n")
    gateway.file.write_text(text.replace("routes: [", "routes: [{ match: { path: /other }, service: api }, "))
    expect_same("one", gateway.command("reload").stdout, "in force, 1 change\n")
    gateway.file.write_text(text.replace("service: api", "service: apy"))
    refused = gateway.command("reload")
    check(refused.returncode == 1 and "httpware.yaml:5:" in refused.stderr and "stays in force" in refused.stderr, refused.stderr)
    t.origin(answering(OK))
    expect_status(gateway.ask("/"), 200)


@case("reload --pid: a service manager needs no kill(1), and a number of no process is exit 3", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    gateway.file.write_text(gateway.file.read_text().replace("service: api", "service: apy"))
    expect_same("sent", run(t, "reload", "--pid", str(gateway.process.popen.pid)).returncode, 0)
    check(eventually(lambda: not json.loads(gateway.command("status", "--json").stdout)["lastReload"]["success"], 5), "the reload did not happen")
    gone = subprocess.Popen(["true"])
    gone.wait()
    result = run(t, "reload", "--pid", str(gone.pid))
    check(result.returncode == 3 and "No such process" in result.stderr, result.stderr)
    for number in ("0", "1", "-1"):
        check(run(t, "reload", f"--pid={number}").returncode not in (0, 3), number)


@case("stop: requests in progress are finished first, and the command returns when the gateway has ended", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    stopped = gateway.command("stop")
    expect_same("stop", (stopped.returncode, stopped.stdout), (0, "stopped\n"))
    check(eventually(gateway.has_ended, 5), "it still runs")
    expect_same("again", gateway.command("stop").returncode, 3)


@case("stop: with a request in progress it waits as long as --wait says, and --now does not", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    t.origin(silent)
    waiting = gateway.send("/slow")
    check(eventually(lambda: json.loads(gateway.ask("/v1/status", port=gateway.admin).body)["phase"] == "ready", 5), "not ready")
    late = gateway.command("stop", "--wait", "1")
    check(late.returncode == 1 and "still finishes requests" in late.stderr, late.stderr)
    again = gateway.command("stop", "--wait", "1")
    check(again.returncode == 1 and not gateway.has_ended(), "a second stop cut a request off", again.stderr)
    expect_same("now", gateway.command("stop", "--now").returncode, 0)
    check(eventually(gateway.has_ended, 5), "it still runs")
    waiting.close()


@case("stop --pid: sends SIGTERM and waits for the process", nginx=NO)
def _(t: Trial) -> None:
    gateway = Running(t)
    pid = gateway.process.popen.pid
    waiting = subprocess.Popen([t.setup.binary, "stop", "--pid", str(pid)], stdout=subprocess.PIPE, text=True)
    check(eventually(gateway.has_ended, 10), "it still runs")
    expect_same("stopped", waiting.communicate(timeout=20)[0], "stopped\n")


@case("a mistyped command gets the one that was probably meant", nginx=NO)
def _(t: Trial) -> None:
    for words, meant in ((["runn"], "run"), (["validate"], "check"), (["start"], "run"), (["logs"], "trace"), (["token", "lst"], "list"),
                         (["restart"], "reload"), (["servces"], "services")):
        result = run(t, *words)
        check(result.returncode == 64 and f'did you mean "{meant}"?' in result.stderr, words, result.stderr)
    plain = run(t, "xyzzyx")
    check(plain.returncode == 64 and "has no command" in plain.stderr and "did you mean" not in plain.stderr, plain.stderr)
    check('did you mean "rateLimit"?' in run(t, "wares", "rate").stderr, run(t, "wares", "rate").stderr)
    shown = run(t, "--help").stdout
    for group in ("RUN", "LOOK AT A RUNNING GATEWAY", "CHANGE A RUNNING GATEWAY", "PROVE A CONFIGURATION"):
        check(group in shown.upper(), group, shown)


@case("convert: YAML to JSON and back has the same values, and check finds the same", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("convert")
    text = GOOD + 'x-odd: ["yes", "8080", 8080, "a: b", "${env:HOME}", "$${x}", "#", "", null, true, "true", "~", "é\\u2028\\t\\"", [], {}, "- a", "0x1f", 1e3]\n'
    (folder / "a.yaml").write_text(text)
    made = run(t, "convert", str(folder / "a.yaml"), "-o", str(folder / "b.json"))
    expect_same("to JSON", (made.returncode, made.stderr), (0, ""))
    first = json.loads((folder / "b.json").read_text())
    back = run(t, "convert", str(folder / "b.json"))
    (folder / "c.yaml").write_text(back.stdout)
    expect_same("and back", json.loads(run(t, "convert", str(folder / "c.yaml")).stdout), first)
    expect_same("values", first["x-odd"][:6], ["yes", "8080", 8080, "a: b", "${env:HOME}", "$${x}"])
    for name in ("a.yaml", "b.json", "c.yaml"):
        expect_same(name, run(t, "check", str(folder / name)).stdout, "ok: 1 listener, 1 route, 1 service\n")
    (folder / "a.yaml").chmod(0o600)
    expect_same("private", run(t, "convert", str(folder / "a.yaml"), "-o", str(folder / "private.json")).returncode, 0)
    expect_same("rights", (folder / "private.json").stat().st_mode & 0o777, 0o600)
    (folder / "private.json").chmod(0o644)
    expect_same("forced", run(t, "convert", str(folder / "a.yaml"), "-o", str(folder / "private.json"), "--force").returncode, 0)
    expect_same("rights of a forced one", (folder / "private.json").stat().st_mode & 0o777, 0o600)
    expect_same("a device stays", (run(t, "convert", str(folder / "a.yaml"), "-o", "/dev/null", "--force").returncode, Path("/dev/null").is_char_device()), (0, True))
    expect_same("kept", run(t, "convert", str(folder / "a.yaml"), "-o", str(folder / "b.json")).returncode, 3)
    expect_same("broken", run(t, "convert", "-", text="a: [").returncode, 1)
    expect_same("missing", run(t, "convert", str(folder / "none.yaml")).returncode, 3)


@case("init: the file names its schema for editors, which is beside it and stays if it is another's", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("editors")
    made = run(t, "init", "gateway", str(folder / "a.yaml"))
    expect_same("exit", made.returncode, 0)
    expect_same("line", (folder / "a.yaml").read_text().splitlines()[0], "# yaml-language-server: $schema=httpware.schema.json")
    schema = json.loads((folder / "httpware.schema.json").read_text())
    expect_same("title", schema["title"], "httpware configuration")
    bare = [key for key, value in schema["properties"]["listeners"]["additionalProperties"]["properties"].items() if not value.get("description")]
    bare += [key for key, value in schema["properties"].items() if not value.get("description")]
    expect_same("without a text for editors", bare, [])
    (folder / "httpware.schema.json").write_text("mine")
    run(t, "init", "gateway", str(folder / "b.yaml"))
    expect_same("another's", (folder / "httpware.schema.json").read_text(), "mine")
    expect_same("to the terminal", "yaml-language-server" in run(t, "init", "gateway", "-").stdout, False)


@case("check: a star at the end is explained, a redirect needs no route, and paths of access are a note", nginx=NO)
def _(t: Trial) -> None:
    redirect = """version: 1
listeners: { secure: { bind: "127.0.0.1:8443" }, plain: { bind: "127.0.0.1:8080", chain: toTls } }
services: { app: { baseUrl: "http://127.0.0.1:3000" } }
chains: { toTls: { middlewares: [{ redirect: { to: "https://{request.host}{request.path}" } }] }, inside: { middlewares: [{ ipRule: { allow: 10.0.0.0/8 } }] } }
routes:
  - { match: { path: "/api/*" }, listener: secure, service: app }
  - { match: { path: "/admin/**" }, listener: secure, service: app, chain: inside }
  - { listener: secure, service: app }
"""
    result = run(t, "check", "--strict", "-c", "-", text=redirect)
    expect_same("exit", (result.returncode, "answers every request with 404" in result.stderr), (0, False))
    check("note: /api/* matches one segment" in result.stderr and "/api/** matches everything below" in result.stderr, result.stderr)
    check("note: listener secure answers paths with //" in result.stderr, result.stderr)
    whole = redirect.replace('path: "/api/*"', 'path: ["/api/*", "/api/**"]')
    check("matches one segment" not in run(t, "check", "-c", "-", text=whole).stderr, "the hint is there without a reason")
