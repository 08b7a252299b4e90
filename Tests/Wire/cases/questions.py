"""Questions to a person: requests that wait for an answer, the file of approvals, and the audit trail."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading

from Rig.origins import answering
from Rig.processes import free_port
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .captures import Captured
from .command import NO
from .refused_requests import head

OK = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def asked(gateway: Captured, count: int = 1) -> list[dict]:
    """The open questions, as soon as there are that many."""
    read = lambda: json.loads(gateway.call("/v1/questions"))["questions"]  # noqa: E731
    check(eventually(lambda: len(read()) == count, 10), f"{count} questions: {read()}")
    return read()


def waiting(gateway: Captured, statuses: list[int], **more: bytes) -> threading.Thread:
    thread = threading.Thread(target=lambda: statuses.append(gateway.ask(**more).status))
    thread.start()
    return thread


@case("ask: a request waits until it is allowed, by the API and by the command, or refused", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, OK, middlewares="{ ask: {}, if: { method: [POST] } }")
    expect_status(gateway.ask(), 200)
    statuses: list[int] = []
    thread = waiting(gateway, statuses, method=b"POST", target=b"/orders?token=hush", content=b'{"password": "hush", "amount": 1}')
    (question,) = asked(gateway)
    expect_same("question", (question["method"], question["waiting"], question["answers"], question["scope"]), ("POST", 1, ["once", "run", "always"], "request"))
    check("hush" not in json.dumps(question) and '"amount": 1' in question["content"]["text"], f"{question}")
    check(not statuses, "it waits")
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "perhaps"}, code=400)
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes", "for": "ages"}, code=400)
    gateway.call("/v1/questions/999/answer", "POST", {"answer": "yes"}, code=404)
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes"})
    thread.join(10)
    expect_same("allowed", statuses, [200])
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes"}, code=404)

    thread = waiting(gateway, statuses, method=b"POST", content=b"b")
    (question,) = asked(gateway)
    run = lambda *words: subprocess.run([t.setup.binary, *words, "--admin", f"127.0.0.1:{gateway.admin}"], capture_output=True, text=True, timeout=30)  # noqa: E731
    listed, shown = run("approve", "ls"), run("approve", "show", question["id"])
    check(question["url"] in listed.stdout and "\nb\n" in shown.stdout, listed.stdout + shown.stdout + listed.stderr + shown.stderr)
    refused = run("approve", "no", question["id"])
    thread.join(10)
    expect_same("refused", (refused.returncode, refused.stdout, statuses), (0, f"{question['id']}: no, for once\n", [200, 403]))
    again = run("approve", "no", question["id"])
    check(again.returncode != 0 and "no question" in again.stderr, again.stderr)
    trail = run("audit")
    check("question asked: POST" in trail.stdout and "question refused: POST" in trail.stdout and ", by a person" in trail.stdout, trail.stdout + trail.stderr)
    lines = json.loads(gateway.call("/v1/audit"))
    expect_same("actions", [line["action"] for line in lines["lines"]], ["asked", "allowed", "asked", "refused"])
    expect_same("later lines", json.loads(gateway.call(f"/v1/audit?after={lines['last']}")), {"last": lines["last"], "lines": []})


@case("ask: an answer that always counts is in approvals.yaml after a restart, and is taken back by approve rm", nginx=NO)
def _(t: Trial) -> None:
    file = t.setup.place.subfolder("approvals") / "approvals.yaml"
    ware = f"{{ ask: {{ file: {file} }} }}"
    gateway = Captured(t, OK, middlewares=ware)
    statuses: list[int] = []
    thread = waiting(gateway, statuses)
    (question,) = asked(gateway)
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes", "for": "always"})
    thread.join(10)
    check(question["hash"] in file.read_text() and file.stat().st_mode & 0o77 == 0, file.read_text())
    gateway.process.stop()
    again = Captured(t, OK, middlewares=ware)
    thread = waiting(again, statuses)
    thread.join(10)
    expect_same("statuses", statuses, [200, 200])
    (approval,) = json.loads(again.call("/v1/approvals"))["approvals"]
    expect_same("approval", (approval["answer"], approval["for"], approval["file"]), ("yes", "always", str(file)))
    removed = subprocess.run([t.setup.binary, "approve", "rm", approval["id"], "--admin", f"127.0.0.1:{again.admin}"], capture_output=True, text=True, timeout=30)
    expect_same("removed", (removed.returncode, removed.stdout), (0, "1 taken back\n"))
    thread = waiting(again, statuses)
    (question,) = asked(again)
    again.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "no"})
    thread.join(10)
    expect_same("statuses", statuses, [200, 200, 403])


@case("ask: a client that leaves, a reload and a webhook: the question ends, stays, and is told", nginx=NO)
def _(t: Trial) -> None:
    told: list[dict] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    hook = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    t.at_end(hook.shutdown)
    gateway = Captured(t, OK, middlewares=f'{{ ask: {{ notify: {{ url: "http://127.0.0.1:{hook.server_port}/hook" }}, remember: [once, run] }} }}')
    statuses: list[int] = []
    thread = waiting(gateway, statuses)
    (question,) = asked(gateway)
    check(eventually(lambda: len(told) == 1, 5), "not told")
    expect_same("told", (told[0]["id"], told[0]["method"], told[0]["hash"]), (question["id"], "GET", question["hash"]))
    gateway.call("/v1/reload", "POST")
    expect_same("after a reload", asked(gateway)[0]["id"], question["id"])
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes", "for": "run"})
    thread.join(10)
    expect_status(gateway.ask(), 200)
    expect_same("statuses", statuses, [200])
    client = connect(("127.0.0.1", gateway.port), 10)
    client.send(head(start=b"DELETE / HTTP/1.1"))
    asked(gateway)
    client.close()
    asked(gateway, 0)


@case("hostRule: with otherwise: ask, an unknown host waits for an answer, which counts for all of its requests", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, OK, middlewares="{ hostRule: { allow: [a.test], deny: [b.test], otherwise: ask, ask: { remember: [run] } } }")
    statuses: list[int] = []

    def ask(host: bytes, path: bytes) -> None:
        client = connect(("127.0.0.1", gateway.port), 10)
        t.clients.append(client)
        client.send(head(start=b"GET " + path + b" HTTP/1.1", host=b"Host: " + host + b"\r\n"))
        statuses.append(client.read_response("GET").status)

    ask(b"a.test", b"/")
    ask(b"b.test", b"/")
    thread = threading.Thread(target=ask, args=(b"c.test", b"/one"))
    thread.start()
    (question,) = asked(gateway)
    expect_same("question", (question["scope"], question["host"], question["answers"]), ("host", "c.test:80", ["run"]))
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes", "for": "once"}, code=409)
    gateway.call(f"/v1/questions/{question['id']}/answer", "POST", {"answer": "yes"})
    thread.join(10)
    ask(b"c.test", b"/two")
    expect_same("statuses", statuses, [200, 403, 200, 200])
    lines = json.loads(gateway.call("/v1/audit"))["lines"]
    expect_same("lines", [(line["kind"], line["action"], line["host"]) for line in lines],
                [("host", "refused", "b.test:80"), ("question", "asked", "c.test:80"), ("question", "allowed", "c.test:80"), ("question", "allowed", "c.test:80")])
