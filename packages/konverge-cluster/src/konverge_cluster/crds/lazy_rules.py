"""Lazy loading of validation rules: the CEL engine is imported with the first rule."""

from __future__ import annotations

from typing import Any

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.crds.compiled import RuleSet
from konverge_cluster.crds.schema_checks import RuleCompiler
from konverge_cluster.crds.schema_rules import RuleSite
from konverge_cluster.crds.structural import Structural

__all__ = ["LazyRules"]


class LazyRules:
    """A `RuleCompiler` that imports the CEL engine when the first schema with rules is compiled."""

    def __init__(self) -> None:
        self._loaded: RuleCompiler | None = None

    def _rules(self) -> RuleCompiler:
        if self._loaded is None:
            # Not at the top: most clusters have no rules, and the CEL engine takes longer to import than all the rest.
            from konverge_cluster.crds.rules import Rules

            self._loaded = Rules()
        return self._loaded

    def site_errors(self, sites: list[RuleSite], path: str) -> list[FieldError]:
        return self._rules().site_errors(sites, path) if sites else []

    def check_default(self, schema: Structural, default: Any, path: str, is_resource: bool) -> list[FieldError]:
        return self._rules().check_default(schema, default, path, is_resource) if has_rules(schema) else []

    def compile(self, schema: Structural) -> RuleSet | None:
        return self._rules().compile(schema) if has_rules(schema) else None


def has_rules(schema: Structural) -> bool:
    """Report whether a schema has rules anywhere."""
    return any(node.rules for node in schema.walk())
