"""Two gateways before one Redis server: what they share, and what becomes of them without it."""

from __future__ import annotations

import json
import signal
import subprocess
import threading

from Rig.origins import OriginConnection, answering
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .fields import answer
from .tokens import Endpoint

NO = "stores of httpware"
PASSWORD = "s3cret-redis"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
stores:
  shared: {{ redis: {{ url: "redis://127.0.0.1:{redis}/2", password: {password} }} }}
  # Where nothing may go on without an answer, a busy machine has its time.
  tokens: {{ redis: {{ url: "redis://127.0.0.1:{redis}/3", password: {password}, timeout: 3s }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
credentials:
  orders:
    grant: refreshToken
    tokenUrl: "http://127.0.0.1:{token}/token"
    clientId: gateway
    refreshToken: s3cret-refresh
    lock: tokens
    retry: 0
chains:
  cached: {{ middlewares: [{{ httpCache: {{ store: shared }} }}] }}
  tokens: {{ middlewares: [{{ tokenRefresh: {{ credential: orders }} }}, {{ tokenInject: {{ credential: orders }} }}] }}
  allow: {{ middlewares: [{{ rateLimit: {{ rate: 1/h, burst: 20, store: shared, onError: allow }} }}] }}
  refuse: {{ middlewares: [{{ rateLimit: {{ rate: 1/h, burst: 20, store: shared, name: other, onError: refuse }} }}] }}
routes:
  - {{ match: {{ path: "/allow/**" }}, service: origin, chain: allow }}
  - {{ match: {{ path: "/refuse/**" }}, service: origin, chain: refuse }}
  - {{ name: tokens, match: {{ path: "/token/**" }}, service: origin, chain: tokens }}
  - {{ name: all, service: origin, chain: cached }}
"""

FRESH = answer(b"Cache-Control: max-age=600", b"Cache-Tag: news")


class Redis:
    """A real server, which keeps nothing on disk."""

    def __init__(self, t: Trial):
        self.t, self.port = t, free_port()
        self.process = self.start()

    def start(self) -> Process:
        process = self.t.setup.place.command(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--requirepass", PASSWORD], [self.port])
        self.t.at_end(lambda: self.end(process))
        self.process = process
        return process

    def end(self, process: Process) -> None:
        process.signal(signal.SIGCONT)
        process.signal(signal.SIGKILL)
        process.wait(5)


class Gateway:
    def __init__(self, t: Trial, redis: int, token: int):
        self.t, self.web, self.admin = t, free_port(), free_port()
        text = CONFIG.format(web=self.web, admin=self.admin, redis=redis, password=PASSWORD, main=t.setup.ports["main"], token=token)
        self.process = t.setup.place.gateway(t.setup.binary, text, [self.web, self.admin], workers=2)
        t.at_end(self.process.stop)

    def ask(self, path: str, port: int | None = None, method: str = "GET", lines: str = "") -> Message:
        """One request, under a name that is the same for every gateway: it is part of the key."""
        client = connect(("127.0.0.1", port or self.web), 10.0)
        self.t.clients.append(client)
        host = f"127.0.0.1:{self.admin}" if port else "site.test"
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        client.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}{lines}Connection: close\r\n\r\n".encode())
        return client.read_response(method)

    def status(self, path: str) -> str:
        response = self.ask(path)
        expect_status(response, 200)
        return (response.get("Cache-Status") or "").split(";")[1].strip()

    def store(self) -> dict:
        text = self.ask("/v1/cache", port=self.admin).body
        check(PASSWORD.encode() not in text, text)
        return next(store for store in json.loads(text)["stores"] if store["name"] == "shared")

    def hears(self) -> bool:
        return self.store()["redis"]["subscribed"]


class Pair:
    def __init__(self, t: Trial):
        self.redis, self.endpoint = Redis(t), Endpoint(t)
        self.a, self.b = (Gateway(t, self.redis.port, self.endpoint.server.server_address[1]) for _ in range(2))
        for gateway in (self.a, self.b):
            gateway.status("/first")
            check(eventually(gateway.hears, 5), "changes are not told", gateway.store())


@case("Redis: a response that one gateway stores is a hit on the other, and a purge removes it from both", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    pair = Pair(t)
    expect_same("first", pair.a.status("/a"), "fwd=uri-miss")
    check(eventually(lambda: pair.b.status("/a") == "hit"), "no hit on the other gateway")
    # From its own memory, too, once word of the storing has come.
    check(eventually(lambda: pair.b.status("/a") == "hit" and pair.b.store()["responses"] > 0), pair.b.store())
    expect_same("purged", json.loads(pair.a.ask("/v1/cache/shared/purge?tag=news", port=pair.a.admin, method="POST").body)["purged"] >= 1, True)
    check(eventually(lambda: pair.b.store()["responses"] == 0), pair.b.store())
    expect_same("after the purge", pair.b.status("/a"), "fwd=uri-miss")
    # An unsafe request that succeeds, RFC 9111 §4.4.
    check(eventually(lambda: pair.a.status("/a") == "hit"), "not shared again")
    expect_status(pair.b.ask("/a", method="POST"), 200)
    check(eventually(lambda: pair.a.status("/a") != "hit"), "still there after POST on the other gateway")


@case("Redis: a purge while Redis is stopped fails, for the admin listener and for the command", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    pair = Pair(t)
    check(eventually(lambda: pair.a.status("/a") == "hit"), "not stored")
    pair.redis.process.signal(signal.SIGSTOP)
    for query in ("tag=news", "prefix="):
        refused = pair.a.ask(f"/v1/cache/shared/purge?{query}", port=pair.a.admin, method="POST")
        expect_status(refused, 503)
        check(b"not all of shared could be searched" in refused.body, refused.body)
    command = [t.setup.binary, "cache", "purge", "--tag", "news", "--admin", f"127.0.0.1:{pair.a.admin}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    expect_same("exit", result.returncode, 1)
    check("not all of shared could be searched" in result.stderr, result.stderr)
    pair.redis.process.signal(signal.SIGCONT)
    check(eventually(lambda: subprocess.run(command, capture_output=True, timeout=30).returncode == 0, 8), "the command goes on failing")
    check(eventually(lambda: pair.b.status("/a") != "hit"), "still there on the other gateway")


@case("RFC 9111 §4.3.5: a HEAD's response updates a response in Redis for another gateway, too", nginx=NO)
def _(t: Trial) -> None:
    def talk(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            size = 600_000 if request.target == "/long" else 100
            connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Length: %d\r\nX-Of: %s\r\n\r\n"
                            % (size, request.method.encode()))
            if request.method == "GET":
                connection.send(b"x" * size)

    t.origin(talk)
    pair = Pair(t)
    # Small responses are in the gateways' memory, too; large ones are in Redis only.
    for path, size in (("/short", 100), ("/long", 600_000)):
        pair.a.ask(path)
        check(eventually(lambda: pair.b.status(path) == "hit"), f"{path}: no hit on the other gateway")
        expect_status(pair.a.ask(path, method="HEAD", lines="Cache-Control: no-cache\r\n"), 200)
        check(eventually(lambda: pair.b.ask(path).get("X-Of") == "HEAD"), f"{path}: not known to the other gateway")
        response = pair.b.ask(path)
        expect_same(path, ((response.get("Cache-Status") or "").split(";")[1].strip(), len(response.body)), ("hit", size))


@case("Redis: gateways answer while Redis is stopped or killed, and share again afterwards", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    pair = Pair(t)
    pair.redis.process.signal(signal.SIGSTOP)
    for number in range(5):
        expect_same("stopped", pair.a.status(f"/stopped/{number}"), "fwd=uri-miss")
    pair.redis.process.signal(signal.SIGCONT)
    pair.redis.end(pair.redis.process)
    check(eventually(lambda: not pair.a.hears(), 5), "does not see that Redis is gone")
    for number in range(5):
        expect_same("killed", pair.a.status(f"/killed/{number}"), "fwd=uri-miss")
    check(pair.a.store()["redis"]["fault"], pair.a.store())
    text = pair.a.ask("/metrics", port=pair.a.admin).body.decode()
    check('httpware_redis_up{store="shared"} 0' in text, text)
    pair.redis.start()
    check(eventually(lambda: pair.a.hears() and pair.b.hears(), 15), "does not find it again")
    check(eventually(lambda: pair.a.status("/back") == "hit", 10), "stores nothing")
    check(eventually(lambda: pair.b.status("/back") == "hit", 10), "does not share")
    check(pair.a.process.is_running and pair.b.process.is_running, "a gateway ended")


@case("Redis: a rotating token that two gateways share is never redeemed twice", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(answer()))
    pair = Pair(t)
    threads = [threading.Thread(target=gateway.ask, args=("/token/x",)) for gateway in (pair.a, pair.b) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = [form["refresh_token"] for form in pair.endpoint.forms]
    expect_same("redeemed", tokens, ["s3cret-refresh"])
    for gateway in (pair.a, pair.b):
        expect_status(gateway.ask("/token/x"), 200)
    expect_same("redeemed", len(pair.endpoint.forms), 1)


def passed(gateways: list[Gateway], path: str, count: int) -> dict[int, int]:
    """How many requests had which status, in turns over the gateways."""
    statuses: dict[int, int] = {}
    for number in range(count):
        status = gateways[number % len(gateways)].ask(path).status
        statuses[status] = statuses.get(status, 0) + 1
    return statuses


@case("Redis: two gateways share one limit, which fails open or closed as configured while Redis is stopped or killed", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(answer()))
    pair = Pair(t)
    both = [pair.a, pair.b]
    expect_same("one limit", passed(both, "/allow/", 30), {200: 20, 429: 10})
    expect_same("another one", passed(both, "/refuse/", 10), {200: 10})
    pair.redis.process.signal(signal.SIGSTOP)
    expect_same("stopped, open", passed(both, "/allow/", 6), {200: 6})
    expect_same("stopped, closed", passed(both, "/refuse/", 6), {503: 6})
    pair.redis.process.signal(signal.SIGCONT)
    check(eventually(lambda: all(gateway.ask("/allow/").status == 429 for gateway in both), 15), "does not find it again")
    pair.redis.end(pair.redis.process)
    check(eventually(lambda: not pair.a.hears() and not pair.b.hears(), 5), "does not see that Redis is gone")
    expect_same("killed, open", passed(both, "/allow/", 6), {200: 6})
    expect_same("killed, closed", passed(both, "/refuse/", 6), {503: 6})
    text = pair.a.ask("/metrics", port=pair.a.admin).body.decode()
    check("httpware_rate_unanswered_total" in text, text)
    pair.redis.start()
    check(eventually(lambda: all(gateway.ask("/refuse/").status in (200, 429) for gateway in both), 15), "does not count again")
    check(pair.a.process.is_running and pair.b.process.is_running, "a gateway ended")


@case("Redis: a purge during a short stop of Redis also reaches the other gateway", nginx=NO)
def _(t: Trial) -> None:
    t.origin(answering(FRESH))
    pair = Pair(t)
    for gateway in (pair.a, pair.b):
        check(eventually(lambda: gateway.status("/a") == "hit" and gateway.store()["responses"] > 0), "not stored")
    pair.redis.process.signal(signal.SIGSTOP)
    # Each loop finds out that it is silent, so that nothing is sent for the POST.
    for number in range(8):
        pair.a.status(f"/other{number}")
    expect_status(pair.a.ask("/a", method="POST"), 200)
    pause(1.2, Why.PASSES)  # longer than Redis is waited for, and less than its silence ends the subscription
    pair.redis.process.signal(signal.SIGCONT)
    check(eventually(lambda: pair.b.status("/a") != "hit", 8), "still there on the other gateway")
