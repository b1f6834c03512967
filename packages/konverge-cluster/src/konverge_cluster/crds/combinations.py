"""`anyOf`, `oneOf`, `allOf` and `not`.

When no branch accepts a value, the server complains about one of them besides: the one that fits best by its count of
checks that apply and pass (`Branch.weight`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from konverge_cluster.api.field_errors import FieldError, quote
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.paths import Place, steps_of
from konverge_cluster.crds.reports import Report, Step

__all__ = ["Branch", "chosen_branch", "combination_step"]


class Branch(Protocol):
    """A schema as part of another one."""

    def accepts(self, value: Any, place: Place, report: Report, old: Correlation | None) -> list[FieldError]:
        """What it finds wrong with a value."""
        ...

    def weight(self, value: Any) -> int: ...


class Combined(Protocol):
    """A schema with branches."""

    @property
    def any_of(self) -> Sequence[Branch]: ...

    @property
    def one_of(self) -> Sequence[Branch]: ...

    @property
    def all_of(self) -> Sequence[Branch]: ...

    @property
    def negated(self) -> Branch | None: ...


def chosen_branch(branches: Sequence[Branch], value: Any) -> Branch:
    """The branch that the server speaks of: the first that accepts the value, else the one that fits best."""
    for branch in branches:
        if not branch.accepts(value, None, Report(), None):
            return branch
    return max(branches, key=lambda branch: branch.weight(value))


def combination_step(checker: Combined) -> Step | None:
    if not (checker.any_of or checker.one_of or checker.all_of or checker.negated):
        return None

    def step(value: Any, place: Place, report: Report, old: Correlation | None) -> None:
        if checker.any_of:
            _check_any(checker.any_of, value, place, report, old)
        if checker.one_of:
            _check_one(checker.one_of, value, place, report, old)
        if checker.all_of:
            _check_all(checker.all_of, value, place, report, old)
        if checker.negated is not None and not checker.negated.accepts(value, place, report, old):
            report.say(f"{quote(steps_of(place))} must not validate the schema (not)")

    return step


def _check_any(branches: Sequence[Branch], value: Any, place: Place, report: Report, old: Correlation | None) -> None:
    failures = []
    for branch in branches:
        found = branch.accepts(value, place, report, old)
        if not found:
            return
        failures.append(found)
    report.say(f"{quote(steps_of(place))} must validate at least one schema (anyOf)")
    report.found += _best(branches, failures, value)


def _check_one(branches: Sequence[Branch], value: Any, place: Place, report: Report, old: Correlation | None) -> None:
    failures = [branch.accepts(value, place, report, old) for branch in branches]
    valid = sum(not found for found in failures)
    if valid == 1:
        return
    how = f"Found {valid} valid alternatives" if valid else "Found none valid"
    report.say(f"{quote(steps_of(place))} must validate one and only one schema (oneOf). {how}")
    if not valid:
        report.found += _best(branches, failures, value)


def _best(branches: Sequence[Branch], failures: list[list[FieldError]], value: Any) -> list[FieldError]:
    if len(failures) == 1:
        return failures[0]
    weights = [branch.weight(value) for branch in branches]
    return failures[weights.index(max(weights))]


def _check_all(branches: Sequence[Branch], value: Any, place: Place, report: Report, old: Correlation | None) -> None:
    failed = 0
    for branch in branches:
        found = branch.accepts(value, place, report, old)
        failed += bool(found)
        report.found += found
    if failed:
        none = ". None validated" if failed == len(branches) else ""
        report.say(f"{quote(steps_of(place))} must validate all the schemas (allOf){none}")
