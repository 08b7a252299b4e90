#!/usr/bin/env python3
"""A gateway of one's own, made as the article OwnGateway.md says: each command as it stands there, from an empty folder.

    python3 Tests/Clients/own_gateway.py --binary .build/release/httpware [--release] [--folder DIR]

The package gets httpware by its URL and version; git reads the last commit of this repository in place of the URL, with the changes of known files. Tests pass, `check` finds the
planted mistake where the article says, the gateway answers. `--release` also makes the release build, and prints its path. `--folder` keeps what was built for the next time.
It needs a Swift toolchain and curl, and takes ten minutes. Exits 1 if a step fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Workplace, free_port  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ARTICLE = ROOT / "Sources/HttpGateway/HttpGateway.docc/OwnGateway.md"
URL = "https://example.com/httpware"
PATIENCE = 3600


class Failed(Exception):
    pass


def expect(condition: object, *shown: object) -> None:
    if not condition:
        raise Failed(" ".join(str(one)[-2000:] for one in shown))


def published(place: Path) -> None:
    """Makes a repository with the present commit as the version of the program; changes of known files are part of it."""
    version = re.search(r'text = "([\d.]+)"', (ROOT / "Sources/HttpWare/Values/ProgramVersion.swift").read_text())[1]
    git = ["git", "-c", "user.name=trial", "-c", "user.email=trial@example.com", "-C", str(ROOT)]
    commit = subprocess.run([*git, "stash", "create"], check=True, capture_output=True, text=True).stdout.strip() or "HEAD"
    if not place.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", place], check=True)
    subprocess.run([*git, "push", "--quiet", "--force", place, f"{commit}:refs/tags/{version}", f"{commit}:refs/heads/main"], check=True, capture_output=True)


def environment(folder: Path, binary: Path) -> dict[str, str]:
    """A home of its own, so that SwiftPM remembers no other commit under the version; git reads the repository in place of its URL."""
    number = int(os.environ.get("GIT_CONFIG_COUNT", "0"))
    home = folder / "home"
    home.mkdir(exist_ok=True)
    # Foundation, and so SwiftPM, asks the system for the home folder, unless this variable names it.
    return {**os.environ, "HOME": str(home), "CFFIXED_USER_HOME": str(home), "PATH": f"{binary.parent}:{os.environ['PATH']}", "SWIFT_BACKTRACE": "enable=no", "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": os.environ.get("GIT_CONFIG_GLOBAL", str(Path.home() / ".gitconfig")), "GIT_CONFIG_COUNT": str(number + 1),
            f"GIT_CONFIG_KEY_{number}": f"url.{folder / 'httpware'}.insteadOf", f"GIT_CONFIG_VALUE_{number}": URL}


class Reader:
    """The one who types: the blocks of the article, and the folder."""

    def __init__(self, folder: Path, binary: Path, place: Workplace):
        self.folder, self.place = folder, place
        text = ARTICLE.read_text()
        self.blocks = re.findall(r"(?ms)^```sh\n(.*?)^```$", text)
        self.servers = re.search(r"(?m)^swift run my-gateway run\n(swift run my-gateway files .*)\n", text)[1]
        self.mistake = re.search(r"(?m)^httpware\.yaml:\d+:\d+: error: .*$", text)[0]
        self.ports = {"8080": free_port(), "9900": free_port(), "3000": free_port()}
        self.environment = environment(folder, binary) | {
            "HTTPWARE_BIND": f"127.0.0.1:{self.ports['8080']}", "HTTPWARE_ADMIN": f"127.0.0.1:{self.ports['9900']}",
            "APP_URL": f"http://127.0.0.1:{self.ports['3000']}"}
        self.package = folder / "my-gateway"

    def type(self, commands: str, fails: bool = False, within: Path | None = None) -> str:
        """The output of a shell for the commands, each of which must succeed. They are typed in the package, or in another folder."""
        local = re.sub(r":(8080|3000)\b", lambda match: f":{self.ports[match[1]]}", commands)
        result = subprocess.run(["bash", "-ec", local], cwd=within or self.package, env=self.environment, capture_output=True, text=True, timeout=PATIENCE)
        expect(fails or result.returncode == 0, "exit", result.returncode, commands, result.stdout, result.stderr)
        return result.stdout + result.stderr

    def serve(self, command: str, port: str) -> None:
        """Starts a command that runs until it is ended. It is built already."""
        binary = command.replace("swift run my-gateway", str(self.package / ".build/debug/my-gateway"))
        here = os.getcwd()
        os.chdir(self.package)
        try:
            self.place.command(["bash", "-c", f"exec {binary.replace('3000', str(self.ports['3000']))}"], [self.ports[port]], environment=self.environment)
        finally:
            os.chdir(here)


def trial(reader: Reader, release: bool) -> None:
    begin, ask, ports, build = reader.blocks
    printed = reader.type(begin, within=reader.folder)
    expect("ok: 1 listener, 1 route, 1 service" in printed, printed)
    expect(re.search(r"Test run with \d+ tests? .*passed", printed), printed)
    print("own gateway: written, tested and checked", flush=True)
    printed = reader.type(ask)
    expect("methods of the requests that pass" in printed and "405" in printed, printed)
    expect("methodRule" in (reader.package / "schema.json").read_text(), "schema.json")
    file = reader.package / "httpware.yaml"
    right = file.read_text()
    file.write_text(right.replace("allow:", "alow:"))
    printed = reader.type("swift run my-gateway check", fails=True)
    file.write_text(right)
    expect(reader.mistake in printed.splitlines(), reader.mistake, printed)
    print("own gateway: explained, and a mistake found", flush=True)
    reader.serve("swift run my-gateway run", "8080")
    reader.serve(reader.servers, "3000")
    printed = reader.type(ports)
    statuses = re.findall(r"HTTP/1\.1 (\d{3}) ", printed)
    expect(statuses == ["200", "405"] and "Allow: GET, HEAD" in printed and "# my-gateway" in printed, printed)
    expect("Via:" not in printed or "my-gateway" not in re.search(r"(?i)via: .*", printed)[0], printed)
    print("own gateway: answers GET, refuses POST", flush=True)
    if release:
        reader.type(build)
        print(f"own gateway: {reader.package / '.build/release/my-gateway'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--folder", type=Path, help="a folder that stays; its package is written again, its builds are kept")
    options = parser.parse_args()
    place = Workplace("own-gateway")
    folder = (options.folder or place.subfolder("own")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        published(folder / "httpware")
        reader = Reader(folder, Path(options.binary).resolve(), place)
        if reader.package.exists():  # as in an empty folder, but with the former builds
            for file in reader.package.iterdir():
                if file.name != ".build":
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
            # The version is another commit now.
            shutil.rmtree(folder / "home", ignore_errors=True)
            reader = Reader(folder, Path(options.binary).resolve(), place)
        trial(reader, options.release)
    except Failed as error:
        print(f"FAILED  {error}")
        return 1
    finally:
        place.close()
    print("own gateway ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
