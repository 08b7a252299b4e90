"""Python packages that the tests need and Python does not bring: installed once, outside of the repository."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path


class NotInstalled(Exception):
    pass


def installer(cache: Path) -> list[str]:
    """The command that starts pip. Debian's Python has no pip unless python3-pip is installed, but python3-venv can make one."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    place = cache / f"pip-{sys.version_info.major}.{sys.version_info.minor}"
    if not (place / "bin/pip").exists():
        result = subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise NotInstalled(f"there is no pip, and venv could not make one: {(result.stdout + result.stderr)[-300:]}")
    return [str(place / "bin/python"), "-m", "pip"]


def provide(*packages: str) -> None:
    """Makes the packages, `name==version`, importable; raises NotInstalled when pip cannot get them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "httpware-tests"
    folder = cache / f"python{sys.version_info.major}.{sys.version_info.minor}-{'-'.join(packages).replace('==', '-')}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        result = subprocess.run([*installer(cache), "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location",
                                 "--root-user-action=ignore", "--upgrade", "--target", str(folder), *packages], capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise NotInstalled(f"pip could not install {' '.join(packages)}: {result.stderr[-300:]}")
        (folder / "complete").touch()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
