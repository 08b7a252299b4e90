"""--watch with volumes of Kubernetes: a ConfigMap, a Secret in a field, a key pair of a listener, each changed as kubelet changes it."""

from __future__ import annotations

from pathlib import Path

from Rig.certificates import certificates
from Rig.mounts import Volume
from Rig.processes import free_port
from Rig.stand import Traffic
from Rig.waits import Why, pause
from Rig.wire import Wire
from suite import Trial, case, check, connect, eventually, expect_same

from .command import NO
from .refused_requests import head

# From the renamed link to the first request that the new files serve; the gateway waits for 200 ms without a change, at most for 1 s.
BOUND = 5.0


def pair(name: str) -> dict[str, bytes]:
    """A key pair by the names of cert-manager."""
    return {"tls.crt": (certificates() / f"{name}.pem").read_bytes(), "tls.key": (certificates() / f"{name}.key").read_bytes()}


class Pod:
    """A gateway whose files are all in volumes."""

    def __init__(self, t: Trial):
        self.t, self.port, self.secure = t, free_port(), free_port()
        self.folder: Path = t.setup.place.subfolder("pod")
        self.secrets = Volume(self.folder / "secrets", {"key": "hush-0\n"}, 0o440)
        self.identity = Volume(self.folder / "tls", pair("a"), 0o440)
        self.configuration = Volume(self.folder / "etc", {"httpware.yaml": self.text(0)})
        command = [t.setup.binary, "run", "-c", str(self.folder / "etc/httpware.yaml"), "--workers", "2", "--watch"]
        self.process = t.setup.place.command(command, [self.port, self.secure])
        t.at_end(self.process.stop)

    def text(self, turn: int, more: str = "") -> str:
        return f"""version: 1
listeners:
  web: {{ bind: "127.0.0.1:{self.port}" }}
  secure: {{ bind: "127.0.0.1:{self.secure}", tls: {{ cert: {self.folder}/tls/tls.crt, key: {self.folder}/tls/tls.key }} }}
services:
  api: {{ baseUrl: "http://127.0.0.1:{self.t.main.port}", headers: {{ X-Key: "${{file:{self.folder}/secrets/key}}" }} }}
chains:
  turn: {{ middlewares: [{{ mock: {{ body: "turn {turn}" }} }}] }}
routes:
  - {{ name: turn, match: {{ path: /turn }}, chain: turn }}
  - {{ name: rest, service: api }}
{more}"""

    def client(self) -> Wire:
        """As `Traffic` asks for it."""
        return connect(("127.0.0.1", self.port), 5)

    def turn(self) -> str:
        client = self.client()
        try:
            client.send(head(start=b"GET /turn HTTP/1.1"))
            return client.read_response().body.decode()
        finally:
            client.close()

    def certificate(self) -> bytes | None:
        sock = connect(("127.0.0.1", self.secure), 5).sock
        with certificates().client().wrap_socket(sock, server_hostname="a.test") as secured:
            return secured.getpeercert(True)

    def keys(self) -> list[str | None]:
        """The values that the origin server got lately."""
        return [request.get("X-Key") for request in self.t.main.requests[-3:]]


class Encrypted:
    """The pod as clients with TLS see it."""

    def __init__(self, pod: Pod):
        self.pod = pod

    def client(self) -> Wire:
        sock = connect(("127.0.0.1", self.pod.secure), 5).sock
        return Wire(certificates().client().wrap_socket(sock, server_hostname="a.test"))


@case("watch: a ConfigMap and Secrets that kubelet changes are in force soon, and no request fails meanwhile", nginx=NO)
def _(t: Trial) -> None:
    pod = Pod(t)
    first = pod.certificate()
    plain, secured = Traffic(pod, readers=3, reconnect=7, think=0.005), Traffic(Encrypted(pod), readers=2, reconnect=5, think=0.005)
    try:
        for turn in range(1, 4):
            pod.configuration.write({"httpware.yaml": pod.text(turn)})
            check(eventually(lambda turn=turn: pod.turn() == f"turn {turn}", BOUND), "the ConfigMap is not in force:", pod.process.log)
            pod.secrets.write({"key": f"hush-{turn}\n"})
            check(eventually(lambda turn=turn: pod.keys() == [f"hush-{turn}"] * 3, BOUND), "the Secret is not in force:", pod.process.log)
            before = pod.certificate()
            pod.identity.write(pair("a2" if turn % 2 else "a"))
            check(eventually(lambda before=before: pod.certificate() != before, BOUND), "the key pair is not in force:", pod.process.log)
        check(pod.certificate() != first, "the last key pair is the first")
        # All at once, as when a new version is rolled out.
        pod.identity.write(pair("a"))
        pod.secrets.write({"key": "hush-9\n"})
        pod.configuration.write({"httpware.yaml": pod.text(9)})
        check(eventually(lambda: (pod.turn(), pod.certificate(), pod.keys()) == ("turn 9", first, ["hush-9"] * 3), BOUND), "not all is in force:", pod.process.log)
    finally:
        plain.end()
        secured.end()
    expect_same("requests that failed", plain.failures + secured.failures, [])
    check(plain.succeeded > 100 and secured.succeeded > 100, "too few requests:", plain.succeeded, secured.succeeded)
    check("not reloaded" not in pod.process.log, pod.process.log)


@case("watch: a ConfigMap with a mistake is refused while the old one serves, and the next is read", nginx=NO)
def _(t: Trial) -> None:
    pod = Pod(t)
    pod.configuration.write({"httpware.yaml": pod.text(1, more="  - { nonsense: 1 }\n")})
    check(eventually(lambda: "not reloaded" in pod.process.log, BOUND), "the mistake is not reported:", pod.process.log)
    check("etc/httpware.yaml:12:" in pod.process.log, "no place:", pod.process.log)
    expect_same("the old one", pod.turn(), "turn 0")
    pod.configuration.write({"httpware.yaml": pod.text(2)})
    check(eventually(lambda: pod.turn() == "turn 2", BOUND), "the next is not in force:", pod.process.log)
    # The same content in another folder, as after a restart of kubelet.
    count = pod.process.log.count("reloaded: ")
    pod.configuration.write({"httpware.yaml": pod.text(2)})
    pause(1.5, Why.NOTHING)
    said = pod.process.log.count("reloaded: ") - count
    check(said == 0 or "reloaded: no change" in pod.process.log, "the same content is a change:", pod.process.log)
    # The folder that is watched has been replaced, so the next change is in a folder that did not exist at the last reload.
    pod.configuration.write({"httpware.yaml": pod.text(3)})
    check(eventually(lambda: pod.turn() == "turn 3", BOUND), "the change after that is not in force:", pod.process.log)
