"""The container httpware of a composed Deployment, run without Kubernetes: its volumes, its arguments and its ports, on the loopback and in a folder."""

from __future__ import annotations

import base64
import re
import ssl
from pathlib import Path
from typing import Any

import yaml
from Kubernetes.kustomize import Document, containers
from Rig.mounts import Volume
from Rig.origins import Origin
from Rig.processes import Process, Workplace, free_port
from Rig.wire import Message, Wire, connect

NAME = "httpware"
BIND = re.compile(r'"(0\.0\.0\.0|127\.0\.0\.1):(\d+)"')


class Pod:
    """The container and its files, as Kubernetes makes them from the documents. Nothing runs before `start`."""

    def __init__(self, place: Workplace, documents: list[Document]):
        self.place, self.root = place, place.subfolder("pod")
        self.documents = {(each["kind"], each["metadata"]["name"]): each for each in documents}
        [self.deployment] = [each for each in documents if each["kind"] == "Deployment"]
        self.spec: dict[str, Any] = self.deployment["spec"]["template"]["spec"]
        [self.container] = [each for each in containers(self.deployment) if each["name"] == NAME]
        self.origin = Origin()
        self.ports: dict[int, int] = {}
        self.volumes: dict[str, Volume] = {}
        # The longest first: a mount's path may begin with another's.
        self.mounts = sorted((mount["mountPath"] for mount in self.container["volumeMounts"]), key=len, reverse=True)
        self.configuration = ""

    def contents(self, volume: str) -> dict[str, bytes]:
        """The files of a volume, by the document that it names."""
        [found] = [each for each in self.spec["volumes"] if each["name"] == volume]
        if "configMap" in found:
            data = self.documents["ConfigMap", found["configMap"]["name"]]["data"]
            return {name: text.encode() for name, text in data.items()}
        data = self.documents["Secret", found["secret"]["secretName"]]["data"]
        return {name: base64.b64decode(text) for name, text in data.items()}

    def files(self) -> set[str]:
        """The paths that are there in the container, by its mounts."""
        return {f"{mount['mountPath']}/{name}" for mount in self.container["volumeMounts"] for name in self.contents(mount["name"])}

    def mount(self, *, inside: bool = False) -> None:
        """Writes the volumes below the folder; `inside`, if a container has them at their own paths, and needs `fsGroup` to read them."""
        for mount in self.container["volumeMounts"]:
            contents = {name: content if inside else self.localized(content) for name, content in self.contents(mount["name"]).items()}
            group = self.spec["securityContext"]["fsGroup"] if inside else -1
            self.volumes[mount["mountPath"]] = Volume(self.root / mount["mountPath"].lstrip("/"), contents, 0o440, group)
            if "httpware.yaml" in contents:
                self.configuration = contents["httpware.yaml"].decode()

    def localized(self, content: bytes) -> bytes:
        """The content with the paths of this machine in place of the mounts."""
        text = content.decode()
        for path in self.mounts:
            text = re.sub(rf"(?<![\w/.-]){re.escape(path)}(?=/)", f"{self.root}{path}", text)
        return text.encode()

    def port(self, number: int | str) -> int:
        """The port of the loopback that stands for a port of the container; a name is that of its list."""
        if isinstance(number, str):
            [number] = [each["containerPort"] for each in self.container["ports"] if each["name"] == number]
        return self.ports.setdefault(number, free_port())

    def placed(self, configuration: str) -> str:
        """A configuration with the ports and the origin server of this machine."""
        text = BIND.sub(lambda match: f'"127.0.0.1:{self.port(int(match[2]))}"', configuration)
        return re.sub(r'baseUrl: "[^"]*"', f'baseUrl: "http://127.0.0.1:{self.origin.port}"', text)

    def write(self, configuration: str) -> None:
        """Changes the ConfigMap."""
        self.volumes["/etc/httpware"].write({"httpware.yaml": configuration})

    def start(self, binary: Path) -> Process:
        self.write(self.placed(self.configuration))
        arguments = [f"{self.root}{word}" if word.startswith("/") else word for word in self.container["args"]]
        return self.place.command([str(binary), *arguments], [self.port(each["containerPort"]) for each in self.container["ports"]])

    def bound(self) -> tuple[set[int], set[int]]:
        """The ports that the configuration opens to the network, and the ports that it opens to the pod alone."""
        found = BIND.findall(self.configuration)
        return {int(port) for address, port in found if address == "0.0.0.0"}, {int(port) for address, port in found if address != "0.0.0.0"}

    def probe(self, name: str) -> int:
        """The status that a probe gets."""
        target = self.container[name]["httpGet"]
        # By the address of the pod, as kubelet asks.
        return self.ask(target["port"], target["path"], host="10.244.0.7:9900").status

    def ask(self, port: int | str, target: str, **more: Any) -> Message:
        client = self.send(port, target, **more)
        try:
            return client.read_response()
        finally:
            client.close()

    def send(self, port: int | str, target: str, *, host: str = "www.example.com", authority: Path | None = None, fields: str = "") -> Wire:
        client = connect(("127.0.0.1", self.port(port)), 10)
        if authority:
            context = ssl.create_default_context(cafile=str(authority))
            client = Wire(context.wrap_socket(client.sock, server_hostname=host))
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
        return client

    def slowest(self) -> float:
        """Seconds that the slowest exchange may take, by the timeouts of the services."""
        services = yaml.safe_load(self.configuration)["services"].values()
        return max(sum(float(re.fullmatch(r"(\d+)s", service["timeouts"][name])[1]) for name in ("connect", "response")) for service in services)

    def close(self) -> None:
        self.origin.end()
        self.origin.close()
