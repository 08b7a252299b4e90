"""Steady requests until standard input ends: `steady.py PORT HOST`. The last line is JSON: the answers by status, and examples of others than 200."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Rig.waits import Why, pause  # noqa: E402

CLIENTS = 8


class Load:
    def __init__(self, port: int, host: str):
        self.port, self.host, self.ends = port, host, False
        self.answers: Counter[str] = Counter()
        self.examples: list[str] = []

    def run(self) -> None:
        connection = None
        while not self.ends:
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("GET", "/api/x", headers={"Host": self.host})
                response = connection.getresponse()
                content = response.read()
                self.note(str(response.status), content)
            except (OSError, http.client.HTTPException) as error:
                connection = None
                self.note(type(error).__name__, repr(error).encode())
            pause(0.002, Why.MEASURED)

    def note(self, kind: str, content: bytes) -> None:
        self.answers[kind] += 1
        if kind != "200" and len(self.examples) < 5:
            self.examples.append(f"{kind}: {content[:300].decode(errors='replace')}")


def main() -> None:
    load = Load(int(sys.argv[1]), sys.argv[2])
    clients = [threading.Thread(target=load.run) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    sys.stdin.read()
    load.ends = True
    for client in clients:
        client.join()
    print(json.dumps({"answers": load.answers, "examples": load.examples}))


if __name__ == "__main__":
    main()
