"""Rules when they are needed: the language behind them is loaded with the first rule that anybody writes."""

from __future__ import annotations

from typing import Any

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.crds.compiled import RuleSet
from konverge_cluster.crds.schema_checks import RuleCompiler
from konverge_cluster.crds.schema_rules import RuleSite
from konverge_cluster.crds.structural import Structural

__all__ = ["LateRules"]


class LateRules:
    """A `RuleCompiler` that costs nothing until a schema has rules."""

    def __init__(self) -> None:
        self._loaded: RuleCompiler | None = None

    def _rules(self) -> RuleCompiler:
        if self._loaded is None:
            # Not at the top: most clusters never see a rule, and the language takes longer to load than all the rest.
            from konverge_cluster.crds.rules import Rules

            self._loaded = Rules()
        return self._loaded

    def site_problems(self, sites: list[RuleSite], path: str) -> list[FieldError]:
        return self._rules().site_problems(sites, path) if sites else []

    def check_default(self, schema: Structural, default: Any, path: str, is_resource: bool) -> list[FieldError]:
        return self._rules().check_default(schema, default, path, is_resource) if has_rules(schema) else []

    def compile(self, schema: Structural) -> RuleSet | None:
        return self._rules().compile(schema) if has_rules(schema) else None


def has_rules(schema: Structural) -> bool:
    """Tell whether a schema has rules anywhere."""
    return any(node.rules for node in schema.walk())
