#!/usr/bin/env python3
"""The gateway's credentials with a real authorization server: glewlwyd with SQLite, refresh tokens of one use.

    python3 Tests/Clients/glewlwyd.py --binary .build/release/httpware [--root DIR]

Where it is not installed, it and those of its libraries that are missing are fetched from Debian and unpacked into a folder of the
run's own; nothing is installed. DIR is a folder that they were unpacked into before.

Both grants, by `tokenUrl` and by discovery, client authentication by `basic` and `post`, rotation, a restart that goes on from the
file, a spent refresh token. Exits 1 when something is not as it should be, 0 with a word when there is no glewlwyd.
"""
import argparse
import base64
import contextlib
import glob
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, accepts, eventually, pause  # noqa: E402

LIFETIME = 2


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process, log):
    eventually(lambda: accepts(port) or process.poll() is not None, 10, every=0.025)
    if process.poll() is not None or not accepts(port):
        sys.exit("it does not start: " + open(log, errors="replace").read())


def packages():
    """glewlwyd, and what it needs of libraries that are not installed."""
    found, left = [], ["glewlwyd"]
    while left:
        name = left.pop()
        state = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", name], capture_output=True, text=True, check=False).stdout
        if name in found or state == "install ok installed":
            continue
        found.append(name)
        listed = subprocess.run(["apt-cache", "depends", "--important", name], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            kind, _, other = line.strip().partition(": ")
            if kind == "Depends" and (other.startswith("lib") or other == "glewlwyd-common"):
                left.append(other)
    return found


def fetched(folder):
    """Where glewlwyd is unpacked; `None` if it is not available."""
    root = os.path.join(folder, "root")
    os.makedirs(root)
    if shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return None
    done = subprocess.run(["apt-get", "download", "-qq", *packages()], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        print(done.stderr.strip())
        return None
    for name in sorted(os.listdir(folder)):
        if name.endswith(".deb"):
            subprocess.run(["dpkg-deb", "-x", os.path.join(folder, name), root], check=True, timeout=60)
    return root if os.path.exists(os.path.join(root, "usr/bin/glewlwyd")) else None


def libraries(root):
    """The environment in which what is unpacked there finds its libraries."""
    folders = [os.path.join(root, "usr/lib")] + glob.glob(os.path.join(root, "usr/lib/*-linux-gnu")) + glob.glob(os.path.join(root, "lib/*-linux-gnu"))
    return dict(os.environ, LD_LIBRARY_PATH=":".join(folders)) if root != "/" else dict(os.environ)


class Glewlwyd:
    def __init__(self, root, folder):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        database = os.path.join(folder, "glewlwyd.db")
        schema = os.path.join(root, "usr/share/dbconfig-common/data/glewlwyd/install/sqlite3")
        import sqlite3
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.executescript(open(schema).read())
        modules = os.path.join(root, "usr/lib/glewlwyd")
        path = os.path.join(folder, "glewlwyd.conf")
        self.log = os.path.join(folder, "glewlwyd.log")
        with open(path, "w") as file:
            file.write(f"""port={self.port}
bind_address="127.0.0.1"
external_url="{self.url}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_secure=0
session_expiration=2419200
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="{modules}/user"
client_module_path="{modules}/client"
user_auth_scheme_module_path="{modules}/scheme"
plugin_module_path="{modules}/plugin"
use_secure_connection=false
secure_connection_key_file="none"
secure_connection_pem_file="none"
hash_algorithm = "SHA512"
database = {{ type = "sqlite3"; path = "{database}"; }};
""")
        binary = os.path.join(root, "usr/bin/glewlwyd")
        self.process = subprocess.Popen(
            [binary, f"--config-file={path}"], stdout=open(self.log, "w"), stderr=subprocess.STDOUT, cwd=folder,
            env=libraries(root))
        wait_for(self.port, self.process, self.log)
        self.cookie = None

    def api(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/api{path}", method=method, data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"})
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                cookie = answer.headers.get("Set-Cookie")
                if cookie:
                    self.cookie = cookie.split(";")[0]
                return answer.read()
        except urllib.error.HTTPError as error:
            sys.exit(f"glewlwyd {method} {path}: {error.code} {error.read().decode(errors='replace')}")

    def set_up(self):
        self.api("POST", "/auth/", {"username": "admin", "password": "password"})
        self.api("POST", "/scope/", {"name": "orders", "display_name": "Orders", "password_required": False, "scheme": {}})
        self.api("POST", "/mod/plugin/", {
            "module": "oidc", "name": "oidc", "display_name": "OIDC", "parameters": {
                "iss": f"{self.url}/api/oidc", "jwt-type": "sha", "jwt-key-size": "256", "key": "a key of the test's own",
                "access-token-duration": LIFETIME, "refresh-token-duration": 3600, "code-duration": 600,
                "refresh-token-rolling": False, "refresh-token-one-use": "always", "allow-non-oidc": True,
                "auth-type-password-enabled": True, "auth-type-client-enabled": True,
                "auth-type-refresh-enabled": True, "auth-type-code-enabled": True, "auth-type-token-enabled": True,
                "auth-type-id-token-enabled": True, "auth-type-none-enabled": True, "subject-type": "public",
                "client-auth-method": ["client_secret_basic"],
            }})
        # It takes the secret in Basic as it is, while RFC 6749 §2.3.1 has it encoded as in a form: the same for these.
        for name, secret in (("machine", "secret-1.x"), ("gateway", "secret-1.x"), ("poster", "se cret&+")):
            self.api("POST", "/client/", {
                "client_id": name, "name": name, "password": secret, "client_secret": secret,
                "enabled": True, "confidential": True, "scope": ["orders"], "redirect_uri": [f"{self.url}/none"],
                "authorization_type": ["client_credentials", "password", "refresh_token"],
                "token_endpoint_auth_method": ["client_secret_basic", "client_secret_post"],
            })
        self.api("POST", "/user/", {
            "username": "ann", "name": "Ann", "password": "a password", "enabled": True,
            "scope": ["g_profile", "orders"]})

    def token_url(self):
        return f"{self.url}/api/oidc/token"

    def first_refresh_token(self):
        form = {"grant_type": "password", "username": "ann", "password": "a password", "scope": "orders"}
        request = urllib.request.Request(self.token_url(), data=urllib.parse.urlencode(form).encode())
        request.add_header("Authorization", "Basic " + base64.b64encode(b"gateway:secret-1.x").decode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)["refresh_token"]
        except urllib.error.HTTPError as error:
            sys.exit(f"no refresh token: {error.code} {error.read().decode(errors='replace')}")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


class Origin(http.server.BaseHTTPRequestHandler):
    """Takes a token until it expires."""
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        try:
            claims = token.split(".")[1]
            expiry = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        except (IndexError, ValueError, KeyError):
            expiry = 0
        # In whole seconds, rounded down: a token may live up to one second longer than it says.
        good = expiry + 1 >= time.time()
        Origin.seen.append((token, good))
        self.send_response(200 if good else 401)
        if not good:
            self.send_header("WWW-Authenticate", 'Bearer error="invalid_token"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Gateway:
    def __init__(self, binary, folder, credentials, origin):
        self.port, self.admin = free_port(), free_port()
        names = [line.split(":")[0].strip() for line in credentials.strip().split("\n")]
        self.path = os.path.join(folder, "httpware.yaml")
        with open(self.path, "w") as file:
            file.write(f'version: 1\nlisteners: {{ web: {{ bind: "127.0.0.1:{self.port}" }} }}\n'
                       f'admin: {{ bind: "127.0.0.1:{self.admin}", token: none }}\n'
                       f'services: {{ api: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}\ncredentials:\n{credentials}\nchains:\n')
            for name in names:
                file.write(f"  {name}: {{ middlewares: [{{ tokenRefresh: {{ credential: {name} }} }}, "
                           f"{{ tokenInject: {{ credential: {name} }} }}] }}\n")
            file.write("routes:\n")
            for name in names:
                file.write(f"  - {{ service: api, chain: {name}, match: {{ path: /{name} }} }}\n")
        self.log = os.path.join(folder, "httpware.log")
        self.process = subprocess.Popen(
            [binary, "run", "-c", self.path], stdout=open(self.log, "a"), stderr=subprocess.STDOUT,
            env=dict(os.environ, SWIFT_BACKTRACE="enable=no"))
        wait_for(self.port, self.process, self.log)

    def get(self, name):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=30) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def report(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/v1/credentials", timeout=10) as answer:
            return next(one for one in json.load(answer)["credentials"] if one["name"] == name)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


class Trial:
    """The beginning of a run with glewlwyd: its options, a folder of its own, the program, and the count of what failed."""

    def __init__(self, description):
        parser = argparse.ArgumentParser(description=description.split("\n")[0])
        parser.add_argument("--binary", default=".build/release/httpware")
        parser.add_argument("--root", default="/", help="where glewlwyd is unpacked")
        self.options = parser.parse_args()
        self.folder = tempfile.mkdtemp(prefix="httpware-glewlwyd-")
        is_there = os.path.exists(os.path.join(self.options.root, "usr/bin/glewlwyd"))
        self.root = self.options.root if is_there else fetched(self.folder)
        self.failed = 0
        if self.root is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            print("skipped: there is no glewlwyd, and Debian's cannot be fetched here")

    def check(self, name, good, shown=""):
        self.failed += not good
        print(f"  {'ok  ' if good else 'FAIL'} {name}" + (f": {shown}" if shown != "" else ""), flush=True)


def main():
    trial = Trial(__doc__)
    if trial.root is None:
        return 0
    options, folder, root, check = trial.options, trial.folder, trial.root, trial.check

    server = Glewlwyd(root, folder)
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    gateway = None
    try:
        server.set_up()
        first = server.first_refresh_token()
        more = 'clientSecret: "secret-1.x", scopes: [orders], refreshBefore: 0s, window: { max: 100, per: 60s }'
        credentials = f"""  basic: {{ grant: clientCredentials, tokenUrl: "{server.token_url()}", clientId: machine, {more} }}
  post: {{ grant: clientCredentials, tokenUrl: "{server.token_url()}", clientId: poster, auth: post, {more.replace("secret-1.x", "se cret&+")} }}
  found: {{ grant: clientCredentials, issuer: "{server.url}/api/oidc", clientId: machine, {more} }}
  person: {{ grant: refreshToken, tokenUrl: "{server.token_url()}", clientId: gateway, refreshToken: "{first}", file: person.json, {more} }}
  spent: {{ grant: refreshToken, tokenUrl: "{server.token_url()}", clientId: gateway, refreshToken: "{first}", {more} }}"""
        port = origin.server_address[1]
        gateway = Gateway(options.binary, folder, credentials, port)
        for name in ("basic", "post", "found", "person"):
            status, text = gateway.get(name)
            check(f"{name}: a request gets through", status == 200, f"{status} {text}".strip())
        tokens = {token for token, _ in Origin.seen}
        check("each has a token of its own", len(tokens) == 4, len(tokens))
        for name in ("basic", "person"):
            end = time.time() + 4 * LIFETIME
            statuses = set()
            while time.time() < end:
                statuses.add(gateway.get(name)[0])
                pause(0.05, Why.MEASURED)
            refreshes = gateway.report(name)["history"]
            check(f"{name}: kept alive over {4 * LIFETIME}s", statuses == {200} and len(refreshes) >= 3,
                  f"{statuses}, {len(refreshes)} refreshes")
        check("rotation: the file has another refresh token",
              json.load(open(f"{folder}/person.json"))["refresh_token"] != first)
        gateway.stop()
        gateway = Gateway(options.binary, folder, credentials, port)
        pause(LIFETIME + 0.5, Why.PASSES)
        status, text = gateway.get("person")
        # The waiting requests continue as soon as there is a token; the refresh ends when it is in the file.
        is_refreshed = eventually(lambda: gateway.report("person")["history"], 5, every=0.05)
        check("after a restart the file's refresh token is used", status == 200 and bool(is_refreshed),
              f"{status} {text}".strip())
        status, text = gateway.get("spent")
        check("a refresh token that is spent: 503, and it says so", status == 503 and "refused the request" in text, text.strip())
        check("no expired token went upstream", all(good for _, good in Origin.seen), len(Origin.seen))
        log = open(gateway.log).read()
        check("no token in the log", first not in log and not any(token in log for token, _ in Origin.seen))
    finally:
        if gateway:
            gateway.stop()
        server.stop()
        origin.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
