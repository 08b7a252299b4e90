"""Services with several endpoints: the endpoint of a request, ejected endpoints, and requests without an endpoint."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time

from gateways import OwnGateway
from Rig.certificates import certificates
from Rig.origins import Origin, OriginConnection
from suite import Trial, case, check, expect_same, expect_status

from .tls import secure

NO = "services of httpware"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services:
  weighted: {{ endpoints: [{{ url: "http://127.0.0.1:{a}", weight: 3 }}, "http://127.0.0.1:{b}"] }}
  least: {{ endpoints: ["http://127.0.0.1:{a}", "http://127.0.0.1:{b}"], balance: leastRequests }}
  sticky:
    endpoints: ["http://127.0.0.1:{a}", "http://127.0.0.1:{b}"]
    balance: hash
    hashKey: header.X-User
  ejecting:
    endpoints: ["http://127.0.0.1:{a}", "http://127.0.0.1:{b}"]
    ejection: {{ failures: 3, for: 1s }}
  dropping:
    endpoints: ["http://127.0.0.1:{a}", "http://127.0.0.1:{b}"]
    ejection: {{ failures: 3, for: 1h }}
  checked:
    endpoints: ["http://127.0.0.1:{a}", "http://127.0.0.1:{b}"]
    healthCheck: {{ path: /health, interval: 50ms, timeout: 5s, fails: 2, passes: 2 }}
  alone: {{ baseUrl: "http://127.0.0.1:{a}" }}
chains:
  retry: {{ middlewares: [{{ retry: {{ attempts: 3, backoff: 1ms..10ms, budget: 100% }} }}] }}
  hold: {{ middlewares: [{{ accumulate: {{ while: upstreamDown, timeout: 20s }} }}] }}
  brief: {{ middlewares: [{{ accumulate: {{ while: upstreamDown, timeout: 300ms, max: 1 }} }}] }}
routes:
  - {{ match: {{ path: "/weighted/**" }}, service: weighted }}
  - {{ match: {{ path: "/least/**" }}, service: least }}
  - {{ match: {{ path: "/sticky/**" }}, service: sticky }}
  - {{ match: {{ path: "/ejecting/**" }}, service: ejecting, chain: retry }}
  - {{ match: {{ path: "/dropping/**" }}, service: dropping, chain: retry }}
  - {{ match: {{ path: "/checked/**" }}, service: checked }}
  - {{ match: {{ path: "/hold/**" }}, service: alone, chain: hold }}
  - {{ match: {{ path: "/holdChecked/**" }}, service: checked, chain: hold }}
  - {{ match: {{ path: "/brief/**" }}, service: alone, chain: brief }}
"""


def answer(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Backend:
    """An origin that can be killed, and started again on its port. Its answers are its name; health checks have their own."""

    def __init__(self, t: Trial, name: bytes):
        self.name, self.health, self.status = name, 200, 200
        self.lock = threading.Lock()
        self.asked = 0
        self.origin = Origin()
        self.port = self.origin.port
        self.origin.begin(self.serve)
        t.at_end(self.kill)

    def serve(self, connection) -> None:
        while True:
            request = connection.serve()
            if request.start.startswith(b"GET /health "):
                connection.send(answer(b"", self.health))
                continue
            with self.lock:
                self.asked += 1
            connection.send(answer(self.name, self.status))

    def kill(self) -> None:
        if self.origin is not None:
            self.origin.kill()
            self.origin = None

    def start(self) -> None:
        self.origin = Origin(port=self.port)
        self.origin.begin(self.serve)


class Gateway(OwnGateway):
    def __init__(self, t: Trial, workers: int = 1):
        self.a, self.b = Backend(t, b"a"), Backend(t, b"b")
        super().__init__(t, "balancing", CONFIG, workers=workers, a=self.a.port, b=self.b.port)

    def bodies(self, path: str, count: int, *fields: str) -> list[bytes]:
        answers = [self.ask(path, "GET", *fields) for _ in range(count)]
        for one in answers:
            expect_status(one, 200)
        return [one.body for one in answers]

    def states(self, name: str) -> list[str]:
        return [address["state"] for endpoint in self.service(name)["endpoints"] for address in endpoint["addresses"]]


FALLBACK = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services:
  backed: {{ endpoints: ["http://127.0.0.1:{a}", {{ url: "http://127.0.0.1:{b}", backup: true }}], healthCheck: {{ path: /health, interval: 50ms, fails: 2, passes: 2 }} }}
  checked: {{ endpoints: ["http://127.0.0.1:{a}"], healthCheck: {{ path: /health, interval: 50ms, fails: 2, passes: 2 }}, fallback: other }}
  plain: {{ baseUrl: "http://127.0.0.1:{a}", fallback: other }}
  other: {{ baseUrl: "http://127.0.0.1:{b}" }}
chains: {{ logged: {{ postwares: [{{ responseHeaders: {{ set: {{ X-Service: "{{service}}" }} }} }}] }} }}
routes:
  - {{ name: backed, match: {{ path: "/backed/**" }}, service: backed, chain: logged }}
  - {{ name: checked, match: {{ path: "/checked/**" }}, service: checked, chain: logged }}
  - {{ name: plain, service: plain, chain: logged }}
"""


class Fallback(Gateway):
    def __init__(self, t: Trial):
        self.a, self.b = Backend(t, b"a"), Backend(t, b"b")
        OwnGateway.__init__(self, t, "fallback", FALLBACK, a=self.a.port, b=self.b.port)


@case("backup: a backup endpoint receives requests only while the others are unavailable", nginx=NO)
def _(t: Trial) -> None:
    gateway = Fallback(t)
    expect_same("all", set(gateway.bodies("/backed/", 12)), {b"a"})
    gateway.a.health = 500
    check(gateway.eventually(lambda: gateway.states("backed") == ["unhealthy", "open"]), "the first is not out:", gateway.states("backed"))
    expect_same("all", set(gateway.bodies("/backed/", 12)), {b"b"})
    gateway.a.health = 200
    check(gateway.eventually(lambda: gateway.states("backed") == ["open", "open"]), "the first is not back:", gateway.states("backed"))
    expect_same("all", set(gateway.bodies("/backed/", 12)), {b"a"})
    gateway.a.kill()
    expect_same("all", set(gateway.bodies("/backed/", 3)), {b"b"})


@case("fallback: while a service is down another service receives its requests, and the records name it", nginx=NO)
def _(t: Trial) -> None:
    gateway = Fallback(t)
    expect_same("all", set(gateway.bodies("/checked/", 6)), {b"a"})
    gateway.a.health = 500
    check(gateway.eventually(lambda: gateway.service("checked")["down"]), "it is not down")
    message = gateway.ask("/checked/x")
    expect_same("body and service", (message.body, message.get("x-service")), (b"b", "other"))
    expect_same("without checks", gateway.bodies("/plain", 1), [b"a"])
    gateway.a.kill()
    message = gateway.ask("/plain")
    expect_same("body and service", (message.body, message.get("x-service")), (b"b", "other"))
    check(gateway.eventually(lambda: any('route="plain"' in line and 'service="other"' in line for line in gateway.metrics())), "no metrics of it")
    gateway.b.kill()
    expect_status(gateway.ask("/plain"), 502)
    gateway.a.health = 200
    gateway.a.start()
    check(gateway.eventually(lambda: not gateway.service("checked")["down"]), "it is still down")
    expect_same("again", set(gateway.bodies("/checked/", 3)), {b"a"})


@case("balance: weights are kept exactly, over two loops", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    bodies = gateway.bodies("/weighted/", 40)
    expect_same("share", (bodies.count(b"a"), bodies.count(b"b")), (30, 10))


@case("balance: a key always leads to the same endpoint, and to the other when that has ended", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    users = [f"X-User: {number}" for number in range(40)]
    before = [gateway.bodies("/sticky/", 1, user)[0] for user in users]
    expect_same("again", [gateway.bodies("/sticky/", 1, user)[0] for user in users], before)
    check(5 <= before.count(b"a") <= 35, f"{before.count(b'a')} of 40 keys go to one of two endpoints")
    gateway.a.kill()
    expect_same("all", {gateway.bodies("/sticky/", 1, user)[0] for user in users}, {b"b"})


@case("balance: an endpoint that is killed causes no failed request, is ejected, and is used again after a restart", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    statuses: list[int] = []
    stop = threading.Event()
    t.at_end(stop.set)

    def load() -> None:
        while not stop.is_set():
            statuses.append(gateway.ask("/ejecting/").status)

    threads = [threading.Thread(target=load, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    check(gateway.eventually(lambda: gateway.a.asked > 10 and gateway.b.asked > 10), "one of them is not asked")
    gateway.a.kill()
    check(gateway.eventually(lambda: gateway.states("ejecting")[0] == "ejected"), "it is not left out")
    labels = f'service="ejecting",endpoint="127.0.0.1:{gateway.a.port}"'
    check(gateway.service("ejecting")["endpoints"][0]["addresses"][0]["ejections"] >= 1, "no ejection")
    check(gateway.eventually(lambda: any(
        line.startswith(f"httpware_endpoint_ejections_total{{{labels}}} ") and not line.endswith(" 0")
        for line in gateway.metrics())), "no metric")
    asked = gateway.a.asked
    gateway.a.start()
    check(gateway.eventually(lambda: gateway.a.asked > asked + 5), "it does not come back")
    check(gateway.metric(f"httpware_endpoint_up{{{labels}}} 1"), "no metric")
    stop.set()
    for thread in threads:
        thread.join(30)
    expect_same("statuses", set(statuses), {200})


@case("ejection: an endpoint that answers 503 is ejected, and its requests go to another one", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gateway.a.status = 503
    expect_same("answers", set(gateway.bodies("/dropping/", 12)), {b"b"})
    expect_same("state", gateway.states("dropping"), ["ejected", "open"])
    expect_same("asked", gateway.a.asked, 3)
    rows = [re.split(r" {2,}", row) for row in services(t, gateway).splitlines()]
    expect_same("head", rows[0], ["SERVICE", "ENDPOINT", "STATE", "ACTIVE", "WAITING", "WEIGHT", "LAST FAILURE"])
    [[*a, failure], b] = [row[1:] for row in rows if row[0] == "dropping"]
    expect_same("the other", b, [f"http://127.0.0.1:{gateway.b.port}", "open", "0", "0", "1", "-"])
    check(a[0].endswith(f":{gateway.a.port}") and re.fullmatch(r"ejected for (1h|59m\d+s)", a[1]) and a[2:] == ["0", "0", "1"], a)
    check(re.fullmatch(r"status 503, \d+m?s ago", failure), failure)
    expect_same("JSON", json.loads(services(t, gateway, "--json"))["services"][0]["name"], "weighted")


def services(t: Trial, gateway: Gateway, *options: str) -> str:
    command = [t.setup.binary, "services", "--admin", f"127.0.0.1:{gateway.admin}", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=20)
    expect_same("services", (result.returncode, result.stderr), (0, ""))
    return result.stdout


@case("healthCheck: an endpoint that fails its check is left out until it passes; services and metrics show it", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    b = f'service="checked",endpoint="127.0.0.1:{gateway.b.port}"'
    check(gateway.eventually(lambda: any(address["checks"]["passed"] > 1 for address in gateway.service("checked")["endpoints"][1]["addresses"])), "no checks")
    expect_same("both", sorted(gateway.bodies("/checked/", 4)), [b"a", b"a", b"b", b"b"])
    gateway.b.health = 500
    check(gateway.eventually(lambda: gateway.states("checked") == ["open", "unhealthy"]), "it is not out")
    expect_same("one", set(gateway.bodies("/checked/", 6)), {b"a"})
    check(gateway.metric(f"httpware_endpoint_up{{{b}}} 0"), "no metric")
    check(gateway.metric(f'httpware_endpoint_state{{{b},state="unhealthy"}} 1'), "no metric")
    gateway.b.health = 204
    check(gateway.eventually(lambda: gateway.states("checked") == ["open", "open"]), "it is not back")
    expect_same("both", set(gateway.bodies("/checked/", 4)), {b"a", b"b"})
    gateway.b.kill()
    check(gateway.eventually(lambda: gateway.states("checked") == ["open", "unhealthy"]), "nobody there, and it is not out")


@case("healthCheck over TLS: an endpoint is healthy if the authority signed its certificate, even with a large answer", nginx=NO)
def _(t: Trial) -> None:
    def serve(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(32):
            connection.send(b"10000\r\n" + bytes(65536) + b"\r\n")
        connection.send(b"0\r\n\r\n")

    known, stranger = Origin(), Origin()
    for origin, name in ((known, "a"), (stranger, "stranger")):
        origin.begin(secure(serve, name))
        t.at_end(origin.kill)
    gateway = OwnGateway(t, "balancing", f"""version: 1
listeners: {{{{ web: {{{{ bind: "127.0.0.1:{{web}}" }}}} }}}}
admin: {{{{ bind: "127.0.0.1:{{admin}}", token: none }}}}
services:
  api:
    endpoints: ["https://127.0.0.1:{known.port}", "https://127.0.0.1:{stranger.port}"]
    tls: {{{{ ca: "{certificates() / 'ca.pem'}" }}}}
    healthCheck: {{{{ path: /health, interval: 50ms, timeout: 5s, fails: 2 }}}}
routes: [{{{{ service: api }}}}]
""")

    def addresses() -> list[dict]:
        """None before the first check has looked the endpoint up."""
        return [address for endpoint in gateway.service("api")["endpoints"] for address in endpoint["addresses"]]

    def are_checked() -> bool:
        found = addresses()
        return len(found) == 2 and found[0]["checks"]["passed"] > 2 and found[1]["checks"]["failed"] > 2

    check(gateway.eventually(are_checked), addresses())
    expect_same("states", [address["state"] for address in addresses()], ["open", "unhealthy"])
    expect_same("failed", addresses()[0]["checks"]["failed"], 0)
    check("tls_certificate_error" in json.dumps(addresses()[1]), addresses()[1])
    expect_same("asked", len(stranger.requests), 0)


@case("accumulate: no request fails during a restart of the origin", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, workers=2)
    expect_status(gateway.ask("/hold/"), 200)
    for _ in range(3):
        gateway.a.kill()
        waiting = [gateway.send(f"/hold/{number}") for number in range(20)]
        waiting.append(gateway.send("/hold/order", "POST", content=b"order"))
        check(gateway.eventually(lambda: gateway.service("alone")["down"]), "nobody noticed")
        check(gateway.metric('httpware_service_down{service="alone"} 1'), "no metric")
        gateway.a.start()
        began = time.monotonic()
        for client in waiting[:-1]:
            expect_status(client.read_response("GET"), 200)
        expect_status(waiting[-1].read_response("POST"), 200)
        check(time.monotonic() - began < 5, "they were let go late")
        expect_same("content", [one.body for one in gateway.a.origin.requests if one.start.startswith(b"POST")], [b"order"])
    expect_same("down", gateway.service("alone")["down"], False)


@case("accumulate: while all endpoints fail their health checks requests wait", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_status(gateway.ask("/holdChecked/"), 200)
    gateway.a.health = gateway.b.health = 503
    check(gateway.eventually(lambda: gateway.states("checked") == ["unhealthy", "unhealthy"]), "they are not out")
    expect_status(gateway.ask("/checked/"), 200)  # without the ware one that may answer is better than none
    asked = gateway.a.asked + gateway.b.asked
    waiting = [gateway.send("/holdChecked/") for _ in range(5)]
    gateway.b.health = 200
    for client in waiting:
        expect_same("body", client.read_response("GET").body, b"b")
    expect_same("asked", gateway.a.asked + gateway.b.asked, asked + 5)


@case("RFC 9110 §15.6.4: a request that is held for too long, or finds no room, is answered 503 with Retry-After", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gateway.a.kill()
    began = time.monotonic()
    response = gateway.ask("/brief/")
    expect_status(response, 503)
    expect_same("Retry-After", response.get("Retry-After"), "1")
    check(time.monotonic() - began >= 0.3, "it was not held")
    waiting = [gateway.send("/brief/") for _ in range(4)]
    answers = [client.read_response("GET") for client in waiting]
    expect_same("statuses", {one.status for one in answers}, {503})
    expect_same("Retry-After", {one.get("Retry-After") for one in answers}, {"1"})
