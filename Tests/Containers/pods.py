"""The image in a container as the overlays of docker/kubernetes describe it: user, rights, arguments, and volumes that kubelet writes and changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from Containers.engine import Engine
from Containers.image import IMAGE, Origin, Running
from Rig.packages import provide
from Rig.processes import Workplace
from Rig.results import line
from Rig.waits import eventually

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docker/kubernetes"
CHANGE = ("routes:\n", 'routes:\n  - { name: changed, match: { path: /changed }, chain: changed }\n'), ("chains:\n", "chains:\n  changed: { middlewares: [{ mock: { body: changed } }] }\n")
# The services of the overlays, which the container finds on the loopback, and the URL by which each is asked.
ASKED = {
    "gateway": ({"orders.default.svc.cluster.local", "shop.default.svc.cluster.local"}, "https://www.example.com:8443/orders/1", ["--resolve", "www.example.com:8443:127.0.0.1"]),
    "sidecar": (set(), "http://127.0.0.1:8080/orders/1", []),
}


def trial(engine: Engine) -> Iterator[dict]:
    provide("PyYAML==6.0.3")
    from Kubernetes.kustomize import build
    from Kubernetes.pod import Pod

    engine.network()
    for name, (hosts, url, options) in ASKED.items():
        place = Workplace("pods")
        try:
            overlay = place.folder / "kubernetes" / name
            shutil.copytree(FOLDER, overlay.parent, ignore=shutil.ignore_patterns("secrets"))
            head = [text[1:].strip() for text in (overlay / "kustomization.yaml").read_text().splitlines() if text.startswith("#   ")]
            engine.type("\n".join(text for text in head if not text.startswith("kubectl ")), overlay)
            pod = Pod(place, build(overlay))
            pod.mount(inside=True)
            if name == "gateway":
                options = [*options, "--cacert", str(overlay / "secrets/tls.crt")]
            yield from served(engine, pod, f"pods: {name}", hosts, url, options)
            pod.close()
        finally:
            place.close()


def served(engine: Engine, pod, part: str, hosts: set[str], url: str, options: list[str]) -> Iterator[dict]:
    over, own = pod.spec["securityContext"], pod.container["securityContext"]
    words = ["--network", "host", "--user", f"{over['runAsUser']}:{over['runAsGroup']}", "--memory", pod.container["resources"]["limits"]["memory"].removesuffix("i").lower()]
    words += ["--read-only", "--read-only-tmpfs=false"] if own["readOnlyRootFilesystem"] else []
    words += [] if own["allowPrivilegeEscalation"] else ["--security-opt", "no-new-privileges"]
    words += [f"--cap-drop={each}" for each in own["capabilities"]["drop"]]
    words += [word for path in pod.volumes for word in ("--volume", f"{pod.root}{path}:{path}:ro")]
    words += [word for host in hosts for word in ("--add-host", f"{host}:127.0.0.1")]
    with Origin(engine, 3000), Running(engine, *words, IMAGE, *pod.container["args"]) as container:
        probes = {name: f"http://127.0.0.1:9900{pod.container[name]['httpGet']['path']}" for name in ("startupProbe", "readinessProbe", "livenessProbe")}
        came = eventually(lambda: all(" 200 " in engine.ask(each).partition("\n")[0] for each in probes.values()))
        yield line(f"{part}: probes", "200 each, with the secrets that only its group can read", container.log[-400:] if not came else probes, came)
        answer = engine.ask(url, *options)
        yield line(f"{part}: answer", "the service's, by the file of the overlay as it is", answer[-200:], answer.endswith("from the origin server"))
        text = pod.configuration
        for old, new in CHANGE:
            text = text.replace(old, new)
        pod.write(text)
        changed = url.replace("/orders/1", "/changed")
        came = eventually(lambda: engine.ask(changed, *options).endswith("changed"), 5)
        yield line(f"{part}: a changed ConfigMap", "is in force within 5 s", container.log[-300:] if not came else "it is", came)
        engine.docker("stop", "--time", str(pod.spec["terminationGracePeriodSeconds"]), container.name)
        yield line(f"{part}: SIGTERM", "ends with 0", container.status, container.status == 0)
