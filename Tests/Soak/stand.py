"""The gateway with everything on, and all the servers around it."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from Faults.names import NameServer, put
from Load.redis_failover import Servers, command, serve
from Rig.certificates import certificates
from Rig.processes import Process, Workplace, free_port
from Rig.waits import Why, accepts, eventually, pause

from . import content

TOKEN = "of-the-soak-0123456789"
ORIGIN = str(Path(__file__).with_name("origin.py"))

CONFIG = """
version: 1
# reload @REVISION@
listeners:
  web: {{ bind: "127.0.0.1:{web}", paths: strict, chain: base }}
  tls: {{ bind: "127.0.0.1:{tls}", tls: {{ cert: @CERT@.pem, key: @CERT@.key }}, paths: strict, chain: base }}
admin: {{ bind: "127.0.0.1:{admin}", token: {token}, capture: {{ memory: 8MiB, content: 32KiB, disk: {{ path: {disk}/captures, maxSize: 8MiB }} }} }}
resolver: {{ maxTtl: 1s }}
log: {{ level: info, output: stderr }}
stores:
  mem: {{ memory: {{ maxSize: 8MiB }} }}
  disk: {{ disk: {{ path: {disk}/cache, maxSize: 16MiB }} }}
  shared: {{ redis: {{ {redis}, timeout: 250ms, near: 8MiB }} }}
credentials:
  own: {{ grant: clientCredentials, tokenUrl: "http://127.0.0.1:{tokens}/own", clientId: soak, clientSecret: "soak-secret-0123", refreshBefore: 2s, retry: 0, window: {{ max: 1000, per: 10s }} }}
  rotating: {{ grant: refreshToken, tokenUrl: "http://127.0.0.1:{tokens}/rotating", clientId: soak, refreshToken: "0", refreshBefore: 2s, retry: 0, window: {{ max: 1000, per: 10s }}, lock: shared }}
services:
  api: {{ endpoints: [{{ url: "http://127.0.0.1:{one}", weight: @WEIGHT@ }}, {{ url: "http://127.0.0.1:{two}", weight: 10 }}], balance: leastRequests, ejection: {{ for: 1s, maxFor: 2s }},
         timeouts: {{ connect: 1s, response: 8s, idle: 15s }} }}
  h2: {{ endpoints: [{{ url: "https://127.0.0.1:{proxy_one}" }}, {{ url: "https://127.0.0.1:{proxy_two}" }}], protocol: h2, tls: {{ ca: {ca} }}, timeouts: {{ connect: 1s, response: 8s }} }}
  named: {{ baseUrl: "http://{name}:{named}", timeouts: {{ connect: 1s, response: 8s }} }}
chains:
  base:
    middlewares: [requestId, {{ rateLimit: {{ rate: 1000000/m, key: header.X-User, store: shared }} }}]
    postwares: [{{ accessLog: {{ output: "file:{disk}/access.log" }} }}]
  api:
    middlewares:
      - retry: {{ attempts: 3, retryOn: [connect, reset, timeout, 502, 503, 504], perTry: 1500ms, backoff: 10ms..50ms, budget: 1.0 }}
  mem: {{ middlewares: [{{ httpCache: {{ store: mem, maxObject: @OBJECT@ }} }}, {{ use: api }}] }}
  disk: {{ middlewares: [{{ httpCache: {{ store: disk }} }}, {{ use: api }}] }}
  shared: {{ middlewares: [{{ httpCache: {{ store: shared }} }}, {{ use: api }}] }}
  mine: {{ middlewares: [{{ httpCache: {{ store: mem, mode: private, key: {{ headers: [X-User] }} }} }}, {{ use: api }}] }}
  own: {{ middlewares: [{{ tokenRefresh: {{ credential: own }} }}, {{ tokenInject: {{ credential: own }} }}, {{ use: api }}] }}
  rotating: {{ middlewares: [{{ tokenRefresh: {{ credential: rotating }} }}, {{ tokenInject: {{ credential: rotating }} }}, {{ use: api }}] }}
  limited: {{ middlewares: [{{ rateLimit: {{ rate: 10/s, burst: 10, key: header.X-User, store: shared, name: strict }} }}, {{ use: api }}] }}
  revision: {{ middlewares: [{{ mock: {{ body: "@REVISION@" }} }}] }}
routes:
@ROUTE@
  - {{ match: {{ path: /revision }}, chain: revision }}
  - {{ match: {{ path: "/mem/**" }}, service: api, chain: mem }}
  - {{ match: {{ path: "/disk/**" }}, service: api, chain: disk }}
  - {{ match: {{ path: "/shared/**" }}, service: api, chain: shared }}
  - {{ match: {{ path: "/mine/**" }}, service: api, chain: mine }}
  - {{ match: {{ path: "/own/**" }}, service: api, chain: own }}
  - {{ match: {{ path: "/rotating/**" }}, service: api, chain: rotating }}
  - {{ match: {{ path: "/api/**", headers: {{ X-Limited: "yes" }} }}, service: api, chain: limited }}
  - {{ match: {{ path: "/api/**", headers: {{ X-Service: h2 }} }}, service: h2, chain: api }}
  - {{ match: {{ path: "/api/**", headers: {{ X-Service: named }} }}, service: named, chain: api }}
  - {{ service: api, chain: api }}
"""

NGINX = """
daemon off; worker_processes 1; pid @FOLDER@/nginx.pid; error_log @FOLDER@/error.log; {user} worker_shutdown_timeout 20s;
events {{ worker_connections 2048; }}
http {{
  access_log off; client_body_temp_path @FOLDER@/1; proxy_temp_path @FOLDER@/2; fastcgi_temp_path @FOLDER@/3; uwsgi_temp_path @FOLDER@/4; scgi_temp_path @FOLDER@/5;
  keepalive_requests 100;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port} ssl http2; ssl_certificate {cert}; ssl_certificate_key {key};
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Redis(Servers):
    """Servers that write to their disk, as the article about tokens says."""

    def start(self, *words: str) -> int:
        return super().start(*words, "--appendonly", "yes", "--appendfsync", "always")

    def restart(self, port: int, master: int | None) -> None:
        """Starts a server again, with what it wrote: as a replica of that master, or as the master."""
        words = self.processes[port].popen.args
        if "--replicaof" in words:
            place = words.index("--replicaof")
            words = words[:place] + words[place + 3 :]
        self.processes[port] = self.place.command(words + (["--replicaof", "127.0.0.1", str(master)] if master else []), [port])


class TokenServer:
    """Tokens of five seconds. Each refresh token is good once."""

    def __init__(self, port: int):
        self.port, self.lock, self.listener = port, threading.Lock(), None
        self.mode, self.current, self.calls, self.doubled, self.under_way, self.overlaps = "well", 0, 0, 0, 0, 0
        self.notes: list[tuple[float, str]] = []
        self.start()

    def start(self) -> None:
        self.listener = serve(self.port, self.answer)

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def answer(self, line: bytes, form: bytes) -> tuple[int, bytes, bytes]:
        kind = b"application/json"
        if self.mode == "fails":
            return 500, kind, b'{"error":"server_error"}'
        if b"/own" in line:
            self.calls += 1
            return 200, kind, json.dumps({"access_token": content.token("own", self.calls, 5), "token_type": "Bearer", "expires_in": 5}).encode()
        spent = int(urllib.parse.parse_qs(form.decode())["refresh_token"][0])
        with self.lock:
            self.overlaps += self.under_way > 0
            self.under_way += 1
        pause(0.05, Why.SLOW)
        with self.lock:
            self.under_way -= 1
            self.calls += 1
            if spent != self.current:
                self.doubled += 1
                self.notes.append((time.time(), f"refresh token {spent} came where {self.current} is the present one"))
            # A suite that ended here would test nothing behind it: the present one is given again.
            self.current += spent == self.current
            return 200, kind, json.dumps({"access_token": content.token("rotating", self.current, 5), "token_type": "Bearer", "expires_in": 5,
                                          "refresh_token": str(self.current)}).encode()


class SoakStand:
    """Made in a `with`. The small disk and the names need root."""

    def __init__(self, binary: str, seed: int):
        self.place, self.random = Workplace("soak"), random.Random(f"{seed} reloads")
        self.disk = self.place.subfolder("disk")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=0777", "tmpfs", str(self.disk)], check=True)
        self.is_mounted = True
        self.filler = self.disk / "filler"
        self.posts = self.place.folder / "posts"
        self.ports = {name: free_port() for name in ("web", "tls", "admin", "tokens", "one", "two", "control", "proxy_one", "proxy_two", "named")}
        made = certificates()
        self.paths = {"cert": made / "a.pem", "key": made / "a.key", "ca": made / "ca.pem"}
        self.origins: dict[str, Process] = {}
        for name in ("one", "two", "control"):
            self.start_origin(name)
        self.addresses = ["127.0.1.1", "127.0.1.2"]
        self.start_named(0)
        self.address = 0
        self.resolver = f"127.77.{random.SystemRandom().randrange(1, 255)}.{random.SystemRandom().randrange(1, 255)}"
        self.names = NameServer(self.resolver, self.addresses[0])
        self.proxies: dict[str, Process] = {}
        for name in ("one", "two"):
            self.start_proxy(name)
        self.redis = Redis(self.place)
        self.redis_options = self.redis.sentinels()
        self.redis_ports = list(self.redis.processes)[:3]
        self.tokens = TokenServer(self.ports["tokens"])
        self.revision, self.generation = 0, 0
        resolv = self.place.folder / "resolv.conf"
        resolv.write_text(f"nameserver {self.resolver}\noptions timeout:1 attempts:1\n")
        # Names are looked up again after a reload, too: a name of its own is not in the hosts file.
        self.gateway = self.place.gateway(binary, self.config(), [self.ports["web"], self.ports["tls"]], 2, preexec=lambda: put(str(resolv), "/etc/resolv.conf"), patience=20)
        self.file = self.gateway.folder / "httpware.yaml"
        self.pid, self.former = self.gateway.pid, []

    def config(self) -> str:
        text = CONFIG.format(**self.ports, **self.paths, disk=self.disk, token=TOKEN, redis=self.redis_options, name="origin.soak.test")
        route = self.random.choice(["", '  - { name: more, match: { path: "/never/**" }, service: api, chain: api }'])
        return (text.replace("@REVISION@", str(self.revision)).replace("@WEIGHT@", str(self.random.choice([5, 10, 20]))).replace("@ROUTE@", route).replace("@CERT@", str(self.paths["cert"].with_name(self.random.choice(["a", "a2"]))))
                .replace("@OBJECT@", self.random.choice(["400KiB", "450KiB"])))

    # The servers around it

    def start_origin(self, name: str) -> None:
        port = self.ports[name]
        self.origins[name] = self.place.command([sys.executable, ORIGIN, "--name", name, "--port", str(port), "--posts", str(self.posts)], [port])

    def start_named(self, index: int) -> None:
        name = f"named {index}"
        self.origins[name] = self.place.command([sys.executable, ORIGIN, "--name", name, "--port", str(self.ports["named"]), "--address", self.addresses[index]], [])
        if not eventually(lambda: accepts(self.ports["named"], self.addresses[index]), 10, every=0.02):
            raise TimeoutError(f"{name} does not listen")

    def start_proxy(self, name: str) -> None:
        port = self.ports[f"proxy_{name}"]
        config = NGINX.format(user="user root;" if os.getuid() == 0 else "", origin=self.ports["control"], port=port, **{key: self.paths[key] for key in ("cert", "key")})
        self.proxies[name] = self.place.nginx(config, [port])

    def redis_master(self) -> int:
        for port in self.redis_ports:
            try:
                if self.redis.processes[port].is_running and command(port, "ROLE")[0] == "master":
                    return port
            except (OSError, IndexError, ValueError):
                pass
        raise TimeoutError("there is no master")

    def servers(self) -> list[int]:
        """The gateway, and the servers around it."""
        around = [*self.origins.values(), *self.proxies.values(), *self.redis.processes.values()]
        return [self.pid, *(process.pid for process in around if process.is_running)]

    # The gateway

    def ask(self, path: str, method: str = "GET", timeout: float = 10) -> tuple[int, bytes]:
        """Asks the admin listener."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["admin"], timeout=timeout)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def reload(self) -> int:
        """Writes another configuration in place of the file, and asks for a reload."""
        self.revision += 1
        fresh = self.file.with_suffix(".new")
        fresh.write_text(self.config())
        fresh.rename(self.file)
        # The log is rotated as other programs do it: SIGHUP opens a new one.
        log = self.disk / "access.log"
        if log.exists() and log.stat().st_size > 4 << 20:
            log.unlink()
        os.kill(self.pid, signal.SIGHUP)
        return self.revision

    def takes(self, revision: int) -> bool:
        """Whether that configuration, or a later one, is in force."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["web"], timeout=10)
        try:
            connection.request("GET", "/revision", headers={"X-User": "reload"})
            return int(connection.getresponse().read()) >= revision
        except (OSError, ValueError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def upgrade(self) -> None:
        """Another process takes over; raises if it does not."""
        self.generation += 1
        os.kill(self.pid, signal.SIGUSR2)
        if not eventually(lambda: self.gateway.log.count("takes over; draining") >= self.generation, 60, every=0.05):
            raise TimeoutError("no process takes over")
        self.former.append((self.pid, time.monotonic()))
        self.pid = int(self.gateway.log.rsplit(" takes over; draining", 1)[0].rsplit(" ", 1)[1])

    def processes(self) -> list[int]:
        """The process that serves, and former ones that have not ended."""
        self.former = [(pid, since) for pid, since in self.former if lives(pid)]
        return [self.pid, *(pid for pid, _ in self.former)]

    def close(self) -> None:
        for process in self.place.processes:  # a stopped process cannot end
            process.signal(signal.SIGCONT)
        for pid in self.processes():
            if pid != self.gateway.pid and lives(pid):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)
                if not eventually(lambda: not lives(pid), 3, every=0.05):
                    os.kill(pid, signal.SIGKILL)
        for process in self.place.processes:
            process.signal(signal.SIGTERM)
        self.names.close()
        for process in reversed(self.place.processes):
            process.stop()
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)
        shutil.rmtree(self.place.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def memory(pid: int) -> tuple[int, int]:
    """RSS and PSS in KiB."""
    found = {"Rss": 0, "Pss": 0}
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0])
    except OSError:
        pass
    return found["Rss"], found["Pss"]


def waited(pid: int) -> float:
    """How long the threads of a process have waited for a processor until now, in seconds: the thread that waited longest."""
    longest = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            longest = max(longest, int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[1]))
    except OSError:
        pass
    return longest / 1e9


def descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


__all__ = ["SoakStand", "TOKEN", "descriptors", "lives", "memory", "waited"]
