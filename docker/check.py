#!/usr/bin/env python3
"""Tries what is in docker/ without a container engine: one JSON line per result (name, goal, measured, pass). Python 3.11.

    docker/check.py [--binary .build/release/httpware] [image] [gateway] [compose] [kubernetes] [systemd]

`image` takes the steps of the Dockerfile one by one, in a folder that debootstrap makes, and starts what comes of them with chroot;
it needs root, debootstrap, some 8 GiB of disk and ten minutes. `--base FOLDER` keeps the folder that debootstrap made for the next time.
`gateway` does the same with the Dockerfile of a package that `httpware init ware` writes; git reads this repository in place of the URL of httpware.
The schemas of compose and Kubernetes files come from PyPI (check-jsonschema, kubernetes-validate).
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTEXT = HERE.parent
sys.path.insert(0, str(CONTEXT / "Tests"))
sys.dont_write_bytecode = True

from Clients.own_gateway import environment, published  # noqa: E402
from Rig.certificates import certificates  # noqa: E402
from Rig.packages import provide  # noqa: E402
from Rig.processes import free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402

MOST_BYTES = 100_000_000


# MARK: The Dockerfile


class Instruction:
    """One line of the Dockerfile, joined."""

    def __init__(self, text: str):
        self.name, _, self.rest = text.partition(" ")
        self.rest = self.rest.strip()

    @property
    def words(self) -> list[str]:
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


def instructions(path: Path) -> list[Instruction]:
    joined, found = "", []
    for text in path.read_text().splitlines():
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        joined += text.strip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        found.append(Instruction(joined))
        joined = ""
    return found


class Stage:
    """A root that is being made, and how its programs are run."""

    def __init__(self, root: Path):
        self.root, self.place = root, "/"
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.user, self.entry, self.command, self.health = "0:0", [], [], []

    def path(self, name: str) -> Path:
        return self.root / (Path(self.place) / name).relative_to("/")


class Image:
    """Takes the steps. `swift:…` is Debian with the toolchain of this machine, and with the packages it reads from here."""

    def __init__(self, folder: Path, base: Path, file: Path, ignored: Path, context: Path):
        self.folder, self.base, self.file, self.context, self.stages = folder, base, file, context, {}
        self.allowed = [text[1:] for text in ignored.read_text().split("\n") if text.startswith("!")]

    def build(self) -> Stage:
        for step in instructions(self.file):
            print(f"check: {step.name} {step.rest[:110]}", file=sys.stderr, flush=True)
            getattr(self, f"do_{step.name.lower()}")(step)  # an instruction that is not here is not known
        return self.stage

    def do_from(self, step: Instruction) -> None:
        image, *name = step.words
        root = self.folder / f"stage{len(self.stages)}"
        self.stage = Stage(root)
        self.stages[name[1] if name else str(len(self.stages))] = self.stage
        if image == "scratch":
            root.mkdir()
        elif match := re.fullmatch(r"swift:([\d.]+)-(\w+)", image):
            self.debian(root, match[2])
            self.toolchain(root, match[1])
        else:
            raise SystemExit(f"check: {image} is not known here")

    def debian(self, root: Path, suite: str) -> None:
        base = self.base or self.folder / "base"
        if not (base / "etc/debian_version").exists():
            # What the toolchain loads and calls, as the image of that name has it.
            wanted = "binutils,ca-certificates,gcc,git,libc6-dev,libcurl4,libedit2,libncurses6,libsqlite3-0,libstdc++-12-dev,libxml2,tzdata"
            subprocess.run(["debootstrap", "--variant=minbase", f"--include={wanted}", suite, base], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        for name in ("proc", "dev"):
            subprocess.run(["mount", "--rbind", f"/{name}", root / name], check=True)

    def toolchain(self, root: Path, version: str) -> None:
        swift = Path(shutil.which("swift") or "swift").parent.resolve() / "swift"
        said = subprocess.run([swift, "--version"], capture_output=True, text=True, check=True).stdout
        if f"Swift version {version}" not in said:
            raise SystemExit(f"check: Swift {version} is needed, {said!r} is here")
        folders = [swift.parent.parent]
        # Where git reads packages from this machine in place of their addresses.
        urls = subprocess.run(["git", "config", "--get-regexp", r"^url\..*\.insteadof$"], capture_output=True, text=True).stdout
        for url in urls.splitlines():
            key, value = url.split(" ", 1)
            place = key.removeprefix("url.").removesuffix(".insteadof")
            subprocess.run(["git", "config", "--file", root / "etc/gitconfig", "--add", key, value], check=True)
            folders += [Path(place)] if place.startswith("/") else []
        subprocess.run(["git", "config", "--file", root / "etc/gitconfig", "safe.directory", "*"], check=True)
        for folder in dict.fromkeys(folders):
            inside = root / folder.relative_to("/")
            inside.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", "-o", "ro", folder, inside], check=True)
        self.stage.environment["PATH"] += f":{swift.parent}"

    def do_run(self, step: Instruction) -> None:
        script = f"cd {shlex.quote(self.stage.place)} && {step.rest}"
        subprocess.run(["chroot", self.stage.root, "/bin/sh", "-c", script], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                       env=self.stage.environment | {"DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"})

    def do_copy(self, step: Instruction) -> None:
        *sources, target = [word for word in step.words if not word.startswith("--")]
        options = [word for word in step.words if word.startswith("--from=")]
        whence = self.stages[options[0].removeprefix("--from=")].root if options else self.context
        for source in [str(found.relative_to(whence)) for text in sources for found in sorted(whence.glob(text))] if not options else sources:
            if not options and not any(fnmatch(source, name) or source.startswith(name + "/") for name in self.allowed):
                raise SystemExit(f"check: {source} is not in the context of the image")
            origin, place = whence / source.lstrip("/"), self.stage.path(target)
            if origin.is_dir():
                shutil.copytree(origin, place, symlinks=True, dirs_exist_ok=True)
            else:
                place = place / origin.name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, place)

    def do_workdir(self, step: Instruction) -> None:
        self.stage.place = str(Path(self.stage.place) / step.rest)
        self.stage.path("").mkdir(parents=True, exist_ok=True)

    def do_arg(self, step: Instruction) -> None:
        name, _, value = step.rest.partition("=")
        self.stage.environment[name] = "checked" if name == "HTTPWARE_COMMIT" else value

    def do_env(self, step: Instruction) -> None:
        self.stage.environment |= dict(word.split("=", 1) for word in step.words)

    def do_user(self, step: Instruction) -> None:
        self.stage.user = step.rest

    def do_entrypoint(self, step: Instruction) -> None:
        self.stage.entry = step.words

    def do_cmd(self, step: Instruction) -> None:
        self.stage.command = step.words

    def do_healthcheck(self, step: Instruction) -> None:
        self.stage.health = json.loads(step.rest[step.rest.index("["):])

    def do_expose(self, step: Instruction) -> None:
        int(step.rest)

    def do_stopsignal(self, step: Instruction) -> None:
        assert step.rest == "SIGTERM"


class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from the origin server")

    def log_message(self, *_) -> None:
        pass


def origin() -> int:
    """An origin server over TLS, whose authority the image is told of: so the list of authorities is read."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    server.socket = certificates().server().wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def image(options: argparse.Namespace) -> list[dict]:
    """The image of httpware."""
    return taken(options, "image", lambda folder: Image(folder, options.base, HERE / "Dockerfile", HERE / "Dockerfile.dockerignore", CONTEXT))


def gateway(options: argparse.Namespace) -> list[dict]:
    """The image of a gateway of one's own, as its package is written."""

    def made(folder: Path) -> Image:
        package, repository = folder / "package", folder / "httpware"
        subprocess.run([options.binary, "init", "ware", "methodRule", "--in", package], check=True, capture_output=True)
        published(repository)
        os.environ.update(environment(folder, Path(options.binary)))
        return Image(folder, options.base, package / "Dockerfile", package / ".dockerignore", package)

    return taken(options, "gateway", made)


def taken(options: argparse.Namespace, part: str, made: Callable[[Path], Image]) -> list[dict]:
    """Takes the steps of an image, and tries what comes of them."""
    if not shutil.which("debootstrap"):
        return [line(part, "the Dockerfile's steps are taken", "debootstrap is not there; install it first", False)]
    if not options.inside:  # in a mount namespace of its own, so that no mount is left behind
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, __file__, part, "--binary", options.binary, "--inside"]
        command += ["--base", options.base] if options.base else []
        return [json.loads(text) for text in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()] or [
            line(part, "the Dockerfile's steps are taken", "they failed", False)]
    folder = Path(tempfile.mkdtemp(prefix="httpware-image."))
    try:
        return run_image(made(folder).build(), part)
    finally:
        subprocess.run(f"awk '$2 ~ \"^{folder}\" {{print $2}}' /proc/mounts | sort -r | xargs -r -n 1 umount --lazy", shell=True)
        subprocess.run(["rm", "-rf", "--one-file-system", folder])


def run_image(stage: Stage, part: str) -> list[dict]:
    program = Path(stage.entry[0]).name
    files = [path for path in stage.root.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    programs = [str(path.relative_to(stage.root)) for path in files if os.access(path, os.X_OK) and ".so" not in path.name]
    lines = [line(f"{part}: size", f"at most {MOST_BYTES} bytes", size, size <= MOST_BYTES),
             line(f"{part}: programs", f"{program}, and no shell", programs, programs == [f"usr/bin/{program}"]),
             line(f"{part}: user", "not root", stage.user, not stage.user.startswith("0") and stage.user != "root")]
    with open(stage.root / "etc/ssl/certs/ca-certificates.crt", "ab") as bundle:
        bundle.write((certificates() / "ca.pem").read_bytes())
    for name in ("proc", "dev"):  # an engine makes them
        (stage.root / name).mkdir()
    subprocess.run(["mount", "--bind", stage.root, stage.root], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", stage.root], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", stage.root / "proc"], check=True)
    subprocess.run(["mount", "--bind", "/dev", stage.root / "dev"], check=True)
    port, admin = free_port(), free_port()
    environment = stage.environment | {"HTTPWARE_BIND": f"127.0.0.1:{port}", "HTTPWARE_ADMIN": f"127.0.0.1:{admin}",
                                       "APP_URL": f"https://127.0.0.1:{origin()}"}

    def inside(command: list[str]) -> list[str]:
        return ["chroot", f"--userspec={stage.user}", str(stage.root), *command]

    def health() -> int:
        return subprocess.run(inside(stage.health), env=environment, capture_output=True, timeout=10).returncode

    lines.append(line(f"{part}: health of what does not run", "a failure", health(), health() != 0))
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(inside(stage.entry + stage.command), env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 10
            while (well := health()) and time.monotonic() < deadline:
                time.sleep(0.1)
            answer = subprocess.run(["curl", "--silent", "--noproxy", "*", "--max-time", "10", f"http://127.0.0.1:{port}/"], capture_output=True, text=True)
            owner = next(text.split()[1] for text in Path(f"/proc/{process.pid}/status").read_text().splitlines() if text.startswith("Uid:"))
            process.terminate()
            status = process.wait(15)
        finally:
            process.kill()
        log.seek(0)
        lines += [line(f"{part}: health", "0, by HEALTHCHECK's own command", well, well == 0),
                  line(f"{part}: curl", "the origin server's answer, over TLS that is verified", answer.stdout or log.read()[-500:], answer.stdout == "from the origin server"),
                  line(f"{part}: runs as", stage.user.split(":")[0], owner, owner == stage.user.split(":")[0]),
                  line(f"{part}: SIGTERM", "ends with 0", status, status == 0)]
    version = subprocess.run(inside([*stage.entry, "version", "--json"]), env=environment, capture_output=True, text=True).stdout
    if part == "image":
        lines.append(line("image: commit", "what it was built with", version, '"checked"' in version))
    else:
        lines.append(line(f"{part}: version", "the program's name", version, f'"{program}"' in version))
    return lines


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
    # The schema knows no names.
    missing = [config["file"] for config in document["configs"].values() if not (HERE / config["file"]).is_file()]
    for name, service in document["services"].items():
        missing += [f"{name}: {config['source']}" for config in service.get("configs", []) if config["source"] not in document["configs"]]
        missing += [f"{name}: {secret}" for secret in service.get("secrets", []) if secret not in document["secrets"]]
        missing += [f"{name}: {other}" for other in service.get("depends_on", []) if other not in document["services"]]
    wanted = {"redis", "origin", "prometheus", "grafana", "gateway-1", "gateway-2"}
    lines.append(line("compose: names", "each config, secret and service that is named is there", missing, not missing and wanted <= document["services"].keys()))
    # Compose copies what is no file into the container, and a root that is read-only takes nothing.
    copied = [f"{name}: {part['source'] if isinstance(part, dict) else part}" for name, service in document["services"].items() if service.get("read_only")
              for kind in ("configs", "secrets") for part in service.get(kind, [])
              if "file" not in document[kind].get(part["source"] if isinstance(part, dict) else part, {})]
    lines.append(line("compose: read-only services", "each of their configs and secrets is a file", copied, not copied))
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


PARTS: dict[str, Callable[[argparse.Namespace], list[dict]]] = {"compose": compose, "kubernetes": kubernetes, "systemd": systemd, "image": image, "gateway": gateway}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(PARTS))
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--base", type=Path, help="the folder that debootstrap made, or is to make")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"{unknown[0]} is none of {' '.join(PARTS)}")
    chosen = options.parts or list(PARTS)
    return tell((each for name in PARTS if name in chosen for each in PARTS[name](options)), sums=not options.inside)


if __name__ == "__main__":
    sys.exit(main())
