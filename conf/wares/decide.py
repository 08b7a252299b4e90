# decide.py: requests need a tenant, and the origin server gets its name.
import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Decide(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tenant = message["request"]["url"].split("/")[2].split(".")[0] if message["half"] == "request" else ""
        answer = {"respond": {"status": 404}} if tenant == "www" else {"set": {"X-Tenant": tenant}} if tenant else {}
        content = json.dumps(answer).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))


server = ThreadingHTTPServer(("", 0), Decide, bind_and_activate=False)
server.socket = socket.socket(fileno=3)
server.serve_forever()
