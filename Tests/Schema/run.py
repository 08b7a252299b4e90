#!/usr/bin/env python3
"""`httpware schema` before a real validator: it takes every file in conf/, and refuses broken ones. Python 3.11.

    Tests/Schema/run.py --binary .build/release/httpware

The validator, jsonschema, and a reader of YAML 1.2, ruamel.yaml, come from PyPI into a virtual environment under .build,
unless this Python has them. Prints a line for each case that fails, and `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".build" / "schema-venv"
PACKAGES = ["jsonschema>=4.20,<5", "ruamel.yaml>=0.18,<1"]

GOOD = {
    "version": 1,
    "listeners": {"web": {"bind": "127.0.0.1:8080"}},
    "services": {"api": {"baseUrl": "http://127.0.0.1:3000"}},
    "routes": [{"service": "api", "chain": "c"}],
    "chains": {"c": {"middlewares": [{"bodyLimit": {"max": "1MiB"}}, "requestId"], "postwares": ["accessLog"]}},
}

# The change that is made to GOOD, and a word that the path or the message of the error has to hold.
BROKEN = {
    "an unknown noun": (lambda c: c.update(rutes=[]), "rutes"),
    "another version": (lambda c: c.update(version=2), "version"),
    "an unknown key of a listener": (lambda c: c["listeners"]["web"].update(tsl={}), "tsl"),
    "a listener without bind": (lambda c: c["listeners"]["web"].clear(), "bind"),
    "an address that is none": (lambda c: c["listeners"]["web"].update(bind=8080), "bind"),
    "a mode that is none": (lambda c: c["listeners"]["web"].update(mode="reversed"), "mode"),
    "a name with a space": (lambda c: c["listeners"].update({"a b": {"bind": "127.0.0.1:1"}}), "listeners"),
    "a port too large": (lambda c: c["listeners"]["web"].update(mode="forward", forward={"connectPorts": [70000]}), "connectPorts"),
    "a boolean that is a word": (lambda c: c["listeners"]["web"].update(mode="forward", forward={"denyPrivate": "yes"}), "denyPrivate"),
    "a byte count without a unit": (lambda c: c["listeners"]["web"].update(limits={"head": 65536}), "head"),
    "a byte count out of bounds": (lambda c: c["listeners"]["web"].update(limits={"head": "2MiB"}), "head"),
    "a service without a URL": (lambda c: c["services"]["api"].clear(), "api"),
    "a service with both kinds of URL": (lambda c: c["services"]["api"].update(endpoints=["http://a"]), "api"),
    "a URL of another scheme": (lambda c: c["services"]["api"].update(baseUrl="ftp://a"), "baseUrl"),
    "a duration without a unit": (lambda c: c["services"]["api"].update(timeouts={"connect": 5}), "connect"),
    "a duration with another unit": (lambda c: c["services"]["api"].update(timeouts={"connect": "5sec"}), "connect"),
    "a duration out of bounds": (lambda c: c["services"]["api"].update(timeouts={"connect": "25h"}), "connect"),
    "an unknown key in a map inside a map": (lambda c: c["services"]["api"].update(pool={"maxIdel": 4}), "maxIdel"),
    "a weight of none": (lambda c: c["services"].update(b={"endpoints": [{"url": "http://a", "weight": 0}]}), "endpoints"),
    "a route with nothing to answer": (lambda c: c.update(routes=[{}]), "routes"),
    "an unknown key of a route": (lambda c: c["routes"][0].update(servce="api"), "servce"),
    "a path that is none": (lambda c: c["routes"][0].update(match={"path": "users"}), "path"),
    "an unknown key of a match": (lambda c: c["routes"][0].update(match={"pth": "/a"}), "pth"),
    "an unknown option in a route's with": (lambda c: c["routes"][0].update({"with": {"bodyLimit": {"maxx": "1MiB"}}}), "with"),
    "true in a route's with": (lambda c: c["routes"][0].update({"with": {"bodyLimit": True}}), "with"),
    "an unknown list of a chain": (lambda c: c["chains"]["c"].update(middleware=[]), "middleware"),
    "an unknown ware": (lambda c: c["chains"]["c"]["middlewares"].append("bodyLimitt"), "middlewares"),
    "an unknown ware with options": (lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimitt": {}}), "middlewares"),
    "a ware by its name in another program": (lambda c: c["chains"]["c"]["postwares"].append({"gzip": {}}), "postwares"),
    "a postware among the middlewares": (lambda c: c["chains"]["c"]["middlewares"].append("accessLog"), "middlewares"),
    "a middleware among the postwares": (lambda c: c["chains"]["c"]["postwares"].append({"bodyLimit": {}}), "postwares"),
    "two wares in one entry": (lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimit": {}, "mock": {}}), "middlewares"),
    "an entry without a ware": (lambda c: c["chains"]["c"]["middlewares"].append({"as": "a"}), "middlewares"),
    "a key beside use": (lambda c: c["chains"]["c"]["middlewares"].append({"use": "d", "as": "a"}), "middlewares"),
    "an unknown option": (lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimit": {"maxx": "1MiB"}}), "middlewares"),
    "a wrong unit": (lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimit": {"max": "10 mb"}}), "middlewares"),
    "a status out of bounds": (lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimit": {"status": 200}}), "middlewares"),
    "a wrong word of an enumeration": (lambda c: c["chains"]["c"]["middlewares"].append({"forwarded": {"style": "x"}}), "middlewares"),
    "a ware without what it requires": (lambda c: c["chains"]["c"]["middlewares"].append("userAgent"), "middlewares"),
    "a field name that is none": (lambda c: c["chains"]["c"]["middlewares"].append({"requestHeaders": {"set": {"a b": "c"}}}), "middlewares"),
    "an order that is none": (lambda c: c["chains"]["c"]["middlewares"].append({"mock": {}, "order": "soon"}), "middlewares"),
    "a status in the if of a middleware": (lambda c: c["chains"]["c"]["middlewares"].append({"mock": {}, "if": {"status": 200}}), "middlewares"),
    "a status that is none in the if of a postware": (lambda c: c["chains"]["c"]["postwares"].append({"timeLog": {}, "if": {"status": "6xx"}}), "postwares"),
    "a share above one": (lambda c: c["chains"]["c"]["postwares"].append({"accessLog": {"sample": 1.5}}), "postwares"),
    "a level that is none": (lambda c: c.update(log={"level": "loud"}), "level"),
    "an option without the one that it needs": (lambda c: c["chains"]["c"]["middlewares"].append({"rewrite": {"path": {"regex": "a"}}}), "middlewares"),
    "an option without the value that it needs": (lambda c: c["chains"]["c"]["postwares"].append({"accessLog": {"fields": ["A"], "format": "combined"}}), "postwares"),
    "a value without the option that it needs": (lambda c: c["services"]["api"].update(balance="hash"), "api"),
    "an option that has no effect with a value": (lambda c: c["chains"]["c"]["middlewares"].append({"fault": {"abort": True, "status": 500}}), "middlewares"),
    "an option that has no effect with the default of another": (lambda c: c["listeners"]["web"].update(forward={}), "web"),
    "an option that has no effect with another": (lambda c: c["chains"]["c"]["middlewares"].append({"mock": {"body": "a", "sequence": [{"status": 500}]}}), "middlewares"),
    "two options that exclude each other": (lambda c: c["chains"]["c"]["middlewares"].append({"mock": {"body": "a", "json": 1}}), "middlewares"),
    "none of the options of which one is needed": (lambda c: c["chains"]["c"]["middlewares"].append({"timeout": {"status": 504}}), "middlewares"),
    "a ware that needs one of its options, by its name": (lambda c: c["chains"]["c"]["middlewares"].append("ipRule"), "middlewares"),
    "a list without members where some are needed": (lambda c: c["services"].update(b={"endpoints": []}), "endpoints"),
    "a map inside a map without what it requires": (lambda c: c["services"]["api"].update(healthCheck={}), "healthCheck"),
    "a log output that is none": (lambda c: c.update(log={"output": "printer"}), "output"),
}

# Unusual configurations that are right.
TAKEN = {
    "nothing but the smallest file": lambda c: c.pop("chains") and c["routes"][0].pop("chain"),
    "empty maps and lists": lambda c: c.update(log=None, include=None, chains={"c": {"middlewares": None, "postwares": [{"timeLog": None}]}}),
    "one value where a list is expected": lambda c: c["routes"][0].update(match={"path": "/a", "method": "GET", "headers": {"A": "b"}}),
    "a variable in place of any value": lambda c: c["listeners"]["web"].update(bind="${B}", mode="${M:-reverse}", limits={"head": "${H}", "fieldLines": "${N}"}),
    "a variable in an option": lambda c: c["chains"]["c"]["middlewares"].append({"bodyLimit": {"max": "${MAX:-10MiB}", "status": "${S}"}}),
    "a number in quotes": lambda c: c["listeners"]["web"].update(limits={"fieldLines": "100"}),
    "texts that look like something else": lambda c: c["chains"]["c"]["middlewares"].extend([{"mock": {"body": 5}}, {"mock": {"json": [1, None, {"a": True}]}}]),
    "every way to write statuses": lambda c: c["chains"]["c"]["postwares"].append({"errorPage": {"statuses": [404, "5xx", "500-599", "${S}"]}}),
    "a percentage, and a share": lambda c: c["chains"]["c"]["postwares"].extend([{"accessLog": {"sample": "12.5%"}}, {"accessLog": {"sample": 0.5}}]),
    "required fields as a list and as a map": lambda c: c["chains"]["c"]["middlewares"].extend([{"requiredHeaders": {"headers": ["A"]}}, {"requiredHeaders": {"headers": {"A": "^b$"}}}]),
    "labels and false in a route's with": lambda c: c["routes"][0].update({"with": {"label": {"max": 1}, "other": False, "userAgent": {"mode": "append"}}}),
    "an alias of a chain and common keys": lambda c: c["chains"]["c"]["middlewares"].extend([{"use": "d"}, {"mock": {}, "if": {"path": "/a"}, "as": "m", "order": "late"}]),
    "a condition of a postware": lambda c: c["chains"]["c"]["postwares"].append({"timeLog": {}, "if": {"status": [200, "4xx"], "responder": "upstream"}}),
    "a Unix socket and an IPv6 address": lambda c: c["listeners"].update(a={"bind": "unix:/run/x"}, b={"bind": "[::1]:80"}, c={"bind": "localhost:80"}),
    "a variable where another option needs a value": lambda c: c["chains"]["c"]["postwares"].append({"accessLog": {"fields": ["A"], "format": "${F:-json}"}}),
    "options that go together": lambda c: c["chains"]["c"]["middlewares"].extend([{"rewrite": {"path": {"regex": "a", "to": "b"}}}, {"fault": {"abort": False, "status": 500}}]),
    "a part of what belongs together in a route's with": lambda c: c["routes"][0].update({"with": {"other": {"to": "x"}}}),
    "endpoints as texts and as maps": lambda c: c["services"].update(b={"endpoints": ["http://a", {"url": "http://b", "weight": 3}]}),
}


def with_packages() -> None:
    """Starts again in a Python that has the packages, where this one has not."""
    try:
        import jsonschema  # noqa: F401
        import ruamel.yaml  # noqa: F401
        return
    except ImportError:
        pass
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT or os.environ.get("SCHEMA_VENV"):
        sys.exit("schema: the packages are installed and cannot be imported")
    has = python.exists() and subprocess.run([python, "-c", "import jsonschema, ruamel.yaml"], capture_output=True).returncode == 0
    if not has:
        for command in ([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)],
                        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]):
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if result.returncode:
                print(f"schema: cannot get {' and '.join(PACKAGES)} from PyPI: {(result.stderr or result.stdout)[-400:]}\n0 passed, 1 failed")
                sys.exit(1)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "SCHEMA_VENV": "1"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / ".build/release/httpware"))
    options = parser.parse_args()
    with_packages()
    from jsonschema import Draft202012Validator
    from ruamel.yaml import YAML

    schema = json.loads(subprocess.run([options.binary, "schema"], capture_output=True, check=True, timeout=30).stdout)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    passed, failed = 0, []

    def mistakes(document: object) -> list[str]:
        """Where each mistake is, and what it says; those of alternatives too."""
        found = []
        for error in validator.iter_errors(document):
            words = [str(part) for part in error.absolute_path] + [error.message]
            found.append(" ".join(words))
        return found

    def checked(text: str) -> int:
        """The exit status of `httpware check`."""
        return subprocess.run([options.binary, "check", "-c", "-"], input=text, capture_output=True, text=True, timeout=30).returncode

    def judge(name: str, problem: str | None) -> None:
        nonlocal passed
        if problem is None:
            passed += 1
        else:
            failed.append(name)
            print(f"FAILED  {name}: {problem[:600]}")

    files = sorted(file for file in (ROOT / "conf").rglob("*.yaml") if not file.name.endswith(".test.yaml"))
    judge("there are files in conf/", None if len(files) > 15 else f"only {len(files)}")
    for path in files:
        found = mistakes(YAML(typ="safe", pure=True).load(path.read_text()))
        judge(f"{path.relative_to(ROOT)} is valid", "; ".join(found) or None)
    for name, change in TAKEN.items():
        document = copy.deepcopy(GOOD)
        change(document)
        judge(f"taken: {name}", "; ".join(mistakes(document)) or None)
    for name, (change, word) in BROKEN.items():
        document = copy.deepcopy(GOOD)
        change(document)
        found = mistakes(document)
        problem = None if any(word in text for text in found) else f"{word} is not in {found}"
        if problem is None and checked(json.dumps(document)) != 1:
            problem = "httpware check takes it"
        judge(f"refused: {name}", problem)
    # The schema has to accept the configurations that check accepts: those of the Swift tests, as far as the real wares go.
    for path in sorted((ROOT / "Tests/GatewayConfigTests/Cases").glob("*.txt")):
        text = path.read_text().split("\n----------\n")[0]
        if "\n=== " not in text and checked(text) == 0:
            judge(f"{path.name} is valid", "; ".join(mistakes(YAML(typ="safe", pure=True).load(text))) or None)
    judge("the good one is valid", "; ".join(mistakes(GOOD)) or None)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
