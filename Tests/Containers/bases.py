"""The images that the Dockerfiles and compose.yaml begin with, made of Debian's packages where they cannot be pulled.

An image of that name that is there already, such as one that was pulled, is taken as it is; but one that was made here is made again when its
recipe has changed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from Containers.engine import Engine, Failed

DEBIAN = "docker.io/library/debian:bookworm-slim"
SWIFT = "docker.io/library/swift:6.3-bookworm"
# The label that has the sum of a recipe.
RECIPE = "httpware.recipe"
# As the image of that name has it: what the toolchain loads and calls.
TOOLS = "binutils ca-certificates gcc git libc6-dev libcurl4 libedit2 libncurses6 libsqlite3-0 libstdc++-12-dev libxml2 tzdata"
# Services of compose.yaml, each as near to the image of that name as Debian's package allows. Grafana is not in Debian.
STANDS = {
    "docker.io/library/redis:7-bookworm": ("redis-server", """ENTRYPOINT ["sh", "-c", "exec \\"$@\\" --protected-mode no", "redis"]\nCMD ["redis-server"]"""),
    "docker.io/library/nginx:1.28-bookworm": ("nginx-light", 'RUN rm /etc/nginx/sites-enabled/default\nCMD ["nginx", "-g", "daemon off;"]'),
    "docker.io/prom/prometheus:v3.5.0": ("prometheus", 'ENTRYPOINT ["prometheus", "--storage.tsdb.path=/tmp/prometheus", "--config.file=/etc/prometheus/prometheus.yml"]'),
}


def tell(text: str) -> None:
    print(f"containers: {text}", file=sys.stderr, flush=True)


def installing(packages: str) -> str:
    return f"RUN apt-get update && apt-get install --yes --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*"


def build(engine: Engine, image: str, text: str, *options: object, also: str = "") -> None:
    """Makes an image of a Dockerfile's text, unless it is there. `also` is what else its recipe has."""
    recipe = hashlib.sha256((text + also).encode()).hexdigest()[:16]
    if engine.has(image) and (engine.inspect(image)["Config"].get("Labels") or {}).get(RECIPE, recipe) == recipe:
        return
    tell(f"makes {image}")
    engine.docker("build", "--pull=never", "--network", "host", "--label", f"{RECIPE}={recipe}", *options, "--tag", image, "--file", "-", engine.folder, input=text)


def debian(engine: Engine) -> None:
    if engine.has(DEBIAN):
        return
    tell(f"makes {DEBIAN}")
    root = engine.folder / "debian"
    engine.run("debootstrap", "--variant=minbase", "bookworm", root)
    with subprocess.Popen(["tar", "--numeric-owner", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        engine.docker("import", "--change", 'CMD ["bash"]', "-", DEBIAN, stdin=tar.stdout)
    shutil.rmtree(root)


def swift(engine: Engine) -> None:
    """Debian with the toolchain of this machine, and with the packages that its git reads from here."""
    debian(engine)
    program = shutil.which("swift")
    if not program and engine.has(SWIFT):
        return
    if not program:
        raise Failed(f"{SWIFT} is neither pulled nor can it be made: there is no Swift toolchain")
    toolchain = Path(program).resolve().parents[2]
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    version = SWIFT.partition(":")[2].partition("-")[0]
    if f"Swift version {version}" not in said and not engine.has(SWIFT):
        raise Failed(f"Swift {version} is needed for {SWIFT}, this machine has {said.splitlines()[0]}")
    text = f"FROM {DEBIAN}\n{installing(TOOLS)}\nRUN git config --system safe.directory '*'\n"
    places: dict[str, str] = {}
    urls = subprocess.run(["git", "config", "--get-regexp", r"^url\..*\.insteadof$"], capture_output=True, text=True).stdout
    for url in urls.splitlines():
        key, value = url.split(" ", 1)
        place = key.removeprefix("url.").removesuffix(".insteadof")
        text += f"RUN git config --system --add '{key}' '{value}'\n"
        if place.startswith("/"):
            places.setdefault(place, f"packages{len(places)}")
    text += "".join(f"COPY --from={name} . {place}\n" for place, name in places.items())
    contexts = [word for place, name in places.items() for word in ("--build-context", f"{name}={place}")]
    text += "COPY --from=toolchain . /\n"
    build(engine, SWIFT, text, "--build-context", f"toolchain={toolchain}", *contexts, also=said)


def stands(engine: Engine) -> list[str]:
    """Makes the services of compose.yaml that can be made; returns their images."""
    debian(engine)
    for image, (package, rest) in STANDS.items():
        build(engine, image, f"FROM {DEBIAN}\n{installing(package)}\n{rest}\n")
    return list(STANDS)
