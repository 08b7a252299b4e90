"""Hooks and the answers that they lead to, over the wire."""

from __future__ import annotations

import gzip
import json

from suite import FIELDS, Trial, case, content, expect, expect_in, request, response

ORDER = """
from mitmproxy import http
from mitmproxy.flow import Error

def note(flow, name):
    print(name, flow.request.path, flow.response and flow.response.status_code, flow.error)

def requestheaders(flow):
    note(flow, "requestheaders")
    if flow.request.path == "/first-kill":
        flow.kill()

def request(flow):
    note(flow, "request")
    if flow.request.path == "/respond":
        flow.response = http.Response.make(299, b"own", {"X-A": "1"})
    if flow.request.path == "/kill":
        flow.kill()
    if flow.request.path == "/error":
        flow.error = Error("seen")

def responseheaders(flow):
    note(flow, "responseheaders")
    if flow.request.path == "/late-kill":
        flow.kill()

def response(flow):
    note(flow, "response")
    flow.response.headers["seen"] = "1"
    if flow.request.path == "/last-kill":
        flow.kill()

def error(flow):
    note(flow, "error")
"""


@case("the hooks of both halves are called in order")
def _(t: Trial) -> None:
    host = t.run(ORDER)
    expect(host.answer(request("http://h/a", exchange="1")), {})
    expect(host.answer(response(404, url="http://h/a", exchange="1")), {"set": {"seen": "1"}})
    host.end()
    expect(host.out, ["requestheaders /a None None", "request /a None None", "responseheaders /a 404 None", "response /a 404 None"])


@case("a response of the addon passes its own response hooks once")
def _(t: Trial) -> None:
    host = t.run(ORDER)
    expect(host.answer(request("http://h/respond", exchange="1")), {"respond": {"status": 299, "fields": [["X-A", "1"], ["seen", "1"]], "content": {"text": "own"}}})
    expect(host.answer(response(299, url="http://h/respond", exchange="1")), {})
    host.end()
    expect(host.out, ["requestheaders /respond None None", "request /respond None None", "responseheaders /respond 299 None", "response /respond 299 None"])


@case("a killed flow is dropped, and reaches the hook error unless it has a whole response")
def _(t: Trial) -> None:
    host = t.run(ORDER)
    expect(host.answer(request("http://h/error")), {})
    for path in ("/first-kill", "/kill"):
        expect(host.answer(request("http://h" + path)), {"drop": True}, path)
    for path in ("/late-kill", "/last-kill"):
        expect(host.answer(response(url="http://h" + path, exchange=path)), {"drop": True}, path)
    host.end()
    expect([line for line in host.out if line.startswith("error")], [
        "error /first-kill None Connection killed.", "error /kill None Connection killed.", "error /late-kill 200 Connection killed."])
    expect(sum(line.startswith("request /first") for line in host.out), 0)


@case("addons in a list, in lists of addons, and functions of the file are called in this order")
def _(t: Trial) -> None:
    host = t.run("""
from mitmproxy import exceptions

class Named:
    def __init__(self, name, *addons):
        self.name, self.addons = name, addons

    def request(self, flow):
        flow.request.headers.add("x", self.name)
        if self.name == "c":
            raise exceptions.AddonHalt()

def request(flow):
    flow.request.headers.add("x", "file")

addons = [Named("a", Named("b")), Named("c"), Named("d")]
""")
    expect(host.answer(request()), {"set": {"x": ["file", "a", "b", "c"]}})


@case("async hooks run side by side, and a connection's answers stay in order")
def _(t: Trial) -> None:
    host = t.run("""
import asyncio
waiting = asyncio.Event()

async def request(flow):
    if flow.request.path == "/wait":
        await asyncio.wait_for(waiting.wait(), 15)
    else:
        waiting.set()
    await asyncio.sleep(0)
    flow.request.headers["path"] = flow.request.path
""")
    other = t.wire(host)
    host.send(b"".join(host.posted(json.dumps(request("http://h" + path)).encode()) for path in ("/wait", "/2")))
    expect(other.answer(request("http://h/3")), {"set": {"path": "/3"}})
    expect([host.read()[1]["set"]["path"] for _ in range(2)], ["/wait", "/2"])


@case("a concurrent hook runs in a thread, and others need not wait")
def _(t: Trial) -> None:
    host = t.run("""
import threading
from mitmproxy.script import concurrent
free = threading.Event()

class Slow:
    @concurrent
    def request(self, flow):
        if flow.request.path == "/wait":
            free.wait(15)
        free.set()
        flow.request.headers["thread"] = str(threading.current_thread() is not threading.main_thread())

addons = [Slow()]
""")
    other = t.wire(host)
    host.send(host.posted(json.dumps(request("http://h/wait")).encode()))
    expect(other.answer(request("http://h/free")), {"set": {"thread": "True"}})
    expect(host.read()[1], {"set": {"thread": "True"}})


@case("an intercepted flow waits until it is resumed")
def _(t: Trial) -> None:
    host = t.run("""
held = []

def request(flow):
    if flow.request.path == "/hold":
        flow.intercept()
        held.append(flow)
        print("held")
    for each in held:
        if flow.request.path == "/go":
            each.request.headers["held"] = "yes"
            each.resume()
""")
    host.send(host.posted(json.dumps(request("http://h/hold")).encode()))
    host.await_line(host.out, "held")
    expect(t.wire(host).answer(request("http://h/go")), {})
    expect(host.read()[1], {"set": {"held": "yes"}})


@case("a fault in a hook is status 500 with file and line, and a traceback")
def _(t: Trial) -> None:
    host = t.run("""
def inner(flow):
    flow.request.headers["x"] = "a\\nb"

def request(flow):
    if flow.request.path == "/exit":
        raise SystemExit(3)
    inner(flow)
""")
    expect(host.ask(request()), (500, {"error": "addon.py:3: ValueError: invalid value of a field: 'a\\nb'"}))
    expect(host.ask(request("http://h/exit")), (500, {"error": "addon.py:7: SystemExit: 3"}))
    expect(host.ask(request())[0], 500)
    host.end()
    expect_in('    flow.request.headers["x"] = "a\\nb"', host.err)


@case("an async fault is status 500, too")
def _(t: Trial) -> None:
    host = t.run("""
import asyncio

async def response(flow):
    await asyncio.sleep(0)
    raise KeyError("gone")
""")
    expect(host.ask(response()), (500, {"error": "addon.py:6: KeyError: 'gone'"}))


@case("a flow is the same in both halves")
def _(t: Trial) -> None:
    host = t.run("""
kept = {}

def request(flow):
    flow.metadata["tenant"] = flow.request.path[1:]
    flow.metadata["number"] = 5
    kept[flow.id] = flow.request
    assert flow.id == flow.request.path[1:] and flow.copy().id != flow.id
    flow.request.headers["x"] = "1"

def response(flow):
    same = kept.get(flow.id) is flow.request
    flow.response.headers["tenant"] = f"{flow.metadata.get('tenant')} {flow.metadata.get('number')} {same} {flow.request.headers.get('x')}"
""")
    for name in ("a", "b"):
        expect(host.answer(request(f"http://h/{name}", exchange=name, id=name)), {"set": {"x": "1"}, "notes": {"tenant": name}})
    for name in ("b", "a"):
        expect(host.answer(response(url=f"http://h/{name}", exchange=name, id=name)), {"set": {"tenant": f"{name} 5 True 1"}})
    expect(host.answer(response(exchange="unknown")), {"set": {"tenant": "None None False None"}})


@case("the number and the bytes of kept flows are bounded, and the oldest one leaves first")
def _(t: Trial) -> None:
    flows = t.host.Flows()
    for number in range(t.host.FLOWS + 5):
        flows.keep(str(number), None, 0, 10)
    expect([flows.take(str(number)) is not None for number in (0, 4, 5, t.host.FLOWS + 4)], [False, False, True, True])
    flows = t.host.Flows()
    for number in range(4):
        flows.keep(str(number), None, 0, t.host.FLOW_BYTES // 2)
    expect([flows.take(str(number)) is not None for number in range(4)], [False, False, True, True])
    flows.keep("large", None, 0, t.host.FLOW_BYTES * 2)
    expect(flows.take("large") is not None, True)
    expect(flows._bytes, 0)


@case("a request whose response does not come reaches the hook error")
def _(t: Trial) -> None:
    addon = t.loaded("seen = []\n\ndef error(flow):\n    seen.append(str(flow.error))\n")
    expect(addon.halves, {"request", "response"})
    host = t.host.Host(addon.path)
    host._took(addon)
    host._seen = host._stamp()
    for exchange, now in (("1", 10.0), ("2", 100.0)):
        turn = host.answer(json.dumps(request(exchange=exchange)).encode(), now)
        try:
            turn.send(None)
        except StopIteration as end:
            expect(end.value, t.host.PASS)
    for now in (309.0, 311.0, 312.0):
        expect(list(host.late(now)), [])
    expect(addon.objects[0].seen, ["no response came"])


@case("a replaced response is sent whole, and a replaced request as edits")
def _(t: Trial) -> None:
    host = t.run("""
from mitmproxy import http

def request(flow):
    flow.request = http.Request.make("PUT", "http://example.com/new", b"\\xff", {"X-New": "1"})

def response(flow):
    flow.response = http.Response.make(418, "kurz", {"Content-Type": "text/plain"})
""")
    expect(host.answer(request()), {
        "method": "PUT", "url": "http://example.com/new", "remove": ["accept"], "set": {"X-New": "1"}, "content": content(b"\xff")})
    expect(host.answer(response()), {"respond": {"status": 418, "fields": [["Content-Type", "text/plain"]], "content": {"text": "kurz"}}})


# The body of a hook, and the answer to a message.
REQUESTS = [
    ("pass", {}),
    ("flow.request.headers['accept'] = '*/*'", {}),
    ("flow.request.headers['Accept'] = 'text/html'", {"set": {"Accept": "text/html"}}),
    ("flow.request.headers[b'X-B'] = b'\\xff'", {"set": {"X-B": "ÿ"}}),
    ("del flow.request.headers['accept']", {"remove": ["accept"]}),
    ("flow.request.headers.add('Accept', 'a/b')", {"append": [["Accept", "a/b"]]}),
    ("flow.request.headers.set_all('X-A', ['1', '2'])", {"set": {"X-A": ["1", "2"]}}),
    ("flow.request.headers.pop('accept'); flow.request.headers['Accept'] = '*/*'", {}),
    ("flow.request.headers = {'Host': 'example.com', 'X-Only': '1'}", {"remove": ["accept"], "set": {"X-Only": "1"}}),
    ("flow.request.headers.fields = [(b'Host', b'example.com')]", {"remove": ["accept"]}),
    ("flow.request.headers['content-length'] = '99'; flow.request.headers['transfer-encoding'] = 'chunked'", {}),
    ("flow.request.method = 'DELETE'", {"method": "DELETE"}),
    ("flow.request.path = '/x?y'", {"url": "http://example.com/x?y"}),
    ("flow.request.path = flow.request.path", {}),
    ("flow.request.url = 'http://example.com/a?b=c'", {}),
    ("flow.request.query['b'] = 'd'", {"url": "http://example.com/a?b=d"}),
    ("flow.request.query = {}", {"url": "http://example.com/a"}),
    ("flow.request.host = 'other.org'", {"url": "http://other.org/a?b=c"}),
    ("flow.request.host = 'other.org'; flow.request.headers['Host'] = 'front.org'", 500),
    ("flow.request.headers['Host'] = 'other.org'; flow.request.host = 'other.org'", {"url": "http://other.org/a?b=c"}),
    ("flow.request.headers['Host'] = 'front.org:81'", {"url": "http://front.org:81/a?b=c"}),
    ("del flow.request.headers['Host']", {}),
    ("flow.request.headers['Connection'] = 'close'; flow.request.headers['Keep_Alive'] = '1'", {}),
    ("flow.request.host_header = 'front.org'", {"url": "http://front.org/a?b=c"}),
    ("flow.request.port = 8443; flow.request.scheme = 'https'", {"url": "https://example.com:8443/a?b=c"}),
    ("flow.request.cookies['a'] = 'b'", {"set": {"cookie": "a=b"}}),
    ("flow.request.content = b'new'", {"content": {"text": "new"}}),
    ("flow.request.content = flow.request.content", {}),
    ("flow.request.content = b'\\x80'", {"content": {"base64": "gA=="}}),
    ("flow.request.content = b'a\\0'", {"content": {"base64": "YQA="}}),
    ("flow.request.text = flow.request.text.upper()", {"content": {"text": "BODY"}}),
    ("flow.request.content = None", {"content": {"text": ""}}),
    ("flow.request.urlencoded_form = [('a', 'b c')]", {"set": {"content-type": "application/x-www-form-urlencoded"}, "content": {"text": "a=b+c"}}),
    ("flow.request.stream = lambda data: data.upper()", {}),
    ("flow.request.encode('gzip')", {"set": {"content-encoding": "gzip"}, "content": content(gzip.compress(b"body", mtime=0))}),
    ("flow.request.anticache(); flow.request.anticomp()", {"set": {"Accept-Encoding": "identity"}}),
    ("flow.comment = 'seen'; flow.marked = ':x:'; flow.metadata.update(a='b', c=1, d='x' * 5000)", {"notes": {"a": "b", "comment": "seen", "marked": ":x:"}}),
    ("flow.response = http.Response.make(204)", {"respond": {"status": 204, "fields": []}}),
    ("flow.response = http.Response.make(200, b'x', {'content-encoding': 'gzip'})",
     {"respond": {"status": 200, "fields": [["content-encoding", "gzip"]], "content": content(gzip.compress(b"x", mtime=0))}}),
    ("flow.response = 'text'", 500),
    ("flow.response = http.Response.make(20)", 500),
    ("flow.request.method = 'A B'", 500),
    ("flow.request.path = '/a b'", 500),
    ("flow.request.headers['a b'] = 'c'", 500),
    ("flow.request.headers['a'] = 5", 500),
    ("flow.request.content = 'text'", 500),
    ("flow.request.port = 'a'", 500),
    ("flow.request.url = 'nothing'", 500),
    ("flow.request.encode('br')", 500),
]

RESPONSES = [
    ("pass", {}),
    ("flow.response.status_code = 503", {"status": 503}),
    ("flow.response.status_code = 200", {}),
    ("flow.response.status_code = '503'", 500),
    ("flow.response.headers['X'] = '1'", {"set": {"X": "1"}}),
    ("flow.response.headers.add('Set-Cookie', 'c=d')", {"append": [["Set-Cookie", "c=d"]]}),
    ("flow.response.headers.insert(0, 'Set-Cookie', 'c=d')", {"set": {"Set-Cookie": ["c=d", "a=b"]}}),
    ("del flow.response.headers['Set-Cookie']", {"remove": ["set-cookie"]}),
    ("flow.response.cookies['a'] = ('z', {'Path': '/'})", {"set": {"Set-Cookie": "a=z; Path=/"}}),
    ("flow.response.text = 'neu'", {"content": {"text": "neu"}}),
    ("flow.response.text = '€'", {"set": {"Content-Type": "text/plain; charset=utf-8"}, "content": {"text": "€"}}),
    ("flow.response.content = flow.response.content.replace(b'b', b'x')", {"content": {"text": "xody"}}),
    ("flow.response.reason = 'Fine'", {}),
    ("flow.request.headers['late'] = '1'; flow.request.method = 'PUT'", {}),
    ("flow.response = None", {}),
    ("flow.response.decode()", {}),
    ("flow.response.status_code = 101", 500),
    ("flow.kill()", {"drop": True}),
    ("flow.response.headers['a'] = flow.client_conn.peername[0] + ' ' + flow.server_conn.address[0]", {"set": {"a": "192.0.2.7 example.com"}}),
]


def answers(t: Trial, hook: str, rows: list, message: dict) -> None:
    """Asks one host for each row, by the path of the URL."""
    text = "from mitmproxy import http\n\n" + "".join(f"def case_{number}(flow):\n    {code}\n\n" for number, (code, _) in enumerate(rows))
    host = t.run(text + f"def {hook}(flow):\n    globals()['case_' + flow.request.headers['number']](flow)\n")
    for number, (code, expected) in enumerate(rows):
        message["request"]["fields"] = [*FIELDS, ["number", str(number)]]
        message["exchange"] = str(number)
        status, answer = host.ask(message)
        if isinstance(answer.get("remove"), list) and "number" in answer["remove"]:
            answer["remove"].remove("number")
        expect(status if expected == 500 else answer, expected, code)


@case("each change of a request is one edit of the answer")
def _(t: Trial) -> None:
    answers(t, "request", REQUESTS, request(body="body"))


@case("each change of a response is one edit of the answer")
def _(t: Trial) -> None:
    answers(t, "response", RESPONSES, response(fields=[["Content-Type", "text/plain"], ["Set-Cookie", "a=b"]], body="body"))


@case("a stream function changes the content, and a streamed content is not there")
def _(t: Trial) -> None:
    host = t.run("""
def requestheaders(flow):
    flow.request.stream = flow.request.path == "/stream"

def request(flow):
    flow.request.headers["content"] = repr(flow.request.content)

def responseheaders(flow):
    flow.response.stream = lambda data: [data.upper(), b"!"]
""")
    expect(host.answer(request("http://h/stream", body="abc")), {"set": {"content": "None"}})
    expect(host.answer(request("http://h/", body="abc")), {"set": {"content": "b'abc'"}})
    expect(host.answer(response(body="abc", exchange="new")), {"content": {"text": "ABC!!"}})


@case("a content that is not in the message is empty, and that of events is missing")
def _(t: Trial) -> None:
    host = t.run("def response(flow):\n    flow.response.headers['x'] = repr(flow.response.content)\n")
    expect(host.answer(response(fields=[["Content-Type", "text/event-stream; charset=utf-8"]])), {"set": {"x": "None"}})
    expect(host.answer(response(fields=[["Content-Length", "5000000"]])), {"set": {"x": "b''"}})


@case("content with a coding is seen without it, and another coding is one of the addon")
def _(t: Trial) -> None:
    rows = [
        ("pass", {}),
        ("flow.response.headers['x'] = flow.response.text", {"set": {"x": "body"}}),
        ("flow.response.text = 'new'", {"content": {"text": "new"}}),
        ("flow.response.text = flow.response.text", {}),
        ("flow.response.decode()", {"remove": ["content-encoding"], "content": {"text": "body"}}),
        ("del flow.response.headers['Content-Encoding']", {"remove": ["content-encoding"], "content": {"text": "body"}}),
        ("flow.response.encode('identity')", {"set": {"Content-Encoding": "identity"}, "content": {"text": "body"}}),
        ("flow.response.encode('gzip')", {"set": {"Content-Encoding": "gzip"}, "content": content(gzip.compress(b"body", mtime=0))}),
        ("flow.response.raw_content = b'\\x01'; flow.response.headers['Content-Encoding'] = 'own'", {"set": {"Content-Encoding": "own"}, "content": {"text": "\1"}}),
    ]
    answers(t, "response", rows, response(fields=[["Content-Type", "text/plain"], ["Content-Encoding", "br"]], body="body"))


@case("print and logging go to standard output and standard error as lines")
def _(t: Trial) -> None:
    host = t.run("""
import logging
from mitmproxy import ctx
from mitmproxy.log import ALERT

def request(flow):
    print("printed")
    logging.info("info %d", 1)
    logging.debug("hidden")
    logging.warning("warning")
    logging.log(ALERT, "alert")
    ctx.log.info("ctx %s")
    ctx.log.warn("ctx warning")
    ctx.log.error("ctx error")
    ctx.log("called", "warn")
""")
    host.answer(request())
    host.end()
    expect(host.out, ["printed", "info: info 1", "alert: alert", "info: ctx %s"])
    expect(host.err, ["warning: warning", "warning: ctx warning", "error: ctx error", "warning: called"])


@case("the host ends with the pipe, and done is called")
def _(t: Trial) -> None:
    host = t.run("def done():\n    print('done')\n\ndef request(flow):\n    pass\n")
    host.answer(request())
    expect(host.end(), 0)
    expect(host.out, ["done"])


@case("the host ends with the pipe if a hook never returns")
def _(t: Trial) -> None:
    host = t.run("def request(flow):\n    print('runs', flush=True)\n    while True:\n        pass\n")
    host.send(host.posted(json.dumps(request()).encode()))
    host.await_line(host.out, "runs")
    expect(host.end(), 70)


@case("SIGTERM ends the host, and an async done is awaited")
def _(t: Trial) -> None:
    host = t.run("import asyncio\n\nasync def done():\n    await asyncio.sleep(0.01)\n    print('done')\n")
    host.process.terminate()
    expect(host.ended(), 0)
    expect(host.out, ["done"])


@case("a thread of a hook that still runs does not hold up the end")
def _(t: Trial) -> None:
    host = t.run("""
import threading
from mitmproxy.script import concurrent

@concurrent
def request(flow):
    print("runs", flush=True)
    threading.Event().wait()
""")
    host.send(host.posted(json.dumps(request()).encode()))
    host.await_line(host.out, "runs")
    expect(host.end(), 0)
