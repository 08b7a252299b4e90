"""An origin server of the trials: `origin.py PORT [CERTIFICATE KEY]`. It answers each GET; below /slow only after a while."""

from __future__ import annotations

import http.server
import ssl
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Rig.waits import Why, pause  # noqa: E402

WAIT = 2.0


class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/slow"):
            pause(WAIT, Why.SLOW)
        content = b"from the origin server"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_) -> None:
        pass


def main() -> None:
    port, *identity = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port)), Origin)
    if identity:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*identity)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
