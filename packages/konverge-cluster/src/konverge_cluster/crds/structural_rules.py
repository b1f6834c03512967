"""Validation that a schema is structural, with the messages of the real server.

Every field and item has a type outside of value validations; value validations (`allOf`, `anyOf`, `oneOf`, `not`)
do not specify structure; metadata is not restricted beyond the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, required
from konverge_cluster.cel.patterns import pattern_error

__all__ = ["conversion_error", "structural_errors"]

_ROOT: Final = "must not be empty at the root"
_ITEM: Final = "must not be empty for specified array items"
_FIELD: Final = "must not be empty for specified object fields"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_BRANCHES: Final = ("anyOf", "allOf", "oneOf")

_NESTED: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_METADATA_KEYS: Final = ("type", "default", "properties")
_METADATA_FIELDS: Final = ({"name"}, {"generateName"}, {"name", "generateName"}, set[str]())

Schema = Mapping[str, Any]


def conversion_error(schema: Schema) -> str:
    """Return why a schema cannot be converted to a structural one, "" if it can."""
    for key in _UNSUPPORTED:
        if schema.get(key) not in (None, "", {}, []):
            return f"OpenAPIV3Schema '{key.removeprefix('$') if key == '$schema' else key}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next((error for inner in inner_schemas(schema) if (error := conversion_error(inner))), "")


def inner_schemas(schema: Schema) -> Iterator[Schema]:
    """Yield every schema directly inside another one, except those of unsupported keys."""
    yield from (schema.get("properties") or {}).values()
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), Mapping):
            yield schema[key]
    for key in _BRANCHES:
        yield from schema.get(key) or ()


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Return the errors of a root schema that is not structural, sorted by message."""
    found = [*_invariants(schema, path, _ROOT), *_completeness(schema, schema, path, path)]
    return sorted(found, key=str)


def _invariants(schema: Schema, path: str, missing: str) -> Iterator[FieldError]:
    items, more = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _invariants(items, f"{path}.items", _ITEM)
    for name, each in (schema.get("properties") or {}).items():
        yield from _invariants(each, f"{path}.properties[{name}]", _FIELD)
    if more is not None and missing is _ROOT:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(more, Mapping):
        yield from _invariants(more, f"{path}.additionalProperties", _FIELD)
    yield from _extensions(schema, path)
    yield from _values(schema, path, *_int_or_string_forms(schema))
    yield from _type(schema, path, missing)
    yield from _meta(schema, path, root=missing is _ROOT)


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _type(schema: Schema, path: str, missing: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    embedded = schema.get("x-kubernetes-embedded-resource")
    open_schema = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    elif not kind and not open_schema:
        yield required(f"{path}.type", missing)
    if embedded and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", text)
    if missing is _ROOT and kind not in ("", "object"):
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _meta(schema: Schema, path: str, *, root: bool) -> Iterator[FieldError]:
    """Validate kind, apiVersion and metadata, of the root and of embedded resources."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties = schema.get("properties") or {}
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        inner = properties.get(name)
        if inner is not None and (root or embedded) and inner.get("type", "") != kind:
            yield invalid(f"{path}.properties[{name}].type", inner.get("type", ""), f"must be {kind}")
    if root and "metadata" in properties and not _is_plain_metadata(properties["metadata"]):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", text)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", text)


def _is_plain_metadata(schema: Schema) -> bool:
    others = {
        key for key, value in schema.items() if key not in _METADATA_KEYS and value not in (None, "", [], {}, False)
    }
    return not others and set(schema.get("properties") or {}) in _METADATA_FIELDS


def _int_or_string_forms(schema: Schema) -> tuple[bool, bool]:
    """Report whether the types of an int-or-string are written out in `anyOf`, or in the first `allOf`."""
    every = schema.get("allOf") or [{}]
    return schema.get("anyOf") == _INT_OR_STRING, every[0].get("anyOf") == _INT_OR_STRING


def _values(schema: Schema, path: str, skip_any: bool, skip_first: bool) -> Iterator[FieldError]:
    for key in _BRANCHES:
        if key == "anyOf" and skip_any:
            continue
        for index, each in enumerate(schema.get(key) or ()):
            yield from _nested(each, f"{path}.{key}[{index}]", skip_first and key == "allOf" and index == 0)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not", False)
    pattern = schema.get("pattern")
    wrong = pattern_error(pattern) if pattern else ""
    if wrong:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {wrong}")


def _nested(schema: Schema, path: str, skip_any: bool) -> Iterator[FieldError]:
    yield from _values(schema, path, skip_any, False)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], f"{path}.items", False)
    properties = schema.get("properties") or {}
    for name, each in properties.items():
        yield from _nested(each, f"{path}.properties[{name}]", False)
    if schema.get("additionalProperties") not in (None, False):
        yield forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for key, text in _NESTED:
        if schema.get(key) not in (None, "", [], False):
            yield forbidden(f"{path}.{key}", text)
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(values: Schema, schema: Schema, path: str, where: str) -> Iterator[FieldError]:
    """Check that fields in value validations of the root are specified structurally too."""
    branches = [(f"{where}.not", values["not"])] if values.get("not") is not None else []
    for key in _BRANCHES:
        branches += [(f"{where}.{key}[{index}]", each) for index, each in enumerate(values.get(key) or ())]
    for field_path, each in branches:
        yield from _nested_completeness(each, schema, path, field_path)


def _nested_completeness(values: Schema, schema: Schema | None, path: str, where: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {where}")
        return
    yield from _completeness(values, schema, path, where)
    if isinstance(values.get("items"), Mapping):
        items = schema.get("items")
        inner = items if isinstance(items, Mapping) else None
        yield from _nested_completeness(values["items"], inner, f"{path}.items", f"{where}.items")
    for name, each in (values.get("properties") or {}).items():
        step = f".properties[{name}]"
        known = (schema.get("properties") or {}).get(name)
        yield from _nested_completeness(each, known, path + step, where + step)
