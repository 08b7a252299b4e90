#!/usr/bin/env python3
"""`oidcLogin` with a real OpenID provider: glewlwyd with SQLite, RS256, refresh tokens of one use.

    python3 Tests/Clients/oidc_login.py --binary .build/release/httpware [--root DIR]

glewlwyd comes from where `glewlwyd.py` has it. A browser of the script's own plays the login with glewlwyd's API in place of its page. A login,
claims, renewal by many requests at once, a restart, a provider that is away, a logout. Exits 1 when something is not as it should be, 0
with a word when there is no glewlwyd.
"""
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from glewlwyd import Glewlwyd, Trial, free_port, wait_for  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

LIFETIME = 3
PAGE = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
SCRIPT = {"Accept": "*/*", "Sec-Fetch-Mode": "cors"}


def set_up(server, folder, callback):
    """A plug-in for OpenID Connect with keys of its own, the gateway as a client, and Ann."""
    key, public = f"{folder}/key.pem", f"{folder}/public.pem"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
    server.api("POST", "/auth/", {"username": "admin", "password": "password"})
    with open(key) as private, open(public) as certificate:
        server.api("POST", "/mod/plugin/", {
            "module": "oidc", "name": "login", "display_name": "Login", "parameters": {
                "iss": f"{server.url}/api/login", "jwt-type": "rsa", "jwt-key-size": "256", "key": private.read(), "cert": certificate.read(),
                "access-token-duration": LIFETIME, "refresh-token-duration": 3600, "code-duration": 600, "refresh-token-rolling": False,
                "refresh-token-one-use": "always", "allow-non-oidc": False, "auth-type-code-enabled": True, "auth-type-refresh-enabled": True,
                "auth-type-password-enabled": False, "auth-type-client-enabled": False, "auth-type-token-enabled": False,
                "auth-type-id-token-enabled": True, "auth-type-none-enabled": False, "subject-type": "public", "pkce-allowed": True,
                "pkce-method-plain-allowed": False, "session-management-allowed": True, "session-cookie-name": "GLEWLWYD_SESSION",
                "session-cookie-expiration": 3600, "jwks-show": True, "name-claim": "mandatory", "email-claim": "mandatory",
            }})
    server.api("POST", "/client/", {
        "client_id": "login", "name": "login", "password": "secret-1.x", "client_secret": "secret-1.x", "enabled": True, "confidential": True,
        "scope": ["openid"], "redirect_uri": [callback], "authorization_type": ["code", "refresh_token", "id_token"],
        "token_endpoint_auth_method": ["client_secret_basic"]})
    server.api("POST", "/user/", {
        "username": "ann", "name": "Ann", "email": "ann@example.com", "password": "a password", "enabled": True, "scope": ["g_profile", "openid"]})
    # Ann logs in at glewlwyd, and allows the client to know her.
    server.cookie = None
    server.api("POST", "/auth/", {"username": "ann", "password": "a password"})
    server.api("PUT", "/auth/grant/login", {"scope": "openid"})


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def get(url, headers, method="GET"):
    request = urllib.request.Request(url, headers=headers, method=method, data=b"" if method == "POST" else None)
    try:
        answer = urllib.request.build_opener(NoRedirect).open(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode(errors="replace")


class Browser:
    """Keeps the cookies of the gateway."""

    def __init__(self, base):
        self.base, self.jar = base, {}

    def headers(self, more):
        return more | ({"Cookie": "; ".join(f"{name}={value}" for name, value in self.jar.items())} if self.jar else {})

    def ask(self, path, more=SCRIPT, method="GET"):
        url = path if path.startswith("http") else self.base + path
        status, headers, body = get(url, self.headers(more), method)
        for line in headers.get_all("Set-Cookie") or []:
            name, _, rest = line.partition("=")
            self.jar.pop(name, None)
            if "Max-Age=0;" not in rest:
                self.jar[name] = rest.partition(";")[0]
        return status, headers, body

    def log_in(self, server, path):
        """Follows the redirects: to the provider, which knows Ann, and back."""
        status, headers, body = self.ask(path, PAGE)
        if status != 302:
            return status, body
        status, headers, body = get(headers["Location"] + "&g_continue=", {"Cookie": server.cookie})
        if status != 302:
            return status, body
        status, headers, body = self.ask(headers["Location"], PAGE)
        return status, headers.get("Location") or body


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers what it was sent."""
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        Origin.seen.append(dict(self.headers.items()))
        body = json.dumps(dict(self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Gateway:
    def __init__(self, binary, folder, port, issuer, origin):
        self.binary, self.port, self.path, self.log = binary, port, f"{folder}/httpware.yaml", f"{folder}/httpware.log"
        with open(self.path, "w") as file:
            file.write(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ app: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains:
  login:
    middlewares:
      - oidcLogin:
          issuer: "{issuer}"
          clientId: login
          clientSecret: "secret-1.x"
          cookie: {{ secret: "a secret of the test, thirty-two bytes and more" }}
          claimsToHeaders: {{ sub: X-User, email: X-Email, name: X-Name }}
          passToken: true
routes: [{{ service: app, chain: login }}]
""")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "run", "-c", self.path, "--workers", "2"], stdout=open(self.log, "a"), stderr=subprocess.STDOUT,
            env=dict(os.environ, SWIFT_BACKTRACE="enable=no"))
        wait_for(self.port, self.process, self.log)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def main():
    trial = Trial(__doc__)
    if trial.root is None:
        return 0
    options, folder, root, check = trial.options, trial.folder, trial.root, trial.check

    port = free_port()
    base = f"http://127.0.0.1:{port}"
    server = Glewlwyd(root, folder)
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    gateway = None
    try:
        set_up(server, folder, f"{base}/oauth2/callback")
        issuer = f"{server.url}/api/login"
        gateway = Gateway(options.binary, folder, port, issuer, origin.server_address[1])
        browser = Browser(base)
        check("a script without a session: 401", browser.ask("/orders")[0] == 401)
        status, place = browser.log_in(server, "/orders?a=b")
        check("the login leads back to the page", (status, place) == (303, "/orders?a=b"), f"{status} {place}")
        status, _, body = browser.ask("/orders?a=b")
        sent = {name.lower(): value for name, value in json.loads(body or "{}").items()} if status == 200 else {}
        # glewlwyd's sub is a name of its own for Ann, the same for all clients.
        check("claims go upstream", sent.get("x-email") == "ann@example.com" and sent.get("x-name") == "Ann" and bool(sent.get("x-user")), sent)
        check("the token goes upstream, the cookie does not", sent.get("authorization", "").count(".") == 2 and "cookie" not in sent)

        end, statuses, tokens = time.time() + 3 * LIFETIME, set(), set()
        while time.time() < end:
            before = dict(browser.jar)
            results = []
            threads = [threading.Thread(target=lambda: results.append(get(base + "/orders", browser.headers(SCRIPT)))) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            statuses |= {status for status, _, _ in results}
            for status, headers, body in results:
                if status == 200:
                    tokens.add({name.lower(): value for name, value in json.loads(body).items()}["authorization"])
                for line in headers.get_all("Set-Cookie") or []:
                    name, _, rest = line.partition("=")
                    browser.jar[name] = rest.partition(";")[0]
            pause(0.1 if before == browser.jar else 0, Why.MEASURED)
        check(f"ten requests at a time for {3 * LIFETIME}s, tokens of {LIFETIME}s, refresh tokens of one use", statuses == {200}, statuses)
        check("the tokens were renewed", 3 <= len(tokens) <= 6, len(tokens))

        gateway.stop()
        gateway.start()
        check("the session survives a restart", browser.ask("/orders")[0] == 200)
        again = Browser(base)
        again.jar = dict(browser.jar)
        status, headers, _ = browser.ask("/oauth2/logout", SCRIPT | {"Origin": base}, "POST")
        place = headers.get("Location") or ""
        check("a logout leads to the provider's", status == 303 and place.startswith(f"{issuer}/end_session?"), f"{status} {place[:60]}")
        status, headers, _ = get(place, {"Cookie": server.cookie})
        check("which takes the ID token as a hint", status in (200, 302), f"{status} {headers.get('Location')}")
        check("the session is over, and a copy of its cookie, too", (browser.ask("/orders")[0], again.ask("/orders")[0]) == (401, 401))
        other = Browser(base)
        status, place = other.log_in(server, "/")
        check("another login", status == 303, f"{status} {place}")
        server.stop()
        check("while the provider is away, a session is used", other.ask("/orders")[0] == 200)
        pause(LIFETIME, Why.PASSES)
        status, headers, _ = other.ask("/orders")
        check("until its tokens expire: 503, later", status == 503 and headers.get("Retry-After") == "5", status)
        log = open(gateway.log).read()
        check("no token is in the log", not any(token.split(" ")[1] in log for token in tokens) and "secret-1.x" not in log)
    finally:
        if gateway:
            gateway.stop()
        if server.process.poll() is None:
            server.stop()
        origin.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
