#!/usr/bin/env python3
"""Tokens under load: what `tokenRefresh` and `accumulate` must get right, with numbers.

    python3 Tests/Load/tokens.py --binary .build/release/httpware [--seconds 60] [--clients 500]

A token endpoint that takes 300 ms, gives tokens that live for one second, and rotates refresh tokens; keep-alive clients (wrk, each
waits 125 to 375 ms between its requests, so that they do not march in step) and an origin server (nginx) that are faster than the gateway,
so that what is measured is it. The origin server's log says which token came when. Then what can go wrong with the endpoint, and two gateways that share one rotating
token, with an origin server that refuses what has expired. Needs wrk and nginx. Exits 1 when a promise is broken.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, accepts, eventually, pausing  # noqa: E402

ENDPOINT_TIME = 0.3
LIFETIME = 1.0


class Server:
    """The token endpoint and the origin server, in a process of their own; told what to do and asked what was seen over HTTP."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.mode = "good"
        self.reset()

    def reset(self):
        self.issued = 0
        self.calls = 0
        self.under_way = 0
        self.most_under_way = 0
        self.redeemed = {}
        self.spent = 0
        self.requests = 0
        self.expired = 0
        self.strange = 0
        self.times = []

    async def token(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = int(next((line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0))
                form = urllib.parse.parse_qs((await reader.readexactly(length)).decode())
                self.calls += 1
                self.times.append(time.time())
                self.under_way += 1
                self.most_under_way = max(self.most_under_way, self.under_way)
                try:
                    mode = self.mode
                    if mode == "hang":
                        await pausing(3600, Why.SLOW)
                    await pausing(ENDPOINT_TIME, Why.SLOW)
                    if mode == "close":
                        return
                    status, kind, body = self.answer(mode, form)
                    writer.write(
                        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                    await writer.drain()
                finally:
                    self.under_way -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, mode, form):
        if mode == "invalid_grant":
            return 400, "application/json", b'{"error":"invalid_grant"}'
        if mode == "garbage":
            return 200, "application/json", b'{"access_token":"' + b"x" * 5000
        token = form.get("refresh_token", [""])[0]
        count = self.redeemed[token] = self.redeemed.get(token, 0) + 1
        if count > 1:
            self.spent += 1
            return 400, "application/json", b'{"error":"invalid_grant"}'
        self.issued += 1
        body = {
            "access_token": f"t-{self.issued}-{time.time() + LIFETIME:.6f}", "token_type": "Bearer",
            "expires_in": int(LIFETIME), "refresh_token": f"r-{self.issued}-{os.urandom(4).hex()}",
        }
        return 200, "application/json", json.dumps(body).encode()

    async def origin(self, reader, writer):
        good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        bad = b'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error="invalid_token"\r\nContent-Length: 0\r\n\r\n'
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                at = head.find(b"Authorization: Bearer t-")
                if at < 0:
                    self.strange += 1
                    writer.write(bad)
                    continue
                expiry = float(head[at + 24:head.index(b"\r", at)].split(b"-")[1])
                if expiry < time.time():
                    self.expired += 1
                    writer.write(bad)
                else:
                    writer.write(good)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def run(self):
        token = await asyncio.start_server(self.token, "127.0.0.1", 0)
        origin = await asyncio.start_server(self.origin, "127.0.0.1", 0, backlog=2048)
        self.pipe.send((token.sockets[0].getsockname()[1], origin.sockets[0].getsockname()[1]))
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def ordered():
            try:
                order = self.pipe.recv()
            except EOFError:
                return done.set()
            if order == "seen":
                keys = ["issued", "calls", "most_under_way", "spent", "requests", "expired", "strange", "times"]
                self.pipe.send({key: getattr(self, key) for key in keys})
            else:
                self.reset()
                self.mode = order
                self.pipe.send("ok")

        loop.add_reader(self.pipe.fileno(), ordered)
        await done.wait()


def serve(pipe):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Server(pipe).run())


class Client:
    """One keep-alive connection."""

    def __init__(self, port):
        self.port = port

    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def get(self, path="/a"):
        """The status, whether there was Retry-After, and how long it took."""
        began = time.perf_counter()
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        if length:
            await self.reader.readexactly(length)
        return int(head[9:12]), b"retry-after:" in head.lower(), time.perf_counter() - began


async def connected(ports, count):
    clients = [Client(ports[index % len(ports)]) for index in range(count)]
    for start in range(0, count, 50):
        await asyncio.gather(*(client.connect() for client in clients[start:start + 50]))
    return clients


async def steady(ports, count, seconds, pause):
    """Each client sends a request, waits a little, sends the next."""
    clients = await connected(ports, count)
    end = time.time() + seconds
    statuses, times = {}, []

    async def go(index, client):
        await pausing(pause * index / count, Why.SLOW)
        while time.time() < end:
            status, _, took = await client.get()
            statuses[status] = statuses.get(status, 0) + 1
            times.append(took)
            await pausing(pause, Why.SLOW)

    await asyncio.gather(*(go(index, client) for index, client in enumerate(clients)))
    return statuses, sorted(times)


async def once(ports, count):
    clients = await connected(ports, count)
    results = await asyncio.gather(*(client.get() for client in clients))
    for client in clients:
        client.writer.close()
    return results


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Gateway:
    """A gateway process with one credential."""

    def __init__(self, binary, folder, token_port, origin_port, credential="", hold="max: 1000", name="gateway"):
        self.port, self.admin = free_port(), free_port()
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w") as file:
            file.write(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{self.port}", limits: {{ connections: 4096 }} }} }}
admin: {{ bind: "127.0.0.1:{self.admin}", token: none }}
services: {{ api: {{ baseUrl: "http://127.0.0.1:{origin_port}" }} }}
credentials:
  orders:
    grant: refreshToken
    tokenUrl: "http://127.0.0.1:{token_port}/token"
    clientId: gateway
    clientSecret: s3cret
    refreshToken: r-0
    refreshBefore: 0s
    window: {{ max: 100, per: 60s }}
    {credential}
chains:
  api:
    middlewares:
      - tokenRefresh: {{ credential: orders, hold: {{ {hold} }} }}
      - tokenInject: {{ credential: orders }}
routes:
  - {{ match: {{ path: /plain }}, service: api }}
  - {{ service: api, chain: api }}
""")
        self.log = open(os.path.join(folder, f"{name}.log"), "w+")
        self.process = subprocess.Popen(
            [binary, "run", "-c", path], stdout=self.log, stderr=self.log,
            env=dict(os.environ, SWIFT_BACKTRACE="enable=no"))
        eventually(lambda: accepts(self.port) or self.process.poll() is not None, 10, every=0.025)
        if self.process.poll() is not None or not accepts(self.port):
            self.log.seek(0)
            sys.exit("the gateway does not start: " + self.log.read())

    def credential(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/v1/credentials", timeout=10) as answer:
            return json.load(answer)["credentials"][0]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        return text


NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format seen '$msec $uri $http_authorization'; access_log {folder}/seen.log seen buffer=64k flush=1s;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  keepalive_timeout 600; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 ok; }} }}
}}
"""
WRK = """
function delay() return math.random({pause} / 2, {pause} * 3 / 2) end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{{"requests":%d,"failed":%d,"p50":%f,"p99":%f,"max":%f}}\\n', summary.requests,
    e.connect + e.read + e.write + e.timeout + e.status, latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
"""


class Nginx:
    """An origin server that notes which token came when."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w") as file:
            file.write(NGINX.format(folder=folder, port=self.port))
        self.process = subprocess.Popen(["nginx", "-c", path, "-e", os.path.join(folder, "error.log")], stderr=subprocess.DEVNULL)
        if not eventually(lambda: accepts(self.port), 10, every=0.025):
            sys.exit("nginx does not start")

    def stop(self):
        """How many requests came, and how many of them with a token that had expired, or with none."""
        self.process.terminate()
        self.process.wait(20)
        count = expired = strange = 0
        with open(os.path.join(self.folder, "seen.log")) as file:
            for line in file:
                when, path, token = line.rstrip("\n").split(" ", 2)
                if path == "/plain":
                    continue
                count += 1
                if not token.startswith("Bearer t-"):
                    strange += 1
                elif float(token.split("-")[2]) < float(when):
                    expired += 1
        return count, expired, strange


def wrk(port, clients, seconds, pause, folder, target="/a"):
    """The results of keep-alive clients: how many requests, how many failed, and how long they took, in milliseconds."""
    path = os.path.join(folder, "wrk.lua")
    with open(path, "w") as file:
        file.write(WRK.format(pause=int(pause * 1000)))
    done = subprocess.run(
        ["wrk", "-t1", f"-c{clients}", f"-d{int(seconds)}s", "--timeout", "20s", "-s", path, f"http://127.0.0.1:{port}{target}"],
        capture_output=True, text=True, timeout=seconds + 60, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, name, is_good, shown):
        self.failed += not is_good
        print(f"  {'ok  ' if is_good else 'FAIL'} {name}: {shown}", flush=True)


def at(times, share):
    return times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--pause", type=float, default=0.25, help="between the requests of one client, in seconds, on average")
    options = parser.parse_args()
    missing = [program for program in ("nginx", "wrk") if not shutil.which(program)]
    if missing:
        print(f"skipped: this needs {' and '.join(missing)}")
        return 0
    folder = tempfile.mkdtemp(prefix="httpware-tokens-")
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    theirs.close()
    token_port, origin_port = ours.recv()
    checks = Checks()

    def order(mode):
        ours.send(mode)
        return ours.recv()

    def gateway(**more):
        return Gateway(options.binary, folder, token_port, origin_port, **more)

    try:
        count = options.clients
        print(f"{count} clients, {options.seconds:g}s, tokens live {LIFETIME:g}s, the endpoint takes {ENDPOINT_TIME * 1000:g}ms")
        order("good")
        origin = Nginx(folder)
        one = Gateway(options.binary, folder, token_port, origin.port)
        bare = wrk(one.port, count, 5, options.pause, folder, "/plain")
        began = time.time()
        measured = wrk(one.port, count, options.seconds, options.pause, folder)
        elapsed = time.time() - began
        seen, report = order("seen"), one.credential()
        log = one.stop()
        requests, expired, strange = origin.stop()
        print(f"  {measured['requests']} requests; p50 {measured['p50']:.1f}ms p99 {measured['p99']:.1f}ms max {measured['max']:.1f}ms;"
              f" {report['heldTotal']} held; without tokens: p50 {bare['p50']:.1f}ms p99 {bare['p99']:.1f}ms")
        checks.check("one refresh at a time", seen["most_under_way"] == 1, seen["most_under_way"])
        checks.check("refreshes ≤ elapsed / lifetime + 1", seen["calls"] <= elapsed / LIFETIME + 1,
                     f"{seen['calls']} in {elapsed:.1f}s")
        checks.check("requests failed: 0", measured["failed"] == 0, measured["failed"])
        checks.check("sent with an expired token: 0", expired == 0, expired)
        checks.check("sent without a token: 0", strange == 0 and requests >= measured["requests"], strange)
        checks.check("no refresh token redeemed twice", seen["spent"] == 0, seen["spent"])
        # All that a request took: what it would take without tokens is not even subtracted.
        checks.check("p99 ≤ endpoint + 20ms", measured["p99"] <= ENDPOINT_TIME * 1000 + 20, f"{measured['p99']:.1f}ms")
        checks.check("no token in the log", "t-1-" not in log and "r-1-" not in log and "s3cret" not in log, "none")

        for mode, calls in [("invalid_grant", 1), ("garbage", 3), ("close", 3)]:
            print(f"the endpoint: {mode}")
            order(mode)
            one = gateway()
            results = asyncio.run(once([one.port], count))
            again = asyncio.run(once([one.port], 50))
            seen = order("seen")
            one.stop()
            refused = [status == 503 and has_retry for status, has_retry, _ in results + again]
            checks.check("each held request fails once, 503 and Retry-After", all(refused), f"{sum(refused)} of {len(refused)}")
            checks.check(f"no storm: ≤ {calls} calls", seen["calls"] <= calls, seen["calls"])
            checks.check("nothing goes upstream", seen["requests"] == 0, seen["requests"])

        print("the endpoint hangs")
        order("hang")
        one = gateway(hold="max: 1000, timeout: 2s")
        results = asyncio.run(once([one.port], count))
        report = one.credential()
        one.stop()
        slowest = max(took for _, _, took in results)
        good = sum(status == 503 and has_retry for status, has_retry, _ in results)
        checks.check("503 and Retry-After at the hold's timeout", good == count and 1.9 < slowest < 3.5,
                     f"{good} of {count}, {slowest * 1000:.0f}ms")
        checks.check("their slots are free", report["held"] == 0, report["held"])

        print("the queue overflows")
        order("good")
        one = gateway(hold="max: 100")
        results = asyncio.run(once([one.port], count))
        one.stop()
        served = sum(status == 200 for status, _, _ in results)
        checks.check("100 wait, the others are refused at once or served later",
                     served >= 100 and all(s in (200, 503) for s, _, _ in results), f"{served} served, {count - served} refused")

        print("two gateways, one rotating token")
        order("good")
        shared = f"file: {folder}/shared.json\n    lock: file"
        gateways = [gateway(credential=shared, name=f"gateway{number}") for number in (1, 2)]
        seconds = min(options.seconds, 20)
        began = time.time()
        statuses, times = asyncio.run(steady([one.port for one in gateways], 100, seconds, options.pause))
        elapsed = time.time() - began
        seen = order("seen")
        counts = [one.credential()["history"] for one in gateways]
        for one in gateways:
            one.stop()
        adopted = sum(refresh["outcome"] == "adopted" for history in counts for refresh in history)
        checks.check("never redeemed twice", seen["spent"] == 0, seen["spent"])
        checks.check("one refresh at a time", seen["most_under_way"] == 1, seen["most_under_way"])
        checks.check("refreshes ≤ elapsed / lifetime + 1", seen["calls"] <= elapsed / LIFETIME + 1,
                     f"{seen['calls']} in {elapsed:.1f}s, {adopted} of the last taken over from the other")
        checks.check("requests failed: 0", set(statuses) == {200}, statuses)
        checks.check("sent with an expired token: 0", seen["expired"] == 0, seen["expired"])
        mode = os.stat(f"{folder}/shared.json").st_mode & 0o777
        checks.check("the file is its owner's alone", mode == 0o600, oct(mode))
    finally:
        ours.close()
        server.join(5)
        shutil.rmtree(folder, ignore_errors=True)
    print("all kept" if checks.failed == 0 else f"{checks.failed} broken")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
