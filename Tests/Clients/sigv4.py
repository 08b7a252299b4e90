#!/usr/bin/env python3
"""Signatures of `awsSigV4`, computed again by botocore: a service that refuses what botocore would have signed otherwise.

    python3 Tests/Clients/sigv4.py --binary .build/release/httpware [--requests 400] [--seed 1]

Requests with random methods, paths, queries, fields and content go through the gateway to a server that lets botocore sign what arrived and
compares. With keys of the environment, of a shared credentials file, and of a container endpoint whose keys expire;
content as a whole, in signed chunks whose chain of signatures is followed, and unsigned. Needs PyPI for the first run. Ends with 1 if a
signature differs.
"""
from __future__ import annotations

import argparse
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import sys
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.packages import NotInstalled, provide  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

KEYS = {"AKIDENVIRONMENT": "env/secret+key", "AKIDFILE": "file/secret/key",
        **{f"AKIDCONTAINER{number}": f"container/secret/{number}" for number in range(100)}}
TOKENS = {"AKIDENVIRONMENT": "", "AKIDFILE": "", **{f"AKIDCONTAINER{number}": f"token//{number}==" for number in range(100)}}
failures = 0


def check(name: str, good: object, shown: object = "") -> None:
    global failures
    print(f"sigv4 {name} {'ok' if good else 'FAILED'}{'' if good else f': {str(shown)[-1500:]}'}", flush=True)
    failures += not good


def expected(method: str, target: str, fields: list[tuple[str, str]], key: str, region: str, service: str, payload: str) -> str:
    """The Authorization that botocore computes for a request as it arrived, at the time that it names."""
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    values: dict[str, str] = {}
    for name, value in fields:
        values[name.lower()] = f"{values[name.lower()]},{value}" if name.lower() in values else value
    signed = values["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    date = values["x-amz-date"]

    auth = (botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth)(
        botocore.credentials.Credentials(key, KEYS[key], TOKENS[key] or None), service, region)
    # A path may arrive encoded in several ways; botocore encodes its meaning in the way that AWS computes with.
    path, _, query = target.partition("?")
    if service == "s3":
        path = urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-._~")
    request = botocore.awsrequest.AWSRequest(method=method, url=f"http://{values['host']}{path}",
                                             params=urllib.parse.parse_qsl(query, keep_blank_values=True, separator="&"),
                                             headers={name: values[name] for name in signed if name != "host"})
    request.context["timestamp"] = date
    # The field contains the claim; `Service` finds out whether it is true.
    auth.payload = lambda _: payload
    auth.headers_to_sign = lambda request: headers(signed, values)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request)


def headers(names: list[str], values: dict[str, str]):
    message = http.client.HTTPMessage()
    for name in names:
        message[name] = values[name]
    return message


def signing_key(key: str, date: str, region: str, service: str) -> bytes:
    made = ("AWS4" + KEYS[key]).encode()
    for part in (date, region, service, "aws4_request"):
        made = hmac.new(made, part.encode(), hashlib.sha256).digest()
    return made


def unchunked(content: bytes, seed: str, key: str, date: str, scope: str) -> tuple[bytes, bool]:
    """The content of `aws-chunked`, and whether each chunk is signed as the documentation of S3 says."""
    day, region, service, _ = scope.split("/")
    made, rest, good, last = b"", content, True, False
    while rest:
        head, rest = rest.split(b"\r\n", 1)
        size, signature = head.split(b";chunk-signature=")
        chunk, rest = rest[:int(size, 16)], rest[int(size, 16) + 2:]
        text = "\n".join(("AWS4-HMAC-SHA256-PAYLOAD", date, scope, seed, hashlib.sha256(b"").hexdigest(), hashlib.sha256(chunk).hexdigest()))
        seed = hmac.new(signing_key(key, day, region, service), text.encode(), hashlib.sha256).hexdigest()
        good, last = good and seed == signature.decode(), size == b"0"
        made += chunk
    return made, good and last


class Service(http.server.BaseHTTPRequestHandler):
    """Answers 200 and the name of the key, or 403 and why."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fields = list(self.headers.items())
        try:
            authorization = self.headers["Authorization"]
            scope = authorization.split("Credential=")[1].split(",")[0]
            key, scope = scope.split("/", 1)
            _, region, service, _ = scope.split("/")
            signature = authorization.split("Signature=")[1]
            claimed, real = self.headers.get("X-Amz-Content-Sha256"), hashlib.sha256(content).hexdigest()
            wrong = []
            if claimed == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
                content, good = unchunked(content, signature, key, self.headers["X-Amz-Date"], scope)
                wrong += [] if good and len(content) == int(self.headers["X-Amz-Decoded-Content-Length"]) else ["chunks"]
            elif claimed not in (None, "UNSIGNED-PAYLOAD", real):
                wrong.append("digest")
            wanted = expected(self.command, self.path, fields, key, region, service, claimed or real)
            wrong += [] if wanted == signature else ["signature"]
            wrong += [] if (self.headers.get("X-Amz-Security-Token") or "") == TOKENS[key] else ["token"]
            age = abs((datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
                       - datetime.datetime.strptime(self.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")).total_seconds())
            wrong += [] if age < 60 else ["date"]
            status, said = (403, {"wrong": wrong, "fields": fields, "target": self.path}) if wrong else (
                200, {"key": key, "digest": hashlib.sha256(content).hexdigest()})
        except Exception as error:  # whatever arrives, the client is told
            status, said = 403, {"error": repr(error), "fields": fields}
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = answer

    def log_message(self, *_) -> None:
        pass


class Container(http.server.BaseHTTPRequestHandler):
    """The endpoint of a container: other keys each time, for a short while."""

    def do_GET(self) -> None:
        self.server.calls += 1
        number, end = self.server.calls, datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.server.lifetime)
        good = self.headers.get("Authorization") == "container-token"
        body = json.dumps({"AccessKeyId": f"AKIDCONTAINER{number}", "SecretAccessKey": f"container/secret/{number}", "Token": f"token//{number}==",
                           "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


def serve(handler) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.calls, server.lifetime, server.daemon_threads = 0, 4, True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def ask(port: int, method: str, target: str, content: bytes | None = None, fields: dict[str, str] | None = None) -> tuple[int, dict]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.putrequest(method, target, skip_accept_encoding=True)
    for name, value in (fields or {}).items():
        client.putheader(name, value)
    if content is not None:
        client.putheader("Content-Length", str(len(content)))
    client.endheaders(content)
    response = client.getresponse()
    text = response.read()
    client.close()
    return response.status, json.loads(text) if text else {}


def word(chance: random.Random, encoded: bool = True) -> str:
    text = "".join(chance.choice("abcXYZ019-._~ !*'();:@&=+$,/?%é💡") for _ in range(chance.randrange(8)))
    return urllib.parse.quote(text, safe=chance.choice(("", "-._~", "!*'();:@$,"))) if encoded else text


def sent(chance: random.Random) -> tuple[str, str, bytes | None, dict[str, str]]:
    path = "/" + "/".join(word(chance) or "a" for _ in range(chance.randrange(4))) + chance.choice(("", "/"))
    path = path.replace("//", "/") if chance.random() < 0.9 else path
    if any(part in (".", "..") for part in urllib.parse.unquote(path).split("/")):
        path = "/a"  # the gateway refuses dot segments that hide behind percent-encoding, and removes others
    query = "&".join(f"{word(chance)}={word(chance)}" if chance.random() < 0.8 else word(chance) or "a" for _ in range(chance.randrange(5)))
    method = chance.choice(("GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"))
    content = chance.randbytes(chance.randrange(3000)) if method in ("PUT", "POST", "PATCH") else None
    fields = {"Content-Type": chance.choice(("text/plain;  charset=utf-8", "application/json"))} if content else {}
    if chance.random() < 0.5:
        fields["X-Amz-Meta-Name"] = chance.choice(("a", "  a   b  ", "x,y", "\"q  q\""))
    if chance.random() < 0.3:
        fields |= {"Authorization": "Basic eDp5", "X-Amz-Date": "20000101T000000Z", "X-Amz-Security-Token": "mine"}
    return method, path + (f"?{query}" if query else ""), content, fields


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        provide("botocore==1.44.8")
        import botocore
    except (NotInstalled, ImportError) as error:
        print(f"sigv4 is skipped: {error}")
        return
    chance, place = random.Random(options.seed), Workplace("sigv4")
    service, container = serve(Service), serve(Container)
    credentials = place.subfolder("keys") / "credentials"

    credentials.write_text("[default]\naws_access_key_id = X\naws_secret_access_key = y\n"
                           f"[gateway]\naws_access_key_id = AKIDFILE\naws_secret_access_key = {KEYS['AKIDFILE']}\n")
    ports = {name: free_port() for name in ("api", "s3", "streamed", "unsigned", "file", "container")}
    wares = {
        "api": "region: eu-central-1, service: execute-api, from: environment",
        "s3": "region: us-east-1, service: s3, from: environment",
        "streamed": "region: us-east-1, service: s3, from: environment, streaming: true",
        "unsigned": "region: us-east-1, service: s3, from: environment, unsignedPayload: true",
        "file": f"region: eu-central-1, service: sqs, from: {credentials}, profile: gateway",
        "container": "region: eu-central-1, service: dynamodb, from: container"}
    text = "version: 1\nlisteners:\n" + "".join(f'  {name}: {{ bind: "127.0.0.1:{port}" }}\n' for name, port in ports.items())
    text += f'services: {{ aws: {{ baseUrl: "http://127.0.0.1:{service.server_port}/base%20path" }} }}\nchains:\n'
    text += "".join(f"  {name}: {{ middlewares: [{{ awsSigV4: {{ {ware} }} }}] }}\n" for name, ware in wares.items())
    text += "routes:\n" + "".join(f"  - {{ listener: {name}, service: aws, chain: {name} }}\n" for name in wares)
    try:
        place.gateway(os.path.abspath(options.binary), text, list(ports.values()), environment={
            "AWS_ACCESS_KEY_ID": "AKIDENVIRONMENT", "AWS_SECRET_ACCESS_KEY": KEYS["AKIDENVIRONMENT"],
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{container.server_port}/keys",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"})
        for name in ("api", "s3", "streamed", "unsigned"):
            wrong = []
            for _ in range(options.requests // 4):
                method, target, content, fields = sent(chance)
                status, said = ask(ports[name], method, target, content, fields)
                digest = hashlib.sha256(content or b"").hexdigest()
                if status != 200 or method != "HEAD" and said["digest"] != digest:
                    wrong.append((method, target, fields, status, said))
            check(f"{name}: {options.requests // 4} random requests are signed as botocore {botocore.__version__} signs them", not wrong, wrong[:1])
        large = chance.randbytes(1_000_000)
        status, said = ask(ports["streamed"], "PUT", "/large", large)
        check("streamed: 1 MB in 16 chunks", status == 200 and said["digest"] == hashlib.sha256(large).hexdigest(), said)
        seen = [ask(ports["container"], "GET", "/")[1].get("key")]
        end = time.monotonic() + 7
        while time.monotonic() < end:
            seen.append(ask(ports["container"], "GET", "/")[1].get("key"))
            pause(0.05, Why.MEASURED)
        check("container: keys are renewed before they expire, and none fails", None not in seen and len(set(seen)) >= 2, seen)
        check(f"container: {container.calls} calls for {len(seen)} requests", container.calls <= 6, container.calls)
        status, said = ask(ports["file"], "POST", "/queue", b"x")
        check("file: the keys of the profile", status == 200 and said["key"] == "AKIDFILE", said)
    finally:
        place.close()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
