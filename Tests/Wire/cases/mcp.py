"""The Model Context Protocol over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys

from Rig.origins import answering
from suite import Skip, Trial, case, check, eventually, expect_same

from .captures import SECRET, Captured
from .command import NO

READING = ["list_requests", "get_request", "get_content", "compare_requests", "export_har", "explain_url", "check_configuration"]
CHANGING = ["replay_request", "add_rule", "remove_rule"]


class Session:
    """A server that lines are sent to."""

    def __init__(self, t: Trial, *arguments: str):
        self.process = subprocess.Popen([t.setup.binary, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        t.at_end(self.close)
        self.number = 0

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)

    def send(self, text: bytes) -> dict:
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **parameters) -> dict:
        self.number += 1
        answer = self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}).encode())
        expect_same("id", (answer["id"], answer["jsonrpc"]), (self.number, "2.0"))
        return answer

    def call(self, name: str, error: bool = False, **arguments) -> str:
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        expect_same(f"{name}: {result}", result["isError"], error)
        return result["content"][0]["text"]


def captured(t: Trial) -> Captured:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nfirst", b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nsecond"))
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"X-One: 1", target=b"/one")
    gateway.ask(target=b"/two")
    check(eventually(lambda: len(gateway.rows()) == 2 and all(row["state"] == "ended" for row in gateway.rows()), 3), gateway.rows())
    return gateway


@case("mcp: initialize, tools and errors of JSON-RPC are answered; long and malformed lines are errors", nginx=NO)
def _(t: Trial) -> None:
    session = Session(t, "--admin", "127.0.0.1:1")
    for version, answered in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
        result = session.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "x", "version": "1"})["result"]
        expect_same("version", (result["protocolVersion"], result["serverInfo"]["name"], "tools" in result["capabilities"]), (answered, "httpware", True))
    session.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n\n')
    expect_same("ping", session.ask("ping")["result"], {})
    tools = session.ask("tools/list")["result"]["tools"]
    expect_same("tools", [tool["name"] for tool in tools], READING)
    check(all(tool["annotations"]["readOnlyHint"] and tool["inputSchema"]["type"] == "object" for tool in tools), tools)
    for line, code in ((b"{", -32700), (b"[]", -32600), (b'{"id":1}', -32600), (b'{"id":{},"method":"ping"}', -32600), (b'{"id":"a","method":"nothing"}', -32601),
                       (b'{"id":1,"method":"tools/call","params":{"name":"replay_request","arguments":{"id":"1"}}}', -32602), (b'{"id":1,"method":"tools/call"}', -32602),
                       (b'{"id":1,"method":"ping","x":"' + b"a" * (5 << 20) + b'"}', -32700), (b"\xff\xfe\x00", -32700)):
        expect_same(f"{line[:60]}", session.send(line).get("error", {}).get("code"), code)
    expect_same("an id that is a text", session.send(b'{"jsonrpc":"2.0","id":"x-1","method":"ping"}')["id"], "x-1")
    check("127.0.0.1:1" in session.call("list_requests", error=True), "the listener that does not answer is not named")


@case("mcp: requests are listed, read, compared and exported, with secrets masked", nginx=NO)
def _(t: Trial) -> None:
    gateway = captured(t)
    session = Session(t, "--admin", f"127.0.0.1:{gateway.admin}")
    rows = json.loads(session.call("list_requests"))["captures"]
    expect_same("rows", [row["url"].rsplit("/", 1)[1] for row in rows], ["two", "one"])
    one = json.loads(session.call("list_requests", filter="~u one", limit=1))["captures"][0]["id"]
    two = rows[0]["id"]
    request = session.call("get_request", id=one)
    check(SECRET not in request and json.loads(request)["status"] == 200, request)
    expect_same("content", json.loads(session.call("get_content", id=one)), {"size": 5, "offset": 0, "text": "first", "more": False})
    expect_same("a piece", json.loads(session.call("get_content", id=one, offset=1, limit=2)), {"size": 5, "offset": 1, "text": "ir", "more": True})
    difference = json.loads(session.call("compare_requests", a=one, b=two))
    expect_same("difference", (difference["status"], difference["response"]["content"]["firstDifference"], [field["name"] for field in difference["request"]["headers"]]),
                ({"a": 200, "b": 404}, 0, ["Authorization", "X-One"]))
    archive = json.loads(session.call("export_har", filter="~u one"))
    expect_same("archive", (len(archive["log"]["entries"]), SECRET in json.dumps(archive)), (1, False))
    check(json.loads(session.call("check_configuration", text="version: 1\nlisteners: { a: { bind: nowhere } }"))["ok"] is False)
    for name, arguments in (("get_request", {"id": "../config"}), ("get_request", {}), ("get_request", {"id": "999999"}), ("list_requests", {"filter": "~u ("}),
                            ("list_requests", {"limit": 0}), ("list_requests", {"other": 1}), ("get_content", {"id": one, "of": "trailer"}), ("get_content", {"id": one, "offset": -1})):
        session.call(name, error=True, **arguments)


@case("mcp: only with --allow-changes requests are sent again", nginx=NO)
def _(t: Trial) -> None:
    gateway = captured(t)
    session = Session(t, "--admin", f"127.0.0.1:{gateway.admin}", "--allow-changes")
    expect_same("tools", [tool["name"] for tool in session.ask("tools/list")["result"]["tools"]], READING + CHANGING)
    one = json.loads(session.call("list_requests", filter="~u one"))["captures"][0]["id"]
    new = json.loads(session.call("replay_request", id=one, headers=[{"name": "X-New", "value": "2"}]))["id"]
    check(eventually(lambda: json.loads(session.call("get_request", id=new))["state"] == "ended", 3), "it does not end")
    expect_same("origin", (len(t.main.requests), t.main.requests[-1].get("X-New"), t.main.requests[-1].target), (3, "2", "/one"))
    session.call("replay_request", error=True, id="999999")


@case("mcp: add_rule puts a ware in force until remove_rule ends it, with the gateway's errors", nginx=NO)
def _(t: Trial) -> None:
    gateway = captured(t)
    session = Session(t, "--admin", f"127.0.0.1:{gateway.admin}", "--allow-changes")
    rule = json.loads(session.call("add_rule", filter="~u fails", ware="fault", options={"status": 503}, reason="a trial", **{"for": "10m"}))
    expect_same("rule", (rule["ware"], rule["filter"], rule["reason"], rule["hits"]), ("fault", "~u fails", "a trial", 0))
    expect_same("matched", (gateway.ask(target=b"/fails").status, gateway.ask(target=b"/other").status), (503, 404))
    rows = json.loads(session.call("list_requests", limit=2))["captures"]
    expect_same("rules of the captures", [row["rules"] for row in rows], [[], [rule["id"]]])
    for arguments, told in (({"filter": "~u ("}, "column 4"), ({"ware": "jwtAuth"}, "jwtAuth"), ({"options": {"status": 9}}, "status"), ({"for": "25h"}, "24h"), ({"count": 0}, "count")):
        answer = session.call("add_rule", error=True, **{"filter": "~u x", "ware": "fault", "options": {"status": 503}, "for": "10m", "reason": "a trial", **arguments})
        check(told in answer, arguments, answer)
    session.call("add_rule", error=True, filter="~u x", ware="fault")
    check(str(rule["id"]) in session.call("remove_rule", id=str(rule["id"])))
    expect_same("removed", gateway.ask(target=b"/fails").status, 404)
    for name in (str(rule["id"]), "0", "../captures"):
        session.call("remove_rule", error=True, id=name)
    expect_same("left", json.loads(gateway.call("/v1/rules")), {"rules": []})


@case("mcp: explain_url describes the way of a request without sending it", nginx=NO)
def _(t: Trial) -> None:
    gateway = captured(t)
    session = Session(t, "--admin", f"127.0.0.1:{gateway.admin}")
    answer = json.loads(session.call("explain_url", url=f"http://127.0.0.1:{gateway.port}/some/path", method="POST", headers=[{"name": "X-One", "value": "1"}]))
    expect_same("explanation", (answer["service"]["name"], answer["request"]["line"], "X-One: 1" in answer["request"]["fields"]), ("origin", "POST /some/path HTTP/1.1", True))
    expect_same("requests", len(t.main.requests), 2)
    for arguments in ({}, {"url": "no URL"}, {"url": "http://a.test/", "headers": {"X": "1"}}, {"url": "http://a.test/", "headers": [{"X": "1"}]}, {"url": "http://a.test/", "method": "G T"}):
        session.call("explain_url", error=True, **arguments)


@case("mcp: the official client of Python lists the tools and calls one", nginx=NO)
def _(t: Trial) -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise Skip("no module mcp") from None
    gateway = captured(t)
    code = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    async with stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp", "--admin", sys.argv[2]])) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])
            answer = await session.call_tool("list_requests", {"filter": "~u one"})
            print(answer.content[0].text)

asyncio.run(main())
"""
    result = subprocess.run([sys.executable, "-c", code, t.setup.binary, f"127.0.0.1:{gateway.admin}"], capture_output=True, text=True, timeout=60)
    lines = result.stdout.splitlines()
    expect_same("tools", (result.returncode, lines[0] if lines else result.stderr), (0, str(READING)))
    expect_same("rows", [row["url"].rsplit("/", 1)[1] for row in json.loads(lines[1])["captures"]], ["one"])
