"""The software bill of materials of an operator's image, as CycloneDX JSON.

It is written here because the part of the format that is needed is a page of JSON: a library for it would be in every
operator image. It has no time stamp, so that the same release has the same bytes. It lists

- the pins of the requirements, if there are: exactly what the image installs, with its hashes;
- otherwise the distributions that are installed here, found by their metadata: the image may get newer ones;
- the base image, if it is pinned. What is inside it is listed by the scanner of an image, not here.
"""

from __future__ import annotations

import json
import re
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any, Final

from konverge.cli.manifests.release import Release
from konverge.cli.manifests.requirements import normalized

__all__ = ["sbom"]

_REQUIREMENT: Final = re.compile(r"\s*(?P<name>[A-Za-z0-9._-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;(?P<marker>.*))?")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_MAX_LICENSE: Final = 80


def sbom(release: Release) -> str:
    """Return the bill of materials of the image."""
    requirement = release.requirement or "konverge"
    installed = _installed(requirement)
    if release.requirements is not None:
        wanted = {one.name: one for one in release.requirements.items}
        components = [_component(one.name, one.version, one.hashes) for _, one in sorted(wanted.items())]
    else:
        components = [_component(name, found.version, (), found) for name, found in sorted(installed.items())]
    refs = {one["name"]: one["bom-ref"] for one in components}
    graph = {refs[name]: _needed(found, refs) for name, found in installed.items() if name in refs}
    top = [refs[one] for one in (normalized(requirement),) if one in refs]
    if release.base_image:
        components.append(_base_image(release.base_image))
        top.append(components[-1]["bom-ref"])
    return _document(release, components, {"operator": sorted(top), **graph})


def _document(release: Release, components: list[dict[str, Any]], graph: dict[str, list[str]]) -> str:
    operator = {"type": "application", "bom-ref": "operator", "name": release.operator.name, "version": release.image}
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "",
        "version": 1,
        "metadata": {"component": operator},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": needed} for ref, needed in sorted(graph.items())],
    }
    # The number of a document is that of its content.
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document))}"
    return json.dumps(document, indent=2) + "\n"


def _component(name: str, version: str, hashes: tuple[str, ...], found: Distribution | None = None) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if hashes:
        component["hashes"] = [{"alg": "SHA-256", "content": content} for content in hashes]
    if found is not None and (licenses := _licenses(found)):
        component["licenses"] = licenses
    return component


def _licenses(found: Distribution) -> list[dict[str, Any]]:
    metadata = found.metadata.json
    if "license_expression" in metadata:
        return [{"expression": metadata["license_expression"]}]
    # Older metadata has the whole text of a license in this field.
    name = str(metadata.get("license", ""))
    return [{"license": {"name": name}}] if name and len(name) <= _MAX_LICENSE and "\n" not in name else []


def _base_image(image: str) -> dict[str, Any]:
    name, _, digest = image.partition("@")
    purl = f"pkg:oci/{name.rpartition('/')[2].partition(':')[0]}@{digest.replace(':', '%3A')}"
    return {"type": "container", "bom-ref": purl, "name": name, "version": digest, "purl": purl}


def _installed(requirement: str) -> dict[str, Distribution]:
    """Return the installed distributions that one needs, and itself, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(requirement, frozenset[str]())]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            found[normalized(name)] = each = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform, or another version of Python
        new = _requirements(each, extras) - seen
        seen |= new
        waiting += new
    return found


def _requirements(found: Distribution, extras: frozenset[str]) -> set[tuple[str, frozenset[str]]]:
    """Return what a distribution needs with these extras: names, and the extras of each."""
    needed = set()
    for text in found.requires or ():
        match = _REQUIREMENT.match(text)
        assert match is not None, text
        wanted = set(_EXTRA.findall(match["marker"] or ""))
        if not wanted or wanted & extras:
            own = (one.strip() for one in (match["extras"] or "").split(","))
            needed.add((normalized(match["name"]), frozenset(one for one in own if one)))
    return needed


def _needed(found: Distribution, refs: dict[str, str]) -> list[str]:
    return sorted({refs[name] for name, _ in _requirements(found, frozenset()) if name in refs})
