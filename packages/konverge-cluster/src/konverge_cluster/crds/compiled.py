"""A schema made ready: everything that is done with an object of one version of a custom resource, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.defaulting import compile_defaulter
from konverge_cluster.crds.embedded import compile_embedded, embedded_problems, read_embedded
from konverge_cluster.crds.pruning import compile_pruner
from konverge_cluster.crds.scaling import ScalePaths
from konverge_cluster.crds.structural import read_structural
from konverge_cluster.crds.uniqueness import compile_uniqueness
from konverge_cluster.crds.values import Checker, value_problems

__all__ = ["CompiledSchema", "RuleSet"]

_BLOCKING: Final = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_BLOCKED: Final = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation",
)


class RuleSet(Protocol):
    """The `x-kubernetes-validations` of a schema."""

    def problems(self, new: Any, old: Any, correlation: Correlation | None) -> list[FieldError]:
        """What the rules say about an object; `old` is None when it is new."""
        ...

    def tolerated(self, new: Any, old: Any, correlation: Correlation) -> list[FieldError]:
        """What the rules say about values that are unchanged; it is no reason to refuse a change."""
        ...


class CompiledSchema:
    """What a schema does to an object.

    `read` drops what the schema does not know; `fill` sets defaults; the three `...problems` say what is wrong. A
    schema is never changed after it was compiled, and holds nothing of the objects that it has seen.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.structural = read_structural(schema)
        self._prune = compile_pruner(self.structural)
        self._fill = compile_defaulter(self.structural)
        self._unique = compile_uniqueness(self.structural)
        self._embedded = compile_embedded(self.structural)
        self._checker = Checker(schema, root=True)
        status = (schema.get("properties") or {}).get("status")
        self._status_checker = Checker(status, root=True) if status is not None else None
        self.rules: RuleSet | None = None

    def read(self, document: dict[str, Any]) -> list[str]:
        """Prune an object in place; return the paths of what was unknown, in the server's order.

        Raises: BadEmbedded.
        """
        unknown = self._prune(document)
        return unknown + read_embedded(self._embedded, document) if self._embedded is not None else unknown

    def fill(self, document: dict[str, Any]) -> None:
        """Set the defaults, in place."""
        if self._fill is not None:
            self._fill(document)

    def problems(self, new: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Say what is wrong with a new object."""
        found = value_problems(self._checker, new)
        if scale is not None:
            found += [*scale.spec_problems(new), *scale.status_problems(new)]
        found += self._embedded_problems(new)
        if self._unique is not None:
            found += self._unique(new)
        return found + self._rule_problems(found, new, None, None)

    def update_problems(self, new: dict[str, Any], old: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Say what is wrong with a changed object; what was wrong before and is unchanged does not count."""
        correlation = Correlation(new, old, self.structural)
        found = self._changed_problems(self._checker, new, correlation)
        if scale is not None:
            found += [*scale.spec_problems(new), *scale.status_problems(new)]
        found += self._embedded_problems(new)
        found += self._new_repetitions(new, old)
        return found + self._rule_problems(found, new, old, correlation)

    def status_problems(self, new: dict[str, Any], old: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Say what is wrong with an object whose status was changed."""
        correlation = Correlation(new, old, self.structural)
        found: list[FieldError] = []
        if "status" in new and self._status_checker is not None:
            pair = correlation.key("status")
            found = self._changed_problems(self._status_checker, new["status"], pair, "status")
        if scale is not None:
            found += scale.status_problems(new)
        found += self._new_repetitions(new, old)
        return found + self._rule_problems(found, new, old, correlation)

    def update_warnings(self, new: dict[str, Any], old: dict[str, Any]) -> list[str]:
        """Say which rules an object breaks that nobody refuses it for, since what breaks them is unchanged."""
        if self.rules is None:
            return []
        return [str(each) for each in self.rules.tolerated(new, old, Correlation(new, old, self.structural))]

    @staticmethod
    def _changed_problems(checker: Checker, value: Any, pair: Correlation | None, base: str = "") -> list[FieldError]:
        # Most objects have nothing wrong with them; only those that have are compared with what they were.
        if not value_problems(checker, value, base=base):
            return []
        return value_problems(checker, value, base=base, correlation=pair)

    def _embedded_problems(self, document: dict[str, Any]) -> list[FieldError]:
        return embedded_problems(self._embedded, document) if self._embedded is not None else []

    def _new_repetitions(self, new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
        if self._unique is None:
            return []
        found = self._unique(new)
        return found if found and not self._unique(old) else []

    def _rule_problems(
        self, before: Sequence[FieldError], new: Any, old: Any, correlation: Correlation | None
    ) -> list[FieldError]:
        if self.rules is None:
            return []
        if any(problem.reason in _BLOCKING for problem in before):
            return [_BLOCKED]
        return self.rules.problems(new, old, correlation)
