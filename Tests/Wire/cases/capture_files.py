"""Captures in files: over a restart, within their bound, and when the disk is full or the files are damaged."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from Rig.origins import OriginConnection, answering
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .broker import frame, read_frame
from .captures import SECRET, Captured
from .command import NO, own_home
from .intercept import OK
from .local_proxy import inspecting
from .refused_requests import head
from .upgrade import SWITCH, WEBSOCKET


def folder(t: Trial) -> Path:
    return t.setup.place.subfolder("kept") / "captures"


def size(path: Path) -> int:
    total = 0
    for file in path.iterdir():
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            pass  # it went meanwhile
    return total


@case("capture.disk: captures are kept across a restart without their secrets; such a request cannot be sent again", nginx=NO)
def _(t: Trial) -> None:
    path = folder(t)
    first = Captured(t, answering(OK), capture=f'{{ disk: {{ path: "{path}" }} }}', middlewares="httpCache, { mock: { body: made }, if: { path: /none } }")
    first.ask(b"Authorization: Bearer " + SECRET.encode(), target=b"/one?token=" + SECRET.encode())
    first.ask(b"X-Two: 2", target=b"/two", method=b"POST", content=b"sent")
    check(eventually(lambda: len(first.rows()) == 2 and all(row["state"] == "ended" for row in first.rows()), 3), first.rows())
    one, two = (next(row["id"] for row in first.rows() if name in row["url"]) for name in ("/one", "/two"))
    first.call(f"/v1/captures/{one}/pin", "POST", {"pinned": True}, 204)
    first.call(f"/v1/captures/{two}/comment", "POST", {"comment": "look"}, 204)
    did = [row["did"] for row in first.rows()]
    check(all(did), did)
    first.process.stop()
    expect_same("modes", {oct(entry.stat().st_mode & 0o777) for entry in path.iterdir()} | {oct(path.stat().st_mode & 0o777)}, {"0o600", "0o700"})
    check(all(SECRET.encode() not in file.read_bytes() for file in path.iterdir()), "a secret is on the disk")
    second = Captured(t, answering(OK), capture=f'{{ disk: {{ path: "{path}" }} }}')
    rows = second.rows()
    expect_same("rows", [(row["id"], row["pinned"], row["comment"], row["status"]) for row in rows], [(two, False, "look", 200), (one, True, "", 200)])
    expect_same("did", [row["did"] for row in rows], did)
    detail = json.loads(second.call(f"/v1/captures/{two}"))
    expect_same("record", (detail["record"]["status"], detail["requestSize"]), (200, 4))
    expect_same("content", second.call(f"/v1/captures/{two}/request/content"), b"sent")
    expect_same("filter", [row["id"] for row in second.rows("?filter=~bq%20sent")], [two])
    expect_same("archive", len(json.loads(second.call("/v1/har"))["log"]["entries"]), 2)
    expect_same("missing", json.loads(second.call("/v1/har?secrets=true"))["log"]["_httpware"]["missingSecrets"], 2)
    second.call(f"/v1/captures/{one}/replay", "POST", {}, 409)
    new = int(json.loads(second.call(f"/v1/captures/{two}/replay", "POST", {}))["id"])
    check(new > int(two), "a number is used again", new, two)
    check(eventually(lambda: t.main.requests and t.main.requests[-1].get("X-Two") == "2", 3), t.main.requests)
    check(eventually(lambda: all(row["state"] == "ended" for row in second.rows()), 3), second.rows())
    expect_same("cleared", json.loads(second.call("/v1/captures", "DELETE")), {"deleted": 2})
    expect_same("left", [row["id"] for row in second.rows()], [one])


@case("captures: an archive with secrets has those in memory, counts the others, and omits the gateway's own credentials", nginx=NO)
def _(t: Trial) -> None:
    own = "t0ken-of-the-gateway"
    named = json.dumps({"password": SECRET, "user": "anna"}).encode()

    def script(connection: OriginConnection) -> None:
        while request := connection.serve():
            if request.target == "/socket":
                connection.send(SWITCH + frame(named))
                return
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(named) + named)

    disk = f'{{ disk: {{ path: "{folder(t)}" }} }}'
    inject = "{ tokenInject: { credential: own }, if: { path: /own } }"
    more = f"credentials: {{ own: {{ grant: static, value: {own} }} }}"
    gateway = Captured(t, script, capture=disk, middlewares=inject, more=more)
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"Content-Type: application/json", target=b"/one?token=" + SECRET.encode(), method=b"POST", content=named)
    gateway.ask(target=b"/own")
    expect_same("injected", t.main.requests[-1].get("Authorization"), f"Bearer {own}")
    socket = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(socket)
    socket.send(head(*WEBSOCKET, start=b"GET /socket HTTP/1.1"))
    expect_status(socket.read_response(), 101)
    expect_same("message", read_frame(socket)[1], named)
    socket.send(frame(named, mask=b"abcd"))
    socket.close()
    check(eventually(lambda: len(gateway.rows()) == 3 and all(row["state"] == "ended" for row in gateway.rows()), 3), gateway.rows())

    def archive(gateway: Captured, query: str) -> tuple[str, dict]:
        text = gateway.call(f"/v1/har{query}").decode()
        return text, json.loads(text)["log"]

    text, log = archive(gateway, "")
    check(SECRET not in text and own not in text and "_httpware" not in log, text)
    text, log = archive(gateway, "?secrets=true")
    check(own not in text, text)
    one, two, three = (next(entry for entry in log["entries"] if name in entry["request"]["url"]) for name in ("/one", "/own", "/socket"))
    check(one["request"]["url"].endswith(f"?token={SECRET}") and SECRET in json.dumps(one["request"]["headers"]), one)
    expect_same("contents", (one["request"]["postData"]["text"], one["response"]["content"]["text"]), (named.decode(), named.decode()))
    expect_same("messages", [(each["type"], each["data"]) for each in three["_webSocketMessages"]], [("receive", named.decode()), ("send", named.decode())])
    # Bytes behind a credential of the gateway's may contain it: that content is kept nowhere.
    check(SECRET not in json.dumps(two), two)
    expect_same("missing", log["_httpware"]["missingSecrets"], 1)
    gateway.process.stop()
    again = Captured(t, script, capture=disk, middlewares=inject, more=more)
    text, log = archive(again, "?secrets=true")
    check(SECRET not in text and own not in text, text)
    # The URL, a field and two contents; a content; two messages.
    expect_same("missing after a restart", log["_httpware"]["missingSecrets"], 7)
    shown = again.call("/v1/har").decode()
    expect_same("imported", json.loads(again.call("/v1/har", "POST", json.loads(shown)))["imported"], 3)
    expect_same("missing in the import", archive(again, "?secrets=true")[1]["_httpware"]["missingSecrets"], 14)


@case("capture.disk: the files stay within their limit while requests arrive", nginx=NO)
def _(t: Trial) -> None:
    path = folder(t)
    content = os.urandom(20_000)
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content), capture=f'{{ memory: 1MiB, disk: {{ path: "{path}", maxSize: 1MiB }} }}')
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    for number in range(200):
        client.send(b"GET /%d HTTP/1.1\r\nHost: a.test\r\n\r\n" % number)
        expect_same("content", client.read_response().body, content)
        check(size(path) <= 1 << 20, size(path))
    rows = gateway.rows("?limit=1000")
    check(30 < len(rows) < 100 and rows[0]["url"].endswith("/199"), len(rows))


@case("capture.disk: damaged and foreign files do not prevent the gateway from serving", nginx=NO)
def _(t: Trial) -> None:
    path = folder(t)
    path.mkdir(mode=0o700)
    (path / "captures-7.rows").write_bytes(os.urandom(100_000))
    (path / "captures-7.data").write_bytes(b"")
    (path / "captures-9.data").write_bytes(os.urandom(10))
    (path / "captures.marks").write_bytes(os.urandom(5000))
    gateway = Captured(t, answering(OK), capture=f'{{ disk: {{ path: "{path}" }} }}')
    expect_status(gateway.ask(target=b"/served"), 200)
    check(eventually(lambda: "is not a file of captures" in gateway.process.log, 3), gateway.process.log)
    gateway.last()
    gateway.process.stop()
    (path / "notes.txt").write_text("mine")
    path.chmod(0o755)
    other = Captured(t, answering(OK), capture=f'{{ disk: {{ path: "{path}" }} }}')
    expect_status(other.ask(), 200)
    check(eventually(lambda: "can be read by other users" in other.process.log, 3), other.process.log)
    expect_same("left alone", (path / "notes.txt").read_text(), "mine")


@case("capture.disk: a full disk ends the writing with one warning, and no request fails", nginx=NO)
def _(t: Trial) -> None:
    if os.geteuid() != 0:
        raise Skip("needs root for a small file system")
    path = folder(t)
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(path)], capture_output=True).returncode:
        raise Skip("no tmpfs can be mounted")
    t.at_end(lambda: subprocess.run(["umount", "-l", str(path)], check=False))
    content = os.urandom(20_000)
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content), capture=f'{{ disk: {{ path: "{path}", maxSize: 64MiB }} }}')
    for number in range(40):
        expect_same("content", gateway.ask(target=b"/%d" % number).body, content)
    check(eventually(lambda: "nothing more is kept there" in gateway.process.log, 3), gateway.process.log)
    expect_same("warnings", gateway.process.log.count("nothing more is kept there"), 1)
    expect_same("memory", len(gateway.rows("?limit=1000")), 40)


@case("inspect --disk: requests of the previous run are listed", nginx=NO)
def _(t: Trial) -> None:
    path = folder(t)
    t.origin(answering(OK))
    for number in (1, 2):
        process, port, admin = inspecting(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--disk", str(path))
        client = connect(("127.0.0.1", port), 10)
        t.clients.append(client)
        client.send(f"GET http://127.0.0.1:{t.main.port}/{number} HTTP/1.1\r\nHost: 127.0.0.1:{t.main.port}\r\n\r\n".encode())
        expect_status(client.read_response(), 200)
        result = subprocess.run([t.setup.binary, "har", "export", "--admin", f"127.0.0.1:{admin}"], capture_output=True, text=True, timeout=20, env={**os.environ, **own_home(t)})
        expect_same("requests", [entry["request"]["url"].rsplit("/", 1)[1] for entry in json.loads(result.stdout)["log"]["entries"]], [str(each) for each in range(1, number + 1)])
        client.close()
        process.stop()
