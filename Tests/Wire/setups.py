"""The program under test with its listeners, services and routes; and nginx with the comparable part of them."""

from __future__ import annotations

import socket

from Rig.origins import Origin
from Rig.processes import Workplace, free_port

LISTENERS = ["web", "narrow", "tight", "wide", "trusting", "doubting", "proxy", "guarded", "guardedPorts"]

CONFIG = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}", paths: lenient, limits: {{ headTimeout: 5s, idleTimeout: 5s }} }}
  narrow: {{ bind: "127.0.0.1:{narrow}", limits: {{ head: 4KiB, fieldLines: 20, requestTarget: 1KiB }} }}
  tight:
    bind: "127.0.0.1:{tight}"
    limits: {{ head: 4KiB, fieldLines: 20, requestTarget: 1KiB, headTimeout: 600ms, idleTimeout: 900ms }}
  wide:
    bind: "127.0.0.1:{wide}"
    limits: {{ head: 1MiB, fieldLines: 10000, requestTarget: 64KiB }}
  trusting: {{ bind: "127.0.0.1:{trusting}", trustedProxies: ["127.0.0.0/8"], chain: forwarding }}
  doubting: {{ bind: "127.0.0.1:{doubting}", chain: forwarding }}
  local: {{ bind: "unix:{local}" }}
  proxy:
    bind: "127.0.0.1:{proxy}"
    mode: forward
    forward: {{ connectPorts: [443, {main}, {second}, {closed}, {full}], denyPrivate: false }}
  guarded: {{ bind: "127.0.0.1:{guarded}", mode: forward }}
  guardedPorts: {{ bind: "127.0.0.1:{guardedPorts}", mode: forward, forward: {{ connectPorts: [{main}, {second}] }} }}
stores: {{ kept: {{ disk: {{ path: "{kept}", maxSize: 64MiB }} }} }}
services:
  origin: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ connect: 5s, response: 10s, idle: 10s }} }}
  hasty: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ connect: 1s, response: 1s, idle: 1s }} }}
  slowContent: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ connect: 1s, response: 500ms, idle: 3s }} }}
  slowHead: {{ baseUrl: "http://127.0.0.1:{main}", timeouts: {{ connect: 1s, response: 3s, idle: 500ms }} }}
  h2slowContent: {{ baseUrl: "http://127.0.0.1:{main}", protocol: h2, timeouts: {{ connect: 1s, response: 500ms, idle: 3s }} }}
  patient:
    baseUrl: "http://127.0.0.1:{main}"
    timeouts: {{ connect: 1s, response: 20s, idle: 20s }}
  total:
    baseUrl: "http://127.0.0.1:{main}"
    timeouts: {{ connect: 1s, response: 5s, idle: 5s, total: 700ms }}
  h2: {{ baseUrl: "http://127.0.0.1:{main}", protocol: h2, timeouts: {{ connect: 5s, response: 10s, idle: 10s }} }}
  h2hasty: {{ baseUrl: "http://127.0.0.1:{main}", protocol: h2, timeouts: {{ connect: 1s, response: 1s, idle: 1s }} }}
  dead: {{ baseUrl: "http://127.0.0.1:{closed}", timeouts: {{ connect: 1s, response: 1s }} }}
  full: {{ baseUrl: "http://127.0.0.1:{full}", timeouts: {{ connect: 500ms, response: 1s }} }}
  walled: {{ baseUrl: "http://127.0.0.1:{full}", timeouts: {{ connect: 20s, response: 20s }} }}
  nameless: {{ baseUrl: "http://does-not-exist.invalid:{main}", timeouts: {{ connect: 2s, response: 1s }} }}
  named: {{ baseUrl: "http://localhost:{main}", timeouts: {{ connect: 1s, response: 1s }} }}
  half:
    endpoints: [{{ url: "http://127.0.0.1:{closed}" }}, {{ url: "http://127.0.0.1:{main}" }}]
    timeouts: {{ connect: 1s, response: 1s }}
  pair:
    endpoints: [{{ url: "http://127.0.0.1:{main}" }}, {{ url: "http://127.0.0.1:{second}" }}]
    timeouts: {{ connect: 1s, response: 1s }}
  preserving: {{ baseUrl: "http://127.0.0.1:{main}", host: preserve }}
  renaming: {{ baseUrl: "http://127.0.0.1:{main}", host: renamed.test }}
  defaulting: {{ baseUrl: "http://127.0.0.1:{main}", headers: {{ X-Default: service, Accept: "*/*" }} }}
chains:
  forwarding: {{ middlewares: [{{ forwarded: {{ style: both }} }}] }}
  mock: {{ middlewares: [{{ mock: {{ status: 200, headers: {{ Content-Type: text/plain }}, body: "mocked" }} }}] }}
  barred: {{ middlewares: [{{ ipRule: {{ deny: ["127.0.0.0/8"] }} }}] }}
  picky: {{ middlewares: [{{ hostRule: {{ deny: ["localhost"] }} }}] }}
  limited: {{ middlewares: [{{ bodyLimit: {{ max: 10B }} }}] }}
  cached: {{ middlewares: [{{ httpCache: {{ maxObject: 1MiB }} }}] }}
  kept: {{ middlewares: [{{ httpCache: {{ store: kept, maxObject: 1MiB }} }}] }}
  signed: {{ middlewares: [{{ httpCache: {{ key: {{ path: received }} }} }}] }}
  coalesced: {{ middlewares: [coalesce] }}
  shortConnect: {{ middlewares: [{{ timeout: {{ connect: 400ms }} }}] }}
  shortIdle: {{ middlewares: [{{ timeout: {{ idle: 400ms }} }}] }}
  shortTries: {{ middlewares: [{{ retry: {{ perTry: 400ms, retryOn: [timeout], backoff: 1ms..1ms }} }}] }}
routes:
  - {{ name: shortConnect, match: {{ path: "/shortConnect/**" }}, service: walled, chain: shortConnect }}
  - {{ name: shortIdle, match: {{ path: "/shortIdle/**" }}, service: patient, chain: shortIdle }}
  - {{ name: shortTries, match: {{ path: "/shortTries/**" }}, service: walled, chain: shortTries }}
  - {{ name: shortTriesUpload, match: {{ path: "/shortTriesUpload/**" }}, service: patient, chain: shortTries }}
  - {{ name: mock, match: {{ path: "/mock" }}, chain: mock }}
  - {{ name: barred, match: {{ path: "/barred/**" }}, service: origin, chain: barred }}
  - {{ name: limited, match: {{ path: "/limited/**" }}, service: origin, chain: limited }}
  - {{ name: cached, match: {{ path: "/cached/**" }}, service: origin, chain: cached }}
  - {{ name: kept, match: {{ path: "/kept/**" }}, service: origin, chain: kept }}
  - {{ name: preservingCached, match: {{ path: "/preservingCached/**" }}, service: preserving, chain: cached }}
  - {{ name: signed, match: {{ path: "/signed/**" }}, service: preserving, chain: signed }}
  - {{ name: coalesced, match: {{ path: "/coalesced/**" }}, service: preserving, chain: coalesced }}
  - {{ name: hasty, match: {{ path: "/hasty/**" }}, service: hasty }}
  - {{ name: slowContent, match: {{ path: "/slowContent/**" }}, service: slowContent }}
  - {{ name: slowHead, match: {{ path: "/slowHead/**" }}, service: slowHead }}
  - {{ name: h2slowContent, match: {{ path: "/h2slowContent/**" }}, service: h2slowContent }}
  - {{ name: patient, match: {{ path: "/patient/**" }}, service: patient }}
  - {{ name: total, match: {{ path: "/total/**" }}, service: total }}
  - {{ name: h2, match: {{ path: "/h2/**" }}, service: h2 }}
  - {{ name: h2hasty, match: {{ path: "/h2hasty/**" }}, service: h2hasty }}
  - {{ name: dead, match: {{ path: "/dead/**" }}, service: dead }}
  - {{ name: full, match: {{ path: "/full/**" }}, service: full }}
  - {{ name: nameless, match: {{ path: "/nameless/**" }}, service: nameless }}
  - {{ name: named, match: {{ path: "/named/**" }}, service: named }}
  - {{ name: half, match: {{ path: "/half/**" }}, service: half }}
  - {{ name: pair, match: {{ path: "/pair/**" }}, service: pair }}
  - {{ name: preserving, match: {{ path: "/preserving/**" }}, service: preserving }}
  - {{ name: renaming, match: {{ path: "/renaming/**" }}, service: renaming }}
  - {{ name: defaulting, match: {{ path: "/defaulting/**" }}, service: defaulting }}
  - {{ name: nowhere, match: {{ host: nowhere.test, path: "/nowhere" }}, chain: mock }}
  - {{ name: web, listener: web, service: origin }}
  - {{ name: narrow, listener: narrow, service: origin }}
  - {{ name: tight, listener: tight, service: origin }}
  - {{ name: wide, listener: wide, service: origin }}
  - {{ name: trusting, listener: trusting, service: origin }}
  - {{ name: doubting, listener: doubting, service: origin, match: {{ path: "/*" }} }}
  - {{ name: local, listener: local, service: origin }}
  - {{ name: picky, listener: proxy, match: {{ host: localhost, headers: {{ X-Picky: "1" }} }}, service: passthrough, chain: picky }}
  - {{ name: proxy, listener: proxy, service: passthrough }}
  - {{ name: guarded, listener: guarded, service: passthrough }}
  - {{ name: guardedPorts, listener: guardedPorts, service: passthrough }}
"""

NGINX = """
daemon off; worker_processes 1; pid @FOLDER@/nginx.pid; error_log @FOLDER@/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_requests 100000; client_max_body_size 0; client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@;
  uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  upstream origin {{ server 127.0.0.1:{main}; keepalive 16; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; proxy_buffering off;
  proxy_connect_timeout 5s; proxy_read_timeout 10s; keepalive_timeout 5s; client_header_timeout 5s;
  large_client_header_buffers 4 16k; underscores_in_headers on; ignore_invalid_headers off; merge_slashes off;
  server {{
    listen 127.0.0.1:{web} backlog=128;
    location / {{ proxy_pass http://origin; }}
    location /hasty/ {{ proxy_pass http://origin; proxy_read_timeout 1s; }}
    location = /mock {{ return 200 "mocked"; }}
    location /dead/ {{ proxy_pass http://127.0.0.1:{closed}; }}
    location /full/ {{ proxy_pass http://127.0.0.1:{full}; proxy_connect_timeout 500ms; }}
    location /preserving/ {{ proxy_pass http://origin; proxy_set_header Host $http_host; }}
    location /renaming/ {{ proxy_pass http://origin; proxy_set_header Host renamed.test; }}
    location /limited/ {{ proxy_pass http://origin; client_max_body_size 10; }}
    location /barred/ {{ deny all; }}
  }}
  server {{
    listen 127.0.0.1:{tight}; client_header_timeout 600ms; keepalive_timeout 900ms; large_client_header_buffers 4 2k;
    location / {{ proxy_pass http://origin; }}
  }}
}}
"""


class Setup:
    """One running process with its origins. Cases of one worker use it one after the other."""

    def __init__(self, binary: str, peer: str, workers: int):
        self.binary, self.peer, self.workers = binary, peer, workers
        self.place = Workplace("wire")
        self.origins = {"main": Origin(), "second": Origin()}
        # A listener whose queue is full: a connection to it neither succeeds nor fails.
        self.full = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.full.getsockname())
            self.fillers.append(filler)
        self.ports = {name: origin.port for name, origin in self.origins.items()}
        self.ports |= {"closed": free_port(), "full": self.full.getsockname()[1]}
        self.start()

    def start(self) -> None:
        self.ports |= {name: free_port() for name in LISTENERS}
        self.addresses: dict = {name: ("127.0.0.1", self.ports[name]) for name in LISTENERS}
        self.addresses["local"] = str(self.place.folder / "local.sock")
        if self.peer == "nginx":
            self.process = self.place.nginx(NGINX.format(**self.ports), [self.ports["web"], self.ports["tight"]])
        else:
            config = CONFIG.format(**self.ports, local=self.addresses["local"], kept=self.place.folder / "kept")
            self.process = self.place.gateway(self.binary, config, [self.ports[name] for name in LISTENERS], self.workers)

    def close(self) -> None:
        self.place.close()
        for origin in self.origins.values():
            origin.close()
        for sock in [self.full, *self.fillers]:
            sock.close()
