#!/usr/bin/env python3
"""Tries the files in docker/ without a container engine: one JSON line per result (name, goal, measured, pass). Python 3.11.

    docker/check.py [--binary .build/release/httpware] [compose] [kubernetes] [systemd]

Tests/Containers/run.py tries the Dockerfile and compose.yaml with an engine.
The schemas of compose and Kubernetes files come from PyPI (check-jsonschema, kubernetes-validate).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTEXT = HERE.parent
sys.path.insert(0, str(CONTEXT / "Tests"))
sys.dont_write_bytecode = True

from Rig.packages import provide  # noqa: E402
from Rig.results import line, tell  # noqa: E402

# MARK: Files


def checked(options: argparse.Namespace, name: str, text: str) -> dict:
    """What the gateway itself says of a configuration; secrets are not there, so a file stands for each."""
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret"
        secret.write_text("0123456789abcdef" * 2 + "\n")
        file = Path(folder) / "httpware.yaml"
        file.write_text(re.sub(r"\$\{file:[^}]*\}", f"${{file:{secret}}}", text))
        result = subprocess.run([options.binary, "check", "-c", file], capture_output=True, text=True)
        return line(f"{name}: its configuration", "no error and no warning", result.stderr + result.stdout, result.returncode == 0 and "warning" not in result.stderr + result.stdout)


def compose(options: argparse.Namespace) -> list[dict]:
    provide("check-jsonschema==0.39.0", "PyYAML==6.0.3")
    from importlib.resources import files

    import jsonschema
    import yaml

    schema = json.loads(files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    document = yaml.safe_load((HERE / "compose.yaml").read_text())
    errors = [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(document)]
    lines = [line("compose: schema", "valid by compose-spec", errors, not errors)]
    # The schema knows no names. Files are mounted, which every engine does alike: some have no `configs`.
    missing = []
    for name, service in document["services"].items():
        missing += [f"{name}: {volume}" for volume in service.get("volumes", []) if not (HERE / volume.split(":")[0]).is_file() or not volume.endswith(":ro")]
        missing += [f"{name}: {secret}" for secret in service.get("secrets", []) if secret not in document["secrets"]]
        missing += [f"{name}: {other}" for other in service.get("depends_on", []) if other not in document["services"]]
    wanted = {"redis", "origin", "prometheus", "grafana", "gateway-1", "gateway-2"}
    lines.append(line("compose: names", "each file, secret and service that is named is there", missing, not missing and wanted <= document["services"].keys()))
    scraped = [target for job in yaml.safe_load((HERE / "compose/prometheus.yaml").read_text())["scrape_configs"] for each in job["static_configs"] for target in each["targets"]]
    lines.append(line("compose: Prometheus", "asks each gateway", scraped, {target.split(":")[0] for target in scraped} == {"gateway-1", "gateway-2"}))
    # Every metric that the dashboard shows is one that the gateway has, by the text of its source.
    board = json.loads((HERE / "compose/dashboard.json").read_text())
    shown = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"\b(?:httpware|process)_\w+", target["expr"])}
    source = "".join(path.read_text() for path in (CONTEXT / "Sources").rglob("*.swift"))
    unknown = [name for name in shown if f'"{name}"' not in source and f'"{re.sub("_(bucket|sum|count)$", "", name)}"' not in source]
    lines.append(line("compose: dashboard", "shows metrics that there are", {"shown": len(shown), "unknown": unknown}, len(shown) > 10 and not unknown))
    return lines + [checked(options, "compose", (HERE / "compose/gateway.yaml").read_text())]


def kubernetes(options: argparse.Namespace) -> list[dict]:
    provide("kubernetes-validate==1.37.0", "PyYAML==6.0.3")
    import kubernetes_validate
    import yaml

    lines = []
    for path in sorted((HERE / "kubernetes").glob("*.yaml")):
        documents, errors = list(yaml.safe_load_all(path.read_text())), []
        for document in documents:
            try:
                kubernetes_validate.validate(document, "1.34", strict=True)
            except kubernetes_validate.ValidationError as error:
                errors.append(f"{document['kind']}: {error.message}")
        kinds = [document["kind"] for document in documents]
        lines.append(line(f"kubernetes: {path.name}", "valid by the strict schemas of 1.34", errors or kinds, not errors and "Deployment" in kinds))
        for document in documents:
            for text in document.get("data", {}).values() if document["kind"] == "ConfigMap" else []:
                lines.append(checked(options, f"kubernetes: {path.name}", text))
    return lines


def systemd(options: argparse.Namespace) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        for path in (HERE / "systemd").iterdir():
            # A program that is there, in place of one that is installed.
            (Path(folder) / path.name).write_text(path.read_text().replace("/usr/local/bin/httpware", options.binary))
        units = sorted(str(path) for path in Path(folder).iterdir())
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units], capture_output=True, text=True)
        return [line("systemd", "systemd-analyze verify says nothing", {"units": len(units), "said": result.stderr + result.stdout}, result.returncode == 0 and not result.stderr and len(units) == 2)]


PARTS: dict[str, Callable[[argparse.Namespace], list[dict]]] = {"compose": compose, "kubernetes": kubernetes, "systemd": systemd}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(PARTS))
    parser.add_argument("--binary", default=".build/release/httpware")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"{unknown[0]} is none of {' '.join(PARTS)}")
    chosen = options.parts or list(PARTS)
    return tell((each for name in PARTS if name in chosen for each in PARTS[name](options)))


if __name__ == "__main__":
    sys.exit(main())
