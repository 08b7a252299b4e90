"""The files in docker/ before the tools that they are for, without an engine: what compose.yaml names, its dashboard, its gateway's file, the units of systemd.

That its services come up, find each other and are scraped, is what `compose` shows with an engine.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from Containers.bases import tell
from Rig.packages import provide
from Rig.results import line

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"


def trial(binary: Path) -> Iterator[dict]:
    yield from compose(binary)
    if shutil.which("systemd-analyze"):
        yield systemd(binary)
    else:
        tell("the units of systemd are left out: systemd-analyze is missing")


def compose(binary: Path) -> Iterator[dict]:
    provide("check-jsonschema==0.39.0", "PyYAML==6.0.3")
    from importlib.resources import files

    import jsonschema
    import yaml

    schema = json.loads(files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    document = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    errors = [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(document)]
    yield line("files: compose.yaml", "valid by compose-spec", errors, not errors)
    # Those of services that no trial starts, too: there is no image of Grafana here.
    mounted = [f"{name}: {volume}" for name, service in document["services"].items() for volume in service.get("volumes", [])]
    missing = [each for each in mounted if not (DOCKER / each.split(": ", 1)[1].split(":")[0]).is_file() or not each.endswith(":ro")]
    yield line("files: mounted", "each is there, and is mounted to be read only", missing or len(mounted), len(mounted) > 5 and not missing)
    # The dashboard shows only metrics of the gateway, by the text of its source.
    board = json.loads((DOCKER / "compose/dashboard.json").read_text())
    shown = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"\b(?:httpware|process)_\w+", target["expr"])}
    source = "".join(path.read_text() for path in (ROOT / "Sources").rglob("*.swift"))
    unknown = [name for name in shown if f'"{name}"' not in source and f'"{re.sub("_(bucket|sum|count)$", "", name)}"' not in source]
    yield line("files: dashboard", "shows only metrics of the gateway", {"shown": len(shown), "unknown": unknown}, len(shown) > 10 and not unknown)
    yield checked(binary, (DOCKER / "compose/gateway.yaml").read_text())


def checked(binary: Path, text: str) -> dict:
    """The result of `httpware check` for the gateway of compose.yaml. Its secret is missing, so another file stands for it."""
    with tempfile.TemporaryDirectory() as folder:
        secret, file = Path(folder) / "secret", Path(folder) / "httpware.yaml"
        secret.write_text("0123456789abcdef" * 2 + "\n")
        file.write_text(re.sub(r"\$\{file:[^}]*\}", f"${{file:{secret}}}", text))
        result = subprocess.run([binary, "check", "-c", file], capture_output=True, text=True)
    said = result.stderr + result.stdout
    return line("files: compose/gateway.yaml", "no error and no warning", said, result.returncode == 0 and "warning" not in said)


def systemd(binary: Path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        for path in (DOCKER / "systemd").iterdir():
            # A program that is there, in place of one that is installed.
            (Path(folder) / path.name).write_text(path.read_text().replace("/usr/local/bin/httpware", str(binary)))
        units = sorted(str(path) for path in Path(folder).iterdir())
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units], capture_output=True, text=True)
    said = result.stderr + result.stdout
    return line("files: systemd", "systemd-analyze verify says nothing", {"units": len(units), "said": said}, result.returncode == 0 and not said and len(units) == 2)
