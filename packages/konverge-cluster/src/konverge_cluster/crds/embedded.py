"""Embedded resources (`x-kubernetes-embedded-resource`): their kind, apiVersion and metadata.

Reading decodes embedded metadata like that of any object. Validation requires kind and
apiVersion, and validates the metadata like that of any object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from konverge.objects.names import rfc1035_label_errors
from konverge_cluster.api.field_errors import FieldError, invalid, required
from konverge_cluster.api.metadata import FieldTypeError, decode_metadata, json_type, metadata_errors
from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.crds.paths import FieldPath, format_path
from konverge_cluster.crds.printable_values import printable_value
from konverge_cluster.crds.structural import Structural

__all__ = ["EmbeddedResourceError", "compile_embedded", "embedded_errors", "read_embedded"]

FindEmbedded = Callable[[Any, FieldPath], list[tuple[dict[str, Any], FieldPath]]]
"""Returns every embedded resource inside a value, with its path below that of the value; outer ones first."""

_Walk = Callable[[Any, FieldPath, list[tuple[dict[str, Any], FieldPath]]], None]


class EmbeddedResourceError(ValueError):
    """An embedded resource cannot be decoded; `error` is the field error."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def compile_embedded(schema: Structural, *, with_root: bool = False) -> FindEmbedded | None:
    """Return a function that finds embedded resources; None if the schema has none. `with_root` includes the root."""
    walk = _compile(schema, root=not with_root)
    if walk is None:
        return None

    def find(value: Any, base: FieldPath) -> list[tuple[dict[str, Any], FieldPath]]:
        found: list[tuple[dict[str, Any], FieldPath]] = []
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

    def walk(value: Any, field_path: FieldPath, found: list[tuple[dict[str, Any], FieldPath]]) -> None:
        if isinstance(value, list):
            if walk_item is not None:
                for index, item in enumerate(value):
                    walk_item(item, (field_path, index), found)
            return
        if not isinstance(value, dict):
            return
        if is_resource:
            found.append((value, field_path))
        for name, walk_member in below.items():
            if name in value:
                walk_member(value[name], (field_path, f".{name}"), found)
        if walk_value is not None:
            for key, item in value.items():
                walk_value(item, (field_path, f"[{key}]"), found)

    return walk


def read_embedded(find: FindEmbedded, document: Any, base: FieldPath = None) -> list[str]:
    """Decode embedded metadata in place; return its unknown fields, sorted.

    `base` is the path of the document itself.

    Raises: EmbeddedResourceError.
    """
    unknown: list[str] = []
    for resource, field_path in find(document, base):
        for name in ("apiVersion", "kind"):
            if name in resource and not isinstance(resource[name], str):
                error = invalid(
                    format_path((field_path, f".{name}")), printable_value(resource[name]), "must be a string"
                )
                raise EmbeddedResourceError(error)
        if "metadata" in resource:
            unknown += _read_metadata(resource, format_path((field_path, ".metadata")))
    return sorted(unknown)


def _read_metadata(resource: dict[str, Any], path: str) -> list[str]:
    metadata = resource["metadata"]
    try:
        resource["metadata"], unknown = _decoded(metadata, path)
    except FieldTypeError as error:
        raise EmbeddedResourceError(invalid(path, printable_value(metadata), str(error))) from None
    return [text.removeprefix('unknown field "').removesuffix('"') for text in unknown]


def _decoded(metadata: Any, path: str) -> tuple[dict[str, Any], list[str]]:
    if metadata is not None and not isinstance(metadata, dict):
        raise FieldTypeError(f"json: cannot unmarshal {json_type(metadata)} into Go value of type v1.ObjectMeta")
    return decode_metadata(metadata or {}, path, custom=True)


def embedded_errors(find: FindEmbedded, document: Any, base: FieldPath = None) -> list[FieldError]:
    """Return the errors of the embedded resources of an object."""
    errors: list[FieldError] = []
    for resource, field_path in find(document, base):
        errors += _identity_errors(resource, field_path)
        if "metadata" in resource:
            errors += _metadata_errors(resource["metadata"], format_path((field_path, ".metadata")))
    return errors


def _identity_errors(resource: dict[str, Any], field_path: FieldPath) -> Iterator[FieldError]:
    for name, check in (("apiVersion", _version_text), ("kind", _kind_text)):
        path = format_path((field_path, f".{name}"))
        if name not in resource:
            yield required(path)
            continue
        value = resource[name]
        text = check(value) if isinstance(value, str) else "must be a string"
        if text:
            yield invalid(path, printable_value(value), text)


def _version_text(value: str) -> str:
    if not value:
        return "must not be empty"
    return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""


def _kind_text(value: str) -> str:
    if not value:
        return "must not be empty"
    texts = rfc1035_label_errors(value.lower())
    return f"may have mixed case, but should otherwise match: {','.join(texts)}" if texts else ""


def _metadata_errors(given: Any, path: str) -> list[FieldError]:
    try:
        metadata, _ = _decoded(given, path)
    except FieldTypeError as error:
        return [invalid(path, printable_value(given), str(error))]
    named = {**metadata, "name": metadata.get("name") or "fakename"}
    found = metadata_errors(
        named, namespaced=bool(named.get("namespace")), name_rule=path_segment_name_errors, custom=True
    )
    return [
        FieldError(each.reason, path + each.path.removeprefix("metadata"), each.value, each.detail) for each in found
    ]
