"""A connection seen as bytes, and a strict reader of the HTTP/1.1 messages on it (RFC 9112).

The reader refuses what a careful peer would refuse, so that whatever the program under test emits is checked on the way.
"""

from __future__ import annotations

import re
import select
import socket
import time

from Rig.waits import Why, pause

TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*\Z")


class WireClosed(Exception):
    """The peer closed before what was waited for had arrived."""


class WireTimeout(Exception):
    """The peer sent nothing for too long."""


class Malformed(Exception):
    """The peer sent what RFC 9112 forbids."""


class Message:
    """A request or a response as read: field names keep their case, values lose their surrounding whitespace."""

    def __init__(self, start: bytes, fields: list[tuple[str, str]], raw: bytes):
        self.start, self.fields, self.raw = start, fields, raw
        self.body, self.trailers, self.framing, self.whole = b"", [], "none", True
        self.interim: list[Message] = []
        self.method = self.target = self.version = self.reason = ""
        self.status = 0

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        return ", ".join(values) if values else None

    def has(self, name: str) -> bool:
        return bool(self.all(name))

    def options(self) -> set[str]:
        """The connection options, in lower case."""
        return {option.strip().lower() for option in (self.get("Connection") or "").split(",") if option.strip()}

    def __repr__(self) -> str:
        cut = "" if self.whole else " CUT OFF"
        return f"{self.start.decode('latin-1')!r} {self.fields!r} {self.framing} body[{len(self.body)}]={self.body[:120]!r}{cut}"


def parse_head(raw: bytes) -> Message:
    """Reads a head that ends with its empty line."""
    if re.search(rb"(?<!\r)\n|\r(?!\n)", raw):
        raise Malformed(f"bare CR or LF in {raw[:200]!r}")
    start, *lines = raw[:-4].split(b"\r\n")
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.match(name) or not VALUE.match(value):
            raise Malformed(f"field line {line[:100]!r}")
        fields.append((name.decode(), value.strip(b" \t").decode("latin-1")))
    return Message(start, fields, raw)


class Wire:
    """A socket with a read buffer. Every wait ends after `timeout` seconds."""

    def __init__(self, sock: socket.socket, timeout: float = 5.0):
        self.sock, self.timeout = sock, timeout
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(timeout)
        self.received = bytearray()  # all that ever came
        self.buffer = bytearray()  # what has not been read
        self.was_reset = False
        self.at_end = False

    # Sending

    def send(self, data: bytes) -> bool:
        """Sends all of it; False when the peer has closed. Bytes that the peer sent before stay readable."""
        try:
            self.sock.sendall(data)
            return True
        except TimeoutError:
            raise WireTimeout(f"could not send {len(data)} bytes in {self.timeout} s") from None
        except OSError:  # the peer closed or reset, or the case ended and closed this side
            return False

    def dribble(self, data: bytes, pause: float = 0.0003) -> bool:
        """Sends one byte at a time; stops early, with False, as soon as the peer answers or closes."""
        for index in range(len(data)):
            if not self.send(data[index : index + 1]):
                return False
            if self.is_readable(pause) and index + 1 < len(data):
                return False
        return True

    def is_readable(self, within: float) -> bool:
        """Whether something came, or the end. `select` knows no descriptor above 1,023, and `poll` no time below a millisecond."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if within >= 0.001 or poll.poll(0):
            return bool(poll.poll(within * 1000))
        pause(within, Why.PASSES)
        return bool(poll.poll(0))

    def feed(self, data: bytes, bytewise: bool) -> bool:
        return self.dribble(data) if bytewise else self.send(data)

    def end_sending(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        """Closes with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    # Receiving

    def fill(self) -> bool:
        """Receives once; False at the end."""
        if self.at_end:
            return False
        try:
            data = self.sock.recv(262144)
        except TimeoutError:
            raise WireTimeout(f"nothing came for {self.sock.gettimeout()} s; unread: {bytes(self.buffer[:200])!r}") from None
        except ConnectionResetError:
            self.was_reset, data = True, b""
        except OSError:
            data = b""
        if not data:
            self.at_end = True
            return False
        self.received += data
        self.buffer += data
        return True

    def take(self, count: int) -> bytes:
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def read_until(self, mark: bytes) -> bytes:
        begin = 0
        while (found := self.buffer.find(mark, begin)) < 0:
            begin = max(0, len(self.buffer) - len(mark) + 1)
            if not self.fill():
                raise WireClosed(f"closed before {mark!r}; unread: {bytes(self.buffer[:200])!r}")
        return self.take(found + len(mark))

    def read_exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not self.fill():
                raise WireClosed(f"closed after {len(self.buffer)} of {count} bytes")
        return self.take(count)

    def read_rest(self) -> bytes:
        while self.fill():
            pass
        return self.take(len(self.buffer))

    def ends(self, within: float = 3.0) -> bool:
        """Whether the peer closes within the time. Bytes that still come stay in the buffer."""
        deadline = time.monotonic() + within
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.sock.settimeout(left)
                try:
                    if not self.fill():
                        return True
                except WireTimeout:
                    return False
            return self.at_end
        finally:
            try:
                self.sock.settimeout(self.timeout)
            except OSError:
                pass

    def is_silent(self, during: float = 0.15) -> bool:
        """Whether the peer neither sends nor closes for that time."""
        return not self.buffer and not self.is_readable(during)

    # Messages

    def read_head(self) -> Message:
        return parse_head(self.read_until(b"\r\n\r\n") if not self._starts_empty() else b"")

    def _starts_empty(self) -> bool:
        while len(self.buffer) < 2 and self.fill():
            pass
        if self.buffer[:1] in (b"\r", b"\n"):
            raise Malformed("an empty line before a message")
        return False

    def read_request_head(self) -> Message:
        head = self.read_head()
        parts = head.start.split(b" ")
        if len(parts) != 3 or not TOKEN.match(parts[0]) or not re.match(rb"HTTP/1\.[01]\Z", parts[2]) or not parts[1]:
            raise Malformed(f"request line {head.start!r}")
        head.method, head.target, head.version = (part.decode("latin-1") for part in parts)
        return head

    def read_request(self, with_content: bool = True) -> Message:
        """A whole request, as an origin server reads it."""
        request = self.read_request_head()
        codings, lengths = request.all("Transfer-Encoding"), request.all("Content-Length")
        if codings and lengths:
            raise Malformed(f"Transfer-Encoding and Content-Length: {request!r}")
        if len(set(lengths)) > 1 or any(not re.match(r"[0-9]+\Z", length) for length in lengths):
            raise Malformed(f"Content-Length {lengths!r}")
        if codings:
            if [coding.lower() for coding in codings] != ["chunked"]:
                raise Malformed(f"Transfer-Encoding {codings!r}")
            request.framing = "chunked"
        elif lengths:
            request.framing = "length"
        if with_content:
            self.read_content(request)
        return request

    def read_response(self, method: str = "GET") -> Message:
        """A final response; the interim ones before it are in its `interim`."""
        interim = []
        while True:
            head = self.read_head()
            match = re.match(rb"(HTTP/1\.[01]) ([0-9]{3}) ([\t\x20-\x7e\x80-\xff]*)\Z", head.start)
            if not match:
                raise Malformed(f"status line {head.start!r}")
            head.version, head.status, head.reason = match[1].decode(), int(match[2]), match[3].decode("latin-1")
            if 100 <= head.status < 200 and head.status != 101:
                if head.has("Content-Length") or head.has("Transfer-Encoding"):
                    raise Malformed(f"content of an interim response: {head!r}")
                interim.append(head)
                continue
            break
        response = head
        response.interim = interim
        codings, lengths = response.all("Transfer-Encoding"), response.all("Content-Length")
        if codings and lengths:
            raise Malformed(f"Transfer-Encoding and Content-Length: {response!r}")
        if len(lengths) > 1:
            raise Malformed(f"several Content-Length: {response!r}")
        if method == "HEAD" or response.status in (101, 204, 304) or (method == "CONNECT" and response.status // 100 == 2):
            response.framing = "none"
        elif codings:
            if [coding.lower() for coding in codings] != ["chunked"]:
                raise Malformed(f"Transfer-Encoding {codings!r}")
            response.framing = "chunked"
        elif lengths:
            if not re.match(r"[0-9]+\Z", lengths[0]):
                raise Malformed(f"Content-Length {lengths[0]!r}")
            response.framing = "length"
        else:
            response.framing = "close"
        self.read_content(response)
        return response

    def read_content(self, message: Message) -> None:
        """Reads by the framing; a cut-off message keeps what came and says `whole == False`."""
        content = bytearray()
        try:
            if message.framing == "length":
                left = int(message.get("Content-Length").split(",")[0])
                while left:
                    if not self.buffer and not self.fill():
                        raise WireClosed("cut off")
                    content += self.take(min(left, len(self.buffer)))
                    left = int(message.get("Content-Length").split(",")[0]) - len(content)
            elif message.framing == "chunked":
                while True:
                    line = self.read_until(b"\r\n")[:-2]
                    match = re.match(rb"([0-9a-fA-F]{1,16})([ \t]*;.*)?\Z", line)
                    if not match:
                        raise Malformed(f"chunk size {line[:60]!r}")
                    size = int(match[1], 16)
                    if not size:
                        break
                    content += self.read_exactly(size)
                    if self.read_exactly(2) != b"\r\n":
                        raise Malformed("chunk data without CRLF")
                while (line := self.read_until(b"\r\n")) != b"\r\n":
                    name, _, value = line[:-2].partition(b":")
                    if not TOKEN.match(name):
                        raise Malformed(f"trailer {line!r}")
                    message.trailers.append((name.decode(), value.strip(b" \t").decode("latin-1")))
            elif message.framing == "close":
                content += self.read_rest()
                message.whole = not self.was_reset
        except WireClosed:
            message.whole = False
        message.body = bytes(content)


def connect(address: tuple[str, int] | str, timeout: float = 5.0, source: str | None = None) -> Wire:
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(address)
    else:
        sock = socket.create_connection(address, timeout, (source, 0) if source else None)
    return Wire(sock, timeout)
