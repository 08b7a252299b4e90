#!/usr/bin/env python3
"""A small origin server for the load tests, in a process of its own, so that it can be killed.

    origin.py --port PORT [--log FILE] [--delay SECONDS] [--reset-every N]

GET answers 1 KiB, POST answers the number of bytes received. Every request's X-Id is appended to the log before the
response, in one write, so that a kill loses nothing. /big is 1 GiB, /sink reads no content. Every Nth request is answered
by a reset.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, pausing  # noqa: E402

BODY = b"x" * 1024
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + BODY
BIG = 1 << 30
TCP_NOTSENT_LOWAT = 25


class Connection(asyncio.Protocol):
    turns = itertools.count(1)

    def __init__(self, log: int, delay: float, reset_every: int):
        self.log, self.delay, self.reset_every = log, delay, reset_every
        self.buffer = bytearray()
        self.left, self.received, self.busy, self.big = 0, 0, False, 0

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=262144)

    def connection_lost(self, _) -> None:
        self.big = 0

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.proceed()

    def proceed(self) -> None:
        while not self.busy:
            if self.left:
                taken = min(self.left, len(self.buffer))
                del self.buffer[:taken]
                self.left -= taken
                if self.left:
                    return
                self.finish(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%d" % (len(str(self.received)), self.received))
                continue
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[: end + 4])
            del self.buffer[: end + 4]
            target, length, identifier = head.split(b" ", 2)[1], 0, b""
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"x-id":
                    identifier = value.strip()
            if self.log and identifier:
                os.write(self.log, identifier + b"\n")
            if self.reset_every and next(self.turns) % self.reset_every == 0:
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return self.transport.abort()
            if target == b"/big":
                self.busy, self.big = True, BIG
                # It shares the machine with the gateway, whose buffers are looked at: its own stay small.
                self.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 65536)
                self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
                self.resume_writing()
            elif target == b"/sink":
                self.busy = True
                self.transport.pause_reading()
            elif length:
                self.left = self.received = length
            else:
                self.finish(ANSWER)

    def finish(self, answer: bytes) -> None:
        if not self.delay:
            self.transport.write(answer)
            return
        self.busy = True

        def later() -> None:
            self.busy = False
            self.transport.write(answer)
            self.proceed()

        asyncio.get_running_loop().call_later(self.delay, later)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        while self.big and not self.paused and not self.transport.is_closing():
            size = min(self.big, 65536)
            self.big -= size
            self.transport.write(b"x" * size)


async def serve(options: argparse.Namespace) -> None:
    log = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if options.log else 0
    server = await asyncio.get_running_loop().create_server(lambda: Connection(log, options.delay, options.reset_every), "127.0.0.1", options.port, backlog=8192)
    # Ends by itself when the process that started it has ended.
    parent = os.getppid()
    while os.getppid() == parent:
        await pausing(1, Why.PASSES)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--reset-every", type=int, default=0)
    asyncio.run(serve(parser.parse_args()))
