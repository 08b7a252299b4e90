"""The cache of a running gateway: what the admin listener and the command list, show, purge and count, and that no credential is shown."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse

from Rig.origins import answering
from Rig.processes import Process, free_port
from Rig.wire import Message, Wire
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .fields import answer

NO = "the cache of httpware"
SECRET = "s3cret-value"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}"{token} }}
stores: {{ small: {{ memory: {{ maxSize: 1MiB }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
chains:
  cached: {{ middlewares: [{{ httpCache: {{ setCookie: store }} }}] }}
  off: {{ middlewares: [{{ offline: {{ mode: never }}, as: off }}, httpCache] }}
  own: {{ middlewares: [{{ httpCache: {{ store: small, mode: private }} }}] }}
routes:{more}
  - {{ name: own, match: {{ path: "/own/**" }}, service: origin, chain: own }}
  - {{ name: plain, match: {{ path: "/plain/**" }}, service: origin }}
  - {{ name: all, service: origin, chain: cached }}
"""

FRESH = answer(
    b"Cache-Control: max-age=600", b"Cache-Tag: news, home", b"Set-Cookie: sid=" + SECRET.encode(), b"Vary: Accept")


class Gateway:
    def __init__(self, t: Trial, token: str = "", more: str = ""):
        place = t.setup.place
        self.t, self.token = t, token
        self.web, self.admin = free_port(), free_port()
        self.file = place.subfolder("cache") / "httpware.yaml"
        shown = f', token: "{token}"' if token else ", token: none"
        self.file.write_text(CONFIG.format(web=self.web, admin=self.admin, main=t.setup.ports["main"], token=shown, more=more))
        self.process: Process = place.command(
            [t.setup.binary, "run", "-c", str(self.file), "--workers", "2"], [self.web, self.admin])
        t.at_end(self.process.stop)

    def ask(self, path: str, *fields: str, port: int | None = None, method: str = "GET", host: str = "") -> Message:
        port = port or self.web
        client: Wire = connect(("127.0.0.1", port), 10.0)
        self.t.clients.append(client)
        length = ["Content-Length: 0"] if method == "POST" else []
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *fields, *length, "Connection: close"]
        client.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        return client.read_response(method)

    def told(self, path: str, method: str = "GET", status: int = 200) -> dict:
        response = self.ask(path, port=self.admin, method=method)
        expect_status(response, status)
        check(SECRET.encode() not in response.body, response.body)
        return json.loads(response.body)

    def records(self) -> list[dict]:
        return json.loads(self.ask("/v1/requests", port=self.admin).body)

    def key(self, path: str) -> str:
        return f"http://127.0.0.1:{self.web}{path}"

    def keys(self, query: str = "", store: str = "memory") -> list[str]:
        return [entry["key"] for entry in self.told(f"/v1/cache/{store}/entries{query}")["entries"]]

    def command(self, *arguments: str, code: int = 0) -> str:
        result = subprocess.run(
            [self.t.setup.binary, *arguments, "-c", str(self.file)], capture_output=True, text=True, timeout=30)
        expect_same("exit", (result.returncode, result.stderr if code == 0 else ""), (code, ""))
        check(SECRET not in result.stdout + result.stderr, result.stdout, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def is_stored(self, path: str, store: str) -> bool:
        shown = f"Authorization: Bearer {self.token or 'none'}"
        return self.ask(f"/v1/cache/{store}/entry?key={quoted(self.key(path))}", shown, port=self.admin).status == 200

    def store(self, *paths: str, store: str = "memory") -> None:
        """Asks for each, and waits until it is stored: a client may have the last byte before that."""
        for path in paths:
            expect_status(self.ask(path), 200)
            check(eventually(lambda: self.is_stored(path, store)), f"{path} is not stored")


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


@case("cache admin: stores and the hit ratio of each route are listed and counted", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    gateway = Gateway(t)
    gateway.store("/a", "/b")
    for path, method in (("/a", "GET"), ("/a", "GET"), ("/plain/x", "GET"), ("/a", "POST")):
        expect_status(gateway.ask(path, method=method), 200)
    expected = {"hit": 2, "stale": 0, "collapsed": 0, "validated": 0, "miss": 2, "bypass": 1}
    check(eventually(lambda: [route["results"] for route in gateway.told("/v1/cache")["routes"]] == [expected]),
          gateway.told("/v1/cache"))
    [route] = gateway.told("/v1/cache")["routes"]
    expect_same("route", [route[name] for name in ("listener", "route", "service", "requests", "hits", "hitRatio")],
                ["web", "all", "origin", 5, 2, 0.5])
    stores = {store["name"]: store for store in gateway.told("/v1/cache")["stores"]}
    # The POST took away what was stored for its target. RFC 9111 §4.4.
    expect_same("stores", {name: (store["kind"], store["responses"], store["limit"]) for name, store in stores.items()},
                {"memory": ("memory", 1, 256 << 20), "small": ("memory", 0, 1 << 20)})
    check(stores["memory"]["bytes"] > 0, stores)
    text = gateway.ask("/metrics", port=gateway.admin).body.decode()
    for line in ('httpware_cache_requests_total{listener="web",route="all",service="origin",result="hit"} 2',
                 'httpware_cache_requests_total{listener="web",route="all",service="origin",result="bypass"} 1',
                 'httpware_cache_store_responses{store="memory"} 1', 'httpware_cache_evictions_total{store="small"} 0'):
        check(line in text, line, text)
    check("/a" not in text, "a path is in the metrics")
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("promtool is not here; it comes with Debian's package prometheus")
    result = subprocess.run([promtool, "check", "metrics"], input=text.encode(), capture_output=True, timeout=20)
    expect_same("promtool", (result.returncode, result.stdout + result.stderr), (0, b""))


@case("cache admin: stored responses are listed by prefix and tag, and shown without credentials", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    gateway = Gateway(t)
    gateway.store("/a/1", "/a/2", f"/b?token={SECRET}&x=1")
    expect_same("all", gateway.keys(), [gateway.key("/a/1"), gateway.key("/a/2"), gateway.key("/b?token=…&x=1")])
    expect_same("prefix", gateway.keys(f"?prefix={quoted(gateway.key('/a/'))}&limit=1000"), [gateway.key("/a/1"), gateway.key("/a/2")])
    expect_same("tag", (len(gateway.keys("?tag=home")), gateway.keys("?tag=hom")), (3, []))
    cut = gateway.told("/v1/cache/memory/entries?limit=2")
    expect_same("limit", (len(cut["entries"]), cut["more"]), (2, True))
    entry = gateway.told(f"/v1/cache/memory/entry?key={quoted(gateway.key('/b?token=…&x=1'))}")
    [response] = entry["responses"]
    expect_same("entry", (response["status"], response["vary"], response["tags"], response["lifetime"]), (200, ["Accept"], ["news", "home"], 600))
    check({"name": "Set-Cookie", "value": "…"} in response["fields"], response)
    check({"name": "Cache-Control", "value": "max-age=600"} in response["fields"], response)
    gateway.told(f"/v1/cache/memory/entry?key={quoted(gateway.key('/c'))}", status=404)
    gateway.told("/v1/cache/other/entries", status=404)


@case("cache admin: a purge by key, prefix or tag makes the next request a miss", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    gateway = Gateway(t)

    def status(path: str) -> str:
        return (gateway.ask(path).get("Cache-Status") or "").split(";")[1].strip()

    paths = ("/a/1", "/a/2", "/b")
    gateway.store(*paths)
    expect_same("stored", [status(path) for path in paths], ["hit"] * 3)
    expect_same("key", gateway.told(f"/v1/cache/memory/purge?key={quoted(gateway.key('/b'))}", "POST")["purged"], 1)
    expect_same("gone", [status(path) for path in paths], ["hit", "hit", "fwd=uri-miss"])
    gateway.store(*paths)
    expect_same("prefix", gateway.told(f"/v1/cache/memory/purge?prefix={quoted(gateway.key('/a/'))}", "POST")["purged"], 2)
    expect_same("gone", [status(path) for path in paths], ["fwd=uri-miss", "fwd=uri-miss", "hit"])
    gateway.store(*paths)
    expect_same("tag", gateway.told("/v1/cache/memory/purge?tag=news", "POST")["purged"], 3)
    gateway.told("/v1/cache/memory/purge", "POST", status=400)
    gateway.told("/v1/cache/memory/purge?tag=news", status=405)


@case("cache admin: a purge needs the token, and is refused to pages of other origins", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    token = "cache-admin-0123456789"
    gateway = Gateway(t, token)
    gateway.store("/a")
    shown = f"Authorization: Bearer {token}"
    for path, method in (("/v1/cache/memory/purge?tag=news", "POST"), ("/v1/offline?mode=always", "POST"),
                         ("/v1/cache", "GET"), ("/v1/cache/memory/entries", "GET"), ("/v1/offline", "GET")):
        expect_status(gateway.ask(path, port=gateway.admin, method=method), 401)
        expect_status(gateway.ask(path, shown, "Origin: http://evil.example", port=gateway.admin, method=method), 403)
        expect_status(gateway.ask(path, port=gateway.admin, method=method, host="evil.example"), 403)
    expect_same("kept", json.loads(gateway.ask("/v1/cache", shown, port=gateway.admin).body)["stores"][1]["responses"], 1)
    purged = gateway.ask("/v1/cache/memory/purge?tag=news", shown, port=gateway.admin, method="POST")
    expect_same("purged", json.loads(purged.body)["purged"], 1)


@case("cache admin: keys of a private cache show the client as a digest only", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Cache-Control: private, max-age=600")))
    gateway = Gateway(t)
    for name in ("one", "two"):
        expect_status(gateway.ask("/own/x", f"Authorization: Bearer {SECRET}-{name}"), 200)
    check(eventually(lambda: gateway.keys(store="small") == [gateway.key("/own/x")] * 2), gateway.keys(store="small"))
    listed = gateway.told("/v1/cache/small/entries")["entries"]
    identities = {entry["identity"] for entry in listed}
    check(len(identities) == 2 and all(len(name) == 12 for name in identities), listed)
    expect_same("purged", gateway.told(f"/v1/cache/small/purge?key={quoted(gateway.key('/own/x'))}", "POST")["purged"], 2)


@case("cache admin: the record of a request shows the result of the cache, and its reason", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH, answer(b"Cache-Control: no-store")))
    gateway = Gateway(t)
    gateway.store("/a")
    for path in ("/a", "/no"):
        expect_status(gateway.ask(path), 200)
    check(eventually(lambda: len(gateway.records()) == 3), gateway.records())
    refused, hit, miss = gateway.records()
    expect_same("results", [record["cache"] for record in (miss, hit, refused)], ["miss", "hit", "miss"])
    expect_same("miss", [ware["text"] for ware in miss["wares"]], ["miss: no response is stored", "stored"])
    expect_same("hit", [ware["text"] for ware in hit["wares"]], ["hit"])
    expect_same("refused", refused["wares"][-1]["text"], "passed not stored: the response says no-store")
    text = gateway.command("trace", refused["id"])
    check("cache miss" in text and "not stored: the response says no-store" in text, text)
    check("cache hit" in gateway.command("trace", hit["id"]), "trace does not say so")


@case("cache command: ls, show, purge and stats print the stores' contents", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    gateway = Gateway(t)
    gateway.store("/a", "/b", f"/c?key={SECRET}")
    gateway.store("/own/x", store="small")
    heading, *lines = gateway.command("cache", "ls").splitlines()
    expect_same("heading", heading.split(), ["STORE", "STATUS", "SIZE", "AGE", "TTL", "VARY", "TAGS", "KEY"])
    expect_same("lines", [(line.split()[0], line.split()[-1]) for line in lines],
                [("small", gateway.key("/own/x")), ("memory", gateway.key("/a")), ("memory", gateway.key("/b")), ("memory", gateway.key("/c?key=…"))])
    expect_same("json", [json.loads(line)["store"] for line in gateway.command("cache", "ls", "--json").splitlines()], ["small", "memory"])
    only = gateway.command("cache", "--store", "memory", "--prefix", gateway.key("/a"), "--tag", "news", "--limit", "5").splitlines()
    expect_same("filtered", len(only), 2)
    shown = gateway.command("cache", "show", gateway.key("/a"))
    check("status 200" in shown and "Set-Cookie: …" in shown and "tags news, home" in shown, shown)
    expect_same("shown", json.loads(gateway.command("cache", "show", gateway.key("/a"), "--json"))["store"], "memory")
    check("STORE" in gateway.command("cache", "stats"), "no stores")
    expect_same("stats", len(json.loads(gateway.command("cache", "stats", "--json"))["stores"]), 2)
    expect_same("purge", gateway.command("cache", "purge", gateway.key("/a")), "small: 0 responses purged\nmemory: 1 response purged\n")
    expect_same("tag", gateway.command("cache", "purge", "--tag", "news", "--store", "memory"), "memory: 2 responses purged\n")
    purged = gateway.command("cache", "purge", "--all", "--json").splitlines()
    expect_same("all", [json.loads(line) for line in purged], [{"store": "small", "purged": 1}, {"store": "memory", "purged": 0}])


@case("cache command: mistakes are reported, with their exit status", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_same("store", gateway.command("cache", "ls", "--store", "x", code=1), "the gateway has no store x; it has small, memory\n")
    expect_same("key", gateway.command("cache", "show", "http://a/", code=1), "nothing is stored under http://a/; httpware cache ls lists the keys\n")
    for arguments in (("purge",), ("purge", "--all", "--tag", "a"), ("purge", "--prefix", ""), ("ls", "--limit", "0"), ("show",)):
        gateway.command("cache", *arguments, code=64)
    expect_same("offline", gateway.command("offline", "always", code=1), "no chain has offline\n")
    gateway.command("offline", "on", code=64)
    gateway.command("offline", "--for", "1h", code=64)
    gateway.process.stop()
    check("no admin listener answers" in gateway.command("cache", "ls", code=3), "it does not say what to do")


@case("cache command: offline is switched on while the gateway runs, and ends", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    gateway = Gateway(t, more="\n  - { name: off, match: { path: \"/off/**\" }, service: origin, chain: off }")
    gateway.store("/off/a")
    expect_status(gateway.ask("/off/b"), 200)
    heading, line = gateway.command("offline").splitlines()
    expect_same("shown", (heading.split(), line.split()), (["LABEL", "MODE", "CONFIGURED", "UNTIL"], ["off", "never", "never", "-"]))
    [switch] = json.loads(gateway.command("offline", "always", "--for", "10m", "--label", "off", "--json"))["offline"]
    expect_same("set", (switch["mode"], switch["configured"], switch["overridden"]), ("always", "never", True))
    expect_status(gateway.ask("/off/a"), 200)
    expect_status(gateway.ask("/off/c"), 504)
    gateway.command("offline", "always", "--label", "other", code=1)
    expect_same("back", gateway.command("offline", "configured").splitlines()[1].split(), ["off", "never", "never", "-"])
    expect_status(gateway.ask("/off/c"), 200)
