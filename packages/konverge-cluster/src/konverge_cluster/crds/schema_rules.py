"""Validation of a schema beyond being structural: extensions, list keys, defaults, rules.

The walk collects errors and the rules (`x-kubernetes-validations`) that can be compiled. Rules are
only compiled if nothing else is invalid, at their schema or below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, required, unsupported
from konverge_cluster.crds.field_paths import FieldPathError, resolve_path
from konverge_cluster.crds.structural import META_FIELDS, read_structural

__all__ = ["RuleSite", "SchemaWalk"]

Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_FORBIDDEN: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_BRANCHES: Final = ("allOf", "oneOf", "anyOf")
_IN_KEYS: Final = "this property is in x-kubernetes-list-map-keys, so it"


@dataclass(frozen=True, slots=True)
class _Scope:
    """The scope of a schema.

    `no_defaults` says why defaults are forbidden there. `not_correlatable` is the list above it whose items have
    no old values. `count` is how many values of this schema an object can have, None without a bound.
    """

    no_defaults: str | None = None
    in_metadata: bool = False
    not_correlatable: str = ""
    with_rules: bool = True
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class RuleSite:
    """A schema with rules: its path, and properties of its scope."""

    schema: Schema
    path: str
    is_resource: bool
    count: int | None
    not_correlatable: str = ""


@dataclass(slots=True)
class SchemaWalk:
    """One walk through a schema. `sites` are the schemas whose rules can be compiled, in order."""

    errors: list[FieldError] = field(default_factory=list)
    sites: list[RuleSite] = field(default_factory=list)

    def visit(self, schema: Schema, path: str, *, with_rules: bool) -> None:
        """Validate a root schema and everything in it."""
        self._visit(schema, path, _Scope(with_rules=with_rules), root=True)

    def _visit(self, schema: Schema, path: str, scope: _Scope, *, root: bool = False) -> None:
        before = len(self.errors)
        self.errors += _own_errors(schema, path, scope)
        scope_below = replace(scope, count=_count_below(schema, scope.count))
        self._visit_values(schema, path, scope_below)
        self._visit_properties(schema, path, scope_below, root=root)
        self._visit_branches(schema, path, scope_below)
        self._visit_items(schema, path, scope_below)
        self.errors += _extension_errors(schema, path)
        if schema.get("x-kubernetes-validations"):
            self.errors += _rule_errors(schema, path)
            if len(self.errors) == before and scope.with_rules:
                is_resource = root or bool(schema.get("x-kubernetes-embedded-resource"))
                self.sites.append(RuleSite(schema, path, is_resource, scope.count, scope.not_correlatable))

    def _visit_values(self, schema: Schema, path: str, scope: _Scope) -> None:
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            if scope.in_metadata:
                scope = replace(scope, no_defaults="inside additionalProperties applying to object metadata")
            self._visit(more, f"{path}.additionalProperties", scope)

    def _visit_properties(self, schema: Schema, path: str, scope: _Scope, *, root: bool) -> None:
        if schema.get("x-kubernetes-map-type") not in (None, "granular", "atomic") and not scope.not_correlatable:
            scope = replace(scope, not_correlatable=path)
        for name, each in (schema.get("properties") or {}).items():
            inner = scope
            if (root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
                inner = replace(inner, in_metadata=True)
                if root:
                    inner = replace(inner, no_defaults=f"in top-level {name}")
            self._visit(each, f"{path}.properties[{name}]", inner)

    def _visit_branches(self, schema: Schema, path: str, scope: _Scope) -> None:
        scope = replace(scope, with_rules=False)
        if schema.get("not") is not None:
            self._visit(schema["not"], f"{path}.not", scope)
        for key in _BRANCHES:
            for index, each in enumerate(schema.get(key) or ()):
                self._visit(each, f"{path}.{key}[{index}]", scope)

    def _visit_items(self, schema: Schema, path: str, scope: _Scope) -> None:
        items = schema.get("items")
        if schema.get("x-kubernetes-list-type") != "map" and not scope.not_correlatable:
            scope = replace(scope, not_correlatable=path)
        if isinstance(items, Mapping):
            self._visit(items, f"{path}.items", scope)
        for index, each in enumerate(items if isinstance(items, list) else ()):
            self._visit(each, f"{path}.items[{index}]", scope)


def _count_below(schema: Schema, count: int | None) -> int | None:
    """Return how many values of the schemas directly inside this one there can be."""
    kind = schema.get("type", "")
    maximum: int | None = 1
    if kind == "array":
        maximum = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") is not None:
        maximum = schema.get("maxProperties")
    return None if count is None or maximum is None else count * max(maximum, 0)


def _own_errors(schema: Schema, path: str, scope: _Scope) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield unsupported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and scope.no_defaults is not None:
        yield forbidden(f"{path}.default", f"must not be set {scope.no_defaults}".rstrip())
    for key in _FORBIDDEN:
        if schema.get(key) not in (None, "", {}):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if scope.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)
    more = schema.get("additionalProperties")
    if more is not None and more is not True and schema.get("properties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")


def _extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None:
        yield from _belongs_to(schema, path, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            yield unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None:
        wrong = list(_belongs_to(schema, path, "array", "x-kubernetes-list-type"))
        yield from wrong
        if not wrong and list_type == "set":
            yield from _set_errors(schema, path)
        if list_type not in ("atomic", "set", "map"):
            yield unsupported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if schema.get("x-kubernetes-list-map-keys") and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield required(where, text) if list_type is None else invalid(where, list_type, text)
    if list_type == "map":
        yield from _list_map_errors(schema, path)
    if list_type in ("set", "map"):
        yield from _nullable_errors(schema, path, list_type)


def _belongs_to(schema: Schema, path: str, expected: str, key: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind != expected:
        text = f"must be {expected} if {key} is specified"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)


def _set_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield invalid(f"{path}.items.x-kubernetes-list-type", list_type, text)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.items.x-kubernetes-map-type", list_type, text)


def _list_map_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    keys = schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items")
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, Mapping):
        return
    if items.get("type", "") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), text)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, text)
        elif properties[key].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", text)
        if key in keys[:index]:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")


def _nullable_errors(schema: Schema, path: str, list_type: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    if list_type != "map":
        return
    properties, required_names = items.get("properties") or {}, items.get("required") or ()
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        inner, where = properties.get(key), f"{path}.items.properties[{key}]"
        if inner is None:
            continue
        if key not in required_names and inner.get("default") is None:
            yield required(f"{where}.default", f"{_IN_KEYS} must have a default or be a required property")
        if inner.get("nullable"):
            yield forbidden(f"{where}.nullable", f"{_IN_KEYS} cannot be nullable")


def _has_line_break(text: str) -> bool:
    return "\n" in text or "\r" in text


def _rule_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema["x-kubernetes-validations"]):
        where = f"{path}.x-kubernetes-validations[{index}]"
        yield from _message_errors(rule, where)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield unsupported(f"{where}.reason", reason, _REASONS)
        yield from _field_path_errors(schema, rule.get("fieldPath", ""), f"{where}.fieldPath")


def _message_errors(rule: Schema, where: str) -> Iterator[FieldError]:
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        yield required(f"{where}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{where}.message", message, "must be non-empty if specified")
    elif _has_line_break(message.strip()):
        yield invalid(f"{where}.message", message, "must not contain line breaks")
    elif _has_line_break(text) and not message.strip():
        yield required(f"{where}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        yield required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")


def _field_path_errors(schema: Schema, path: str, where: str) -> Iterator[FieldError]:
    if not path:
        return
    if not path.strip():
        yield invalid(where, path, "must be non-empty if specified")
    if _has_line_break(path):
        yield invalid(where, path, "must not contain line breaks")
    try:
        resolve_path(path, read_structural(schema))
    except FieldPathError:
        yield invalid(where, path, "must be a valid path")
