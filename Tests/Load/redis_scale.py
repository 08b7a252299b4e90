#!/usr/bin/env python3
"""The load that one gateway, two gateways and a cluster of Redis carry: one JSON line per setting.

    Tests/Load/redis_scale.py --binary .build/release/httpware [--seconds 4] [--rounds 3]

Each request is counted by a `rateLimit` with its own key and answered by the gateway, so that nothing but the gateway and Redis works. Told
are the CPU time that a request costs each gateway and all Redis servers, and the busiest of these: what one processor core of each carries is
1 s divided by that. Rates and latencies are those of this machine, where load, gateways and Redis share the processors. Needs wrk and
redis-server. Ends with 1 if a request was not answered with 200.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from Load.redis_failover import Servers  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
{stores}
chains:
  limit: {{ middlewares: [{{ rateLimit: {{ rate: 1000000/s, key: header.X-Key{store} }} }}, {{ mock: {{ status: 200, body: "ok" }} }}] }}
routes: [{{ chain: limit }}]
log: {{ level: warning }}
"""
SCRIPT = """local number = 0
request = function()
    number = (number * 69069 + 1) % 4294967296
    wrk.headers["X-Key"] = number % 10007
    return wrk.format("GET", "/")
end
"""


def measure(webs: list[int], gateways: list[Process], servers: list[Process], script: Path, seconds: float) -> dict:
    before = [process.cpu_seconds() for process in gateways + servers]
    loads = [subprocess.Popen(["wrk", "-t1", f"-c{32 // len(webs)}", f"-d{seconds:g}s", "--latency", "-s", str(script), f"http://127.0.0.1:{web}/"],
                              stdout=subprocess.PIPE, text=True) for web in webs]
    texts = [load.communicate()[0] for load in loads]
    spent = [process.cpu_seconds() - start for process, start in zip(gateways + servers, before)]
    count = sum(int(re.search(r"(\d+) requests in", text)[1]) for text in texts)
    bad = sum(int(found[1]) for text in texts if (found := re.search(r"Non-2xx or 3xx responses: (\d+)", text)))
    late = max(float(found[1]) * {"us": 0.001, "ms": 1, "s": 1000}[found[2]]
               for text in texts if (found := re.search(r"99%\s+([\d.]+)(us|ms|s)", text)))
    redis = spent[len(gateways):]
    return {"rate": count / seconds, "late": late, "gateway": sum(spent[:len(gateways)]) / count * 1e6,
            "redis": sum(redis) / count * 1e6, "busiest": max(redis, default=0) / count * 1e6, "bad": bad}


class Setting:
    def __init__(self, place: Workplace, binary: str, form: str, count: int):
        self.name = f"{count} gateway{'s' if count > 1 else ''}, {form}"
        servers, stores = Servers(place), ""
        if form == "one Redis server":
            stores = f'url: "redis://127.0.0.1:{servers.start()}"'
        elif form == "sentinels":
            stores = servers.sentinels()
        elif form == "a cluster of 3 masters":
            stores = servers.cluster()
        self.servers = list(servers.processes.values())
        self.webs = [free_port() for _ in range(count)]
        text = f"stores: {{ shared: {{ redis: {{ {stores}, timeout: 1s }} }} }}" if stores else ""
        store = ", store: shared, onError: refuse" if stores else ""
        self.gateways = [place.gateway(binary, CONFIG.format(web=web, stores=text, store=store), [web]) for web in self.webs]
        self.seen: list[dict] = []

    def run(self, script: Path, seconds: float) -> None:
        self.seen.append(measure(self.webs, self.gateways, self.servers, script, seconds))

    def report(self) -> bool:
        middle = {key: statistics.median(one[key] for one in self.seen) for key in self.seen[0]}
        spread = {key: (max(one[key] for one in self.seen) - min(one[key] for one in self.seen)) / middle[key] if middle[key] else 0
                  for key in ("gateway", "busiest")}
        core = {key: round(1e6 / middle[key], -2) if middle[key] else None for key in ("gateway", "busiest")}
        bad = sum(one["bad"] for one in self.seen)
        print(json.dumps({
            "name": self.name, "gateway_us": round(middle["gateway"], 1), "gateway_core_carries": core["gateway"],
            "gateway_spread": round(spread["gateway"], 2), "redis_us": round(middle["redis"], 1), "busiest_redis_us": round(middle["busiest"], 2),
            "busiest_redis_core_carries": core["busiest"], "busiest_spread": round(spread["busiest"], 2),
            "rate_here": round(middle["rate"]), "p99_ms_here": round(middle["late"], 2), "refused": bad}), flush=True)
        return bad == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    place = Workplace("scale")
    try:
        script = place.subfolder("load") / "keys.lua"
        script.write_text(SCRIPT)
        settings = [Setting(place, arguments.binary, *form) for form in (
            ("a limit in memory", 1), ("one Redis server", 1), ("one Redis server", 2), ("a cluster of 3 masters", 1),
            ("a cluster of 3 masters", 2))]
        for _ in range(arguments.rounds):
            for setting in settings:
                setting.run(script, arguments.seconds)
        sys.exit(0 if all([setting.report() for setting in settings]) else 1)
    finally:
        place.close()


if __name__ == "__main__":
    main()
