#!/usr/bin/env python3
"""Containers, by a real engine: one JSON line per result (name, goal, measured, pass). Python 3.11, as root.

    Tests/Containers/run.py [--binary .build/release/httpware] [--prebuilt] [files] [image] [compose] [pods] [release] [roots] [discover] [own]

`files` reads compose.yaml and the units of systemd; it needs no engine, and no root. `image` builds docker/Dockerfile and tries the image. `compose`
brings docker/compose.yaml up. `pods` runs the image as the overlays of docker/kubernetes describe it. `release` loads the image of `make dist` and
types the README's commands. `roots` runs the archive of `make dist` in roots of several systems. `discover` finds services by the labels of containers. `own` builds the Dockerfile of a package that
`httpware init ware` writes. podman is the engine; images that cannot be pulled are made of Debian's packages, and stay for the next run, as do
the roots in HTTPWARE_ROOTS. With `--prebuilt`, the binary takes the place of the compiler in `image`: that saves ten minutes. `release` and
`roots` need the files of `make dist`; `--dist` names another folder. A summary is on standard error: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Containers import compose, discover, files, image, own, pods, release, roots  # noqa: E402
from Containers.engine import Engine, Failed, lacks  # noqa: E402
from Rig.results import line, tell  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FILES = "files"


def built(engine: Engine, options: argparse.Namespace) -> Iterator[dict]:
    image.build(engine, options.binary if options.prebuilt else None)
    engine.network()
    yield from image.trial(engine)


def with_image(trial: Callable[[Engine], Iterator[dict]]) -> Callable[[Engine, argparse.Namespace], Iterator[dict]]:
    """A part that takes the image as it is, and builds it only if there is none."""

    def part(engine: Engine, options: argparse.Namespace) -> Iterator[dict]:
        if not engine.has(image.IMAGE):
            image.build(engine, options.binary if options.prebuilt else None)
        yield from trial(engine)

    return part


# Parts that need an engine, and the one that does not.
PARTS: dict[str, Callable[[Engine, argparse.Namespace], Iterator[dict]]] = {
    "image": built,
    "compose": with_image(compose.trial),
    "pods": with_image(pods.trial),
    "release": lambda engine, options: release.trial(engine, options.dist),
    "roots": lambda engine, options: roots.trial(engine, options.dist, dict(each.split("=", 1) for each in options.root)),
    "discover": lambda engine, options: discover.trial(engine, options.binary, options.restarts),
    "own": lambda engine, options: own.trial(engine, options.binary),
}


def results(options: argparse.Namespace) -> Iterator[dict]:
    parts = options.parts or [FILES, *PARTS]
    if FILES in parts:
        yield from files.trial(options.binary)
    engines = [part for part in parts if part != FILES]
    if engines and (sentence := lacks()):
        yield line("engine", "podman, runc and their parts", sentence, False)
        return
    for part in engines:
        engine = Engine()
        try:
            yield from PARTS[part](engine, options)
        except Failed as error:
            yield line(part, "each step succeeds", str(error), False)
        finally:
            engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join([FILES, *PARTS]))
    parser.add_argument("--binary", type=Path, default=ROOT / ".build/release/httpware")
    parser.add_argument("--dist", type=Path, default=ROOT / ".build-dist", help="the folder of make dist")
    parser.add_argument("--prebuilt", action="store_true", help="do not compile in the container")
    parser.add_argument("--restarts", type=int, default=200, help="restarts of containers in `discover`")
    parser.add_argument("--root", action="append", default=[], metavar="NAME=FOLDER", help="one more root for `roots`, which is only read")
    options = parser.parse_args()
    options.binary, options.dist = options.binary.resolve(), options.dist.resolve()
    if unknown := [part for part in options.parts if part not in PARTS and part != FILES]:
        parser.error(f"{unknown[0]} is not one of {' '.join([FILES, *PARTS])}")
    return tell(results(options))


if __name__ == "__main__":
    sys.exit(main())
