"""The composition of `kubectl kustomize`, for the few features that docker/kubernetes uses; any other is refused by name.

Machines without kubectl compose by it, and where kubectl is there, run.py compares both.
"""

from __future__ import annotations

import base64
import copy
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]
FEATURES = {"apiVersion", "kind", "resources", "labels", "images", "configMapGenerator", "secretGenerator", "generatorOptions", "namePrefix", "patches"}
# The places where a kind selects pods or labels them, beside its own labels. The last word is made if it is missing.
LABELLED: dict[str, list[str]] = {
    "ConfigMap": [],
    "Secret": [],
    "HorizontalPodAutoscaler": [],
    "Service": ["spec/selector"],
    "PodDisruptionBudget": ["spec/selector/matchLabels"],
    "Deployment": ["spec/selector/matchLabels", "spec/template/metadata/labels", "spec/template/spec/topologySpreadConstraints/*/labelSelector/matchLabels"],
}


class Unknown(Exception):
    """A feature that this module does not know: it composes nothing rather than something else."""


def only(what: str, given: dict, *known: str) -> None:
    if more := sorted(set(given) - set(known)):
        raise Unknown(f"{what}: {', '.join(more)}")


def build(folder: Path) -> list[Document]:
    """The documents of a folder with a kustomization.yaml."""
    file = folder / "kustomization.yaml"
    features = yaml.safe_load(file.read_text())
    only(str(file), features, *FEATURES)
    documents: list[Document] = []
    for name in features.get("resources", []):
        place = folder / name
        documents += build(place) if place.is_dir() else [each for each in yaml.safe_load_all(place.read_text()) if each]
    options = features.get("generatorOptions", {})
    only(f"{file}: generatorOptions", options, "disableNameSuffixHash")
    for kind in ("configMap", "secret"):
        for each in features.get(f"{kind}Generator", []):
            if not options.get("disableNameSuffixHash"):
                raise Unknown(f"{file}: names with the sum of their content")
            documents.append(generated(folder, kind, each))
    for each in documents:
        if each["kind"] not in LABELLED:
            raise Unknown(f"{file}: the kind {each['kind']}")
    for patch in features.get("patches", []):
        only(f"{file}: patch", patch, "target", "patch")
        only(f"{file}: target", patch["target"], "kind", "name")
        found = [each for each in documents if (each["kind"], each["metadata"]["name"]) == (patch["target"]["kind"], patch["target"]["name"])]
        if not found:
            raise Unknown(f"{file}: nothing is {patch['target']}")
        for each in found:
            for operation in yaml.safe_load(patch["patch"]):
                apply(each, operation)
    if prefix := features.get("namePrefix"):
        rename(documents, prefix)
    for labels in features.get("labels", []):
        only(f"{file}: labels", labels, "pairs", "includeSelectors")
        for each in documents:
            label(each, labels["pairs"], labels.get("includeSelectors", False))
    for image in features.get("images", []):
        only(f"{file}: image", image, "name", "newTag", "newName")
        for container in (container for each in documents for container in containers(each)):
            name, _, tag = container["image"].partition(":")
            if name == image["name"]:
                container["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"
    return documents


def generated(folder: Path, kind: str, given: dict) -> Document:
    only(f"{folder}: {kind}Generator", given, "name", "files", "type")
    contents = {Path(name).name: (folder / name).read_bytes() for name in given["files"]}
    document: Document = {"apiVersion": "v1", "metadata": {"name": given["name"]}}
    if kind == "configMap":
        return {**document, "kind": "ConfigMap", "data": {name: content.decode() for name, content in contents.items()}}
    return {**document, "kind": "Secret", "type": given.get("type", "Opaque"), "data": {name: base64.b64encode(content).decode() for name, content in contents.items()}}


def containers(document: Document) -> list[dict]:
    """All containers of the pods, those first that start first."""
    if document["kind"] != "Deployment":
        return []
    pod = document["spec"]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]


# MARK: JSON Patch (RFC 6902)


def place(document: Any, pointer: str) -> tuple[Any, Any]:
    """The list or map that has the value, and its index or name there."""
    words = [word.replace("~1", "/").replace("~0", "~") for word in pointer.split("/")[1:]]
    for word in words[:-1]:
        document = document[int(word)] if isinstance(document, list) else document[word]
    if isinstance(document, list):
        return document, len(document) if words[-1] == "-" else int(words[-1])
    return document, words[-1]


def apply(document: Document, operation: dict) -> None:
    only("patch", operation, "op", "path", "from", "value")
    inside, key = place(document, operation["path"])
    match operation["op"]:
        case "add":
            put(inside, key, operation["value"])
        case "replace":
            inside[key]  # must be there
            inside[key] = operation["value"]
        case "remove":
            del inside[key]
        case "move":
            source, name = place(document, operation["from"])
            value = source.pop(name)
            put(*place(document, operation["path"]), value)
        case other:
            raise Unknown(f"patch: the operation {other}")


def put(inside: Any, key: Any, value: Any) -> None:
    if isinstance(inside, list):
        if key > len(inside):
            raise IndexError(f"index {key} of {len(inside)}")
        inside.insert(key, copy.deepcopy(value))
    else:
        inside[key] = copy.deepcopy(value)


# MARK: Names and labels


def rename(documents: list[Document], prefix: str) -> None:
    """Every document gets another name, also where the others of this composition name it."""
    names = {(each["kind"], each["metadata"]["name"]) for each in documents}

    def renamed(kind: str, inside: dict, key: str) -> None:
        if (kind, inside[key]) in names:
            inside[key] = prefix + inside[key]

    for each in documents:
        for volume in each["spec"]["template"]["spec"].get("volumes", []) if each["kind"] == "Deployment" else []:
            only("volume", volume, "name", "configMap", "secret", "emptyDir")
            if "configMap" in volume:
                renamed("ConfigMap", volume["configMap"], "name")
            if "secret" in volume:
                renamed("Secret", volume["secret"], "secretName")
        for container in containers(each):
            if "envFrom" in container or any("valueFrom" in variable for variable in container.get("env", [])):
                raise Unknown(f"the container {container['name']}: names in variables")
        if each["kind"] == "HorizontalPodAutoscaler":
            renamed(each["spec"]["scaleTargetRef"]["kind"], each["spec"]["scaleTargetRef"], "name")
    for each in documents:
        each["metadata"]["name"] = prefix + each["metadata"]["name"]


def label(document: Document, pairs: dict[str, str], selects: bool) -> None:
    document["metadata"].setdefault("labels", {}).update(pairs)
    if document["kind"] == "Deployment" and "affinity" in document["spec"]["template"]["spec"]:
        raise Unknown("affinity")
    for path in LABELLED[document["kind"]] if selects else []:
        *words, last = path.split("/")
        for inside in reached(document, words):
            if inside.get(last) is None:
                inside[last] = {}
            inside[last].update(pairs)


def reached(value: Any, words: list[str]) -> list[Any]:
    if not words:
        return [value]
    if words[0] == "*":
        return [found for each in value for found in reached(each, words[1:])]
    return reached(value[words[0]], words[1:]) if words[0] in value else []
