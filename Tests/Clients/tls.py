"""`openssl s_client` in all its moods, and testssl.sh, before listeners that speak TLS."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from Clients.trials import Failed, Skipped, client, expect
from Rig.certificates import certificates
from Rig.processes import Process, free_port
from Rig.waits import Why, eventually, pause

CONFIG = """
version: 1
listeners:
  web:
    bind: "127.0.0.1:{web}"
    tls:
      certificates:
        - {{ cert: {folder}/a.pem, key: {folder}/a.key, ocsp: {folder}/a.ocsp }}
        - {{ cert: {folder}/rsa.pem, key: {folder}/rsa.key }}
        - {{ cert: {folder}/wild.pem, key: {folder}/wild.key }}
  newest: {{ bind: "127.0.0.1:{newest}", tls: {{ cert: {folder}/a.pem, key: {folder}/a.key, minVersion: "1.3" }} }}
  plain: {{ bind: "127.0.0.1:{plain}", tls: {{ cert: {folder}/a.pem, key: {folder}/a.key, alpn: [http/1.1] }} }}
  required: {{ bind: "127.0.0.1:{required}", tls: {{ cert: {folder}/a.pem, key: {folder}/a.key, clientCa: {folder}/ca.pem }} }}
  requested:
    bind: "127.0.0.1:{requested}"
    tls: {{ cert: {folder}/a.pem, key: {folder}/a.key, clientCa: {folder}/ca.pem, clientCert: request }}
chains:
  said:
    middlewares: [{{ mock: {{ status: 200, body: "mocked\\n" }} }}]
    postwares:
      - responseHeaders:
          set: {{ X-Subject: "[{{tls.subject}}]", Strict-Transport-Security: "max-age=31536000", X-Content-Type-Options: nosniff, X-Frame-Options: DENY }}
routes: [{{ chain: said }}]
"""
NAMES = ("web", "newest", "plain", "required", "requested")
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


class Listeners:
    """A gateway whose listeners speak TLS."""

    def __init__(self, t):
        if not shutil.which("openssl"):
            raise Skipped("openssl is not installed")
        self.t, self.folder = t, certificates().folder
        self.ports = {name: free_port() for name in NAMES}
        self.text = CONFIG.format(**self.ports, folder=self.folder)
        self.process = self.start()

    def start(self) -> Process:
        return self.t.place.gateway(self.t.options.binary, self.text, list(self.ports.values()), workers=2)

    def ask(self, *arguments: str, to: str = "web", name: str | None = "a.test", request: bytes = GET, authority: str = "ca",
            timeout: float = 10) -> str:
        """The messages of s_client, the bytes that it received, and its exit status, which includes the verification."""
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{self.ports[to]}", "-CAfile", str(self.folder / f"{authority}.pem"),
                   "-verify_return_error", *(["-servername", name] if name else ["-noservername"]),
                   *(["-ign_eof"] if request else []), *arguments]
        result = subprocess.run(command, input=request, capture_output=True, timeout=timeout, env={**os.environ, "LC_ALL": "C"})
        return f"{result.stdout.decode('latin-1')}\n{result.stderr.decode('latin-1')}\nexit {result.returncode}"

    def serves(self, *arguments: str, **more) -> str:
        output = self.ask(*arguments, **more)
        expect("200 OK" in output and "mocked" in output and "exit 0" in output, arguments, more, "not served:", output[-600:])
        return output

    def refuses(self, reason: str, *arguments: str, **more) -> str:
        output = self.ask(*arguments, **more)
        expect("200 OK" not in output and reason in output, arguments, more, f"not refused with {reason!r}:", output[-600:])
        return output


def listeners(t) -> Listeners:
    """The listeners that all trials share."""
    if not hasattr(t, "tls"):
        t.tls = Listeners(t)
    expect(t.tls.process.is_running, "it died:", t.tls.process.log[-500:])
    return t.tls


def says(output: str, *patterns: str) -> None:
    for pattern in patterns:
        expect(re.search(pattern, output), f"{pattern!r} is not in:", output[-700:])


@client("openssl s_client: TLS 1.2 and 1.3 are accepted, 1.0 and 1.1 are refused", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for version, shown in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
        says(web.serves(version), f"New, {shown}", r"Verify return code: 0 \(ok\)", "Secure Renegotiation IS|TLSv1.3")
    for version in ("-tls1", "-tls1_1"):
        web.refuses("alert protocol version", version, "-cipher", "ALL:@SECLEVEL=0")
    web.refuses("alert protocol version", "-tls1_2", to="newest")
    web.serves(to="newest")


CIPHERS = ("ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 "
           "ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 DHE-RSA-AES128-GCM-SHA256 DHE-RSA-AES256-GCM-SHA384 "
           "DHE-RSA-CHACHA20-POLY1305").split()
SUITES = "TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256".split()
WEAK = ("AES128-SHA AES256-SHA AES128-GCM-SHA256 AES256-GCM-SHA384 ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA384 ECDHE-ECDSA-AES256-SHA "
        "ECDHE-ECDSA-AES128-CCM DHE-RSA-AES128-SHA DHE-RSA-AES256-CCM ADH-AES128-GCM-SHA256 AECDH-AES128-SHA NULL-SHA256 CAMELLIA128-SHA").split()


@client("openssl s_client: each of Mozilla's intermediate ciphers is accepted, others are refused", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for cipher in CIPHERS:
        says(web.serves("-tls1_2", "-cipher", cipher), f"Cipher is {cipher}\n")
    for suite in SUITES:
        says(web.serves("-tls1_3", "-ciphersuites", suite), f"Cipher is {suite}\n")
    for cipher in WEAK:
        web.refuses("alert handshake failure", "-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0")
    web.refuses("alert handshake failure", "-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256")
    # Our order counts, not the client's.
    says(web.serves("-tls1_2", "-cipher", ":".join(reversed(CIPHERS))), f"Cipher is {CIPHERS[0]}\n")


@client("openssl s_client: each curve is accepted, others are refused", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for version in ("-tls1_2", "-tls1_3"):
        for curve, shown in (("X25519", "X25519"), ("P-256", "prime256v1|P-256"), ("P-384", "secp384r1|P-384")):
            says(web.serves(version, "-curves", curve), f"Server Temp Key: (ECDH, )?({shown}),")
        # Of TLS 1.2 there is a way without curves.
        web.refuses("alert handshake failure", version, "-curves", "P-521", "-cipher", "ECDHE")
        says(web.serves(version, "-curves", "P-521:X448:P-384", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"), "Server Temp Key: (ECDH, )?(secp384r1|P-384),")
    # A key share that we do not take first is asked for once more (HelloRetryRequest).
    says(web.serves("-tls1_3", "-curves", "P-521:P-256", "-msg"), "HelloRetryRequest|ClientHello(.|\n)*ClientHello")


@client("openssl s_client: -reconnect, -sess_out, -sess_in: sessions resume on any loop and after a reload, but not after a restart", smoke=True)
def _(t) -> None:
    web = listeners(t)
    expect(web.ask("-tls1_2", "-reconnect", request=b"").count("Reused, TLSv1.2") == 5, "-reconnect begins anew")
    for version in ("-tls1_2", "-tls1_3"):
        file = str(t.home / f"session{version}")
        says(web.serves(version, "-sess_out", file), "New, TLSv1")
        for turn in range(12):
            if turn == 6:
                before = web.process.log.count("reloaded: ")
                web.process.signal(signal.SIGHUP)
                eventually(lambda: web.process.log.count("reloaded: ") > before, 5)
            # Of TLS 1.3 a ticket is for one use: each connection gives the next.
            says(web.serves(version, "-sess_in", file, "-sess_out", file), "Reused, TLSv1")
    web.process.stop()
    web.process = web.start()
    for version in ("-tls1_2", "-tls1_3"):
        file = str(t.home / f"session{version}")
        says(web.serves(version, "-sess_in", file), "New, TLSv1")


@client("openssl s_client: -status: the stapled OCSP response is received", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for version in ("-tls1_2", "-tls1_3"):
        says(web.serves(version, "-status"), "OCSP Response Status: successful", "Cert Status: good")
        says(web.serves(version, "-status", name="x.b.test"), "OCSP response: no response sent")
        expect("OCSP" not in web.serves(version), "stapled unasked")


@client("openssl s_client: -servername: a known, a wildcard's, an unknown and a missing name get their certificates", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for name, shown in (("a.test", "a"), ("A.TEST", "a"), ("x.b.test", "wild"), ("b.test", "a"), ("unknown.test", "a"), (None, "a")):
        says(web.serves(name=name), f"subject=CN = {shown}\n")
    says(web.serves("-tls1_2", "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256", "-cipher", "aRSA"), "subject=CN = rsa\n")
    says(web.serves("-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"), "subject=CN = rsa\n")


@client("openssl s_client: -alpn: h2, http/1.1, both and a missing list are accepted, others are no_application_protocol", smoke=True)
def _(t) -> None:
    web = listeners(t)
    says(web.ask("-alpn", "h2", request=b""), "ALPN protocol: h2\n")
    says(web.ask("-alpn", "http/1.1,h2", request=b""), "ALPN protocol: h2\n")
    says(web.serves("-alpn", "http/1.1"), "ALPN protocol: http/1.1\n")
    says(web.serves("-alpn", "h2,http/1.1", to="plain"), "ALPN protocol: http/1.1\n")
    says(web.serves(), "No ALPN negotiated")
    for version in ("-tls1_2", "-tls1_3"):
        web.refuses("no application protocol", version, "-alpn", "spdy/3,imap")
    web.refuses("no application protocol", "-alpn", "h2", to="plain")


@client("openssl s_client: -cert: certificates are verified if required or requested: of our authority, of another, expired, missing", smoke=True)
def _(t) -> None:
    web = listeners(t)

    def shown(name: str) -> tuple[str, ...]:
        return ("-cert", str(web.folder / f"{name}.pem"), "-key", str(web.folder / f"{name}.key"))

    for version in ("-tls1_2", "-tls1_3"):
        for to in ("required", "requested"):
            says(web.serves(version, *shown("anna"), to=to), r"(?i)x-subject: \[CN=anna,O=Example\]", "Acceptable client certificate CA names\nCN = ca")
            web.refuses("alert unknown ca", version, *shown("stranger"), to=to)
            web.refuses("alert certificate expired", version, *shown("expired"), to=to)
        says(web.serves(version, to="requested"), r"(?i)x-subject: \[\]")
        web.refuses("alert certificate required" if version == "-tls1_3" else "alert handshake failure", version, to="required")
        # A listener that asks for none takes none.
        says(web.serves(version, *shown("anna")), r"(?i)x-subject: \[\]", "No client certificate CA names sent")
    # A session that began without the trust is not taken up where it is needed.
    file = str(t.home / "session-web")
    web.serves("-tls1_2", "-sess_out", file)
    web.refuses("alert", "-tls1_2", "-sess_in", file, to="required")


@client("openssl s_client: renegotiation, early data and compression are not offered", smoke=True)
def _(t) -> None:
    web = listeners(t)
    process = subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{web.ports['web']}"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    pause(0.3, Why.BEFORE)
    process.stdin.write(b"R\n")
    process.stdin.flush()
    pause(0.3, Why.BEFORE)
    output = process.communicate(timeout=10)[0]
    expect(b"RENEGOTIATING" in output and b"no renegotiation" in output, output[-400:])
    file, data = str(t.home / "session-early"), t.home / "early"
    data.write_bytes(GET)
    says(web.serves("-tls1_3", "-sess_out", file), "Max Early Data: 0")
    says(web.serves("-tls1_3", "-sess_in", file, "-early_data", str(data)), "Early data was not sent")
    says(web.serves("-tls1_2", "-comp"), "Compression: NONE")
    # A key update (RFC 8446 §4.6.3) is answered, and what follows is read with the new keys.
    process = subprocess.Popen(["openssl", "s_client", "-tls1_3", "-connect", f"127.0.0.1:{web.ports['web']}"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for text in (b"K\n", b"k\n", b"GET / HTTP/1.0\r\n", b"\r\n"):
        pause(0.2, Why.SLOW)
        process.stdin.write(text)
        process.stdin.flush()
    pause(0.3, Why.BEFORE)
    output = process.communicate(timeout=10)[0]
    expect(output.count(b"KEYUPDATE") == 2 and b"200 OK" in output and b"mocked" in output, output[-400:])


@client("openssl s_client: a large ClientHello, one in many records, small records and unusual extensions are accepted", smoke=True)
def _(t) -> None:
    web = listeners(t)
    names = ",".join(f"protocol-{index:04}" * 5 for index in range(200)) + ",http/1.1"  # 12 KiB of ALPN
    for version in ("-tls1_2", "-tls1_3"):
        web.serves(version, "-alpn", names)
        web.serves(version, "-alpn", names, "-max_send_frag", "512")
        web.serves(version, "-max_send_frag", "512", "-split_send_frag", "512")
        for length in ("512", "1024", "2048", "4096"):
            web.serves(version, "-maxfraglen", length)
        web.serves(version, "-no_ticket")
        web.serves(version, "-legacy_server_connect", "-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256")
    web.refuses("alert inappropriate fallback", "-tls1_2", "-fallback_scsv")


@client("openssl s_client: close_notify ends both sides; bytes behind it are not read", smoke=True)
def _(t) -> None:
    web = listeners(t)
    for version in ("-tls1_2", "-tls1_3"):
        output = web.serves(version, "-msg")
        says(output, "<<< (TLS 1.[23], )?Alert[^\n]*\\[length 0002\\], warning close_notify|warning close_notify")
        expect("unexpected eof" not in output, "no close_notify:", output[-400:])


# --- testssl.sh

# About the test's certificate and host, not about how TLS is spoken.
OF_THE_CERTIFICATE = re.compile(r"^(cert|CA|DNS_CAA|OCSP_stapl|intermediate|overall_grade|final_score|grade|rating|engine_problem|scanTime|"
                                r"service|id|pre_|optimal_proto)")
JUDGED = {"MEDIUM", "HIGH", "CRITICAL"}


@client("testssl.sh finds nothing above LOW, except the test's certificate")
def _(t) -> None:
    program = shutil.which("testssl") or shutil.which("testssl.sh")
    if not program:
        raise Skipped("testssl.sh is not installed")
    web = listeners(t)
    report = Path(t.place.folder) / "testssl.json"
    command = [program, "--quiet", "--warnings", "off", "--color", "0", "--nodns", "none", "--ip", "127.0.0.1", "--add-ca", str(web.folder / "ca.pem"),
               "--openssl-timeout", "5", "--jsonfile", str(report), f"https://a.test:{web.ports['web']}/"]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=420, env={**environment, "TERM": "dumb"})
    except subprocess.TimeoutExpired:
        raise Failed("it takes longer than 7 minutes") from None
    expect(report.exists(), f"no report, exit {result.returncode}:", result.stdout[-600:])
    findings = json.loads(report.read_text())
    expect(len(findings) > 80, f"only {len(findings)} findings: it gave up", result.stdout[-600:])
    bad = [f"{each['severity']} {each['id']}: {each['finding']}" for each in findings
           if each["severity"] in JUDGED and not OF_THE_CERTIFICATE.match(each["id"])]
    expect(not bad, "; ".join(bad))
