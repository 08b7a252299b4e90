#!/usr/bin/env python3
"""The pictures of the README: the inspector page and a terminal, both of real traffic through a gateway on the loopback.

    Tests/Page/pictures.py --binary .build/release/httpware [--folder DIR]

Starts an origin server that takes its time, and a gateway before it; sends requests; takes the page in headless Chromium, in both colours, and
draws what `httpware trace` prints. By default the pictures replace those of the documentation. Debian's chromium and chromium-driver,
selenium from PyPI.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import http.client
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Page.run import Page, jwt  # noqa: E402
from Rig.packages import provide  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

RESOURCES = Path(__file__).resolve().parents[2] / "Sources/HttpGateway/HttpGateway.docc/Resources"
HOST = "shop.example.com"
CONFIG = """version: 1
admin: {{ bind: "127.0.0.1:{admin}", token: none, capture: {{}} }}
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ shop: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
credentials: {{ shop: {{ grant: clientCredentials, tokenUrl: "http://127.0.0.1:{origin}/token", clientId: gateway, clientSecret: a-secret-of-the-picture }} }}
chains:
  shop:
    middlewares:
      - requestId
      - rateLimit: {{ rate: 50/s, burst: 100 }}
      - httpCache
      - tokenRefresh: {{ credential: shop }}
      - tokenInject: {{ credential: shop }}
      - requestHeaders: {{ set: {{ X-Client: "{{client.ip}}" }} }}
    postwares: [compress, securityHeaders]
  app: {{ middlewares: [requestId, httpCache], postwares: [compress, securityHeaders] }}
routes:
  - {{ name: api, match: {{ path: "/v1/**" }}, service: shop, chain: shop }}
  - {{ name: app, service: shop, chain: app }}
"""
# Method, target, milliseconds, status, and whether it may be stored.
REQUESTS = (
    ("GET", "/", 12, 200, True), ("GET", "/assets/app.js", 3, 200, True), ("GET", "/assets/app.css", 2, 200, True), ("GET", "/v1/me", 41, 200, False),
    ("GET", "/v1/orders?page=1", 74, 200, False), ("GET", "/v1/products/17", 33, 200, True), ("GET", "/assets/logo.svg", 2, 200, True),
    ("POST", "/v1/orders", 118, 201, False), ("GET", "/v1/orders/4812", 52, 200, False), ("GET", "/v1/products/17", 33, 200, True),
    ("GET", "/v1/products/99", 18, 404, False), ("GET", "/v1/search?q=lamp", 161, 200, False), ("GET", "/assets/app.js", 3, 200, True),
    ("DELETE", "/v1/orders/4811", 44, 204, False), ("GET", "/v1/recommendations", 240, 503, False), ("GET", "/v1/orders?page=2", 69, 200, False),
    ("GET", "/v1/products/21", 29, 200, True), ("PATCH", "/v1/me", 58, 200, False), ("GET", "/v1/products/17", 33, 200, True), ("GET", "/v1/orders/4812", 47, 200, False),
)
SHOWN = "/v1/orders/4812"


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            return self.answer(200, {"access_token": "a-token-of-the-picture", "token_type": "Bearer", "expires_in": 3600}, False)
        late, status, is_stored = next((one[2:] for one in REQUESTS if one[:2] == (self.command, self.path)), (1, 404, False))
        pause(late / 1000, Why.SLOW)
        items = [{"id": 4800 + number, "name": f"lamp {number}", "price": 19.5} for number in range(3 + len(self.path) % 9)]
        return self.answer(status, {"received": len(content), "items": items}, is_stored)

    do_POST = do_PATCH = do_DELETE = do_GET

    def answer(self, status: int, value: object, is_stored: bool) -> None:
        body = b"" if status == 204 else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Cache-Control", "max-age=300" if is_stored else "no-store")
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def send(port: int) -> None:
    """All requests, on one connection, with small pauses as of a person."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for method, target, *_ in REQUESTS:
        content = json.dumps({"product": 17}) if method in ("POST", "PATCH") else None
        connection.request(method, target, content, {"Host": HOST, "Accept": "application/json", **({"Content-Type": "application/json"} if content else {})})
        connection.getresponse().read()
        pause(0.02, Why.SLOW)
    connection.close()


def send_token(port: int) -> None:
    """A change with a token of the client's own."""
    token = jwt(sub="ada", iss="https://login.example.com", scope="me:write", exp=int(time.time()) + 300)
    fields = {"Host": HOST, "Authorization": "Bearer " + token, "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("PATCH", "/v1/me", json.dumps({"name": "Ada", "city": "London"}), fields)
    connection.getresponse().read()
    connection.close()


# The terminal

COLOURS = {
    "terminal": {"back": "#ffffff", "edge": "#d0d7de", "text": "#24292f", "dim": "#6e7781", "prompt": "#1a7f37", "good": "#1a7f37", "bad": "#cf222e", "bar": "#9a6700"},
    "terminal~dark": {"back": "#0d1117", "edge": "#30363d", "text": "#e6edf3", "dim": "#8b949e", "prompt": "#3fb950", "good": "#3fb950", "bad": "#f85149", "bar": "#d29922"},
}
SIZE, WIDTH, HEIGHT, EDGE = 13, 7.8, 18, 16


def colour(line: str) -> str:
    if line.startswith("$ "):
        return "prompt"
    if line.startswith(("· ", "    +")):
        return "bar" if line.startswith("· ") else "dim"
    words = line.split()
    if len(words) > 4 and words[4].isdigit():
        return "bad" if words[4] >= "400" else "text"
    return "text" if line[:1] in "→←" or words[:1] and words[0].isupper() else "dim"


def drawn(lines: list[str], colours: dict[str, str]) -> str:
    """The lines as a picture that any browser shows with its own font; `textLength` keeps the columns."""
    columns = max(len(line) for line in lines)
    width, height = columns * WIDTH + 2 * EDGE, len(lines) * HEIGHT + 2 * EDGE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
             f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}">',
             f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" fill="{colours["back"]}" stroke="{colours["edge"]}"/>']
    for number, line in enumerate(lines):
        if line.strip():
            weight = ' font-weight="bold"' if line.startswith("$ ") else ""
            parts.append(f'<text x="{EDGE}" y="{EDGE + number * HEIGHT + SIZE}" xml:space="preserve" textLength="{len(line) * WIDTH:.1f}" '
                         f'lengthAdjust="spacingAndGlyphs" fill="{colours[colour(line)]}"{weight}>{html.escape(line)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def printed(binary: str, folder: Path, *arguments: str) -> list[str]:
    result = subprocess.run([binary, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=20, env={**os.environ, "NO_COLOR": "1"})
    return result.stdout.rstrip("\n").split("\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--folder", type=Path, default=RESOURCES)
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    arguments.folder.mkdir(parents=True, exist_ok=True)
    provide("selenium==4.27.1")
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    origin.daemon_threads = True
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    web, admin = free_port(), free_port()
    with contextlib.closing(Workplace("pictures")) as workplace:
        process = workplace.gateway(binary, CONFIG.format(admin=admin, web=web, origin=origin.server_port), [web, admin])
        send(web)  # the first requests find everything cold
        page = Page.__new__(Page)
        page.admin, page.web, page.driver = admin, web, None
        page.clear()
        send(web)
        shown = next(capture for capture in page.captures() if capture["url"].endswith(SHOWN))
        listed = [line for line in printed(binary, process.folder, "trace", "--limit", "6") if line.strip()]
        number = next(line.split()[0] for line in reversed(listed) if SHOWN in line)
        lines = ["$ httpware trace --limit 6", *listed, "", f"$ httpware trace {number}", *printed(binary, process.folder, "trace", number)]
        for name, colours in COLOURS.items():
            (arguments.folder / f"{name}.svg").write_text(drawn(lines, colours))
        send_token(web)
        changed = next(capture for capture in page.captures("~m PATCH") if capture["state"] == "ended")
        page.open_browser()
        try:
            for suffix, dark in (("", False), ("~dark", True)):
                page.size(1280, 700, dark)
                page.go(f"#/requests/{shown['id']}?tab=timing")
                pause(3, Why.BEFORE)
                page.driver.save_screenshot(str(arguments.folder / f"inspector{suffix}.png"))
                page.size(1440, 800, dark)
                page.go(f"#/requests/{changed['id']}")
                page.until("document.querySelectorAll('.half pre.json').length === 2")
                page.button("reveal").click()
                page.until("document.querySelector('.jwt')")
                pause(0.5, Why.BEFORE)
                page.driver.save_screenshot(str(arguments.folder / f"exchange{suffix}.png"))
        finally:
            page.close()
    for file in sorted(arguments.folder.iterdir()):
        print(f"{file.name}: {file.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
