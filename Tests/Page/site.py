"""The origin server behind the inspector's tests: content of many types, some of it hostile."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import json
import threading

from Rig.waits import Why, pause

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAAAMUlEQVR4nGNgGAWjgP7gPxT/R+MTpZmJGMWDwgBKvcBEjM2ENBNlM6YLSI6FIR0IAB0oC/kFQj4bAAAAAElFTkSuQmCC")
MARKUP = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
ITEMS = [{"id": 9007199254740993, "name": MARKUP, "price": 1.50, "tags": ["a", "b"], "stock": None}] + [{"id": n} for n in range(300)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def answer(self, body: bytes, kind: str, status: int = 200, **fields: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        if self.headers.get("Upgrade") == "websocket":
            self.talk()
        elif path == "/items":
            self.answer(json.dumps(ITEMS).encode(), "application/json")
        elif path == "/gzip":
            self.answer(gzip.compress(json.dumps({"coded": True}).encode()), "application/json", Content_Encoding="gzip")
        elif path == "/image":
            self.answer(PNG, "image/png")
        elif path == "/page":
            self.answer(f"<!doctype html><title>{MARKUP}</title>{MARKUP}".encode(), "text/html", X_Markup=MARKUP)
        elif path == "/bytes":
            self.answer(bytes(range(256)), "application/octet-stream")
        elif path == "/fail":
            self.answer(b"no", "text/plain", 503)
        elif path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.close_connection = True
            for number in range(50):
                self.wfile.write(f"event: tick\nid: {number}\ndata: {{\"n\": {number}}}\n\n".encode())
                self.wfile.flush()
                pause(0.1, Why.SLOW)
        else:
            told = {"method": self.command, "target": self.path, "headers": self.headers.items(), "body": body.decode(errors="replace")}
            self.answer(json.dumps(told, default=list).encode(), "application/json")

    def talk(self) -> None:
        """A text, three bytes, and the close of a WebSocket. RFC 6455."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        for opcode, data in ((1, b"hello"), (2, b"\x01\x02\x03"), (8, b"\x03\xe8bye")):
            self.wfile.write(bytes([0x80 | opcode, len(data)]) + data)
        self.wfile.flush()
        self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET


class Origin:
    """It serves until the program ends."""

    def __init__(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server.server_address[1]
