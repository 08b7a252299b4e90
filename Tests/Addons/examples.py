"""The trial over addons of others: each one runs unmodified with an exchange, or is refused with its reasons when it is loaded."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from suite import Failure, Gateway, request, response

FORM = [["Content-Type", "application/x-www-form-urlencoded"], ["Content-Length", "3"]]
PAGE = [["Content-Type", "text/html"], ["Content-Length", "60"], ["Set-Cookie", "a=b; Secure"]]
URLS = ("http://example.com/path", "http://example.org/a?b=c")
# Values for options without which an addon does nothing.
OPTIONS = {"options-configure.py": {"addheader": 5}, "options-simple.py": {"addheader": True}}


def tried(path: Path, folder: Path) -> tuple[bool, str]:
    """Whether an addon runs, and its answers or the reasons."""
    with contextlib.closing(Gateway(folder, path)) as gateway:
        try:
            wants = gateway.hello(**OPTIONS.get(path.name, {}))
            if "error" in wants:
                return False, wants["error"]
            seen = []
            for number, url in enumerate(URLS):
                body = "a=b" if "request" in wants.get("content", {}) else None
                page = "<html><head></head><body>foo</body></html>" if "response" in wants.get("content", {}) else None
                if wants["request"]:
                    seen.append(gateway.answer(request(url, "POST", [["Host", url.split("/")[2]], *FORM], body, exchange=f"x{number}")))
                if wants["response"]:
                    seen.append(gateway.answer(response(200, PAGE, page, url, exchange=f"x{number}")))
            changed = [str(answer) for answer in seen if answer]
            return True, "; ".join(dict.fromkeys(changed)) or "runs, and changes nothing"
        finally:
            gateway.stop()


def run(folder: Path) -> int:
    runs = refused = failed = 0
    files = sorted(folder.glob("*.py"))
    with tempfile.TemporaryDirectory(prefix="addons-") as scratch:
        for path in files:
            try:
                works, text = tried(path, Path(scratch))
                runs, refused = runs + works, refused + (not works)
                print(f"{'works  ' if works else 'refused'}  {path.name}: {text}", flush=True)
            except (Failure, OSError, ValueError) as fault:
                failed += 1
                print(f"FAILED  {path.name}: {fault}", flush=True)
    print(f"{runs} run, {refused} are refused with their reasons")
    print(f"{runs + refused} passed, {failed} failed")
    return 1 if failed or not files else 0
