#!/usr/bin/env python3
# One file: the gateway holds it as one text and gives it to Python, where it must run without anything beside it.
"""Runs an addon that was written for mitmproxy, as a program of the ware `callout`.

    python3 -B addon_host.py ADDON.py

The gateway starts it with a listening socket as the descriptor named in HTTPWARE_CALLOUT_FD (3 if it is missing) and a pipe as standard input.
Both halves of an exchange come as JSON over HTTP/1.1, and the edits of the addon go back. The host ends when the pipe ends, or on SIGTERM.

An addon sees modules named `mitmproxy` and `mitmproxy.…`, which this file makes. They offer the part of mitmproxy that HTTP addons use. The rest
is found in the addon's source when it is loaded, and the gateway is told all of it, with file and line.

- Options of the ware are the addon's own options, as it added them with `loader.add_option`. The option `content` (`1MiB`, or a mapping of `request`
  and `response` to sizes) is the largest content that is asked for, unless the addon has an option of this name.
- Content is asked for if the source reads or writes it, or if a flow goes to code that is not part of the addon.
- Content is already decoded, and the gateway frames it: changes of fields that frame a message or belong to a connection are left out of the answer.
- `Host` and the URL are one: another `Host` becomes the authority of the URL. Two different ones are an error.
- The hook `error` is called for a flow that was killed, and for a request whose response did not come within five minutes.
- `flow.comment`, and texts in `flow.metadata`, become notes of the record.
- A changed file is loaded again, at most once a second. `done` of the old addon is called after the new one was loaded, so that the old one
  continues if the new one is broken. If the new one needs other halves or content, the host ends, and the gateway starts it again.

Python 3.11, standard library only.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import binascii
import concurrent.futures
import copy
import functools
import gc
import gzip
import inspect
import io
import json
import logging
import os
import re
import signal
import socket
import stat
import sys
import threading
import time
import tokenize
import traceback
import types
import typing
import urllib.parse
import uuid
import zlib
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, MutableMapping, Sequence
from http import HTTPStatus
from json.decoder import JSONDecodeError, JSONDecoder
from json.encoder import JSONEncoder
from pathlib import Path

# Bounds. A message may be as large as the largest content that was asked for, written in JSON, and `MESSAGE` more.
HEAD = 16 * 1024
ROOM = 128 * 1024
MESSAGE = 4 * 1024 * 1024
CONTENT = 1024 * 1024
CONTENT_MAX = 64 * 1024 * 1024
CONNECTIONS = 512
HALF_REQUEST_SECONDS = 30.0
FLOWS = 8192
FLOW_BYTES = 64 * 1024 * 1024
FLOW_SECONDS = 300.0
NOTES = 32
NOTE_LENGTH = 1024
THREADS = 64
DONE_SECONDS = 3.0

# Fields that the gateway writes itself. Names with an underscore in place of the hyphen are read as these by some servers.
FRAMING = frozenset(
    each for name in ("content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection", "http2-settings")
    for each in (name, name.replace("-", "_")))
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^@/?#]*@)?(\[[^\]/?#]*\]|[^:/?#\[\]]*)(?::([0-9]{0,5}))?([/?][^#]*)?(?:#.*)?", re.DOTALL)
PORTS = {"http": 80, "https": 443}
KILLED = "Connection killed."
LOST = "no response came"
UNSET: typing.Any = object()
# The name of this file in tracebacks.
HERE = (lambda: None).__code__.co_filename


# Texts and multi dictionaries


def text_of(value: str | bytes) -> str:
    """The text of a field's name or value. Bytes that are not UTF-8 are read as Latin-1."""
    if isinstance(value, str):
        if value.isascii():
            return value
        value = value.encode("utf-8", "surrogateescape")
    elif not isinstance(value, bytes):
        raise TypeError(f"expected str or bytes, but got {type(value).__name__}")
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def field_name(name: str | bytes) -> str:
    name = text_of(name)
    if not NAME.fullmatch(name):
        raise ValueError(f"invalid name of a field: {name!r}")
    return name


def field_value(value: str | bytes) -> str:
    if type(value) is not str or not value.isascii():
        value = text_of(value)
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"invalid value of a field: {value!r}")
    return value


class MultiDict(MutableMapping):
    """A mapping in which a key has one value or more, in order."""

    def __init__(self, fields: Iterable = ()) -> None:
        self._pairs = [(key, value) for key, value in (fields.items() if isinstance(fields, Mapping) else fields)]

    @property
    def fields(self) -> tuple:
        return tuple(self._read())

    @fields.setter
    def fields(self, value: Iterable) -> None:
        self._write([(key, each) for key, each in value])

    def _read(self) -> Sequence:
        return self._pairs

    def _write(self, pairs: list) -> None:
        self._pairs = pairs

    @staticmethod
    def _same(key: typing.Any) -> typing.Any:
        """The form of a key by which it is compared."""
        return key

    @staticmethod
    def _joined(values: list) -> typing.Any:
        return values[0]

    def get_all(self, key: typing.Any) -> list:
        key = self._same(key)
        return [value for each, value in self._read() if self._same(each) == key]

    def set_all(self, key: typing.Any, values: Iterable) -> None:
        same, values, pairs = self._same(key), list(values), []
        for each in self._read():
            if self._same(each[0]) != same:
                pairs.append(each)
            elif values:
                pairs.append((each[0], values.pop(0)))
        self._write(pairs + [(key, value) for value in values])

    def add(self, key: typing.Any, value: typing.Any) -> None:
        self.insert(len(self._read()), key, value)

    def insert(self, index: int, key: typing.Any, value: typing.Any) -> None:
        pairs = list(self._read())
        pairs.insert(index, (key, value))
        self._write(pairs)

    def __getitem__(self, key: typing.Any) -> typing.Any:
        if values := self.get_all(key):
            return self._joined(values)
        raise KeyError(key)

    def __setitem__(self, key: typing.Any, value: typing.Any) -> None:
        self.set_all(key, [value])

    def __delitem__(self, key: typing.Any) -> None:
        if key not in self:
            raise KeyError(key)
        self.set_all(key, [])

    def __contains__(self, key: object) -> bool:
        key = self._same(key)
        return any(self._same(each) == key for each, _ in self._read())

    def __iter__(self) -> Iterator:
        seen = set()
        for key, _ in self._read():
            if (same := self._same(key)) not in seen:
                seen.add(same)
                yield key

    def __len__(self) -> int:
        return len({self._same(key) for key, _ in self._read()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MultiDict) and self.fields == other.fields

    __hash__ = None

    def keys(self, multi: bool = False) -> Iterable:
        return [key for key, _ in self._read()] if multi else super().keys()

    def values(self, multi: bool = False) -> Iterable:
        return [value for _, value in self._read()] if multi else super().values()

    def items(self, multi: bool = False) -> Iterable:
        return [(key, value) for key, value in self._read()] if multi else super().items()

    def copy(self) -> MultiDict:
        return MultiDict(self.fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(repr, self.fields))}]"


class MultiDictView(MultiDict):
    """A multi dictionary that is read out of a message, and written into it, with each use."""

    def __init__(self, getter: Callable[[], Iterable], setter: Callable[[list], None]) -> None:
        self._get, self._set = getter, setter

    def _read(self) -> Sequence:
        return list(self._get())

    def _write(self, pairs: list) -> None:
        self._set(pairs)


class CookieAttrs(MultiDict):
    """The attributes of a cookie that a response sets."""

    @staticmethod
    def _same(key: str) -> str:
        return key.lower()


class Headers(MultiDict):
    """The fields of a message. A name is compared without case; several values of a name are read as one, joined by a comma."""

    def __init__(self, fields: Iterable = (), **headers: str | bytes) -> None:
        self._pairs: list = []
        # The message's own list, which is never changed, and the names that were written since, in lower case; `None` for all.
        self._base: list | None = None
        self._touched: set[str] | None = None
        self._fill(fields)
        for name, value in headers.items():
            self[name.replace("_", "-")] = value

    def _fill(self, fields: Iterable) -> None:
        if isinstance(fields, Headers):
            fields = fields._pairs
        elif isinstance(fields, Mapping):
            fields = fields.items()
        self._pairs = [(field_name(name), field_value(value)) for name, value in fields]
        self._touched = None

    @classmethod
    def _of(cls, pairs: list) -> Headers:
        headers = cls.__new__(cls)
        headers._pairs = headers._base = pairs
        headers._touched = set()
        return headers

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        return tuple((name.encode(), value.encode()) for name, value in self._pairs)

    @fields.setter
    def fields(self, value: Iterable) -> None:
        self._fill(value)

    @staticmethod
    def _same(key: str | bytes) -> str:
        return key.lower() if type(key) is str else text_of(key).lower()

    @staticmethod
    def _joined(values: list[str]) -> str:
        return ", ".join(values)

    def _written(self, same: str) -> list:
        """The list to write in, after which the message's own list is left alone."""
        if self._touched is not None:
            self._touched.add(same)
        if self._pairs is self._base:
            self._pairs = list(self._pairs)
        return self._pairs

    def get(self, key: str | bytes, default: typing.Any = None) -> typing.Any:
        same = self._same(key)
        values = [value for name, value in self._pairs if name.lower() == same]
        return ", ".join(values) if values else default

    def get_all(self, name: str | bytes) -> list[str]:
        same = self._same(name)
        return [value for each, value in self._pairs if each.lower() == same]

    def set_all(self, name: str | bytes, values: Iterable[str | bytes]) -> None:
        name, values = field_name(name), [field_value(value) for value in values]
        same, pairs = name.lower(), []
        for pair in self._pairs:
            if pair[0].lower() != same:
                pairs.append(pair)
            elif values:
                pairs.append((pair[0], values.pop(0)))
        self._written(same)[:] = [*pairs, *((name, value) for value in values)]

    def __setitem__(self, key: str | bytes, value: str | bytes) -> None:
        name, value = field_name(key), field_value(value)
        same = name.lower()
        pairs = self._written(same)
        places = [place for place, pair in enumerate(pairs) if pair[0].lower() == same]
        if not places:
            pairs.append((name, value))
            return
        pairs[places[0]] = (pairs[places[0]][0], value)
        for place in reversed(places[1:]):
            del pairs[place]

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, (str, bytes)):
            return False
        same = self._same(key)
        return any(name.lower() == same for name, _ in self._pairs)

    def insert(self, index: int, key: str | bytes, value: str | bytes) -> None:
        name, value = field_name(key), field_value(value)
        self._written(name.lower()).insert(index, (name, value))

    def copy(self) -> Headers:
        return Headers(self._pairs)

    def __bytes__(self) -> bytes:
        return b"".join(b"%b: %b\r\n" % pair for pair in self.fields)


# Messages


def media_type(value: str) -> tuple[str, dict[str, str]]:
    """The type and the parameters of a Content-Type, in lower case."""
    kind, *rest = value.split(";")
    parameters = (part.partition("=") for part in rest)
    return kind.strip().lower(), {name.strip().lower(): each.strip().strip('"') for name, equals, each in parameters if equals}


BYTE_ORDERS = ((b"\x00\x00\xfe\xff", "utf-32-be"), (b"\xff\xfe\x00\x00", "utf-32-le"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"), (b"\xef\xbb\xbf", "utf-8-sig"))


def charset_of(content_type: str, content: bytes, marks: bool = True) -> str:
    """The name of the charset in which a content is written. Without `marks`, a mark of the byte order says nothing."""
    for mark, name in BYTE_ORDERS:
        if marks and content.startswith(mark):
            return name
    kind, parameters = media_type(content_type)
    found = parameters.get("charset")
    if not found and "json" in kind:
        found = "utf-8"
    if not found and "html" in kind:
        match = re.search(rb"""<meta[^>]+charset=['"]?([^'">\s;]+)""", content[:4096], re.IGNORECASE)
        found = match[1].decode("ascii", "ignore") if match else "utf-8"
    if not found and "xml" in kind:
        match = re.search(rb"""<\?xml[^>]+encoding=['"]([^'">]+)""", content[:1024], re.IGNORECASE)
        found = match[1].decode("ascii", "ignore") if match else "utf-8"
    if not found and kind == "text/css":
        match = re.match(rb"""@charset "([^"]+)";""", content, re.IGNORECASE)
        found = match[1].decode("ascii", "ignore") if match else "utf-8"
    if not found and ("javascript" in kind or "ecmascript" in kind):
        found = "utf-8"
    found = (found or "latin-1").lower()
    # The larger charset contains the smaller one, which servers often name for it.
    return "gb18030" if found in ("gb2312", "gbk") else found


CODERS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "identity": (bytes, bytes),
    "gzip": (functools.partial(gzip.compress, mtime=0), gzip.decompress),
    "deflate": (zlib.compress, zlib.decompress),
}


EMPTY = {"text": ""}


class Message:
    """A request or a response. The parts that the gateway sent are kept as they came, and are read with the first use."""

    stream: bool | Callable[[bytes], bytes | Iterable[bytes]] = False
    _headers: Headers
    _version: str
    _given: dict | None = None
    _content: bytes | None = UNSET
    # Whether the content was set, or the message was made by the addon; and whether it was set as it goes over the wire.
    _is_content_set = _is_raw = False
    # The coding that the gateway undoes and does.
    _coding = "identity"
    timestamp_start: float
    timestamp_end: float | None

    def _take(self, given: dict, version: str, now: float, has_content: bool) -> None:
        """Takes the parts of a message. `has_content` is whether its content was asked for."""
        self._headers = Headers._of(given["fields"])
        self._version = version
        self._given = given.get("content")
        if has_content:
            self._coding = self._headers.get("content-encoding", "identity").lower()
        if self._given is None:
            # An empty content is left out of a message, as is that of events, which have no end.
            if has_content and not self._headers.get("content-type", "").startswith("text/event-stream"):
                self._given = EMPTY
            else:
                self._content = None
        self.timestamp_start = self.timestamp_end = now

    def _make(self, content: bytes | str, headers: typing.Any) -> None:
        self._version = "HTTP/1.1"
        self._headers = Headers()
        self.headers = headers
        self.timestamp_start = self.timestamp_end = time.time()
        self._content = None
        self._given = None
        if isinstance(content, str):
            self.set_text(content)
        elif isinstance(content, bytes):
            self.set_content(content)
        else:
            raise TypeError(f"expected content to be str or bytes, but got {type(content).__name__}")

    @property
    def http_version(self) -> str:
        return self._version

    @property
    def is_http10(self) -> bool:
        return self._version == "HTTP/1.0"

    @property
    def is_http11(self) -> bool:
        return self._version == "HTTP/1.1"

    @property
    def is_http2(self) -> bool:
        return self._version.startswith("HTTP/2")

    @property
    def is_http3(self) -> bool:
        return self._version.startswith("HTTP/3")

    @property
    def headers(self) -> Headers:
        return self._headers

    @headers.setter
    def headers(self, value: typing.Any) -> None:
        self._headers = value if isinstance(value, Headers) else Headers(value)

    # Content

    def get_content(self, strict: bool = True) -> bytes | None:
        if self._content is UNSET:
            text = self._given.get("text")
            self._content = base64.b64decode(self._given["base64"]) if text is None else text.encode()
        if self._is_raw and self._content:
            coding = self._headers.get("content-encoding", "identity").lower()
            try:
                return CODERS[coding][1](self._content)
            except (KeyError, OSError, EOFError, zlib.error) as fault:
                if strict:
                    raise ValueError(f"the content is not {coding}: {fault}") from None
        return self._content

    def set_content(self, value: bytes | None) -> None:
        if value is not None and not isinstance(value, bytes):
            raise TypeError(f"Message content must be bytes, not {type(value).__name__}. Please use .text if you want to assign a str.")
        self._content = value
        self._is_content_set, self._is_raw = True, False
        if value is not None and "transfer-encoding" not in self._headers:
            self._headers["content-length"] = str(len(value))

    def _get_raw(self) -> bytes | None:
        return self._content if self._is_raw else self.get_content()

    def _set_raw(self, value: bytes | None) -> None:
        self.set_content(value)
        self._is_raw = True

    def _sent(self) -> bytes:
        """The content for the gateway: without the coding that it does itself, and with another one that the addon named."""
        coding = self._headers.get("content-encoding", "identity").lower()
        if coding == self._coding or coding == "identity":
            return self.get_content() or b""
        if self._is_raw:
            return self._content or b""
        if not (content := self.get_content()):
            return b""
        if coding not in CODERS:
            raise ValueError(f"the content cannot be coded as {coding}: use one of {', '.join(sorted(CODERS))}")
        return CODERS[coding][0](content)

    content = property(get_content, set_content)
    raw_content = property(_get_raw, _set_raw)

    def get_text(self, strict: bool = True) -> str | None:
        content = self.get_content()
        if content is None:
            return None
        charset = charset_of(self._headers.get("content-type", ""), content)
        try:
            return content.decode(charset)
        except (LookupError, ValueError) as fault:
            if strict:
                raise ValueError(f"the content is not {charset}: {fault}") from None
            return content.decode("utf-8", "surrogateescape")

    def set_text(self, text: str | None) -> None:
        if text is None:
            return self.set_content(None)
        kind = self._headers.get("content-type", "")
        try:
            content = text.encode(charset_of(kind, self.get_content(strict=False) or b"", marks=False))
        except (LookupError, ValueError):
            kept = [part for part in kind.split(";")[1:] if not part.strip().lower().startswith("charset=")]
            self._headers["content-type"] = ";".join([kind.split(";")[0] or "text/plain", *kept, " charset=utf-8"])
            content = text.encode("utf-8", "surrogateescape")
        self.set_content(content)

    text = property(get_text, set_text)

    def json(self, **options: typing.Any) -> typing.Any:
        content = self.get_content(strict=False)
        if content is None:
            raise TypeError("Message content is not available.")
        return json.loads(content, **options)

    def decode(self, strict: bool = True) -> None:
        """Removes Content-Encoding."""
        if "content-encoding" in self._headers:
            content = self.get_content(strict)
            del self._headers["content-encoding"]
            self.set_content(content)

    def encode(self, encoding: str) -> None:
        if encoding not in CODERS:
            raise ValueError(f"Invalid content encoding {encoding!r}: it must be one of {', '.join(sorted(CODERS))}")
        content = self.get_content()
        self._headers["content-encoding"] = encoding
        self.set_content(content)

    def _stream(self) -> None:
        """Gives the content to the function in `stream`. Without a function, a streamed content is not available."""
        stream, content = self.stream, self.get_content()
        if callable(stream):
            parts = []
            for piece in [content, b""] if content else [b""]:
                part = stream(piece)
                parts += [part] if isinstance(part, bytes) else list(part or ())
            self.set_content(b"".join(parts))
        elif not self._is_content_set:
            self._content = None

    def copy(self) -> typing.Any:
        copied = copy.copy(self)
        copied._headers = self._headers.copy()
        return copied


def cookie_parts(text: str) -> list[tuple[str, str | None]]:
    """The pairs of a cookie field. A part without `=` has no value."""
    parts = []
    for match in re.finditer(r'\s*([^=;]*)(?:=\s*("(?:\\.|[^"\\])*"(?=\s*(?:;|$))|[^;]*))?(?:;|$)', text):
        name, value = match[1].strip(), match[2]
        if value is not None:
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] == '"':
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
        if name or value:
            parts.append((name, value))
    return parts


def cookie_text(name: str, value: str | None) -> str:
    if value is None:
        return name
    return f"{name}={value}" if not re.search(r'[\s",;\\]', value) or name.lower() == "expires" else '{}="{}"'.format(name, re.sub(r'(["\\])', r"\\\1", value))


class Request(Message):
    _method: str
    # The URL as it came, and its parts as they were set: scheme, host, port and path.
    _url: str
    _parts: list | None = None
    _is_url = True
    _authority: str | None = None

    def __init__(self, *_: typing.Any, **__: typing.Any) -> None:
        raise TypeError("a request is made by Request.make")

    @classmethod
    def _of(cls, given: dict, now: float, has_content: bool) -> Request:
        request = cls.__new__(cls)
        version = given.get("version", "HTTP/1.1")
        request._take(given, version if "." in version else version + ".0", now, has_content)
        request._method, request._url = given["method"], given["url"]
        return request

    @classmethod
    def make(cls, method: str, url: str, content: bytes | str = "", headers: typing.Any = ()) -> Request:
        request = cls.__new__(cls)
        request._url = ""
        request._parts = ["http", "", 80, "/"]
        request._make(content, headers)
        request.method, request.url = method, url
        return request

    def _split(self) -> list:
        if self._parts is None:
            match = URL.fullmatch(self._url)
            if match:
                scheme, host, port, path = match.groups()
                path = path or "/"
                self._parts = [scheme.lower(), host.strip("[]"), int(port) if port else PORTS.get(scheme.lower(), 80), path if path[0] == "/" else "/" + path]
            else:
                # A target such as `*`.
                self._is_url = False
                self._parts = ["http", self._headers.get("host", "").rpartition(":")[0] or self._headers.get("host", ""), 80, self._url or "/"]
        return self._parts

    def _authority_of(self, host: str) -> str:
        scheme, _, port, _ = self._split()
        host = f"[{host}]" if ":" in host else host
        return host if PORTS.get(scheme) == port else f"{host}:{port}"

    def _moved(self) -> None:
        """Lets `Host` follow the host and the port."""
        self._is_url = self._is_url or self.path.startswith("/")
        authority = self._authority_of(self._split()[1])
        if "host" in self._headers:
            self._headers["Host"] = authority
        if self._authority is not None:
            self._authority = authority

    @property
    def method(self) -> str:
        return self._method

    @method.setter
    def method(self, value: str | bytes) -> None:
        self._method = field_name(value)

    @property
    def scheme(self) -> str:
        return self._split()[0]

    @scheme.setter
    def scheme(self, value: str | bytes) -> None:
        self._split()[0] = text_of(value).lower()

    @property
    def host(self) -> str:
        return self._split()[1]

    @host.setter
    def host(self, value: str | bytes) -> None:
        value = text_of(value)
        value = value if value.isascii() else value.encode("idna").decode()
        if not value or re.search(r"[\x00-\x20/?#@\x7f]", value):
            raise ValueError(f"invalid host: {value!r}")
        self._split()[1] = value
        self._moved()

    @property
    def port(self) -> int:
        return self._split()[2]

    @port.setter
    def port(self, value: int) -> None:
        if not isinstance(value, int) or not 0 < value < 65_536:
            raise ValueError(f"Port must be an integer from 1 to 65535, not {value!r}.")
        self._split()[2] = value
        self._moved()

    @property
    def path(self) -> str:
        return self._split()[3]

    @path.setter
    def path(self, value: str | bytes) -> None:
        value = text_of(value)
        if re.search(r"[\x00-\x20\x7f]", value):
            raise ValueError(f"invalid path: {value!r}")
        self._split()[3] = value if value.isascii() else urllib.parse.quote(value, safe="!#$%&'()*+,/:;=?@[]~")

    @property
    def authority(self) -> str:
        if self._authority is None:
            return self._authority_of(self._split()[1]) if self.is_http2 or self.is_http3 else ""
        return self._authority

    @authority.setter
    def authority(self, value: str | bytes) -> None:
        self._authority = field_value(value)

    @property
    def host_header(self) -> str | None:
        return self.authority or self._headers.get("Host") if self.is_http2 or self.is_http3 else self._headers.get("Host")

    @host_header.setter
    def host_header(self, value: str | bytes | None) -> None:
        if value is None:
            self._headers.pop("Host", None)
        elif self.is_http2 or self.is_http3:
            self.authority = value
            if "Host" in self._headers:
                self._headers["Host"] = value
        else:
            self._headers["Host"] = value

    @property
    def url(self) -> str:
        scheme, host, _, path = self._split()
        return path if not self._is_url else f"{scheme}://{self._authority_of(host)}{path}"

    @url.setter
    def url(self, value: str | bytes) -> None:
        value = text_of(value)
        match = URL.fullmatch(value)
        if not match or not match[2] or match[1].lower() not in PORTS:
            raise ValueError(f"Invalid URL: {value!r}")
        self._is_url = True
        self.scheme, self.port, self.host = match[1], int(match[3] or PORTS[match[1].lower()]), match[2].strip("[]")
        path = match[4] or "/"
        self.path = path if path[0] == "/" else "/" + path

    @property
    def pretty_host(self) -> str:
        header = self.host_header
        if not header:
            return self.host
        match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?", header)
        return match[1].strip("[]") if match and match[1] else self.host

    @property
    def pretty_url(self) -> str:
        header = self.host_header
        if not header:
            return self.url
        scheme, _, port, path = self._split()
        match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?", header)
        if not match or not match[1]:
            return self.url
        port = int(match[2]) if match[2] else PORTS.get(scheme, port)
        return f"{scheme}://{match[1]}{path}" if port == PORTS.get(scheme) else f"{scheme}://{match[1]}:{port}{path}"

    # Query, path and cookies

    def _get_query(self) -> list[tuple[str, str]]:
        query = self.path.partition("?")[2].partition("#")[0]
        return urllib.parse.parse_qsl(query, keep_blank_values=True, errors="surrogateescape")

    def _set_query(self, pairs: Iterable) -> None:
        path, query = self.path.partition("?")[0], form_text(pairs)
        self.path = f"{path}?{query}" if query else path

    @property
    def query(self) -> MultiDictView:
        return MultiDictView(self._get_query, self._set_query)

    @query.setter
    def query(self, value: typing.Any) -> None:
        self._set_query(pairs_of(value))

    @property
    def path_components(self) -> tuple[str, ...]:
        # The last part may have parameters behind a semicolon.
        folder, slash, last = self.path.partition("?")[0].rpartition("/")
        path = folder + slash + last.partition(";")[0]
        return tuple(urllib.parse.unquote(part) for part in path.split("/") if part)

    @path_components.setter
    def path_components(self, components: Iterable[str]) -> None:
        path, mark, query = self.path.partition("?")
        _, semicolon, parameters = path.rpartition("/")[2].partition(";")
        self.path = "/" + "/".join(urllib.parse.quote(part, safe="") for part in components) + semicolon + parameters + mark + query

    def _get_cookies(self) -> list[tuple[str, str]]:
        return [(name, value or "") for field in self._headers.get_all("Cookie") for name, value in cookie_parts(field)]

    def _set_cookies(self, pairs: Iterable) -> None:
        text = "; ".join(cookie_text(name, value) for name, value in pairs)
        self._headers.set_all("cookie", [text] if text else [])

    @property
    def cookies(self) -> MultiDictView:
        return MultiDictView(self._get_cookies, self._set_cookies)

    @cookies.setter
    def cookies(self, value: typing.Any) -> None:
        self._set_cookies(pairs_of(value))

    # Forms

    def _get_form(self) -> list[tuple[str, str]]:
        content = self.get_content()
        if not content or "application/x-www-form-urlencoded" not in self._headers.get("content-type", "").lower():
            return []
        return urllib.parse.parse_qsl(content.decode("utf-8", "surrogateescape"), keep_blank_values=True, errors="surrogateescape")

    def _set_form(self, pairs: Iterable) -> None:
        old = (self.get_content() or b"").decode("utf-8", "surrogateescape")
        self._headers["content-type"] = "application/x-www-form-urlencoded"
        self.set_content(form_text(pairs, old).encode())

    @property
    def urlencoded_form(self) -> MultiDictView:
        return MultiDictView(self._get_form, self._set_form)

    @urlencoded_form.setter
    def urlencoded_form(self, value: typing.Any) -> None:
        self._set_form(pairs_of(value))

    def _get_multipart(self) -> list[tuple[bytes, bytes]]:
        kind, parameters = media_type(self._headers.get("content-type", ""))
        content, boundary = self.get_content(), re.search(r'boundary="?([^";]+)', self._headers.get("content-type", ""), re.IGNORECASE)
        if not content or kind != "multipart/form-data" or not boundary:
            return []
        pairs = []
        for part in content.split(b"--" + boundary[1].strip().encode())[1:]:
            head, end, value = part.partition(b"\r\n\r\n")
            name = re.search(rb'(?i)content-disposition:[^\r\n]*[; ]name="((?:\\.|[^"\\])*)"', head)
            if end and name:
                pairs.append((name[1], value.removesuffix(b"\r\n")))
        return pairs

    def _set_multipart(self, pairs: Iterable) -> None:
        boundary = uuid.uuid4().hex
        parts = []
        for name, value in pairs:
            name, value = (each.encode() if isinstance(each, str) else each for each in (name, value))
            if b'"' in name or b"\r" in name or b"\n" in name:
                raise ValueError(f"invalid name of a form's part: {name!r}")
            parts.append(b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (boundary.encode(), name, value))
        self._headers["content-type"] = f"multipart/form-data; boundary={boundary}"
        self.set_content(b"".join(parts) + f"--{boundary}--\r\n".encode())

    @property
    def multipart_form(self) -> MultiDictView:
        return MultiDictView(self._get_multipart, self._set_multipart)

    @multipart_form.setter
    def multipart_form(self, value: typing.Any) -> None:
        self._set_multipart(pairs_of(value))

    # Caches and codings

    def anticache(self) -> None:
        for name in ("If-Modified-Since", "If-None-Match"):
            self._headers.pop(name, None)

    def anticomp(self) -> None:
        self._headers["Accept-Encoding"] = "identity"

    def constrain_encoding(self) -> None:
        accepted = self._headers.get("accept-encoding")
        if accepted:
            self._headers["accept-encoding"] = ", ".join(each for each in ("gzip", "identity", "deflate", "br", "zstd") if each in accepted)

    def copy(self) -> Request:
        copied = super().copy()
        copied._parts = list(self._parts) if self._parts else None
        return copied

    def __repr__(self) -> str:
        return f"Request({self._method} {self._authority_of(self.host)}{self.path})"


def pairs_of(value: typing.Any) -> Iterable:
    return value.items(multi=True) if isinstance(value, MultiDict) else value.items() if isinstance(value, Mapping) else value


def form_text(pairs: Iterable, old: str = "") -> str:
    """The text of a form or query. An empty value is written without `=` if the old text has such a name."""
    text = urllib.parse.urlencode([(key, value) for key, value in pairs], errors="surrogateescape")
    if text and old and any("=" not in part for part in old.split("&")):
        text = "&".join(part[:-1] if part.endswith("=") else part for part in text.split("&"))
    return text


class Response(Message):
    status_code: int
    _reason: str | None = None

    def __init__(self, *_: typing.Any, **__: typing.Any) -> None:
        raise TypeError("a response is made by Response.make")

    @classmethod
    def _of(cls, given: dict, now: float, has_content: bool) -> Response:
        response = cls.__new__(cls)
        response._take(given, "HTTP/1.1", now, has_content)
        response.status_code = given["status"]
        return response

    @classmethod
    def make(cls, status_code: int = 200, content: bytes | str = b"", headers: typing.Any = ()) -> Response:
        response = cls.__new__(cls)
        response._make(content, headers)
        response.status_code = status_code
        return response

    @property
    def reason(self) -> str:
        if self._reason is None:
            try:
                return HTTPStatus(self.status_code).phrase
            except ValueError:
                return ""
        return self._reason

    @reason.setter
    def reason(self, value: str | bytes) -> None:
        self._reason = text_of(value)

    def _get_cookies(self) -> list[tuple[str, tuple[str, CookieAttrs]]]:
        found = []
        for field in self._headers.get_all("set-cookie"):
            if parts := cookie_parts(field):
                found.append((parts[0][0], (parts[0][1] or "", CookieAttrs(parts[1:]))))
        return found

    def _set_cookies(self, pairs: Iterable) -> None:
        fields = []
        for name, value in pairs:
            value, attributes = (value, ()) if isinstance(value, str) else value
            fields.append("; ".join(cookie_text(*pair) for pair in [(name, value), *pairs_of(attributes)]))
        self._headers.set_all("set-cookie", fields)

    @property
    def cookies(self) -> MultiDictView:
        return MultiDictView(self._get_cookies, self._set_cookies)

    @cookies.setter
    def cookies(self, value: typing.Any) -> None:
        self._set_cookies(pairs_of(value))

    def __repr__(self) -> str:
        return f"Response({self.status_code}, {self._headers.get('content-type', 'unknown content type')})"


# Flows


class Error:
    """The reason why a flow has no response."""

    KILLED_MESSAGE = KILLED

    def __init__(self, msg: str, timestamp: float | None = None) -> None:
        self.msg, self.timestamp = msg, timestamp or time.time()

    def __str__(self) -> str:
        return self.msg

    def __repr__(self) -> str:
        return self.msg


class Connection:
    def __init__(self, address: tuple[str, int] | None, peername: tuple[str, int] | None, tls: bool, since: float | None) -> None:
        self.id = str(uuid.uuid4())
        self.address, self.peername, self.tls, self.tls_established, self.timestamp_start = address, peername, tls, tls, since

    def __repr__(self) -> str:
        return f"{type(self).__name__}({':'.join(map(str, self.address or ()))})"


class Client(Connection):
    """The client of a flow. Its port is not known, and is 0."""


class Server(Connection):
    """The server of a flow, as the URL names it."""


class Flow:
    type = "http"


class HTTPFlow(Flow):
    """A request and its response. It is the same in both halves of an exchange."""

    websocket = None
    is_replay = None
    error: Error | None = None
    intercepted = False
    marked = ""
    live = True
    _is_killed = False
    comment = ""
    response: Response | None = None
    _id: str | None = None
    _client: Client | None = None
    _server: Server | None = None
    _resumed: asyncio.Future | None = None
    # The notes that the gateway has.
    _noted: dict | None = None

    def __init__(self, *_: typing.Any, **__: typing.Any) -> None:
        raise TypeError("a flow is made by the gateway, or by copy")

    @classmethod
    def _of(cls, message: dict, now: float, has_content: bool) -> HTTPFlow:
        flow = cls.__new__(cls)
        flow._message = message
        flow.timestamp_created = now
        flow.request = Request._of(message["request"], now, has_content)
        flow.metadata = {}
        return flow

    @property
    def id(self) -> str:
        if self._id is None:
            given = self._message.get("id")
            self._id = given if given and isinstance(given, str) else str(uuid.uuid4())
        return self._id

    @id.setter
    def id(self, value: str) -> None:
        self._id = value

    @property
    def client_conn(self) -> Client:
        if self._client is None:
            address = (self._message.get("client", ""), 0)
            self._client = Client(address, address, self._message["request"]["url"].startswith("https:"), self.timestamp_created)
        return self._client

    @property
    def server_conn(self) -> Server:
        if self._server is None:
            self._server = Server((self.request.host, self.request.port), None, self.request.scheme == "https", None)
        return self._server

    @property
    def timestamp_start(self) -> float:
        return self.request.timestamp_start

    @property
    def killable(self) -> bool:
        return self.live and not self._is_killed

    def kill(self) -> None:
        if not self.killable:
            raise ControlException("Flow is not killable.")
        self.error = Error(KILLED)
        self.live, self._is_killed = False, True
        self.resume()

    def intercept(self) -> None:
        """Holds the flow behind its hooks, until it is resumed."""
        if not self.intercepted:
            self.intercepted = True
            self._resumed = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        if self.intercepted:
            self.intercepted = False
            resumed = self._resumed
            resumed.get_loop().call_soon_threadsafe(lambda: resumed.done() or resumed.set_result(None))

    async def wait_for_resume(self) -> None:
        if self.intercepted:
            await asyncio.shield(self._resumed)

    def copy(self) -> HTTPFlow:
        copied = copy.copy(self)
        copied._id, copied.live, copied.intercepted, copied._resumed = str(uuid.uuid4()), False, False, None
        copied.request, copied.metadata = self.request.copy(), dict(self.metadata)
        copied.response = self.response.copy() if self.response else None
        return copied

    def __repr__(self) -> str:
        return f"<HTTPFlow request={self.request!r} response={self.response!r}>"


# Exceptions, options and the context


class MitmproxyException(Exception):
    pass


class ControlException(MitmproxyException):
    pass


class OptionsError(MitmproxyException):
    pass


class AddonManagerError(MitmproxyException):
    pass


class AddonHalt(MitmproxyException):
    """Keeps the addons behind this one from seeing the event."""


def fits(value: typing.Any, spec: typing.Any) -> bool:
    """Whether a value has the type of an option."""
    origin = typing.get_origin(spec)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in typing.get_args(spec))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        each = (typing.get_args(spec) or (str,))[0]
        return isinstance(value, (list, tuple)) and all(fits(item, each) for item in value)
    if spec in (None, type(None)):
        return value is None
    if spec is float:
        return type(value) in (int, float)
    return type(value) is spec if spec in (int, bool, str) else isinstance(spec, type) and isinstance(value, spec)


def shown(spec: typing.Any) -> str:
    return getattr(spec, "__name__", str(spec)) if typing.get_origin(spec) is None else str(spec).replace("typing.", "")


class Options:
    """The options of an addon. `configured` is called with the names that the addon changed itself."""

    def __init__(self) -> None:
        self.__dict__.update(_specs={}, _values={}, _configured=None)

    def _add(self, name: str, spec: typing.Any, default: typing.Any, choices: Sequence | None) -> None:
        if not fits(default, spec):
            raise OptionsError(f"the default of the option {name} must be {shown(spec)}, not {default!r}")
        self._specs[name] = (spec, choices)
        self._values[name] = default

    def _check(self, given: Mapping) -> None:
        for name, value in given.items():
            if name not in self._specs:
                known = ", ".join(sorted(self._specs)) or "it has no options"
                raise OptionsError(f"the addon has no option {name} ({known})")
            spec, choices = self._specs[name]
            if not fits(value, spec):
                raise OptionsError(f"the option {name} must be {shown(spec)}, not {value!r}")
            if choices and value not in choices:
                raise OptionsError(f"the option {name} must be one of {', '.join(map(str, choices))}, not {value!r}")

    def update(self, **given: typing.Any) -> None:
        self._check(given)
        former = dict(self._values)
        self._values.update(given)
        try:
            if self._configured:
                self._configured(set(given))
        except Exception:
            self._values.update(former)
            raise

    def keys(self) -> set[str]:
        return set(self._specs)

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def __getattr__(self, name: str) -> typing.Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the addon has no option {name}") from None

    def __setattr__(self, name: str, value: typing.Any) -> None:
        self.update(**{name: value})


class Loader:
    """Given to the hook `load`, to add options."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def add_option(self, name: str, typespec: typing.Any, default: typing.Any, help: str, choices: Sequence | None = None) -> None:
        self._options._add(name, typespec, default, choices)


ALERT = logging.INFO + 1
LOGGER = logging.getLogger("mitmproxy")


class Log:
    def debug(self, text: object) -> None:
        LOGGER.debug("%s", text)

    def info(self, text: object) -> None:
        LOGGER.info("%s", text)

    def alert(self, text: object) -> None:
        LOGGER.log(ALERT, "%s", text)

    def warn(self, text: object) -> None:
        LOGGER.warning("%s", text)

    def error(self, text: object) -> None:
        LOGGER.error("%s", text)

    def __call__(self, text: object, level: str = "info") -> None:
        getattr(self, level, self.info)(text)


class Master:
    """Nothing of mitmproxy's master is offered."""


POOL = concurrent.futures.ThreadPoolExecutor(THREADS, "concurrent")


def concurrent_hook(hook: Callable) -> Callable:
    """Runs a hook in a thread of its own, so that other flows need not wait."""

    @functools.wraps(hook)
    def run(*arguments: typing.Any) -> Awaitable:
        return asyncio.get_running_loop().run_in_executor(POOL, hook, *arguments)

    return run


# Filters


ASSETS = re.compile(
    r"(?:text|application)/(?:x-)?javascript|text/css|image/.*|font/.*|application/(?:font-.*|x-font-.*|vnd\.ms-fontobject|x-shockwave-flash)", re.IGNORECASE)


def searched(test: Callable[[re.Pattern, HTTPFlow], object], flags: int = re.IGNORECASE, is_bytes: bool = False) -> Callable[[str], Callable]:
    """A filter whose argument is a regular expression."""

    def make(argument: str) -> Callable[[HTTPFlow], bool]:
        pattern = re.compile(argument.encode() if is_bytes else argument, flags)
        return lambda flow: bool(test(pattern, flow))

    return make


def halves(test: Callable[[re.Pattern, Message], object], flags: int, is_bytes: bool) -> tuple[Callable, Callable, Callable]:
    """The three filters over both halves, the request, and the response."""
    return (
        searched(lambda pattern, flow: test(pattern, flow.request) or flow.response and test(pattern, flow.response), flags, is_bytes),
        searched(lambda pattern, flow: test(pattern, flow.request), flags, is_bytes),
        searched(lambda pattern, flow: flow.response and test(pattern, flow.response), flags, is_bytes),
    )


def coded(argument: str) -> Callable[[HTTPFlow], bool]:
    code = int(argument)
    return lambda flow: bool(flow.response and flow.response.status_code == code)


def addressed(pattern: re.Pattern, address: tuple | None) -> object:
    return address and pattern.search(f"{address[0]}:{address[1]}")


IN_BODY = halves(lambda pattern, message: pattern.search(message.get_content() or b""), re.IGNORECASE | re.DOTALL, True)
IN_FIELDS = halves(lambda pattern, message: pattern.search(bytes(message.headers)), re.IGNORECASE | re.MULTILINE, True)
IN_TYPE = halves(lambda pattern, message: "content-type" in message.headers and pattern.search(message.headers["content-type"]), re.IGNORECASE, False)
IN_URL = searched(lambda pattern, flow: pattern.search(flow.request.pretty_url))

# The filters without an argument, and with one.
STATES: dict[str, Callable[[HTTPFlow], bool]] = {
    "a": lambda flow: bool(flow.response and ASSETS.match(flow.response.headers.get("content-type", ""))),
    "all": lambda flow: True,
    "dns": lambda flow: False,
    "e": lambda flow: bool(flow.error),
    "http": lambda flow: True,
    "marked": lambda flow: bool(flow.marked),
    "q": lambda flow: not flow.response,
    "replay": lambda flow: flow.is_replay is not None,
    "replayq": lambda flow: flow.is_replay == "request",
    "replays": lambda flow: flow.is_replay == "response",
    "s": lambda flow: bool(flow.response),
    "tcp": lambda flow: False,
    "udp": lambda flow: False,
    "websocket": lambda flow: False,
}
SEARCHES: dict[str, Callable[[str], Callable]] = {
    "b": IN_BODY[0],
    "bq": IN_BODY[1],
    "bs": IN_BODY[2],
    "c": coded,
    "comment": searched(lambda pattern, flow: pattern.search(flow.comment)),
    "d": searched(lambda pattern, flow: pattern.search(flow.request.host) or pattern.search(flow.request.pretty_host)),
    "dst": searched(lambda pattern, flow: addressed(pattern, flow.server_conn.address)),
    "h": IN_FIELDS[0],
    "hq": IN_FIELDS[1],
    "hs": IN_FIELDS[2],
    "m": searched(lambda pattern, flow: pattern.search(flow.request.method)),
    "marker": searched(lambda pattern, flow: pattern.search(flow.marked)),
    "meta": searched(lambda pattern, flow: pattern.search("\n".join(f"{key}: {value}" for key, value in flow.metadata.items())), re.IGNORECASE | re.MULTILINE),
    "src": searched(lambda pattern, flow: addressed(pattern, flow.client_conn.peername)),
    "t": IN_TYPE[0],
    "tq": IN_TYPE[1],
    "ts": IN_TYPE[2],
    "u": IN_URL,
}
FILTER_DEPTH = 50
ARGUMENT = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s()~'"]+))""", re.DOTALL)


class Filter:
    """A filter expression. It is called with a flow."""

    def __init__(self, pattern: str, test: Callable[[HTTPFlow], bool]) -> None:
        self.pattern, self._test = pattern, test

    def __call__(self, flow: HTTPFlow) -> bool:
        return self._test(flow)


class FilterReader:
    """Reads a filter expression: `!` binds before `&`, which may be left out, and `&` before `|`."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0

    def peek(self) -> str:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def whole(self) -> Callable:
        test = self.any()
        if self.peek():
            raise ValueError("a part is left")
        return test

    def any(self) -> Callable:
        tests = [self.all()]
        while self.peek() == "|":
            self.place += 1
            tests.append(self.all())
        return tests[0] if len(tests) == 1 else lambda flow: any(test(flow) for test in tests)

    def all(self) -> Callable:
        tests = [self.term()]
        while (mark := self.peek()) and mark not in "|)":
            self.place += mark == "&"
            tests.append(self.term())
        return tests[0] if len(tests) == 1 else lambda flow: all(test(flow) for test in tests)

    def term(self) -> Callable:
        mark = self.peek()
        self.depth += 1
        if self.depth > FILTER_DEPTH:
            raise ValueError("it is nested too deeply")
        try:
            if mark == "!":
                self.place += 1
                test = self.term()
                return lambda flow: not test(flow)
            if mark == "(":
                self.place += 1
                test = self.any()
                if self.peek() != ")":
                    raise ValueError("a parenthesis is open")
                self.place += 1
                return test
            if mark == "~":
                name = re.compile(r"~([a-z]+)(?![^\s()~'\"])").match(self.text, self.place)
                if not name or name[1] not in STATES and name[1] not in SEARCHES:
                    raise ValueError("an unknown filter")
                self.place = name.end()
                return STATES[name[1]] if name[1] in STATES else SEARCHES[name[1]](self.argument())
            return IN_URL(self.argument())
        finally:
            self.depth -= 1

    def argument(self) -> str:
        match = ARGUMENT.match(self.text, self.place)
        if not match:
            raise ValueError("an argument is missing")
        self.place = match.end()
        return match[3] if match[3] is not None else re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2])


@functools.lru_cache(128)
def parse_filter(text: str) -> Filter:
    if not text.strip():
        raise ValueError("Empty filter expression")
    try:
        return Filter(text, FilterReader(text).whole())
    except (ValueError, re.error, RecursionError):
        raise ValueError(f"Invalid filter expression: {text!r}") from None


def match_filter(flt: str | Filter | None, flow: HTTPFlow) -> bool:
    if isinstance(flt, str):
        flt = parse_filter(flt)
    return flt(flow) if flt else True


# The modules that an addon imports

MODULES: dict[str, dict[str, typing.Any]] = {
    "mitmproxy": {},
    "mitmproxy.addonmanager": {"Loader": Loader},
    "mitmproxy.connection": {"Client": Client, "Connection": Connection, "Server": Server},
    "mitmproxy.coretypes": {},
    "mitmproxy.coretypes.multidict": {"MultiDict": MultiDict, "MultiDictView": MultiDictView},
    "mitmproxy.ctx": {"log": Log(), "master": Master(), "options": Options()},
    "mitmproxy.exceptions": {each.__name__: each for each in (MitmproxyException, ControlException, OptionsError, AddonManagerError, AddonHalt)},
    "mitmproxy.flow": {"Error": Error, "Flow": Flow},
    "mitmproxy.flowfilter": {"TFilter": Filter, "match": match_filter, "parse": parse_filter},
    "mitmproxy.http": {"HTTPFlow": HTTPFlow, "Headers": Headers, "Message": Message, "Request": Request, "Response": Response},
    "mitmproxy.log": {"ALERT": ALERT},
    "mitmproxy.net": {},
    "mitmproxy.net.http": {},
    "mitmproxy.net.http.cookies": {"CookieAttrs": CookieAttrs},
    "mitmproxy.script": {"concurrent": concurrent_hook},
}


def offer_modules() -> None:
    for name, members in MODULES.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        if any(other.startswith(name + ".") for other in MODULES):
            module.__path__ = []
        for member in members.values():
            if isinstance(member, type):
                member.__module__ = name
        sys.modules[name] = module
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)


# The addon's source

FLOW_EVENTS = ("requestheaders", "request", "responseheaders", "response", "error")
EVENTS = (*FLOW_EVENTS, "load", "configure", "running", "done")
# Events of mitmproxy for which there is no place in a gateway's chain; the last line has the names that older releases use.
OTHER_EVENTS = frozenset(
    "add_log client_connected client_disconnected dns_error dns_request dns_response http_connect http_connect_error http_connect_upstream http_connected"
    " next_layer quic_start_client quic_start_server server_connect server_connect_error server_connected server_disconnected socks5_auth"
    " tcp_end tcp_error tcp_message tcp_start tls_clienthello tls_established_client tls_established_server tls_failed_client tls_failed_server"
    " tls_start_client tls_start_server udp_end udp_error udp_message udp_start update websocket_end websocket_message websocket_start"
    " clientconnect clientdisconnect serverconnect serverdisconnect websocket_error websocket_handshake tls_handshake log".split())

# The kinds of values that are followed through the source, each with the kinds of its members; all other members have none.
CLASSES: dict[str, type] = {
    "flow": HTTPFlow, "request": Request, "response": Response, "headers": Headers, "client_conn": Client, "server_conn": Server, "loader": Loader,
    "ctx.log": Log, "ctx.master": Master, "error": Error,
}
MEMBERS: dict[tuple[str, str], str] = {
    ("flow", "request"): "request", ("flow", "response"): "response", ("flow", "client_conn"): "client_conn", ("flow", "server_conn"): "server_conn",
    ("flow", "error"): "error", ("request", "headers"): "headers", ("response", "headers"): "headers",
    ("module mitmproxy.ctx", "log"): "ctx.log", ("module mitmproxy.ctx", "master"): "ctx.master", ("module mitmproxy.ctx", "options"): "ctx.options",
}
RESULTS = {("flow", "copy"): "flow", ("request", "copy"): "request", ("response", "copy"): "response", ("headers", "copy"): "headers"}
OWN = {
    "flow": {"request", "metadata", "timestamp_created"},
    "request": {"timestamp_start", "timestamp_end"},
    "response": {"timestamp_start", "timestamp_end", "status_code"},
    "client_conn": {"id", "address", "peername", "tls", "tls_established", "timestamp_start"},
    "error": {"msg", "timestamp"},
}
OWN["server_conn"] = OWN["client_conn"]
# Members of mitmproxy that are not offered, even if the addon sets them itself.
OTHER_MEMBERS = {
    "flow": {"backup", "from_state", "get_state", "mode", "modified", "revert", "set_state"},
    "request": {"data", "first_line_format", "from_state", "get_state", "set_state", "trailers"},
    "response": {"data", "from_state", "get_state", "refresh", "set_state", "trailers"},
}
# Members that can be read and not set, since the answer to the gateway has no place for them.
READ_ONLY = {"flow": {"client_conn", "server_conn", "websocket", "timestamp_start"}, "request": {"http_version"}, "response": {"http_version"}}
CONTENT_MEMBERS = frozenset("content raw_content text get_content set_content get_text set_text json urlencoded_form multipart_form decode encode".split())
# Classes in annotations.
ANNOTATED = {
    "mitmproxy.http.HTTPFlow": "flow", "mitmproxy.flow.Flow": "flow", "mitmproxy.http.Request": "request", "mitmproxy.http.Response": "response",
    "mitmproxy.http.Message": "message", "mitmproxy.http.Headers": "headers", "mitmproxy.addonmanager.Loader": "loader",
}
# Functions that do not read the content of a flow.
HARMLESS = frozenset(("isinstance", "type", "id", "hash", "bool", "print", "str", "repr", "format", "hasattr", "len", "issubclass", "callable"))
MESSAGES = frozenset(("flow", "request", "response", "message"))
BOTH = frozenset(("request", "response"))
SAID = {
    "ctx.master": "the master of mitmproxy is not offered",
    "mitmproxy.command": "commands need mitmproxy's console",
    "mitmproxy.contentviews": "content views need mitmproxy's console",
    "mitmproxy.dns": "the gateway has no DNS flows",
    "mitmproxy.tcp": "the gateway has no TCP flows",
    "mitmproxy.udp": "the gateway has no UDP flows",
    "mitmproxy.io": "flow files are not offered",
}


class Source:
    """Finds out what the source of an addon uses: names that are not offered, and the content of messages.

    A value's kind is followed from the parameters of hooks, from annotations and from imports, through assignments and calls of the addon's own
    functions. If a flow is given to other code, or is kept where it cannot be followed, its content counts as used.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tree = ast.parse(text, name)
        self.faults: dict[tuple[int, str], None] = {}
        self.content: set[str] = set()
        self.uses_times = False
        self.options: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._escapes = False
        self._reads_untyped: set[str] = set()
        self._functions: dict[tuple[str, str], ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._kinds: dict[tuple[str, str], dict[str, str]] = {}
        self._class = ""
        self._checks = False
        self._set_names = {
            node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
        self._skipped = self._skipped_nodes()
        self._read_imports()
        self._read_functions()
        # Kinds of parameters come from calls, so the tree is walked until there are no more of them; the last walk reports.
        for _ in range(8):
            before = repr(self._kinds)
            self._walk()
            if repr(self._kinds) == before:
                break
        self._checks = True
        self._walk()
        self._read_hooks()
        if self._escapes:
            self.content |= self._reads_untyped

    def sentences(self) -> list[str]:
        return [f"{self.name}:{line}: {text}" for line, text in sorted(self.faults)]

    def fault(self, node: ast.AST, text: str) -> None:
        self.faults[node.lineno, text] = None

    # Imports and functions

    def _skipped_nodes(self) -> set[ast.AST]:
        """The nodes that do not run: imports for type checkers, and imports whose failure is caught."""
        skipped: set[ast.AST] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                for each in node.body:
                    skipped.update(ast.walk(each))
            if isinstance(node, ast.Try) and any("ImportError" in ast.unparse(each.type or ast.Name("")) or each.type is None for each in node.handlers):
                for each in node.body:
                    skipped.update(part for part in ast.walk(each) if isinstance(part, (ast.Import, ast.ImportFrom)))
        return skipped

    def _read_imports(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.partition(".")[0] == "mitmproxy":
                        self._names[alias.asname or "mitmproxy"] = "module " + (alias.name if alias.asname else "mitmproxy")
                        self._module(node, alias.name)
            elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "mitmproxy":
                if self._module(node, node.module):
                    for alias in node.names:
                        self._imported(node, node.module, alias)

    def _module(self, node: ast.AST, name: str) -> bool:
        if name not in MODULES and node not in self._skipped:
            self.fault(node, f"{name} is not offered" + (f": {SAID[name]}" if name in SAID else ""))
        return name in MODULES

    def _imported(self, node: ast.ImportFrom, module: str, alias: ast.alias) -> None:
        name = f"{module}.{alias.name}"
        if name in MODULES:
            self._names[alias.asname or alias.name] = "module " + name
        elif alias.name in MODULES[module]:
            self._names[alias.asname or alias.name] = MEMBERS.get(("module " + module, alias.name), "member " + name)
        elif alias.name != "*" and node not in self._skipped:
            self.fault(node, f"{name} is not offered" + (f": {SAID[name]}" if name in SAID else ""))

    def _read_functions(self) -> None:
        for owner, body in [("", self.tree.body), *((node.name, node.body) for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))]:
            for node in self._statements(body):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._functions[owner, node.name] = node
                    self._kinds[owner, node.name] = self._first_kinds(owner, node)

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            yield node
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from self._statements([*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])])

    @staticmethod
    def _parameters(owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
        """The positional parameters, without the instance or class."""
        is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
        return [*node.args.posonlyargs, *node.args.args][1 if owner and not is_static else 0 :]

    def _first_kinds(self, owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
        kinds = {}
        parameters = self._parameters(owner, node)
        for each in [*parameters, *node.args.kwonlyargs]:
            kind = self._annotated(each.annotation) or ("flow" if each.arg == "flow" and each.annotation is None else "")
            if kind:
                kinds[each.arg] = kind
        if parameters and node.name in FLOW_EVENTS and not parameters[0].annotation:
            kinds.setdefault(parameters[0].arg, "flow")
        if parameters and node.name == "load":
            kinds.setdefault(parameters[0].arg, "loader")
        return kinds

    def _annotated(self, node: ast.expr | None) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return ""
        if isinstance(node, ast.BinOp):
            return self._annotated(node.left) or self._annotated(node.right)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Optional", "typing.Optional"):
            return self._annotated(node.slice)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return ANNOTATED.get(self._dotted(node), "")
        return ""

    def _dotted(self, node: ast.expr) -> str:
        """The full name of an imported module or member, such as `mitmproxy.http.HTTPFlow`."""
        if isinstance(node, ast.Name):
            kind, _, name = self._names.get(node.id, "").partition(" ")
            return name if kind in ("module", "member") else ""
        if isinstance(node, ast.Attribute) and (base := self._dotted(node.value)):
            return f"{base}.{node.attr}"
        return ""

    def _read_hooks(self) -> None:
        """Reports hooks of other events: functions of the file, and methods of the classes in `addons`."""
        listed: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and "addons" in [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]:
                listed |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for (owner, name), node in self._functions.items():
            if name in OTHER_EVENTS and (not owner or owner in listed):
                self.fault(node, f"the hook {name} is not offered")

    # The walk

    def _walk(self) -> None:
        self._class = ""
        scope = dict(self._names)
        self._visit_body(self.tree.body, scope)

    def _visit_body(self, body: list[ast.stmt], scope: dict[str, str]) -> None:
        for node in body:
            self._visit(node, scope)

    def _visit(self, node: ast.AST, scope: dict[str, str]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._visit_function(node, scope)
        elif isinstance(node, ast.Lambda):
            inner = {name: kind for name, kind in scope.items() if name not in {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}}
            self._visit(node.body, inner)
        elif isinstance(node, ast.ClassDef):
            outer, self._class = self._class, node.name
            for each in [*node.decorator_list, *node.bases]:
                self._visit(each, scope)
            self._visit_body(node.body, dict(scope))
            self._class = outer
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            self._visit_assignment(node, scope)
        elif isinstance(node, ast.Call):
            self._visit_call(node, scope)
        elif isinstance(node, ast.Attribute):
            self._visit(node.value, scope)
            self._member(node, self._kind(node.value, scope))
        elif isinstance(node, ast.Match):
            if self._kind(node.subject, scope) in MESSAGES:
                self.content |= BOTH
            for each in ast.iter_child_nodes(node):
                self._visit(each, scope)
        else:
            if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Return, ast.Yield, ast.Starred, ast.ListComp, ast.GeneratorExp)):
                for each in ast.iter_child_nodes(node):
                    self._escaped(each, scope)
            for each in ast.iter_child_nodes(node):
                self._visit(each, scope)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: dict[str, str]) -> None:
        inner = dict(scope)
        for each in ast.walk(node.args):
            if isinstance(each, ast.arg):
                inner.pop(each.arg, None)
        known = self._kinds.get((self._class, node.name))
        inner.update(known if known is not None and self._functions.get((self._class, node.name)) is node else self._first_kinds("", node))
        for each in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
            if each:
                self._visit(each, scope)
        self._visit_body(node.body, inner)

    def _visit_assignment(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, scope: dict[str, str]) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                pairs += zip(target.elts, node.value.elts)
            else:
                pairs.append((target, node.value))
        for value in {id(value): value for _, value in pairs if value}.values():
            self._visit(value, scope)
        for target, value in pairs:
            kind = self._kind(value, scope) if value else ""
            if isinstance(node, ast.AnnAssign):
                kind = kind or self._annotated(node.annotation)
            if isinstance(target, ast.Name):
                scope[target.id] = kind
                continue
            self._escaped(value, scope) if value and not self._is_part(target, scope) else None
            self._visit(target, scope)
            if isinstance(target, ast.Attribute):
                self._set_member(target, value, scope)

    def _is_part(self, target: ast.expr, scope: dict[str, str]) -> bool:
        """Whether a message is put where it is followed: `flow.request` and `flow.response`."""
        return isinstance(target, ast.Attribute) and (self._kind(target.value, scope), target.attr) in MEMBERS

    def _set_member(self, target: ast.Attribute, value: ast.expr | None, scope: dict[str, str]) -> None:
        kind = self._kind(target.value, scope)
        if kind in ("client_conn", "server_conn") or target.attr in READ_ONLY.get(kind, ()):
            self._report(target, f"{self._shown(target, kind)} can be read, but not set")
        if target.attr == "stream" and kind in ("request", "response", "message", "") and not (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
            self.content |= {kind} if kind in BOTH else BOTH

    def _visit_call(self, node: ast.Call, scope: dict[str, str]) -> None:
        self._visit(node.func, scope)
        arguments = [*node.args, *(each.value for each in node.keywords)]
        for each in arguments:
            self._visit(each, scope)
        kind = self._kind(node.func, scope)
        dotted = kind.partition(" ")[2] if kind.startswith("member ") else ""
        if dotted in ("mitmproxy.http.HTTPFlow", "mitmproxy.http.Request", "mitmproxy.http.Response", "mitmproxy.connection.Client", "mitmproxy.connection.Server"):
            name = dotted.rpartition(".")[2]
            self._report(node, f"{name}(…) is not offered" + (f": use {name}.make" if name in ("Request", "Response") else ""))
        if dotted in ("mitmproxy.flowfilter.parse", "mitmproxy.flowfilter.match") and arguments:
            expression = arguments[0]
            if not isinstance(expression, ast.Constant):
                self.content |= BOTH if dotted.endswith("parse") else set()
            elif isinstance(expression.value, str):
                for half in re.findall(r"~b([qs]?)(?![a-z])", expression.value):
                    self.content |= {"q": {"request"}, "s": {"response"}}.get(half, BOTH)
            return
        function = self._function(node.func)
        if function is not None:
            self._bind(function, node, scope)
        elif not self._is_harmless(node.func, scope):
            for each in arguments:
                self._given_away(each, scope)

    def _function(self, node: ast.expr) -> tuple[str, str] | None:
        if isinstance(node, ast.Name) and ("", node.id) in self._functions:
            return "", node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._class if node.value.id in ("self", "cls") else node.value.id
            if (owner, node.attr) in self._functions:
                return owner, node.attr
        return None

    def _bind(self, function: tuple[str, str], node: ast.Call, scope: dict[str, str]) -> None:
        """Passes the kinds of arguments on to the parameters of a function of the file."""
        parameters = self._parameters(function[0], self._functions[function])
        kinds = self._kinds[function]
        given = [(each.arg, value) for each, value in zip(parameters, node.args)] + [(each.arg, each.value) for each in node.keywords]
        for name, value in given:
            kind = self._kind(value, scope)
            if name is None or isinstance(value, ast.Starred):
                self._given_away(value, scope)
            elif kind and kind != kinds.get(name):
                both = {kind, kinds.get(name)}
                kinds[name] = kind if kinds.get(name) is None else "message" if both <= {*BOTH, "message"} else kinds[name]
        for each in node.args[len(parameters) :]:
            self._given_away(each, scope)

    def _is_harmless(self, node: ast.expr, scope: dict[str, str]) -> bool:
        if isinstance(node, ast.Name):
            return node.id in HARMLESS
        if not isinstance(node, ast.Attribute):
            return False
        base = node.value
        return self._kind(base, scope) in ("ctx.log", "headers") or isinstance(base, ast.Name) and base.id in ("logging", "logger", "log", "LOGGER")

    def _messages(self, node: ast.AST, scope: dict[str, str]) -> Iterator[str]:
        """The kinds of the flows and messages in an expression that are used whole, and not only for a member."""
        if isinstance(node, ast.expr) and (kind := self._kind(node, scope)) in MESSAGES:
            yield kind
        elif not isinstance(node, (ast.Attribute, ast.Call, ast.Compare, ast.JoinedStr)):
            for each in ast.iter_child_nodes(node):
                yield from self._messages(each, scope)

    def _given_away(self, node: ast.expr, scope: dict[str, str]) -> None:
        for kind in self._messages(node, scope):
            self._escapes = True
            self.content |= {kind} if kind in BOTH else BOTH

    def _escaped(self, node: ast.AST, scope: dict[str, str]) -> None:
        if any(True for _ in self._messages(node, scope)):
            self._escapes = True

    # Members

    def _kind(self, node: ast.expr | None, scope: dict[str, str]) -> str:
        if isinstance(node, ast.Name):
            return scope.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self._kind(node.value, scope)
            if base.startswith("module "):
                name = f"{base[7:]}.{node.attr}"
                return MEMBERS.get((base, node.attr)) or ("module " + name if name in MODULES else "member " + name)
            return MEMBERS.get((base, node.attr), "")
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                base = self._kind(node.func.value, scope)
                made = base.rpartition(".")[2]
                if base.startswith("member ") and node.func.attr == "make" and made in ("Request", "Response"):
                    return made.lower()
                return RESULTS.get((base, node.func.attr), "")
            return "headers" if self._kind(node.func, scope) == "member mitmproxy.http.Headers" else ""
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            kinds = {kind for each in parts if (kind := self._kind(each, scope))}
            return kinds.pop() if len(kinds) == 1 else "message" if kinds and kinds <= {*BOTH, "message"} else ""
        if isinstance(node, ast.NamedExpr):
            return self._kind(node.value, scope)
        return self._kind(node.value, scope) if isinstance(node, ast.Await) else ""

    def _report(self, node: ast.AST, text: str) -> None:
        if self._checks and node not in self._skipped:
            self.fault(node, text)

    def _shown(self, node: ast.Attribute, kind: str) -> str:
        places = {"request": "flow.request", "response": "flow.response", "headers": "headers", "client_conn": "flow.client_conn", "server_conn": "flow.server_conn"}
        return f"{places.get(kind, kind)}.{node.attr}"

    def _member(self, node: ast.Attribute, kind: str) -> None:
        """Looks at one use of a member."""
        if not kind:
            if node.attr in CONTENT_MEMBERS:
                half = node.value.attr if isinstance(node.value, ast.Attribute) else ""
                self._reads_untyped |= {half} if half in BOTH else BOTH
            return
        if kind in ("request", "response", "message"):
            if node.attr in CONTENT_MEMBERS:
                self.content |= {kind} if kind in BOTH else BOTH
            self.uses_times |= kind != "response" and node.attr.startswith("timestamp_")
        self.uses_times |= kind == "flow" and node.attr.startswith("timestamp_")
        if kind == "ctx.options" and not hasattr(Options, node.attr):
            self.options.setdefault(node.attr, node.lineno)
        elif kind == "ctx.master":
            self._report(node, f"ctx.master.{node.attr} is not offered")
        elif kind.startswith("module "):
            module = kind[7:]
            if node.attr not in MODULES[module] and f"{module}.{node.attr}" not in MODULES and not node.attr.startswith("__"):
                name = f"{module}.{node.attr}"
                self._report(node, f"{name} is not offered" + (f": {SAID[name]}" if name in SAID else ""))
        elif kind in CLASSES and not (node.attr.startswith("__") or self._has(kind, node.attr)):
            self._report(node, f"{self._shown(node, kind)} is not offered")

    def _has(self, kind: str, name: str) -> bool:
        if name in OTHER_MEMBERS.get(kind, ()):
            return False
        return hasattr(CLASSES[kind], name) or name in OWN.get(kind, ()) or kind == "flow" and name in self._set_names


# Loading


class Refused(Exception):
    """The addon cannot be loaded. The texts are sentences with file and line."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def fault_text(fault: BaseException, path: str) -> str:
    """The place in the addon at which a fault came up, and its text."""
    folder = os.path.dirname(path)
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if frame.filename != HERE]
    own = [frame for frame in frames if frame.filename == path] or [frame for frame in frames if frame.filename.startswith(folder + os.sep)] or frames
    if isinstance(fault, SyntaxError) and fault.filename in (None, path, os.path.basename(path)):
        place = f"{os.path.basename(path)}:{fault.lineno}" if fault.lineno else os.path.basename(path)
        return f"{place}: {type(fault).__name__}: {fault.msg}"
    place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else os.path.basename(path)
    return f"{place}: {type(fault).__name__}: {fault}"


def print_fault(fault: BaseException) -> None:
    """Writes a traceback, without the frames of the host, as one text: lines of other threads do not come between."""
    seen = fault.__traceback__
    while seen and seen.tb_frame.f_code.co_filename == HERE:
        seen = seen.tb_next
    print("".join(traceback.format_exception(type(fault), fault, seen)), end="", file=sys.stderr, flush=True)


def size_of(value: typing.Any) -> int:
    """The bytes of a size such as `64KiB`."""
    match = re.fullmatch(r"([0-9]{1,12})(B|KiB|MiB|GiB|KB|MB|GB)?", str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
    size = int(match[1]) * factor[match[2] or "B"] if match else 0
    if not 0 < size <= CONTENT_MAX:
        raise OptionsError(f"content: {value!r} is not a size from 1B to {CONTENT_MAX >> 20}MiB")
    return size


def size_text(size: int) -> str:
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


class Addon:
    """One version of an addon: its objects, hooks and options, and the halves and content that it wants."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.options = Options()
        self.objects: list[typing.Any] = []
        self.hooks: dict[str, list[Callable]] = {}
        self.content: set[str] = set()
        self.halves: set[str] = set()
        self.sizes = dict.fromkeys(BOTH, CONTENT)
        self.sources: list[Source] = []

    def read(self) -> None:
        """Reads the source, runs it, and collects the addon's objects and hooks. Raises `Refused` with all that is missing."""
        try:
            with tokenize.open(self.path) as file:
                text = file.read()
            source = Source(os.path.basename(self.path), text)
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError, RecursionError) as fault:
            raise Refused([fault_text(fault, self.path)]) from None
        sentences, self.sources = source.sentences(), [source]
        module = types.ModuleType("addon_" + re.sub(r"\W", "_", Path(self.path).stem))
        module.__file__ = self.path
        before, former = set(sys.modules), sys.modules.get(module.__name__)
        sys.modules[module.__name__] = module
        try:
            if sentences:
                raise Refused(sentences)
            exec(compile(text, self.path, "exec", dont_inherit=True), module.__dict__)
            self._collect(module)
            for beside in self._beside(before):
                sentences += beside.sentences()
                self.sources.append(beside)
            sentences += self._other_hooks()
            if sentences:
                raise Refused(sentences)
        except BaseException as fault:
            sys.modules.pop(module.__name__)
            if former:
                sys.modules[module.__name__] = former
            if isinstance(fault, (Refused, KeyboardInterrupt)):
                raise
            print_fault(fault)
            raise Refused([fault_text(fault, self.path)]) from None
        self._decide()

    def _collect(self, module: types.ModuleType) -> None:
        """The module and the objects in `addons`, in the order in which events reach them."""
        waiting, seen = [typing.cast(typing.Any, module)], set()
        while waiting:
            addon = waiting.pop(0)
            if id(addon) not in seen:
                seen.add(id(addon))
                self.objects.append(addon)
                waiting = [*(getattr(addon, "addons", None) or ()), *waiting]
        for event in EVENTS:
            found = [getattr(addon, event, None) for addon in self.objects]
            self.hooks[event] = [hook for hook in found if callable(hook) and not isinstance(hook, type)]

    def _beside(self, before: set[str]) -> Iterator[Source]:
        """The sources of the modules next to the addon that it imported."""
        folder = Path(self.path).parent
        for name in sorted(set(sys.modules) - before):
            file = getattr(sys.modules[name], "__file__", None)
            if file and file.endswith(".py") and Path(file) != Path(self.path) and Path(file).is_relative_to(folder):
                try:
                    yield Source(str(Path(file).relative_to(folder)), Path(file).read_text(encoding="utf-8"))
                except (OSError, SyntaxError, ValueError, RecursionError):
                    continue

    def _other_hooks(self) -> list[str]:
        """Hooks of other events that only the objects show, such as inherited ones."""
        sentences = []
        for addon in self.objects[1:]:
            for event in sorted(OTHER_EVENTS):
                hook = inspect.getattr_static(addon, event, None)
                if callable(hook) and not isinstance(addon, (dict, set)):
                    code = getattr(inspect.unwrap(hook), "__code__", None)
                    place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else os.path.basename(self.path)
                    sentences.append(f"{place}: the hook {event} is not offered")
        return sentences

    def _decide(self) -> None:
        """Decides which halves and content the addon wants."""
        for source in self.sources:
            self.content |= source.content
        names = {os.path.join(os.path.dirname(self.path), source.name) for source in self.sources}
        for event in FLOW_EVENTS:
            for hook in self.hooks[event]:
                code = getattr(inspect.unwrap(getattr(hook, "__func__", hook)), "__code__", None)
                # Code that was not read, or not as a hook, may use any content.
                if code is None or code.co_filename not in names or code.co_name != event:
                    self.content |= BOTH
        is_requested, is_answered = (bool(self.hooks[half + "headers"] or self.hooks[half]) for half in ("request", "response"))
        if self.hooks["error"]:
            is_requested = is_answered = True
        # The first half is needed for the content of the request, and for its time.
        if is_answered and ("request" in self.content or any(source.uses_times for source in self.sources)):
            is_requested = True
        self.halves = {half for half, wanted in (("request", is_requested), ("response", is_answered)) if wanted}
        self.content &= self.halves

    def load(self, given: dict) -> None:
        """Calls `load`, sets the options, and calls `configure`."""
        sys.modules["mitmproxy.ctx"].options = self.options
        for hook in self.hooks["load"]:
            self._called(hook, Loader(self.options))
        own = self.options.keys()
        sentences = [
            f"{source.name}:{line}: ctx.options.{name} is an option that neither the addon nor the gateway has"
            for source in self.sources for name, line in source.options.items() if name not in own]
        if sentences:
            raise Refused(sentences)
        given = dict(given)
        try:
            if "content" in given and "content" not in own:
                self._set_sizes(given.pop("content"))
            self.options._check(given)
        except OptionsError as fault:
            raise Refused([f"{os.path.basename(self.path)}: {fault}"]) from None
        self.options._values.update(given)
        self.configure(own)
        self.options.__dict__["_configured"] = self.configure

    def _set_sizes(self, value: typing.Any) -> None:
        if isinstance(value, dict):
            if unknown := set(value) - BOTH:
                raise OptionsError(f"content: {', '.join(sorted(unknown))} is unknown, it has request and response")
            self.sizes.update({half: size_of(size) for half, size in value.items()})
        else:
            self.sizes = dict.fromkeys(BOTH, size_of(value))

    def configure(self, names: set[str]) -> None:
        for hook in self.hooks["configure"]:
            self._called(hook, names)

    def _called(self, hook: Callable, argument: typing.Any) -> None:
        try:
            result = hook(argument)
        except AddonHalt:
            return
        except (Exception, SystemExit) as fault:
            if not isinstance(fault, MitmproxyException):
                print_fault(fault)
            raise Refused([fault_text(fault, self.path)]) from None
        if inspect.iscoroutine(result):
            result.close()
            raise Refused([f"{os.path.basename(self.path)}: the hook {hook.__name__} must not be async"])

    def wants(self) -> dict:
        """The members of the answer to `hello`."""
        answer: dict[str, typing.Any] = {half: half in self.halves for half in ("request", "response")}
        if self.content:
            answer["content"] = {half: size_text(self.sizes[half]) for half in sorted(self.content)}
        return answer


# Messages of the gateway and answers

SCAN = JSONDecoder(parse_constant=lambda name: refuse(f"{name} is not a number")).scan_once
CODED = JSONEncoder(separators=(",", ":"), check_circular=False)


def encoder() -> Callable[[dict], str]:
    """A function that writes an answer. An encoder in C that is made once is twice as fast as `JSONEncoder.encode`, which makes one for each call."""
    try:
        make = json.encoder.c_make_encoder
        encode = make(None, CODED.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
        write = lambda answer: "".join(encode(answer, 0))  # noqa: E731
        if write({"a": ["b", 1, True]}) == '{"a":["b",1,true]}':
            return write
    except (AttributeError, TypeError):
        pass
    return CODED.encode


ENCODE = encoder()


def refuse(text: str) -> typing.NoReturn:
    raise ValueError(text)


def checked_fields(message: dict, what: str) -> None:
    fields = message.get("fields")
    if type(fields) is not list:
        refuse(f"{what}.fields is not a list")
    try:
        for pair in fields:
            name, value = pair
            if type(pair) is not list or type(name) is not str or type(value) is not str:
                raise TypeError
    except (TypeError, ValueError):
        refuse(f"{what}.fields has an entry that is not a pair of texts")
    content = message.get("content")
    if content is None:
        return
    if type(content) is dict and len(content) == 1:
        if type(content.get("text")) is str:
            return
        try:
            base64.b64decode(content["base64"], validate=True)
            return
        except (KeyError, TypeError, ValueError, binascii.Error):
            pass
    refuse(f"{what}.content is neither a text nor base64")


def read_message(body: bytes | bytearray) -> dict:
    """The message in a body, checked. Raises `ValueError`."""
    try:
        text = body.decode()
        message, end = SCAN(text, 0)
        if end != len(text) and text[end:].strip(" \t\r\n"):
            refuse("there is text behind the message")
    except StopIteration:
        refuse("the message is not JSON")
    except RecursionError:
        refuse("the message is nested too deeply")
    except JSONDecodeError as fault:
        refuse(f"the message is not JSON: {fault}")
    if type(message) is not dict:
        refuse("the message is not an object")
    if message.get("version") != 1:
        refuse("version is not 1")
    half = message.get("half")
    if half == "hello":
        if type(message.get("options", {})) is not dict:
            refuse("options is not an object")
        return message
    if half != "request" and half != "response":
        refuse("half is not request, response or hello")
    request = message.get("request")
    if type(request) is not dict or type(request.get("method")) is not str or type(request.get("url")) is not str or type(request.get("version", "")) is not str:
        refuse("request has no method or no URL")
    checked_fields(request, "request")
    if half == "response":
        response = message.get("response")
        if type(response) is not dict or type(response.get("status")) is not int:
            refuse("response has no status")
        checked_fields(response, "response")
    if type(message.get("exchange", "")) is not str or type(message.get("client", "")) is not str:
        refuse("exchange or client is not a text")
    return message


def content_of(content: bytes) -> dict[str, str]:
    # Strict readers of JSON refuse NUL in a text.
    if b"\0" not in content:
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(content).decode()}


def field_edits(headers: Headers, given: list, answer: dict, without: str = "") -> None:
    """Writes the differences of fields into an answer, without one name."""
    if headers._pairs is given:
        return
    if headers._base is given and headers._touched is not None:
        names: Iterable[str] = headers._touched
    else:
        names = dict.fromkeys(name.lower() for name, _ in [*given, *headers._pairs])
    for name in names:
        if name in FRAMING or name == without:
            continue
        before = [value for each, value in given if each.lower() == name]
        after = [(each, value) for each, value in headers._pairs if each.lower() == name]
        values = [value for _, value in after]
        if before == values:
            continue
        if not after:
            answer.setdefault("remove", []).append(name)
        elif before and values[: len(before)] == before:
            answer.setdefault("append", []).extend(list(pair) for pair in after[len(before) :])
        else:
            answer.setdefault("set", {})[after[0][0]] = values if len(values) > 1 else values[0]


def content_edit(message: Message, given: dict, answer: dict) -> None:
    """Writes a changed content into an answer. It also goes with another coding: the gateway keeps the coded content of an unchanged one."""
    kept = message._given
    is_recoded = kept is not None and kept is not EMPTY and message._headers._pairs is not message._headers._base and (
        message._coding != message._headers.get("content-encoding", "identity").lower())
    if message._is_content_set or is_recoded:
        content = content_of(message._sent())
        if is_recoded or content != (kept or given.get("content")):
            answer["content"] = content


def response_of(response: typing.Any) -> dict:
    if not isinstance(response, Response):
        raise TypeError(f"flow.response must be a Response, not {type(response).__name__}")
    answer: dict[str, typing.Any] = {"status": status_of(response), "fields": [list(pair) for pair in response._headers._pairs if pair[0].lower() not in FRAMING]}
    if content := response._sent():
        answer["content"] = content_of(content)
    return answer


def status_of(response: Response) -> int:
    if type(response.status_code) is not int or not 200 <= response.status_code <= 599:
        raise ValueError(f"flow.response.status_code must be a number from 200 to 599, not {response.status_code!r}")
    return int(response.status_code)


def edited_url(request: Request, given: dict) -> str | None:
    """The URL, if it or `Host` was changed."""
    headers, written = request._headers, None
    if request._authority is not None or headers._pairs is not given["fields"]:
        before = next((value for name, value in given["fields"] if name.lower() == "host"), None)
        now = headers.get("host") if request._authority is None else request._authority
        written = now if now != before else None
    if request._parts is None and request._url is given["url"] and written is None:
        return None
    # The former URL is written in the same way, so that only a change counts.
    former = Request.__new__(Request)
    former._url, former._headers = given["url"], Headers._of(given["fields"])
    parts, old = request._split(), former._split()
    if written is not None and written.lower() != request._authority_of(parts[1]).lower():
        if parts[:3] != old[:3] and parts[1:3] != old[1:3]:
            raise ValueError(f"Host {written!r} and the host of {request.url!r} must be the same: the gateway sends the host of the URL as Host")
        if not request._is_url:
            raise ValueError(f"Host {written!r} cannot be set: the request has no URL")
        return f"{parts[0]}://{written}{parts[3]}"
    return request.url if parts != old else None


def request_edits(flow: HTTPFlow, answer: dict) -> None:
    request, given = flow.request, flow._message["request"]
    if not isinstance(request, Request):
        raise TypeError(f"flow.request must be a Request, not {type(request).__name__}")
    if request._method != given["method"]:
        answer["method"] = request._method
    if (url := edited_url(request, given)) is not None:
        answer["url"] = url
    field_edits(request._headers, given["fields"], answer, without="host")
    content_edit(request, given, answer)


def response_edits(flow: HTTPFlow, received: Response, given: dict, answer: dict) -> None:
    response = flow.response
    if response is None:
        return
    if response is not received:
        answer["respond"] = response_of(response)
        return
    if response.status_code != given["status"]:
        answer["status"] = status_of(response)
    field_edits(response._headers, given["fields"], answer)
    content_edit(response, given, answer)


def note_edits(flow: HTTPFlow, answer: dict) -> None:
    notes = {name: value for name, value in flow.metadata.items() if type(name) is str and type(value) is str and len(value) <= NOTE_LENGTH and len(name) <= 64}
    if flow.comment:
        notes["comment"] = str(flow.comment)[:NOTE_LENGTH]
    if flow.marked:
        notes["marked"] = str(flow.marked)[:NOTE_LENGTH]
    noted = flow._noted or {}
    changed = dict([each for each in notes.items() if noted.get(each[0]) != each[1]][:NOTES])
    if changed:
        answer["notes"] = {name: text_of(value).replace("\0", " ") for name, value in changed.items()}
        flow._noted = {**noted, **changed}


class Flows:
    """The flows between their two halves, bounded by number, bytes and time. The oldest one leaves first."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[HTTPFlow | None, float, int]] = {}
        self._bytes = 0

    def keep(self, exchange: str, flow: HTTPFlow | None, now: float, size: int) -> None:
        self.take(exchange)
        self._kept[exchange] = (flow, now, size)
        self._bytes += size
        while len(self._kept) > FLOWS or self._bytes > FLOW_BYTES and len(self._kept) > 1:
            self.take(next(iter(self._kept)))

    def take(self, exchange: str | None) -> tuple[HTTPFlow | None, float, int] | None:
        kept = self._kept.pop(exchange, None)
        if kept:
            self._bytes -= kept[2]
        return kept

    def late(self, now: float) -> Iterator[HTTPFlow]:
        """Takes the flows whose time has passed."""
        while self._kept:
            exchange, (flow, since, _) = next(iter(self._kept.items()))
            if now - since < FLOW_SECONDS:
                return
            self.take(exchange)
            if flow:
                yield flow


def http(status: int, reason: str, body: bytes, closes: bool = False) -> bytes:
    return b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status, reason.encode(), b"Connection: close\r\n" if closes else b"", len(body), body)


def failed(status: int, text: str, closes: bool = False) -> bytes:
    return http(status, HTTPStatus(status).phrase, ENCODE({"error": text_of(text)}).encode(), closes)


PASS = http(200, "OK", b"{}")
DROP = http(200, "OK", b'{"drop":true}')
Turn = Generator[Awaitable, typing.Any, typing.Any]


class Host:
    """Runs the addon. A message is answered by a generator: it gives out each result that must be awaited, and returns the bytes of the answer."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.addon: Addon | None = None
        self.fault = ""
        self.given: dict = {}
        self.flows = Flows()
        self.limit = MESSAGE
        self.is_ending = False
        self.ends: Callable[[], None] = lambda: None
        self._said: dict | None = None
        self._seen: tuple | None = None
        self._look_at = 0.0
        self._is_looking = False

    # Loading

    def _stamp(self) -> tuple | None:
        try:
            found = os.stat(self.path)
            return found.st_mtime_ns, found.st_size, found.st_ino
        except OSError:
            return None

    def _open(self) -> Turn:
        """Loads the addon. A fault becomes the host's answer."""
        self._seen = self._stamp()
        addon = Addon(self.path)
        try:
            addon.read()
            addon.load(self.given)
            yield from self._call(addon.hooks["running"])
            self._took(addon)
        except Refused as fault:
            self.fault = str(fault)
        except (Exception, SystemExit) as fault:
            print_fault(fault)
            self.fault = fault_text(fault, self.path)

    def _took(self, addon: Addon) -> None:
        self.addon, self.fault = addon, ""
        self.limit = MESSAGE + 6 * max((addon.sizes[half] for half in addon.content), default=0)
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _look(self, now: float) -> Turn:
        """Loads the addon again if its file changed."""
        self._look_at = now + 1
        stamp = self._stamp()
        if stamp == self._seen or self._is_looking:
            return
        self._is_looking = True
        try:
            yield from self._open_again(stamp)
        finally:
            self._is_looking = False

    def _open_again(self, stamp: tuple | None) -> Turn:
        self._seen = stamp
        context = sys.modules["mitmproxy.ctx"]
        former, options = self.addon, context.options
        addon = Addon(self.path)
        try:
            addon.read()
            addon.load(self.given)
        except (Exception, SystemExit) as fault:
            context.options = options
            text = str(fault) if isinstance(fault, Refused) else fault_text(fault, self.path)
            print(f"{text}: the former version of the addon stays", file=sys.stderr, flush=True)
            return
        if self._said is not None and self._said != addon.wants():
            print(f"{os.path.basename(self.path)}: the changed addon wants other halves or content: the host ends, to be started again", file=sys.stderr, flush=True)
            self.is_ending = True
            self.ends()
            return
        if former:
            yield from self._end(former, addon.options)
        self._took(addon)
        try:
            yield from self._call(addon.hooks["running"])
        except (Exception, SystemExit) as fault:
            print_fault(fault)
        print(f"{os.path.basename(self.path)}: loaded again", file=sys.stderr, flush=True)

    def _hello(self, message: dict) -> Turn:
        given = message.get("options", {})
        if self.addon is None or given != self.given:
            former, self.given = self.addon, given
            if former is None:
                yield from self._open()
            else:
                yield from self._reconfigure(former, given)
        elif self._stamp() != self._seen:
            # The answer says which halves the changed addon wants.
            self._said = None
            yield from self._look(time.monotonic())
        if self.addon is None or self.fault:
            answer: dict = {"error": text_of(self.fault)}
        else:
            answer = self._said = self.addon.wants()
        return http(200, "OK", ENCODE(answer).encode())

    def _reconfigure(self, former: Addon, given: dict) -> Turn:
        """Loads the addon with other options. If they are invalid, the former one ends, too."""
        addon = Addon(self.path)
        self.addon = None
        try:
            addon.read()
            addon.load(given)
            yield from self._end(former, addon.options)
            yield from self._call(addon.hooks["running"])
            self._took(addon)
        except (Exception, SystemExit) as fault:
            self.fault = str(fault) if isinstance(fault, Refused) else fault_text(fault, self.path)
            yield from self._end(former, addon.options)

    def _end(self, addon: Addon, options: Options) -> Turn:
        """Calls `done` of an addon, once, with its own options. `options` are set behind it."""
        context = sys.modules["mitmproxy.ctx"]
        hooks, addon.hooks["done"] = addon.hooks["done"], []
        context.options = addon.options
        try:
            yield from self._call(hooks)
        except (Exception, SystemExit) as fault:
            print_fault(fault)
        context.options = options

    @staticmethod
    def _call(hooks: list[Callable], *arguments: typing.Any) -> Turn:
        try:
            for hook in hooks:
                result = hook(*arguments)
                if result is not None and inspect.isawaitable(result):
                    yield result
        except AddonHalt:
            pass

    def finish(self) -> Turn:
        """Calls `done`."""
        self.is_ending = True
        if self.addon:
            yield from self._end(self.addon, self.addon.options)

    # Messages

    def answer(self, body: bytes | bytearray, now: float) -> Turn:
        try:
            message = read_message(body)
        except ValueError as fault:
            return failed(400, str(fault))
        half = message["half"]
        if half == "hello":
            return (yield from self._hello(message))
        if self.addon is None and not self.fault:
            yield from self._open()
        if now >= self._look_at:
            yield from self._look(now)
        addon = self.addon
        if addon is None:
            return failed(500, self.fault or "the addon is not loaded")
        try:
            if half == "request":
                return (yield from self._request(addon, message, now, len(body)))
            return (yield from self._response(addon, message))
        except (Exception, SystemExit) as fault:
            print_fault(fault)
            return failed(500, fault_text(fault, self.path))

    def _request(self, addon: Addon, message: dict, now: float, size: int) -> Turn:
        flow = HTTPFlow._of(message, time.time(), "request" in addon.content)
        hooks = addon.hooks
        if hooks["requestheaders"]:
            yield from self._call(hooks["requestheaders"], flow)
            if flow.request.stream:
                flow.request._stream()
        if not flow._is_killed:
            yield from self._call(hooks["request"], flow)
        if flow.intercepted:
            yield flow.wait_for_resume()
        if flow._is_killed:
            yield from self._call(hooks["error"], flow)
        elif flow.response is not None:
            response_of(flow.response)
            yield from self._respond(addon, flow)
        if flow._is_killed:
            return DROP
        answer: dict = {}
        if flow.response is not None:
            answer["respond"] = response_of(flow.response)
        else:
            request_edits(flow, answer)
        if flow.metadata or flow.comment or flow.marked:
            note_edits(flow, answer)
        if "response" in addon.halves and (exchange := message.get("exchange")):
            # The hooks of the response of one's own were called: its half, if it comes, is passed.
            self.flows.keep(exchange, flow if flow.response is None else None, now, size)
        return http(200, "OK", ENCODE(answer).encode()) if answer else PASS

    def _respond(self, addon: Addon, flow: HTTPFlow) -> Turn:
        hooks = addon.hooks
        if hooks["responseheaders"]:
            yield from self._call(hooks["responseheaders"], flow)
            if flow.response is not None and flow.response.stream:
                flow.response._stream()
        if flow._is_killed:
            yield from self._call(hooks["error"], flow)
        else:
            # A flow that is killed here has a response, and is not an error.
            yield from self._call(hooks["response"], flow)
        if flow.intercepted:
            yield flow.wait_for_resume()

    def _response(self, addon: Addon, message: dict) -> Turn:
        now, given = time.time(), message["response"]
        kept = self.flows.take(message.get("exchange"))
        if kept and kept[0] is None:
            return PASS
        flow = kept[0] if kept else HTTPFlow._of(message, now, False)
        received = flow.response = Response._of(given, now, "response" in addon.content)
        received._version = flow.request._version
        yield from self._respond(addon, flow)
        if flow._is_killed:
            return DROP
        answer: dict = {}
        response_edits(flow, received, given, answer)
        if flow.metadata or flow.comment or flow.marked:
            note_edits(flow, answer)
        flow.live = False
        return http(200, "OK", ENCODE(answer).encode()) if answer else PASS

    def late(self, now: float) -> Turn:
        """Calls `error` for the flows whose response did not come."""
        for flow in self.flows.late(now):
            if self.addon and self.addon.hooks["error"]:
                flow.error, flow.live = Error(LOST), False
                try:
                    yield from self._call(self.addon.hooks["error"], flow)
                except (Exception, SystemExit) as fault:
                    print_fault(fault)


async def drive(turn: Turn, result: Awaitable) -> typing.Any:
    """Continues a generator that gave out a result to await."""
    while True:
        try:
            value = await result
        except asyncio.CancelledError:
            turn.close()
            raise
        except (Exception, SystemExit) as fault:
            step = functools.partial(turn.throw, fault)
        else:
            step = functools.partial(turn.send, value)
        try:
            result = step()
        except StopIteration as end:
            return end.value


# HTTP

REQUEST = re.compile(rb"POST /[!-~]* HTTP/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)*)\r\n")
FIELD = re.compile(rb"([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*\r\n")


def read_head(head: bytes) -> tuple[int, bool] | bytes:
    """The length of the body, and whether the connection is closed behind it; or a refusal."""
    match = REQUEST.fullmatch(head)
    if not match:
        return failed(400, "expected POST, a path and HTTP/1.1, and fields in their form", True)
    length, closes = None, False
    for name, value in FIELD.findall(match[1]):
        name = name.lower()
        if name == b"content-length":
            if length is not None or not value.isdigit() or len(value) > 12:
                return failed(400, "Content-Length is invalid", True)
            length = int(value)
        elif name == b"transfer-encoding":
            return failed(501, "Transfer-Encoding is not supported", True)
        elif name == b"expect":
            return failed(417, "Expect is not supported", True)
        elif name == b"connection":
            closes |= b"close" in value.lower()
    return failed(411, "Content-Length is missing", True) if length is None else (length, closes)


class Service:
    """The connections of the gateway, and the answers that are still being made."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self.host, self.loop = host, loop
        self.connections: set[Channel] = set()
        self.tasks: set[asyncio.Task] = set()
        self.heads: dict[bytes, tuple[int, bool]] = {}
        self.room = memoryview(bytearray(ROOM))
        host.ends = lambda: loop.call_later(0.05, self.end)
        self.ended = loop.create_future()

    def end(self, *_: typing.Any) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def head(self, head: bytes) -> tuple[int, bool] | bytes:
        known = self.heads.get(head)
        if known is None:
            known = read_head(head)
            if type(known) is tuple and len(head) < 1024:
                if len(self.heads) >= 1024:
                    self.heads.clear()
                self.heads[head] = known
        return known

    def begin(self, turn: Turn, result: Awaitable) -> asyncio.Task:
        task = self.loop.create_task(drive(turn, result))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def sweep(self) -> None:
        """Closes connections with half a request, and gives up late flows. Called every few seconds."""
        self.loop.call_later(5, self.sweep)
        now = self.loop.time()
        for channel in [each for each in self.connections if each.since is not None and now - each.since > HALF_REQUEST_SECONDS]:
            channel.refuse(failed(408, "the rest of the request did not come", True))
        late = self.host.late(now)
        try:
            self.begin(late, late.send(None))
        except StopIteration:
            pass


class Channel(asyncio.BufferedProtocol):
    """A connection. Its requests are answered one after the other, in order."""

    __slots__ = ("service", "host", "transport", "buffer", "begin", "needed", "since", "is_busy", "is_full", "is_closing", "is_stopped", "task")

    def __init__(self, service: Service) -> None:
        self.service, self.host = service, service.host
        self.transport: asyncio.Transport | None = None
        # The bytes that came, and the place in them where the next request begins.
        self.buffer: bytes | bytearray = b""
        self.begin = 0
        # The size at which the buffer is worth a look, and the time since which a request is incomplete.
        self.needed = 0
        self.since: float | None = None
        self.is_busy = self.is_full = self.is_closing = self.is_stopped = False
        self.task: asyncio.Task | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = typing.cast(asyncio.Transport, transport)
        if len(self.service.connections) >= CONNECTIONS:
            transport.abort()
            self.is_closing = True
            return
        self.service.connections.add(self)

    def connection_lost(self, exception: Exception | None) -> None:
        self.is_closing = True
        self.buffer, self.begin = b"", 0
        self.service.connections.discard(self)
        if self.task:
            self.task.cancel()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self.advance()

    def get_buffer(self, size: int) -> memoryview:
        # All connections share it: what is read into it is taken in the same turn.
        return self.service.room

    def buffer_updated(self, count: int) -> None:
        self.take(bytes(self.service.room[:count]))

    def take(self, data: bytes) -> None:
        if self.is_closing:
            return
        if self.buffer:
            # The buffer grows in place while a large message comes in. What was answered leaves it when it is half of it.
            if type(self.buffer) is bytes:
                self.buffer = bytearray(self.buffer)
            if self.begin > len(self.buffer) // 2:
                del self.buffer[: self.begin]
                self.begin = 0
            self.buffer += data
        else:
            self.buffer = data
        if len(self.buffer) - self.begin >= self.needed:
            self.advance()
        if (self.is_busy or self.is_full) and len(self.buffer) - self.begin > MESSAGE and not self.is_stopped:
            self.is_stopped = True
            self.transport.pause_reading()

    def refuse(self, answer: bytes) -> None:
        if not self.is_closing and not self.is_busy:
            self.is_closing = True
            self.buffer, self.begin, self.since = b"", 0, None
            self.transport.write(answer)
            self.transport.close()

    def advance(self) -> None:
        """Answers the requests that are complete, and reads on if there is room."""
        self.answer_complete()
        has_room = not self.is_busy and not self.is_full or len(self.buffer) - self.begin <= MESSAGE
        if self.is_stopped and has_room and not self.is_closing:
            self.is_stopped = False
            self.transport.resume_reading()

    def answer_complete(self) -> None:
        while self.buffer and not self.is_busy and not self.is_full and not self.is_closing:
            buffer, begin = self.buffer, self.begin
            end = buffer.find(b"\r\n\r\n", begin, begin + HEAD)
            if end < 0:
                if len(buffer) - begin >= HEAD:
                    return self.refuse(failed(431, f"the head is larger than {HEAD} bytes", True))
                return self.wait(0)
            end += 4
            head = self.service.head(bytes(buffer[begin:end]))
            if type(head) is bytes:
                return self.refuse(head)
            length, closes = head
            if length > self.host.limit:
                return self.refuse(failed(413, f"the message is larger than {self.host.limit} bytes", True))
            whole = end + length
            if len(buffer) < whole:
                return self.wait(whole - begin)
            if len(buffer) == whole:
                self.buffer, self.begin = b"", 0
            else:
                self.begin = whole
            self.needed, self.since = 0, None
            self.serve(bytes(buffer[end:whole]), closes)
    def wait(self, needed: int) -> None:
        self.needed = needed
        if self.since is None:
            self.since = self.service.loop.time()

    def serve(self, body: bytes, closes: bool) -> None:
        turn = self.host.answer(body, time.monotonic())
        try:
            result = turn.send(None)
        except StopIteration as end:
            return self.send(end.value, closes)
        self.is_busy = True
        self.task = self.service.begin(turn, result)
        self.task.add_done_callback(functools.partial(self.done, closes))

    def done(self, closes: bool, task: asyncio.Task) -> None:
        self.is_busy, self.task = False, None
        if self.is_closing:
            return
        if task.cancelled():
            self.transport.abort()
        elif fault := task.exception():
            self.send(failed(500, str(fault)), closes)
        else:
            self.send(task.result(), closes)
        self.advance()

    def send(self, answer: bytes, closes: bool) -> None:
        if self.host.is_ending:
            answer = answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        self.transport.write(answer)
        if closes or self.host.is_ending:
            self.is_closing = True
            self.transport.close()


# The program


class Output(io.RawIOBase):
    """Standard output or standard error. A hook does not fail because the lines have no reader."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def write(self, data: typing.Any) -> int:
        try:
            return os.write(self.descriptor, data)
        except OSError:
            return len(data)

    @classmethod
    def text(cls, descriptor: int) -> io.TextIOWrapper:
        """Text of which each line is written as one."""
        return io.TextIOWrapper(io.BufferedWriter(cls(descriptor)), "utf-8", "backslashreplace", line_buffering=True)


class Lines(logging.Handler):
    """Writes records as lines: warnings and errors to standard error, the rest to standard output."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            out = sys.stderr if record.levelno >= logging.WARNING else sys.stdout
            print(f"{record.levelname.lower()}: {self.format(record)}", file=out, flush=True)
        except Exception:
            self.handleError(record)


def watch_pipe(service: Service) -> None:
    """Ends the service with the pipe of the gateway. A terminal or a file, as in a trial by hand, is left alone.

    It has a thread of its own, so that the host also ends if a hook never returns.
    """
    mode = os.fstat(0).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return

    def wait() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        service.loop.call_soon_threadsafe(service.end)
        time.sleep(DONE_SECONDS + 1)
        os._exit(70)

    threading.Thread(target=wait, name="pipe", daemon=True).start()


async def run(path: str, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    host = Host(path)
    service = Service(host, loop)
    server = await loop.create_server(lambda: Channel(service), sock=listener, backlog=CONNECTIONS)
    loop.add_signal_handler(signal.SIGTERM, service.end)
    loop.add_signal_handler(signal.SIGINT, service.end)
    watch_pipe(service)
    loop.call_later(5, service.sweep)
    await service.ended
    server.close()
    if host.is_ending and service.tasks:
        # The gateway still waits for these answers.
        await asyncio.wait(service.tasks, timeout=DONE_SECONDS)
    finish = host.finish()
    try:
        result = finish.send(None)
        await asyncio.wait_for(drive(finish, result), DONE_SECONDS)
    except StopIteration:
        pass
    except (Exception, SystemExit) as fault:
        print_fault(fault)


def main() -> None:
    if len(sys.argv) != 2:
        print("usage: python3 -B addon_host.py ADDON.py", file=sys.stderr)
        sys.exit(64)
    sys.dont_write_bytecode = True
    sys.stdout, sys.stderr = Output.text(1), Output.text(2)
    logging.addLevelName(ALERT, "ALERT")
    logging.basicConfig(level=logging.INFO, handlers=[Lines()], format="%(message)s")
    gc.set_threshold(50_000, 20, 20)
    offer_modules()
    # The addon's folder takes the place of this file's folder.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[1]))
    try:
        listener = socket.socket(fileno=int(os.environ.get("HTTPWARE_CALLOUT_FD", "3")))
        listener.getsockname()
    except (OSError, ValueError) as fault:
        print(f"addon_host: descriptor {os.environ.get('HTTPWARE_CALLOUT_FD', '3')} is not a listening socket: {fault}", file=sys.stderr)
        sys.exit(71)
    asyncio.run(run(sys.argv[1], listener))


if __name__ == "__main__":
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 70
    # Threads of hooks may still be running: they do not hold up the end.
    for out in (sys.stdout, sys.stderr):
        try:
            out.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)
