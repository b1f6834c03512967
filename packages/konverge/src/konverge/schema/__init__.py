"""From Python classes to CRDs: `CustomResource` is checked when the class is made, `crd_for` gives what to apply."""

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
from konverge.schema.parts import NoStatus, Spec, Status
from konverge.schema.structural import schema_of
from konverge.schema.values import Problem, problems_of

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
    "Problem",
    "Rule",
    "Scale",
    "Spec",
    "Status",
    "WebhookConversion",
    "crd_for",
    "definition_of",
    "problems_of",
    "root_schema",
    "schema_of",
    "to_yaml",
    "validate",
]
