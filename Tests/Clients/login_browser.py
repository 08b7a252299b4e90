#!/usr/bin/env python3
"""`oidcLogin` in headless Chromium, over TLS. Debian's chromium and chromium-driver, selenium from PyPI.

    Tests/Clients/login_browser.py --binary .build/release/httpware

A page, a login at a provider of the script's own, scripts and WebSockets, cookies in parts, another site, a logout. Without the browser all is
skipped, with exit status 0.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import shutil
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.certificates import certificates  # noqa: E402
from Rig.packages import NotInstalled, provide  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.provider import Provider  # noqa: E402
from Rig.waits import eventually  # noqa: E402

CONFIG = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}", tls: {{ certificates: [{{ cert: "{cert}", key: "{key}" }}] }} }}
services: {{ app: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains:
  login:
    middlewares:
      - oidcLogin:
          issuer: "{issuer}"
          clientId: app
          cookie: {{ secret: "a secret of the test, thirty-two bytes and more" }}
          claimsToHeaders: {{ sub: X-User }}
routes: [{{ service: app, chain: login }}]
"""
PAGE = b"""<!doctype html><title>App</title><p id=user>USER</p><p id=cookies></p>
<form method=post action="/oauth2/logout"><button id=out>Log out</button></form>
<script>document.getElementById("cookies").textContent = document.cookie || "none"</script>"""


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cookies: list[str] = []

    def do_GET(self):
        App.cookies.append(self.headers.get("Cookie") or "")
        body = PAGE.replace(b"USER", (self.headers.get("X-User") or "nobody").encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


FETCH = "const done = arguments[arguments.length - 1]; fetch(arguments[0], {redirect: 'manual'}).then(r => done(r.status), e => done(String(e)))"
SOCKET = """const done = arguments[arguments.length - 1]; const socket = new WebSocket(arguments[0]);
socket.onopen = () => done("open"); socket.onclose = () => done("closed")"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default=".build/release/httpware")
    options = parser.parse_args()
    try:
        provide("selenium==4.27.1")
    except NotInstalled as error:
        print(f"skipped: {error}")
        return 0
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: chromium or chromium-driver is not installed")
        return 0
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    failed = 0

    def check(name: str, good: bool, shown: object = "") -> None:
        nonlocal failed
        failed += not good
        print(f"  {'ok  ' if good else 'FAIL'} {name}" + (f": {shown}" if shown != "" else ""), flush=True)

    app = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
    threading.Thread(target=app.serve_forever, daemon=True).start()
    with contextlib.closing(Workplace("login-browser")) as place:
        # A session of more than one cookie.
        provider = Provider(place.subfolder("provider"), claims={"groups": [f"a group with a long name, number {number}" for number in range(150)]})
        web, files = free_port(), certificates()
        place.gateway(str(Path(options.binary).resolve()), CONFIG.format(
            web=web, cert=files / "a.pem", key=files / "a.key", origin=app.server_address[1], issuer=provider.url), [web], 1)
        base = f"https://localhost:{web}"
        chrome = webdriver.ChromeOptions()
        chrome.binary_location = shutil.which("chromium") or ""
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--ignore-certificate-errors"):
            chrome.add_argument(argument)
        driver = webdriver.Chrome(options=chrome, service=webdriver.ChromeService(shutil.which("chromedriver")))
        driver.set_script_timeout(10)

        def until(condition) -> bool:
            def holds() -> bool:
                with contextlib.suppress(Exception):
                    return bool(condition())
                return False

            return eventually(holds, 8, every=0.05)

        def text(css: str) -> str:
            return driver.find_element(By.CSS_SELECTOR, css).text

        def log_in(path: str) -> None:
            driver.get(base + path)
            until(lambda: driver.title == "Provider")
            driver.find_element(By.ID, "user").send_keys("ada")
            driver.find_element(By.ID, "go").click()

        try:
            driver.get(base + "/orders?a=b")
            check("a page without a session shows the provider's", until(lambda: driver.current_url.startswith(f"{provider.url}/authorize?")), driver.current_url[:60])
            log_in("/orders?a=b#here")
            check("the login leads back to the page", until(lambda: driver.current_url.startswith(f"{base}/orders?a=b") and text("#user") == "ada"), driver.current_url)
            check("no script sees a cookie", text("#cookies") == "none", text("#cookies"))
            cookies = {one["name"]: one for one in driver.get_cookies()}
            names = sorted(cookies)
            check("the session is in parts", names[:2] == ["__Host-httpware-session", "__Host-httpware-session.1"] and len(names) <= 4, names)
            check("with all attributes", all(one["secure"] and one["httpOnly"] and one["sameSite"] == "Lax" and one["path"] == "/" for one in cookies.values()))
            check("a script's request passes", driver.execute_async_script(FETCH, "/api") == 200)
            check("no cookie went upstream", not any(App.cookies), App.cookies[:1])
            driver.refresh()
            check("the page loads again", until(lambda: text("#user") == "ada"))

            driver.get(f"{provider.url}/authorize")
            driver.execute_script("const form = document.createElement('form'); form.method = 'post'; form.action = arguments[0]; document.body.append(form); form.submit()",
                                  base + "/oauth2/logout")
            until(lambda: driver.current_url.startswith(base))
            driver.get(base + "/orders")
            check("another site cannot log out", until(lambda: text("#user") == "ada"))

            driver.find_element(By.ID, "out").click()
            check("a logout leads to the provider", until(lambda: text("#out").startswith("Logged out")), driver.current_url[:60])
            driver.get(provider.url + "/logout")
            driver.get(base + "/oauth2/none")
            check("then a page needs a login", until(lambda: driver.title == "Provider"), driver.current_url[:60])
            # A page of the gateway's own origin without a session.
            driver.get(base + "/oauth2/callback")
            check("a script without a session gets 401", driver.execute_async_script(FETCH, "/api") == 401)
            check("a WebSocket without a session is refused", driver.execute_async_script(SOCKET, f"wss://localhost:{web}/socket") == "closed")
            log_in("/again")
            check("and the next login works", until(lambda: driver.current_url == base + "/again" and text("#user") == "ada"), driver.current_url)
        finally:
            driver.quit()
            provider.stop()
            app.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
