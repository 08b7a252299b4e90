"""A client of HTTP/2 that sends the same again and again, as fast as it is asked to, until its input ends.

    flooder.py PORT KIND     one of KINDS; `calm` asks for as much and reads what comes
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig import http2 as h  # noqa: E402

GET = h.head("GET", "/mock")
BATCH, PAUSE, LIFE = 25, 0.002, 40


def streams(turn: int) -> list[int]:
    return [2 * number + 1 for number in range(turn * BATCH, (turn + 1) * BATCH)]


def requests(turn: int) -> bytes:
    return b"".join(h.headers(stream, GET) for stream in streams(turn))


# The first bytes of a connection, and the bytes that follow, a batch at a time.
KINDS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "calm": (b"", requests),
    "rapid reset": (b"", lambda turn: b"".join(h.headers(stream, GET) + h.reset(stream) for stream in streams(turn))),
    "CONTINUATION": (h.headers(1, GET, done=False), lambda turn: h.raw(9, 0, 1, h.plain([("x-a", "b")])) * BATCH),
    "PING": (b"", lambda turn: h.ping() * BATCH),
    "SETTINGS": (b"", lambda turn: h.settings(s4=65535 - turn) * BATCH),
    "empty DATA": (h.headers(1, h.head("POST", "/mock"), end=False), lambda turn: h.data(1) * BATCH),
    "zero window": (h.settings(s4=0), requests),
    "slow readers": (b"", requests),
}


def flood(port: int, kind: str, is_over: threading.Event) -> None:
    first, more = KINDS[kind]
    reads = kind not in ("zero window", "slow readers")
    while not is_over.is_set():
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            try:
                sock.sendall(h.PREFACE + h.settings() + first)
                for turn in range(LIFE):
                    sock.sendall(more(turn))
                    if is_over.wait(PAUSE):
                        return
                    sock.setblocking(False)
                    try:
                        while reads and not sock.recv(65536):
                            raise ConnectionError
                    except BlockingIOError:
                        pass
                    sock.settimeout(5)
            except OSError:  # it was ended, as it should be
                pass


def main() -> None:
    is_over = threading.Event()
    thread = threading.Thread(target=flood, args=(int(sys.argv[1]), sys.argv[2], is_over))
    thread.start()
    print("floods", flush=True)
    sys.stdin.read()
    is_over.set()
    thread.join()


if __name__ == "__main__":
    main()
