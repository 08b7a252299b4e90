"""Lowers the version of glibc that a program or a library asks for, where it can do with less.

A library asks for a version of glibc if it calls one function of it. The functions of `PROVIDED` are in compat.c, and their callers are told to take
any function of that name; those of `OLDER` exist in all versions, and their callers take the older form. Another function is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Debian 12 has 2.36, Ubuntu 22.04 has 2.35, and the systems that are compatible with RHEL 9 have 2.34.
MOST = (2, 34)
PROVIDED = {"arc4random", "arc4random_buf", "_dl_find_object"}
OLDER = {"hypot", "hypotf"}
# The first version of glibc for each kind of machine, which all its functions of that time carry: e_machine of the file.
FIRST = {62: b"GLIBC_2.2.5", 183: b"GLIBC_2.17"}

NEEDED_VERSIONS, VERSIONS, SYMBOLS = 0x6FFFFFFE, 0x6FFFFFFF, 11


@dataclass
class Section:
    kind: int
    offset: int
    size: int
    link: int


@dataclass
class Need:
    """One version of one library that the file asks for."""
    place: int
    version: str
    index: int


class Elf:
    """A file of 64 bits, little-endian."""

    def __init__(self, path: Path):
        self.path, self.bytes = path, bytearray(path.read_bytes())
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"dist: {path} is not an ELF file of 64 bits, little-endian")
        self.machine, = struct.unpack_from("<H", self.bytes, 18)
        offset, = struct.unpack_from("<Q", self.bytes, 40)
        size, count = struct.unpack_from("<HH", self.bytes, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + size * index) for index in range(count)]
        self.sections = [Section(row[1], row[4], row[5], row[6]) for row in rows]

    def section(self, kind: int) -> Section | None:
        return next((section for section in self.sections if section.kind == kind), None)

    def text(self, strings: Section, offset: int) -> str:
        begin = strings.offset + offset
        return self.bytes[begin:self.bytes.index(0, begin)].decode()

    def needs(self) -> Iterator[Need]:
        section = self.section(NEEDED_VERSIONS)
        if not section:
            return
        strings, place = self.sections[section.link], section.offset
        while True:
            _, count, _, first, following = struct.unpack_from("<HHIII", self.bytes, place)
            each = place + first
            for _ in range(count):
                _, _, index, name, after = struct.unpack_from("<IHHII", self.bytes, each)
                yield Need(each, self.text(strings, name), index)
                each += after
            if not following:
                return
            place += following

    def callers(self, need: Need) -> Iterator[tuple[int, str]]:
        """The functions that it takes in that version: where each says so, and its name."""
        versions, symbols = self.section(VERSIONS), self.section(SYMBOLS)
        assert versions and symbols
        for number in range(versions.size // 2):
            place = versions.offset + 2 * number
            if struct.unpack_from("<H", self.bytes, place)[0] & 0x7FFF == need.index:
                name, = struct.unpack_from("<I", self.bytes, symbols.offset + 24 * number)
                yield place, self.text(self.sections[symbols.link], name)

    def late(self) -> list[Need]:
        return [need for need in self.needs() if number(need.version) > MOST]

    def lower(self) -> None:
        """Asks for no version of glibc later than `MOST`."""
        for need in self.late():
            unknown = []
            for place, name in self.callers(need):
                if name in PROVIDED:
                    struct.pack_into("<H", self.bytes, place, 1)
                elif name not in OLDER:
                    unknown.append(name)
            if unknown:
                raise SystemExit(f"dist: {self.path.name} calls {', '.join(unknown)} of {need.version}, and docker/portable has no other form of it")
            first = FIRST[self.machine]
            section = self.section(NEEDED_VERSIONS)
            assert section
            strings = self.sections[section.link]
            place = self.bytes.find(b"\0" + first + b"\0", strings.offset, strings.offset + strings.size)
            if place < 0:
                raise SystemExit(f"dist: {self.path.name} has no function of {first.decode()}")
            struct.pack_into("<I", self.bytes, need.place, hashed(first))
            struct.pack_into("<I", self.bytes, need.place + 8, place + 1 - strings.offset)
        self.path.write_bytes(self.bytes)

    def provided(self) -> set[str]:
        """The functions of compat.c that it calls."""
        return {name for need in self.late() for _, name in self.callers(need)} & PROVIDED


def number(version: str) -> tuple[int, ...]:
    """The number of a version of glibc; (0,) for other libraries."""
    name, _, rest = version.partition("_")
    return tuple(int(part) for part in rest.split(".")) if name == "GLIBC" and rest[:1].isdigit() else (0,)


def hashed(name: bytes) -> int:
    """The hash of a name in the System V ABI."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
