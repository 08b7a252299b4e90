"""The archive of `make dist` in roots of several systems, none of which has the program's libraries."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from Containers.bases import tell
from Containers.engine import Engine, Failed
from Rig.certificates import certificates
from Rig.results import line

UBUNTU = "http://archive.ubuntu.com/ubuntu"
# debootstrap's name for each; where a version of it does not know the name, also the mirror and the script of a relative.
ROOTS = {"bookworm": [], "trixie": [], "forky": ["http://deb.debian.org/debian", "sid"], "jammy": [UBUNTU, "gutsy"], "noble": [UBUNTU, "gutsy"]}
FEWEST = 3
# Libraries of glibc; all others come with the program.
SYSTEM = re.compile(r"^(?:ld-linux.*|lib(?:c|m|pthread|dl|rt|resolv)\.so\.\d+)$")
# TLS, compression, a script, a password: each takes another library.
FILE = """version: 1
admin: {}
listeners: { web: { bind: "127.0.0.1:8443", chain: hello, tls: { cert: /opt/a.pem, key: /opt/a.key } } }
chains:
  hello:
    middlewares:
      - basicAuth: { usersFile: /opt/users }
      - script: { source: "return { request = function(req) if req.path == '/script' then return { status = 410, text = 'gone' } end end }" }
      - mock: { headers: { Content-Type: text/plain }, body: "BODY" }
    postwares: [{ compress: { minSize: 100B } }]
routes: [{ chain: hello }]
""".replace("BODY", "hello " * 200)
# The password is: secret.
USER = "anna:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"
# In a mount and network namespace of its own; the root beneath stays as it is.
SCRIPT = r"""
set -eu
root=$1 work=$2 archive=$3
ip link set lo up
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mkdir -p "$work/root/usr/local" "$work/root/opt"
tar --warning=no-timestamp -xzf "$archive" -C "$work/root/usr/local" --strip-components=1
cp -p "$4"/* "$work/root/opt/"
inside() { exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$work/root" "$@"; }
printf '{"glibc": "%s", "loaded": %s' "$(inside ldd --version | sed -n '1s/.* //p')" "$(inside httpware version --json --libraries)"
printf ', "check": "%s"' "$(inside httpware check /opt/httpware.yaml 2>&1 | tail -n 1 | tr -d '"\n')"
inside httpware run /opt/httpware.yaml > "$work/log" 2>&1 &
gateway=$!
curl -sk --noproxy '*' -o /dev/null --retry 15 --retry-delay 1 --retry-connrefused https://127.0.0.1:8443/
for coding in br zstd gzip; do
    printf ', "%s": "%s"' "$coding" "$(curl -sk --noproxy '*' -o /dev/null -D - -u anna:secret -H "Accept-Encoding: $coding" https://127.0.0.1:8443/ | grep -i '^HTTP\|^content-encoding' | tr -d '\r' | tr '\n' ' ')"
done
printf ', "script": "%s"' "$(curl -sk --noproxy '*' -o /dev/null -w '%{http_code}' -u anna:secret https://127.0.0.1:8443/script)"
printf ', "refused": "%s"' "$(curl -sk --noproxy '*' -o /dev/null -w '%{http_code}' -u anna:wrong https://127.0.0.1:8443/)"
kill -TERM "$gateway"
status=0; wait "$gateway" || status=$?
printf ', "status": %d, "log": "%s"}' "$status" "$(tail -n 2 "$work/log" | tr -d '"\n\\')"
"""


def root(name: str, made: list[str]) -> Path | None:
    """The folder of the system, made at the first time; nothing if its packages cannot be reached."""
    folder = Path(os.environ.get("HTTPWARE_ROOTS", "/var/tmp/httpware-roots")) / name
    if (folder / "complete").exists():
        return folder / "root"
    folder.mkdir(parents=True, exist_ok=True)
    mirror, script = made if made else ("http://deb.debian.org/debian", "")
    check = ["--no-check-gpg"] if mirror == UBUNTU and not Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg").exists() else []
    scripts = [f"/usr/share/debootstrap/scripts/{script}"] if script else []
    with open(folder / "log", "wb") as log:
        result = subprocess.run(["debootstrap", "--variant=minbase", *check, name, folder / "root", mirror, *scripts], stdout=log, stderr=log)
    if result.returncode:
        return None
    (folder / "complete").touch()
    return folder / "root"


def trial(engine: Engine, dist: Path, others: dict[str, str]) -> Iterator[dict]:
    found = [path for path in sorted(dist.glob("httpware-*-linux-*.tar.gz"))]
    if not found:
        raise Failed(f"{dist} has no archive: make dist writes it")
    files = engine.folder / "files"
    files.mkdir()
    (files / "httpware.yaml").write_text(FILE)
    for name in ("a.pem", "a.key"):
        shutil.copy(certificates() / name, files)
    (files / "users").write_text(f"{USER}\n")
    count = 0
    for name, folder in [*((name, Path(folder)) for name, folder in others.items()), *((name, root(name, made)) for name, made in ROOTS.items() if name not in others)]:
        if folder is None:
            tell(f"{name} is left out: debootstrap could not make it")
            continue
        count += 1
        yield from tried(engine, name, folder, found[-1], files)
    yield line("roots", f"at least {FEWEST} systems", count, count >= FEWEST)


def tried(engine: Engine, name: str, folder: Path, archive: Path, files: Path) -> Iterator[dict]:
    work = engine.folder / f"root-{name}"
    work.mkdir()
    result = engine.run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", "-c", SCRIPT, "roots", folder, work, archive, files, fails=True, patience=120)
    if result.returncode:
        yield line(f"roots: {name}", "the archive runs", result.stdout[-800:], False)
        return
    seen = json.loads(result.stdout)
    loaded = seen["loaded"].get("loaded", [])
    wrong = [each for each in loaded if not each["version"] or (not SYSTEM.match(each["name"]) and "/lib/httpware/" not in each["path"])]
    yield line(f"roots: {name}: libraries", "each has a version; all but glibc's are the archive's", wrong or {"glibc": seen["glibc"], "count": len(loaded)}, not wrong and len(loaded) > 15)
    codings = {coding: seen[coding] for coding in ("br", "zstd", "gzip")}
    yield line(f"roots: {name}: answers", "TLS, compression, a script and passwords work", {**codings, "refused": seen["refused"], "script": seen["script"], "check": seen["check"]},
               all(" 200" in text and f"encoding: {coding}" in text.lower() for coding, text in codings.items()) and seen["refused"] == "401" and seen["script"] == "410" and seen["check"].startswith("ok"))
    yield line(f"roots: {name}: SIGTERM", "ends with 0", {"status": seen["status"], "log": seen["log"]}, seen["status"] == 0)
