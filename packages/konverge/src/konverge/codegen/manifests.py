"""Parse CRD files: names, scope, and a schema for each served version.

The input is not trusted, so every error says what was expected and where. A file may contain several documents, lists
of objects and objects of other kinds; only CustomResourceDefinitions are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import yaml

from konverge.errors import DecodeError
from konverge.objects.kinds import Kind, Scope

__all__ = ["CrdVersion", "read_crds"]

Schema = dict[str, Any]

# Twenty times the size of the largest published bundles.
MAX_CHARACTERS = 64 * 1024 * 1024
MAX_DEPTH = 200
# With YAML anchors, a short text can describe a schema with an unlimited number of fields.
MAX_FIELDS = 100_000
MAX_LEVELS = 60
_GROUP = "apiextensions.k8s.io"
_KIND = "CustomResourceDefinition"


@dataclass(frozen=True)
class CrdVersion:
    """One served version of a custom resource."""

    kind: Kind
    storage: bool
    schema: Schema


def read_crds(text: str, *, source: str = "input") -> list[CrdVersion]:
    """Return every served version of every CRD in a YAML or JSON text, in the order of the text.

    Raises: DecodeError that names `source` and the error.
    """
    if len(text) > MAX_CHARACTERS:
        raise DecodeError(f"{source} is too large for a file of CRDs: {len(text):,} characters")
    objects = [obj for document in _documents(text, source) for obj in _objects(document, source)]
    crds = [obj for obj in objects if obj.get("kind") == _KIND]
    if not crds:
        kinds = sorted({str(obj.get("kind")) for obj in objects if obj.get("kind")})
        found = f"only {', '.join(kinds)}" if kinds else "it is empty" if not objects else "its objects have no kind"
        raise DecodeError(f"no {_KIND} in {source}: {found}")
    return [version for crd in crds for version in _versions(crd, source)]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Loads YAML as Kubernetes does: a date is a string."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _documents(text: str, source: str) -> list[Any]:
    try:
        _check_depth(text, source)
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", at line {mark.line + 1}" if mark else ""
        raise DecodeError(f"{source} is not YAML: {error.problem or error.context}{where}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DecodeError(f"{source} is not YAML: {str(error).splitlines()[0]}") from error


def _check_depth(text: str, source: str) -> None:
    """Refuse deep nesting, which would overflow the stack of the C library and crash the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise DecodeError(f"{source} is not a file of CRDs: it is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _objects(document: Any, source: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document. kubectl prints several objects as a `List`."""
    if document is None:
        return
    if not isinstance(document, dict):
        raise DecodeError(f"{source}: expected an object with a kind, got {type(document).__name__}")
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for item in items:
            # Items of a typed list need not repeat their kind.
            yield from _objects(_with_kind(document, item), source)
    else:
        yield document


def _with_kind(parent: dict[str, Any], item: Any) -> Any:
    if isinstance(item, dict) and "kind" not in item and parent["kind"] == f"{_KIND}List":
        return {"apiVersion": parent.get("apiVersion"), "kind": _KIND, **item}
    return item


def _versions(crd: dict[str, Any], source: str) -> Iterator[CrdVersion]:
    anonymous = f"a {_KIND} in {source}"
    name = _text(_mapping(crd, "metadata", anonymous), "name", anonymous, path=".metadata")
    where = f"{_KIND} {name} in {source}"
    if crd.get("apiVersion") != f"{_GROUP}/v1":
        raise DecodeError(f"{where} has apiVersion {crd.get('apiVersion')}: only {_GROUP}/v1 is supported")
    spec = _mapping(crd, "spec", where)
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        raise DecodeError(f"{where} has no versions", path=".spec.versions")
    served = [_version(spec, each, place, where) for place, each in enumerate(versions) if _is_served(each)]
    if not served:
        raise DecodeError(f"{where} serves none of its versions", path=".spec.versions")
    yield from served


def _version(spec: dict[str, Any], version: dict[str, Any], place: int, where: str) -> CrdVersion:
    path = f".spec.versions[{place}]"
    names = _mapping(spec, "names", where, path=".spec")
    scope = _text(spec, "scope", where, path=".spec")
    if scope not in ("Namespaced", "Cluster"):
        raise DecodeError(f"{where} has scope {scope!r}, expected Namespaced or Cluster", path=".spec.scope")
    kind = Kind(
        _text(spec, "group", where, path=".spec"),
        _text(version, "name", where, path=path),
        _text(names, "kind", where, path=".spec.names"),
        _text(names, "plural", where, path=".spec.names"),
        Scope(scope),
    )
    schema = _mapping(_mapping(version, "schema", where, path=path), "openAPIV3Schema", where, path=f"{path}.schema")
    if _count_fields(schema, {}, MAX_LEVELS) > MAX_FIELDS:
        limits = f"more than {MAX_FIELDS:,} fields or {MAX_LEVELS} levels"
        raise DecodeError(f"{where}: the schema of {kind.version} has {limits}", path=path)
    return CrdVersion(kind, storage=version.get("storage") is True, schema=schema)


def _count_fields(schema: Any, known: dict[int, int], levels: int) -> int:
    """Count a schema and all nested ones. A shared schema is visited once and counted each time.

    A schema that is nested too deeply counts as too many fields.
    """
    if not isinstance(schema, dict):
        return 0
    if levels == 0:
        return MAX_FIELDS + 1
    if id(schema) not in known:
        properties = schema.get("properties")
        inner = [schema.get("items"), schema.get("additionalProperties")]
        inner += properties.values() if isinstance(properties, dict) else ()
        known[id(schema)] = 1 + sum(_count_fields(each, known, levels - 1) for each in inner)
    return known[id(schema)]


def _is_served(version: Any) -> bool:
    return isinstance(version, dict) and version.get("served", True) is not False


def _mapping(parent: dict[str, Any], field: str, where: str, *, path: str = "") -> dict[str, Any]:
    value = parent.get(field)
    if not isinstance(value, dict):
        error = "is missing" if value is None else f"is a {type(value).__name__}, expected an object"
        raise DecodeError(f"{where}: {path}.{field} {error}", path=f"{path}.{field}")
    return value


def _text(parent: dict[str, Any], field: str, where: str, *, path: str) -> str:
    value = parent.get(field)
    if not isinstance(value, str) or not value:
        error = "is missing" if value is None else f"is {value!r:.40}, expected a string"
        raise DecodeError(f"{where}: {path}.{field} {error}", path=f"{path}.{field}")
    return value
