"""Certificates made by the openssl tool, once for a run, in a folder that goes with the program."""

from __future__ import annotations

import atexit
import shutil
import ssl
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
RSA = ["-newkey", "rsa:2048"]
lock = threading.Lock()


class Certificates:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="httpware-certificates."))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.authority("ca")
        self.authority("other")
        self.leaf("a", "DNS:a.test,DNS:localhost,IP:127.0.0.1")
        self.leaf("a2", "DNS:a.test,DNS:localhost,IP:127.0.0.1")
        self.leaf("wild", "DNS:*.b.test")
        self.leaf("rsa", "DNS:a.test,DNS:localhost,IP:127.0.0.1", key=RSA)
        self.leaf("named", "DNS:origin.test")
        self.leaf("stranger", "DNS:a.test,IP:127.0.0.1", by="other")
        self.leaf("anna", "email:anna@a.test,URI:spiffe://a.test/anna", subject="/O=Example/CN=anna")
        self.leaf("expired", "IP:127.0.0.1")
        self.openssl("req", "-new", "-key", self / "expired.key", "-subj", "/CN=a.test", "-addext", "subjectAltName=IP:127.0.0.1",
                     "-out", self / "expired.csr")
        self.openssl("x509", "-req", "-in", self / "expired.csr", "-CA", self / "ca.pem", "-CAkey", self / "ca.key", *self.expired(),
                     "-copy_extensions", "copyall", "-out", self / "expired.pem")
        self.openssl("req", "-x509", "-nodes", "-keyout", self / "self.key", "-out", self / "self.pem", "-subj", "/CN=self", "-days", "30",
                     "-addext", "subjectAltName=IP:127.0.0.1", *CURVE)
        self.openssl("x509", "-in", self / "a.pem", "-outform", "DER", "-out", self / "a.der")
        self.openssl("pkey", "-in", self / "a.key", "-aes256", "-passout", "pass:x", "-out", self / "locked.key")
        (self / "empty.pem").touch()
        (self / "directory").mkdir()
        serial = self.openssl("x509", "-in", self / "a.pem", "-noout", "-serial").strip().removeprefix("serial=")
        (self / "index.txt").write_text(f"V\t350101000000Z\t\t{serial}\tunknown\t/CN=a\n")
        self.openssl("ocsp", "-issuer", self / "ca.pem", "-cert", self / "a.pem", "-reqout", self / "a.req")
        self.openssl("ocsp", "-index", self / "index.txt", "-CA", self / "ca.pem", "-rsigner", self / "ca.pem", "-rkey", self / "ca.key",
                     "-reqin", self / "a.req", "-respout", self / "a.ocsp", "-ndays", "7")

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def openssl(self, *arguments: str | Path) -> str:
        return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout

    def expired(self) -> list[str]:
        """Options for a certificate that has ended: OpenSSL 3.4 and later refuse negative days, and earlier versions take no dates."""
        major, minor = self.openssl("version").split()[1].split(".")[:2]
        return ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"] if (int(major), int(minor)) >= (3, 4) else ["-days", "-1"]

    def authority(self, name: str) -> None:
        self.openssl("req", "-x509", "-nodes", "-keyout", self / f"{name}.key", "-out", self / f"{name}.pem", "-subj", f"/CN={name}",
                     "-days", "30", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature", *CURVE)

    def leaf(self, name: str, names: str, by: str = "ca", subject: str = "", key: list[str] = CURVE) -> None:
        self.openssl("req", "-x509", "-nodes", "-utf8", "-keyout", self / f"{name}.key", "-out", self / f"{name}.pem", "-CA", self / f"{by}.pem",
                     "-CAkey", self / f"{by}.key", "-days", "30", "-subj", subject or f"/CN={name}", "-addext", f"subjectAltName={names}",
                     "-addext", "basicConstraints=CA:FALSE", *key)

    def server(self, name: str = "a", least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
        """The TLS settings of an origin server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = least
        context.load_cert_chain(self / f"{name}.pem", self / f"{name}.key")
        return context

    def client(self, authority: str = "ca", identity: str = "", alpn: list[str] | None = None) -> ssl.SSLContext:
        """The TLS settings of a client: it verifies."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self / f"{authority}.pem")
        if identity:
            context.load_cert_chain(self / f"{identity}.pem", self / f"{identity}.key")
        if alpn:
            context.set_alpn_protocols(alpn)
        return context


@cache
def _made() -> Certificates:
    return Certificates()


def certificates() -> Certificates:
    with lock:
        return _made()
