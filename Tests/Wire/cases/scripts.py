"""Scripts in Lua as an origin server and a client see their changes; their own tests go deeper."""

from __future__ import annotations

from Rig.origins import answering
from suite import Trial, check, expect_same, expect_status

from .chains import with_chain
from .fields import answer
from .refused_requests import head


def script(source: str) -> str:
    lines = "".join(f"            {line}\n" for line in source.strip("\n").split("\n"))
    return f"  test:\n    middlewares:\n      - script:\n          source: |\n{lines}"


@with_chain("script: the target, a field, the method and the content of a request change, and its length with them", script("""
return {
  content = { request = "64KiB" },
  request = function(req)
    req.fields["X-Tenant"] = req.host:match("^(%w+)")
    req.fields["X-Gone"] = nil
    req.path = "/acme" .. req.path
    req.method = "PUT"
    req.body = req.body .. "!"
  end,
}"""))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"Content-Length: 5", b"X-Gone: 1", start=b"POST /orders?x=1 HTTP/1.1") + b"hello"), 200)
    request = t.main.requests[0]
    expect_same("request", (request.method, request.target, request.body, request.get("X-Gone")), ("PUT", "/acme/orders?x=1", b"hello!", None))
    expect_same("framing", (request.all("Content-Length"), request.get("Transfer-Encoding")), (["6"], None))
    check(request.get("X-Tenant"), request)


@with_chain("script: an answer of its own has its status, fields and content, and nothing goes upstream", script("""
return { request = function(req) return { status = 410, fields = { ["X-Why"] = "old" }, text = "gone\\n" } end }"""))
def _(t: Trial, ask) -> None:
    response = ask(head())
    expect_status(response, 410)
    expect_same("response", (response.get("X-Why"), response.body, response.get("Content-Length")), ("old", b"gone\n", "5"))
    check(not t.main.received())
    response = ask(head(start=b"HEAD / HTTP/1.1"))
    expect_same("HEAD", (response.status, response.body, response.get("Content-Length")), (410, b"", "5"))


@with_chain("script: no value of a client can end a field line or begin another", script("""
return { request = function(req) req.fields["X-In"] = url.decode(req.query) end }"""))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(start=b"GET /?a%0d%0aX-Evil:%201 HTTP/1.1")), 500)
    check(not t.main.received())
    expect_status(ask(head(start=b"GET /?a%20b HTTP/1.1")), 200)
    expect_same("value", t.main.requests[0].get("X-In"), "a b")


@with_chain("script: content of a response changes, and its length, validators and coding with it", script("""
return {
  content = { response = "1MiB" },
  response = function(res) res.body = res.body:upper() res.status = 203 end,
}"""))
def _(t: Trial, ask) -> None:
    t.origin(answering(answer(b'ETag: "1"', b"Content-Range: bytes 0-1/2", content=b"text")))
    response = ask(head())
    expect_same("response", (response.status, response.body, response.get("Content-Length"), response.get("ETag"), response.get("Content-Range")),
                (203, b"TEXT", "4", None, None))


@with_chain("script: a failing script answers 500 without its reason upstream, and the next request is served", script("""
return { request = function(req) if req.path == "/bad" then local t = nil; return t.x end end }"""))
def _(t: Trial, ask) -> None:
    response = ask(head(start=b"GET /bad HTTP/1.1"))
    expect_status(response, 500)
    check(b"line" in response.body or b":1:" in response.body, "a client on this host learns the line", response.body)
    check(not t.main.received())
    expect_status(ask(head()), 200)


@with_chain("script: a script that fails open leaves the request as it was", script("""
return { failsOpen = true, request = function(req) req.fields["X-A"] = "1" req.path = "/other" error("no") end }"""))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(start=b"GET /p HTTP/1.1")), 200)
    expect_same("request", (t.main.requests[0].target, t.main.requests[0].get("X-A")), ("/p", None))


@with_chain("script: a note is in a field by its name", script("""
return { request = function(req, opt, x) x:note("tenant", "acme") end }""") + """      - requestHeaders: { set: { X-Tenant: "{note.tenant}" } }
""")
def _(t: Trial, ask) -> None:
    expect_status(ask(head()), 200)
    expect_same("field", t.main.requests[0].get("X-Tenant"), "acme")
