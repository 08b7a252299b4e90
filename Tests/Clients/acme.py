#!/usr/bin/env python3
"""The gateway's certificates from a real certificate authority: Debian's pebble, and one that lies.

    python3 Tests/Clients/acme.py --binary .build/release/httpware

Both challenges, with nonces that are refused now and then, and with an external account; a placeholder until the certificate is there; the
same certificate after a restart; a listener that asks its clients for certificates; trials at a second pebble as the staging directory; gateways that share a store in Redis, of which one
orders and another one is asked by the authority; authorities that hang, drip, redirect, send too much, or refuse all nonces, of which the calls are counted.
Exits 1 when something is not as it should be, 0 with a word when there is no pebble.
"""
from __future__ import annotations

import argparse
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.waits import Why, eventually, pause  # noqa: E402

EAB = ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W")
failures = 0


def check(name: str, good: object, shown: object = "") -> None:
    global failures
    print(f"acme {name} {'ok' if good else 'FAILED'}{'' if good else f': {str(shown)[-1500:]}'}", flush=True)
    failures += not good


def shown(port: int, name: str = "a.test", **more) -> dict | None:
    """The certificate that a client is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as sock, context.wrap_socket(sock, server_hostname=name) as tls:
            der = tls.getpeercert(True)
    except OSError:
        return None
    text = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-issuer", "-serial", "-ext", "subjectAltName"],
                          input=der, capture_output=True, check=True).stdout.decode()
    return {"issuer": text.splitlines()[0], "serial": text.splitlines()[1], "text": text}


def is_issued(port: int, name: str = "a.test") -> dict | None:
    found = shown(port, name)
    return found if found and "Pebble" in found["issuer"] and f"DNS:{name}" in found["text"] else None


class Pebble:
    """pebble with its DNS, which says that every name is this machine."""

    def __init__(self, place: Workplace, *, needs_account: bool = False, rejects: int = 15, beside: Pebble | None = None):
        """`beside` is another one that asks the same gateway."""
        self.port = free_port()
        self.http, self.tls = (beside.http, beside.tls) if beside else (free_port(), free_port())
        dns, management, other = free_port(), free_port(), free_port()
        folder = place.subfolder("pebble")
        made = certificates()
        if not (made.folder / "local.pem").exists():
            made.leaf("local", "DNS:localhost,IP:127.0.0.1")
        config = {"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": str(made.folder / "local.pem"), "privateKey": str(made.folder / "local.key"),
            "httpPort": self.http, "tlsPort": self.tls, "ocspResponderURL": "", "externalAccountBindingRequired": needs_account,
            "externalAccountMACKeys": dict([EAB])}}
        (folder / "pebble.json").write_text(json.dumps(config))
        self.names = place.command(["pebble-challtestsrv", "-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{other}", "-http01", "",
                                    "-https01", "", "-tlsalpn01", "", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""], [other])
        self.process = place.command(
            ["pebble", "-config", str(folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}", "-strict"], [self.port],
            environment={"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": str(rejects), "PEBBLE_AUTHZREUSE": "0",
                         "PEBBLE_ALTERNATE_ROOTS": "2"})
        self.url = f"https://localhost:{self.port}/dir"

    @property
    def issued(self) -> int:
        return self.process.log.count("Issued certificate")

    def stop(self) -> None:
        self.process.stop()
        self.names.stop()


def config(directory: str, store: Path | str, tls: int, clear: int, *, challenge: str, more: str = "", listener: str = "", names: str = "a.test",
           admin: int = 0, stores: str = "") -> str:
    return f"""
version: 1
{f'admin: {{ bind: "127.0.0.1:{admin}", token: none }}' if admin else ""}
listeners:
  clear: {{ bind: "127.0.0.1:{clear}" }}
  secure:
    bind: "127.0.0.1:{tls}"
    tls:
      acme: {{ domains: [{names}], directory: "{directory}", ca: {certificates().folder}/ca.pem, store: {store}, challenge: {challenge}{more} }}
{listener}
routes: [{{ chain: said }}]
chains: {{ said: {{ middlewares: [{{ mock: {{ status: 200, body: "mocked" }} }}] }} }}
{stores}
"""


class Liar(http.server.BaseHTTPRequestHandler):
    """A directory in clear text that lies; `server.manner` says how."""

    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: bytes = b"", **fields: str) -> None:
        self.send_response(status)
        for name, value in {"Replay-Nonce": f"n{len(self.server.calls)}", **{k.replace("_", "-"): v for k, v in fields.items()}}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.server.calls.append(f"{self.command} {self.path}")
        base = f"http://127.0.0.1:{self.server.server_port}"
        if self.server.manner == "hangs":
            self.server.gone.wait(120)
        elif self.server.manner == "floods":
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(160):
                    self.wfile.write(b" " * 65536)
                    self.server.sent += 65536
            except OSError:
                pass
            self.close_connection = True
        elif self.server.manner == "redirects for ever":
            self.answer(302, Location=f"{base}{self.path}?again")
        elif self.server.manner == "drips":
            self.send_response(200)
            self.end_headers()
            try:
                while not self.server.gone.wait(0.2):
                    self.wfile.write(b" ")
            except OSError:
                pass
            self.close_connection = True
        elif self.path == "/dir":
            self.answer(200, json.dumps({"newNonce": f"{base}/nonce", "newAccount": f"{base}/account", "newOrder": f"{base}/order"}).encode())
        else:
            self.answer(200)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.calls.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(400, json.dumps({"type": "urn:ietf:params:acme:error:badNonce", "detail": "never"}).encode())

    def log_message(self, *_) -> None:
        pass


def liar(manner: str) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.manner, server.calls, server.sent, server.gone, server.daemon_threads = manner, [], 0, threading.Event(), True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def issues(place: Workplace, binary: str, challenge: str, *, needs_account: bool = False, listener: str = "", more: str = "") -> None:
    pebble = Pebble(place, needs_account=needs_account)
    store = place.subfolder("store") / "certs"
    if needs_account:
        more += f", externalAccount: {{ keyId: {EAB[0]}, macKey: {EAB[1]} }}"
    if challenge == "http-01":
        more += ", listener: clear"
    text = config(pebble.url, store, pebble.tls, pebble.http, challenge=challenge, more=more, listener=listener, names="a.test, b.test", admin=free_port())
    found = place.subfolder("found")
    text += f'discover: {{ folder: "{found}" }}\n'
    title = f"{challenge}{', external account' if needs_account else ''}{', clientCa' if listener else ''}"
    gateway = place.gateway(binary, text, [pebble.tls, pebble.http], workers=2)
    first = shown(pebble.tls)
    asks = "clientCa" in listener
    check(f"{title}: it serves at once", asks or first, gateway.log)
    if asks:
        check(f"{title}: both names are issued", eventually(lambda: gateway.log.count("a new certificate is in use") == 2), gateway.log + pebble.process.log)
        gateway.stop()
        pebble.stop()
        return
    check(f"{title}: both names are issued", eventually(lambda: is_issued(pebble.tls) and is_issued(pebble.tls, "b.test")), gateway.log + pebble.process.log)
    before, other = shown(pebble.tls), shown(pebble.tls, "b.test")
    files = [path for path in store.rglob("*") if path.is_file()]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files}
    check(f"{title}: files are for their owner", files and modes == {0o600}, modes)
    status = subprocess.run([binary, "acme", "status", "--json", "-c", str(gateway.folder / "httpware.yaml")], capture_output=True, text=True)
    check(f"{title}: acme status tells of both", status.returncode == 0 and [one["name"] for one in json.loads(status.stdout)] == ["a.test", "b.test"],
          status.stdout + status.stderr)
    commands = [binary, "acme", "check"], [binary, "maintenance", "on", "--for", "1m"], [binary, "acme", "issue", "b.test"]
    for command in commands:
        done = subprocess.run([*command, "-c", str(gateway.folder / "httpware.yaml")], capture_output=True, text=True)
        check(f"{title}: {' '.join(command[1:])}", done.returncode == 0, done.stdout + done.stderr)
    renewed = eventually(lambda: (now := is_issued(pebble.tls, "b.test")) and now["serial"] != other["serial"])
    check(f"{title}: a new certificate without a reload, in maintenance too", renewed, gateway.log)
    check(f"{title}: the other name keeps its certificate", shown(pebble.tls) == before, gateway.log)
    (found / "late.yaml").write_text("endpoints: [127.0.0.1:9]\nroute: late.test\n")
    is_found = eventually(lambda: "routes.late@folder added" in gateway.log)
    check(f"{title}: a service that is found later changes no certificate", is_found and shown(pebble.tls) == before, gateway.log)
    (found / "late.yaml").unlink()
    gateway.stop()
    pebble.stop()
    gateway = place.gateway(binary, text, [pebble.tls, pebble.http])
    after = shown(pebble.tls)
    check(f"{title}: a restart has the same certificate, without the authority", after and before and after["serial"] == before["serial"], gateway.log)
    with socket.create_connection(("127.0.0.1", pebble.http), 5) as sock:
        sock.sendall(b"GET /.well-known/acme-challenge/abcdefghijklmnopqrst HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        check(f"{title}: other requests go to the routes", b"mocked" in b"".join(iter(lambda: sock.recv(4096), b"")))
    gateway.stop()


def tries(place: Workplace, binary: str, challenge: str) -> None:
    """Trials at a staging directory, which leave everything of the real one alone."""
    real = Pebble(place)
    staging = Pebble(place, beside=real)
    store = place.subfolder("store") / "certs"
    more = f', staging: "{staging.url}"' + (", listener: clear" if challenge == "http-01" else "")
    text = config(real.url, store, real.tls, real.http, challenge=challenge, more=more, admin=free_port())
    gateway = place.gateway(binary, text, [real.tls, real.http], workers=2)
    title = f"{challenge}, staging"

    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([binary, "acme", *words, "-c", str(gateway.folder / "httpware.yaml")], capture_output=True, text=True)

    def files() -> dict:
        folder = next(one for one in store.iterdir() if str(real.port) in one.name)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    check(f"{title}: the first certificate comes from the real directory", eventually(lambda: is_issued(real.tls)), gateway.log + real.process.log)
    eventually(lambda: "a.test.pem" in files())
    serial, before, orders = shown(real.tls), files(), real.issued
    done = run("check")
    check(f"{title}: check tries an order", done.returncode == 0 and f"the trial at {staging.url} succeeded" in done.stdout and staging.issued == 1,
          done.stdout + done.stderr + staging.process.log)
    check(f"{title}: check asks both directories", done.stdout.count(": ok; renewal information") == 2, done.stdout)
    check(f"{title}: the real certificate, account and limits are untouched",
          shown(real.tls) == serial and files() == before and real.issued == orders == 1, real.process.log)
    done = run("check", "--directory-only")
    check(f"{title}: check --directory-only orders nothing", done.returncode == 0 and staging.issued == 1, done.stdout + done.stderr)
    done = run("issue", "a.test")
    check(f"{title}: issue tries first", done.returncode == 0 and "succeeded" in done.stdout and staging.issued == 2, done.stdout + done.stderr)
    check(f"{title}: then it orders", eventually(lambda: (now := is_issued(real.tls)) and now["serial"] != serial["serial"]) and real.issued == 2, gateway.log)
    done = run("issue", "a.test", "--no-staging")
    check(f"{title}: issue --no-staging orders at once", done.returncode == 0 and eventually(lambda: real.issued == 3) and staging.issued == 2,
          done.stdout + done.stderr)
    done = run("issue", "c.test")
    check(f"{title}: a name that no listener has is an error", done.returncode == 1 and "c.test" in done.stderr, done.stdout + done.stderr)
    staging.stop()
    for words, told in ((("issue", "a.test"), "nothing was ordered"), (("check", "a.test"), "the trial at")):
        done = run(*words)
        check(f"{title}: {words[0]} fails without the staging directory", done.returncode == 1 and told in done.stderr and real.issued == 3,
              done.stdout + done.stderr)
    gateway.stop()
    done = run("check")
    check(f"{title}: check says that no gateway made the trial", done.returncode == 3 and "not every order was tried" in done.stderr, done.stdout + done.stderr)
    real.stop()


def redis(place: Workplace, port: int):
    return place.command(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], [port])


def command(port: int, *words: str) -> bytes:
    """The answers of a Redis server, as they come."""
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words))
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def shares(place: Workplace, binary: str, challenge: str, kills: bool = False) -> None:
    """One gateway orders; the authority asks the other one."""
    pebble, port = Pebble(place), free_port()
    server = redis(place, port)
    title = f"{challenge}, a store in Redis"
    more = ", key: 0123456789abcdef" + (", listener: clear" if challenge == "http-01" else "")
    stores = f'stores: {{ shared: {{ redis: {{ url: "redis://127.0.0.1:{port}" }} }} }}'

    def text(tls: int, clear: int) -> str:
        return config(pebble.url, "shared", tls, clear, challenge=challenge, more=more, stores=stores)

    own = free_port(), free_port()
    orders = place.gateway(binary, text(*own), list(own))
    if kills:
        under_way = eventually(lambda: len(command(port, "HVALS", board)) > 100 if (board := next(iter(boards(port)), "")) else False)
        orders.signal(signal.SIGKILL)
        check(f"{title}: a gateway dies while it orders", under_way, orders.log)
        began = time.monotonic()
    asked = place.gateway(binary, text(pebble.tls, pebble.http), [pebble.tls, pebble.http])
    if kills:
        taken = eventually(lambda: is_issued(pebble.tls), 90)
        check(f"{title}: another one orders within a minute and a bit", taken, asked.log)
        print(f"acme {title}: {time.monotonic() - began:.0f} s after the death")
        asked.stop()
        pebble.stop()
        server.stop()
        return
    both = eventually(lambda: (one := is_issued(pebble.tls)) and (other := is_issued(own[0])) and one["serial"] == other["serial"])
    check(f"{title}: both show one certificate", both, orders.log + asked.log + pebble.process.log)
    check(f"{title}: the gateway that the authority did not ask has ordered it",
          "a new certificate" in orders.log and "a new certificate" not in asked.log, orders.log + asked.log)
    check(f"{title}: one certificate was issued", pebble.process.log.count("Issued certificate") == 1, pebble.process.log)
    keys = [word for word in command(port, "KEYS", "*").decode().split("\r\n") if word.startswith("httpware:")]
    kept = b"".join(command(port, "GET", key) for key in keys if key.endswith((".pem", ".json")))
    check(f"{title}: what is kept is sealed", len(keys) >= 3 and len(kept) > 1000 and b"PRIVATE" not in kept and b"http" not in kept, keys)
    serial = shown(pebble.tls)["serial"]
    pebble.stop()
    asked.stop()
    asked = place.gateway(binary, text(pebble.tls, pebble.http), [pebble.tls, pebble.http])
    check(f"{title}: a restart has the same certificate at once", (found := shown(pebble.tls)) and found["serial"] == serial, asked.log)
    status = subprocess.run([binary, "acme", "status", "--json", "-c", str(asked.folder / "httpware.yaml")], capture_output=True, text=True)
    check(f"{title}: acme status reads the store", status.returncode == 0 and json.loads(status.stdout)[0]["end"], status.stdout + status.stderr)
    server.stop()
    check(f"{title}: without Redis it serves on", shown(pebble.tls)["serial"] == serial, asked.log)
    server = redis(place, port)
    back = eventually(lambda: any(key.endswith(".pem") for key in command(port, "KEYS", "*").decode().split("\r\n")))
    check(f"{title}: a Redis server that lost all gets it back", back, asked.log)
    for process in (orders, asked, server):
        process.stop()


def boards(port: int) -> list[str]:
    return [word for word in command(port, "KEYS", "*board").decode().split("\r\n") if word.endswith("board")]


def lies(place: Workplace, binary: str) -> None:
    for manner, word, most in (("floods", "larger than 256KiB", 1), ("refuses nonces", "badNonce", 8), ("hangs", "did not answer in 20s", 1),
                               ("drips", "did not answer in 20s", 1), ("redirects for ever", "status 302", 1)):
        server = liar(manner)
        store = place.subfolder("store") / "certs"
        text = config(f"http://127.0.0.1:{server.server_port}/dir", store, tls := free_port(), clear := free_port(), challenge="tls-alpn-01")
        gateway = place.gateway(binary, text, [tls, clear])
        found = eventually(lambda: "no new certificate" in gateway.log, 40)
        check(f"an authority that {manner}: the log says why", found and word in gateway.log, gateway.log)
        check(f"an authority that {manner}: it still serves", shown(tls), gateway.log)
        gateway.stop()
        gateway = place.gateway(binary, text, [tls, clear])
        pause(2, Why.NOTHING)
        check(f"an authority that {manner}: {most} calls, and none after a restart", len(server.calls) <= most, server.calls)
        check(f"an authority that {manner}: what it sends is not read", server.sent < 8_000_000, server.sent)
        status = subprocess.run([binary, "acme", "status", "-c", str(gateway.folder / "httpware.yaml")], capture_output=True, text=True)
        check(f"an authority that {manner}: acme status says so", status.returncode == 1 and word in status.stdout, status.stdout + status.stderr)
        gateway.stop()
        server.gone.set()
        server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    place = Workplace("acme")
    try:
        if "lies" in options.only or not options.only:
            lies(place, binary)
        if not shutil.which("pebble") or not shutil.which("pebble-challtestsrv"):
            print("pebble is not installed (Debian: apt-get install pebble)")
        elif "issues" in options.only or not options.only:
            issues(place, binary, "tls-alpn-01")
            issues(place, binary, "http-01")
            issues(place, binary, "http-01", needs_account=True)
            strict = f"      clientCa: {certificates().folder}/ca.pem\n      alpn: [h2]\n"
            issues(place, binary, "tls-alpn-01", listener=strict)
        if shutil.which("pebble") and ("tries" in options.only or not options.only):
            tries(place, binary, "tls-alpn-01")
            tries(place, binary, "http-01")
        if shutil.which("pebble") and ("shares" in options.only or not options.only):
            if shutil.which("redis-server"):
                shares(place, binary, "tls-alpn-01")
                shares(place, binary, "http-01")
                shares(place, binary, "http-01", kills=True)
            else:
                print("redis-server is not installed (Debian: apt-get install redis-server)")
    finally:
        place.close()
    sys.exit(1 if failures else 0)


main()
