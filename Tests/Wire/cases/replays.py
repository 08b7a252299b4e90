"""Captured requests sent again, archives in and out, and what is captured at all."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import urllib.error
import urllib.request

from Rig.origins import OriginConnection, answering
from Rig.processes import free_port
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .captures import SECRET, Captured
from .command import NO, own_home
from .intercept import OK, Proxy
from .local_proxy import inspecting
from .refused_requests import head


def echoing(connection: OriginConnection) -> None:
    """Answers with what it was asked."""
    while True:
        request = connection.serve()
        body = json.dumps({"target": request.target, "method": request.method, "fields": request.fields, "body": request.body.decode()}, default=str).encode()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: sid=" + SECRET.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def replayed(gateway: Captured, id: str, body: dict | None = None) -> dict:
    new = json.loads(gateway.call(f"/v1/captures/{id}/replay", "POST", body or {}))["id"]
    path = f"/v1/captures/{new}"
    check(eventually(lambda: json.loads(gateway.call(path))["state"] == "ended", 5), "it does not end")
    return json.loads(gateway.call(path))


@case("replay: a captured request is sent again with its credentials, which are never shown", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"X-One: 1", target=b"/a?token=" + SECRET.encode() + b"&b=c", method=b"POST", content=b"sent")
    first = gateway.last()
    second = replayed(gateway, first["id"])
    expect_same("mark", (second["replayOf"], second["status"], second["method"], second["url"]), (first["id"], 200, "POST", first["url"]))
    check(SECRET not in json.dumps(second), second)
    request = t.main.requests[-1]
    expect_same("origin", (len(t.main.requests), request.target, request.get("Authorization"), request.get("X-One"), request.body),
                (2, f"/a?token={SECRET}&b=c", f"Bearer {SECRET}", "1", b"sent"))
    expect_same("replays", [row["id"] for row in gateway.rows("?filter=~replay")], [second["id"]])


@case("replay: trailers are sent again with the content, and not with other content, RFC 9110 §6.5", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST /a HTTP/1.1") + b"4\r\nsent\r\n0\r\nX-Sum: 42\r\nX-Odd: t\xe9\r\n\r\n")
    expect_status(client.read_response("POST"), 200)
    first = gateway.last()
    replayed(gateway, first["id"])
    expect_same("origin", [(request.body, request.trailers) for request in t.main.requests], 2 * [(b"sent", [("X-Sum", "42"), ("X-Odd", "t\u00e9")])])
    replayed(gateway, first["id"], {"body": "other"})
    expect_same("other content", (t.main.requests[-1].body, t.main.requests[-1].trailers), (b"other", []))


@case("replay: an edited request has its new method, path, fields and content, and masked values are restored", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"X-One: 1", target=b"/a?token=" + SECRET.encode())
    first = gateway.last()
    replayed(gateway, first["id"], {"method": "PUT", "url": first["url"].replace("/a?", "/b?x=1&"), "body": "grün",
                                    "headers": [{"name": "authorization", "value": "Bearer …"}, {"name": "X-Two", "value": "2"}]})
    request = t.main.requests[-1]
    expect_same("origin", (request.method, request.target, request.get("Authorization"), request.get("X-One"), request.get("X-Two"), request.body),
                ("PUT", f"/b?x=1&token={SECRET}", f"Bearer {SECRET}", None, "2", "grün".encode()))
    replayed(gateway, first["id"], {"method": "POST", "headers": {"X-Three": ["a", "b"]}, "body": base64.b64encode(b"\0\1").decode(), "encoding": "base64"})
    expect_same("content", (t.main.requests[-1].body, t.main.requests[-1].get("Authorization")), (b"\0\1", None))
    path = f"/v1/captures/{first['id']}/replay"
    for body in ({"verb": "GET"}, {"method": "a b"}, {"method": 1}, {"url": "/path"}, {"url": "ftp://a/"}, {"headers": "x"}, {"headers": [1]},
                 {"headers": {"a b": "c"}}, {"headers": {"a": "b\r\nc: d"}}, {"body": "?", "encoding": "base64"}, {"encoding": "gzip", "body": ""}):
        gateway.call(path, "POST", body, 400)
    gateway.call(path, "POST", {"headers": {"Cookie": "…"}}, 409)
    gateway.call("/v1/captures/999999/replay", "POST", {}, 404)


@case("replay: credentials are sent to their own scheme and authority only", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"Cookie: a=" + SECRET.encode(), target=b"/a?b=c")
    first = gateway.last()
    replayed(gateway, first["id"], {"url": "http://other.test/a"})
    request = t.main.requests[-1]
    expect_same("elsewhere", (request.get("Authorization"), request.get("Cookie"), SECRET in str(request.fields)), (None, None, False))
    replayed(gateway, first["id"], {"url": "http://other.test/a", "headers": [{"name": "Authorization", "value": "Bearer …"}]})
    expect_same("elsewhere, shown", t.main.requests[-1].get("Authorization"), None)
    gateway.call(f"/v1/captures/{first['id']}/replay", "POST", {"url": "http://other.test/?token=%E2%80%A6"}, 400)


@case("replay: a repetition passes the whole chain, with authentication and limits", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK), middlewares=f"{{ rateLimit: {{ rate: 2/h, burst: 2 }} }}, {{ tokenInject: {{ value: {SECRET}-own, header: X-Custom, scheme: \"\" }} }}")
    gateway.ask()
    first = gateway.last()
    second = replayed(gateway, first["id"])
    expect_same("injected anew", (second["status"], t.main.requests[-1].get("X-Custom")), (200, SECRET + "-own"))
    third = replayed(gateway, first["id"])
    expect_same("limited", (third["status"], len(t.main.requests)), (429, 2))
    check(SECRET not in json.dumps(second), second)


@case("replay: partly captured content is not sent, unless it is replaced", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK), capture="{ content: 16B }")
    gateway.ask(method=b"POST", content=b"x" * 100)
    first = gateway.last()
    gateway.call(f"/v1/captures/{first['id']}/replay", "POST", {}, 409)
    replayed(gateway, first["id"], {"body": "all of it"})
    expect_same("content", t.main.requests[-1].body, b"all of it")


@case("replay: a request of an intercepted tunnel is sent again as a request of such a tunnel", nginx=NO)
def _(t: Trial) -> None:
    users, admin = t.setup.place.subfolder("users") / "users.htpasswd", free_port()
    users.write_text("anna:$2b$04$qpyjXKh/tlE2Rv3eJLOywufhgQtvPPmQrfpnSdDI0WyoxM0HeYVry\n")  # myPassword
    proxy = Proxy(t, intercept="hosts: [localhost, other.test]", chain=f"{{ basicAuth: {{ usersFile: '{users}' }} }}, {{ requestHeaders: {{ set: {{ X-User: '{{principal}}' }} }} }}",
                  routes=f"[{{ service: passthrough }}]\nadmin: {{ bind: '127.0.0.1:{admin}', token: none, capture: {{}} }}")
    right = b"Proxy-Authorization: Basic " + base64.b64encode(b"anna:myPassword")
    inside = proxy.secured("localhost", right)
    inside.send(proxy.get(b"/inside", b"Authorization: Bearer " + SECRET.encode()))
    expect_status(inside.read_response(), 200)

    def call(path: str, method: str = "GET", body: dict | None = None) -> tuple[int, dict]:
        request = urllib.request.Request(f"http://127.0.0.1:{admin}{path}", method=method, data=json.dumps(body).encode() if body is not None else None)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    check(eventually(lambda: call("/v1/captures?filter=~u%20inside")[1]["captures"], 3), "no capture")
    first = call("/v1/captures?filter=~u%20inside")[1]["captures"][0]["id"]
    status, answer = call(f"/v1/captures/{first}/replay", "POST", {})
    expect_same("replay", status, 200)
    check(eventually(lambda: call(f"/v1/captures/{answer['id']}")[1]["state"] == "ended", 5), "it does not end")
    second = call(f"/v1/captures/{answer['id']}")[1]
    request = t.main.requests[-1]
    expect_same("origin", (second["status"], len(t.main.requests), request.get("X-User"), request.get("Authorization"), request.get("Host"), request.has("Proxy-Authorization")),
                (200, 2, "anna", f"Bearer {SECRET}", f"localhost:{proxy.origin}", False))
    expect_same("tunnel", second["record"]["tunnel"]["host"], "localhost")
    status, _ = call(f"/v1/captures/{first}/replay", "POST", {"url": "https://not-read.test/"})
    expect_same("a host whose tunnels pass unread", status, 409)


@case("captures: a filter keeps only exchanges that match, checked at their beginning and at their end", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            status = b"404 Not Found" if b"missing" in request.target.encode() else b"200 OK"
            connection.send(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")

    gateway = Captured(t, script, capture='{ filter: "~u users | ~c 404" }')
    for target in (b"/users/1", b"/other", b"/missing", b"/users/2"):
        gateway.ask(target=target)
    check(eventually(lambda: len(gateway.rows()) == 3, 3), gateway.rows())
    expect_same("kept", [row["url"].rsplit("/", 1)[1] for row in gateway.rows()], ["2", "missing", "1"])
    new = json.loads(gateway.call(f"/v1/captures/{gateway.rows()[0]['id']}/replay", "POST", {"url": gateway.rows()[0]["url"].replace("users/2", "elsewhere")}))["id"]
    check(eventually(lambda: json.loads(gateway.call(f"/v1/captures/{new}"))["state"] == "ended", 3), "a repetition is captured always")


@case("trace --filter: matching requests are listed and followed; a mistake is reported with its column", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    for target in (b"/users/1", b"/other", b"/users/2"):
        gateway.ask(target=target)
    check(eventually(lambda: len(gateway.rows()) == 3, 3), gateway.rows())

    def trace(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([t.setup.binary, "trace", "--admin", f"127.0.0.1:{gateway.admin}", *arguments], capture_output=True, text=True, timeout=20)

    lines = trace("--filter", "~u users").stdout.splitlines()
    expect_same("listed", [line.split()[3] for line in lines], ["/users/1", "/users/2"])
    result = trace("--filter", "~u (")
    check(result.returncode == 1 and "column 4" in result.stderr, result)
    follower = t.setup.place.command([t.setup.binary, "trace", "-f", "--limit", "0", "--filter", "~u later", "--admin", f"127.0.0.1:{gateway.admin}"], [])
    t.at_end(follower.stop)
    check(eventually(lambda: (gateway.ask(target=b"/later"), gateway.ask(target=b"/never"), "/later" in follower.log)[-1], 5), follower.log)
    check("/never" not in follower.log, follower.log)


@case("inspect, with --inspect, proxy --inspect: requests are captured; --memory sets the limit", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(OK))
    process, port, admin = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--memory", "2MiB")
    client = connect(("127.0.0.1", port), 10)
    t.clients.append(client)
    client.send(f"GET http://127.0.0.1:{t.main.port}/seen HTTP/1.1\r\nHost: 127.0.0.1:{t.main.port}\r\n\r\n".encode())
    expect_status(client.read_response(), 200)
    result = subprocess.run([t.setup.binary, "har", "export", "--admin", f"127.0.0.1:{admin}", "--filter", "~u seen"], capture_output=True, text=True, timeout=20, env={**os.environ, **own_home(t)})
    expect_same("captured", ([entry["request"]["url"] for entry in json.loads(result.stdout)["log"]["entries"]], result.stderr), ([f"http://127.0.0.1:{t.main.port}/seen"], ""))
    refused = subprocess.run([t.setup.binary, "inspect", "--memory", "lots"], capture_output=True, text=True, timeout=20, env={**os.environ, **own_home(t)})
    check(refused.returncode == 1 and "lots" in refused.stderr, refused)


@case("har: an archive is masked on import, and exported with secrets only on request", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, echoing, middlewares=f"{{ tokenInject: {{ value: {SECRET}-own, header: X-Custom, scheme: \"\" }} }}")
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), target=b"/?token=" + SECRET.encode())
    gateway.last()
    plain = gateway.call("/v1/har").decode()
    entry = json.loads(plain)["log"]["entries"][0]
    check(SECRET not in json.dumps(entry["request"]), entry["request"])
    archive = json.loads(gateway.call("/v1/har?secrets=true"))
    request = archive["log"]["entries"][0]["request"]
    check(f"Bearer {SECRET}" in json.dumps(request) and f"token={SECRET}" in request["url"], request)
    check("-own" not in json.dumps([entry["request"] for entry in archive["log"]["entries"]]), "a token of the gateway is written")
    expect_same("missing", archive["log"]["_httpware"]["missingSecrets"], 2)
    gateway.call("/v1/har?secrets=maybe", code=400)
    result = json.loads(gateway.call("/v1/har", "POST", archive))
    expect_same("imported", (result["imported"], len(result["ids"]), result["warnings"]), (1, 1, []))
    capture = json.loads(gateway.call(f"/v1/captures/{result['ids'][0]}"))
    check(SECRET not in json.dumps(capture["request"]) and capture["status"] == 200, capture)
    replayed(gateway, result["ids"][0])
    expect_same("repeated", (t.main.requests[-1].target, t.main.requests[-1].get("Authorization")), (f"/?token={SECRET}", f"Bearer {SECRET}"))


@case("har: a refused archive leaves no captures; large archives are accepted, from known clients only", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK), capture="{ memory: 64MiB }")
    for body in ([], {"log": {}}, {"log": {"entries": 1}}, {"log": {"entries": [{"request": {"url": "http://a.test/"}}, *[[]] * 100_001]}}):
        gateway.call("/v1/har", "POST", body, 400)
    expect_same("left", gateway.rows(), [])
    entry = {"request": {"method": "GET", "url": "http://a.test/", "headers": []}, "response": {"status": 200, "headers": [], "content": {"size": 100_000, "mimeType": "text/plain", "text": "x" * 100_000}}}
    result = json.loads(gateway.call("/v1/har", "POST", {"log": {"version": "1.2", "entries": [entry] * 200}}))
    expect_same("imported", (result["imported"], len(gateway.rows("?limit=1000"))), (200, 200))
    client = connect(("127.0.0.1", gateway.admin), 10)
    t.clients.append(client)
    client.send(b"POST /v1/har HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 60000000\r\n\r\n")
    expect_status(client.read_response(), 403)
    other = connect(("127.0.0.1", gateway.admin), 10)
    t.clients.append(other)
    other.send(b"POST /v1/har HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000000\r\n\r\n")
    expect_status(other.read_response(), 413)
    third = connect(("127.0.0.1", gateway.admin), 10)
    t.clients.append(third)
    third.send(b"POST /v1/captures/1/pin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n")
    expect_status(third.read_response(), 413)


@case("har: the commands export, import and show archives", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(OK))
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), target=b"/one")
    gateway.ask(target=b"/two")
    check(eventually(lambda: len(gateway.rows()) == 2 and gateway.rows()[0]["state"] == "ended", 3), gateway.rows())
    folder = t.setup.place.subfolder("har")

    def har(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        result = subprocess.run([t.setup.binary, "har", *arguments], capture_output=True, text=True, timeout=30)
        expect_same(f"har {arguments}: {result.stderr}", result.returncode, code)
        return result

    at = ["--admin", f"127.0.0.1:{gateway.admin}"]
    file = folder / "out.har"
    har("export", "-o", str(file), "--with-secrets", *at)
    check(SECRET in file.read_text() and file.stat().st_mode & 0o777 == 0o600, oct(file.stat().st_mode))
    check(SECRET not in har("export", *at).stdout)
    expect_same("filtered", len(json.loads(har("export", "--filter", "~u two", *at).stdout)["log"]["entries"]), 1)
    check("column 4" in har("export", "--filter", "~u (", *at, code=1).stderr, "the mistake is not said")
    lines = har("show", str(file)).stdout.splitlines()
    expect_same("shown", [line.split()[-1].rsplit("/", 1)[1] for line in lines], ["one", "two"])
    rows = [json.loads(line) for line in har("show", str(file), "--json", "--filter", "~u one").stdout.splitlines()]
    expect_same("rows", [(row["method"], row["status"]) for row in rows], [("GET", 200)])
    expect_same("import", har("import", str(file), *at).stdout, "imported 2 requests\n")
    expect_same("there", len(gateway.rows()), 4)
    (folder / "bad.har").write_text("{")
    har("show", str(folder / "bad.har"), code=1)
    har("import", str(folder / "bad.har"), *at, code=1)
    har("show", str(folder / "none.har"), code=1)


@case("captures: each path requires the token, and refuses pages of other sites and hosts", nginx=NO)
def _(t: Trial) -> None:
    token = "0123456789abcdef-token"
    t.origin(answering(OK))
    port, admin = free_port(), free_port()
    file = t.setup.place.subfolder("guarded") / "httpware.yaml"
    file.write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: {token}, capture: {{}} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{t.main.port}" }} }}
routes: [{{ service: origin }}]
""")
    process = t.setup.place.command([t.setup.binary, "run", "-c", str(file), "--workers", "1"], [port, admin])
    t.at_end(process.stop)
    client = connect(("127.0.0.1", port), 10)
    t.clients.append(client)
    client.send(head())
    expect_status(client.read_response(), 200)

    def status(method: str, path: str, *lines: str, host: str = f"127.0.0.1:{admin}") -> int:
        asking = connect(("127.0.0.1", admin), 10)
        t.clients.append(asking)
        asking.send("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *(["Content-Length: 2"] if method == "POST" else []), *lines, "", "{}" if method == "POST" else ""]).encode())
        return int(asking.read_until(b"\r\n").split()[1])

    known = f"Authorization: Bearer {token}"
    check(eventually(lambda: status("GET", "/v1/captures/1", known) == 200, 3), "no capture")
    paths = [("GET", "/v1/captures"), ("GET", "/v1/captures?filter=x"), ("DELETE", "/v1/captures?filter=nothing"), ("GET", "/v1/captures/1"), ("GET", "/v1/captures/1/request/content"),
             ("GET", "/v1/captures/1/response/content"), ("GET", "/v1/captures/1/messages"), ("POST", "/v1/captures/1/pin"), ("POST", "/v1/captures/1/comment"),
             ("POST", "/v1/captures/1/replay"), ("GET", "/v1/captures/events"), ("GET", "/v1/har"), ("GET", "/v1/har?secrets=true"), ("POST", "/v1/har"),
             ("GET", "/v1/requests?filter=x"), ("GET", "/v1/events?filter=x"), ("POST", "/v1/explain"), ("GET", "/v1/config/text")]
    for method, path in paths:
        expect_same(f"{method} {path} without token", status(method, path), 401)
        for lines, host in ((["Origin: http://evil.test"], f"127.0.0.1:{admin}"), (["Sec-Fetch-Site: cross-site"], f"127.0.0.1:{admin}")):
            expect_same(f"{method} {path} {lines}", status(method, path, known, *lines, host=host), 403)
        expect_same(f"{method} {path} of another host", status(method, path, host="evil.test"), 403)
        check(status(method, path, known) in (200, 400), f"{method} {path}")
    expect_same("repeated", len(t.main.requests), 2)
