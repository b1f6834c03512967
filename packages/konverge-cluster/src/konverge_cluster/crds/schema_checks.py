"""Validation of the schema of one version: structure, defaults and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from konverge_cluster.api.field_errors import FieldError, forbidden, invalid
from konverge_cluster.crds.compiled import RuleSet
from konverge_cluster.crds.default_rules import default_errors
from konverge_cluster.crds.formats import unrecognized_format
from konverge_cluster.crds.printable_definitions import printable_schema
from konverge_cluster.crds.schema_rules import RuleSite, SchemaWalk
from konverge_cluster.crds.structural import Structural, read_structural
from konverge_cluster.crds.structural_rules import conversion_error, inner_schemas, structural_errors

__all__ = ["RuleCompiler", "schema_errors", "unrecognized_formats"]

_AT_ROOT: Final = {
    "Description": "description",
    "Type": "type",
    "Format": "format",
    "Title": "title",
    "Maximum": "maximum",
    "ExclusiveMaximum": "exclusiveMaximum",
    "Minimum": "minimum",
    "ExclusiveMinimum": "exclusiveMinimum",
    "MaxLength": "maxLength",
    "MinLength": "minLength",
    "Pattern": "pattern",
    "MaxItems": "maxItems",
    "MinItems": "minItems",
    "UniqueItems": "uniqueItems",
    "MultipleOf": "multipleOf",
    "Required": "required",
    "Items": "items",
    "Properties": "properties",
    "ExternalDocs": "externalDocs",
    "Example": "example",
    "XPreserveUnknownFields": "x-kubernetes-preserve-unknown-fields",
    "XValidations": "x-kubernetes-validations",
}
"""Fields that are allowed at the root beside a status subresource, by the server's names."""


class RuleCompiler(Protocol):
    """Compiles the rules of schemas (`x-kubernetes-validations`)."""

    def site_errors(self, sites: list[RuleSite], path: str) -> list[FieldError]:
        """Return the errors of the rules of a schema, including rules that do not compile."""
        ...

    def check_default(self, schema: Structural, default: Any, path: str, is_resource: bool) -> list[FieldError]:
        """Check a default against the rules of its schema."""
        ...

    def compile(self, schema: Structural) -> RuleSet | None:
        """Compile the rules of a whole resource; return None if it has none."""
        ...


def schema_errors(schema: Mapping[str, Any], path: str, has_status: bool, rules: RuleCompiler) -> list[FieldError]:
    """Return the errors of the schema of a version."""
    found = list(_root_errors(schema, path, has_status))
    error = conversion_error(schema)
    compiles = False
    if not error:
        structural = structural_errors(schema, path)
        defaults = [] if structural else default_errors(read_structural(schema), path, rules.check_default)
        found += structural or defaults
        compiles = not structural and not defaults
    walk = SchemaWalk()
    walk.visit(schema, path, with_rules=compiles)
    found += walk.errors
    if walk.sites:
        found += rules.site_errors(walk.sites, path)
    return [invalid(path, "", error)] if error and not found else found


def _root_errors(schema: Mapping[str, Any], path: str, has_status: bool) -> Iterator[FieldError]:
    if has_status:
        kind = schema.get("type", "")
        allowed = set(_AT_ROOT.values())
        odd = next((key for key, value in schema.items() if key not in allowed and value not in (None, False)), None)
        if kind not in ("", "object"):
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            yield invalid(f"{path}.type", kind, text)
        elif odd is not None:
            names = " ".join(_AT_ROOT)
            text = f"only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid(path, printable_schema(schema), text)
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def unrecognized_formats(schema: Mapping[str, Any]) -> Iterator[str]:
    """Return the formats in a schema that the server ignores."""
    if unrecognized_format({**schema, "x-kubernetes-int-or-string": False}):
        yield schema["format"]
    for inner in inner_schemas(schema):
        yield from unrecognized_formats(inner)
