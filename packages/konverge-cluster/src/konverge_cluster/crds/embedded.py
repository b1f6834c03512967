"""Resources inside a resource (`x-kubernetes-embedded-resource`): their kind, apiVersion and metadata.

Reading brings the metadata of an embedded resource into the shape that metadata has everywhere. Validation demands kind
and apiVersion, and checks the metadata like that of an object of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from konverge.objects.names import rfc1035_label_errors
from konverge_cluster.api.field_errors import FieldError, invalid, required
from konverge_cluster.api.metadata import FieldTypeError, decode_metadata, json_type, metadata_errors
from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.crds.paths import Place, text_of
from konverge_cluster.crds.shown import shown
from konverge_cluster.crds.structural import Structural

__all__ = ["BadEmbedded", "compile_embedded", "embedded_problems", "read_embedded"]

Found = Callable[[Any, Place], list[tuple[dict[str, Any], Place]]]
"""Gives every embedded resource inside a value, with its place below that of the value; outer ones first."""

_Walk = Callable[[Any, Place, list[tuple[dict[str, Any], Place]]], None]


class BadEmbedded(ValueError):
    """An embedded resource that cannot be read; `problem` says where and why."""

    def __init__(self, problem: FieldError) -> None:
        super().__init__(str(problem))
        self.problem = problem


def compile_embedded(schema: Structural, *, with_root: bool = False) -> Found | None:
    """Make the search for embedded resources; None when the schema has none. The root itself counts only if asked."""
    walk = _compile(schema, root=not with_root)
    if walk is None:
        return None

    def find(value: Any, base: Place) -> list[tuple[dict[str, Any], Place]]:
        found: list[tuple[dict[str, Any], Place]] = []
        walk(value, base, found)
        return found

    return find


def _compile(schema: Structural | None, *, root: bool = False) -> _Walk | None:
    if schema is None:
        return None
    below = {name: inner for name, each in schema.properties.items() if (inner := _compile(each)) is not None}
    walk_value, walk_item = _compile(schema.values), _compile(schema.items)
    is_resource = schema.embedded and not root
    if not (is_resource or below or walk_value or walk_item):
        return None

    def walk(value: Any, place: Place, found: list[tuple[dict[str, Any], Place]]) -> None:
        if isinstance(value, list):
            if walk_item is not None:
                for index, item in enumerate(value):
                    walk_item(item, (place, index), found)
            return
        if not isinstance(value, dict):
            return
        if is_resource:
            found.append((value, place))
        for name, walk_member in below.items():
            if name in value:
                walk_member(value[name], (place, f".{name}"), found)
        if walk_value is not None:
            for key, item in value.items():
                walk_value(item, (place, f"[{key}]"), found)

    return walk


def read_embedded(find: Found, document: Any, base: Place = None) -> list[str]:
    """Bring embedded metadata into shape, in place; return the unknown fields in it, sorted.

    `base` is where the document itself stands.

    Raises: BadEmbedded.
    """
    unknown: list[str] = []
    for resource, place in find(document, base):
        for name in ("apiVersion", "kind"):
            if name in resource and not isinstance(resource[name], str):
                problem = invalid(text_of((place, f".{name}")), shown(resource[name]), "must be a string")
                raise BadEmbedded(problem)
        if "metadata" in resource:
            unknown += _read_metadata(resource, text_of((place, ".metadata")))
    return sorted(unknown)


def _read_metadata(resource: dict[str, Any], path: str) -> list[str]:
    metadata = resource["metadata"]
    try:
        resource["metadata"], unknown = _decoded(metadata, path)
    except FieldTypeError as fault:
        raise BadEmbedded(invalid(path, shown(metadata), str(fault))) from None
    return [text.removeprefix('unknown field "').removesuffix('"') for text in unknown]


def _decoded(metadata: Any, path: str) -> tuple[dict[str, Any], list[str]]:
    if metadata is not None and not isinstance(metadata, dict):
        raise FieldTypeError(f"json: cannot unmarshal {json_type(metadata)} into Go value of type v1.ObjectMeta")
    return decode_metadata(metadata or {}, path, custom=True)


def embedded_problems(find: Found, document: Any, base: Place = None) -> list[FieldError]:
    """Say what is wrong with the embedded resources of an object."""
    problems: list[FieldError] = []
    for resource, place in find(document, base):
        problems += _identity_problems(resource, place)
        if "metadata" in resource:
            problems += _metadata_problems(resource["metadata"], text_of((place, ".metadata")))
    return problems


def _identity_problems(resource: dict[str, Any], place: Place) -> Iterator[FieldError]:
    for name, check in (("apiVersion", _version_text), ("kind", _kind_text)):
        path = text_of((place, f".{name}"))
        if name not in resource:
            yield required(path)
            continue
        value = resource[name]
        text = check(value) if isinstance(value, str) else "must be a string"
        if text:
            yield invalid(path, shown(value), text)


def _version_text(value: str) -> str:
    if not value:
        return "must not be empty"
    return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""


def _kind_text(value: str) -> str:
    if not value:
        return "must not be empty"
    texts = rfc1035_label_errors(value.lower())
    return f"may have mixed case, but should otherwise match: {','.join(texts)}" if texts else ""


def _metadata_problems(given: Any, path: str) -> list[FieldError]:
    try:
        metadata, _ = _decoded(given, path)
    except FieldTypeError as fault:
        return [invalid(path, shown(given), str(fault))]
    named = {**metadata, "name": metadata.get("name") or "fakename"}
    found = metadata_errors(
        named, namespaced=bool(named.get("namespace")), name_rule=path_segment_name_errors, custom=True
    )
    return [
        FieldError(each.reason, path + each.path.removeprefix("metadata"), each.value, each.detail) for each in found
    ]
