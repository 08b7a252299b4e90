#!/usr/bin/env python3
"""The overlays of docker/kubernetes: one JSON line per result (name, goal, measured, pass). Python 3.11.

    Tests/Kubernetes/run.py [--binary .build/release/httpware] [gateway] [sidecar]

Each overlay is composed, after the commands at its head, and validated by the strict schemas of the oldest and the newest Kubernetes (PyPI:
kubernetes-validate). Then the program runs as its container would: with its volumes as kubelet writes them, its arguments, its probes and its end.
Where kubectl or kustomize is installed, its composition is compared with the one that is tried here. Needs openssl, and no cluster.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests"), str(ROOT / "docker")]
sys.dont_write_bytecode = True

from Rig.packages import provide  # noqa: E402

provide("kubernetes-validate==1.37.0", "PyYAML==6.0.3")

import yaml  # noqa: E402
from Kubernetes.kustomize import Document, build, containers  # noqa: E402
from Kubernetes.pod import Pod  # noqa: E402
from portable.oci import settings  # noqa: E402
from Rig.origins import OK, OriginConnection, answering  # noqa: E402
from Rig.processes import Process, Workplace  # noqa: E402
from Rig.results import line, tell  # noqa: E402
from Rig.waits import eventually  # noqa: E402

FOLDER = ROOT / "docker/kubernetes"
KINDS = {"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Secret", "Service"}
# The oldest by the words of the base, and the newest that the package has.
VERSIONS = ("1.30", "1.37")
PATHS = re.compile(r'/(?:etc|run)/[\w./-]+[\w]')


# MARK: Composition


def composed(overlay: Path, part: str) -> Iterator[dict | list[Document]]:
    """The results, and last the documents."""
    head = [text[1:].strip() for text in (overlay / "kustomization.yaml").read_text().splitlines() if text.startswith("#   ")]
    commands = [text for text in head if not text.startswith("kubectl ")]
    typed = subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=overlay, capture_output=True, text=True)
    yield line(f"{part}: commands", "those at the head of its file make the secrets", typed.stderr[-300:] if typed.returncode else commands,
               typed.returncode == 0 and len(commands) > 1 and "kubectl apply -k ." in head)
    documents = build(overlay)
    if words := composer():
        real = subprocess.run([*words, overlay], capture_output=True, text=True)
        theirs, ours = sorted(map(flat, yaml.safe_load_all(real.stdout))), sorted(map(flat, documents))
        yield line(f"{part}: {' '.join(words)}", "composes the same", real.stderr[-300:] or [each for each in theirs if each not in ours], real.returncode == 0 and theirs == ours)
    yield documents


@cache
def composer() -> list[str]:
    """The command of this machine that composes; empty if there is none, or if it is older than `labels` with selectors."""
    for words, asks in (["kubectl", "kustomize"], ["version", "--client"]), (["kustomize", "build"], ["version"]):
        if not shutil.which(words[0]):
            continue
        said = subprocess.run([words[0], *asks], capture_output=True, text=True).stdout
        if (version := re.search(r"(?:^|Kustomize Version: )v(\d+)\.", said)) and int(version[1]) >= 5:
            return words
        print(f"kubernetes: {words[0]} is not asked: it composes by a kustomize before 5.0", file=sys.stderr)
    return []


def flat(document: Document) -> str:
    """A document as one text, by which it is compared. Secrets may be wrapped."""
    if document["kind"] == "Secret":
        document = {**document, "data": {name: "".join(text.split()) for name, text in document["data"].items()}}
    return yaml.safe_dump(document)


def valid(documents: list[Document], part: str) -> Iterator[dict]:
    import kubernetes_validate

    for version in VERSIONS:
        errors = []
        for document in documents:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                errors.append(f"{document['kind']}: {getattr(error, 'message', error)}")
        yield line(f"{part}: schemas of {version}", "valid, strictly", errors, not errors)
    kinds = {document["kind"] for document in documents}
    yield line(f"{part}: kinds", ", ".join(sorted(KINDS)), sorted(kinds), kinds == KINDS)


# MARK: Documents


def safe(pod: Pod, part: str) -> Iterator[dict]:
    """The rules of Kubernetes' restricted profile, and a root that cannot be written."""
    wrong, over = [], pod.spec["securityContext"]
    for container in containers(pod.deployment):
        own = {**over, **container.get("securityContext", {})}
        rules = {
            "not root": own.get("runAsNonRoot") is True and own.get("runAsUser", 0) > 0,
            "no more rights": own.get("allowPrivilegeEscalation") is False and own.get("capabilities") == {"drop": ["ALL"]},
            "read only": own.get("readOnlyRootFilesystem") is True,
            "seccomp": own.get("seccompProfile") == {"type": "RuntimeDefault"},
            "resources": {"cpu", "memory"} <= container["resources"]["requests"].keys() and "memory" in container["resources"]["limits"],
            "no subPath, which is never updated": not any("subPath" in mount for mount in container.get("volumeMounts", [])),
        }
        wrong += [f"{container['name']}: {rule}" for rule, holds in rules.items() if not holds]
    if pod.spec["automountServiceAccountToken"] is not False:
        wrong.append("a token of the cluster")
    yield line(f"{part}: rights", "the restricted profile, a root that cannot be written, resources", wrong, not wrong)
    image, user = settings(ROOT / "docker/Dockerfile", {}), f"{over['runAsUser']}:{over['runAsGroup']}"
    version = re.search(r'text = "([\d.]+)"', (ROOT / "Sources/HttpWare/Values/ProgramVersion.swift").read_text())[1]
    measured = {"image": pod.container["image"], "user": user, "command": pod.container.get("command")}
    yield line(f"{part}: image", "that of this version, its user and its own command", measured,
               pod.container["image"] == f"httpware:{version}" and image["User"] == user and not pod.container.get("command") and image["Entrypoint"] == ["/usr/bin/httpware"])


def named(pod: Pod, part: str) -> Iterator[dict]:
    """The references between the documents, and from the configuration to them."""
    labels = pod.deployment["spec"]["template"]["metadata"]["labels"]
    spread = [each["labelSelector"]["matchLabels"] for each in pod.spec["topologySpreadConstraints"]]
    documents = {kind: document["spec"] for (kind, _), document in pod.documents.items() if kind in ("Service", "PodDisruptionBudget", "HorizontalPodAutoscaler")}
    selectors = [pod.deployment["spec"]["selector"]["matchLabels"], documents["Service"]["selector"], documents["PodDisruptionBudget"]["selector"]["matchLabels"], *spread]
    yield line(f"{part}: selectors", "each has the labels of the pods", labels, labels and all(selector == labels for selector in selectors))
    target = documents["HorizontalPodAutoscaler"]["scaleTargetRef"]
    yield line(f"{part}: autoscaler", "scales the Deployment, which has no number of its own", target,
               (target["kind"], target["name"]) in pod.documents and target["kind"] == "Deployment" and "replicas" not in pod.deployment["spec"])
    files, wanted = pod.files(), set(PATHS.findall(pod.contents("configuration")["httpware.yaml"].decode())) | {word for word in pod.container["args"] if word.startswith("/")}
    yield line(f"{part}: files", "each path of the configuration and the arguments is in a volume, and each file is named", {"wanted": sorted(wanted), "there": sorted(files)}, wanted == files)
    opened, inner = pod.bound()
    ports, targets = {each["containerPort"] for each in pod.container["ports"]}, {each["targetPort"] for each in documents["Service"]["ports"]}
    yield line(f"{part}: ports", "the container has the open ports of the configuration; the Service has all except the admin listener's",
               {"container": sorted(ports), "configuration": sorted(opened), "within the pod": sorted(inner), "service": sorted(targets)}, ports == opened and targets == opened - {9900})
    pause, grace = pod.container["lifecycle"]["preStop"]["sleep"]["seconds"], pod.spec["terminationGracePeriodSeconds"]
    needed = pause + pod.slowest() + 5
    yield line(f"{part}: time to end", "enough for preStop, the slowest exchange and the last spans", {"grace": grace, "needed": needed}, needed <= grace)
    after = [each["lifecycle"]["preStop"]["sleep"]["seconds"] for each in pod.spec["containers"]]
    yield line(f"{part}: before SIGTERM", "each container waits until the endpoints have lost the pod", after, after and min(after) >= 5)


# MARK: The program


def runs(pod: Pod, binary: Path, part: str, answers: Callable[[Pod, str], Iterator[dict]]) -> Iterator[dict]:
    checked = subprocess.run([binary, "check", "-c", pod.root / "etc/httpware/httpware.yaml"], capture_output=True, text=True)
    said = checked.stdout + checked.stderr
    yield line(f"{part}: httpware check", "no error and no warning", said, checked.returncode == 0 and "warning" not in said)
    pod.origin.begin(answering(OK))
    process = pod.start(binary)
    began = eventually(lambda: pod.probe("startupProbe") == 200, pod.container["startupProbe"]["failureThreshold"])
    probes = {name: pod.probe(name) for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    missing = pod.ask("admin", "/none", host="127.0.0.1").status
    yield line(f"{part}: probes", "200 each; 404 elsewhere", {**probes, "elsewhere": missing}, began and set(probes.values()) == {200} and missing == 404)
    token = pod.contents("secrets")["admin-token"].decode().strip()
    asked = [pod.ask("admin", "/v1/config", host="127.0.0.1", fields=fields).status for fields in ("", f"Authorization: Bearer {token}\r\n")]
    yield line(f"{part}: admin", "401 without the token of the Secret, 200 with it", asked, asked == [401, 200])
    yield from answers(pod, part)
    used, most = process.status("VmHWM") >> 10, int(pod.container["resources"]["limits"]["memory"].removesuffix("Mi"))
    yield line(f"{part}: memory", "less than half of the limit", {"MiB": used, "limit": most}, used < most / 2)
    changed = pod.placed(pod.configuration).replace("routes:\n", "routes:\n  - { name: changed, match: { path: /changed }, chain: changed }\n").replace(
        "chains:\n", "chains:\n  changed: { middlewares: [{ mock: { body: changed } }] }\n")
    pod.write(changed)
    port = entry(pod)
    came = eventually(lambda: pod.ask(*port, "/changed", **trust(pod)).body == b"changed", 5)
    yield line(f"{part}: a changed ConfigMap", "is in force within 5 s", process.log[-300:] if not came else "it is", came)
    yield from ends(pod, process, part)


def entry(pod: Pod) -> tuple[int]:
    """The listener that leads to a service."""
    return (8443,) if pod.root.joinpath("run/secrets/httpware-tls").exists() else (8080,)


def trust(pod: Pod) -> dict:
    place = pod.root / "run/secrets/httpware-tls/tls.crt"
    return {"authority": place} if place.exists() else {}


def ends(pod: Pod, process: Process, part: str) -> Iterator[dict]:
    """SIGTERM while a request is in progress."""
    gate = threading.Event()

    def slow(connection: OriginConnection) -> None:
        connection.serve()
        gate.wait(20)
        connection.send(OK)

    pod.origin.begin(slow)
    client = pod.send(*entry(pod), "/slow", **trust(pod))
    arrived = eventually(lambda: pod.origin.requests)
    process.signal(signal.SIGTERM)
    unready = eventually(lambda: pod.probe("readinessProbe") == 503, 5)
    alive = pod.probe("livenessProbe")
    gate.set()
    response = client.read_response()
    client.close()
    status = process.wait(pod.spec["terminationGracePeriodSeconds"] - pod.container["lifecycle"]["preStop"]["sleep"]["seconds"])
    yield line(f"{part}: SIGTERM", "not ready, alive, the request in progress is answered, exit 0", {"unready": unready, "alive": alive, "answer": response.status, "exit": status},
               arrived and unready and alive == 200 and response.status == 200 and status == 0)


def gateway(pod: Pod, part: str) -> Iterator[dict]:
    plain = pod.ask(8080, "/orders/1")
    yield line(f"{part}: plain HTTP", "leads to HTTPS", [plain.status, plain.get("Location")], plain.status == 308 and plain.get("Location") == "https://www.example.com/orders/1")
    answers = [pod.ask(8443, target, **trust(pod)).status for target in ("/orders/1", "/shop")]
    arrived = [(request.target, request.get("X-Forwarded-Proto")) for request in pod.origin.requests]
    yield line(f"{part}: TLS by the Secret", "each service answers", {"answers": answers, "arrived": arrived}, answers == [200, 200] and arrived == [("/orders/1", "https"), ("/shop", "https")])


def sidecar(pod: Pod, part: str) -> Iterator[dict]:
    own = pod.ask(8080, "/hello", host="app.example.com")
    arrived = [(request.target, request.get("Host"), request.get("Authorization")) for request in pod.origin.requests]
    yield line(f"{part}: inbound", "the application answers, under the client's host", {"answer": own.status, "arrived": arrived}, own.status == 200 and arrived == [("/hello", "app.example.com", None)])
    [app] = pod.spec["containers"]
    variables = {each["name"]: each["value"] for each in app["env"]}
    _, inner = pod.bound()
    proxies = {variables[name] for name in ("http_proxy", "https_proxy")}
    yield line(f"{part}: the application's variables", "name the listener within the pod", variables, proxies == {f"http://127.0.0.1:{port}" for port in inner})
    [port] = inner
    pod.origin.begin(answering(OK))
    partner = pod.ask(port, "http://partner.example.com/v1/things", host="partner.example.com")
    token = pod.contents("secrets")["partner-token"].decode().strip()
    got = [(request.target, request.get("Authorization")) for request in pod.origin.requests]
    yield line(f"{part}: outbound", "the partner gets the token of the Secret", {"answer": partner.status, "right": got == [("/v1/things", f"Bearer {token}")]},
               partner.status == 200 and got == [("/v1/things", f"Bearer {token}")])
    other = pod.ask(port, "http://elsewhere.example.com/", host="elsewhere.example.com")
    yield line(f"{part}: outbound to others", "403", other.status, other.status == 403)
    init = [each["name"] for each in pod.spec["initContainers"] if each.get("restartPolicy") == "Always"]
    yield line(f"{part}: order", "httpware starts before the application and stays", init, init == ["httpware"] and "startupProbe" in pod.container)


OVERLAYS: dict[str, Callable[[Pod, str], Iterator[dict]]] = {"gateway": gateway, "sidecar": sidecar}


def trial(name: str, binary: Path) -> Iterator[dict]:
    place = Workplace("kubernetes")
    pod = None
    try:
        shutil.copytree(FOLDER, place.folder / "kubernetes", ignore=shutil.ignore_patterns("secrets"))
        *results, documents = composed(place.folder / "kubernetes" / name, name)
        yield from results
        yield from valid(documents, name)
        pod = Pod(place, documents)
        pod.mount()
        yield from safe(pod, name)
        yield from named(pod, name)
        yield from runs(pod, binary, name, OVERLAYS[name])
    except Exception as error:  # a step that the next ones need
        yield line(name, "each step succeeds", f"{type(error).__name__}: {error}", False)
    finally:
        if pod:
            pod.close()
        place.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overlays", nargs="*", metavar="OVERLAY", help=" ".join(OVERLAYS))
    parser.add_argument("--binary", type=Path, default=ROOT / ".build/release/httpware")
    options = parser.parse_args()
    if unknown := [name for name in options.overlays if name not in OVERLAYS]:
        parser.error(f"{unknown[0]} is not one of {' '.join(OVERLAYS)}")
    return tell(each for name in options.overlays or OVERLAYS for each in trial(name, options.binary.resolve()))


if __name__ == "__main__":
    sys.exit(main())
