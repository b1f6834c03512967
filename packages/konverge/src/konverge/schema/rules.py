"""CEL rules, as far as they can be judged without compiling them.

Only the server compiles an expression. What can be told here is told here: a rule that looks back (`oldSelf`) where the
server cannot tell which old value belongs to which new one, and a `field_path` that leads nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from konverge.schema.leaves import PRIVATE, Schema
from konverge.schema.markers import Rule, uses_old_self
from konverge.schema.paths import follow
from konverge.schema.refusals import refused_value

__all__ = ["check_rules", "exactly_one_rule", "published"]

_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)


def check_rules(schema: Schema, path: str, *, lost: str = "") -> None:
    """Check the rules of a schema and of all its parts; `lost` is the list or struct in which old values are lost.

    Raises: ValueError for a rule that the server would refuse.
    """
    for rule in schema.get("x-kubernetes-validations", ()):
        if lost and uses_old_self(rule["rule"]):
            what = f"the rule {rule['rule']!r} uses oldSelf where the server cannot match old items with new ones"
            raise refused_value(path, what, f"make {lost} a ListMap, or move the rule up to it")
        if "fieldPath" in rule:
            follow(schema, rule["fieldPath"], path)
    inside = lost or (path if schema.get("x-kubernetes-map-type") == "atomic" else "")
    for name, part in schema.get("properties", {}).items():
        check_rules(part, f"{path}.{name}", lost=inside)
    if "additionalProperties" in schema:
        check_rules(schema["additionalProperties"], f"{path}.*", lost=lost)
    if "items" in schema:
        keyed = schema.get("x-kubernetes-list-type") == "map"
        check_rules(schema["items"], f"{path}[]", lost=lost or ("" if keyed else path))


def exactly_one_rule(names: Sequence[str]) -> Rule:
    """Give the rule that exactly one of the fields is set."""
    given = ", ".join(f"has(self.{_escaped(name)})" for name in names)
    return Rule(f"[{given}].filter(given, given).size() == 1", message=f"exactly one of {', '.join(names)} is wanted")


def published(schema: Any) -> Any:
    """Return a copy of a schema without what only konverge reads in it."""
    if isinstance(schema, dict):
        return {key: published(value) for key, value in schema.items() if not key.startswith(PRIVATE)}
    return [published(value) for value in schema] if isinstance(schema, list) else schema


def _escaped(name: str) -> str:
    """Write a field name as CEL wants it."""
    escaped = name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__")
    escaped = escaped.replace("/", "__slash__")
    return f"__{escaped}__" if escaped in _RESERVED else escaped
