"""The C libraries beside the program: all but glibc's own, in lib/httpware next to bin, found by the program's place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from portable.elf import Elf

HERE = Path(__file__).resolve().parent
# The system's own; the kernel's loader and these belong together.
GLIBC = re.compile(r"^(?:ld-linux.*|lib(?:c|m|dl|rt|pthread|util|resolv|anl)\.so\.\d+)$")
COMPAT = "libhttpware-compat.so.1"


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


def put_beside(program: Path, libraries: list[Path]) -> None:
    """Copies the libraries beside a program that is in a folder `bin`, and lets both find them, with glibc 2.34 or later."""
    folder = program.parent.parent / "lib/httpware"
    folder.mkdir(parents=True)
    copies = []
    for library in libraries:
        if GLIBC.match(library.name):
            continue
        copy = folder / library.resolve().name
        copy.write_bytes(library.resolve().read_bytes())
        copies.append(copy)
        if copy.name != library.name:
            (folder / library.name).symlink_to(copy.name)
    machine = Elf(program).machine
    compat = folder / COMPAT
    run("cc", "-shared", "-fPIC", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-fno-stack-protector", "-Wl,--build-id=none", f"-Wl,-soname,{COMPAT}", "-o", compat, HERE / "compat.c")
    for file in (program, *copies):
        file.chmod(0o755)
        # Before the versions are lowered: patchelf moves tables.
        run("patchelf", "--set-rpath", "$ORIGIN/../lib/httpware" if file == program else "$ORIGIN", file)
        if Elf(file).provided():
            run("patchelf", "--add-needed", COMPAT, file)
        Elf(file).lower()
        file.chmod(0o755 if file == program else 0o644)
    compat.chmod(0o644)
    late = {file.name: [need.version for need in Elf(file).late()] for file in (program, compat, *copies)}
    assert machine == Elf(compat).machine and not any(late.values()), late
