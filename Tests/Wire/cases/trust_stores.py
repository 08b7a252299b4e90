"""ca install, uninstall and show: the stores of a home and a root of their own. Nothing of the system is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from suite import Skip, Trial, case, check, expect_same

from .command import NO, run


class Stores:
    """A home with an authority, a root with folders of the system, and tools that only tell that they were called."""

    def __init__(self, t: Trial, folder: str = "usr/local/share/ca-certificates", tool: str = "update-ca-certificates", status: int = 0):
        self.t = t
        self.home, self.root, self.bin = (t.setup.place.subfolder(name) for name in ("home", "root", "bin"))
        self.folder, self.calls = self.root / folder, self.bin / "calls"
        self.folder.mkdir(parents=True)
        (self.bin / tool).write_text(f'#!/bin/sh\necho "{tool} $*" >> "{self.calls}"\nexit {status}\n')
        (self.bin / tool).chmod(0o755)
        self.path = str(self.bin)
        expect_same("ca init", self.ca("init").returncode, 0)
        self.pem = (self.home / ".local/share/httpware/ca/ca.pem").read_text()

    def ca(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        # A JVM is slow to start on a busy machine.
        return run(self.t, "ca", *arguments, timeout=60,
                   environment={"HOME": str(self.home), "XDG_DATA_HOME": "", "PATH": self.path, "JAVA_HOME": "/nonexistent", **environment})

    def on_root(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return self.ca(*arguments, "--root", str(self.root), **environment)


@case("ca install: the certificate is added to the system's store of Debian and of Fedora, listed by show, and removed by uninstall", nginx=NO)
def _(t: Trial) -> None:
    for folder, tool in (("usr/local/share/ca-certificates", "update-ca-certificates"), ("etc/pki/ca-trust/source/anchors", "update-ca-trust")):
        stores = Stores(t, folder, tool)
        check("no store" in stores.on_root("show").stdout)
        result = stores.on_root("install", "--store", "system")
        expect_same("install", (result.returncode, result.stdout), (0, f"installed: system ({stores.folder})\n"))
        files = list(stores.folder.iterdir())
        check(len(files) == 1 and files[0].read_text() == stores.pem, files)
        check(stores.calls.read_text().startswith(tool), stores.calls.read_text())
        check(f"trusted by   system ({stores.folder})" in stores.on_root("show").stdout)
        # Another authority of this user takes the place of the first one.
        stores.ca("init", "--force")
        check("no store" in stores.on_root("show").stdout)
        stores.on_root("install", "--store", "system")
        expect_same("files", len(list(stores.folder.iterdir())), 1)
        result = stores.on_root("uninstall", "--store", "system")
        expect_same("uninstall", (result.returncode, result.stdout), (0, f"removed: system ({stores.folder})\n"))
        expect_same("files", list(stores.folder.iterdir()), [])
        check("no store" in stores.on_root("uninstall").stdout)


@case("ca install: a missing or failing store does not stop the others, and the summary lists both", nginx=NO)
def _(t: Trial) -> None:
    stores = Stores(t, status=7)
    result = stores.on_root("install")
    expect_same("exit", result.returncode, 1)
    check("not installed: system" in result.stdout and "exit status 7" in result.stdout, result)
    check("not installed: nss: no profile" in result.stdout and "not installed: java: no JDK" in result.stdout, result)
    for word in ("macos, by these commands", "security add-trusted-cert", "xcrun simctl", "adb push"):
        check(word in result.stdout, word, result.stdout)
    shutil.rmtree(stores.root / "usr")
    result = stores.on_root("install", "--store", "system")
    check(result.returncode == 1 and "no folder for authorities" in result.stdout, result)
    result = stores.on_root("install", "--store", "macos")
    check(result.returncode == 0 and "security add-trusted-cert" in result.stdout and "adb" not in result.stdout, result)
    expect_same("unknown store", stores.on_root("install", "--store", "nonsense").returncode, 64)


@case("ca install: without certutil the message names its package", nginx=NO)
def _(t: Trial) -> None:
    stores = Stores(t)
    profile = stores.home / ".mozilla/firefox/a.default"
    profile.mkdir(parents=True)
    (profile / "cert9.db").touch()
    result = stores.on_root("install", "--store", "nss")
    check(result.returncode == 1 and "libnss3-tools" in result.stdout, result)


@case("ca install: the certificate is added to NSS of every Firefox profile and of Chromium, and removed again", nginx=NO)
def _(t: Trial) -> None:
    if not shutil.which("certutil"):
        raise Skip("no certutil")
    stores = Stores(t)
    stores.path += ":" + os.environ["PATH"]
    databases = [stores.home / name for name in (".pki/nssdb", ".mozilla/firefox/a b.default", "snap/firefox/common/.mozilla/firefox/c")]
    for database in databases:
        database.mkdir(parents=True)
        subprocess.run(["certutil", "-N", "-d", f"sql:{database}", "--empty-password"], check=True, capture_output=True)
    for _ in range(2):
        result = stores.on_root("install", "--store", "nss")
        expect_same("install", (result.returncode, sorted(result.stdout.splitlines())), (0, sorted(f"installed: NSS ({database})" for database in databases)))
    listed = subprocess.run(["certutil", "-L", "-d", f"sql:{databases[1]}"], capture_output=True, text=True).stdout
    check(listed.count("httpware CA") == 1 and "C,," in listed, listed)
    expect_same("show", stores.on_root("show").stdout.count("trusted by   NSS"), 3)
    result = stores.on_root("uninstall", "--store", "nss")
    expect_same("uninstall", (result.returncode, result.stdout.count("removed: NSS")), (0, 3))
    check("no store" in stores.on_root("show").stdout)


@case("ca install: the certificate is added to the trust store of the JDK, and removed again", nginx=NO)
def _(t: Trial) -> None:
    java = shutil.which("java")
    if not java or not shutil.which("keytool"):
        raise Skip("no JDK")
    stores = Stores(t)
    stores.path += ":" + os.environ["PATH"]
    real, copy = Path(java).resolve().parent.parent, stores.root / "jdk"
    (copy / "lib/security").mkdir(parents=True)
    shutil.copyfile((real / "lib/security/cacerts").resolve(), copy / "lib/security/cacerts")
    (copy / "bin").symlink_to(real / "bin")
    home = {"JAVA_HOME": str(copy)}
    for _ in range(2):
        result = stores.on_root("install", "--store", "java", **home)
        expect_same("install", (result.returncode, result.stdout), (0, f"installed: JDK ({copy}/lib/security/cacerts)\n"))
    check("trusted by   JDK" in stores.on_root("show", **home).stdout)
    # Debian's own tool adds the authorities of the system, and does not remove them.
    ca, store = stores.home / ".local/share/httpware/ca/ca.pem", copy / "lib/security/cacerts"
    subprocess.run(["keytool", "-importcert", "-noprompt", "-keystore", str(store), "-storepass", "changeit", "-alias", "debian:x.pem", "-file", str(ca)],
                   check=True, capture_output=True)
    result = stores.on_root("uninstall", "--store", "java", **home)
    expect_same("uninstall", (result.returncode, result.stdout), (0, f"removed: JDK ({copy}/lib/security/cacerts)\n"))
    check("no store" in stores.on_root("show", **home).stdout)
