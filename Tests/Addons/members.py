"""The members of flows, requests, responses and filters: each is read or written as mitmproxy has it."""

from __future__ import annotations

from suite import Trial, case, content, expect

FIELDS = [["Host", "example.com"], ["Cookie", 'a=b; c="d e"; x; y='], ["X-A", "1"], ["x-a", "2"]]
COOKIES = [["Set-Cookie", "a=b; Path=/; HttpOnly"], ["Set-Cookie", 's="q w"; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=1']]
PARTS = (b'--XX\r\nContent-Disposition: form-data; name="k"\r\n\r\nv\r\n--XX\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n'
         b"Content-Type: text/plain\r\n\r\nl1\r\nl2\r\n--XX--\r\n")

# The name of an exchange: method, URL, fields and content of the request; status, fields and content of the response.
EXCHANGES = {
    "get": ("GET", "http://example.com/a/b%20c/?q=1&q=2&e=&f", FIELDS, b""),
    "port": ("GET", "https://example.com:8443/p;x=1?noeq", [["Host", "other.org:81"], ["Accept-Encoding", "gzip, foo"], ["If-None-Match", "x"]], b""),
    "ip6": ("GET", "http://[::1]:8080/", [["Host", "[::1]:8080"]], b""),
    "form": ("POST", "http://h/", [["Host", "h"], ["Content-Type", "application/x-www-form-urlencoded"], ["Content-Length", "9"]], b"a=1&b=%20+x&c="),
    "multi": ("POST", "http://h/", [["Host", "h"], ["Content-Type", "multipart/form-data; boundary=XX"]], PARTS),
    "json": ("POST", "http://h/", [["Content-Type", "application/json"], ["Content-Length", "7"]], '{"a":"é"}'.encode(), 200, [["Content-Type", "application/json"]], b"[1, 2]"),
    "html": ("GET", "http://h/x.html", [["Host", "h"]], b"", 200, [["Content-Type", "text/html; charset=iso-8859-1"], ["Content-Length", "4"], *COOKIES], "hé".encode("latin-1")),
    "plain": ("GET", "http://h/", [], b"", 404, [["Content-Type", "text/plain"]], "grün".encode()),
    "notype": ("GET", "http://h/", [], b"", 200, [], b"\xff\xfe"),
    "meta": ("GET", "http://h/", [], b"", 200, [["Content-Type", "text/html"]], b'<meta charset="latin-1">\xe9'),
    "css": ("GET", "http://h/", [], b"", 200, [["Content-Type", "text/css"]], b'@charset "iso-8859-1";\xe9'),
    "xml": ("GET", "http://h/", [], b"", 200, [["Content-Type", "text/xml"]], "<a>é</a>".encode()),
    "js": ("GET", "http://h/", [], b"", 200, [["Content-Type", "application/javascript"]], "é".encode()),
    "badcs": ("GET", "http://h/", [], b"", 200, [["Content-Type", "text/html; charset=nope"]], "é".encode()),
}

# The exchange; statements over its flow `f`, request `r` and response `s`; an expression; and its value, or the exception.
MEMBERS = [
    ("get", "", "r.url", "'http://example.com/a/b%20c/?q=1&q=2&e=&f'"),
    ("get", "", "r.host", "'example.com'"),
    ("get", "", "r.port", "80"),
    ("get", "", "r.path", "'/a/b%20c/?q=1&q=2&e=&f'"),
    ("get", "", "r.scheme", "'http'"),
    ("get", "", "r.pretty_url", "'http://example.com/a/b%20c/?q=1&q=2&e=&f'"),
    ("get", "", "r.pretty_host", "'example.com'"),
    ("get", "", "r.host_header", "'example.com'"),
    ("get", "", "r.authority", "''"),
    ("get", "", "r.path_components", "('a', 'b c')"),
    ("get", "", "list(r.query.items(multi=True))", "[('q', '1'), ('q', '2'), ('e', ''), ('f', '')]"),
    ("get", "", "dict(r.query)", "{'q': '1', 'e': '', 'f': ''}"),
    ("get", "", "r.method", "'GET'"),
    ("get", "", "r.http_version", "'HTTP/1.1'"),
    ("get", "", "r.is_http11", "True"),
    ("get", "", "r.is_http2", "False"),
    ("get", "", "dict(r.headers)", "{'Host': 'example.com', 'Cookie': 'a=b; c=\"d e\"; x; y=', 'X-A': '1, 2'}"),
    ("get", "", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'1'), (b'x-a', b'2'))"),
    ("get", "", "len(r.headers)", "3"),
    ("get", "", "list(r.headers)", "['Host', 'Cookie', 'X-A']"),
    ("get", "", "r.content", "b''"),
    ("get", "", "r.text", "''"),
    ("get", "", "r.raw_content", "b''"),
    ("get", "", "str(bytes(r.headers))", "'b\\'Host: example.com\\\\r\\\\nCookie: a=b; c=\"d e\"; x; y=\\\\r\\\\nX-A: 1\\\\r\\\\nx-a: 2\\\\r\\\\n\\''"),
    ("get", "r.query['n']='v w&'", "r.path", "'/a/b%20c/?q=1&q=2&e=&f=&n=v+w%26'"),
    ("get", "r.query['q']='3'", "r.path", "'/a/b%20c/?q=3&e=&f='"),
    ("get", "del r.query['q']", "r.path", "'/a/b%20c/?e=&f='"),
    ("get", "r.query=[('a','b'),('a','')]", "r.path", "'/a/b%20c/?a=b&a='"),
    ("get", "r.query={}", "r.path", "'/a/b%20c/'"),
    ("get", "r.query.add('q','9')", "r.path", "'/a/b%20c/?q=1&q=2&e=&f=&q=9'"),
    ("get", "r.query.clear()", "r.path", "'/a/b%20c/'"),
    ("get", "", "r.query.get('zz','d')", "'d'"),
    ("get", "", "'q' in r.query", "True"),
    ("get", "", "r.query.get_all('q')", "['1', '2']"),
    ("get", "r.host='new.org'", "r.url,r.headers.get('host'),r.pretty_url", "('http://new.org/a/b%20c/?q=1&q=2&e=&f', 'new.org', 'http://new.org/a/b%20c/?q=1&q=2&e=&f')"),
    ("get", "r.port=99", "r.url,r.headers.get('host')", "('http://example.com:99/a/b%20c/?q=1&q=2&e=&f', 'example.com:99')"),
    ("get", "r.scheme='https'", "r.url,r.pretty_url", "('https://example.com:80/a/b%20c/?q=1&q=2&e=&f', 'https://example.com/a/b%20c/?q=1&q=2&e=&f')"),
    ("get", "r.url='https://z.org/x?y'", "r.url,r.headers.get('host'),r.port,r.path", "('https://z.org/x?y', 'z.org', 443, '/x?y')"),
    ("get", "r.url='nope'", "r.url", "RAISES ValueError"),
    ("get", "r.path='/n?m'", "r.url", "'http://example.com/n?m'"),
    ("get", "r.path_components=['a b','c/d']", "r.path", "'/a%20b/c%2Fd?q=1&q=2&e=&f'"),
    ("get", "r.host_header='hh:1'", "r.headers.get('host'),r.pretty_url,r.pretty_host", "('hh:1', 'http://hh:1/a/b%20c/?q=1&q=2&e=&f', 'hh')"),
    ("get", "r.host_header=None", "dict(r.headers)", "{'Cookie': 'a=b; c=\"d e\"; x; y=', 'X-A': '1, 2'}"),
    ("get", "r.method='PUT'", "r.method", "'PUT'"),
    ("get", "r.method=b'PUT'", "r.method", "'PUT'"),
    ("get", "r.host=b'q.org'", "r.url", "'http://q.org/a/b%20c/?q=1&q=2&e=&f'"),
    ("get", "r.host='bücher.de'", "r.url,r.host", "('http://xn--bcher-kva.de/a/b%20c/?q=1&q=2&e=&f', 'xn--bcher-kva.de')"),
    ("get", "r.path='/é'", "r.path", "'/%C3%A9'"),
    ("get", "r.anticache()", "dict(r.headers)", "{'Host': 'example.com', 'Cookie': 'a=b; c=\"d e\"; x; y=', 'X-A': '1, 2'}"),
    ("get", "r.anticomp()", "dict(r.headers)", "{'Host': 'example.com', 'Cookie': 'a=b; c=\"d e\"; x; y=', 'X-A': '1, 2', 'Accept-Encoding': 'identity'}"),
    ("get", "r.constrain_encoding()", "dict(r.headers)", "{'Host': 'example.com', 'Cookie': 'a=b; c=\"d e\"; x; y=', 'X-A': '1, 2'}"),
    ("get", "", "list(r.cookies.items(multi=True))", "[('a', 'b'), ('c', 'd e'), ('x', ''), ('y', '')]"),
    ("get", "r.cookies['a']='z'", "r.headers.get('cookie')", "'a=z; c=\"d e\"; x=; y='"),
    ("get", "r.cookies={'n':'m'}", "r.headers.get('cookie')", "'n=m'"),
    ("get", "del r.cookies['a']", "r.headers.get('cookie')", "'c=\"d e\"; x=; y='"),
    ("get", "r.cookies['w']='a b;c'", "r.headers.get('cookie')", "'a=b; c=\"d e\"; x=; y=; w=\"a b;c\"'"),
    ("get", "", "r.headers['X-A']", "'1, 2'"),
    ("get", "", "r.headers.get_all('x-a')", "['1', '2']"),
    ("get", "r.headers['x-a']='9'", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'9'))"),
    ("get", "r.headers.add('X-A','3')", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'1'), (b'x-a', b'2'), (b'X-A', b'3'))"),
    ("get", "r.headers.set_all('X-A',['7','8','9'])", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'7'), (b'x-a', b'8'), (b'X-A', b'9'))"),
    ("get", "r.headers.set_all('X-A',['7'])", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'7'))"),
    ("get", "r.headers.insert(0,'F','v')", "r.headers.fields", "((b'F', b'v'), (b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'1'), (b'x-a', b'2'))"),
    ("get", "del r.headers['x-a']", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='))"),
    ("get", "r.headers.pop('x-a')", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='))"),
    ("get", "", "r.headers.pop('none',5)", "5"),
    ("get", "", "del r.headers['none']", "RAISES SyntaxError"),
    ("get", "", "r.headers['none']", "RAISES KeyError"),
    ("get", "", "'X-a' in r.headers", "True"),
    ("get", "", "b'x-a' in r.headers", "True"),
    ("get", "r.headers.update({'q':'w'})", "r.headers.fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'1'), (b'x-a', b'2'), (b'q', b'w'))"),
    ("get", "", "r.headers.setdefault('x-a','n')", "'1, 2'"),
    ("get", "", "list(r.headers.items(multi=True))", "[('Host', 'example.com'), ('Cookie', 'a=b; c=\"d e\"; x; y='), ('X-A', '1'), ('x-a', '2')]"),
    ("get", "", "list(r.headers.keys(multi=True))", "['Host', 'Cookie', 'X-A', 'x-a']"),
    ("get", "", "list(r.headers.values())", "['example.com', 'a=b; c=\"d e\"; x; y=', '1, 2']"),
    ("get", "r.headers['i']=5", "1", "RAISES TypeError"),
    ("get", "r.headers[b'bb']=b'v'", "r.headers['BB']", "'v'"),
    ("get", "r.headers['X-a']='n'", "list(r.headers)", "['Host', 'Cookie', 'X-A']"),
    ("get", "", "r.headers == r.headers.copy()", "True"),
    ("get", "", "r.headers.copy().fields", "((b'Host', b'example.com'), (b'Cookie', b'a=b; c=\"d e\"; x; y='), (b'X-A', b'1'), (b'x-a', b'2'))"),
    ("get", "r.headers=http.Headers(host='q',content_type='t')", "r.headers.fields", "((b'host', b'q'), (b'content-type', b't'))"),
    ("get", "", "http.Headers([(b'a',b'b')])['A']", "'b'"),
    ("get", "r.headers.clear()", "len(r.headers)", "0"),
    ("get", "", "r.headers.popitem()", "('Host', 'example.com')"),
    ("get", "", "f.copy().request.url", "'http://example.com/a/b%20c/?q=1&q=2&e=&f'"),
    ("get", "", "f.killable", "True"),
    ("get", "f.kill()", "str(f.error)", "'Connection killed.'"),
    ("get", "", "f.marked", "''"),
    ("get", "", "f.comment", "''"),
    ("get", "", "f.metadata", "{}"),
    ("get", "", "f.is_replay", "None"),
    ("get", "", "f.type", "'http'"),
    ("get", "", "f.websocket", "None"),
    ("get", "", "f.intercepted", "False"),
    ("get", "", "f.live", "True"),
    ("port", "", "r.url", "'https://example.com:8443/p;x=1?noeq'"),
    ("port", "", "r.port", "8443"),
    ("port", "", "r.path", "'/p;x=1?noeq'"),
    ("port", "", "r.scheme", "'https'"),
    ("port", "", "r.pretty_url", "'https://other.org:81/p;x=1?noeq'"),
    ("port", "", "r.pretty_host", "'other.org'"),
    ("port", "", "r.host_header", "'other.org:81'"),
    ("port", "", "r.path_components", "('p',)"),
    ("port", "", "list(r.query.items(multi=True))", "[('noeq', '')]"),
    ("port", "", "dict(r.query)", "{'noeq': ''}"),
    ("port", "", "dict(r.headers)", "{'Host': 'other.org:81', 'Accept-Encoding': 'gzip, foo', 'If-None-Match': 'x'}"),
    ("port", "", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'))"),
    ("port", "", "list(r.headers)", "['Host', 'Accept-Encoding', 'If-None-Match']"),
    ("port", "", "str(bytes(r.headers))", "\"b'Host: other.org:81\\\\r\\\\nAccept-Encoding: gzip, foo\\\\r\\\\nIf-None-Match: x\\\\r\\\\n'\""),
    ("port", "r.query['n']='v w&'", "r.path", "'/p;x=1?noeq=&n=v+w%26'"),
    ("port", "r.query['q']='3'", "r.path", "'/p;x=1?noeq=&q=3'"),
    ("port", "del r.query['q']", "r.path", "RAISES KeyError"),
    ("port", "r.query=[('a','b'),('a','')]", "r.path", "'/p;x=1?a=b&a='"),
    ("port", "r.query={}", "r.path", "'/p;x=1'"),
    ("port", "r.query.add('q','9')", "r.path", "'/p;x=1?noeq=&q=9'"),
    ("port", "r.query.clear()", "r.path", "'/p;x=1'"),
    ("port", "", "'q' in r.query", "False"),
    ("port", "", "r.query.get_all('q')", "[]"),
    ("port", "r.host='new.org'", "r.url,r.headers.get('host'),r.pretty_url", "('https://new.org:8443/p;x=1?noeq', 'new.org:8443', 'https://new.org:8443/p;x=1?noeq')"),
    ("port", "r.port=99", "r.url,r.headers.get('host')", "('https://example.com:99/p;x=1?noeq', 'example.com:99')"),
    ("port", "r.scheme='https'", "r.url,r.pretty_url", "('https://example.com:8443/p;x=1?noeq', 'https://other.org:81/p;x=1?noeq')"),
    ("port", "r.path='/n?m'", "r.url", "'https://example.com:8443/n?m'"),
    ("port", "r.path_components=['a b','c/d']", "r.path", "'/a%20b/c%2Fd;x=1?noeq'"),
    ("port", "r.host_header='hh:1'", "r.headers.get('host'),r.pretty_url,r.pretty_host", "('hh:1', 'https://hh:1/p;x=1?noeq', 'hh')"),
    ("port", "r.host_header=None", "dict(r.headers)", "{'Accept-Encoding': 'gzip, foo', 'If-None-Match': 'x'}"),
    ("port", "r.host=b'q.org'", "r.url", "'https://q.org:8443/p;x=1?noeq'"),
    ("port", "r.host='bücher.de'", "r.url,r.host", "('https://xn--bcher-kva.de:8443/p;x=1?noeq', 'xn--bcher-kva.de')"),
    ("port", "r.anticache()", "dict(r.headers)", "{'Host': 'other.org:81', 'Accept-Encoding': 'gzip, foo'}"),
    ("port", "r.anticomp()", "dict(r.headers)", "{'Host': 'other.org:81', 'Accept-Encoding': 'identity', 'If-None-Match': 'x'}"),
    ("port", "r.constrain_encoding()", "dict(r.headers)", "{'Host': 'other.org:81', 'Accept-Encoding': 'gzip', 'If-None-Match': 'x'}"),
    ("port", "", "list(r.cookies.items(multi=True))", "[]"),
    ("port", "r.cookies['a']='z'", "r.headers.get('cookie')", "'a=z'"),
    ("port", "del r.cookies['a']", "r.headers.get('cookie')", "RAISES KeyError"),
    ("port", "r.cookies['w']='a b;c'", "r.headers.get('cookie')", "'w=\"a b;c\"'"),
    ("port", "", "r.headers['X-A']", "RAISES KeyError"),
    ("port", "", "r.headers.get_all('x-a')", "[]"),
    ("port", "r.headers['x-a']='9'", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'), (b'x-a', b'9'))"),
    ("port", "r.headers.add('X-A','3')", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'), (b'X-A', b'3'))"),
    ("port", "r.headers.set_all('X-A',['7','8','9'])", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'), (b'X-A', b'7'), (b'X-A', b'8'), (b'X-A', b'9'))"),
    ("port", "r.headers.set_all('X-A',['7'])", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'), (b'X-A', b'7'))"),
    ("port", "r.headers.insert(0,'F','v')", "r.headers.fields", "((b'F', b'v'), (b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'))"),
    ("port", "del r.headers['x-a']", "r.headers.fields", "RAISES KeyError"),
    ("port", "r.headers.pop('x-a')", "r.headers.fields", "RAISES KeyError"),
    ("port", "", "'X-a' in r.headers", "False"),
    ("port", "", "b'x-a' in r.headers", "False"),
    ("port", "r.headers.update({'q':'w'})", "r.headers.fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'), (b'q', b'w'))"),
    ("port", "", "r.headers.setdefault('x-a','n')", "'n'"),
    ("port", "", "list(r.headers.items(multi=True))", "[('Host', 'other.org:81'), ('Accept-Encoding', 'gzip, foo'), ('If-None-Match', 'x')]"),
    ("port", "", "list(r.headers.keys(multi=True))", "['Host', 'Accept-Encoding', 'If-None-Match']"),
    ("port", "", "list(r.headers.values())", "['other.org:81', 'gzip, foo', 'x']"),
    ("port", "r.headers['X-a']='n'", "list(r.headers)", "['Host', 'Accept-Encoding', 'If-None-Match', 'X-a']"),
    ("port", "", "r.headers.copy().fields", "((b'Host', b'other.org:81'), (b'Accept-Encoding', b'gzip, foo'), (b'If-None-Match', b'x'))"),
    ("port", "", "r.headers.popitem()", "('Host', 'other.org:81')"),
    ("port", "", "f.copy().request.url", "'https://example.com:8443/p;x=1?noeq'"),
    ("ip6", "", "r.host", "'::1'"),
    ("ip6", "", "len(r.headers)", "1"),
    ("form", "", "list(r.urlencoded_form.items(multi=True))", "[('a', '1'), ('b', '  x'), ('c', '')]"),
    ("form", "r.urlencoded_form['n']='é x'", "r.content,r.headers.fields", "(b'a=1&b=++x&c=&n=%C3%A9+x', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'Content-Length', b'23')))"),
    ("form", "r.urlencoded_form=[('foo','bar')]", "r.content,r.headers.fields", "(b'foo=bar', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'Content-Length', b'7')))"),
    ("form", "", "list(r.multipart_form.items(multi=True))", "[]"),
    ("form", "r.content=b'new'", "r.content,r.text,r.headers.fields", "(b'new', 'new', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'Content-Length', b'3')))"),
    ("form", "r.text='nü'", "r.content,r.headers.fields", "(b'n\\xfc', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'Content-Length', b'2')))"),
    ("form", "r.content=None", "r.content,r.text", "(None, None)"),
    ("form", "r.content='str'", "1", "RAISES TypeError"),
    ("form", "", "r.json()", "RAISES JSONDecodeError"),
    ("form", "del r.urlencoded_form['a']", "r.content", "b'b=++x&c='"),
    ("form", "r.encode('gzip')", "r.content,r.headers.get('content-encoding')", "(b'a=1&b=%20+x&c=', 'gzip')"),
    ("form", "r.decode()", "r.content", "b'a=1&b=%20+x&c='"),
    ("form", "r.encode('nope')", "1", "RAISES ValueError"),
    ("form", "r.encode('identity')", "r.content,r.headers.fields", "(b'a=1&b=%20+x&c=', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'Content-Length', b'14'), (b'content-encoding', b'identity')))"),
    ("multi", "", "list(r.urlencoded_form.items(multi=True))", "[]"),
    ("multi", "r.urlencoded_form['n']='é x'", "r.content,r.headers.fields", "(b'n=%C3%A9+x', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'content-length', b'10')))"),
    ("multi", "r.urlencoded_form=[('foo','bar')]", "r.content,r.headers.fields", "(b'foo=bar', ((b'Host', b'h'), (b'Content-Type', b'application/x-www-form-urlencoded'), (b'content-length', b'7')))"),
    ("multi", "", "list(r.multipart_form.items(multi=True))", "[(b'k', b'v'), (b'f', b'l1\\r\\nl2')]"),
    ("multi", "r.content=b'new'", "r.content,r.text,r.headers.fields", "(b'new', 'new', ((b'Host', b'h'), (b'Content-Type', b'multipart/form-data; boundary=XX'), (b'content-length', b'3')))"),
    ("multi", "r.text='nü'", "r.content,r.headers.fields", "(b'n\\xfc', ((b'Host', b'h'), (b'Content-Type', b'multipart/form-data; boundary=XX'), (b'content-length', b'2')))"),
    ("multi", "del r.urlencoded_form['a']", "r.content", "RAISES KeyError"),
    ("json", "", "r.json()", "{'a': 'é'}"),
    ("html", "", "s.status_code", "200"),
    ("html", "", "s.reason", "'OK'"),
    ("html", "", "s.text", "'hé'"),
    ("html", "", "s.get_text(strict=False)", "'hé'"),
    ("html", "", "s.content", "b'h\\xe9'"),
    ("html", "", "s.json()", "RAISES UnicodeDecodeError"),
    ("html", "", "s.get_content()", "b'h\\xe9'"),
    ("html", "s.set_text('q')", "s.content", "b'q'"),
    ("html", "s.status_code=500", "s.status_code,s.reason", "(500, 'Internal Server Error')"),
    ("html", "s.reason='Q'", "s.reason", "'Q'"),
    ("html", "", "s.http_version", "'HTTP/1.1'"),
    ("html", "", "list((k,v[0],v[1].fields) for k,v in s.cookies.items(multi=True))", "[('a', 'b', (('Path', '/'), ('HttpOnly', None))), ('s', 'q w', (('Expires', 'Wed, 21 Oct 2015 07:28:00 GMT'), ('Max-Age', '1')))]"),
    ("html", "", "s.headers['set-cookie']", "'a=b; Path=/; HttpOnly, s=\"q w\"; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=1'"),
    ("html", "", "s.headers.get_all('set-cookie')", "['a=b; Path=/; HttpOnly', 's=\"q w\"; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=1']"),
    ("html", "", "s.stream", "False"),
    ("html", "", "s.timestamp_start>0", "True"),
    ("html", "", "s.is_http11", "True"),
    ("plain", "", "s.status_code", "404"),
    ("plain", "", "s.reason", "'Not Found'"),
    ("plain", "", "s.text", "'grÃ¼n'"),
    ("plain", "", "s.get_text(strict=False)", "'grÃ¼n'"),
    ("plain", "", "s.content", "b'gr\\xc3\\xbcn'"),
    ("plain", "", "s.headers.fields", "((b'Content-Type', b'text/plain'),)"),
    ("plain", "s.text='x'", "s.content,s.headers.fields", "(b'x', ((b'Content-Type', b'text/plain'), (b'content-length', b'1')))"),
    ("plain", "s.text='€'", "s.content,s.headers.fields,s.text", "(b'\\xe2\\x82\\xac', ((b'Content-Type', b'text/plain; charset=utf-8'), (b'content-length', b'3')), '€')"),
    ("plain", "s.content=b'ab'", "s.headers.fields", "((b'Content-Type', b'text/plain'), (b'content-length', b'2'))"),
    ("plain", "", "s.json()", "RAISES JSONDecodeError"),
    ("plain", "", "s.get_content()", "b'gr\\xc3\\xbcn'"),
    ("plain", "", "list((k,v[0],v[1].fields) for k,v in s.cookies.items(multi=True))", "[]"),
    ("plain", "", "s.headers['set-cookie']", "RAISES KeyError"),
    ("plain", "", "s.headers.get_all('set-cookie')", "[]"),
    ("get", "", "http.Response.make().headers.fields", "((b'content-length', b'0'),)"),
    ("get", "", "http.Response.make(200,b'x',{'a':'b'}).headers.fields", "((b'a', b'b'), (b'content-length', b'1'))"),
    ("get", "", "http.Response.make(200,'é',{'Content-Type':'text/html'}).content", "b'\\xc3\\xa9'"),
    ("get", "", "http.Response.make(200,'é').content", "b'\\xe9'"),
    ("get", "", "http.Response.make(200,'é').headers.fields", "((b'content-length', b'1'),)"),
    ("get", "", "http.Response.make(200,b'x',[(b'a',b'b')]).headers.fields", "((b'a', b'b'), (b'content-length', b'1'))"),
    ("get", "", "http.Response.make(200,b'x',http.Headers(a='b')).headers.fields", "((b'a', b'b'), (b'content-length', b'1'))"),
    ("get", "", "http.Response.make(200,5)", "RAISES TypeError"),
    ("get", "", "http.Response.make(200,b'x',{'content-encoding':'gzip'}).content", "b'x'"),
    ("get", "", "http.Response.make(200,b'x',{b'a':b'b'}).headers.fields", "((b'a', b'b'), (b'content-length', b'1'))"),
    ("get", "", "http.Response.make(418).reason", "\"I'm a Teapot\""),
    ("get", "", "http.Response.make(499).reason", "''"),
    ("get", "", "http.Request.make('GET','http://a/b').headers.fields", "((b'content-length', b'0'),)"),
    ("get", "", "http.Request.make('GET','http://a:81/b?c',b'x',{'q':'r'}).url", "'http://a:81/b?c'"),
    ("get", "", "http.Request.make('GET','x').url", "RAISES ValueError"),
    ("get", "", "http.Response.make(204).content", "b''"),
    ("get", "", "http.Response.make(200).http_version", "'HTTP/1.1'"),
    ("get", "", "flowfilter.match('~u b',f)", "True"),
    ("html", "", "flowfilter.match('~u b',f)", "False"),
    ("get", "", "flowfilter.match('~u ZZ',f)", "False"),
    ("get", "", "flowfilter.match('example',f)", "True"),
    ("html", "", "flowfilter.match('example',f)", "False"),
    ("get", "", "flowfilter.match('~m get',f)", "True"),
    ("json", "", "flowfilter.match('~m get',f)", "False"),
    ("get", "", "flowfilter.match(\"~m 'G'\",f)", "True"),
    ("json", "", "flowfilter.match(\"~m 'G'\",f)", "False"),
    ("get", "", "flowfilter.match('~d EXAMPLE',f)", "True"),
    ("html", "", "flowfilter.match('~d EXAMPLE',f)", "False"),
    ("get", "", "flowfilter.match('~d exam.*com$',f)", "True"),
    ("html", "", "flowfilter.match('~d exam.*com$',f)", "False"),
    ("get", "", "flowfilter.match('~s',f)", "False"),
    ("html", "", "flowfilter.match('~s',f)", "True"),
    ("get", "", "flowfilter.match('~q',f)", "True"),
    ("html", "", "flowfilter.match('~q',f)", "False"),
    ("get", "", "flowfilter.match('!~q',f)", "False"),
    ("html", "", "flowfilter.match('!~q',f)", "True"),
    ("get", "", "flowfilter.match(\"~h 'X-A: 1'\",f)", "True"),
    ("html", "", "flowfilter.match(\"~h 'X-A: 1'\",f)", "False"),
    ("get", "", "flowfilter.match('~h ^x-a',f)", "True"),
    ("html", "", "flowfilter.match('~h ^x-a',f)", "False"),
    ("get", "", "flowfilter.match('~hq cookie',f)", "True"),
    ("html", "", "flowfilter.match('~hq cookie',f)", "False"),
    ("get", "", "flowfilter.match('~hs cookie',f)", "False"),
    ("html", "", "flowfilter.match('~hs cookie',f)", "True"),
    ("get", "", "flowfilter.match('~b hé',f)", "False"),
    ("get", "", "flowfilter.match('~bq x',f)", "False"),
    ("form", "", "flowfilter.match('~bq x',f)", "True"),
    ("get", "", "flowfilter.match('~bs x',f)", "False"),
    ("get", "", "flowfilter.match('~c 200',f)", "False"),
    ("html", "", "flowfilter.match('~c 200',f)", "True"),
    ("get", "", "flowfilter.match('~c 404',f)", "False"),
    ("get", "", "flowfilter.match('~t html',f)", "False"),
    ("html", "", "flowfilter.match('~t html',f)", "True"),
    ("get", "", "flowfilter.match('~tq json',f)", "False"),
    ("json", "", "flowfilter.match('~tq json',f)", "True"),
    ("get", "", "flowfilter.match('~ts html',f)", "False"),
    ("html", "", "flowfilter.match('~ts html',f)", "True"),
    ("get", "", "flowfilter.match('~a',f)", "False"),
    ("get", "", "flowfilter.match('~all',f)", "True"),
    ("get", "", "flowfilter.match('~e',f)", "False"),
    ("get", "", "flowfilter.match('~http',f)", "True"),
    ("get", "", "flowfilter.match('~tcp',f)", "False"),
    ("get", "", "flowfilter.match('~src 127',f)", "True"),
    ("get", "", "flowfilter.match('~dst example',f)", "True"),
    ("html", "", "flowfilter.match('~dst example',f)", "False"),
    ("get", "", "flowfilter.match('~marked',f)", "False"),
    ("get", "", "flowfilter.match('~comment x',f)", "False"),
    ("get", "", "flowfilter.match('~meta x',f)", "False"),
    ("get", "", "flowfilter.match('~replay',f)", "False"),
    ("get", "", "flowfilter.match('(~m GET | ~m POST) & ~d h',f)", "False"),
    ("html", "", "flowfilter.match('(~m GET | ~m POST) & ~d h',f)", "True"),
    ("get", "", "flowfilter.match('~m GET ~d h',f)", "False"),
    ("html", "", "flowfilter.match('~m GET ~d h',f)", "True"),
    ("get", "", "flowfilter.match('~m POST | ~m GET & ~d zzz',f)", "False"),
    ("json", "", "flowfilter.match('~m POST | ~m GET & ~d zzz',f)", "True"),
    ("get", "", "flowfilter.match('! ~m GET | ~d h',f)", "False"),
    ("html", "", "flowfilter.match('! ~m GET | ~d h',f)", "True"),
    ("get", "", "flowfilter.match(\"~u 'a/b'\",f)", "True"),
    ("html", "", "flowfilter.match(\"~u 'a/b'\",f)", "False"),
    ("get", "", "flowfilter.match('~u a.*\\\\?q',f)", "True"),
    ("html", "", "flowfilter.match('~u a.*\\\\?q',f)", "False"),
    ("get", "", "flowfilter.match('~websocket',f)", "False"),
    ("get", "", "flowfilter.match('! (~s & ~q)',f)", "True"),
    ("get", "", "flowfilter.match('~u \"a b\"',f)", "False"),
    ("get", "", "flowfilter.match(\"~hs 'set-cookie: a'\",f)", "False"),
    ("html", "", "flowfilter.match(\"~hs 'set-cookie: a'\",f)", "True"),
    ("get", "", "flowfilter.match('~t .',f)", "False"),
    ("html", "", "flowfilter.match('~t .',f)", "True"),
    ("get", "", "flowfilter.match('~bs .',f)", "False"),
    ("html", "", "flowfilter.match('~bs .',f)", "True"),
    ("get", "", "flowfilter.match(\"~b '{'\",f)", "False"),
    ("json", "", "flowfilter.match(\"~b '{'\",f)", "True"),
    ("get", "", "flowfilter.match('~m',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('~x y',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('()',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('a)',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('~c x',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('~replayq',f)", "False"),
    ("get", "", "flowfilter.match('!!~s',f)", "False"),
    ("html", "", "flowfilter.match('!!~s',f)", "True"),
    ("get", "", "flowfilter.match('~u a&~m POST',f)", "False"),
    ("get", "", "flowfilter.match('~s&~m GET',f)", "RAISES ValueError"),
    ("get", "", "flowfilter.match('~s & (~m GET)',f)", "False"),
    ("html", "", "flowfilter.match('~s & (~m GET)',f)", "True"),
    ("get", "", "flowfilter.match('~s|~q',f)", "RAISES ValueError"),
]


def flow_of(host, method: str, url: str, fields: list, body: bytes, status: int = 0, answered: list = [], page: bytes = b""):
    message = {"client": "127.0.0.1", "request": {"method": method, "url": url, "version": "HTTP/1.1", "fields": [list(pair) for pair in fields]}}
    message["request"]["content"] = content_of(body)
    flow = host.HTTPFlow._of(message, 1.0, True)
    if status:
        flow.response = host.Response._of({"status": status, "fields": [list(pair) for pair in answered], "content": content_of(page)}, 1.0, True)
    return flow


def content_of(body: bytes) -> dict:
    try:
        return content(body.decode())
    except UnicodeDecodeError:
        return content(body)


@case("members of a flow are read and written as in mitmproxy")
def _(t: Trial) -> None:
    from mitmproxy import flowfilter, http

    for exchange, statements, expression, expected in MEMBERS:
        flow = flow_of(t.host, *EXCHANGES[exchange])
        names = {"f": flow, "r": flow.request, "s": flow.response, "http": http, "flowfilter": flowfilter}
        try:
            exec(statements, names)
            value = repr(eval(expression, names))
        except Exception as fault:
            value = f"RAISES {type(fault).__name__}"
        expect(value, expected, f"{exchange}: {statements}; {expression}")


@case("a copy of a flow is apart from it")
def _(t: Trial) -> None:
    flow = flow_of(t.host, *EXCHANGES["json"])
    flow.metadata["a"] = "b"
    copied = flow.copy()
    copied.request.headers["x"] = "1"
    copied.request.path = "/new"
    copied.response.status_code = 500
    copied.metadata["a"] = "c"
    copied.request.content = b"new"
    expect((flow.request.path, flow.request.headers.get("x"), flow.response.status_code, flow.metadata), ("/", None, 200, {"a": "b"}))
    expect(flow.request.json(), {"a": "é"})
    expect((copied.id != flow.id, copied.live, copied.killable), (True, False, False))


@case("a request over HTTP/2 has its authority in place of Host")
def _(t: Trial) -> None:
    given = {"method": "GET", "url": "https://a.example/x", "version": "HTTP/2", "fields": []}
    flow = t.host.HTTPFlow._of({"request": given}, 1.0, True)
    r = flow.request
    expect((r.http_version, r.is_http2, r.is_http11, r.authority, r.host_header, r.pretty_url), ("HTTP/2.0", True, False, "a.example", "a.example", "https://a.example/x"))
    r.host_header = "b.example"
    answer = {}
    t.host.request_edits(flow, answer)
    expect((r.pretty_host, answer), ("b.example", {"url": "https://b.example/x"}))


@case("the connections of a flow have addresses")
def _(t: Trial) -> None:
    flow = flow_of(t.host, *EXCHANGES["port"])
    expect((flow.client_conn.peername, flow.client_conn.address, flow.client_conn.tls), (("127.0.0.1", 0), ("127.0.0.1", 0), True))
    expect((flow.server_conn.address, flow.server_conn.tls_established, flow.server_conn.peername), (("example.com", 8443), True, None))
    expect(flow.client_conn.id != flow.server_conn.id and flow.client_conn.id == flow.client_conn.id, True)
