"""The command: exit codes, errors that say where, draining."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

from Rig.certificates import certificates
from Rig.origins import OK, OriginConnection, answering
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .refused_requests import head

NO = "the command of httpware"

GOOD = """version: 1
listeners: { web: { bind: "127.0.0.1:8080" } }
services: { api: { baseUrl: "http://127.0.0.1:3000" } }
routes: [{ service: api }]
"""


def run(t: Trial, *arguments: str, environment: dict[str, str] | None = None, text: str = "", timeout: float = 10) -> subprocess.CompletedProcess:
    return subprocess.run([t.setup.binary, *arguments], capture_output=True, text=True, timeout=timeout, input=text,
                          env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})})


def checked(t: Trial, text: str, **more) -> subprocess.CompletedProcess:
    folder = t.setup.place.subfolder("check")
    (folder / "file.yaml").write_text(text)
    return run(t, "check", "-c", str(folder / "file.yaml"), **more)


@case("check: a valid file is exit 0", nginx=NO)
def _(t: Trial) -> None:
    result = checked(t, GOOD)
    expect_same("exit", (result.returncode, "error" in result.stderr), (0, False))


@case("check: routes without forwarded are named in a note, and routes with it are not", nginx=NO)
def _(t: Trial) -> None:
    routes = "[{ name: open, match: { path: /a }, service: api }, { name: behind, service: api, chain: c }]\nchains: { c: { middlewares: [forwarded] } }"
    result = checked(t, GOOD.replace("[{ service: api }]", routes))
    expect_same("exit", result.returncode, 0)
    notes = [line for line in (result.stdout + result.stderr).splitlines() if "without forwarded in its chain" in line]
    check(len(notes) == 1 and notes[0].endswith("may believe: open"), result.stdout + result.stderr)


@case("check: -c - reads standard input", nginx=NO)
def _(t: Trial) -> None:
    expect_same("exit", run(t, "check", "-c", "-", text=GOOD).returncode, 0)
    expect_same("exit", run(t, "check", "-c", "-", text="version: 2\n").returncode, 1)


@case("check: a closed standard input, and a folder in place of a file, are exit 3 with their reason", nginx=NO)
def _(t: Trial) -> None:
    for command in ("check", "run", "explain GET /"):
        result = with_output(t, "<&-", *command.split(), "-c", "-")
        expect_same(f"{command} without input", (result.returncode, result.stderr), (3, "stdin: error: standard input is closed\n"))
    result = run(t, "check", "-c", str(t.setup.place.subfolder("folder")))
    check(result.returncode == 3 and "is a directory" in result.stderr, result.returncode, result.stderr)


@case("check: the counts have singular and plural words", nginx=NO)
def _(t: Trial) -> None:
    expect_same("one", checked(t, GOOD).stdout, "ok: 1 listener, 1 route, 1 service\n")
    check("note: without forwarded" in checked(t, GOOD).stderr, checked(t, GOOD).stderr)
    two = GOOD.replace("listeners: {", 'listeners: { two: { bind: "127.0.0.1:8081" },')
    expect_same("two", checked(t, two.replace("routes: [{ service: api }]", "chains: {}")).stdout, "ok: 2 listeners, 0 routes, 1 service\n")


@case("check: a pipe is read; a pipe without a writer is an error, not an endless wait", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("pipe")
    os.mkfifo(folder / "pipe")
    (folder / "main.yaml").write_text("version: 1\ninclude: [pi*]\n")
    result = run(t, "check", "-c", str(folder / "main.yaml"))
    expect_same("exit", result.returncode, 1)
    check("main.yaml:2:11: error: include: " in result.stderr and "is a pipe without a writer" in result.stderr, result.stderr)
    threading.Thread(target=lambda: (folder / "pipe").write_text(GOOD)).start()
    expect_same("exit", run(t, "check", "-c", str(folder / "pipe")).returncode, 0)


@case("check: JSON is accepted as YAML", nginx=NO)
def _(t: Trial) -> None:
    text = '{"version": 1, "listeners": {"web": {"bind": "127.0.0.1:8080"}}, "services": {"api": {"baseUrl": "http://127.0.0.1:3000"}}, "routes": [{"service": "api"}]}'
    expect_same("exit", checked(t, text).returncode, 0)


def refused(name: str, text: str, *words: str, code: int = 1) -> None:
    @case(f"check: {name} is refused", nginx=NO)
    def _(t: Trial) -> None:
        result = checked(t, text)
        expect_same("exit", result.returncode, code)
        for word in words:
            check(word in result.stderr, f"{word!r} is not in:", result.stderr)


refused("an unknown key", GOOD.replace("baseUrl", "baseUrll"), "file.yaml:3:20: error:", "baseUrll", "baseUrl")
refused("a log file that cannot be made", GOOD + "log: { output: \"file:/nowhere/at/all.log\" }\n", "file.yaml:5:16: error: log.output:", "/nowhere/at",
        "No such file or directory")
refused("an unknown noun", GOOD + "rutes: []\n", "file.yaml:5:1: error:", "rutes", "routes")
refused("a duplicate key", GOOD + "routes: []\n", "file.yaml:5:1: error:", "routes")
refused("a file without a version", GOOD.replace("version: 1\n", ""), "error:", "version")
refused("another version", GOOD.replace("version: 1", "version: 2"), "file.yaml:1:", "version")
refused("an unknown service", GOOD.replace("service: api", "service: apo"), "file.yaml:4:", "apo", "api")
refused("an unknown ware", GOOD + "chains: { c: { middlewares: [bodyLimitt] } }\n", "file.yaml:5:", "bodyLimitt", "bodyLimit")
refused("an unknown option of a ware", GOOD + "chains: { c: { middlewares: [{ bodyLimit: { maxx: 1MiB } }] } }\n", "file.yaml:5:", "maxx", '"max"')
refused("a byte count without a proper unit", GOOD + "chains: { c: { middlewares: [{ bodyLimit: { max: 10 mb } }] } }\n", "file.yaml:5:", "10 mb", "10MiB")
refused("a duration without a unit", GOOD.replace("3000\"", "3000\", timeouts: { connect: 5 }"), "file.yaml:3:", "5")
refused("a postware among the middlewares", GOOD + "chains: { c: { middlewares: [accessLog] } }\n", "file.yaml:5:", "accessLog")
refused("a cycle of chains", GOOD + "chains: { a: { middlewares: [use: b] }, b: { middlewares: [use: a] } }\n", "file.yaml:5:", "a → b → a")
refused("an unknown chain in use", GOOD + "chains: { a: { middlewares: [use: bb] } }\n", "file.yaml:5:", "bb")
refused("a file that is not YAML", "version: [1\n", "file.yaml:", "error:")
refused("an empty file", "", "error:")
refused("intercept on a reverse listener", GOOD.replace('8080"', '8080", intercept: { hosts: ["*"] }'), "file.yaml:2:", "intercept", "mode: forward")
refused("a credential without its token", GOOD + "credentials: { a: { grant: static } }\n", "file.yaml:5:", "credentials.a.value", "is missing")
refused("a store without its kind", GOOD + "stores: { a: { maxSize: 1MiB } }\n", "file.yaml:5:", "stores.a", "needs memory, disk or redis")
refused("an origin of another scheme", GOOD.replace("http://127", "ftp://127"), "file.yaml:3:", "https://example.com")
refused("an invalid address to bind", GOOD.replace('"127.0.0.1:8080"', '"127.0.0.1"'), "file.yaml:2:", "127.0.0.1")
refused("yes in place of a boolean", GOOD.replace('8080" }', '8080", mode: forward, forward: { denyPrivate: yes } }').replace("service: api", "service: passthrough"), "file.yaml:2:", "yes")
refused("a variable that is not set", GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_UNSET}"), "file.yaml:3:", "HTTPWARE_TEST_UNSET")
refused("a variable with a message", GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_UNSET:?say where it is}"), "file.yaml:3:", "say where it is")
refused("a secret file that is not there", GOOD.replace("127.0.0.1:3000", "${file:/nonexistent/secret}"), "file.yaml:3:", "/nonexistent/secret")
refused("an include that is not there", GOOD + "include: [missing.yaml]\n", "file.yaml:5:", "missing.yaml")
refused("an unknown placeholder", GOOD + 'chains: { c: { middlewares: [{ requestHeaders: { set: { X-A: "{request.methd}" } } }] } }\n', "file.yaml:5:", "request.methd")


@case("check: all errors are reported at once", nginx=NO)
def _(t: Trial) -> None:
    result = checked(t, GOOD.replace("baseUrl", "baseUrll").replace("bind", "bindd").replace("service: api", "service: api, chainn: x"))
    for place in ("file.yaml:2:", "file.yaml:3:", "file.yaml:4:"):
        check(place in result.stderr, f"{place} is not in:", result.stderr)


@case("check --json: each mistake has its parts, and the summary follows", nginx=NO)
def _(t: Trial) -> None:
    text = GOOD.replace("baseUrl", "baseUrll") + "rutes: []\n"
    plain = run(t, "check", "-c", "-", text=text).stderr.splitlines()
    check(len(plain) > 1, plain)
    result = run(t, "check", "--json", "-c", "-", text=text)
    answer = json.loads(result.stdout)
    expect_same("exit and stderr", (result.returncode, result.stderr), (1, ""))
    lines = [f"{d['file']}:{d['line']}:{d['column']}: {d['severity']}: {d['keyPath']}: {d['message']}" for d in answer["diagnostics"]]
    expect_same("lines", lines, plain)
    expect_same("summary", answer["summary"], {"errors": len(plain), "warnings": 0})


@case("check --json: a valid file has counts and no diagnostics; with warnings the exit status stays 0", nginx=NO)
def _(t: Trial) -> None:
    answer = json.loads(run(t, "check", "--json", "-c", "-", text=GOOD).stdout)
    expect_same("answer", answer, {"diagnostics": [], "summary": {"errors": 0, "warnings": 0, "listeners": 1, "routes": 1, "services": 1}})
    result = run(t, "check", "--json", "-c", "-", text=GOOD + "chains: { c: {} }\n")
    answer = json.loads(result.stdout)
    expect_same("exit", result.returncode, 0)
    expect_same("warning", [(d["severity"], d["line"]) for d in answer["diagnostics"]], [("warning", 5)])
    expect_same("summary", answer["summary"]["warnings"], 1)


@case("check: a cache that stores cookies causes a warning, the other rules do not", nginx=NO)
def _(t: Trial) -> None:
    for rule in ("store", "strip", "pass"):
        chains = f"chains: {{ c: {{ middlewares: [{{ httpCache: {{ setCookie: {rule} }} }}] }} }}\n"
        result = run(t, "check", "-c", "-", text=GOOD.replace("routes: [{ ", "routes: [{ chain: c, ") + chains)
        expect_same("exit", result.returncode, 0)
        check(("warning: httpCache.setCookie: all clients" in result.stderr) == (rule == "store"), result.stderr)


@case("check: interpolation accepts a value, a default and $$", nginx=NO)
def _(t: Trial) -> None:
    text = GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_HOST}:${HTTPWARE_TEST_PORT:-3000}") + "chains: { c: { middlewares: [{ mock: { body: \"$$5\" } }] } }\n"
    expect_same("exit", checked(t, text, environment={"HTTPWARE_TEST_HOST": "127.0.0.1"}).returncode, 0)


@case("check: a value cannot inject structure", nginx=NO)
def _(t: Trial) -> None:
    text = GOOD + "chains: { c: { middlewares: [{ mock: { body: \"${HTTPWARE_TEST_EVIL}\" } }] } }\n"
    expect_same("exit", checked(t, text, environment={"HTTPWARE_TEST_EVIL": "\" } }] }, d: { x: y"}).returncode, 0)


@case("check: a missing file is exit 3", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "check", "-c", "/nonexistent/httpware.yaml")
    expect_same("exit", result.returncode, 3)
    check("/nonexistent/httpware.yaml" in result.stderr, result.stderr)


@case("usage errors are exit 64", nginx=NO)
def _(t: Trial) -> None:
    for arguments in (["nonsense"], ["run", "--nonsense"], ["check", "-c"], ["run", "--workers", "none"]):
        expect_same(f"exit of {arguments}", run(t, *arguments).returncode, 64)


@case("version and help are printed", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "version")
    expect_same("exit", result.returncode, 0)
    check("libevent" in result.stdout, "no library versions:", result.stdout)
    answer = json.loads(run(t, "version", "--json").stdout)
    check(answer["version"] in result.stdout and f"commit {answer['commit']}\n" in result.stdout, result.stdout, answer)
    for name, version in answer["libraries"].items():
        check(f"{name} {version}\n" in result.stdout, name, version, result.stdout)
    for arguments in (["--help"], ["run", "--help"], ["check", "--help"], ["explain", "--help"], ["proxy", "--help"], ["schema", "--help"], ["wares", "--help"]):
        expect_same("exit", run(t, *arguments).returncode, 0)


@case("wares: a table, one ware and JSON of both are printed; an unknown name is answered with a similar one", nginx=NO)
def _(t: Trial) -> None:
    table = run(t, "wares")
    wares = json.loads(run(t, "wares", "--json").stdout)
    expect_same("rows", len(table.stdout.splitlines()), len(wares))
    for ware, row in zip(wares, table.stdout.splitlines()):
        check(row.split()[:2] == [ware["name"], ware["side"]] and row.endswith(ware["sentence"]), row, ware)
    page = run(t, "wares", "bodyLimit").stdout
    for word in ("both", "10MiB", "1B … ", "RFC 9110 §15.5.14", "- bodyLimit:"):
        check(word in page, f"{word!r} is not in:", page)
    one = json.loads(run(t, "wares", "bodyLimit", "--json").stdout)
    check(one in wares, one)
    expect_same("option", [(o["key"], o["default"]) for o in one["options"] if o["key"] == "max"], [("max", "10MiB")])
    wrong = run(t, "wares", "bodyLimitt")
    expect_same("exit", (wrong.returncode, wrong.stdout), (1, ""))
    check('did you mean "bodyLimit"?' in wrong.stderr, wrong.stderr)
    expect_same("exit", run(t, "wares", "--markdown", "--json").returncode, 64)
    check(run(t, "wares", "bodyLimit", "--markdown").stdout.startswith("# bodyLimit\n\nRefuses content"), "no page in Markdown")
    check("| [`bodyLimit`](doc:ware-bodyLimit) | both |" in run(t, "wares", "--markdown").stdout, "no list in Markdown")
    expect_same("exit", [run(t, "wares", *words).returncode for words in (["--into", "x"], ["bodyLimit", "--markdown", "--into", "x"])], [64, 64])
    folder = t.setup.place.subfolder("documentation")
    (folder / "Sizes.md").write_text("# Large content\n\nThe `bodyLimit` refuses it.\n")
    expect_same("exit", run(t, "wares", "--markdown", "--into", str(folder)).returncode, 0)
    check("- Articles: [Large content](doc:Sizes)\n" in (folder / "Wares/ware-bodyLimit.md").read_text(), "the article is not named")
    check(" | Large content" not in (folder / "Wares/ware-mock.md").read_text() and (folder / "Wares.md").exists(), "mock is not in the article")
    expect_same("exit", run(t, "wares", "--markdown", "--into", str(folder / "none")).returncode, 3)


@case("schema: the output is JSON Schema 2020-12", nginx=NO)
def _(t: Trial) -> None:
    schema = json.loads(run(t, "schema").stdout)
    expect_same("$schema", schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
    expect_same("unknown keys", schema["additionalProperties"], False)


EXPLAINED = """version: 1
listeners:
  web: { bind: "127.0.0.1:8080", chain: base }
  proxy: { bind: "127.0.0.1:8888", mode: forward }
services:
  api: { baseUrl: "http://127.0.0.1:@ORIGIN@/v1", headers: { X-Key: "${file:secret}" } }
chains:
  base:
    middlewares: [{ bodyLimit: { max: 5MiB } }]
    postwares: [{ accessLog: { output: "file:@FOLDER@/access.log" }, if: { status: 5xx } }]
  users:
    middlewares:
      - { requiredHeaders: { headers: [Authorization] }, if: { method: POST }, as: needsLogin }
      - requestHeaders: { set: { X-User: "{path.id}", X-Token: "a ${file:secret} {path.id}" } }
  slow: { middlewares: [{ mock: { delay: 1h } }] }
  moved: { middlewares: [{ redirect: { to: "https://example.com/new" } }] }
routes:
  - { name: status, match: { path: /status }, service: api }
  - { name: moved, match: { path: /old }, chain: moved }
  - { name: slow, match: { path: /slow }, service: api, chain: slow }
  - { name: users, match: { path: "/users/{id}" }, service: api, chain: users }
  - { name: out, listener: proxy, service: passthrough }
"""


def explained(t: Trial, *arguments: str) -> subprocess.CompletedProcess:
    folder = t.setup.place.subfolder("explain")
    (folder / "secret").write_text("s3cr3t%value\n")
    text = EXPLAINED.replace("@ORIGIN@", str(t.main.port)).replace("@FOLDER@", str(folder))
    (folder / "file.yaml").write_text(text)
    result = run(t, "explain", "-c", str(folder / "file.yaml"), *arguments)
    check("s3cr3t" not in result.stdout + result.stderr, "a secret is shown:", result.stdout)
    check(not (folder / "access.log").exists(), "a log file was opened")
    expect_same("requests at the origin", len(t.main.requests), 0)
    return result


@case("explain: route, service, chain and the upstream request are printed, each with its line", nginx=NO)
def _(t: Trial) -> None:
    result = explained(t, "GET", "http://a.test/users/7?x=1", "-H", "Accept: text/html")
    expect_same("exit", (result.returncode, result.stderr), (0, ""))
    # Lines with their places, and the head, whose order counts.
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    for start, place in (("listener  web", 3), ("route     users", 21), ("service   api", 6), ("  status: path is not /status", 18),
                         ("  moved: path is not /old", 19), ("  1. bodyLimit – passed", 9),
                         ("  2. needsLogin (requiredHeaders) – skipped", 13), ("  3. requestHeaders – passed", 14),
                         ("  1. accessLog – depends on the response", 10)):
        line = next((each for each in lines if each.startswith(start)), "")
        check(f"file.yaml:{place}:" in line, f"{start!r} has no place {place}:", result.stdout)
    check("          {path.id} = 7" in lines and "       { max: 5MiB }" in lines, result.stdout)
    where = lines.index(f"goes to 127.0.0.1:{t.main.port}")
    expect_same("head", lines[where + 1:], [
        "  GET /v1/users/7?x=1 HTTP/1.1", f"  Host: 127.0.0.1:{t.main.port}", "  Accept: text/html", "  X-User: 7",
        "  X-Token: a *** 7", "  X-Key: ***", "  Via: 1.1 httpware"])


@case("explain: --json prints the same as an object", nginx=NO)
def _(t: Trial) -> None:
    result = explained(t, "POST", "/users/7", "--json", "-H", "X-A: 1", "-H", "Authorization: Bearer mine")
    told = json.loads(result.stdout)
    expect_same("route", (told["listener"]["name"], told["route"]["name"], told["captures"]), ("web", "users", {"id": "7"}))
    expect_same("passed", [(each["name"], each["part"]) for each in told["passed"]],
                [("status", "path"), ("moved", "path"), ("slow", "path")])
    expect_same("middlewares", [(each["label"], each["ware"], each["decision"]) for each in told["middlewares"]],
                [("bodyLimit", "bodyLimit", "passed"), ("needsLogin", "requiredHeaders", "passed"), ("requestHeaders", "requestHeaders", "passed")])
    expect_same("options", told["middlewares"][0]["options"], {"max": "5MiB"})
    expect_same("upstream", told["upstream"]["head"]["line"], "POST /v1/users/7 HTTP/1.1")
    check("Authorization: ***" in told["upstream"]["head"]["fields"], told)


@case("explain: answers of wares, waits of wares and a missing route are shown", nginx=NO)
def _(t: Trial) -> None:
    told = json.loads(explained(t, "GET", "/old", "--json").stdout)
    expect_same("answer", (told["answer"]["by"], told["answer"]["status"], told["upstream"]), ("redirect", 308, None))
    check("Location: https://example.com/new" in told["answer"]["fields"], told)
    told = json.loads(explained(t, "GET", "/slow", "--json").stdout)
    expect_same("decision", (told["middlewares"][1]["decision"], told["answer"]), ("waits", None))
    told = json.loads(explained(t, "GET", "/nothing", "--json").stdout)
    expect_same("answer", (told["route"], told["answer"]["status"], len(told["passed"])), (None, 404, 5))
    told = json.loads(explained(t, "POST", "/users/7", "--json").stdout)
    expect_same("answer", (told["answer"]["by"], told["answer"]["status"]), ("needsLogin", 400))
    expect_same("behind it", told["middlewares"][2]["decision"], "not reached")


@case("explain: a wait for a token is shown, and the chain behind it", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("explain-token")
    (folder / "file.yaml").write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:8080" }} }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
credentials:
  orders: {{ grant: clientCredentials, tokenUrl: "http://127.0.0.1:{t.main.port}/token", clientId: a, clientSecret: hush-hush }}
chains: {{ orders: {{ middlewares: [{{ tokenRefresh: {{ credential: orders }} }}, {{ tokenInject: {{ credential: orders, header: X-Token }} }}, bodyLimit] }} }}
routes: [{{ service: api, chain: orders }}]
""")
    result = run(t, "explain", "-c", str(folder / "file.yaml"), "GET", "/a", "--json")
    expect_same("exit", (result.returncode, "hush" in result.stdout), (0, False))
    told = json.loads(result.stdout)
    expect_same("decisions", [each["decision"] for each in told["middlewares"]], ["waits", "waits", "passed"])
    check("X-Token: Bearer <token of orders>" in told["upstream"]["head"]["fields"], told)
    expect_same("requests at the authorization server", len(t.main.requests), 0)


@case("run: a failure to write a log is reported on standard error once", nginx=NO)
def _(t: Trial) -> None:
    for output in ("own", "access"):
        port = free_port()
        own = "file:/dev/full" if output == "own" else f"file:{t.setup.place.subfolder('log')}/own.log"
        process = t.setup.place.gateway(t.setup.binary, f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
chains: {{ all: {{ middlewares: [mock], postwares: [{{ accessLog: {{ output: "{'file:/dev/full' if output == 'access' else 'stdout'}" }}, if: {{ path: /logged }} }}, {{ timeLog: {{ slow: 1ms }} }}] }} }}
routes: [{{ chain: all }}]
log: {{ output: "{own}", level: debug }}
""", [port])
        t.at_end(process.stop)
        for _ in range(5):
            client = connect(("127.0.0.1", port))
            t.clients.append(client)
            client.send(head(start=b"GET /logged HTTP/1.1"))
            expect_status(client.read_response(), 200)
            pause(0.15, Why.BEFORE)
        line = "error: log lines cannot be written to file:/dev/full: No space left on device"
        check(eventually(lambda: line in process.log, 5), process.log[-500:])
        expect_same(f"lines, {output}", process.log.count(line), 1)


@case("explain: credentials in a URL and control characters for a terminal are masked", nginx=NO)
def _(t: Trial) -> None:
    for more in ([], ["--json"]):
        told = explained(t, "GET", "/users/7?token=mine&x=\u202e1", "-H", "X-A: \x1b[31m\x9b", *more).stdout
        check("mine" not in told and "token=…&x=" in told, told)
        check("\x1b" not in told, told)
    told = explained(t, "GET", "/users/7?x=\u202e1", "-H", "X-A: \x1b[31m\x9b").stdout
    check("\u202e" not in told and "\x9b" not in told and "?[31m" in told, told)


@case("explain: requests of a forward listener, and CONNECT, are explained", nginx=NO)
def _(t: Trial) -> None:
    result = explained(t, "CONNECT", "example.org:443")
    check("opens a tunnel to example.org:443" in result.stdout, result.stdout)
    result = explained(t, "GET", "http://example.org/a", "--listener", "proxy")
    check("goes to example.org:80" in result.stdout, result.stdout)
    result = explained(t, "GET", "http://127.0.0.1/a", "--listener", "proxy")
    check("answers 403" in result.stdout and "private" in result.stdout, result.stdout)


@case("explain: https is assigned to listeners with tls, http to listeners without", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("schemes")
    file = folder / "file.yaml"
    files = certificates()
    tls = "tls: { cert: \"%s\", key: \"%s\" }" % (files / "a.pem", files / "a.key")
    clear, secure, usual = ('web: { bind: "127.0.0.1:8080" }', f'more: {{ bind: "127.0.0.1:8443", {tls} }}', f'shop: {{ bind: "0.0.0.0:443", {tls} }}')

    def listener(url: str, *listeners: str) -> str:
        file.write_text(GOOD.replace('web: { bind: "127.0.0.1:8080" }', ", ".join(listeners)).replace("http://127.0.0.1:3000", "https://127.0.0.1:3000/base"))
        result = run(t, "explain", "GET", url, "-c", str(file), "--json")
        if result.returncode:
            return result.stderr
        told = json.loads(result.stdout)
        expect_same("endpoint", told["service"]["endpoints"][0]["url"], "https://127.0.0.1:3000/base")
        return told["listener"]["name"]

    for url, name in (("https://a.test/", "shop"), ("HTTPS://a.test:8443/", "more"), ("https://a.test:9/", "more"),
                      ("http://a.test:8443/", "web"), ("http://a.test/", "web"), ("/", "web")):
        expect_same(url, listener(url, clear, secure, usual), name)
    check("no listener has tls" in listener("https://a.test/", clear))
    check("every listener has tls" in listener("http://a.test/", secure))


@case("explain: an invalid request, listener or configuration is an error", nginx=NO)
def _(t: Trial) -> None:
    check("answers 400" in explained(t, "GET", "/%00").stdout)
    for arguments in (["G ET", "/"], ["GET", "/a b"], ["GET", "/", "-H", "X-A"], ["GET", "/", "-H", "X-A: 1\r\nX-B: 2"],
                      ["GET", "/", "--client", "nobody"], ["GET", "/", "--listener", "wbe"], ["GET"]):
        expect_same(f"exit of {arguments}", explained(t, *arguments).returncode, 64)
    for url in ("ftp://a/", "ws://a/", "nonsense://a/"):
        result = explained(t, "GET", url)
        check(result.returncode == 64 and "write http:// or https://" in result.stderr, result.stderr)
    result = explained(t, "CONNECT", "https://a:443")
    check(result.returncode == 64 and "HOST:PORT" in result.stderr, result.stderr)
    result = explained(t, "GET", "https://a/users/7", "--listener", "web")
    check(result.returncode == 64 and "listener web has no tls" in result.stderr, result.stderr)
    result = run(t, "explain", "-c", "-", "GET", "/", text="version: 2\n")
    expect_same("exit", (result.returncode, "error:" in result.stderr, result.stdout), (1, True, ""))


@case("run: an invalid file is exit 1 before a listener opens", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "run", "-c", "-", text="version: 2\n")
    expect_same("exit", result.returncode, 1)


@case("run: a port in use is exit 3, with the port in the message", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "run", "-c", "-", text=GOOD.replace("8080", str(t.main.port)))
    expect_same("exit", result.returncode, 3)
    check(str(t.main.port) in result.stderr, result.stderr)


@case("run: a port of another httpware is exit 3 and not shared with it, for listeners and admin", nginx=NO)
def _(t: Trial) -> None:
    process, port = started(t)
    folder = t.setup.place.subfolder("second")
    free = free_port()
    for line, text in ((2, GOOD.replace("8080", str(port))), (2, GOOD.replace("127.0.0.1:8080", f"0.0.0.0:{port}")),
                       (5, GOOD.replace("8080", str(free)) + f'admin: {{ bind: "127.0.0.1:{port}", token: none }}\n')):
        (folder / "file.yaml").write_text(text)
        result = run(t, "run", "-c", str(folder / "file.yaml"))
        expect_same("exit", result.returncode, 3)
        where = "admin" if line == 5 else "listeners.web"
        check(f"file.yaml:{line}:" in result.stderr and f"{where}: cannot listen on " in result.stderr, result.stderr)
        check("ddress already in use" in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr)
    for command in (["proxy", "http://127.0.0.1:1", "--listen", f"127.0.0.1:{port}"],):
        result = run(t, *command)
        expect_same("exit", (result.returncode, f"127.0.0.1:{port}" in result.stderr), (3, True))
        check(result.stderr.startswith("httpware proxy: cannot listen on ") and result.stderr.endswith("; choose another address with --listen\n"), result.stderr)
    # A closing socket does not hold the port: it can be taken at once.
    client = open_client(t, port)
    client.send(head())
    expect_status(client.read_response("GET"), 200)
    process.signal(signal.SIGTERM)
    process.popen.wait(10)
    again = t.setup.place.gateway(t.setup.binary, GOOD.replace("8080", str(port)), [port])
    t.at_end(again.stop)


def with_output(t: Trial, output: str, *arguments: str) -> subprocess.CompletedProcess:
    """Standard output as the shell sets it: `>/dev/full`, `>&-`, `| head -c 0`."""
    command = " ".join(shlex.quote(each) for each in (t.setup.binary, *arguments))
    return subprocess.run(["bash", "-c", f"{command} {output}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL, env={**os.environ, "SWIFT_BACKTRACE": "enable=no"})


@case("a result that cannot be written is exit 3 with a line of the reason; without a reader the command ends silently", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("output")
    file = str(folder / "file.yaml")
    Path(file).write_text(GOOD)
    for arguments in (["check", "-c", file], ["check", "--json", "-c", file], ["explain", "GET", "/", "-c", file],
                      ["explain", "GET", "/", "-c", file, "--json"], ["diff", file, file], ["diff", file, file, "--json"], ["schema"],
                      ["wares"], ["wares", "bodyLimit"], ["wares", "--markdown"], ["wares", "mock", "--markdown"], ["version"], ["version", "--json"]):
        for output in (">/dev/full", ">&-"):
            result = with_output(t, output, *arguments)
            errors = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
            expect_same(f"exit of {arguments} {output}", (result.returncode, len(errors)), (3, 1))
            check(errors[0].startswith("standard output cannot be written: "), result.stderr)
        result = with_output(t, "| true", *arguments)
        check(result.returncode in (0, 128 + signal.SIGPIPE), arguments, result.returncode)
        expect_same(f"errors of {arguments}", [line for line in result.stderr.splitlines() if not line.startswith("note: ")], [])


@case("run: sockets and files never take the numbers of closed standard streams", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    file = t.setup.place.subfolder("closed") / "file.yaml"
    file.write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", chain: all }} }}
chains: {{ all: {{ middlewares: [{{ mock: {{ body: said }} }}], postwares: [accessLog] }} }}
""")
    command = f"exec {shlex.quote(t.setup.binary)} run -c {shlex.quote(str(file))} <&- >&- 2>&-"
    process = t.setup.place.command(["bash", "-c", command], [port])
    t.at_end(process.stop)
    for _ in range(3):
        client = open_client(t, port)
        client.send(head())
        expect_same("body", client.read_response("GET").body, b"said")
        pause(0.15, Why.NOTHING)  # the access log's line would come
        client.send(head())
        expect_same("body", client.read_response("GET").body, b"said")
    for descriptor, mode in ((0, 1), (1, 0), (2, 0)):
        expect_same("file", os.readlink(f"/proc/{process.pid}/fd/{descriptor}"), "/dev/null")
        flags = Path(f"/proc/{process.pid}/fdinfo/{descriptor}").read_text()
        expect_same("access mode", int(re.search(r"flags:\s*(\d+)", flags)[1], 8) & 3, mode)


for path in sorted(path for path in (Path(__file__).parents[3] / "conf").rglob("*.yaml") if not path.name.endswith(".test.yaml")):
    if path.parent.name.endswith(".d") or path.name == "tls.yaml":
        continue

    @case(f"check: conf/{path.relative_to(Path(__file__).parents[3] / 'conf')} is valid", nginx=NO)
    def _(t: Trial, path: Path = path) -> None:
        result = run(t, "check", "-c", str(path), environment=own_home(t))
        expect_same("exit", (result.returncode, result.stderr if result.returncode else ""), (0, ""))


@case("conf/tls.yaml runs, with a certificate made by its own command", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("tls-example")
    text = (Path(__file__).parents[3] / "conf" / "tls.yaml").read_text()
    line = next(each for each in text.splitlines() if each.startswith("#   openssl "))
    subprocess.run(line[1:], shell=True, cwd=folder, check=True, capture_output=True, timeout=30)
    secure, plain = free_port(), free_port()
    file = folder / "tls.yaml"
    file.write_text(text)
    result = run(t, "check", "-c", str(file))
    check(result.returncode == 0 and all(line.startswith("note: ") for line in result.stderr.splitlines()), result)
    file.write_text(text.replace("8443", str(secure)).replace("8080", str(plain)))
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(file)], [secure, plain])
    t.at_end(process.stop)
    curl = ["curl", "-sS", "--max-time", "5", "--cacert", str(folder / "localhost.pem"), "-w", " %{http_version} %{response_code}"]
    for more, expected in ((["--http2"], "hello over TLS\n 2 200"), (["--http1.1"], "hello over TLS\n 1.1 200")):
        answer = subprocess.run([*curl, *more, f"https://localhost:{secure}/hello"], capture_output=True, text=True, timeout=10)
        expect_same("answer", (answer.stdout, answer.stderr), (expected, ""))
    answer = subprocess.run([*curl, "-o", "/dev/null", "-w", "%{redirect_url}", f"http://localhost:{plain}/a"], capture_output=True, text=True, timeout=10)
    check(answer.stdout.endswith(f"https://localhost:{secure}/a"), answer.stdout)


def started(t: Trial, config: str = "", **more) -> tuple[Process, int]:
    port = free_port()
    text = config or f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
routes: [{{ service: api }}]
"""
    process = t.setup.place.gateway(t.setup.binary, text.replace("@PORT@", str(port)), [port], **more)
    t.at_end(process.stop)
    return process, port


def open_client(t: Trial, port: int):
    client = connect(("127.0.0.1", port))
    t.clients.append(client)
    return client


@case("run: the addresses of the listeners are logged", nginx=NO)
def _(t: Trial) -> None:
    process, port = started(t)
    check(eventually(lambda: str(port) in process.log), process.log)


@case("run: SIGTERM without requests ends at once with exit 0", nginx=NO)
def _(t: Trial) -> None:
    process, _ = started(t)
    began = time.monotonic()
    process.signal()
    expect_same("exit", process.wait(3), 0)
    check(time.monotonic() - began < 1.5, "slow")


@case("run: SIGTERM closes idle connections", nginx=NO)
def _(t: Trial) -> None:
    process, port = started(t)
    client, fresh = open_client(t, port), open_client(t, port)
    client.send(head())
    expect_status(client.read_response(), 200)
    process.signal()
    check(client.ends(2) and fresh.ends(2), "idle connections stay open")
    expect_same("exit", process.wait(3), 0)


@case("run: SIGTERM closes the listeners, finishes running requests, and sends Connection: close", nginx=NO)
def _(t: Trial) -> None:
    gate = threading.Event()

    def script(c: OriginConnection) -> None:
        c.serve()
        gate.wait(5)
        c.send(OK)
        c.serve()

    t.origin(script)
    process, port = started(t)
    client, late = open_client(t, port), open_client(t, port)
    client.send(head())
    late.send(b"GET /late HTTP/1.1\r\nHost: a.t")  # a head that has begun is finished too
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    process.signal()

    def refuses() -> bool:
        try:
            connect(("127.0.0.1", port)).close()
            return False
        except OSError:
            return True

    check(eventually(refuses, 2), "still accepts connections after SIGTERM")
    late.send(b"est\r\n\r\n")
    gate.set()
    for each in (client, late):
        response = each.read_response()
        expect_same("body", response.body, b"ok")
        check("close" in response.options(), "no Connection: close while draining:", response)
        check(each.ends(2), "stays open")
    expect_same("exit", process.wait(3), 0)


@case("run: SIGTERM lets an upload and a download finish", nginx=NO)
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        c.serve()
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        for octet in b"hello":
            pause(0.1, Why.SLOW)
            c.send(bytes([octet]))

    t.origin(script)
    process, port = started(t)
    client = open_client(t, port)
    client.send(head(b"Content-Length: 5", start=b"POST / HTTP/1.1") + b"he")
    pause(0.1, Why.BEFORE)
    process.signal()
    pause(0.2, Why.BEFORE)
    client.send(b"llo")
    response = client.read_response()
    expect_same("response", (response.status, response.body, response.whole), (200, b"hello", True))
    expect_same("exit", process.wait(3), 0)


@case("run: a second SIGTERM stops at once", nginx=NO)
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.fill()))
    process, port = started(t)
    client = open_client(t, port)
    client.send(head())
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    process.signal()
    check(process.wait(0.5) is None, "did not wait for the exchange")
    process.signal()
    check(process.wait(2) is not None, "a second SIGTERM did not stop it")


@case("run: SIGINT has the effect of SIGTERM", nginx=NO)
def _(t: Trial) -> None:
    process, _ = started(t)
    process.signal(signal.SIGINT)
    check(process.wait(3) in (0, 130, -2), f"exit {process.popen.returncode}")


@case("run: several loops serve the same port", nginx=NO)
def _(t: Trial) -> None:
    _, port = started(t, workers=3)
    for _ in range(30):
        client = open_client(t, port)
        client.send(head())
        expect_status(client.read_response(), 200)


@case("run: a Unix socket is opened, and a stale one is replaced", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("socket")
    config = f'version: 1\nlisteners: {{ web: {{ bind: "127.0.0.1:@PORT@" }}, local: {{ bind: "unix:{folder}/s" }} }}\nservices: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}\nroutes: [{{ service: api }}]\n'
    for _ in range(2):
        process, _ = started(t, config)
        clients: list = []

        def connected() -> bool:  # the process that was started waits for the other listener only
            try:
                clients.append(connect(f"{folder}/s"))
            except OSError:
                return False
            return True

        check(eventually(connected), "nobody listens")
        client = clients[0]
        t.clients.append(client)
        client.send(head())
        expect_status(client.read_response(), 200)
        process.signal(signal.SIGKILL)  # leaves the socket behind
        process.wait(3)


@case("proxy URL: a reverse proxy runs without a file", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    process = t.setup.place.command([t.setup.binary, "proxy", f"http://127.0.0.1:{t.main.port}", "--listen", f"127.0.0.1:{port}"], [port])
    t.at_end(process.stop)
    client = open_client(t, port)
    client.send(head(start=b"GET /seen HTTP/1.1"))
    expect_status(client.read_response(), 200)
    check(eventually(lambda: "/seen" in process.log, 5), "no line per request:", process.log)
    process.signal()
    expect_same("exit", process.wait(3), 0)


@case("run: two SIGTERMs end an endless response, and no child process remains", nginx=NO)
def _(t: Trial) -> None:
    if not Path("/proc").exists():
        raise Skip("no /proc")
    process, _ = started(t, workers=2)
    check(len(os.listdir(f"/proc/{process.pid}/task")) <= 12, "too many threads")
    process.signal()
    process.signal()
    check(process.wait(3) is not None)


# proxy, with and trace: what people see of their requests.


def plain_line(line: str) -> list[str]:
    """Time, method, target, status, duration, size and the rest."""
    return line.split("  ")


@case("proxy URL: a line has time, method, target, status, duration, size and phases, with credentials masked", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    process = t.setup.place.command([t.setup.binary, "proxy", f"http://127.0.0.1:{t.main.port}", "--listen", f"127.0.0.1:{port}"], [port])
    t.at_end(process.stop)
    client = open_client(t, port)
    client.send(head(start=b"GET /seen?token=abc&page=2 HTTP/1.1"))
    expect_status(client.read_response(), 200)
    check(eventually(lambda: "/seen" in process.log, 5), "no line:", process.log)
    line = next(line for line in process.log.splitlines() if "/seen" in line)
    when, method, target, status, duration, size, phases = plain_line(line)
    check(len(when) == 8 and when.count(":") == 2, line)
    expect_same("line", (method, target, status), ("GET", "/seen?token=…&page=2", "200"))
    check(duration.endswith(" ms") and size == "2 B" and "wait" in phases, line)
    check("\x1b" not in process.log, "colours, and no terminal")


@case("proxy URL --json: each line is an object", nginx=NO)
def _(t: Trial) -> None:
    port = free_port()
    process = t.setup.place.command([t.setup.binary, "proxy", "--json", f"http://127.0.0.1:{t.main.port}", "--listen", f"127.0.0.1:{port}"], [port])
    t.at_end(process.stop)
    client = open_client(t, port)
    client.send(head(start=b"GET /seen HTTP/1.1"))
    expect_status(client.read_response(), 200)
    check(eventually(lambda: "/seen" in process.log, 5), "no line:", process.log)
    shown = json.loads(next(line for line in process.log.splitlines() if line.startswith("{")))
    expect_same("object", (shown["method"], shown["target"], shown["status"], shown["responder"]), ("GET", "/seen", 200, "upstream"))


@case("proxy URL: an invalid URL is exit 1, and --cache is not offered", nginx=NO)
def _(t: Trial) -> None:
    expect_same("exit", run(t, "proxy", "nonsense").returncode, 1)
    expect_same("exit", run(t, "proxy", "http://127.0.0.1:1", "--cache").returncode, 64)


def on_terminal(t: Trial, arguments: list[str], columns: int, environment: dict[str, str], work: Callable[[int], None], ready: bytes) -> bytes:
    """The output of the command on a terminal of `columns` columns, while `work` runs; ended by Ctrl-C."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
        os.execve(arguments[0], arguments, {**base, "SWIFT_BACKTRACE": "enable=no", "TERM": "xterm", "LANG": "C.UTF-8", **environment})
    output, hasWorked, ends = b"", False, time.monotonic() + 15
    try:
        poll = select.poll()
        poll.register(terminal, select.POLLIN)
        while time.monotonic() < ends:
            if poll.poll(50):
                try:
                    output += os.read(terminal, 65536)
                except OSError:
                    break  # the command has ended
            if not hasWorked and ready in output:
                hasWorked = True
                work(terminal)
    finally:
        os.close(terminal)
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(child, 0)
    return output


def seen_on_terminal(t: Trial, columns: int, **environment: str) -> list[str]:
    port = free_port()

    def work(terminal: int) -> None:
        eventually(lambda: _accepts(port), 5)
        client = open_client(t, port)
        client.send(head(start=b"GET /seen/" + b"long/" * 40 + b" HTTP/1.1"))
        expect_status(client.read_response(), 200)
        pause(0.2, Why.BEFORE)
        os.write(terminal, b"\x03")

    arguments = [t.setup.binary, "proxy", f"http://127.0.0.1:{t.main.port}", "--listen", f"127.0.0.1:{port}"]
    output = on_terminal(t, arguments, columns, environment, work, b"try: ")
    return output.decode(errors="replace").splitlines()


def _accepts(port: int) -> bool:
    try:
        connect(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


@case("proxy URL: a line on a terminal has its width, and colours", nginx=NO)
def _(t: Trial) -> None:
    for columns in (80, 120):
        line = next(line for line in seen_on_terminal(t, columns) if "/seen" in line)
        check("\x1b[32m200\x1b[0m" in line, "no colours:", repr(line))
        plain = re.sub(r"\x1b\[\d*m", "", line)
        check(columns - 22 <= len(plain) <= columns, f"{len(plain)} of {columns} columns:", plain)


@case("proxy URL: NO_COLOR removes the colours on a terminal", nginx=NO)
def _(t: Trial) -> None:
    lines = seen_on_terminal(t, 100, NO_COLOR="1")
    check(any("/seen" in line for line in lines), lines)
    check(not any("\x1b" in line for line in lines), "colours:", lines)


def own_home(t: Trial) -> dict[str, str]:
    """The environment of a user who has an authority already."""
    folder = t.setup.place.folder / "home"
    if not folder.exists():
        folder.mkdir()
        made = run(t, "ca", "init", environment={"HOME": str(folder), "XDG_DATA_HOME": ""})
        expect_same("ca init", made.returncode, 0)
    return {"HOME": str(folder), "XDG_DATA_HOME": ""}


def with_command(t: Trial, *arguments: str, **more) -> subprocess.CompletedProcess:
    environment = {name: "" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")}
    return run(t, "with", *arguments, environment={**environment, **own_home(t), **more.pop("environment", {})}, **more)


@case("ca show: --json has the certificate's file, subject, digest and expiry, and the stores that trust it", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "ca", "show", "--json", environment=own_home(t))
    expect_same("exit", result.returncode, 0)
    shown = json.loads(result.stdout)
    expect_same("members", list(shown), ["certificate", "subject", "sha256", "expires", "trustedBy"])
    text = subprocess.run(["openssl", "x509", "-in", shown["certificate"], "-noout", "-fingerprint", "-sha256", "-enddate", "-dateopt", "iso_8601"],
                          capture_output=True, text=True, timeout=10).stdout
    expect_same("digest", shown["sha256"].replace(":", "").upper() in text.replace(":", "").upper(), True)
    expect_same("expiry", shown["expires"][:10] in text, True)
    expect_same("stores", shown["trustedBy"], [])


FETCH = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"


@case("with: requests of curl and Python go through the proxy, to local servers too, and --show prints each", nginx=NO)
def _(t: Trial) -> None:
    url = f"http://127.0.0.1:{t.main.port}/asked?key=abc"
    for command in ([sys.executable, "-c", FETCH, url], ["curl", "-sS", url]):
        if not shutil.which(command[0]):
            raise Skip(f"no {command[0]}")
        result = with_command(t, "--show", "--", *command)
        expect_same("result", (result.returncode, result.stdout), (0, "ok"))
        lines = [line for line in result.stderr.splitlines() if "/asked" in line]
        expect_same("lines", len(lines), 1)
        _, method, target, status, *_ = plain_line(lines[0])
        expect_same("line", (method, target, status), ("GET", f"http://127.0.0.1:{t.main.port}/asked?key=…", "200"))
    check(all(request.get("Via") for request in t.main.requests), "a request did not come through the proxy")


@case("with --inspect: on a terminal the page stays when the command has ended, until a key, Ctrl-C or a signal; --no-keep ends it", nginx=NO)
def _(t: Trial) -> None:
    def ended(words: list[str], end: Callable[[int, int], object]) -> tuple[int, bool]:
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(t.setup.binary, [t.setup.binary, "with", "--inspect", *words], {**os.environ, **own_home(t), "SWIFT_BACKTRACE": "enable=no"})
        seen, stays = b"", False
        while True:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                break
            if b"stays open" in seen and not stays:
                stays = True
                port = int(re.findall(rb"127.0.0.1:(\d+)/ stays", seen)[0])
                connect(("127.0.0.1", port)).close()
                end(pid, terminal)
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), stays

    own_home(t)
    expect_same("key", ended(["--", "true"], lambda _, terminal: os.write(terminal, b"q")), (0, True))
    expect_same("Ctrl-C", ended(["--", "false"], lambda _, terminal: os.write(terminal, b"\x03")), (1, True))
    expect_same("signal", ended(["--", "true"], lambda pid, _: os.kill(pid, signal.SIGTERM)), (0, True))
    expect_same("--no-keep", ended(["--no-keep", "--", "true"], lambda *_: None), (0, False))


@case("with: the certificates that files of npm and curl name are trusted along with ours, and curl's options stay", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("settings")
    made = certificates()
    own = Path(made.folder) / "ca.pem"
    first = own.read_text().split("-----")[2].split()[0]
    home = own_home(t)
    file = folder / "own.pem"
    file.write_text(own.read_text())
    (Path(home["HOME"]) / ".npmrc").write_text(f"cafile={file}\n")
    (Path(home["HOME"]) / ".curlrc").write_text(f'cacert = "{file}"\nuser-agent = "mine"\n')
    try:
        shown = with_command(t, "--", "sh", "-c", 'cat "$npm_config_cafile" && cat "$CURL_HOME/.curlrc"').stdout
        check(first in shown and 'user-agent = "mine"' in shown and shown.rstrip().splitlines()[-1].startswith("proxy = "), shown[-600:])
        # In a folder of this user alone, whatever the rights of the file are.
        (Path(home["HOME"]) / ".curlrc").chmod(0o644)
        rights = Path(home["HOME"]).stat().st_mode & 0o777
        Path(home["HOME"]).chmod(0o700)
        expect_same("rights", with_command(t, "--", "sh", "-c", 'stat -c %a "$CURL_HOME/.curlrc"').stdout, "600\n")
        Path(home["HOME"]).chmod(rights)
        url = f"http://127.0.0.1:{t.main.port}/agent"
        expect_same("curl", with_command(t, "--", "curl", "-sS", url).stdout, "ok")
        check(t.main.requests[-1].get("Via") and t.main.requests[-1].get("User-Agent") == "mine", t.main.requests[-1])
        (Path(home["HOME"]) / ".curlrc").write_text('proxy = "http://127.0.0.1:9"\n')
        expect_same("a proxy of the file, without certificates", with_command(t, "--tunnel", "--", "curl", "-sS", url).stdout, "ok")
    finally:
        (Path(home["HOME"]) / ".npmrc").unlink()
        (Path(home["HOME"]) / ".curlrc").unlink()


@case("with: the first run makes the authority for a file with intercept, and init agent writes such a file", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("first-agent")
    home = {"HOME": str(folder), "XDG_DATA_HOME": ""}
    file = folder / "agent.yaml"
    made = run(t, "init", "agent", str(file), "--origin", "https://127.0.0.1", environment=home)
    expect_same("init", (made.returncode, "httpware with -c" in made.stderr), (0, True))
    check("127.0.0.1" in file.read_text(), file.read_text())
    words = ("with", "-c", str(file), "--", "sh", "-c", "echo $API_TOKEN")
    for sentences in (1, 0):
        result = run(t, *words, environment={**home, "API_TOKEN": "a-real-token"})
        expect_same("exit", result.returncode, 0)
        check(result.stdout.startswith("hwp_") and "a-real-token" not in result.stdout, result.stdout)
        expect_same("made", result.stderr.count("made a certificate authority"), sentences)
    check((folder / ".local/share/httpware/ca/ca.pem").exists(), list(folder.iterdir()))
    elsewhere = file.read_text().replace('{ hosts: ["*"] }', '{ hosts: ["*"], ca: elsewhere }')
    file.write_text(elsewhere)
    result = run(t, *words, environment=home)
    check(result.returncode == 1 and "httpware ca init --dir" in result.stderr, result.stderr)


@case("init agent: the file works for an origin server in a private network, and at another port", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("near-agent")
    home = {"HOME": str(folder), "XDG_DATA_HOME": ""}
    run(t, "ca", "init", environment=home)
    t.origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    file = folder / "agent.yaml"
    for origin, line in ((f"http://127.0.0.1:{t.main.port}", "forward: { denyPrivate: false }"), ("https://api.example.com:8443", "forward: { connectPorts: [443, 8443] }"),
                         ("https://[fd00::1]:8443", "forward: { connectPorts: [443, 8443], denyPrivate: false }"), ("https://api.example.com", "")):
        made = run(t, "init", "agent", str(file), "--force", "--origin", origin, environment=home)
        expect_same("init", (made.returncode, made.stderr.count("error")), (0, 0))
        check(line in file.read_text() and ("forward:" in file.read_text()) == bool(line), file.read_text())
        expect_same("check", run(t, "check", str(file), environment={**home, "API_TOKEN": "a-real-token"}).returncode, 0)
        if origin.startswith("http:"):
            url = f"http://127.0.0.1:{t.main.port}/x"
            result = run(t, "with", "-c", str(file), "--", "sh", "-c", f'curl -s -H "Authorization: Bearer $API_TOKEN" {url}', environment={**home, "API_TOKEN": "a-real-token"})
            expect_same("answer", (result.returncode, result.stdout), (0, "ok"))
            check(t.main.requests and t.main.requests[-1].get("Authorization") == "Bearer a-real-token", [request.get("Authorization") for request in t.main.requests])


@case("with: CONNECT to each port is allowed, and without --show the command's output is unchanged", nginx=NO)
def _(t: Trial) -> None:
    code = ("import os, socket, urllib.parse; p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY']); "
            f"s = socket.create_connection((p.hostname, p.port)); s.sendall(b'CONNECT 127.0.0.1:{t.main.port} HTTP/1.1\\r\\nHost: 127.0.0.1:{t.main.port}\\r\\n\\r\\n'); "
            "print(s.recv(100).split()[1].decode())")
    result = with_command(t, "--", sys.executable, "-c", code)
    expect_same("result", (result.returncode, result.stdout, result.stderr), (0, "200\n", ""))


@case("with: the exit status is the command's, 128 and more after signals, 126 or 127 if it did not start", nginx=NO)
def _(t: Trial) -> None:
    for command, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137),
                            (["/nonexistent"], 127), (["/etc/passwd"], 126)):
        expect_same(f"exit of {command}", with_command(t, "--", *command).returncode, status)
    for arguments in ([], ["--"], ["true"], ["--nonsense", "--", "true"]):
        expect_same(f"exit of with {arguments}", with_command(t, *arguments).returncode, 64)


@case("with: input and output are the command's own, and its arguments are unchanged", nginx=NO)
def _(t: Trial) -> None:
    result = with_command(t, "--", "sh", "-c", 'cat; echo "$1|$2" >&2', "sh", "--show", "a b", text="from outside")
    expect_same("result", (result.stdout, result.stderr), ("from outside", "--show|a b\n"))


@case("with: the proxy is named by every spelling of the variables, and excluded hosts stay excluded", nginx=NO)
def _(t: Trial) -> None:
    show = "import os; print(*(os.environ.get(n, '-') for n in ('HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy')), sep='|')"
    values = with_command(t, "--", sys.executable, "-c", show).stdout.strip().split("|")
    check(values[0].startswith("http://127.0.0.1:") and values[:4] == [values[0]] * 4, values)
    expect_same("left out", values[4:], ["", ""])
    values = with_command(t, "--", sys.executable, "-c", show, environment={"NO_PROXY": "a.test", "no_proxy": "b.test"}).stdout.strip().split("|")
    expect_same("left out", values[4:], ["a.test", "b.test"])


@case("with: a signal is passed on to the command once", nginx=NO)
def _(t: Trial) -> None:
    code = "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: (print('interrupted', flush=True), sys.exit(5)))\nprint('ready', flush=True)\ntime.sleep(10)"
    process = t.setup.place.command([t.setup.binary, "with", "--", sys.executable, "-c", code], [], environment=own_home(t))
    t.at_end(process.stop)
    check(eventually(lambda: "ready" in process.log, 5), process.log)
    process.signal(signal.SIGINT)
    expect_same("exit", process.wait(5), 5)
    expect_same("times", process.log.count("interrupted"), 1)


@case("with: Ctrl-C on the terminal reaches the command once, and with waits for its exit", nginx=NO)
def _(t: Trial) -> None:
    code = "import signal, sys, time\ncount = []\nsignal.signal(signal.SIGINT, lambda *_: (count.append(1), print('interrupted', flush=True)))\n" \
        "print('ready', flush=True)\ntime.sleep(1)\ntime.sleep(1)\nprint('ended after', len(count), flush=True)"
    output = on_terminal(t, [t.setup.binary, "with", "--", sys.executable, "-c", code], 80, own_home(t), lambda terminal: os.write(terminal, b"\x03"), b"ready")
    check(b"ended after 1" in output, output)


@case("with -c: the chain of the file's forward listener runs, and a file without such a listener is exit 1", nginx=NO)
def _(t: Trial) -> None:
    config = f"""version: 1
listeners: {{ out: {{ bind: "127.0.0.1:{free_port()}", mode: forward, forward: {{ denyPrivate: false }}, chain: marks }} }}
chains: {{ marks: {{ middlewares: [{{ requestHeaders: {{ set: {{ X-Marked: "by the file" }} }} }}] }} }}
routes: [{{ service: passthrough }}]
"""
    folder = t.setup.place.subfolder("with")
    (folder / "forward.yaml").write_text(config)
    (folder / "reverse.yaml").write_text(GOOD)
    url = f"http://127.0.0.1:{t.main.port}/asked"
    result = with_command(t, "-c", str(folder / "forward.yaml"), "--", sys.executable, "-c", FETCH, url)
    expect_same("result", (result.returncode, result.stdout), (0, "ok"))
    expect_same("field", t.main.requests[-1].get("X-Marked"), "by the file")
    result = with_command(t, "-c", str(folder / "reverse.yaml"), "--", "true")
    check(result.returncode == 1 and "forward" in result.stderr, result)


@case("with -c: if a gateway runs already, the command uses it", nginx=NO)
def _(t: Trial) -> None:
    config = """version: 1
listeners: { out: { bind: "127.0.0.1:@PORT@", mode: forward, forward: { denyPrivate: false } } }
routes: [{ service: passthrough }]
"""
    process, port = started(t, config)
    folder = t.setup.place.subfolder("with")
    (folder / "forward.yaml").write_text(config.replace("@PORT@", str(port)))
    result = with_command(t, "--show", "-c", str(folder / "forward.yaml"), "--", "sh", "-c", "echo $http_proxy")
    expect_same("proxy", (result.returncode, result.stdout), (0, f"http://127.0.0.1:{port}\n"))
    check("trace" in result.stderr, result.stderr)


def observed(t: Trial) -> tuple[int, str, Process]:
    """A gateway with an admin listener that wants a token: its port, the address of the listener."""
    admin = free_port()
    process, port = started(t, f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:@PORT@" }} }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
chains: {{ c: {{ middlewares: [requestId, {{ requestHeaders: {{ set: {{ X-Marked: "hidden-value" }}, remove: [X-Old] }} }}], postwares: [timeLog] }} }}
routes: [{{ name: everything, service: api, chain: c }}]
admin: {{ bind: "127.0.0.1:{admin}", token: "dGhpcy1pcy1sb25nLWVub3VnaA==" }}
""")
    check(eventually(lambda: _accepts(admin), 5), "no admin listener")
    return port, f"127.0.0.1:{admin}", process


SHOWN = {"HTTPWARE_ADMIN_TOKEN": "dGhpcy1pcy1sb25nLWVub3VnaA=="}


@case("trace: the last requests are listed, the newest last; one is shown step by step; both as JSON", nginx=NO)
def _(t: Trial) -> None:
    port, admin, _ = observed(t)
    for path in (b"/first", b"/second?token=abc"):
        client = open_client(t, port)
        client.send(head(b"X-Old: 1", start=b"GET " + path + b" HTTP/1.1"))
        expect_status(client.read_response(), 200)
    result = run(t, "trace", "--admin", admin, environment=SHOWN)
    expect_same("exit", (result.returncode, result.stderr), (0, ""))
    lines = [plain_line(line.strip()) for line in result.stdout.splitlines()]
    expect_same("targets", [line[3] for line in lines], ["/first", "/second?token=…"])
    number = lines[1][0]

    result = run(t, "trace", number, "--admin", admin, environment=SHOWN)
    expect_same("exit", (result.returncode, result.stderr), (0, ""))
    for part in ("GET /second?token=…", "route everything", "requestId", "+X-Request-Id", "requestHeaders", "+X-Marked", "-X-Old", "timeLog", "wait"):
        check(part.replace("…", "...") in result.stdout or part in result.stdout, f"{part} is not in:", result.stdout)
    check("hidden-value" not in result.stdout and "abc" not in result.stdout, result.stdout)

    one = json.loads(run(t, "trace", number, "--json", "--admin", admin, environment=SHOWN).stdout)
    check([ware["ware"] for ware in one["wares"] if ware["side"] == "request"] == ["requestId", "requestHeaders"], one)
    same = run(t, "trace", one["exchange"], "--json", "--admin", admin, environment=SHOWN)
    expect_same("by its own id", json.loads(same.stdout)["id"], number)
    many = [json.loads(line) for line in run(t, "trace", "--json", "--limit", "1", "--admin", admin, environment=SHOWN).stdout.splitlines()]
    expect_same("limit", [each["id"] for each in many], [number])


@case("trace -f: requests are printed as they end; with an ID it waits for that request", nginx=NO)
def _(t: Trial) -> None:
    port, admin, _ = observed(t)
    process = t.setup.place.command([t.setup.binary, "trace", "-f", "--admin", admin], [], environment=SHOWN)
    other = t.setup.place.command([t.setup.binary, "trace", "-f", "waited-for", "--admin", admin], [], environment=SHOWN)
    t.at_end(process.stop)
    t.at_end(other.stop)

    def ask(path: bytes, *fields: bytes) -> None:
        client = open_client(t, port)
        client.send(head(*fields, start=b"GET " + path + b" HTTP/1.1"))
        expect_status(client.read_response(), 200)

    def follows() -> bool:
        ask(b"/again")
        return "/again" in process.log

    check(eventually(follows, 10), process.log)

    def goes_on() -> bool:
        ask(b"/later")
        return "/later" in process.log

    check(eventually(goes_on, 10), process.log)

    def ends() -> bool:
        ask(b"/waited", b"X-Request-Id: waited-for")
        return not other.is_running

    check(eventually(ends, 10), "still waits:", other.log)
    check("requestHeaders" in other.log and "/again" not in other.log, other.log)
    expect_same("exit", other.wait(1), 0)


@case("trace: a missing or wrong token, an unknown ID and a missing gateway are errors with a remedy", nginx=NO)
def _(t: Trial) -> None:
    _, admin, _ = observed(t)
    for arguments, environment, code, word in (
            (["trace", "--admin", admin], {}, 1, "--token"),
            (["trace", "-f", "--limit", "0", "--admin", admin, "--token", "wrong"], {}, 1, "--token"),
            (["trace", "987654321", "--admin", admin], SHOWN, 1, "987654321"),
            (["trace", "--admin", f"127.0.0.1:{free_port()}"], {}, 3, "no admin listener answers"),
            (["trace", "--admin", f"127.0.0.1:{t.main.port}"], {}, 1, "not with records"),
            (["trace", "--admin", "nonsense"], {}, 64, "nonsense"),
            (["trace", "a/b", "--admin", admin], SHOWN, 64, "a/b"),
            (["trace", "-c", "/nonexistent.yaml"], {}, 3, "/nonexistent.yaml")):
        result = run(t, *arguments, environment=environment)
        check(result.returncode == code and word in result.stderr, f"{arguments}: {result.returncode} {result.stderr}")


@case("trace -c: the admin listener and the token are those of the configuration", nginx=NO)
def _(t: Trial) -> None:
    _, _, process = observed(t)
    result = run(t, "trace", "-c", str(process.folder / "httpware.yaml"))
    expect_same("exit", (result.returncode, result.stderr), (0, ""))
