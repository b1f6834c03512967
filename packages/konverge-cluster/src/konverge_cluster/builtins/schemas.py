"""The OpenAPI schemas of the built-in kinds: bare ones for merging, described ones for whoever asks."""

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
    """Every schema without its prose, ready to tell how lists and maps merge."""
    return Schemas(load("schemas"))


@cache
def _described() -> dict[str, Any]:
    found: dict[str, Any] = load("openapi")
    return found


@cache
def _names() -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in load("schemas").items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault((each["group"], each["version"], each["kind"]), name)
    return found


def schema_name(kind: Kind) -> str:
    """The name of a kind's schema, such as io.k8s.api.apps.v1.Deployment."""
    return _names()[kind.group, kind.version, kind.kind]


class LazyTopologies(Mapping[str, Topology]):
    """How the lists and maps of a resource merge, by apiVersion; the schemas are read when somebody asks."""

    def __init__(self, versions: tuple[Kind, ...]) -> None:
        self._versions = {kind.api_version: kind for kind in versions}
        self._made: dict[str, Topology] = {}

    def __getitem__(self, api_version: str) -> Topology:
        made = self._made.get(api_version)
        if made is None:
            made = self._made[api_version] = merge_schemas().topology(schema_name(self._versions[api_version]))
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def all_schemas() -> Mapping[str, Any]:
    """All schemas of the built-in kinds, lists and options included."""
    return _described()


@cache
def with_references(name: str) -> Mapping[str, Any]:
    """A schema and all that it refers to."""
    found: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = _described()[each]
            waiting += _references(found[each])
    return found


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for each in schema for name in _references(each)]
    if not isinstance(schema, dict):
        return []
    target = schema.get("$ref")
    own = [target.rpartition("/")[2]] if isinstance(target, str) else []
    return own + [name for each in schema.values() for name in _references(each)]
