#!/usr/bin/env python3
"""An origin server of the soak, in a process of its own, so that it can be killed and stopped.

    origin.py --name NAME --port PORT [--address ADDRESS] [--posts FILE]

/api/LENGTH and /slow/LENGTH name the request in their content; /mem, /disk, /shared and /mine are cacheable; /own and /rotating want a token of
that credential; /upload tells the digest of its content; /events is an event stream, /socket a WebSocket that repeats what it gets. The
identifier of every POST is appended to FILE before its response.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import itertools
import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, pausing  # noqa: E402

from Soak import content  # noqa: E402

turns = itertools.count()


class Request:
    def __init__(self, head: bytes):
        start, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = start.split(" ")
        self.fields: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                self.fields[name.lower()] = value.strip()
        parts = urlsplit(self.target)
        self.path = parts.path
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}

    def get(self, name: str) -> str:
        return self.fields.get(name, "")


class Origin:
    def __init__(self, name: str, posts: int):
        self.name, self.posts = name, posts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            goes_on = True
            while goes_on:
                request = Request(await reader.readuntil(b"\r\n\r\n"))
                if "upgrade" in request.get("connection").lower():
                    return await self.socket(request, reader, writer)
                goes_on = await self.exchange(request, reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()

    async def exchange(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if request.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest, length = await self.digest(request, reader)
        identity = {"id": request.query.get("id", ""), "user": request.get("x-user"), "path": request.path, "origin": self.name, "method": request.method}
        part = request.path.split("/")[1]
        if part == "upload":
            if request.method == "POST" and self.posts:
                os.write(self.posts, identity["id"].encode() + b"\n")
            return self.answer(writer, content.made(identity | {"sha256": digest, "received": length, "length": 64}, 64))
        if part in ("mem", "disk", "shared", "mine"):
            return self.cacheable(request, writer, part)
        if part in ("own", "rotating"):
            owner, is_good = content.token_owner(request.get("authorization").removeprefix("Bearer "))
            if owner != part or not is_good:
                return self.answer(writer, b"", 401, **{"WWW-Authenticate": 'Bearer error="invalid_token"'})
            return self.answer(writer, content.made(identity | {"owner": owner, "length": 500}, 500))
        if part == "events":
            return await self.events(request, identity, writer)
        if part == "slow":
            return await self.slow(int(request.path.split("/")[2]), identity, writer)
        length = int(request.path.split("/")[2])
        identity["authorization"] = request.get("authorization")
        # nginx, which the server `control` is behind, waits for ever after a 103.
        early = self.name != "control" and next(turns) % 10 == 0
        return self.answer(writer, content.made(identity | {"length": length}, length), chunked=next(turns) % 3 == 0, early=early)

    @staticmethod
    async def digest(request: Request, reader: asyncio.StreamReader) -> tuple[str, int]:
        digest, length = hashlib.sha256(), 0
        if request.get("transfer-encoding"):
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                digest.update(await reader.readexactly(size))
                await reader.readexactly(2)
                length += size
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        else:
            left = int(request.get("content-length") or 0)
            while left:
                data = await reader.read(min(left, 65536))
                if not data:
                    raise ConnectionError
                digest.update(data)
                length, left = length + len(data), left - len(data)
        return digest.hexdigest(), length

    @staticmethod
    def answer(writer: asyncio.StreamWriter, body: bytes, status: int = 200, *, chunked: bool = False, early: bool = False, bare: bool = False, **fields: str) -> bool:
        """Writes a response; every 200th connection ends behind it, as it says."""
        ends = next(turns) % 200 == 0
        head = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n" if early else ""
        head += f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head += "Connection: close\r\n" if ends else ""
        if bare:
            writer.write(head.encode() + b"\r\n")
        elif chunked:
            half = len(body) // 2
            pieces = [piece for piece in (body[:half], body[half:]) if piece]
            writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")
        else:
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return not ends

    def cacheable(self, request: Request, writer: asyncio.StreamWriter, part: str) -> bool:
        version, language = int(time.time() / content.VERSION), request.get("accept-language")
        user = request.get("x-user") if part == "mine" else ""
        body = content.page(request.path, language, user, version)
        fields = {"ETag": content.entity_tag(body), "Cache-Control": f"max-age={content.FRESH}" + (", private" if part == "mine" else ""),
                  "Vary": "Accept-Language", "X-Version": str(version), "Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}
        if fields["ETag"] in request.get("if-none-match"):
            return self.answer(writer, b"", 304, bare=True, **fields)
        return self.answer(writer, body, **fields)

    async def events(self, request: Request, identity: dict, writer: asyncio.StreamWriter) -> bool:
        """An event every 200 ms, then one that says how many there were."""
        count = int(request.path.split("/")[2])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(count + 1):
            data = json.dumps(identity | {"number": number, "of": count}, sort_keys=True).encode()
            event = b"id: %d\ndata: %s\n\n" % (number, data)
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            await pausing(0.2 if number < count else 0, Why.SLOW)
        writer.write(b"0\r\n\r\n")
        return True

    async def slow(self, length: int, identity: dict, writer: asyncio.StreamWriter) -> bool:
        """Content in ten pieces, with pauses."""
        body = content.made(identity | {"length": length}, length)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        step = len(body) // 10 + 1
        for start in range(0, len(body), step):
            writer.write(body[start : start + step])
            await writer.drain()
            await pausing(0.1, Why.SLOW)
        return True

    async def socket(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Repeats each text with its own name in front, as RFC 6455 frames it."""
        key = base64.b64encode(hashlib.sha1(request.get("sec-websocket-key").encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + key + b"\r\n\r\n")
        while True:
            first, size = await reader.readexactly(2)
            length = size & 127
            if length == 126:
                length = int.from_bytes(await reader.readexactly(2), "big")
            mask = await reader.readexactly(4)
            data = bytes(byte ^ mask[index & 3] for index, byte in enumerate(await reader.readexactly(length)))
            if first & 15 == 1:
                data = f"{self.name} {request.query.get('id', '')} {request.get('x-user')} ".encode() + data
            head = bytes([0x80 | first & 15]) + (bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big"))
            writer.write(head + data)
            await writer.drain()
            if first & 15 == 8:
                return


async def main(options: argparse.Namespace) -> None:
    posts = os.open(options.posts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if options.posts else 0
    server = await asyncio.start_server(Origin(options.name, posts).serve, options.address, options.port, backlog=1024, limit=1 << 18)
    # Ends by itself when the process that started it has ended.
    parent = os.getppid()
    while os.getppid() == parent:
        await pausing(1, Why.PASSES)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--posts")
    asyncio.run(main(parser.parse_args()))
