"""A small OpenID provider over HTTP: discovery, a login page, codes with PKCE, refresh tokens of one use, RS256. For trials with browsers."""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import json
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """Knows one client, `app`, and admits every user that enters a name. `lifetime` is that of its tokens, in seconds."""

    def __init__(self, folder: Path, lifetime: int = 3600, claims: dict | None = None):
        self.lifetime, self.claims = lifetime, claims or {}
        self.key = folder / "provider.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(self.key), "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", str(self.key), "-modulus", "-noout"], check=True, capture_output=True).stdout
        self.modulus = bytes.fromhex(modulus.decode().strip().split("=")[1])
        self.logins: dict[str, dict] = {}
        self.calls: list[str] = []
        self.lock = threading.Lock()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.get(self)

            def do_POST(self):
                provider.post(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def id_token(self, login: dict) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "app", "sub": login["user"], "nonce": login["nonce"], "iat": now, "exp": now + self.lifetime} | self.claims
        signed = f'{b64(json.dumps({"alg": "RS256", "kid": "one"}).encode())}.{b64(json.dumps(claims).encode())}'
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.key)], input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{b64(signature)}"

    # Its answers

    @staticmethod
    def answer(to, status: int, body: bytes = b"", **fields: str) -> None:
        to.send_response(status)
        for name, value in fields.items():
            to.send_header(name.replace("_", "-"), value)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def json(self, to, value: dict, status: int = 200) -> None:
        self.answer(to, status, json.dumps(value).encode(), Content_Type="application/json")

    def page(self, to, body: str) -> None:
        self.answer(to, 200, f"<!doctype html><title>Provider</title>{body}".encode(), Content_Type="text/html")

    def get(self, to) -> None:
        path = urlsplit(to.path).path
        if path == "/.well-known/openid-configuration":
            places = {name: f"{self.url}/{place}" for name, place in [
                ("authorization_endpoint", "authorize"), ("token_endpoint", "token"), ("jwks_uri", "keys"), ("end_session_endpoint", "logout")]}
            self.json(to, {"issuer": self.url} | places)
        elif path == "/keys":
            self.json(to, {"keys": [{"kty": "RSA", "kid": "one", "use": "sig", "n": b64(self.modulus), "e": "AQAB"}]})
        elif path == "/authorize":
            query = html.escape(urlsplit(to.path).query)
            self.page(to, f'<form method="post" action="/login?{query}"><input name="user" id="user"><button id="go">Log in</button></form>')
        elif path == "/logout":
            self.page(to, "<p id=out>Logged out at the provider</p>")
        else:
            self.answer(to, 404)

    def post(self, to, body: str) -> None:
        form = {name: values[0] for name, values in parse_qs(body).items()}
        query = {name: values[0] for name, values in parse_qs(urlsplit(to.path).query).items()}
        with self.lock:
            if urlsplit(to.path).path == "/login":
                code = f"code-{len(self.calls)}-{len(self.logins)}"
                self.logins[code] = query | form
                back = urlencode({"code": code, "state": query["state"]})
                return self.answer(to, 302, Location=f'{query["redirect_uri"]}?{back}')
            self.calls.append(form["grant_type"])
            login = self.logins.pop(form.get("code") or form.get("refresh_token"), None)
            if login is None or "code" in form and login["code_challenge"] != b64(hashlib.sha256(form["code_verifier"].encode()).digest()):
                return self.json(to, {"error": "invalid_grant"}, 400)
            refresh = f"refresh-{len(self.calls)}"
            self.logins[refresh] = login
        self.json(to, {"access_token": f"access-{len(self.calls)}", "token_type": "Bearer", "expires_in": self.lifetime,
                       "refresh_token": refresh, "id_token": self.id_token(login)})
