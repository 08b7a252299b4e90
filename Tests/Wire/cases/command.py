"""The command: exit codes, errors that say where, draining."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from Rig.origins import OK, OriginConnection
from Rig.processes import Process, free_port
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .refused_requests import head

NO = "the command of httpware"

GOOD = """version: 1
listeners: { web: { bind: "127.0.0.1:8080" } }
services: { api: { baseUrl: "http://127.0.0.1:3000" } }
routes: [{ service: api }]
"""


def run(t: Trial, *arguments: str, environment: dict[str, str] | None = None, text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([t.setup.binary, *arguments], capture_output=True, text=True, timeout=10, input=text,
                          env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})})


def checked(t: Trial, text: str, **more) -> subprocess.CompletedProcess:
    folder = t.setup.place.subfolder("check")
    (folder / "file.yaml").write_text(text)
    return run(t, "check", "-c", str(folder / "file.yaml"), **more)


@case("check: a good file is exit 0", nginx=NO)
def _(t: Trial) -> None:
    result = checked(t, GOOD)
    expect_same("exit", (result.returncode, "error" in result.stderr), (0, False))


@case("check: standard input with -c -", nginx=NO)
def _(t: Trial) -> None:
    expect_same("exit", run(t, "check", "-c", "-", text=GOOD).returncode, 0)
    expect_same("exit", run(t, "check", "-c", "-", text="version: 2\n").returncode, 1)


@case("check: JSON is YAML", nginx=NO)
def _(t: Trial) -> None:
    text = '{"version": 1, "listeners": {"web": {"bind": "127.0.0.1:8080"}}, "services": {"api": {"baseUrl": "http://127.0.0.1:3000"}}, "routes": [{"service": "api"}]}'
    expect_same("exit", checked(t, text).returncode, 0)


def refused(name: str, text: str, *words: str, code: int = 1) -> None:
    @case(f"check: {name}", nginx=NO)
    def _(t: Trial) -> None:
        result = checked(t, text)
        expect_same("exit", result.returncode, code)
        for word in words:
            check(word in result.stderr, f"{word!r} is not in:", result.stderr)


refused("an unknown key, with the place and a suggestion", GOOD.replace("baseUrl", "baseUrll"), "file.yaml:3:20: error:", "baseUrll", "baseUrl")
refused("an unknown noun", GOOD + "rutes: []\n", "file.yaml:5:1: error:", "rutes", "routes")
refused("a duplicate key", GOOD + "routes: []\n", "file.yaml:5:1: error:", "routes")
refused("no version", GOOD.replace("version: 1\n", ""), "error:", "version")
refused("another version", GOOD.replace("version: 1", "version: 2"), "file.yaml:1:", "version")
refused("an unknown service", GOOD.replace("service: api", "service: apo"), "file.yaml:4:", "apo", "api")
refused("an unknown ware", GOOD + "chains: { c: { middlewares: [bodyLimitt] } }\n", "file.yaml:5:", "bodyLimitt", "bodyLimit")
refused("an unknown option of a ware", GOOD + "chains: { c: { middlewares: [{ bodyLimit: { maxx: 1MiB } }] } }\n", "file.yaml:5:", "maxx", '"max"')
refused("a byte count without a proper unit", GOOD + "chains: { c: { middlewares: [{ bodyLimit: { max: 10 mb } }] } }\n", "file.yaml:5:", "10 mb", "10MiB")
refused("a duration without a unit", GOOD.replace("3000\"", "3000\", timeouts: { connect: 5 }"), "file.yaml:3:", "5")
refused("a postware among the middlewares", GOOD + "chains: { c: { middlewares: [accessLog] } }\n", "file.yaml:5:", "accessLog")
refused("a cycle of chains", GOOD + "chains: { a: { middlewares: [use: b] }, b: { middlewares: [use: a] } }\n", "file.yaml:5:", "a → b → a")
refused("an unknown chain in use", GOOD + "chains: { a: { middlewares: [use: bb] } }\n", "file.yaml:5:", "bb")
refused("not YAML", "version: [1\n", "file.yaml:", "error:")
refused("an empty file", "", "error:")
refused("what is not built yet: TLS", GOOD.replace('8080"', '8080", tls: { cert: a, key: b }'), "file.yaml:2:", "tls", "not supported yet")
refused("what is not built yet: credentials", GOOD + "credentials: { a: { grant: static } }\n", "file.yaml:5:", "credentials", "not supported yet")
refused("what is not built yet: stores", GOOD + "stores: { a: { maxSize: 1MiB } }\n", "file.yaml:5:", "stores", "not supported yet")
refused("what is not built yet: an https origin", GOOD.replace("http://127", "https://127"), "file.yaml:3:", "not supported yet")
refused("an address to bind that is none", GOOD.replace('"127.0.0.1:8080"', '"127.0.0.1"'), "file.yaml:2:", "127.0.0.1")
refused("yes is no boolean", GOOD.replace('8080" }', '8080", mode: forward, forward: { denyPrivate: yes } }').replace("service: api", "service: passthrough"), "file.yaml:2:", "yes")
refused("a variable that is not set", GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_UNSET}"), "file.yaml:3:", "HTTPWARE_TEST_UNSET")
refused("a variable with a message", GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_UNSET:?say where it is}"), "file.yaml:3:", "say where it is")
refused("a secret file that is not there", GOOD.replace("127.0.0.1:3000", "${file:/nonexistent/secret}"), "file.yaml:3:", "/nonexistent/secret")
refused("an include that is not there", GOOD + "include: [missing.yaml]\n", "file.yaml:5:", "missing.yaml")
refused("an unknown placeholder", GOOD + 'chains: { c: { middlewares: [{ requestHeaders: { set: { X-A: "{request.methd}" } } }] } }\n', "file.yaml:5:", "request.methd")


@case("check: all errors at once", nginx=NO)
def _(t: Trial) -> None:
    result = checked(t, GOOD.replace("baseUrl", "baseUrll").replace("bind", "bindd").replace("service: api", "service: api, chainn: x"))
    for place in ("file.yaml:2:", "file.yaml:3:", "file.yaml:4:"):
        check(place in result.stderr, f"{place} is not in:", result.stderr)


@case("check --json: each mistake taken apart, and a summary", nginx=NO)
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


@case("check --json: a good file has numbers and no diagnostics, warnings leave exit 0", nginx=NO)
def _(t: Trial) -> None:
    answer = json.loads(run(t, "check", "--json", "-c", "-", text=GOOD).stdout)
    expect_same("answer", answer, {"diagnostics": [], "summary": {"errors": 0, "warnings": 0, "listeners": 1, "routes": 1, "services": 1}})
    result = run(t, "check", "--json", "-c", "-", text=GOOD + "chains: { c: {} }\n")
    answer = json.loads(result.stdout)
    expect_same("exit", result.returncode, 0)
    expect_same("warning", [(d["severity"], d["line"]) for d in answer["diagnostics"]], [("warning", 5)])
    expect_same("summary", answer["summary"]["warnings"], 1)


@case("check: interpolation with a value, a default and $$", nginx=NO)
def _(t: Trial) -> None:
    text = GOOD.replace("127.0.0.1:3000", "${HTTPWARE_TEST_HOST}:${HTTPWARE_TEST_PORT:-3000}") + "chains: { c: { middlewares: [{ mock: { body: \"$$5\" } }] } }\n"
    expect_same("exit", checked(t, text, environment={"HTTPWARE_TEST_HOST": "127.0.0.1"}).returncode, 0)


@case("check: a value cannot inject structure", nginx=NO)
def _(t: Trial) -> None:
    text = GOOD + "chains: { c: { middlewares: [{ mock: { body: \"${HTTPWARE_TEST_EVIL}\" } }] } }\n"
    expect_same("exit", checked(t, text, environment={"HTTPWARE_TEST_EVIL": "\" } }] }, d: { x: y"}).returncode, 0)


@case("check: a file that is not there is exit 3", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "check", "-c", "/nonexistent/httpware.yaml")
    expect_same("exit", result.returncode, 3)
    check("/nonexistent/httpware.yaml" in result.stderr, result.stderr)


@case("usage errors are exit 64", nginx=NO)
def _(t: Trial) -> None:
    for arguments in (["nonsense"], ["run", "--nonsense"], ["check", "-c"], ["run", "--workers", "none"]):
        expect_same(f"exit of {arguments}", run(t, *arguments).returncode, 64)


@case("version and help", nginx=NO)
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


@case("wares: a table, one ware, JSON of both, and a near name", nginx=NO)
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


@case("schema: JSON Schema 2020-12", nginx=NO)
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


@case("explain: route, service, chain and what goes upstream, each with its line", nginx=NO)
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


@case("explain: --json", nginx=NO)
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


@case("explain: a ware that answers, one that would wait, and no route", nginx=NO)
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


@case("explain: a forward listener, and CONNECT", nginx=NO)
def _(t: Trial) -> None:
    result = explained(t, "CONNECT", "example.org:443")
    check("opens a tunnel to example.org:443" in result.stdout, result.stdout)
    result = explained(t, "GET", "http://example.org/a", "--listener", "proxy")
    check("goes to example.org:80" in result.stdout, result.stdout)
    result = explained(t, "GET", "http://127.0.0.1/a", "--listener", "proxy")
    check("answers 403" in result.stdout and "private" in result.stdout, result.stdout)


@case("explain: what is no request, no listener or no configuration", nginx=NO)
def _(t: Trial) -> None:
    check("answers 400" in explained(t, "GET", "/%00").stdout)
    for arguments in (["G ET", "/"], ["GET", "/a b"], ["GET", "/", "-H", "X-A"], ["GET", "/", "-H", "X-A: 1\r\nX-B: 2"],
                      ["GET", "/", "--client", "nobody"], ["GET", "/", "--listener", "wbe"], ["GET"]):
        expect_same(f"exit of {arguments}", explained(t, *arguments).returncode, 64)
    result = run(t, "explain", "-c", "-", "GET", "/", text="version: 2\n")
    expect_same("exit", (result.returncode, "error:" in result.stderr, result.stdout), (1, True, ""))


@case("run: a bad file is exit 1 before listening", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "run", "-c", "-", text="version: 2\n")
    expect_same("exit", result.returncode, 1)


@case("run: a port that is taken is exit 3, and says which", nginx=NO)
def _(t: Trial) -> None:
    result = run(t, "run", "-c", "-", text=GOOD.replace("8080", str(t.main.port)))
    expect_same("exit", result.returncode, 3)
    check(str(t.main.port) in result.stderr, result.stderr)


for path in sorted((Path(__file__).parents[3] / "conf").rglob("*.yaml")):
    if path.parent.name.endswith(".d"):
        continue

    @case(f"check: conf/{path.relative_to(Path(__file__).parents[3] / 'conf')} is valid", nginx=NO)
    def _(t: Trial, path: Path = path) -> None:
        result = run(t, "check", "-c", str(path))
        expect_same("exit", (result.returncode, result.stderr if result.returncode else ""), (0, ""))


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


@case("run: says what it listens on", nginx=NO)
def _(t: Trial) -> None:
    process, port = started(t)
    check(eventually(lambda: str(port) in process.log), process.log)


@case("run: SIGTERM without work ends at once, exit 0", nginx=NO)
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


@case("run: SIGTERM closes the listeners, finishes what runs, and says Connection: close", nginx=NO)
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
            time.sleep(0.1)
            c.send(bytes([octet]))

    t.origin(script)
    process, port = started(t)
    client = open_client(t, port)
    client.send(head(b"Content-Length: 5", start=b"POST / HTTP/1.1") + b"he")
    time.sleep(0.1)
    process.signal()
    time.sleep(0.2)
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


@case("run: SIGINT is like SIGTERM", nginx=NO)
def _(t: Trial) -> None:
    process, _ = started(t)
    process.signal(signal.SIGINT)
    check(process.wait(3) in (0, 130, -2), f"exit {process.popen.returncode}")


@case("run: several loops serve one port", nginx=NO)
def _(t: Trial) -> None:
    _, port = started(t, workers=3)
    for _ in range(30):
        client = open_client(t, port)
        client.send(head())
        expect_status(client.read_response(), 200)


@case("run: a unix socket is listened on, and an old one replaced", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("socket")
    config = f'version: 1\nlisteners: {{ web: {{ bind: "127.0.0.1:@PORT@" }}, local: {{ bind: "unix:{folder}/s" }} }}\nservices: {{ api: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}\nroutes: [{{ service: api }}]\n'
    for _ in range(2):
        process, _ = started(t, config)
        client = connect(f"{folder}/s")
        t.clients.append(client)
        client.send(head())
        expect_status(client.read_response(), 200)
        process.signal(signal.SIGKILL)  # leaves the socket behind
        process.wait(3)


@case("proxy URL: a reverse proxy without a file", nginx=NO)
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


@case("run: a response that never ends does not survive two SIGTERMs, nor leaves children", nginx=NO)
def _(t: Trial) -> None:
    if not Path("/proc").exists():
        raise Skip("no /proc")
    process, _ = started(t, workers=2)
    check(len(os.listdir(f"/proc/{process.pid}/task")) <= 12, "too many threads")
    process.signal()
    process.signal()
    check(process.wait(3) is not None)
