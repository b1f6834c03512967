"""A compiled schema: everything that is done with an object of one version of a custom resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.defaulting import compile_defaulter
from konverge_cluster.crds.embedded import compile_embedded, embedded_errors, read_embedded
from konverge_cluster.crds.list_types import compile_list_checks
from konverge_cluster.crds.pruning import compile_pruning
from konverge_cluster.crds.scaling import ScalePaths
from konverge_cluster.crds.structural import read_structural
from konverge_cluster.crds.values import Checker, value_errors

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

    def errors(self, new: Any, old: Any, correlation: Correlation | None) -> list[FieldError]:
        """Return the errors of the rules for an object; `old` is None for a new object."""
        ...

    def ratcheting_errors(self, new: Any, old: Any, correlation: Correlation) -> list[FieldError]:
        """Return the errors in unchanged values; ratcheting accepts them."""
        ...


class CompiledSchema:
    """The operations of a schema on an object.

    `read` prunes; `fill` sets defaults; `errors`, `update_errors` and `status_errors` validate. A compiled schema is
    immutable and keeps no reference to the objects that it has processed.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.structural = read_structural(schema)
        self._prune = compile_pruning(self.structural)
        self._fill = compile_defaulter(self.structural)
        self._unique = compile_list_checks(self.structural)
        self._embedded = compile_embedded(self.structural)
        self._checker = Checker(schema, root=True)
        status = (schema.get("properties") or {}).get("status")
        self._status_checker = Checker(status, root=True) if status is not None else None
        self.rules: RuleSet | None = None

    def read(self, document: dict[str, Any]) -> list[str]:
        """Prune an object in place; return the paths of unknown fields, in the server's order.

        Raises: EmbeddedResourceError.
        """
        unknown = self._prune(document)
        return unknown + read_embedded(self._embedded, document) if self._embedded is not None else unknown

    def fill(self, document: dict[str, Any]) -> None:
        """Set the defaults, in place."""
        if self._fill is not None:
            self._fill(document)

    def errors(self, new: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Return the errors of a new object."""
        found = value_errors(self._checker, new)
        if scale is not None:
            found += [*scale.spec_errors(new), *scale.status_errors(new)]
        found += self._embedded_errors(new)
        if self._unique is not None:
            found += self._unique(new)
        return found + self._rule_errors(found, new, None, None)

    def update_errors(self, new: dict[str, Any], old: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Return the errors of an updated object, except those in unchanged values."""
        correlation = Correlation(new, old, self.structural)
        found = self._changed_errors(self._checker, new, correlation)
        if scale is not None:
            found += [*scale.spec_errors(new), *scale.status_errors(new)]
        found += self._embedded_errors(new)
        found += self._new_repetitions(new, old)
        return found + self._rule_errors(found, new, old, correlation)

    def status_errors(self, new: dict[str, Any], old: dict[str, Any], scale: ScalePaths | None) -> list[FieldError]:
        """Return the errors of an object whose status was updated."""
        correlation = Correlation(new, old, self.structural)
        found: list[FieldError] = []
        if "status" in new and self._status_checker is not None:
            pair = correlation.key("status")
            found = self._changed_errors(self._status_checker, new["status"], pair, "status")
        if scale is not None:
            found += scale.status_errors(new)
        found += self._new_repetitions(new, old)
        return found + self._rule_errors(found, new, old, correlation)

    def update_warnings(self, new: dict[str, Any], old: dict[str, Any]) -> list[str]:
        """Return warnings for rules that unchanged values break: ratcheting accepts them."""
        if self.rules is None:
            return []
        return [str(each) for each in self.rules.ratcheting_errors(new, old, Correlation(new, old, self.structural))]

    @staticmethod
    def _changed_errors(checker: Checker, value: Any, pair: Correlation | None, base: str = "") -> list[FieldError]:
        # Most objects are valid; only invalid ones are compared with the old object.
        if not value_errors(checker, value, base=base):
            return []
        return value_errors(checker, value, base=base, correlation=pair)

    def _embedded_errors(self, document: dict[str, Any]) -> list[FieldError]:
        return embedded_errors(self._embedded, document) if self._embedded is not None else []

    def _new_repetitions(self, new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
        if self._unique is None:
            return []
        found = self._unique(new)
        return found if found and not self._unique(old) else []

    def _rule_errors(
        self, before: Sequence[FieldError], new: Any, old: Any, correlation: Correlation | None
    ) -> list[FieldError]:
        if self.rules is None:
            return []
        if any(error.reason in _BLOCKING for error in before):
            return [_BLOCKED]
        return self.rules.errors(new, old, correlation)
