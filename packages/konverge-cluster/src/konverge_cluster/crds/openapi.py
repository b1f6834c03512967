"""The schema of a custom resource as published in OpenAPI: with kind, apiVersion and metadata, and a list type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from konverge_cluster.builtins.schemas import with_references
from konverge_cluster.crds.definitions import Definition, Version

__all__ = ["component_schemas", "model_name"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE: Final = "#/components/schemas/"
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized"
    " schemas to the latest internal value, and may reject unrecognized values. More info:"
    f" {_CONVENTIONS}#resources"
)
_KIND: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the"
    f" endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {_CONVENTIONS}#types-kinds"
)
_EMBEDDED_API_VERSION: Final = (
    f"apiVersion defines the versioned schema of this representation of an object. More info: {_CONVENTIONS}#resources"
)
_EMBEDDED_KIND: Final = (
    f"kind is a string value representing the type of this object. In CamelCase. More info: {_CONVENTIONS}#types-kinds"
)
_OBJECT_META: Final = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_META: Final = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
_NEEDED: Final = (
    f"{_META}.ObjectMeta",
    f"{_META}.ListMeta",
    f"{_META}.DeleteOptions",
    f"{_META}.Patch",
    f"{_META}.Status",
    f"{_META}.WatchEvent",
    "io.k8s.api.autoscaling.v1.Scale",
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def model_name(group: str, version: str, kind: str) -> str:
    """Return the name of a kind's schema: the reversed group, the version, the kind."""
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def component_schemas(definition: Definition, version: Version) -> Mapping[str, Any]:
    """Return every schema that the document of this kind needs, by name."""
    name = model_name(definition.group, version.name, definition.kind)
    found: dict[str, Any] = {}
    for each in _NEEDED:
        found |= with_references(each)
    found[name] = _object_schema(definition, version)
    found[model_name(definition.group, version.name, definition.list_kind)] = _list_schema(definition, version, name)
    return found


def _described(reference: str, description: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": _REFERENCE + reference}], "description": description}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _identity(definition: Definition, version: Version, kind: str) -> list[dict[str, str]]:
    return [{"group": definition.group, "version": version.name, "kind": kind}]


def _object_schema(definition: Definition, version: Version) -> dict[str, Any]:
    schema = _published(version.schema)
    own = {
        "apiVersion": _text(_API_VERSION),
        "kind": _text(_KIND),
        "metadata": _described(f"{_META}.ObjectMeta", _OBJECT_META),
    }
    schema["properties"] = {**(schema.get("properties") or {}), **own}
    schema["x-kubernetes-group-version-kind"] = _identity(definition, version, definition.kind)
    return _with_selectable(schema, version)


def _list_schema(definition: Definition, version: Version, name: str) -> dict[str, Any]:
    about = f"List of {definition.plural}. More info: {_CONVENTIONS}"
    schema: dict[str, Any] = {
        "description": f"{definition.list_kind} is a list of {definition.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _text(_API_VERSION),
            "items": {"description": about, "type": "array", "items": {"$ref": _REFERENCE + name}},
            "kind": _text(_KIND),
            "metadata": _described(f"{_META}.ListMeta", _LIST_META),
        },
        "x-kubernetes-group-version-kind": _identity(definition, version, definition.list_kind),
    }
    return _with_selectable(schema, version)


def _with_selectable(schema: dict[str, Any], version: Version) -> dict[str, Any]:
    if version.selectable:
        fields = [{"fieldPath": path.removeprefix(".")} for path in version.selectable]
        schema["x-kubernetes-selectable-fields"] = fields
    return schema


def _published(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the meaning of its extensions spelled out, recursively."""
    published = dict(schema)
    if "properties" in schema:
        published["properties"] = {name: _published(each) for name, each in (schema["properties"] or {}).items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            published[key] = _published(schema[key])
    if schema.get("x-kubernetes-int-or-string"):
        _unfold(published)
    if schema.get("x-kubernetes-embedded-resource"):
        _embed(published)
    return published


def _unfold(published: dict[str, Any]) -> None:
    if published.get("anyOf") == _INT_OR_STRING:
        return
    every = published.get("allOf") or []
    if every and every[0].get("anyOf") == _INT_OR_STRING:
        return
    if not published.get("anyOf"):
        published["anyOf"] = _INT_OR_STRING
    else:
        published["allOf"] = [{"anyOf": _INT_OR_STRING}, *every]


def _embed(published: dict[str, Any]) -> None:
    own = {
        "apiVersion": _text(_EMBEDDED_API_VERSION),
        "kind": _text(_EMBEDDED_KIND),
        "metadata": _described(f"{_META}.ObjectMeta", _OBJECT_META),
    }
    published["properties"] = {**(published.get("properties") or {}), **own}
    names = list(published.get("required") or [])
    published["required"] = names + [name for name in ("kind", "apiVersion") if name not in names]
