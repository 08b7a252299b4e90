#!/usr/bin/env python3
"""Makes what is given to others of a binary that has the Swift runtime in it, and checks it. Python 3.11, dpkg-dev, lowdown, patchelf, gcc.

    docker/dist.py --binary .build/release/httpware [--out .build-dist] [--try] [--install PREFIX]

In the folder: httpware_VERSION_ARCHITECTURE.deb, httpware-VERSION-linux-ARCHITECTURE.tar.gz (with the C libraries, for every Linux with
glibc 2.34 or later), …-image.tar (the container image, an OCI archive), ….spdx.json (what is in it) and ….sha256. The program is there
without its symbols. All times are those of the commit, so a build of the same commit, by the same toolchain and with the same versions
of packages and libraries, gives the same bytes. The architecture is that of the machine.
`--try` installs, upgrades, removes and purges the package in a bare Debian that debootstrap makes; it needs root.
`--install` puts the same files under a folder, for `make install`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Tests"))
sys.dont_write_bytecode = True

from Rig.waits import accepts, eventually  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from portable.libraries import put_beside  # noqa: E402
from portable.oci import settings, write_image  # noqa: E402

SOURCE = HERE.parent
TEMPLATES = HERE / "debian"
CATALOGUE = SOURCE / "Sources/HttpGateway/HttpGateway.docc"


@dataclass
class Release:
    """The program without its symbols, and what is in it."""
    binary: Path
    version: str
    commit: str
    epoch: int
    packages: list[dict]

    @property
    def date(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self.epoch))


def run(*words: object, **options) -> str:
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # a program that runs cannot be written to
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def packed(content: str | bytes) -> bytes:
    """gzip without name and time."""
    return gzip.compress(content.encode() if isinstance(content, str) else content, 9, mtime=0)


# MARK: Manual pages


def roff(text: str) -> str:
    """Text as roff takes it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def forms(argument: dict) -> str:
    """How an argument is written."""
    if argument["kind"] == "positional":
        return f"\\fI{roff(argument['valueName'].upper())}\\fR"
    names = ["-" * (1 if name["kind"] == "short" else 2) + name["name"] for name in argument.get("names", [])]
    value = f" \\fI{roff(argument['valueName'])}\\fR" if argument["kind"] == "option" else ""
    return ", ".join(f"\\fB{roff(name)}\\fR{value}" for name in names)


def arguments(command: dict) -> str:
    rows = [one for one in command.get("arguments", []) if one.get("shouldDisplay", True) and one["valueName"] not in ("help", "version")]
    text = ""
    for one in rows:
        default = one.get("defaultValue")
        about = one.get("abstract", "") + (f" (default: {default})" if default else "")
        text += f".TP\n{forms(one)}\n{roff(about)}\n"
    return text


def manual(release: Release) -> str:
    """httpware(1), from what the program says of itself."""
    command = json.loads(run(release.binary, "--experimental-dump-help"))["command"]
    text = f'.TH HTTPWARE 1 "{release.date}" "httpware {release.version}" "User Commands"\n.SH NAME\nhttpware \\- {roff(command["abstract"].rstrip(".").removeprefix("An "))}\n'
    text += ".SH SYNOPSIS\n.B httpware\n.I command\n.RI [ option ...]\n.br\n.B httpware \\-\\-version\n.SH COMMANDS\n"

    def add(command: dict, words: list[str]) -> str:
        if not command.get("shouldDisplay", True) or command["commandName"] == "help":
            return ""
        words = [*words, command["commandName"]]
        inner = [one for one in command.get("subcommands", []) if one["commandName"] != "help"]
        text = f".SS {roff(' '.join(words))}\n{roff(command.get('abstract', ''))}\n"
        if discussion := command.get("discussion"):
            text += f".PP\n{roff(discussion)}\n"
        return text + arguments(command) + "".join(add(one, words) for one in inner)

    text += "".join(add(one, []) for one in command["subcommands"])
    text += ".SH FILES\n.TP\n.I httpware.yaml, /etc/httpware/httpware.yaml\nThe configuration, if none is named; see\n.BR httpware.yaml (5).\n"
    return text + ".SH SEE ALSO\n.BR httpware.yaml (5)\n"


def file_manual(release: Release) -> str:
    """httpware.yaml(5), from the articles about the configuration, in the order of its index."""
    text = (CATALOGUE / "Configuration.md").read_text()
    for name in dict.fromkeys(re.findall(r"(?m)^\| [^|]* \| <doc:(\w+)> \|$", text)):
        title, _, rest = (CATALOGUE / f"{name}.md").read_text().partition("\n")
        text += f"\n#{title}\n\n" + re.sub("(?m)^##", "###", rest.partition("## Overview")[2].lstrip())
    text = re.sub(r"<doc:([\w-]+)[^>]*>", r"*\1*", text)
    text = re.sub(r"\[([^\]\n]+)\]\(doc:[^)]+\)", r"\1", text)
    text = re.sub(r"(?<!`)``(?!`)", "`", text)
    text = text[text.index("## Overview"):]
    text = re.sub(r"^@\w+.*\n|^!\[.*\n", "", text, flags=re.M)
    text = re.sub(r"^#(#+)", r"\1", text, flags=re.M)
    # A table is wider than a terminal: each row becomes a point of a list.
    text = re.sub(r"^\|.*\n\|[-| :]+\|\n((?:\|.*\n)+)", lambda match: "\n" + "".join(points(match[1])) + "\n", text, flags=re.M)
    page = run("lowdown", "-s", "-Tman", "--out-no-smarty", "-m", "title:HTTPWARE.YAML", "-m", "section:5", "-m", f"date:{release.date}",
               "-m", f"source:httpware {release.version}", "-", input=text)
    return re.sub(r"\.SH\s+Overview", r".SH NAME\nhttpware.yaml \\- the configuration file of httpware\n.SH DESCRIPTION", page, count=1)


def points(rows: str) -> list[str]:
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows.splitlines()]
    return [f"- {first}: {'; '.join(cell for cell in rest if cell)}\n" for first, *rest in cells]


# MARK: Documents


def documents(folder: Path) -> None:
    """README, changelog, security, the gateway's articles, their pictures and the examples, with links to each other."""
    for picture in sorted((CATALOGUE / "Resources").iterdir()):
        write(folder / "pictures" / picture.name, picture.read_bytes())
    for name in sorted(run("git", "-C", SOURCE, "ls-files", "conf").split()):
        write(folder / "examples" / Path(name).relative_to("conf"), (SOURCE / name).read_bytes())
    # Debian's name for them, and the one by which the documents and the examples name each other.
    folder.joinpath("conf").unlink(missing_ok=True)
    folder.joinpath("conf").symlink_to("examples")
    articles = {path.stem: path.read_text() for path in sorted(CATALOGUE.glob("**/*.md")) if path.stem != "HttpGateway"}
    texts = {f"{name}.md": (SOURCE / f"{name}.md").read_text() for name in ("README", "CHANGELOG", "SECURITY")}
    title, _, rest = texts["README.md"].partition("\n")
    texts["README.md"] = f"{title}\n\nThe commands below are for the folder of this file; `conf` is its folder of examples.\n{rest}"
    for name, text in articles.items():
        text = re.sub(r"<doc:([\w-]+)(#?)([^>]*)>", lambda match: f"[{titled(articles[match[1]])}]({match[1]}.md{match[2]}{match[3].lower()})", text)
        text = re.sub(r"\]\(doc:([\w-]+)(#?)([^)]*)\)", lambda match: f"]({match[1]}.md{match[2]}{match[3].lower()})", text)
        text = re.sub(r"(?<!`)``([^`\n]+)``(?!`)", r"`\1`", text)
        texts[f"{name}.md"] = re.sub(r"^(!\[.*\])\((\w+)\)", lambda match: f"{match[1]}({pictured(match[2])})", text, flags=re.M)
    for name, text in texts.items():
        text = text.replace("Sources/HttpGateway/HttpGateway.docc/Resources/", "pictures/").replace("(Sources/HttpGateway/HttpGateway.docc/Wares/", "(").replace("(Sources/HttpGateway/HttpGateway.docc/", "(")
        # What is not here, such as the sources, is named and not linked.
        text = re.sub(r"\[([^\]\n]+)\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", lambda match: match[0] if match[2] in texts or (folder / match[2]).exists() else match[1], text)
        write(folder / name, text)


def titled(article: str) -> str:
    return article.partition("\n")[0].lstrip("# ")


def pictured(name: str) -> str:
    return next(f"pictures/{path.name}" for path in (CATALOGUE / "Resources").glob(f"{name}.*"))


# MARK: What is in it


def libraries(binary: Path) -> list[Path]:
    found = re.findall(r"(/\S+)", run("ldd", binary))
    if runtime := [name for name in found if "swift" in name or "Foundation" in name]:
        raise SystemExit(f"dist: {binary} needs {runtime[0]}; build it with --static-swift-stdlib")
    return [Path(name) for name in found]


def toolchain_licenses() -> list[tuple[str, str, str]]:
    """What of the toolchain is linked into the program: name, licence, address."""
    return [
        ("Swift runtime and standard library", "Apache-2.0 WITH Swift-exception", "https://github.com/swiftlang/swift"),
        ("swift-corelibs-libdispatch", "Apache-2.0 WITH Swift-exception", "https://github.com/swiftlang/swift-corelibs-libdispatch"),
        ("swift-foundation", "Apache-2.0 WITH Swift-exception", "https://github.com/swiftlang/swift-foundation"),
        ("swift-corelibs-foundation", "Apache-2.0 WITH Swift-exception", "https://github.com/swiftlang/swift-corelibs-foundation"),
        ("swift-foundation-icu", "Unicode-3.0", "https://github.com/swiftlang/swift-foundation-icu"),
    ]


LICENSES = {"opencombine": "MIT"}


def packages(binary: Path) -> list[dict]:
    """The Swift packages that are linked into the program, each with name, version, licence, address and the text of its licence."""
    modules = set(re.findall(r"/([\w-]+)\.build/", (binary.parent / "httpware.product/Objects.LinkFileList").read_text()))
    pins = {pin["identity"]: pin for pin in json.loads((SOURCE / "Package.resolved").read_text())["pins"]}
    rows = []
    for place in sorted((binary.parents[2] / "checkouts").iterdir(), key=lambda place: place.name.lower()):
        if modules.isdisjoint(path.name for path in (place / "Sources").glob("*")):
            continue
        pin = pins[place.name.lower()]
        text = next(place.glob("LICENSE*")).read_text()
        license = LICENSES.get(pin["identity"], "Apache-2.0 WITH Swift-exception" if "Runtime Library Exception" in text else "Apache-2.0")
        rows.append({"name": pin["identity"], "version": pin["state"].get("version", pin["state"]["revision"]), "license": license,
                     "address": pin["location"], "revision": pin["state"]["revision"], "text": text})
    return rows


def copyright(release: Release) -> str:
    text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: httpware\n\n"
    text += "Files: *\nCopyright: The httpware authors\nLicense: Apache-2.0\n\n"
    text += "Comment: The program has the following in it.\n"
    for name, license, address in toolchain_licenses():
        text += f" .\n {name}: {license}, {address}\n"
    for one in release.packages:
        text += f" .\n {one['name']} {one['version']}: {one['license']}, {one['address']}\n"
    text += "\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
    return text


def licenses(release: Release) -> str:
    """The texts that are to go along with the program."""
    exception = (
        "As an exception, if you use this Software to compile your source code and portions of this Software are embedded into\n"
        "the binary product as a result, you may redistribute such product without providing attribution as would otherwise be\n"
        "required by Sections 4(a), 4(b) and 4(d) of the License.\n")
    text = "".join(f"{name}\n{address}\n{license}\n\n" for name, license, address in toolchain_licenses())
    text += f"Swift-exception:\n{exception}\n"
    for one in release.packages:
        text += f"{'=' * 72}\n{one['name']} {one['version']}\n{one['address']}\n\n{one['text']}\n"
    return text


def bill(release: Release, debian: list[tuple[str, str]]) -> str:
    """SPDX 2.3."""
    version, sum = release.version, hashlib.sha256(release.binary.read_bytes()).hexdigest()

    def entry(name: str, version: str, license: str, address: str, purl: str | None = None) -> dict:
        row = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", f"{name}-{version}"), "name": name, "versionInfo": version,
               "downloadLocation": address, "licenseConcluded": "NOASSERTION", "licenseDeclared": license, "copyrightText": "NOASSERTION",
               "filesAnalyzed": False}
        if purl:
            row["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
        return row

    own = entry("httpware", version, "Apache-2.0", "NOASSERTION") | {
        "licenseConcluded": "Apache-2.0", "copyrightText": "Copyright 2026 The httpware authors", "checksums": [{"algorithm": "SHA256", "checksumValue": sum}]}
    swift = re.search(r"Swift version ([\d.]+)", run("swift", "--version"))
    inside = [entry(name, swift[1] if swift else "NOASSERTION", license, address) for name, license, address in toolchain_licenses()]
    inside += [entry(one["name"], one["version"], one["license"], f"git+{one['address']}@{one['revision']}",
                     f"pkg:swift/{one['address'].removeprefix('https://')}@{one['version']}") for one in release.packages]
    loaded = [entry(name, number, "NOASSERTION", "NOASSERTION", f"pkg:deb/debian/{name}@{number}") for name, number in debian]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": own["SPDXID"]}]
    relations += [{"spdxElementId": own["SPDXID"], "relationshipType": "STATIC_LINK", "relatedSpdxElement": one["SPDXID"]} for one in inside]
    relations += [{"spdxElementId": own["SPDXID"], "relationshipType": "DYNAMIC_LINK", "relatedSpdxElement": one["SPDXID"]} for one in loaded]
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"httpware-{version}",
        "documentNamespace": f"https://httpware.example/spdx/{version}/{release.commit}/{sum[:16]}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)), "creators": ["Tool: docker/dist.py"]},
        "packages": [own, *inside, *loaded], "relationships": relations,
    }, indent=1) + "\n"


# MARK: The files


def stage(release: Release, root: Path, prefix: str = "usr") -> None:
    """All files but those of Debian alone."""
    share = root / prefix / "share"
    write(root / prefix / "bin/httpware", release.binary.read_bytes(), 0o755)
    write(share / "man/man1/httpware.1.gz", packed(manual(release)))
    write(share / "man/man5/httpware.yaml.5.gz", packed(file_manual(release)))
    # Debian's zsh looks for those of packages in a folder of their own.
    functions = "vendor-completions" if prefix else "site-functions"
    for shell, place in (("bash", "bash-completion/completions/httpware"), ("zsh", f"zsh/{functions}/_httpware"),
                         ("fish", "fish/vendor_completions.d/httpware.fish")):
        script = run(release.binary, "--generate-completion-script", shell)
        write(share / place, re.sub(r"\A#!.*\n", "", script) if shell == "bash" else script)
    own = share / "doc/httpware"
    documents(own)
    write(own / "LICENSES.gz", packed(licenses(release)))
    write(own / "examples/service.yaml", (TEMPLATES / "httpware.yaml").read_bytes())


def units(root: Path, program: str, has_user: bool = False) -> None:
    """The units; where there is no user for the service, systemd makes one."""
    for name in ("httpware.service", "httpware.socket"):
        text = (HERE / "systemd" / name).read_text().replace("/usr/local/bin/httpware", program)
        text = text.replace("Documentation=man:systemd.socket(5)", "Documentation=man:httpware(1) man:httpware.yaml(5)")
        write(root / "lib/systemd/system" / name, text.replace("DynamicUser=yes", "User=httpware\nGroup=httpware") if has_user else text)


def standalone(release: Release, root: Path, place: str) -> None:
    """All files, for a machine without packages: the program will be in bin of a place."""
    stage(release, root, prefix="")
    units(root, f"{place}/bin/httpware")
    write(root / "share/doc/httpware/LICENSE", (SOURCE / "LICENSE").read_bytes())


def deb(release: Release, out: Path, architecture: str) -> tuple[Path, str]:
    with tempfile.TemporaryDirectory() as folder:
        root, version, epoch = Path(folder) / "root", release.version, release.epoch
        stage(release, root)
        units(root, "/usr/bin/httpware", has_user=True)
        write(root / "etc/httpware/httpware.yaml", (TEMPLATES / "httpware.yaml").read_bytes())
        own = root / "usr/share/doc/httpware"
        write(own / "copyright", copyright(release))
        # The reader of YAML comes with its Swift package.
        write(root / "usr/share/lintian/overrides/httpware", "httpware: embedded-library libyaml *\n")
        stamp = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
        maintainer = re.search(r"^Maintainer: (.*)$", (TEMPLATES / "control").read_text(), re.M)[1]
        write(own / "changelog.gz", packed(
            f"httpware ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {maintainer}  {stamp}\n"))
        # dpkg-shlibdeps wants a source package around it.
        write(Path(folder) / "debian/control", f"Source: httpware\nMaintainer: {maintainer}\n\nPackage: httpware\nArchitecture: any\n")
        found = run("dpkg-shlibdeps", "-O", "-e", root / "usr/bin/httpware", cwd=folder, stderr=subprocess.DEVNULL)
        depends = re.search(r"shlibs:Depends=(.*)", found)[1]
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        control = (TEMPLATES / "control").read_text()
        for name, value in (("VERSION", version), ("ARCHITECTURE", architecture), ("SIZE", str(size)), ("DEPENDS", depends)):
            control = control.replace(f"@{name}@", value)
        write(root / "DEBIAN/control", control)
        write(root / "DEBIAN/conffiles", "/etc/httpware/httpware.yaml\n")
        sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
                       for path in sorted(root.rglob("*")) if path.is_file() and path.relative_to(root).parts[0] not in ("DEBIAN", "etc"))
        write(root / "DEBIAN/md5sums", sums)
        for name in ("postinst", "prerm", "postrm"):
            write(root / "DEBIAN" / name, (TEMPLATES / name).read_bytes(), 0o755)
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        target = out / f"httpware_{version}_{architecture}.deb"
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, target, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)})
        return target, depends


def archive(root: Path, target: Path, epoch: int, prefix: str = "") -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = epoch
        return info

    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, prefix + str(path.relative_to(root)), recursive=False, filter=plain)


def portable(release: Release, root: Path) -> None:
    """All files and the C libraries, for a Linux of any kind."""
    standalone(release, root, "/usr/local")
    put_beside(root / "bin/httpware", libraries(release.binary))
    texts(release.binary, root / "share/doc/httpware/libraries")


def texts(binary: Path, folder: Path) -> None:
    """The copyrights of the C libraries that go along."""
    for name, _ in debian_packages(binary):
        text = Path("/usr/share/doc") / name / "copyright"
        if text.exists():
            write(folder / f"{name}.copyright.gz", packed(text.read_bytes()))


def image(release: Release, root: Path, bill: str) -> None:
    """The root of the container image, as the last stage of the Dockerfile has it, and what is in it."""
    write(root / "usr/bin/httpware", release.binary.read_bytes(), 0o755)
    for library in libraries(release.binary):
        place, file = root / str(library).lstrip("/"), library.resolve()
        write(place.with_name(file.name), file.read_bytes(), 0o755)
        if file.name != place.name:
            place.symlink_to(file.name)
    write(root / "etc/ssl/certs/ca-certificates.crt", Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
    write(root / "etc/passwd", "httpware:x:10001:10001::/:\n")
    write(root / "etc/group", "httpware:x:10001:\n")
    write(root / "etc/httpware/httpware.yaml", (SOURCE / "conf/sidecar.yaml").read_bytes())
    own = root / "usr/share/doc/httpware"
    write(own / "httpware.spdx.json", bill)
    write(own / "LICENSE", (SOURCE / "LICENSE").read_bytes())
    write(own / "LICENSES.gz", packed(licenses(release)))
    texts(release.binary, own / "libraries")


def debian_packages(binary: Path) -> list[tuple[str, str]]:
    """The packages of the C libraries that the program loads, with their versions."""
    names = set()
    for library in libraries(binary):
        for path in (library, Path("/usr") / str(library).lstrip("/"), library.resolve()):
            said = subprocess.run(["dpkg-query", "--search", path], capture_output=True, text=True).stdout
            if said:
                names.add(said.split(":")[0])
                break
    return sorted((name, run("dpkg-query", "--show", "--showformat=${Version}", name)) for name in names)


def forget(binary: Path) -> None:
    """Overwrites the hashes of what was compiled: they depend on the folder, and only the compiler reads them."""
    if row := re.search(r" \.swift_modhash +PROGBITS +\w+ (\w+) (\w+) ", run("readelf", "--section-headers", "--wide", binary)):
        with open(binary, "r+b") as file:
            file.seek(int(row[1], 16))
            file.write(bytes(int(row[2], 16)))


# MARK: Trying it


class Debian:
    """A bare Debian in a folder."""

    def __init__(self, root: Path, base: Path | None):
        self.root = root
        if base and (base / "etc/debian_version").exists():
            run("cp", "-a", f"{base}/.", root)
        else:
            run("debootstrap", "--variant=minbase", "bookworm", root)
            if base:
                run("cp", "-a", root, base)
        # A temporary folder is its owner's alone, which the package's user is not.
        root.chmod(0o755)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        for name in ("sources.list", "apt.conf", "apt.conf.d", "sources.list.d", "trusted.gpg.d"):
            place = Path("/etc/apt") / name
            if place.is_dir():
                shutil.copytree(place, root / "etc/apt" / name, dirs_exist_ok=True)
            elif place.exists():
                shutil.copy(place, root / "etc/apt" / name)
        run("mount", "--bind", "/proc", root / "proc")

    def run(self, script: str) -> str:
        return run("chroot", self.root, "/bin/sh", "-ec", script, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def close(self) -> None:
        subprocess.run(["umount", self.root / "proc"])


def attempt(package: Path, base: Path | None) -> None:
    folder = Path(tempfile.mkdtemp(prefix="httpware-debian-"))
    debian = Debian(folder, base)
    process = None
    try:
        shutil.copy(package, folder / "tmp/httpware.deb")
        debian.run("apt-get update -q")
        debian.run("apt-get install -y -q --no-install-recommends /tmp/httpware.deb")
        assert "httpware" in debian.run("httpware version")
        assert debian.run("httpware check -c /etc/httpware/httpware.yaml") is not None
        debian.run("getent passwd httpware && test -d /var/lib/httpware")
        process = subprocess.Popen(["chroot", "--userspec=httpware:httpware", folder, "/usr/bin/httpware", "run", "-c", "/etc/httpware/httpware.yaml"],
                                   stdout=subprocess.DEVNULL)
        answer = urllib.request.urlopen("http://127.0.0.1:8080/hello", timeout=5).read() if eventually(lambda: accepts(8080), 10, every=0.1) else b""
        assert b"Hello" in answer, answer
        process.terminate()
        assert process.wait(30) == 0
        process = None
        # A changed configuration outlives an upgrade.
        debian.run("echo '# mine' >> /etc/httpware/httpware.yaml; apt-get install -y -q --reinstall --no-install-recommends /tmp/httpware.deb; grep -q mine /etc/httpware/httpware.yaml")
        debian.run("apt-get remove -y -q httpware; test ! -e /usr/bin/httpware; test -e /etc/httpware/httpware.yaml")
        debian.run("apt-get purge -y -q httpware; test ! -e /etc/httpware/httpware.yaml; test ! -e /var/lib/httpware")
        print("dist: installed, started, upgraded, removed and purged in a bare Debian")
    finally:
        if process:
            process.kill()
            process.wait()
        debian.close()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--binary", type=Path, required=True)
    options.add_argument("--out", type=Path, default=SOURCE / ".build-dist")
    options.add_argument("--install", type=Path)
    options.add_argument("--try", dest="tries", action="store_true")
    options.add_argument("--base", type=Path, help="a bare Debian that is kept for the next time")
    given = options.parse_args()
    built = given.binary.resolve()
    libraries(built)
    said = json.loads(run(built, "version", "--json"))
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", SOURCE, "log", "-1", "--format=%ct"))
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        release = Release(Path(folder) / "httpware", said["version"], said["commit"], epoch, packages(built))
        run("strip", "-o", release.binary, built)
        forget(release.binary)
        if given.install:
            return standalone(release, given.install, str(given.install.resolve()))
        make(release, given)


def make(release: Release, given: argparse.Namespace) -> None:
    architecture = run("dpkg", "--print-architecture").strip()
    debian = debian_packages(release.binary)
    out = given.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    package, depends = deb(release, out, architecture)
    print(f"dist: Depends: {depends}", file=sys.stderr)
    name = f"httpware-{release.version}-linux-{architecture}"
    contents = bill(release, debian)
    with tempfile.TemporaryDirectory() as folder:
        portable(release, Path(folder))
        archive(Path(folder), out / f"{name}.tar.gz", release.epoch, f"httpware-{release.version}/")
    with tempfile.TemporaryDirectory() as folder:
        image(release, Path(folder), contents)
        labels = {"org.opencontainers.image.version": release.version, "org.opencontainers.image.description": "An HTTP gateway and local debugging proxy, configured by files"}
        config = settings(HERE / "Dockerfile", {"HTTPWARE_COMMIT": release.commit})
        write_image(Path(folder), out / f"{name}-image.tar", config, config["Labels"] | labels, f"httpware:{release.version}", architecture, release.epoch)
    write(out / f"{name}.spdx.json", contents)
    files = sorted(path for path in out.iterdir())
    write(out / f"{name}.sha256", "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    if shutil.which("lintian"):
        found = subprocess.run(["lintian", "--fail-on", "error", "--tag-display-limit", "0", "--allow-root", package], text=True)
        if found.returncode:
            raise SystemExit("dist: lintian found errors")
    if given.tries:
        attempt(package, given.base)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
