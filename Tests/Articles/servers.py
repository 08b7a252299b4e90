"""The other machines of the recipes: an application, which also allows logins and is a proxy, and a server of tokens."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path

from Rig.certificates import certificates
from Rig.waits import Why, pause


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.owner.answer(self, content)

    do_HEAD = do_POST = do_PUT = do_GET

    def reply(self, status: int, value: object = None, **fields: str) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **fields}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)


class Server:
    """An HTTP server on a free port of the loopback, with a thread for each connection."""

    def __init__(self, tls: bool = False):
        self.lock = threading.Lock()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads, self.http.owner = True, self
        self.http.handle_error = lambda *_: None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates() / "a.pem", certificates() / "a.key")
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, handler: Handler, content: bytes) -> None:
        raise NotImplementedError


class Application(Server):
    """Answers every path with what it got, fresh for a minute; echoes on a WebSocket; asks for a login at Authelia's path."""

    def __init__(self, tls: bool = False):
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.slow_once = 0.0
        super().__init__(tls)

    def field(self, name: str) -> str | None:
        """Of the last request."""
        with self.lock:
            fields = self.seen[-1][1] if self.seen else {}
        return next((value for key, value in fields.items() if key.lower() == name.lower()), None)

    def answer(self, handler: Handler, content: bytes) -> None:
        if handler.path.startswith("/api/authz/"):
            if handler.headers.get("Cookie") == "session=anna":
                return handler.reply(200, Remote_User="anna", Remote_Groups="staff")
            return handler.reply(302, Location="https://login.example.com/")
        with self.lock:
            self.seen.append((handler.path, dict(handler.headers.items())))
            late, self.slow_once = self.slow_once, 0.0
        pause(late, Why.SLOW)
        if handler.headers.get("Upgrade", "").lower() == "websocket":
            handler.send_response(101)
            handler.send_header("Connection", "Upgrade")
            handler.send_header("Upgrade", "websocket")
            handler.send_header("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            handler.end_headers()
            while data := handler.connection.recv(4096):
                handler.connection.sendall(data)
            handler.close_connection = True
            return None
        return handler.reply(200, {"path": handler.path, "length": len(content), "via": handler.headers.get("Authorization", "nothing")}, Cache_Control="max-age=60")


class Tokens(Server):
    """An identity provider: metadata, one key, tokens for clients."""

    def __init__(self) -> None:
        self.key = Path(tempfile.mkdtemp(prefix="httpware-key.")) / "key.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(self.key), "2048"], check=True, capture_output=True, timeout=60)
        modulus = subprocess.run(["openssl", "rsa", "-in", str(self.key), "-noout", "-modulus"], check=True, capture_output=True, text=True, timeout=60).stdout
        self.modulus = encoded(bytes.fromhex(modulus.strip().partition("=")[2]))
        super().__init__()

    def signed(self, claims: dict) -> str:
        text = f"{encoded(json.dumps({'alg': 'RS256', 'typ': 'JWT', 'kid': '1'}).encode())}.{encoded(json.dumps(claims).encode())}"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.key)], input=text.encode(), check=True, capture_output=True, timeout=60).stdout
        return f"{text}.{encoded(signature)}"

    def answer(self, handler: Handler, content: bytes) -> None:
        if handler.path == "/.well-known/openid-configuration":
            return handler.reply(200, {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"})
        if handler.path == "/jwks":
            return handler.reply(200, {"keys": [{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": self.modulus, "e": "AQAB"}]})
        if handler.path == "/oauth2/token":
            return handler.reply(200, {"access_token": "a-token-of-the-gateway", "token_type": "Bearer", "expires_in": 3600})
        return handler.reply(404)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
