"""Traces: what goes upstream, and what a collector is told."""

from __future__ import annotations

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from Rig.origins import answering
from Rig.processes import free_port
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .fields import answer

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
chains:
  told:
    middlewares:
      - traceparent: {{ export: otlp, endpoint: "http://127.0.0.1:{collector}/v1/traces", service: edge, exportHeaders: {{ X-Api-Key: k3y }} }}
routes: [{{ name: all, service: origin, chain: told }}]
"""
NO = "OTLP is not in Debian's nginx"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
# The members of opentelemetry.proto.trace.v1.Span in JSON.
NAMES = {"traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
         "attributes", "droppedAttributesCount", "events", "droppedEventsCount", "links", "droppedLinksCount", "status"}


class Collector:
    def __init__(self, t: Trial):
        self.calls: list[tuple[str, str, dict]] = []
        self.keys: set[str | None] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                collector.keys.add(self.headers["X-Api-Key"])
                collector.calls.append((self.path, self.headers["Content-Type"], json.loads(content)))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        t.at_end(self.end)

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def spans(self) -> list[dict]:
        return [span for _, _, call in self.calls for resource in call["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]


class Gateway:
    def __init__(self, t: Trial, collector: int):
        self.t, self.web, self.admin = t, free_port(), free_port()
        text = CONFIG.format(web=self.web, admin=self.admin, main=t.setup.ports["main"], collector=collector)
        self.process = t.setup.place.gateway(t.setup.binary, text, [self.web, self.admin], workers=2)
        t.at_end(self.process.stop)

    def ask(self, path: str, *fields: str, port: int | None = None) -> Message:
        client = connect(("127.0.0.1", port or self.web), 10.0)
        self.t.clients.append(client)
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port or self.web}", *fields, "Connection: close", "", ""]
        client.send("\r\n".join(lines).encode())
        return client.read_response()

    def metric(self, line: str) -> bool:
        return bool(eventually(lambda: line in self.ask("/metrics", port=self.admin).body.decode().splitlines()))


def attributes(span: dict) -> dict:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


@case("traceparent: a collector receives the spans of all loops with OTLP's names, each the parent of the origin server's", nginx=NO)
def _(t: Trial) -> None:
    collector = Collector(t)
    gateway = Gateway(t, collector.server.server_address[1])
    t.origin(answering(answer(), answer(status=b"500 X")))
    for number in range(8):
        gateway.ask(f"/a/{number}?token=s3cret", f"traceparent: 00-{TRACE}-{PARENT}-01", "tracestate: congo=t61")
    check(eventually(lambda: len(collector.spans) == 8, 10), len(collector.spans))
    expect_same("calls", {(path, kind) for path, kind, _ in collector.calls}, {("/v1/traces", "application/json")})
    resource = collector.calls[0][2]["resourceSpans"][0]["resource"]["attributes"]
    expect_same("resource", resource, [{"key": "service.name", "value": {"stringValue": "edge"}}])
    sent = {request.get("traceparent") for request in t.main.requests}
    expect_same("sent", {value[:36] for value in sent}, {f"00-{TRACE}-"})
    expect_same("state", {request.get("tracestate") for request in t.main.requests}, {"congo=t61"})
    expect_same("parents", {value.split("-")[2] for value in sent}, {span["spanId"] for span in collector.spans})
    for span in collector.spans:
        check(set(span) <= NAMES, set(span) - NAMES)
        expect_same("span", [span[name] for name in ("traceId", "parentSpanId", "traceState", "name", "kind")], [TRACE, PARENT, "congo=t61", "GET all", 2])
        check(0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), span)
        found = attributes(span)
        status = found["http.response.status_code"]
        check(status in ("200", "500") and found["url.path"].startswith("/a/") and found["http.request.method"] == "GET", found)
        expect_same("status", span.get("status"), {"code": 2} if status == "500" else None)
    expect_same("fields of the calls", collector.keys, {"k3y"})
    config = gateway.ask("/v1/config", port=gateway.admin).body.decode()
    check("exportHeaders.X-Api-Key" in config and "k3y" not in config, config)
    check("s3cret" not in json.dumps([call for _, _, call in collector.calls]), "the query is told")
    check(gateway.metric('httpware_spans_exported_total{ware="traceparent"} 8'), "no metric")


@case("traceparent: a gateway that ends sends its waiting spans, and does not wait for a missing collector", nginx=NO)
def _(t: Trial) -> None:
    for is_there in (True, False):
        collector = Collector(t)
        gateway = Gateway(t, collector.server.server_address[1] if is_there else free_port())
        t.origin(answering(answer()))
        for _ in range(5):
            expect_status(gateway.ask("/"), 200)
        gateway.process.signal(signal.SIGTERM)
        expect_same("exit", gateway.process.wait(20), 0)
        expect_same("spans", len(collector.spans), 5 if is_there else 0)


@case("traceparent: without a collector requests are served, and dropped spans are counted", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, free_port())
    t.origin(answering(answer()))
    for _ in range(20):
        expect_status(gateway.ask("/"), 200)
    expect_same("sent", len({request.get("traceparent") for request in t.main.requests}), 20)
    check(eventually(lambda: gateway.ask("/metrics", port=gateway.admin).body.decode().count('httpware_spans_dropped_total{ware="traceparent"} 20'), 20), "not counted")
