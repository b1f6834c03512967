"""OpenAPI schemas of the built-in kinds: without descriptions for merging, with descriptions for clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from konverge.objects.kinds import Kind
from konverge_cluster.builtins.data import load
from konverge_cluster.patches.openapi import Schemas
from konverge_cluster.patches.topology import Topology

__all__ = ["LazyTopologies", "merge_schemas", "schema_name", "with_references"]


@cache
def merge_schemas() -> Schemas:
    """Return all schemas without descriptions; they define how lists and maps merge."""
    return Schemas(load("schemas"))


@cache
def _described() -> dict[str, Any]:
    schemas: dict[str, Any] = load("openapi")
    return schemas


@cache
def _names() -> dict[tuple[str, str, str], str]:
    names: dict[tuple[str, str, str], str] = {}
    for name, schema in load("schemas").items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            names.setdefault((each["group"], each["version"], each["kind"]), name)
    return names


def schema_name(kind: Kind) -> str:
    """Return the name of a kind's schema, such as io.k8s.api.apps.v1.Deployment."""
    return _names()[kind.group, kind.version, kind.kind]


class LazyTopologies(Mapping[str, Topology]):
    """How the lists and maps of a resource merge, by apiVersion. Schemas are loaded on first access."""

    def __init__(self, versions: tuple[Kind, ...]) -> None:
        self._versions = {kind.api_version: kind for kind in versions}
        self._topologies: dict[str, Topology] = {}

    def __getitem__(self, api_version: str) -> Topology:
        topology = self._topologies.get(api_version)
        if topology is None:
            topology = merge_schemas().topology(schema_name(self._versions[api_version]))
            self._topologies[api_version] = topology
        return topology

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def all_schemas() -> Mapping[str, Any]:
    """Return all schemas of the built-in kinds, including lists and options."""
    return _described()


@cache
def with_references(name: str) -> Mapping[str, Any]:
    """Return a schema and all schemas that it references, directly or indirectly."""
    schemas: dict[str, Any] = {}
    pending = [name]
    while pending:
        each = pending.pop()
        if each not in schemas:
            schemas[each] = _described()[each]
            pending += _references(schemas[each])
    return schemas


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for each in schema for name in _references(each)]
    if not isinstance(schema, dict):
        return []
    target = schema.get("$ref")
    own = [target.rpartition("/")[2]] if isinstance(target, str) else []
    return own + [name for each in schema.values() for name in _references(each)]
