"""CRDs from Python classes: a `CustomResource` is checked when its class is created, `crd_for` returns the CRD."""

from __future__ import annotations

from konverge.schema.crds import WebhookConversion, crd_for, to_yaml
from konverge.schema.custom_resource import CustomResource, definition_of, root_schema, validate
from konverge.schema.definitions import AGE, Column, Definition, Scale
from konverge.schema.markers import (
    IMMUTABLE,
    Atomic,
    Default,
    EmbeddedResource,
    Format,
    ListMap,
    ListSet,
    Meta,
    Nullable,
    Opaque,
    PreserveUnknown,
    Rule,
)
from konverge.schema.structs import NoStatus, Spec, Status
from konverge.schema.structural import schema_of
from konverge.schema.values import Violation, find_violations

__all__ = [
    "AGE",
    "IMMUTABLE",
    "Atomic",
    "Column",
    "CustomResource",
    "Default",
    "Definition",
    "EmbeddedResource",
    "Format",
    "ListMap",
    "ListSet",
    "Meta",
    "NoStatus",
    "Nullable",
    "Opaque",
    "PreserveUnknown",
    "Rule",
    "Scale",
    "Spec",
    "Status",
    "Violation",
    "WebhookConversion",
    "crd_for",
    "definition_of",
    "find_violations",
    "root_schema",
    "schema_of",
    "to_yaml",
    "validate",
]
