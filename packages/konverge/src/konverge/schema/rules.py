"""Checks of CEL rules that need no compiler.

Only the server compiles an expression. Two errors are found here: a transition rule (`oldSelf`) where the server cannot
match old values with new ones, and a `field_path` that is not in the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from konverge.schema.markers import Rule, uses_old_self
from konverge.schema.paths import follow
from konverge.schema.primitives import PRIVATE, Schema
from konverge.schema.schema_errors import invalid_value

__all__ = ["check_rules", "exactly_one_rule", "strip_private"]

_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)


def check_rules(schema: Schema, path: str, *, unmatched: str = "") -> None:
    """Check the rules of a schema and of all schemas in it.

    `unmatched` is the path of an enclosing list or struct where the server cannot match old values with new ones.

    Raises: ValueError for a rule that the server would reject.
    """
    for rule in schema.get("x-kubernetes-validations", ()):
        if unmatched and uses_old_self(rule["rule"]):
            what = f"the rule {rule['rule']!r} uses oldSelf where the server cannot match old items with new ones"
            raise invalid_value(path, what, f"make {unmatched} a ListMap, or move the rule up to it")
        if "fieldPath" in rule:
            follow(schema, rule["fieldPath"], path)
    nested = unmatched or (path if schema.get("x-kubernetes-map-type") == "atomic" else "")
    for name, part in schema.get("properties", {}).items():
        check_rules(part, f"{path}.{name}", unmatched=nested)
    if "additionalProperties" in schema:
        check_rules(schema["additionalProperties"], f"{path}.*", unmatched=unmatched)
    if "items" in schema:
        keyed = schema.get("x-kubernetes-list-type") == "map"
        check_rules(schema["items"], f"{path}[]", unmatched=unmatched or ("" if keyed else path))


def exactly_one_rule(names: Sequence[str]) -> Rule:
    """Return the rule that exactly one of the fields is set."""
    fields = ", ".join(f"has(self.{_escape(name)})" for name in names)
    return Rule(
        f"[{fields}].filter(given, given).size() == 1", message=f"exactly one of {', '.join(names)} is required"
    )


def strip_private(schema: Any) -> Any:
    """Return a copy of a schema without the keys that only konverge reads."""
    if isinstance(schema, dict):
        return {key: strip_private(value) for key, value in schema.items() if not key.startswith(PRIVATE)}
    return [strip_private(value) for value in schema] if isinstance(schema, list) else schema


def _escape(name: str) -> str:
    """Return a field name escaped for CEL."""
    escaped = name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__")
    escaped = escaped.replace("/", "__slash__")
    return f"__{escaped}__" if escaped in _RESERVED else escaped
