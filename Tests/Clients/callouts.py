"""Programs of the ware `callout`, through the life of a gateway: reloads, its end, and its death."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Callable
from pathlib import Path

from Clients.trials import client, expect
from Rig.processes import Process, free_port
from Rig.waits import Why, eventually, pause

PROGRAM = '''
import json, os, signal, socket, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
with open("pids", "a") as pids:
    pids.write("%d\\n" % os.getpid())
options = {}
class Decide(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        options.update(message.get("options", {}))
        answer = {} if message["half"] == "hello" else {"respond": {"status": 200, "content": {"text": "%s %s" % (os.getpid(), options.get("a"))}}}
        content = json.dumps(answer).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(content), content))
def read():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=read, daemon=True).start()
server = ThreadingHTTPServer(("", 0), Decide, bind_and_activate=False)
server.socket = socket.socket(fileno=3)
server.serve_forever()
'''
CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ app: {{ baseUrl: "http://127.0.0.1:1" }} }}
chains: {{ app: {{ middlewares: [{ware}] }} }}
routes: [{{ service: app, chain: app }}]
"""
WARE = "{{ callout: {{ command: [python3, -B, decide.py], timeout: 30s, startTimeout: 60s, options: {{ a: {value} }} }} }}"


def happens(condition: Callable[[], bool], patience: float = 20.0) -> None:
    expect(eventually(condition, patience, every=0.05), "did not happen in time")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # After the death of its parent, a process can stay in the table until another parent waits for it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


class Stage:
    def __init__(self, t):
        self.port, self.folder = free_port(), t.place.subfolder("callout")
        (self.folder / "decide.py").write_text(PROGRAM)
        self.write("1")
        self.gateway: Process = t.place.command([t.options.binary, "run", "-c", str(self.folder / "httpware.yaml"), "--workers", "2"], [self.port])

    def write(self, value: str | None) -> None:
        ware = WARE.format(value=value) if value else "{ mock: { status: 200, body: none } }"
        (self.folder / "httpware.yaml").write_text(CONFIG.format(port=self.port, ware=ware))

    def get(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/")
        response = connection.getresponse()
        return f"{response.status} {response.read().decode()}"

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def reload(self, count: int) -> None:
        self.gateway.signal(signal.SIGHUP)
        happens(lambda: self.gateway.log.count("reloaded: ") == count)


@client("callout: a reload keeps, replaces and ends a program", smoke=True)
def _(t) -> None:
    stage = Stage(t)
    happens(lambda: (stage.folder / "pids").exists())
    first = stage.pids[0]
    expect(stage.get() == f"200 {first} 1", stage.get(), stage.gateway.log)
    stage.reload(1)
    expect(stage.get() == f"200 {first} 1", "a reload without a change started the program again", stage.gateway.log)
    stage.write("2")
    stage.reload(2)
    answer = stage.get()
    expect(answer.endswith(" 2") and str(first) not in answer, answer, stage.gateway.log)
    happens(lambda: not is_alive(first))
    (stage.folder / "decide.py").write_text(PROGRAM + "\n")
    stage.reload(3)
    expect(stage.get() == f"200 {stage.pids[2]} 2", stage.gateway.log)
    stage.write(None)
    stage.reload(4)
    expect(stage.get() == "200 none", stage.gateway.log)
    happens(lambda: not any(map(is_alive, stage.pids)))
    expect(len(stage.pids) == 3, stage.pids)


@client("callout: a program ends with its gateway", smoke=True)
def _(t) -> None:
    stage = Stage(t)
    expect(stage.get().startswith("200 "), stage.gateway.log)
    stage.gateway.signal(signal.SIGTERM)
    expect(stage.gateway.wait(20) == 0, stage.gateway.log)
    expect(not any(map(is_alive, stage.pids)), "the program runs on")


@client("callout: a program that does not want to end is killed with its gateway", smoke=True)
def _(t) -> None:
    stage = Stage(t)
    expect(stage.get().startswith("200 "), stage.gateway.log)
    for pid in stage.pids:
        os.kill(pid, signal.SIGSTOP)
    stage.gateway.signal(signal.SIGTERM)
    pause(0.5, Why.BEFORE)
    stage.gateway.signal(signal.SIGTERM)
    expect(stage.gateway.wait(20) == 0, stage.gateway.log)
    happens(lambda: not any(map(is_alive, stage.pids)))


@client("callout: a program learns that its gateway was killed", smoke=True)
def _(t) -> None:
    stage = Stage(t)
    expect(stage.get().startswith("200 "), stage.gateway.log)
    stage.gateway.signal(signal.SIGKILL)
    stage.gateway.wait(20)
    happens(lambda: not any(map(is_alive, stage.pids)))
