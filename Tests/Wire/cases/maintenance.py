"""`httpware maintenance`, and refusals as programs and browsers get them."""

from __future__ import annotations

import json

from Rig.origins import OK, answering
from suite import Trial, case, check, eventually, expect_same, expect_status

from .command import NO
from .rules import Ruled

BROWSER = b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@case("maintenance: it is switched on, shown, kept across a reload, and switched off", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, answering(OK), middlewares="{ mock: { status: 418 }, if: { path: /tea } }")
    expect_same("at first", gateway.command("maintenance").strip(), "off")
    expect_status(gateway.ask(), 200)
    said = gateway.command("maintenance", "on", "--for", "30m", "--message", "We move.")
    check(said.startswith("on, until 2") and "We move" in said, said)
    for path in ("/", "/tea"):
        refusal = gateway.ask(path)
        expect_same("status", refusal.status, 503)
        check(1700 < int(refusal.get("Retry-After") or 0) <= 1801, "Retry-After", refusal.get("Retry-After"))
        expect_same("detail", json.loads(refusal.body)["detail"], "We move")
    page = gateway.ask("/", BROWSER)
    check(b"<p>We move.</p>" in page.body and "text/html" in (page.get("Content-Type") or ""), "no page", page.body)
    gateway.call("/v1/reload", "POST")
    expect_status(gateway.ask(), 503)
    expect_same("shown", gateway.call("/v1/maintenance")["message"], "We move")
    expect_same("off", gateway.command("maintenance", "off").strip(), "off")
    expect_status(gateway.ask(), 200)
    expect_status(gateway.ask("/tea"), 418)


@case("maintenance: it may apply to some routes and some clients, and may have an end", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, answering(OK))
    name = gateway.call("/v1/routes")["listeners"][0]["routes"][0]["name"]
    gateway.command("maintenance", "on", "--route", name, "--allow", "127.0.0.1")
    expect_status(gateway.ask(), 200)
    gateway.command("maintenance", "on", "--route", name, "--allow", "10.0.0.0/8")
    refusal = gateway.ask()
    expect_same("answer", (refusal.status, refusal.get("Retry-After")), (503, "60"))
    gateway.call("/v1/maintenance", "POST", {"on": True, "for": "300ms"})
    expect_status(gateway.ask(), 503)
    check(eventually(lambda: gateway.ask().status == 200, 5), "it does not end")
    expect_same("shown", gateway.call("/v1/maintenance"), {"on": False})


@case("maintenance: mistakes are reported, and change nothing", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, answering(OK))
    for body, word in [
        (b"", "JSON object"), ({}, "on"), ({"on": "yes"}, "on"), ({"on": True, "routes": ["nowhere"]}, "nowhere"),
        ({"on": True, "for": "31d"}, "for"), ({"on": True, "for": "1h", "until": "2030-01-01T00:00:00Z"}, "not both"),
        ({"on": True, "until": "2001-01-01T00:00:00Z"}, "until"), ({"on": True, "until": "tomorrow"}, "until"),
        ({"on": True, "allow": ["here"]}, "here"), ({"on": True, "message": "a\nb"}, "message"), ({"on": True, "mesage": "x"}, "mesage"),
        ({"on": False, "for": "1h"}, "nothing else"),
    ]:
        problem = gateway.call("/v1/maintenance", "POST", body, 400)
        check(word in problem["detail"], f"{body!r}: {problem}")
    expect_status(gateway.ask(), 200)


@case("RFC 9457: refusals have the ID of their exchange, which leads to its record", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, lambda connection: connection.close())
    refusal = gateway.ask("/gone")
    expect_same("status", refusal.status, 502)
    problem = json.loads(refusal.body)
    check(problem["type"] == "about:blank" and problem["title"] == "Bad Gateway" and problem["detail"], problem)
    check(eventually(lambda: any(one.get("exchange") == problem["id"] for one in gateway.call("/v1/requests"))), "not found by its id")
    page = gateway.ask("/gone", BROWSER)
    check(b"<h1>502 Bad Gateway</h1>" in page.body and b"<dt>Host</dt>" in page.body, page.body)
    expect_same("Vary", (page.get("Vary") or "").lower(), "accept")
