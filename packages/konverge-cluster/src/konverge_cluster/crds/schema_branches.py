"""`anyOf`, `oneOf`, `allOf` and `not`.

When no branch accepts a value, the server also reports the errors of one of them: the one that matches best by its
number of checks that apply and pass (`Branch.weight`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from konverge_cluster.api.field_errors import FieldError, quote
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.paths import FieldPath, format_steps
from konverge_cluster.crds.reports import Report, Step

__all__ = ["Branch", "best_branch", "branch_step"]


class Branch(Protocol):
    """A schema as part of another one."""

    def accepts(self, value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> list[FieldError]:
        """Return the errors of a value."""
        ...

    def weight(self, value: Any) -> int: ...


class SchemaWithBranches(Protocol):
    """A schema with branches."""

    @property
    def any_of(self) -> Sequence[Branch]: ...

    @property
    def one_of(self) -> Sequence[Branch]: ...

    @property
    def all_of(self) -> Sequence[Branch]: ...

    @property
    def negated(self) -> Branch | None: ...


def best_branch(branches: Sequence[Branch], value: Any) -> Branch:
    """Return the branch that the server reports: the first that accepts the value, else the one that matches best."""
    for branch in branches:
        if not branch.accepts(value, None, Report(), None):
            return branch
    return max(branches, key=lambda branch: branch.weight(value))


def branch_step(checker: SchemaWithBranches) -> Step | None:
    if not (checker.any_of or checker.one_of or checker.all_of or checker.negated):
        return None

    def step(value: Any, field_path: FieldPath, report: Report, old: Correlation | None) -> None:
        if checker.any_of:
            _check_any(checker.any_of, value, field_path, report, old)
        if checker.one_of:
            _check_one(checker.one_of, value, field_path, report, old)
        if checker.all_of:
            _check_all(checker.all_of, value, field_path, report, old)
        if checker.negated is not None and not checker.negated.accepts(value, field_path, report, old):
            report.add_error(f"{quote(format_steps(field_path))} must not validate the schema (not)")

    return step


def _check_any(
    branches: Sequence[Branch], value: Any, field_path: FieldPath, report: Report, old: Correlation | None
) -> None:
    failures = []
    for branch in branches:
        found = branch.accepts(value, field_path, report, old)
        if not found:
            return
        failures.append(found)
    report.add_error(f"{quote(format_steps(field_path))} must validate at least one schema (anyOf)")
    report.errors += _best(branches, failures, value)


def _check_one(
    branches: Sequence[Branch], value: Any, field_path: FieldPath, report: Report, old: Correlation | None
) -> None:
    failures = [branch.accepts(value, field_path, report, old) for branch in branches]
    valid = sum(not found for found in failures)
    if valid == 1:
        return
    how = f"Found {valid} valid alternatives" if valid else "Found none valid"
    report.add_error(f"{quote(format_steps(field_path))} must validate one and only one schema (oneOf). {how}")
    if not valid:
        report.errors += _best(branches, failures, value)


def _best(branches: Sequence[Branch], failures: list[list[FieldError]], value: Any) -> list[FieldError]:
    if len(failures) == 1:
        return failures[0]
    weights = [branch.weight(value) for branch in branches]
    return failures[weights.index(max(weights))]


def _check_all(
    branches: Sequence[Branch], value: Any, field_path: FieldPath, report: Report, old: Correlation | None
) -> None:
    failed = 0
    for branch in branches:
        found = branch.accepts(value, field_path, report, old)
        failed += bool(found)
        report.errors += found
    if failed:
        none = ". None validated" if failed == len(branches) else ""
        report.add_error(f"{quote(format_steps(field_path))} must validate all the schemas (allOf){none}")
