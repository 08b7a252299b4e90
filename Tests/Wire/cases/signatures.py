"""Signed requests over the wire: what the origin server receives is checked with Python's own HMAC."""

from __future__ import annotations

import base64
import hashlib
import hmac

from gateways import OwnGateway
from suite import Trial, case, check, expect_same, expect_status

NO = "a ware of httpware"
SECRET = b"0123456789012345678901234567890123456789"
AWS_SECRET = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AWS = "region: eu-central-1, service: s3, accessKeyId: AKIDEXAMPLE, secretAccessKey: " + AWS_SECRET.decode()

CONFIG = """version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
services:
  app: {{ baseUrl: "http://127.0.0.1:{main}/base" }}
  named: {{ baseUrl: "http://127.0.0.1:{main}", host: bucket.example.com }}
chains:
  sign: {{ middlewares: [{{ sign: {{ keyId: one, algorithm: hmac-sha256, secret: "%s" }} }}] }}
  whole: {{ middlewares: [{{ awsSigV4: {{ %s }} }}] }}
  chunks: {{ middlewares: [{{ awsSigV4: {{ %s, streaming: true }} }}] }}
routes:
  - {{ match: {{ path: "/sign/**" }}, service: app, chain: sign }}
  - {{ match: {{ path: "/whole/**" }}, service: app, chain: whole }}
  - {{ match: {{ path: "/chunks/**" }}, service: named, chain: chunks }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
""" % (base64.b64encode(SECRET).decode(), AWS, AWS)


def gateway(t: Trial) -> OwnGateway:
    return OwnGateway(t, "signatures", CONFIG, main=t.setup.ports["main"])


def mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def aws_key(scope: str) -> bytes:
    key = b"AWS4" + AWS_SECRET
    for part in scope.split("/"):
        key = mac(key, part.encode())
    return key


def check_aws(message, path: str, query: str) -> tuple[str, bytes, str]:
    """Checks the signature of what arrived; answers the scope, the key and the signature."""
    authorization = message.get("Authorization")
    parts = dict(part.split("=", 1) for part in authorization.removeprefix("AWS4-HMAC-SHA256 ").split(", "))
    scope = parts["Credential"].removeprefix("AKIDEXAMPLE/")
    fields = "".join(f"{name}:{message.get(name)}\n" for name in parts["SignedHeaders"].split(";"))
    canonical = "\n".join(
        [message.start.decode().split(" ")[0], path, query, fields, parts["SignedHeaders"], message.get("X-Amz-Content-Sha256")])
    text = "\n".join(
        ["AWS4-HMAC-SHA256", message.get("X-Amz-Date"), scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = aws_key(scope)
    expect_same("signature", parts["Signature"], mac(key, text.encode()).hex())
    return scope, key, parts["Signature"]


@case("awsSigV4: a request is signed as it arrives, with the base path and Host", nginx=NO)
def _(t: Trial) -> None:
    expect_status(gateway(t).ask("/whole/a%20b/%c3%a9?b=2&a=1%2B1", "PUT", content=b"content"), 200)
    message = t.main.requests[-1]
    expect_same("path", message.start.decode().split(" ")[1], "/base/whole/a%20b/%c3%a9?b=2&a=1%2B1")
    expect_same("digest", message.get("X-Amz-Content-Sha256"), hashlib.sha256(b"content").hexdigest())
    check_aws(message, "/base/whole/a%20b/%C3%A9", "a=1%2B1&b=2")


@case("awsSigV4: content is signed in chunks while it streams", nginx=NO)
def _(t: Trial) -> None:
    content = bytes(range(256)) * 700
    expect_status(gateway(t).ask("/chunks/key", "PUT", content=content), 200)
    message = t.main.requests[-1]
    expect_same("Host", message.get("Host"), "bucket.example.com")
    expect_same("decoded length", message.get("X-Amz-Decoded-Content-Length"), str(len(content)))
    expect_same("coding", message.get("Content-Encoding"), "aws-chunked")
    expect_same("length", message.get("Content-Length"), str(len(message.body)))
    scope, key, former = check_aws(message, "/chunks/key", "")
    rest, decoded = message.body, b""
    while True:
        line, rest = rest.split(b"\r\n", 1)
        size, signature = line.decode().split(";chunk-signature=")
        chunk, rest = rest[: int(size, 16)], rest[int(size, 16) :]
        check(rest.startswith(b"\r\n"), "a chunk has another length")
        rest = rest[2:]
        text = "\n".join(
            ["AWS4-HMAC-SHA256-PAYLOAD", message.get("X-Amz-Date"), scope, former, hashlib.sha256(b"").hexdigest(),
             hashlib.sha256(chunk).hexdigest()])
        expect_same("signature of a chunk", signature, mac(key, text.encode()).hex())
        former = signature
        decoded += chunk
        if not chunk:
            break
    expect_same("rest", rest, b"")
    check(decoded == content, "other content arrived")


@case("awsSigV4: content of unknown length is refused, since it cannot be signed in chunks", nginx=NO)
def _(t: Trial) -> None:
    client = gateway(t).send("/chunks/key", "GET", "Transfer-Encoding: chunked")
    client.send(b"3\r\nabc\r\n0\r\n\r\n")
    expect_status(client.read_response(), 411)


@case("sign: the signature covers the request as it arrives", nginx=NO)
def _(t: Trial) -> None:
    expect_status(gateway(t).ask("/sign/a?b=c", "POST", content=b"content"), 200)
    message = t.main.requests[-1]
    digest = "sha-256=:" + base64.b64encode(hashlib.sha256(b"content").digest()).decode() + ":"
    expect_same("digest", message.get("Content-Digest"), digest)
    parameters = message.get("Signature-Input").removeprefix("sig1=")
    base = (
        f'"@method": POST\n"@authority": {message.get("Host")}\n"@path": /base/sign/a\n"@query": ?b=c\n'
        f'"content-digest": {digest}\n"@signature-params": {parameters}')
    expect_same(
        "signature", message.get("Signature"), "sig1=:" + base64.b64encode(mac(SECRET, base.encode())).decode() + ":")
