"""Loading: the halves and content that an addon wants, the reasons for which it is refused, its options, and changed files."""

from __future__ import annotations

import json
import os

from Rig.waits import eventually
from suite import SECONDS, Trial, case, expect, expect_in, request, response

# The source of an addon; the halves that it wants; the halves whose content it wants.
WANTS = [
    ("x = 1", "", ""),
    ("def request(flow): pass", "request", ""),
    ("def requestheaders(flow): pass", "request", ""),
    ("def response(flow): pass", "response", ""),
    ("def responseheaders(flow): pass", "response", ""),
    ("def error(flow): pass", "request response", ""),
    ("class A:\n    def request(self, flow): pass\naddons = [A()]", "request", ""),
    ("class A:\n    def request(self, flow): pass", "", ""),
    ("class A:\n    def response(self, f):\n        f.response.text\naddons = [A()]", "response", "response"),
    ("def request(flow):\n    flow.request.headers['a'] = 'text'", "request", ""),
    ("def request(flow):\n    flow.request.text = 'a'", "request", "request"),
    ("def request(flow):\n    flow.request.json()", "request", "request"),
    ("def request(flow):\n    flow.request.urlencoded_form['a'] = 'b'", "request", "request"),
    ("def request(flow):\n    flow.response.text", "request", ""),
    ("def response(flow):\n    flow.request.content", "request response", "request"),
    ("def response(flow):\n    flow.request.timestamp_start", "request response", ""),
    ("def response(flow):\n    r = flow.response\n    r.content", "response", "response"),
    ("def response(flow):\n    r, s = flow.request, flow.response\n    s.content", "response", "response"),
    ("def response(flow):\n    if (r := flow.response):\n        r.content", "response", "response"),
    ("def response(flow):\n    for m in (flow.request, flow.response):\n        m.text", "request response", "request response"),
    ("def response(flow):\n    m = flow.response or flow.request\n    m.text", "request response", "request response"),
    ("def part(m):\n    return m.text\ndef response(flow):\n    part(flow.response)", "response", "response"),
    ("def part(m):\n    return m.headers\ndef response(flow):\n    part(flow.response)", "response", ""),
    ("class A:\n    def part(self, f):\n        f.response.text\n    def response(self, flow):\n        self.part(flow)\naddons = [A()]", "response", "response"),
    ("class A:\n    def response(self, flow):\n        self.flow = flow\n        self.flow.response.text\naddons = [A()]", "response", "response"),
    ("class A:\n    def response(self, flow):\n        self.all.append(flow)\n        self.all[0].response.text\naddons = [A()]", "request response", "request response"),
    ("import json\ndef response(flow):\n    json.dumps({'a': flow.response.status_code}).encode()", "response", ""),
    ("import copy\ndef response(flow):\n    copy.deepcopy(flow.response)", "response", "response"),
    ("import copy\ndef response(flow):\n    copy.deepcopy([1, flow])", "request response", "request response"),
    ("def response(flow):\n    getattr(flow.response, 'text')", "response", "response"),
    ("def response(flow):\n    print(flow, str(flow.response), f'{flow}')", "response", ""),
    ("import logging\ndef response(flow):\n    logging.info(flow)", "response", ""),
    ("def response(flow):\n    (lambda m: m.text)(flow.response)", "request response", "request response"),
    ("from mitmproxy import flowfilter\nF = flowfilter.parse('~u a')\ndef response(flow):\n    flowfilter.match(F, flow)", "response", ""),
    ("from mitmproxy import flowfilter\nF = flowfilter.parse('~bs a')\ndef response(flow):\n    flowfilter.match(F, flow)", "response", "response"),
    ("from mitmproxy import flowfilter\nF = flowfilter.parse('~' + 'u a')\ndef response(flow):\n    flowfilter.match(F, flow)", "request response", "request response"),
    ("def responseheaders(flow):\n    flow.response.stream = True", "response", ""),
    ("def responseheaders(flow):\n    flow.response.stream = lambda data: data", "response", "response"),
    ("from mitmproxy import http\ndef request(flow: http.HTTPFlow) -> None:\n    flow.response = http.Response.make(200, b'a')", "request", ""),
    ("from mitmproxy.http import HTTPFlow\ndef part(f: 'HTTPFlow | None'):\n    f.request.text\ndef request(f):\n    part(f)", "request", "request"),
    ("def named(f):\n    return f.response.text\nresponse = named", "request response", "request response"),
    ("response = lambda f: f.response.text", "request response", "request response"),
    ("import functools\ndef named(name, f):\n    f.response.text\nresponse = functools.partial(named, 'a')", "request response", "request response"),
    ("def plain(hook):\n    return lambda *all: hook(*all)\n@plain\ndef response(f):\n    f.response.status_code", "request response", "request response"),
    ("from mitmproxy.script import concurrent\n@concurrent\ndef response(f):\n    f.response.status_code", "response", ""),
    ("def response(flow):\n    def inner():\n        return flow.response.text\n    inner()", "response", "response"),
    ("class A:\n    @staticmethod\n    def response(f):\n        f.response.text\naddons = [A]", "response", "response"),
    ("async def request(flow):\n    async with open_it() as a:\n        await a.send(flow.request.text)", "request", "request"),
]


@case("halves and content are wanted only if the source uses them")
def _(t: Trial) -> None:
    for text, halves, content in WANTS:
        addon = t.loaded(text)
        expect((addon.halves, addon.content), (set(halves.split()), set(content.split())), text)


# The source of an addon, and the sentences with which it is refused.
REFUSED = [
    ("def request(flow): pass", []),
    ("import mitmproxy.tcp", ["addon.py:1: mitmproxy.tcp is not offered: the gateway has no TCP flows"]),
    ("from mitmproxy import command, http, types", ["addon.py:1: mitmproxy.command is not offered: commands need mitmproxy's console", "addon.py:1: mitmproxy.types is not offered"]),
    ("from mitmproxy.net.http.http1 import assemble", ["addon.py:1: mitmproxy.net.http.http1 is not offered"]),
    ("from mitmproxy.http import HTTPFlow, WebSocketData", ["addon.py:1: mitmproxy.http.WebSocketData is not offered"]),
    ("def load(l):\n    from mitmproxy import io", ["addon.py:2: mitmproxy.io is not offered: flow files are not offered"]),
    ("try:\n    from mitmproxy import tcp\nexcept ImportError:\n    tcp = None", []),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mitmproxy import tcp", []),
    ("import mitmproxy\ndef request(flow):\n    mitmproxy.dns.x", ["addon.py:3: mitmproxy.dns is not offered: the gateway has no DNS flows"]),
    ("import mitmproxy.http as h\ndef request(flow):\n    h.Nothing", ["addon.py:3: mitmproxy.http.Nothing is not offered"]),
    ("def tcp_message(flow): pass", ["addon.py:1: the hook tcp_message is not offered"]),
    ("class A:\n    def websocket_message(self, flow): pass\naddons = [A()]", ["addon.py:2: the hook websocket_message is not offered"]),
    ("class A:\n    def websocket_message(self, flow): pass\nclass B(A):\n    pass\naddons = [B()]", ["addon.py:2: the hook websocket_message is not offered"]),
    ("class A:\n    def websocket_message(self, flow): pass", []),
    ("def request(flow):\n    flow.request.trailers\n    flow.response.trailers = None", [
        "addon.py:2: flow.request.trailers is not offered", "addon.py:3: flow.response.trailers is not offered"]),
    ("def request(f):\n    f.get_state()", ["addon.py:2: flow.get_state is not offered"]),
    ("def request(flow):\n    flow.own = 1\n    flow.own", []),
    ("def request(flow):\n    flow.unknown", ["addon.py:2: flow.unknown is not offered"]),
    ("def request(flow):\n    r = flow.request\n    r.unknown", ["addon.py:3: flow.request.unknown is not offered"]),
    ("def request(flow):\n    flow.request.headers.unknown()", ["addon.py:2: headers.unknown is not offered"]),
    ("def request(flow):\n    flow.client_conn.sni\n    flow.server_conn.via = 1", [
        "addon.py:2: flow.client_conn.sni is not offered", "addon.py:3: flow.server_conn.via can be read, but not set", "addon.py:3: flow.server_conn.via is not offered"]),
    ("def request(flow):\n    flow.request.http_version = 'HTTP/1.0'", ["addon.py:2: flow.request.http_version can be read, but not set"]),
    ("def part(x):\n    x.unknown\ndef request(flow):\n    part(flow.response)", ["addon.py:2: flow.response.unknown is not offered"]),
    ("from mitmproxy import ctx\ndef request(flow):\n    ctx.master.shutdown()", ["addon.py:3: ctx.master.shutdown is not offered"]),
    ("from mitmproxy import ctx\ndef request(flow):\n    ctx.log.fatal('a')\n    ctx.proxy", ["addon.py:3: ctx.log.fatal is not offered", "addon.py:4: mitmproxy.ctx.proxy is not offered"]),
    ("from mitmproxy.ctx import master\ndef request(flow):\n    master.view", ["addon.py:3: ctx.master.view is not offered"]),
    ("from mitmproxy import ctx\ndef request(flow):\n    ctx.options.listen_port", ["addon.py:3: ctx.options.listen_port is an option that neither the addon nor the gateway has"]),
    ("def load(loader):\n    loader.add_command('a', None)", ["addon.py:2: loader.add_command is not offered"]),
    ("from mitmproxy import http\nhttp.Response(b'')", ["addon.py:2: Response(…) is not offered: use Response.make"]),
    ("def request(flow)\n    pass", ["addon.py:1: SyntaxError: expected ':'"]),
    ("import nothing_of_this_name", ["addon.py:1: ModuleNotFoundError: No module named 'nothing_of_this_name'"]),
    ("x = 1\n1 / 0", ["addon.py:2: ZeroDivisionError: division by zero"]),
    ("def load(loader):\n    raise ValueError('no')", ["addon.py:2: ValueError: no"]),
    ("import sys\nsys.exit(1)", ["addon.py:2: SystemExit: 1"]),
    ("async def load(loader): pass", ["addon.py: the hook load must not be async"]),
    ("from mitmproxy import flowfilter\nflowfilter.parse('~zz')", ["addon.py:2: ValueError: Invalid filter expression: '~zz'"]),
    ("def load(loader):\n    loader.add_option('a', int, 'b', '')", ["addon.py:2: OptionsError: the default of the option a must be int, not 'b'"]),
    ("\0", None),
    ("(" * 5000, None),
]


@case("an addon is refused with all that is missing, with file and line")
def _(t: Trial) -> None:
    for text, sentences in REFUSED:
        found = t.refused(text)
        if sentences is None:
            expect(len(found), 1, text[:40])
        else:
            expect(found, sentences, text)


@case("a module beside the addon is read, too")
def _(t: Trial) -> None:
    t.file("def part(flow):\n    flow.request.trailers\n", "beside_addon.py")
    expect(t.refused("import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\nimport beside_addon\n"), ["beside_addon.py:2: flow.request.trailers is not offered"])


@case("hello says the reasons, and messages fail with them")
def _(t: Trial) -> None:
    host = t.start("from mitmproxy import tcp\ndef request(flow):\n    flow.request.trailers\n")
    text = "addon.py:1: mitmproxy.tcp is not offered: the gateway has no TCP flows; addon.py:3: flow.request.trailers is not offered"
    expect(host.hello(), {"error": text})
    expect(host.ask(request()), (500, {"error": text}))


@case("an addon may name its encoding, and begin with a byte order mark")
def _(t: Trial) -> None:
    for data in (b"# coding: latin-1\nX = '\xe9'\n", b"\xef\xbb\xbfX = '\xc3\xa9'\n"):
        path = t.folder / "addon.py"
        path.write_bytes(data)
        addon = t.host.Addon(str(path))
        addon.read()
        expect(addon.objects[0].X, "é")


@case("an addon that is missing is refused")
def _(t: Trial) -> None:
    host = t.start("")
    (t.folder / "addon.py").unlink()
    expect_in("FileNotFoundError", host.hello()["error"])


OPTIONS = """
from typing import Optional
from collections.abc import Sequence
from mitmproxy import ctx, exceptions

def load(loader):
    loader.add_option("text", str, "a", "help")
    loader.add_option(name="number", typespec=int, default=1, help="help")
    loader.add_option("flag", bool, False, "help")
    loader.add_option("maybe", Optional[int], None, "help")
    loader.add_option("union", str | None, None, "help")
    loader.add_option("several", Sequence[str], [], "help")
    loader.add_option("one_of", str, "a", "help", choices=["a", "b"])

def configure(updated):
    print("configure", sorted(updated))
    if ctx.options.number > 100:
        raise exceptions.OptionsError("number must be at most 100")

def running():
    print("running", ctx.options.text)

def request(flow):
    if flow.request.path == "/set":
        ctx.options.text = "set"
    if flow.request.path == "/wrong":
        ctx.options.number = 500
    flow.request.headers["options"] = f"{ctx.options.text} {ctx.options.number} {ctx.options.maybe} {ctx.options.several} {'flag' in ctx.options}"
"""


@case("options come from hello, and configure and running are called")
def _(t: Trial) -> None:
    host = t.run(OPTIONS, text="b", maybe=3, several=["x", "y"])
    expect(host.answer(request())["set"], {"options": "b 1 3 ['x', 'y'] True"})
    expect(host.answer(request("http://h/set"))["set"], {"options": "set 1 3 ['x', 'y'] True"})
    expect(host.ask(request("http://h/wrong"))[0], 500)
    expect(host.answer(request())["set"], {"options": "set 1 3 ['x', 'y'] True"})
    host.end()
    expect(host.out[:3], ["configure ['flag', 'maybe', 'number', 'one_of', 'several', 'text', 'union']", "running b", "configure ['text']"])


@case("an option that is unknown, or has another type, is refused")
def _(t: Trial) -> None:
    for options, sentence in [
        ({"text": 1}, "the option text must be str, not 1"),
        ({"number": True}, "the option number must be int, not True"),
        ({"number": 101}, "number must be at most 100"),
        ({"flag": 1}, "the option flag must be bool, not 1"),
        ({"maybe": "1"}, "the option maybe must be Optional[int], not '1'"),
        ({"several": [1]}, "the option several must be collections.abc.Sequence[str], not [1]"),
        ({"one_of": "c"}, "the option one_of must be one of a, b, not 'c'"),
        ({"other": 1}, "the addon has no option other (flag, maybe, number, one_of, several, text, union)"),
    ]:
        expect_in(sentence, t.refused(OPTIONS, options)[0])
    expect(t.refused(OPTIONS, {"text": "", "maybe": None, "union": "u", "one_of": "b"}), [])


@case("the option content sets the sizes that are asked for")
def _(t: Trial) -> None:
    text = "def request(flow):\n    flow.request.text\n\ndef response(flow):\n    flow.response.text\n"
    for options, sizes in [
        ({}, {"request": "1MiB", "response": "1MiB"}),
        ({"content": "64KiB"}, {"request": "64KiB", "response": "64KiB"}),
        ({"content": {"response": 1000}}, {"request": "1MiB", "response": "1000B"}),
    ]:
        expect(t.loaded(text, options).wants(), {"request": True, "response": True, "content": sizes})
    for value in ("much", "0B", "1TiB", True, -1, {"other": "1KiB"}, "65MiB", []):
        expect_in("content: ", t.refused(text, {"content": value})[0])
    own = "def load(loader):\n    loader.add_option('content', str, '', '')\n"
    expect(t.loaded(own, {"content": "mine"}).options.content, "mine")


@case("hello again with other options loads the addon again, and with the same ones does not")
def _(t: Trial) -> None:
    host = t.run(OPTIONS + "\ndef done():\n    print('done', ctx.options.text)\n", text="b")
    expect(host.hello(text="b"), {"request": True, "response": False})
    expect(host.hello(text="c"), {"request": True, "response": False})
    expect(host.answer(request())["set"], {"options": "c 1 None [] True"})
    expect_in("the addon has no option x", host.hello(x=1)["error"])
    expect(host.ask(request())[0], 500)
    expect(host.hello(text="d"), {"request": True, "response": False})
    host.end()
    expect([line for line in host.out if not line.startswith("configure")], ["running b", "done b", "running c", "done c", "running d", "done d"])


def changed(t: Trial, text: str, stamp: int) -> None:
    os.utime(t.file(text), (stamp, stamp))


VERSION = """
def load(loader):
    print("load NAME")

def done():
    print("done NAME")

def request(flow):
    flow.request.headers["version"] = "NAME"
"""


@case("a changed file is loaded again with the next message, and a broken one is not")
def _(t: Trial) -> None:
    host = t.run(VERSION.replace("NAME", "1"))

    def awaits(version: str, line: str, before: int) -> None:
        """Asks until the host wrote a line: the file is looked at once a second at most."""
        def seen() -> tuple[str, bool]:
            return host.answer(request())["set"]["version"], any(line in each for each in host.err[before:])

        eventually(lambda: seen() == (version, True), SECONDS)
        expect(seen(), (version, True), line)

    expect(host.answer(request())["set"], {"version": "1"})
    before = len(host.err)
    changed(t, VERSION.replace("NAME", "2"), 1000)
    awaits("2", "loaded again", before)
    before = len(host.err)
    changed(t, VERSION.replace("NAME", "3") + "\n1 / 0\n", 2000)
    awaits("2", "the former version of the addon stays", before)
    before = len(host.err)
    changed(t, VERSION.replace("NAME", "4") + "\ndef tcp_message(flow): pass\n", 3000)
    awaits("2", "the hook tcp_message is not offered: the former version", before)
    before = len(host.err)
    (t.folder / "addon.py").unlink()
    awaits("2", "the former version of the addon stays", before)
    before = len(host.err)
    changed(t, VERSION.replace("NAME", "5"), 4000)
    awaits("5", "loaded again", before)
    host.end()
    expect(host.out, ["load 1", "load 2", "done 1", "load 5", "done 2", "done 5"])


@case("a changed file that wants other halves ends the host, which answers the message before")
def _(t: Trial) -> None:
    host = t.run(VERSION.replace("NAME", "1"))
    expect(host.answer(request())["set"], {"version": "1"})
    changed(t, "def response(flow):\n    flow.response.text\n", 1000)
    status = 200
    while status == 200:
        try:
            status, _ = host.ask(request())
        except OSError:
            status = 0
    expect(host.ended(), 0)
    expect_in("wants other halves or content: the host ends, to be started again", host.err[-1])


@case("a host that ends for a changed file still answers the messages that it has")
def _(t: Trial) -> None:
    host = t.run("""
import asyncio

async def request(flow):
    if flow.request.path == "/slow":
        print("slow", flush=True)
        await asyncio.sleep(0.5)
        flow.request.headers["slow"] = "1"
""")
    other = t.wire(host)
    other.answer(request())
    host.send(host.posted(json.dumps(request("http://h/slow")).encode()))
    host.await_line(host.out, "slow")
    changed(t, "def response(flow):\n    pass\n", 1000)
    eventually(lambda: other.answer(request()) != {} or any("wants other halves" in line for line in host.err), SECONDS)
    expect(host.read(), (200, {"set": {"slow": "1"}}))
    expect(host.ended(), 0)


@case("an addon without hooks wants neither half")
def _(t: Trial) -> None:
    host = t.start("import logging\n\ndef load(loader):\n    logging.error('loaded')\n")
    expect(host.hello(), {"request": False, "response": False})
    expect(host.answer(response()), {})
    host.end()
    expect(host.err, ["error: loaded"])


@case("messages before hello load the addon without options")
def _(t: Trial) -> None:
    host = t.start("def request(flow):\n    flow.request.headers['x'] = '1'\n")
    expect(host.answer(request()), {"set": {"x": "1"}})
