"""The environment of a container: from values, references and whole objects, in the order of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.processes.expansion import expand
from konverge_cluster.processes.sources import MissingSource, PodFacts, Sources

__all__ = ["resolve_environment"]


async def resolve_environment(
    container: Mapping[str, Any], facts: PodFacts, sources: Sources, base: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container: `base`, then `envFrom`, then `env`; later ones win and may use earlier ones.

    Raises: MissingSource when a reference that is not optional leads nowhere.
    """
    variables = dict(base)
    for one in container.get("envFrom") or ():
        variables |= await _whole_object(one, sources)
    for one in container.get("env") or ():
        value = await _value(one, container, facts, sources, variables)
        if value is not None:
            variables[one["name"]] = value
    return variables


async def _whole_object(entry: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    prefix = entry.get("prefix", "")
    found: dict[str, bytes] | None = None
    if reference := entry.get("configMapRef"):
        found = await sources.config_map(reference["name"], optional=reference.get("optional", False))
    elif reference := entry.get("secretRef"):
        found = await sources.secret(reference["name"], optional=reference.get("optional", False))
    return {f"{prefix}{name}": value.decode(errors="replace") for name, value in (found or {}).items()}


async def _value(
    entry: Mapping[str, Any],
    container: Mapping[str, Any],
    facts: PodFacts,
    sources: Sources,
    variables: Mapping[str, str],
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value", ""), variables)
    if reference := source.get("fieldRef"):
        return facts.field(reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return facts.resource(reference, container)
    if reference := source.get("configMapKeyRef"):
        optional = reference.get("optional", False)
        found = await sources.config_map(reference["name"], optional=optional)
        return _entry(found, reference, f"ConfigMap {facts.pod.namespace}/{reference['name']}")
    if reference := source.get("secretKeyRef"):
        optional = reference.get("optional", False)
        found = await sources.secret(reference["name"], optional=optional)
        return _entry(found, reference, f"Secret {facts.pod.namespace}/{reference['name']}")
    raise MissingSource(f"the source of environment variable {entry['name']!r} is not supported")


def _entry(found: Mapping[str, bytes] | None, reference: Mapping[str, Any], where: str) -> str | None:
    key = reference["key"]
    if found is not None and key in found:
        return found[key].decode(errors="replace")
    if reference.get("optional", False):
        return None
    raise MissingSource(f"couldn't find key {key} in {where}")
